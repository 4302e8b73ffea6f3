// Where boxes and edges are, from left to right: dagre places the boxes, edges run from row to row.

import dagre from "@dagrejs/dagre";

export const WIDTH = 232;
export const HEAD = 44;
export const ROW = 20;
const FOOT = 6;

export function heightOf(box) {
  return HEAD + (box.rows.length ? box.rows.length * ROW + FOOT : 0) + (box.more && box.rows.length ? ROW - 4 : 0);
}

/** Gives each box `x`, `y`, `width`, `height`, and each edge its `path`; returns the size of the whole. */
export function layOut(view) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 22, ranksep: 76, marginx: 28, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of view.boxes) {
    graph.setNode(String(box.node), { width: WIDTH, height: heightOf(box) });
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
    const from = port(places.get(edge.parent), edge.from, 1);
    const to = port(places.get(edge.child), edge.to, 0);
    edge.path = curve([from, ...between(graph, edge), to]);
  }
  const { width = 0, height = 0 } = graph.graph();
  return { width: finite(width), height: finite(height) };
}

/** Where an edge over several ranks passes between the boxes; one to the next rank needs no such place. */
function between(graph, edge) {
  const points = graph.edge(String(edge.parent), String(edge.child))?.points ?? [];
  if (points.length <= 3) return [];
  // Every second point stands in a rank; it stays level as long as boxes may stand beside it.
  return points
    .slice(1, -1)
    .filter((_, i) => i % 2 === 1)
    .flatMap(({ x, y }) => [{ x: x - WIDTH / 2, y }, { x: x + WIDTH / 2, y, level: true }]);
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
  return { x, y: row < 0 ? box.y + HEAD / 2 : box.y + HEAD + ROW * (row + 0.5) };
}
