// Where boxes and edges are: from left to right dagre places the boxes, and edges run from row to row;
// in a narrow window boxes stand below each other, and edges beside them.

import dagre from "@dagrejs/dagre";

export const ROW = 20;
const FOOT = 6;
/** Beside and between boxes that stand below each other. */
const ASIDE = 56;
const GAP = 14;

/** How high the rows of a box are, up to one of them; of a group some have several lines. */
export function rowsTo(box, end = box.rows.length) {
  return box.rows.slice(0, end).reduce((sum, row) => sum + (row.height ?? ROW), 0);
}

/** How high a box is: its head, its rows, and the line that says how many are left out. */
export function heightOf(box) {
  const rows = rowsTo(box);
  return box.head + (rows ? rows + FOOT : 0) + (box.more && rows ? ROW - 4 : 0);
}

/**
 * Gives each box `x`, `y`, `width`, `height`, and each edge its `path`; returns the size of the whole.
 *
 * Boxes have their `head` and `rows`, and are as wide as the view says.
 */
export function layOut(view) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 22, ranksep: view.mode === "change" ? 56 : 76, marginx: 28, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of view.boxes) {
    graph.setNode(String(box.node), { width: view.width, height: heightOf(box) });
  }
  for (const edge of view.edges) graph.setEdge(String(edge.parent), String(edge.child));
  dagre.layout(graph);
  const places = new Map();
  for (const box of view.boxes) {
    const { x, y, width, height } = graph.node(String(box.node));
    Object.assign(box, { x: x - width / 2, y: y - height / 2, width, height });
    places.set(box.node, box);
  }
  for (const edge of view.edges) {
    const passed = graph.edge(String(edge.parent), String(edge.child))?.points ?? [];
    const [from, to] = [port(places.get(edge.parent), edge.from, 1), port(places.get(edge.child), edge.to, 0)];
    edge.path = curve([from, ...levels(passed, view.width), to]);
  }
  const { width = 0, height = 0 } = graph.graph();
  return { width: finite(width), height: finite(height) };
}

/** The same with the boxes below each other, in their order; edges go from box to box. */
export function stack(view) {
  let y = GAP;
  const places = new Map();
  view.boxes.forEach((box, place) => {
    Object.assign(box, { x: ASIDE, y, width: view.width, height: heightOf(box), place });
    places.set(box.node, box);
    y += box.height + GAP;
  });
  const distance = ({ parent, child }) => Math.abs(places.get(child).place - places.get(parent).place);
  const farthest = Math.max(1, ...view.edges.map(distance));
  for (const edge of view.edges) {
    const [from, to] = [edge.parent, edge.child].map((node) => places.get(node).y + places.get(node).head / 2);
    // The farther, the wider the bow, so that one does not lie on the other.
    const x = round(ASIDE - (distance(edge) / farthest) * (ASIDE - 6) * (4 / 3));
    edge.path = `M${ASIDE},${round(from)}C${x},${round(from)} ${x},${round(to)} ${ASIDE},${round(to)}`;
  }
  return { width: ASIDE + view.width + GAP, height: y };
}

/** Where an edge over several ranks passes between the boxes; one to the next rank needs no such place. */
function levels(points, width) {
  if (points.length <= 3) return [];
  // Every second point stands in a rank; it stays level as long as boxes may stand beside it.
  return points
    .slice(1, -1)
    .filter((_, i) => i % 2 === 1)
    .flatMap(({ x, y }) => [{ x: x - width / 2, y }, { x: x + width / 2, y, level: true }]);
}

function curve(points) {
  let path = `M${round(points[0].x)},${round(points[0].y)}`;
  for (let i = 1; i < points.length; i++) {
    const [a, b] = [points[i - 1], points[i]];
    if (b.level) {
      path += `L${round(b.x)},${round(b.y)}`;
      continue;
    }
    const bend = Math.max(30, Math.abs(b.x - a.x) / 2);
    path += `C${round(a.x + bend)},${round(a.y)} ${round(b.x - bend)},${round(b.y)} ${round(b.x)},${round(b.y)}`;
  }
  return path;
}

function round(number) {
  return Math.round(number * 10) / 10;
}

function finite(number) {
  return Number.isFinite(number) ? number : 0;
}

function port(box, vertex, side) {
  const x = box.x + side * box.width;
  const row = vertex === null ? -1 : box.rows.indexOf(vertex);
  return { x, y: row < 0 ? box.y + box.head / 2 : box.y + box.head + ROW * (row + 0.5) };
}
