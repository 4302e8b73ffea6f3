// The picture: boxes and edges as SVG, moved and scaled by d3-zoom, walked through by keys.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { HEAD, ROW, WIDTH, layOut } from "./layout.js";
import { count, fitted, shown } from "./text.js";
import { hidesColumns } from "./view.js";
import { stateWord, statusWord, typeWord } from "./words.js";

const FONT = "13px system-ui, sans-serif";
const SMALL = "11px system-ui, sans-serif";
const MONO = "12px ui-monospace, monospace";

export class Picture {
  /**
   * @param actions what the picture asks for: `select(node, vertex)`, `grow(box, side)`,
   *   `columns(box)`, `say(element, lines)`, `hush()`.
   */
  constructor(svgElement, project, actions) {
    this.project = project;
    this.actions = actions;
    this.svg = select(svgElement);
    this.scene = this.svg.append("g").attr("class", "scene");
    this.view = null;
    this.zoom = zoom()
      .scaleExtent([0.05, 4])
      .filter((event) => !event.button && (event.type !== "wheel" || !event.shiftKey))
      .on("zoom", (event) => this.scene.attr("transform", event.transform));
    this.svg.call(this.zoom).on("dblclick.zoom", null);
    svgElement.addEventListener("keydown", (event) => this.#key(event));
    svgElement.addEventListener("focusin", (event) => this.#focused(event));
  }

  /** Draw a view in place of the last; the key of what has the focus keeps it. */
  draw(view, label) {
    const held = this.svg.node().contains(document.activeElement)
      ? document.activeElement.dataset.key
      : null;
    this.view = view;
    this.size = layOut(view);
    this.scene.selectAll("*").remove();
    this.svg.attr("aria-label", label);
    this.#edges(this.scene.append("g").attr("class", "edges"));
    const boxes = this.scene.append("g").attr("class", "boxes");
    for (const box of view.boxes) this.#box(boxes, box);
    this.#rove(held ?? `n${view.boxes[0]?.node}`, held !== null);
  }

  /** The whole in sight, or what of it is around the selection if that would be too small to read. */
  fit(node) {
    const { width, height } = this.svg.node().getBoundingClientRect();
    if (!width || !this.size.width) return;
    const whole = Math.min(width / this.size.width, height / this.size.height, 1);
    const scale = Math.max(whole, Math.min(0.7, width / (WIDTH * 2.2)));
    const box = this.view.boxes.find((one) => one.node === node) ?? this.view.boxes[0];
    const at = (size, length, from, of) =>
      of * scale <= length
        ? (length - of * scale) / 2
        : clamp(length / 2 - (from + size / 2) * scale, length - of * scale, 0);
    const x = at(box.width, width, box.x, this.size.width);
    const y = at(Math.min(box.height, 120), height, box.y, this.size.height);
    this.svg.call(this.zoom.transform, zoomIdentity.translate(x, y).scale(scale));
  }

  scaleBy(factor) {
    this.svg.call(this.zoom.scaleBy, factor);
  }

  /** For paper and files: everything in sight, nothing moved. */
  whole(on) {
    if (on) {
      this.kept = this.scene.attr("transform");
      this.scene.attr("transform", null);
      this.svg.attr("viewBox", `0 0 ${this.size.width} ${this.size.height}`);
    } else {
      this.svg.attr("viewBox", null);
      this.scene.attr("transform", this.kept);
    }
  }

  // --- boxes ---------------------------------------------------------------------------------------

  #box(parent, box) {
    const { project, actions } = this;
    const node = project.nodes[box.node];
    const state = project.state(box.node);
    const group = parent
      .append("g")
      .attr("class", boxClass(node, state, this.view, box))
      .attr("transform", `translate(${box.x},${box.y})`)
      .attr("role", "group")
      .attr("aria-label", `${typeWord(node)} ${shown(node.name)}`);
    group.append("rect").attr("class", "frame").attr("width", box.width).attr("height", box.height).attr("rx", 7);
    // What is cut first is said last.
    const marks = [
      state ? stateWord(state.state).toUpperCase() : null,
      state?.state === "broken" ? null : statusWord(node),
      typeWord(node),
      node.layer !== node.resource_type ? shown(node.layer) : null,
    ].filter(Boolean);
    const head = this.#button(group, `n${box.node}`, describe(project, box, state), () =>
      actions.select(box.node, null),
    ).attr("class", "head");
    head.append("rect").attr("width", box.width - 34).attr("height", HEAD - 6).attr("x", 3).attr("y", 3).attr("rx", 5);
    text(head, "kind", 12, 17, fitted(marks.join(" · "), box.width - 56, SMALL));
    text(head, "name", 12, 34, fitted(node.name, box.width - 56, `600 ${FONT}`));
    this.#hint(head.node(), () => nodeLines(node, state));
    if (box.columns) this.#columnsButton(group, box, node);
    box.rows.forEach((vertex, i) => this.#row(group, box, vertex, HEAD + i * ROW));
    if (box.rows.length && box.more) {
      text(group, "more", 12, HEAD + box.rows.length * ROW + 12, `${count(box.more, "more column")}`);
    }
    for (const side of ["up", "down"]) this.#grow(group, box, node, side);
  }

  #columnsButton(group, box, node) {
    const hides = hidesColumns(box);
    const what = hides ? "Hide" : box.rows.length ? "Show all" : "Show";
    const label = `${what} columns of ${shown(node.name)}`;
    const button = this.#button(group, `c${box.node}`, label, () => this.actions.columns(box))
      .attr("class", "fold")
      .attr("aria-expanded", String(box.rows.length > 0))
      .attr("transform", `translate(${box.width - 30},6)`);
    button.append("rect").attr("width", 24).attr("height", 32).attr("rx", 5);
    button.append("path").attr("d", hides ? "M7,13l5,6l5,-6" : "M9,10l6,6l-6,6");
  }

