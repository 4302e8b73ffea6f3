// What is drawn of a project: boxes (nodes with some of their columns) and the edges between them.
//
// Nothing is laid out here, and only what is asked for is looked at.

import { DECIDES, MAY_READ, OF_ROWS, VALUE } from "./data.js";
import { groupsView } from "./groups.js";
import { acceptor } from "./state.js";
import { STATES } from "./words.js";

/** Rows of a box beyond which it says only how many there are. */
const TALLEST = 40;

/** Rows that the boxes of a change share, unless they are asked for all; and the most of one box. */
const ROWS_OF_CHANGE = 60;
const TALLEST_OF_CHANGE = 8;

const CLASS_NAMES = { [VALUE]: "value", [DECIDES]: "decides", [OF_ROWS]: "rows" };

/** The class of a link in words, and whether it is only possible. */
export function classOf(number) {
  const may = number > MAY_READ;
  return { kind: CLASS_NAMES[may ? number - MAY_READ : number], may };
}

/**
 * What is to be drawn.
 *
 * Returns `boxes`, nearest first, each with `rows` (vertices), `more` (columns that are not shown),
 * `up` and `down` (what a step further would show or hide); `edges` between boxes or their rows;
 * `filtered` and `beyond`: how many nodes the filters and the limit leave out. Where nothing is selected,
 * it is the change node by node if `canRead` says of that view that its names can be read, or else the
 * project, or the change, in groups (groups.js). Null where nothing is left to draw.
 */
export function viewOf(project, state, canRead, narrow) {
  if (state.node !== null) {
    return state.column === null ? nodeView(project, state) : columnView(project, state);
  }
  if (state.change && project.compare && state.group === null) {
    const left = [...project.compare.states.values()].filter((one) => state.states.has(one.state));
    if (left.length <= state.limit) {
      const view = changeView(project, state);
      if (!view.boxes.length) return null;
      // Whoever folds and unfolds columns is at it: the picture stays.
      if (state.columns.size || state.nocolumns.size || canRead(view)) return view;
    }
  }
  return groupsView(project, state, narrow);
}

// --- walking ---------------------------------------------------------------------------------------

/**
 * What is reached from a root, with the distance, breadth first.
 *
 * A node in `on` is gone through beyond the depth, one in `off` never.
 */
function walk(root, next, nodeOf, depth, on, off) {
  const reached = new Map([[root, 0]]);
  let frontier = [root];
  for (let distance = 0; frontier.length; distance++) {
    const following = [];
    for (const one of frontier) {
      const node = nodeOf(one);
      if (off.has(node) || (distance >= depth && !on.has(node))) continue;
      for (const neighbour of next(one)) {
        if (!reached.has(neighbour)) {
          reached.set(neighbour, distance + 1);
          following.push(neighbour);
        }
      }
    }
    frontier = following;
  }
  return reached;
}

/** Both walks and, of what they reached, the steps sideways that were asked for. */
function reach(root, up, down, nodeOf, state) {
  const { way, depth } = state;
  const above =
    way === "downstream"
      ? new Map([[root, 0]])
      : walk(root, up, nodeOf, depth, state.up, state.noup);
  const below =
    way === "upstream"
      ? new Map([[root, 0]])
      : walk(root, down, nodeOf, depth, state.down, state.nodown);
  const all = new Map([...above, ...below]);
  all.set(root, 0);
  const waiting = [...all.keys()];
  const beside = [];
  while (waiting.length) {
    const one = waiting.pop();
    for (const [asked, walked, next, flip] of [
      [state.up, above, up, true],
      [state.down, below, down, false],
    ]) {
      if (!asked.has(nodeOf(one)) || walked.has(one)) continue;
      for (const neighbour of next(one)) {
        beside.push(flip ? [neighbour, one] : [one, neighbour]);
        if (!all.has(neighbour)) {
          all.set(neighbour, (all.get(one) ?? 0) + 1);
          waiting.push(neighbour);
        }
      }
    }
  }
  const wanted = new Set(beside.map(([from, to]) => `${from}>${to}`));
  const drawn = (from, to) =>
    (above.has(from) && above.has(to)) ||
    (below.has(from) && below.has(to)) ||
    wanted.has(`${from}>${to}`);
  return { all, above, below, drawn };
}

