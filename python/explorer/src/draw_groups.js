// A group of nodes as a box: how many there are, how that compares, and its folders or nodes as rows.

import { ROW, rowsTo } from "./layout.js";
import { NAME, SMALL, put } from "./svg.js";
import { count, inLines, shown, widthOf } from "./text.js";
import { STATES, stateWord, statusWord, typeWord } from "./words.js";

const HEAD = 56;
const BAR = 10;
const LINE = 15;
const ROW_FONT = "12px system-ui, sans-serif";

/** What a group is called: a layer, or the path of a folder in it. */
export function groupLabel(box) {
  return shown(box.label).replace(/[/]$/, "").replaceAll("/", " / ");
}

export function keysOfGroup(box) {
  const rows = box.rows.map((row, i) => (row.node === undefined ? `${box.node}r${i}` : `n${row.node}`));
  return [box.node, ...rows, ...(box.more ? [`${box.node}more`] : [])];
}

/** The width that a group asks for; sets the share of the largest group. */
export function measureGroup(project, box, most) {
  box.share = box.nodes.length / most;
  const head = widthOf(groupLabel(box), NAME) + widthOf(total(box), SMALL) + 40;
  const rows = box.rows.map((row) => {
    const { name, note } = rowTexts(project, row);
    return widthOf(name, ROW_FONT) + widthOf(note, SMALL) + 38;
  });
  return Math.ceil(Math.max(head, ...rows));
}

/** Break the names of a group and of its rows into lines of a width, and set how high they are. */
export function breakNames(project, box, width) {
  box.names = inLines(groupLabel(box), width - 34 - widthOf(total(box), SMALL), NAME);
  box.head = HEAD + (box.names.length - 1) * LINE;
  for (const row of box.rows) {
    const { name, note } = rowTexts(project, row);
    row.lines = inLines(name, width - 34 - widthOf(note, SMALL), ROW_FONT);
    row.height = ROW + (row.lines.length - 1) * LINE;
  }
}

/**
 * Draw one; where it stands is set by the picture.
 *
 * @param tools `button(parent, key, label, act)`, `hint(element, lines)`, `open(key)`, `select(node)`.
 */
export function drawGroup(parent, project, box, view, tools) {
  const label = `${groupLabel(box)}, ${total(box)}`;
  const group = parent.append("g").attr("class", `group${box.isOpen ? " open" : ""}`).attr("role", "group").attr("aria-label", label);
  group.append("rect").attr("class", "frame").attr("width", box.width).attr("height", box.height).attr("rx", 7);
  const head = tools
    .button(group, box.node, `${box.isOpen ? "Close" : "Open"} ${label}`, () => tools.open(box.key))
    .attr("class", "head")
    .attr("aria-expanded", String(box.isOpen));
  head.append("rect").attr("width", box.width - 6).attr("height", box.head - 6).attr("x", 3).attr("y", 3).attr("rx", 5);
  box.names.forEach((line, i) => put(head, "name", 12, 22 + i * LINE, line));
  put(head, "note", box.width - 12, 22, total(box)).attr("text-anchor", "end");
  bar(head, project, box);
  tools.hint(head.node(), () => [label, ...byState(project, box).map(([state, number]) => `${number.toLocaleString("en")} ${stateWord(state)}`)]);
  box.rows.forEach((row, i) => drawRow(group, project, box, row, i, tools));
  if (box.more && box.rows.length) {
    const what = `and ${box.more.toLocaleString("en")} more`;
    const more = tools
      .button(group, `${box.node}more`, `${what} of ${groupLabel(box)}`, () => tools.open(box.key))
      .attr("class", "rest")
      .attr("transform", `translate(0,${box.head + rowsTo(box)})`);
    more.append("rect").attr("x", 4).attr("width", box.width - 8).attr("height", ROW - 2).attr("rx", 4);
    put(more, "more", 12, 13, what);
  }
  return group;
}

/** As long as the group is large; in a change it shows what happens to how many. */
function bar(head, project, box) {
  const whole = Math.max(4, (box.width - 24) * box.share);
  let x = 12;
  const parts = byState(project, box);
  const rest = box.nodes.length - parts.reduce((sum, [, number]) => sum + number, 0);
  for (const [state, number] of [...parts, ["none", rest]]) {
    const width = (whole * number) / box.nodes.length;
    head.append("rect").attr("class", `bar state-${state}`).attr("x", x).attr("y", box.head - 23).attr("width", width).attr("height", BAR);
    x += width;
  }
}

function drawRow(group, project, box, row, i, tools) {
  const { name, note, feeds, spoken, state } = rowTexts(project, row);
  const act = row.node === undefined ? () => tools.open(row.key) : () => tools.select(row.node);
  const button = tools
    .button(group, row.node === undefined ? `${box.node}r${i}` : `n${row.node}`, [spoken, note, feeds !== note && feeds].filter(Boolean).join(", "), act)
    .attr("class", `row${state ? ` state-${state}` : ""}`)
    .attr("transform", `translate(0,${box.head + rowsTo(box, i)})`);
  button.append("rect").attr("x", 4).attr("width", box.width - 8).attr("height", row.height - 2).attr("rx", 4);
  row.lines.forEach((line, n) => put(button, "member", 12, 13 + n * LINE, line));
  put(button, "note", box.width - 12, 13, note).attr("text-anchor", "end");
  tools.hint(button.node(), () => [name, ...new Set([note, feeds].filter(Boolean))]);
}

function rowTexts(project, row) {
  if (row.node === undefined) {
    const name = shown(row.label);
    return { name, note: row.nodes.length.toLocaleString("en"), spoken: `folder ${name}` };
  }
  const node = project.nodes[row.node];
  const state = project.state(row.node)?.state;
  const feeds = node.blast_radius ? `feeds ${node.blast_radius.toLocaleString("en")}` : "";
  const note = state ? stateWord(state) : (statusWord(node) ?? feeds);
  return { name: shown(node.name), note, feeds, spoken: `${typeWord(node)} ${shown(node.name)}`, state };
}

function total(box) {
  return count(box.nodes.length, "node");
}

function byState(project, box) {
  const found = new Map();
  for (const node of box.nodes) {
    const state = project.state(node)?.state;
    if (state) found.set(state, (found.get(state) ?? 0) + 1);
  }
  return STATES.filter((state) => found.has(state)).map((state) => [state, found.get(state)]);
}