  #row(group, box, vertex, y) {
    const { project } = this;
    const column = project.column(vertex);
    const change = project.state(box.node)?.columns.get(vertex);
    const classes = ["row"];
    if (vertex === this.view.root) classes.push("selected");
    if (box.involved && !box.involved.has(vertex)) classes.push("aside");
    if (change) classes.push(`change-${change.change}`);
    if (column.pii) classes.push("pii");
    const name = column.rows ? "(rows)" : column.name;
    const notes = [
      column.rows ? "which rows there are" : column.type && shown(column.type),
      column.pii && `personal data: ${shown(column.pii.kind)}`,
      change && changeWord(change.change),
    ].filter(Boolean);
    const label = [column.rows ? "rows" : `column ${shown(name)}`, ...notes].join(", ");
    const row = this.#button(group, `v${vertex}`, label, () => this.actions.select(box.node, vertex))
      .attr("class", classes.join(" "))
      .attr("transform", `translate(0,${y})`);
    row.append("rect").attr("x", 4).attr("width", box.width - 8).attr("height", ROW - 2).attr("rx", 4);
    const side = shortNote(column, change);
    const room = side ? 74 : 0;
    text(row, column.rows ? "rows" : "column", 12, 13, fitted(name, box.width - 24 - room, MONO));
    if (side) text(row, "note", box.width - 10, 13, fitted(side, room, SMALL)).attr("text-anchor", "end");
    this.#hint(row.node(), () => this.#columnLines(vertex, column, change));
    row.on("mouseenter.lit", () => this.#light(vertex)).on("mouseleave.lit", () => this.#light(null));
  }