// --- the three views ---------------------------------------------------------------------------------

function columnView(project, state) {
  const { links } = project;
  const wants = linkFilter(project, state);
  const root = project.vertexOf(state.node, state.column);
  const nodeOf = (vertex) => project.nodeOf(vertex);
  const neighbours = (touching, end) => (vertex) => {
    const found = [];
    for (const link of touching.of(vertex)) if (wants(link)) found.push(end[link]);
    return found;
  };
  const up = neighbours(project.into, links.parent);
  const down = neighbours(project.outOf, links.child);
  const found = reach(root, up, down, nodeOf, state);
  const nearest = new Map();
  const involved = new Map();
  for (const [vertex, distance] of found.all) {
    const node = nodeOf(vertex);
    nearest.set(node, Math.min(distance, nearest.get(node) ?? Infinity));
    if (!involved.has(node)) involved.set(node, new Set());
    involved.get(node).add(vertex);
  }
  const picked = pick(project, state, nearest);
  const boxes = picked.nodes.map((node) =>
    box(project, state, node, nearest.get(node), involved.get(node), root),
  );
  const outgoing = function* (vertex) {
    for (const link of project.linksOutOf(vertex)) {
      const to = links.child[link];
      if (wants(link) && found.all.has(to) && found.drawn(vertex, to)) {
        yield { to, kind: links.class[link], link };
      }
    }
  };
  const isDrawn = (vertex) => picked.drawn.has(nodeOf(vertex));
  const edges = new Edges(boxes, nodeOf);
  for (const vertex of found.all.keys()) {
    if (isDrawn(vertex)) for (const edge of across(vertex, outgoing, isDrawn, picked.passed, nodeOf)) edges.add(vertex, edge);
  }
  const inNodes = (next) => (node) => {
    const around = new Set();
    for (const vertex of involved.get(node)) for (const one of next(vertex)) around.add(nodeOf(one));
    around.delete(node);
    return around;
  };
  const walked = (side) => new Set([...side.keys()].map(nodeOf));
  grow(boxes, state, picked, inNodes(up), inNodes(down), walked(found.above), walked(found.below));
  return { ...picked.counts, boxes, edges: edges.all(), root, mode: "column" };
}

function nodeView(project, state) {
  const up = (node) => project.parents[node];
  const down = (node) => project.children[node];
  const found = reach(state.node, up, down, (node) => node, state);
  const picked = pick(project, state, found.all);
  const boxes = picked.nodes.map((node) => box(project, state, node, found.all.get(node), null));
  const edges = boxEdges(project, state, boxes, picked, found.drawn);
  const set = (next) => (node) => new Set(next(node));
  grow(boxes, state, picked, set(up), set(down), new Set(found.above.keys()), new Set(found.below.keys()));
  return { ...picked.counts, boxes, edges, root: null, mode: "node" };
}

function changeView(project, state) {
  const nearest = new Map();
  for (const [node, { state: what }] of project.compare.states) {
    if (state.states.has(what)) nearest.set(node, STATES.indexOf(what));
  }
  const picked = pick(project, state, nearest);
  const share = Math.min(TALLEST_OF_CHANGE, Math.floor(ROWS_OF_CHANGE / Math.max(1, picked.nodes.length)));
  const whole = picked.nodes.map((node) => {
    const columns = project.state(node).columns;
    return box(project, state, node, nearest.get(node), new Set(columns.keys()));
  });
  const edges = bundled(boxEdges(project, state, whole, picked, () => true));
  const boxes = whole.map((one) => (one.isOpen ? one : capped(one, project, share)));
  return { ...picked.counts, boxes, edges, root: null, mode: "change" };
}

/** A box with so many rows at most; which are left out it says. One line more is as good as the line that says so. */
function capped(one, project, most) {
  if (one.rows.length <= most + (most > 0 ? 1 : 0)) return one;
  const rows = one.rows.slice(0, most);
  return { ...one, rows, more: one.columns - rows.filter((vertex) => !project.isRows(vertex)).length };
}

