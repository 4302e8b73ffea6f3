// The picture: boxes and edges as SVG, moved and scaled by d3-zoom, walked through by keys.

import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { breakNames, drawGroup, groupLabel, keysOfGroup, measureGroup } from "./draw_groups.js";
import { ROW, layOut, stack } from "./layout.js";
import { NAME, SMALL, fittingMarks, put } from "./svg.js";
import { count, fitted, inLines, shown, widthOf } from "./text.js";
import { hidesColumns } from "./view.js";
import { stateWord, statusWord, typeWord } from "./words.js";

const MONO = '12px ui-monospace, "SF Mono", "DejaVu Sans Mono", monospace';
const HEAD = 44;
const NAME_LINE = 16;
/** What stands beside a name in the head of a box: margins, and the button for its columns. */
const BESIDE = 52;
const NARROWEST = 190;
const WIDEST = 330;
const WIDEST_GROUP = 340;
/** In a change, which should be in sight whole, longer names are in several lines. */
const WIDEST_NAME_OF_CHANGE = 230;
/** The smallest scale at which names are read. */
const READABLE = 0.55;
const MOST_BELOW_EACH_OTHER = 12;

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
      .filter((event) => !event.button && !(event.type === "wheel" && event.shiftKey) && !(this.view && this.isPage()))
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
    this.size = this.#layOut(view);
    this.svg.node().parentElement.style.height = this.isPage() ? `${Math.ceil(this.size.height * this.#wholeScale(this.size))}px` : "";
    this.scene.selectAll("*").remove();
    this.svg.attr("aria-label", label);
    this.#edges(this.scene.append("g").attr("class", "edges"));
    const boxes = this.scene.append("g").attr("class", "boxes");
    for (const box of view.boxes) {
      if (view.mode === "groups") this.#group(boxes, box);
      else this.#box(boxes, box);
    }
    this.#rove(held ?? keysOf(view.boxes[0])[0], held !== null);
  }

  /** Whether the window is so narrow that the boxes of a whole picture stand below each other. */
  get isNarrow() {
    return matchMedia("(max-width: 820px)").matches;
  }

  /** Whether the names of a view can be read when all of it is in sight. */
  canRead(view) {
    if (this.isNarrow) return view.boxes.length <= MOST_BELOW_EACH_OTHER;
    return this.#wholeScale(this.#layOut(view)) >= READABLE;
  }

  /** Whether the picture is as high as it has to be and the page scrolls over it. */
  isPage(view = this.view) {
    return this.isNarrow && (view.mode === "groups" || view.mode === "change");
  }

  #layOut(view) {
    this.#measure(view);
    return this.isPage(view) ? stack(view) : layOut(view);
  }

  #wholeScale(size) {
    const { width, height } = this.svg.node().parentElement.getBoundingClientRect();
    if (!size.width) return 1;
    return Math.min(width / size.width, this.isNarrow ? 1 : height / size.height, 1);
  }

  /** The whole in sight. */
  fit() {
    this.#show(this.#wholeScale(this.size), null);
  }

  /** The whole in sight, or the selection with what is around it if names would be too small to read. */
  arrive(node) {
    const whole = this.view.mode === "groups" || this.view.mode === "change";
    const scale = Math.min(this.#wholeScale(this.size), this.svg.node().getBoundingClientRect().height / this.size.height);
    this.#show(whole ? this.#wholeScale(this.size) : Math.max(scale, 0.75), node);
  }

  #show(scale, node) {
    const { width, height } = this.svg.node().getBoundingClientRect();
    if (!width || !this.size.width) return;
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

  /** How wide all boxes of a view are, so that names stand whole, and how high the head of each is. */
  #measure(view) {
    if (view.mode === "groups") {
      const most = Math.max(...view.boxes.map((box) => box.nodes.length));
      const wide = view.boxes.map((box) => measureGroup(this.project, box, most));
      view.width = clamp(Math.max(...wide), NARROWEST, WIDEST_GROUP);
      for (const box of view.boxes) breakNames(this.project, box, view.width);
      return;
    }
    let wide = NARROWEST;
    const widestName = view.mode === "change" ? WIDEST_NAME_OF_CHANGE : WIDEST;
    for (const box of view.boxes) {
      const name = widthOf(shown(this.project.nodes[box.node].name).slice(0, 80), NAME) + BESIDE;
      wide = Math.max(wide, Math.min(name, widestName));
      for (const vertex of box.rows) {
        const { name, side } = this.#rowTexts(box, vertex);
        wide = Math.max(wide, widthOf(name.slice(0, 80), MONO) + 34 + (side ? widthOf(side, SMALL) : 0));
      }
    }
    view.width = Math.min(Math.ceil(wide), WIDEST);
    for (const box of view.boxes) {
      box.names = inLines(this.project.nodes[box.node].name, view.width - BESIDE, NAME);
      box.head = HEAD + (box.names.length - 1) * NAME_LINE;
    }
  }

  #rowTexts(box, vertex) {
    const column = this.project.column(vertex);
    const change = this.project.state(box.node)?.columns.get(vertex);
    return { column, change, name: column.rows ? "(rows)" : shown(column.name), side: shortNote(column, change) };
  }

  #group(parent, box) {
    const element = drawGroup(parent, this.project, box, this.view, {
      button: (...given) => this.#button(...given),
      hint: (...given) => this.#hint(...given),
      open: (key) => this.actions.group(key),
      select: (node) => this.actions.select(node, null),
    });
    element.attr("transform", `translate(${box.x},${box.y})`);
  }

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
    head.append("rect").attr("width", box.width - 34).attr("height", box.head - 6).attr("x", 3).attr("y", 3).attr("rx", 5);
    put(head, "kind", 12, 17, fittingMarks(marks, box.width - BESIDE));
    box.names.forEach((line, i) => put(head, "name", 12, 34 + i * NAME_LINE, line));
    this.#hint(head.node(), () => nodeLines(node, state));
    if (box.columns) this.#columnsButton(group, box, node);
    box.rows.forEach((vertex, i) => this.#row(group, box, vertex, box.head + i * ROW));
    if (box.rows.length && box.more) {
      put(group, "more", 12, box.head + box.rows.length * ROW + 12, `and ${count(box.more, "more column")}`);
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
    const { column, change, name, side } = this.#rowTexts(box, vertex);
    const classes = ["row"];
    if (vertex === this.view.root) classes.push("selected");
    if (box.involved && !box.involved.has(vertex)) classes.push("aside");
    if (change) classes.push(`change-${change.change}`);
    if (column.pii) classes.push("pii");
    const notes = [
      column.rows ? "which rows there are" : column.type && shown(column.type),
      column.pii && `personal data: ${shown(column.pii.kind)}`,
      change && changeWord(change.change),
    ].filter(Boolean);
    const label = [column.rows ? "rows" : `column ${name}`, ...notes].join(", ");
    const row = this.#button(group, `v${vertex}`, label, () => this.actions.select(box.node, vertex))
      .attr("class", classes.join(" "))
      .attr("transform", `translate(0,${y})`);
    row.append("rect").attr("x", 4).attr("width", box.width - 8).attr("height", ROW - 2).attr("rx", 4);
    const room = side ? Math.min(Math.ceil(widthOf(side, SMALL)) + 1, box.width / 2) : 0;
    put(row, column.rows ? "rows" : "column", 12, 13, fitted(name, box.width - 32 - room, MONO));
    if (side) put(row, "note", box.width - 10, 13, fitted(side, room, SMALL)).attr("text-anchor", "end");
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
      .attr("transform", `translate(${x},${box.head / 2})`);
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
      if (edge.reads > 1) classes.push(`wide-${Math.min(4, Math.ceil(Math.log10(edge.reads) * 2))}`);
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
    if (this.view.mode === "groups") return groupLines(this.view, edge);
    const name = (node, vertex) => {
      const whole = project.nodes[node].name;
      return vertex === null ? whole : `${whole}.${project.isRows(vertex) ? "(rows)" : project.columnName(vertex)}`;
    };
    const kinds = new Set(edge.links.flatMap((link) => project.kindsOf(link)));
    const lines = [`${shown(name(edge.parent, edge.from))} → ${shown(name(edge.child, edge.to))}`, ...kinds];
    if (edge.from === null && edge.links.length > 1) lines.push(`${count(edge.links.length, "pair")} of columns that differ`);
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
    const box = this.view.boxes.find((one) => owns(one, element.dataset.key));
    const act = {
      Enter: () => element.dispatchEvent(new MouseEvent("click", { bubbles: true })),
      " ": () => element.dispatchEvent(new MouseEvent("click", { bubbles: true })),
      ArrowDown: () => this.#step(box, element, 1),
      ArrowUp: () => this.#step(box, element, -1),
      ArrowRight: () => this.#across(box, element, "parent", "child", "from", "to"),
      ArrowLeft: () => this.#across(box, element, "child", "parent", "to", "from"),
      Home: () => this.#rove(keysOf(this.view.boxes[0])[0], true),
      ...(this.view.mode === "groups"
        ? {}
        : { u: () => this.#may(box, "up"), d: () => this.#may(box, "down"), c: () => this.actions.columns(box) }),
      f: () => this.fit(),
      "+": () => this.scaleBy(1.25),
      "=": () => this.scaleBy(1.25),
      "-": () => this.scaleBy(0.8),
    }[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  }

  #may(box, side) {
    if (box[side].hidden || box[side].canHide) this.actions.grow(box, side);
  }

  /** Down and up: the rows of a box, then the box below it. */
  #step(box, element, by) {
    const keys = keysOf(box);
    const at = keys.indexOf(element.dataset.key);
    if (keys[at + by]) {
      this.#rove(keys[at + by], true);
      return;
    }
    const middle = (one) => one.x + one.width / 2;
    const beside = this.view.boxes
      .filter((one) => one !== box && Math.abs(middle(one) - middle(box)) < box.width / 2 && (one.y - box.y) * by > 0)
      .sort((a, b) => (a.y - b.y) * by)[0];
    if (!beside) return;
    this.#rove(keysOf(beside).at(by < 0 ? -1 : 0), true);
  }

  /** Right and left: along an edge, from the row that has the focus if one begins there. */
  #across(box, element, near, far, nearEnd, farEnd) {
    const key = element.dataset.key;
    const vertex = key.startsWith("v") ? Number(key.slice(1)) : null;
    const leaving = this.view.edges.filter((edge) => edge[near] === box.node);
    const edge = leaving.find((one) => one[nearEnd] === vertex && vertex !== null) ?? leaving[0];
    if (!edge) return;
    const beyond = this.view.boxes.find((one) => one.node === edge[far]);
    this.#rove(edge[farEnd] !== null && vertex !== null ? `v${edge[farEnd]}` : keysOf(beyond)[0], true);
  }
}

/** What of a box is reached by the arrow keys, from its head down. */
function keysOf(box) {
  return box.key === undefined ? [`n${box.node}`, ...box.rows.map((vertex) => `v${vertex}`)] : keysOfGroup(box);
}

function owns(box, key) {
  return keysOf(box).includes(key) || [`c${box.node}`, `up${box.node}`, `down${box.node}`].includes(key);
}

/** What an edge between two groups stands for. */
function groupLines({ boxes }, { parent, child, ahead, back }) {
  const [from, to] = [parent, child].map((one) => groupLabel(boxes.find(({ node }) => node === one)));
  const lines = ahead ? [`${count(ahead, "time")} a node of ${to} reads one of ${from}`] : [];
  return back ? [...lines, `${count(back, "time")} the other way round`] : lines;
}

function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
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