  #grow(group, box, node, side) {
    const { hidden, canHide } = box[side];
    if (!hidden && !canHide) return;
    const what = side === "up" ? "upstream" : "downstream";
    const label = hidden
      ? `Show ${hidden} more ${what} of ${shown(node.name)}`
      : `Hide what is ${what} of ${shown(node.name)}`;
    const x = side === "up" ? 0 : box.width;
    const button = this.#button(group, `${side}${box.node}`, label, () => this.actions.grow(box, side))
      .attr("class", `grow ${side}`)
      .attr("transform", `translate(${x},${HEAD / 2})`);
    button.append("circle").attr("r", 12).attr("class", "target");
    button.append("circle").attr("r", 8);
    button.append("path").attr("d", hidden ? "M-4,0H4M0,-4V4" : "M-4,0H4");
    this.#hint(button.node(), () => [label]);
  }

  #button(parent, key, label, act) {
    const button = parent
      .append("g")
      .attr("role", "button")
      .attr("tabindex", -1)
      .attr("data-key", key)
      .attr("aria-label", label);
    button.on("click", (event) => {
      event.stopPropagation();
      act();
    });
    return button;
  }

  // --- edges ---------------------------------------------------------------------------------------

  #edges(parent) {
    const { view, project } = this;
    for (const edge of view.edges) {
      const classes = ["edge", edge.kind];
      if (edge.may) classes.push("may");
      if (edge.through) classes.push("through");
      const moved = (node, vertex) =>
        vertex === null ? project.state(node) && !["stopped"].includes(project.state(node).state) : project.state(node)?.columns.has(vertex);
      if (project.compare && moved(edge.parent, edge.from) && project.state(edge.child)) classes.push("carries");
      const group = parent.append("g").attr("class", classes.join(" "));
      group.append("path").attr("class", "line").attr("d", edge.path);
      const wide = group.append("path").attr("class", "wide").attr("d", edge.path);
      edge.element = group.node();
      this.#hint(wide.node(), () => this.#edgeLines(edge));
    }
  }

  #edgeLines(edge) {
    const { project } = this;
    const name = (node, vertex) => {
      const whole = project.nodes[node].name;
      return vertex === null ? whole : `${whole}.${project.isRows(vertex) ? "(rows)" : project.columnName(vertex)}`;
    };
    const kinds = new Set(edge.links.flatMap((link) => project.kindsOf(link)));
    const lines = [`${shown(name(edge.parent, edge.from))} → ${shown(name(edge.child, edge.to))}`, ...kinds];
    if (edge.through) lines.push(`through ${count(edge.through, "node")} that the filters hide`);
    const expression = edge.to !== null && project.column(edge.to).expression;
    if (expression) lines.push({ sql: expression });
    return lines;
  }

  /** Bring out what a vertex of the picture comes from and goes to. */
  #light(vertex) {
    this.svg.classed("dimmed", false);
    this.scene.selectAll(".lit").classed("lit", false);
    if (vertex === null || this.view.mode === "node") return;
    const touched = new Set([vertex]);
    for (const [near, far] of [["to", "from"], ["from", "to"]]) {
      const waiting = [vertex];
      const seen = new Set(waiting);
      while (waiting.length) {
        const one = waiting.pop();
        for (const edge of this.view.edges) {
          if (edge[near] !== one) continue;
          edge.element.classList.add("lit");
          if (edge[far] !== null && !seen.has(edge[far])) {
            seen.add(edge[far]);
            touched.add(edge[far]);
            waiting.push(edge[far]);
          }
        }
      }
    }
    if (touched.size < 2) return;
    this.svg.classed("dimmed", true);
    for (const one of touched) this.#element(`v${one}`)?.classList.add("lit");
  }

  // --- hints and keys ----------------------------------------------------------------------------------

  #hint(element, lines) {
    element.hintLines = lines;
    element.addEventListener("mouseenter", () => this.actions.say(element, lines()));
    element.addEventListener("mouseleave", () => this.actions.hush());
  }

  #columnLines(vertex, column, change) {
    const node = this.project.nodes[this.project.nodeOf(vertex)];
    const lines = [`${shown(node.name)}.${column.rows ? "(rows)" : shown(column.name)}`];
    if (column.rows) lines.push("which rows there are");
    if (column.type) lines.push(shown(column.type));
    if (column.pii) lines.push(`personal data: ${shown(column.pii.kind)} (${column.pii.origin})`);
    if (change) lines.push(changeWord(change.change));
    if (column.expression) lines.push({ sql: column.expression });
    return lines;
  }

  #element(key) {
    return this.svg.node().querySelector(`[data-key="${key}"]`);
  }

  #focused(event) {
    const element = event.target.closest("[data-key]");
    if (!element) return;
    this.#rove(element.dataset.key, false);
    if (element.hintLines && element.matches(":focus-visible")) {
      this.actions.say(element, element.hintLines());
    }
    const key = element.dataset.key;
    this.#light(key.startsWith("v") ? Number(key.slice(1)) : null);
    this.#reveal(element);
  }

  /** Of all buttons of the picture one is reached by Tab; arrow keys go on from it. */
  #rove(key, focus) {
    const element = this.#element(key) ?? this.svg.node().querySelector("[data-key]");
    for (const other of this.svg.node().querySelectorAll('[tabindex="0"]')) {
      if (other !== element) other.setAttribute("tabindex", "-1");
    }
    if (!element) return;
    element.setAttribute("tabindex", "0");
    if (focus) element.focus({ preventScroll: true });
  }

  #reveal(element) {
    const frame = this.svg.node().getBoundingClientRect();
    const place = element.getBoundingClientRect();
    const margin = 16;
    const beyond = (from, to, low, high) =>
      from < low + margin ? low + margin - from : to > high - margin ? high - margin - to : 0;
    const x = beyond(place.left, place.right, frame.left, frame.right);
    const y = beyond(place.top, place.bottom, frame.top, frame.bottom);
    if (x || y) {
      const scale = this.svg.node().__zoom.k;
      this.svg.call(this.zoom.translateBy, x / scale, y / scale);
    }
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const element = event.target.closest("[data-key]");
    if (!element) return;
    const box = this.view.boxes.find((one) => this.#owns(one, element.dataset.key));
    const act = {
      Enter: () => element.dispatchEvent(new MouseEvent("click", { bubbles: true })),
      " ": () => element.dispatchEvent(new MouseEvent("click", { bubbles: true })),
      ArrowDown: () => this.#step(box, element, 1),
      ArrowUp: () => this.#step(box, element, -1),
      ArrowRight: () => this.#across(box, element, "parent", "child", "from", "to"),
      ArrowLeft: () => this.#across(box, element, "child", "parent", "to", "from"),
      Home: () => this.#rove(`n${this.view.boxes[0].node}`, true),
      u: () => this.#may(box, "up"),
      d: () => this.#may(box, "down"),
      c: () => this.actions.columns(box),
      f: () => this.fit(box.node),
      "+": () => this.scaleBy(1.25),
      "=": () => this.scaleBy(1.25),
      "-": () => this.scaleBy(0.8),
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  #owns(box, key) {
    const [, kind, number] = /^(n|c|v|up|down)(\d+)$/.exec(key);
    return kind === "v" ? box.rows.includes(Number(number)) : box.node === Number(number);
  }

  #may(box, side) {
    if (box[side].hidden || box[side].canHide) this.actions.grow(box, side);
  }

  /** Down and up: the rows of a box, then the box below it. */
  #step(box, element, by) {
    const keys = [`n${box.node}`, ...box.rows.map((vertex) => `v${vertex}`)];
    const at = keys.indexOf(element.dataset.key);
    if (keys[at + by]) {
      this.#rove(keys[at + by], true);
      return;
    }
    const middle = (one) => one.x + one.width / 2;
    const beside = this.view.boxes
      .filter((one) => one !== box && Math.abs(middle(one) - middle(box)) < WIDTH / 2 && (one.y - box.y) * by > 0)
      .sort((a, b) => (a.y - b.y) * by)[0];
    if (!beside) return;
    const last = by < 0 && beside.rows.length ? `v${beside.rows.at(-1)}` : `n${beside.node}`;
    this.#rove(last, true);
  }

  /** Right and left: along an edge, from the row that has the focus if one begins there. */
  #across(box, element, near, far, nearEnd, farEnd) {
    const key = element.dataset.key;
    const vertex = key.startsWith("v") ? Number(key.slice(1)) : null;
    const leaving = this.view.edges.filter((edge) => edge[near] === box.node);
    const edge = leaving.find((one) => one[nearEnd] === vertex && vertex !== null) ?? leaving[0];
    if (!edge) return;
    this.#rove(edge[farEnd] !== null && vertex !== null ? `v${edge[farEnd]}` : `n${edge[far]}`, true);
  }
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

