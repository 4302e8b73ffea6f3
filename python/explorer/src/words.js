// What things are called in the page.

/** What a change does to a node, the worst first. */
export const STATES = ["broken", "changed", "added", "removed", "impacted", "stopped"];

const STATE_WORDS = {
  added: "added",
  changed: "changed",
  impacted: "impacted",
  broken: "broken",
  stopped: "stopped here",
  removed: "removed",
};

export const EDGE_WORDS = {
  value: "value: it goes from column to column",
  decides: "decides: it is in a condition, an order or a window of the other",
  rows: "rows: which rows there are",
  may: "may read: possible, and not known",
  node: "one node reads the other",
  through: "the way leads through nodes that the filters hide",
};

export const MARK_WORDS = {
  bar: "how many nodes, beside the largest group",
  opaque: "not followed: every column may depend on all that it reads",
};

export const TYPE_WORDS = {
  model: "model",
  source: "source",
  seed: "seed",
  snapshot: "snapshot",
  exposure: "exposure",
  metric: "metric",
  semantic_model: "semantic model",
  saved_query: "saved query",
  asset: "asset",
  relation: "undeclared table",
};

export function stateWord(state) {
  return STATE_WORDS[state] ?? state;
}

export function typeWord(node) {
  const word = TYPE_WORDS[node.resource_type] ?? node.resource_type.replaceAll("_", " ");
  return node.resource_type === "asset" && node.asset_type ? `asset: ${node.asset_type.toLowerCase().replaceAll("_", " ")}` : word;
}

/** What is not known of a node, in a word; null where it was followed. */
export function statusWord(node) {
  if (node.status === "opaque") return "not followed";
  return node.status === "broken" ? "broken" : null;
}
