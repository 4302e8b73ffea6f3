// What is selected, as the part of the address behind the #: every view has a link.

import { ROWS } from "./data.js";
import { STATES } from "./words.js";

export const EDGES = ["value", "decides", "rows", "may"];
const WAYS = ["upstream", "downstream", "both"];
const NODE_SETS = ["columns", "nocolumns", "up", "down", "noup", "nodown"];
const FILTERS = ["type", "layer", "tag", "owner"];
export const DEPTHS = [1, 2, 3, 5, 10];
export const LIMIT = 100;

/** The view of a fresh page. */
export function initial(project) {
  return {
    node: null,
    column: null,
    group: null,
    change: false,
    way: "both",
    depth: 2,
    limit: LIMIT,
    edges: new Set(EDGES),
    states: new Set(STATES),
    ...Object.fromEntries(NODE_SETS.map((name) => [name, new Set()])),
    ...Object.fromEntries(FILTERS.map((name) => [name, new Set()])),
    missing: null,
    ...(project.compare ? { change: true } : {}),
  };
}

export function parse(hash, project) {
  const state = initial(project);
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const id = given.get("node");
  if (id !== null) {
    state.change = false;
    state.node = project.byId.get(id) ?? null;
    if (state.node === null) state.missing = id;
    const column = given.get("column");
    if (state.node !== null && column !== null) {
      if (project.vertexOf(state.node, column) === undefined) state.missing = `${id}.${column}`;
      else state.column = column;
    }
  } else if (given.get("view") === "project") {
    state.change = false;
  }
  if (state.node === null) state.group = given.get("group");
  if (WAYS.includes(given.get("direction"))) state.way = given.get("direction");
  const depth = given.get("depth");
  if (depth === "all") state.depth = Infinity;
  else if (/^\d{1,4}$/.test(depth ?? "")) state.depth = Number(depth);
  if (/^\d{1,6}$/.test(given.get("limit") ?? "")) state.limit = Math.max(1, Number(given.get("limit")));
  for (const name of FILTERS) state[name] = new Set(given.getAll(name));
  for (const name of NODE_SETS) {
    const known = given.getAll(name).map((one) => project.byId.get(one));
    state[name] = new Set(known.filter((node) => node !== undefined));
  }
  if (given.has("edges")) state.edges = chosen(given.get("edges"), EDGES);
  if (given.has("states")) state.states = chosen(given.get("states"), STATES);
  return state;
}

function chosen(text, known) {
  const asked = new Set(text.split(","));
  return new Set(known.filter((name) => asked.has(name)));
}

export function format(state, project) {
  const hash = new URLSearchParams();
  if (state.node !== null) hash.set("node", project.nodes[state.node].unique_id);
  else if (project.compare && !state.change) hash.set("view", "project");
  if (state.node !== null && state.column !== null) hash.set("column", state.column);
  if (state.node === null && state.group !== null) hash.set("group", state.group);
  if (state.way !== "both") hash.set("direction", state.way);
  if (state.depth !== 2) hash.set("depth", state.depth === Infinity ? "all" : String(state.depth));
  if (state.limit !== LIMIT) hash.set("limit", String(state.limit));
  for (const name of FILTERS) for (const value of state[name]) hash.append(name, value);
  for (const name of NODE_SETS) {
    for (const node of state[name]) hash.append(name, project.nodes[node].unique_id);
  }
  if (state.edges.size < EDGES.length) hash.set("edges", [...state.edges].join(","));
  if (state.states.size < STATES.length) hash.set("states", [...state.states].join(","));
  return hash.toString();
}

/** Whether the filters leave a node in. */
export function acceptor(state, project) {
  const { type, layer, tag, owner } = state;
  if (!type.size && !layer.size && !tag.size && !owner.size) return () => true;
  return (index) => {
    const node = project.nodes[index];
    return (
      (!type.size || type.has(node.resource_type)) &&
      (!layer.size || layer.has(node.layer)) &&
      (!tag.size || (node.tags ?? []).some((one) => tag.has(one))) &&
      (!owner.size || owner.has(node.owner ?? ""))
    );
  };
}

export function isFiltered(state) {
  return FILTERS.some((name) => state[name].size > 0);
}

export { FILTERS, ROWS, STATES };