/** One edge from box to box for all that lead from column to column, of the strongest kind of these. */
function bundled(edges) {
  const strength = ["value", "decides", "rows", "node"];
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.parent} ${edge.child}`;
    const whole = found.get(key);
    if (!whole) found.set(key, { ...edge, from: null, to: null, links: [...edge.links] });
    else {
      whole.links.push(...edge.links);
      whole.may &&= edge.may;
      whole.through = Math.min(whole.through, edge.through);
      if (strength.indexOf(edge.kind) < strength.indexOf(whole.kind)) whole.kind = edge.kind;
    }
  }
  return [...found.values()].map((edge) => ({ ...edge, reads: edge.links.length }));
}

// --- what they share ---------------------------------------------------------------------------------

/** The nodes that are drawn: nearest first, without those that are filtered out, up to the limit. */
function pick(project, state, nearest) {
  const accepts = acceptor(state, project);
  const ordered = [...nearest.keys()].sort((a, b) => nearest.get(a) - nearest.get(b) || a - b);
  const nodes = [];
  const passed = new Set();
  let beyond = 0;
  for (const node of ordered) {
    if (node !== state.node && !accepts(node)) passed.add(node);
    else if (nodes.length < state.limit) nodes.push(node);
    else beyond++;
  }
  const counts = { filtered: passed.size, beyond };
  return { nodes, passed, drawn: new Set(nodes), counts };
}

function box(project, state, node, distance, involved, root) {
  const all = project.columnsOf(node);
  const isOpen = state.columns.has(node);
  let rows = [];
  if (!state.nocolumns.has(node)) {
    const rowSet = project.rowsOf(node);
    if (involved?.has(rowSet)) rows.push(rowSet);
    rows.push(...(isOpen ? all : all.filter((vertex) => involved?.has(vertex))));
  }
  if (rows.length > TALLEST) {
    // Those that matter stay, whatever stands before them.
    const isAside = (vertex) => Number(Boolean(involved) && !involved.has(vertex));
    const kept = [...rows].sort((a, b) => isAside(a) - isAside(b)).slice(0, TALLEST);
    if (root !== undefined && rows.includes(root) && !kept.includes(root)) kept[TALLEST - 1] = root;
    rows = kept;
  }
  const columns = rows.filter((vertex) => !project.isRows(vertex)).length;
  const none = { hidden: 0, canHide: false };
  return {
    ...{ node, distance, rows, isOpen, involved },
    ...{ columns: all.length, more: all.length - columns, up: none, down: none },
  };
}

function linkFilter(project, state) {
  const wanted = new Set();
  for (const kind of [VALUE, DECIDES, OF_ROWS]) {
    if (state.edges.has(CLASS_NAMES[kind])) {
      wanted.add(kind);
      if (state.edges.has("may")) wanted.add(kind + MAY_READ);
    }
  }
  const classes = project.links.class;
  return (link) => wanted.has(classes[link]);
}

/** What stands next to something, across what the filters leave out. */
function* across(from, outgoing, isDrawn, passed, nodeOf) {
  const seen = new Set();
  const waiting = [{ at: from, kind: 0, through: 0 }];
  while (waiting.length) {
    const { at, kind, through } = waiting.pop();
    for (const step of outgoing(at)) {
      const sum = combined(kind, step.kind);
      if (isDrawn(step.to)) {
        yield { to: step.to, kind: sum, through, link: through ? null : step.link };
      } else if (passed.has(nodeOf(step.to)) && !seen.has(`${step.to} ${sum}`)) {
        seen.add(`${step.to} ${sum}`);
        waiting.push({ at: step.to, kind: sum, through: through + 1 });
      }
    }
  }
}

/** The class of two links one behind the other: a value only where both are, known only where both are. */
function combined(first, second) {
  if (first === 0 || second === 0) return first || second;
  const may = first > MAY_READ || second > MAY_READ ? MAY_READ : 0;
  const plain = (kind) => (kind > MAY_READ ? kind - MAY_READ : kind);
  return Math.max(plain(first), plain(second)) + may;
}

/** Edges between whole boxes, and between the columns of two boxes that both show some. */
function boxEdges(project, state, boxes, picked, drawn) {
  const edges = new Edges(boxes, (vertex) => project.nodeOf(vertex));
  const wants = linkFilter(project, state);
  const shownIn = new Map(boxes.map((one) => [one.node, new Set(one.rows)]));
  const { links } = project;
  const outgoing = function* (node) {
    for (const to of project.children[node]) if (drawn(node, to)) yield { to, kind: 0 };
  };
  for (const { node, rows } of boxes) {
    const reached = new Set();
    for (const vertex of rows) {
      for (const link of project.linksOutOf(vertex)) {
        const to = links.child[link];
        const child = project.nodeOf(to);
        if (wants(link) && shownIn.get(child)?.has(to) && drawn(node, child)) {
          edges.add(vertex, { to, kind: links.class[link], through: 0, link });
          reached.add(child);
        }
      }
    }
    for (const edge of across(node, outgoing, (n) => picked.drawn.has(n), picked.passed, (n) => n)) {
      if (edge.through || !reached.has(edge.to)) edges.addBoxes(node, edge.to, edge.through);
    }
  }
  return edges.all();
}

class Edges {
  constructor(boxes, nodeOf) {
    this.rows = new Map(boxes.map((one) => [one.node, new Set(one.rows)]));
    this.nodeOf = nodeOf;
    this.found = new Map();
  }

  add(from, { to, kind, through, link }) {
    const parent = this.nodeOf(from);
    const child = this.nodeOf(to);
    if (parent === child) return;
    const ends = {
      parent,
      child,
      from: this.rows.get(parent).has(from) ? from : null,
      to: this.rows.get(child).has(to) ? to : null,
    };
    this.#one(ends, kind, through, link);
  }

  addBoxes(parent, child, through) {
    if (parent !== child) this.#one({ parent, child, from: null, to: null }, 0, through, undefined);
  }

  #one(ends, kind, through, link) {
    const key = `${ends.parent} ${ends.from} ${ends.child} ${ends.to} ${kind} ${through > 0}`;
    const edge = this.found.get(key) ?? { ...ends, kind, through, links: [] };
    if (link !== undefined && link !== null) edge.links.push(link);
    edge.through = Math.min(edge.through, through);
    this.found.set(key, edge);
  }

  all() {
    return [...this.found.values()].map((edge) => ({
      ...edge,
      ...(edge.kind ? classOf(edge.kind) : { kind: "node", may: false }),
    }));
  }
}

/** What one more step up or down of each box would show, or hide. */
function grow(boxes, state, picked, up, down, above, below) {
  for (const one of boxes) {
    for (const [side, next, walked] of [
      ["up", up, above],
      ["down", down, below],
    ]) {
      const around = [...next(one.node)].filter((node) => !picked.passed.has(node));
      const hidden = around.filter((node) => !picked.drawn.has(node)).length;
      const isAsked = state[side].has(one.node);
      const canHide = around.length > hidden && (isAsked || walked.has(one.node));
      one[side] = { hidden, canHide };
    }
  }
}

/** Whether the next turn of a box's arrow hides its columns; else it shows some, or all. */
export function hidesColumns(box) {
  return box.rows.length > 0 && (box.isOpen || !box.more);
}

/** The state in which a box shows what is next to it on a side, or hides it. */
export function toggled(state, box, side) {
  const no = `no${side}`;
  const asked = new Set(state[side]);
  const refused = new Set(state[no]);
  if (box[side].hidden) {
    refused.delete(box.node);
    asked.add(box.node);
  } else if (asked.has(box.node)) {
    asked.delete(box.node);
    // Within the depth it is shown all the same: then it was meant to be hidden.
    if (box.distance < state.depth) refused.add(box.node);
  } else refused.add(box.node);
  return { ...state, [side]: asked, [no]: refused };
}
