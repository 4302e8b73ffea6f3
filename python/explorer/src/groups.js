// The project, or a change to it, in groups: its layers (or folders, where there are few layers), each a box
// with its folders or nodes as rows.

import { acceptor } from "./state.js";
import { STATES } from "./words.js";

const LISTED = 6;
const LISTED_IN_NARROW = 3;
const LISTED_OF_OPEN = 24;
const MOST = 12;
const FEW = 3;

/**
 * What is to be drawn: `boxes` in the order of the flow, and `edges` between them with the number of
 * nodes that read on, `reads`. Null where the filters leave nothing.
 *
 * A box has a `key`, a `label`, its `nodes` (those that matter most first), and `rows`: of a folder
 * (`key`, `label`, `nodes`) or of a node (`node`); `more` is how many rows are left out. The group that
 * the state names is open: it has more rows, and a folder stands beside its layer as a box of its own.
 */
export function groupsView(project, state, narrow) {
  const states = state.change ? project.compare?.states : null;
  const accepts = acceptor(state, project);
  const isIn = (node) => accepts(node) && (!states || state.states.has(states.get(node)?.state));
  const layers = new Map();
  for (const { index } of project.nodes) {
    if (isIn(index)) add(layers, project.nodes[index].layer, index);
  }
  if (!layers.size) return null;
  // A change in one layer shows how it goes through the folders of it.
  const parts = layers.size < FEW ? folders([...layers.values()].flat(), project) : layers;
  const order = rankOf(project, states);
  const boxes = [];
  for (const { key, label, nodes } of most(parts)) {
    const within = folders(nodes, project);
    const own = key === state.group ? undefined : within.get(state.group);
    if (own) {
      within.delete(state.group);
      boxes.push(group(state.group, state.group, own, new Map(), true, { order, narrow }));
      if (!within.size) continue;
    }
    const rest = own ? [...within.values()].flat() : nodes;
    const name = own ? `${label}, the rest` : label;
    boxes.push(group(key, name, rest, states ? new Map() : within, key === state.group, { order, narrow }));
  }
  const depth = depthOfLayers(project);
  const mean = ({ nodes }) => nodes.reduce((sum, node) => sum + depth.get(project.nodes[node].layer), 0) / nodes.length;
  boxes.sort((a, b) => mean(a) - mean(b) || (a.key < b.key ? -1 : 1));
  boxes.forEach((box, i) => Object.assign(box, { node: `g${i}` }));
  return { boxes, edges: edgesOf(project, states, boxes), root: null, mode: "groups", filtered: 0, beyond: 0 };
}

/** What a change does to a node, as a number: 0 is the worst. */
export function severity(project, node) {
  return STATES.indexOf(project.state(node)?.state);
}

function add(map, key, value) {
  if (map.has(key)) map.get(key).push(value);
  else map.set(key, [value]);
}

/** The order of nodes in a list: by what a change does to them, then by how many nodes are below them. */
function rankOf(project, states) {
  const { nodes } = project;
  return (a, b) =>
    (states ? severity(project, a) - severity(project, b) : 0) ||
    nodes[b].blast_radius - nodes[a].blast_radius ||
    (nodes[a].name < nodes[b].name ? -1 : 1);
}

/** How deep in the project a layer is: the mean of all its nodes, so that it is the same in every view. */
function depthOfLayers(project) {
  const depths = project.depths();
  const of = new Map();
  for (const { index, layer } of project.nodes) add(of, layer, depths[index]);
  return new Map([...of].map(([layer, all]) => [layer, all.reduce((a, b) => a + b, 0) / all.length]));
}

/** The largest parts; of more than can be told apart the small ones are one group. */
function most(parts) {
  const sorted = [...parts].sort(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1));
  const boxes = sorted.map(([key, nodes]) => ({ key, label: key.replace(/[/]$/, ""), nodes }));
  if (boxes.length <= MOST) return boxes;
  const small = boxes.splice(MOST - 1);
  const nodes = small.flatMap((one) => one.nodes);
  return [...boxes, { key: "*", label: `${small.length} smaller groups`, nodes }];
}

function folders(nodes, project) {
  const found = new Map();
  for (const node of nodes) add(found, folderKey(project.nodes[node]), node);
  return found;
}

/** The layer and the folder in it: staging/stripe, or staging/ of what is in none. A source's folder is what it is a table of. */
function folderKey(node) {
  if (node.resource_type === "source") return `${node.layer}/${node.unique_id.split(".")[2] ?? ""}`;
  const folders = (node.path ?? "").split("/").slice(0, -1);
  const at = folders.indexOf(node.layer);
  return `${node.layer}/${folders.slice(at < 0 ? 1 : at + 1).join("/")}`;
}

function group(key, label, nodes, within, isOpen, { order, narrow }) {
  const ranked = [...nodes].sort(order);
  const ofNodes = ranked.map((node) => ({ node }));
  const ofFolders = [...within]
    .map(([folder, own]) => ({ key: folder, label: folder.slice(folder.indexOf("/") + 1) || "in no folder", nodes: own }))
    .sort((a, b) => b.nodes.length - a.nodes.length || (a.key < b.key ? -1 : 1));
  const all = within.size > 1 && nodes.length > LISTED ? ofFolders : ofNodes;
  const listed = isOpen ? LISTED_OF_OPEN : narrow ? LISTED_IN_NARROW : LISTED;
  // One that is left out takes as much room as its name.
  const rows = all.slice(0, all.length === listed + 1 ? listed + 1 : listed);
  return { key, label, nodes: ranked, rows, more: all.length - rows.length, isOpen: Boolean(isOpen) };
}

/** One edge between two groups, from the one that stands before: how many nodes read over it. */
function edgesOf(project, states, boxes) {
  const groupOf = new Map();
  boxes.forEach(({ nodes }, i) => nodes.forEach((node) => groupOf.set(node, i)));
  const found = new Map();
  for (const [child, to] of groupOf) {
    for (const parent of project.parents[child]) {
      const from = groupOf.get(parent);
      if (from === undefined || from === to || states?.get(parent)?.state === "stopped") continue;
      const key = `${Math.min(from, to)} ${Math.max(from, to)}`;
      const edge = found.get(key) ?? { ahead: 0, back: 0 };
      edge[from < to ? "ahead" : "back"]++;
      found.set(key, edge);
    }
  }
  return [...found].map(([key, { ahead, back }]) => {
    const [parent, child] = key.split(" ").map((i) => `g${i}`);
    return { parent, child, from: null, to: null, kind: "node", may: false, through: 0, links: [], reads: ahead + back, ahead, back };
  });
}