function text(parent, name, x, y, content) {
  return parent.append("text").attr("class", name).attr("x", x).attr("y", y).text(content);
}

function boxClass(node, state, view, box) {
  const classes = ["box", `type-${/^[a-z_]+$/.test(node.resource_type) ? node.resource_type : "other"}`];
  if (state) classes.push(`state-${state.state}`);
  if (node.status === "opaque" || node.status === "broken") classes.push(node.status);
  if (box.distance === 0 && view.mode !== "change") classes.push("focus");
  return classes.join(" ");
}

function describe(project, box, state) {
  const node = project.nodes[box.node];
  return [
    `${typeWord(node)} ${shown(node.name)}`,
    node.layer !== node.resource_type ? shown(node.layer) : null,
    state ? stateWord(state.state) : null,
    state?.state === "broken" ? null : statusWord(node),
    box.columns ? count(box.columns, "column") : null,
    node.owner ? `owner ${shown(node.owner)}` : null,
  ]
    .filter(Boolean)
    .join(", ");
}

function nodeLines(node, state) {
  const lines = [shown(node.name), [typeWord(node), node.relation && shown(node.relation)].filter(Boolean).join(" · ")];
  if (state) lines.push(`${stateWord(state.state)}: ${shown(state.why)}`);
  if (node.reason) lines.push(`${statusWord(node) ?? "note"}: ${shown(node.reason)}`);
  if (node.owner) lines.push(`owner: ${shown(node.owner)}`);
  return lines;
}

function shortNote(column, change) {
  if (change) return changeWord(change.change);
  if (column.pii) return column.pii.origin === "declassified" ? "" : `pii: ${shown(column.pii.kind)}`;
  return column.type ? shown(column.type) : "";
}

function changeWord(change) {
  return change === "upstream" ? "differs" : change;
}
