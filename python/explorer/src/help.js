// What explains the page: the legend of what is drawn, and the list of keys.

import { h } from "./dom.js";
import { sample } from "./svg.js";
import { EDGE_WORDS, MARK_WORDS } from "./words.js";

/** The entries of what a view draws, as it draws it. */
export function legendOf({ mode, edges, boxes }, project, isChange) {
  const drawn = new Set(edges.flatMap((edge) => [edge.may ? "may" : edge.kind, edge.through ? "through" : edge.kind]));
  const isGrouped = mode === "groups";
  const words = isGrouped ? { node: "nodes of one group read nodes of the other; the wider, the more do" } : EDGE_WORDS;
  const marks = isGrouped ? ["bar"] : [];
  if (!isGrouped && boxes.some((box) => project.nodes[box.node].status === "opaque")) marks.push("opaque");
  return [
    ...Object.keys(words).filter((name) => drawn.has(name)).map((name) => h("li", {}, sample(name), " ", words[name])),
    ...marks.map((name) => h("li", {}, h("span", { class: `mark ${name}${isChange ? " state-changed" : ""}` }), " ", MARK_WORDS[name])),
  ];
}

/** The list of keys, to be shown as a dialog. */
export function helpDialog() {
  const keys = [
    ["/", "search"],
    ["Tab", "to the picture and on"],
    ["← →", "along an edge"],
    ["↑ ↓", "through the columns of a box, and to the next box"],
    ["Enter", "open a group; select a node or a column"],
    ["u, d", "one step more upstream, downstream; again hides it"],
    ["c", "columns of the box"],
    ["f, + , −", "fit, larger, smaller"],
    ["Home", "back to the selection"],
    ["Esc", "close what is open; leave the selection"],
    ["?", "this list"],
  ];
  const dialog = h("dialog", { "aria-labelledby": "keys-title" });
  dialog.append(h("h2", { id: "keys-title" }, "Keys"), h("dl", { class: "keys" }, keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])), h("button", { type: "button", onclick: () => dialog.close() }, "Close"));
  return dialog;
}
