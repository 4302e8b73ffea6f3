// The picture as a file: SVG with its colours in it, PNG of that, or a Mermaid flowchart.

import { count, mermaidText, shown } from "./text.js";
import { stateWord, typeWord } from "./words.js";

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "stroke-linecap",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-decoration-line",
  "visibility",
];
const MOST_PIXELS = 16_000_000;

/** The picture as a document of its own. */
export function asSvg(picture, title) {
  const source = picture.svg.node();
  const { width, height } = picture.size;
  const copy = source.cloneNode(true);
  const pairs = [...source.querySelectorAll("*")].map((one, i) => [one, i]);
  const copies = copy.querySelectorAll("*");
  for (const [element, i] of pairs) {
    const style = getComputedStyle(element);
    const target = copies[i];
    for (const name of STYLES) target.setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role", "data-key", "aria-expanded"]) target.removeAttribute(name);
  }
  for (const one of [...copy.querySelectorAll("[visibility=hidden]")]) one.remove();
  copy.querySelector("g").removeAttribute("transform");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (const name of ["class", "id", "tabindex", "aria-describedby", "style"]) copy.removeAttribute(name);
  copy.setAttribute("role", "img");
  copy.setAttribute("aria-label", title);
  const ground = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  ground.setAttribute("width", width);
  ground.setAttribute("height", height);
  ground.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

export async function asPng(picture, title) {
  const svg = asSvg(picture, title);
  const { width, height } = picture.size;
  const scale = Math.min(2, Math.sqrt(MOST_PIXELS / (width * height)));
  const image = new Image();
  const address = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    await new Promise((done, failed) => {
      image.onload = done;
      image.onerror = () => failed(new Error("the picture could not be drawn"));
      image.src = address;
    });
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(width * scale);
    canvas.height = Math.ceil(height * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, failed) =>
      canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("the picture is too large"))), "image/png"),
    );
  } finally {
    URL.revokeObjectURL(address);
  }
}

/** The picture as a Mermaid flowchart: a box is a node with the columns that are shown of it. */
export function asMermaid(project, view) {
  const lines = ["flowchart LR"];
  const vertices = new Set();
  const boxes = new Set();
  for (const edge of view.edges) {
    for (const [node, vertex] of [[edge.parent, edge.from], [edge.child, edge.to]]) {
      if (vertex === null) boxes.add(node);
      else vertices.add(vertex);
    }
  }
  const states = new Set();
  for (const box of view.boxes) {
    if (box.key !== undefined) {
      lines.push(`  n${box.node}["${mermaidText(`${box.label}: ${count(box.nodes.length, "node")}`)}"]`);
      continue;
    }
    const node = project.nodes[box.node];
    const state = project.state(box.node);
    const label = `${mermaidText(typeWord(node))}<br/>${mermaidText(node.name)}${state ? `<br/>${stateWord(state.state)}` : ""}`;
    const style = state ? `:::${state.state}` : "";
    if (state) states.add(state.state);
    const rows = box.rows.filter((vertex) => vertices.has(vertex) || view.root === vertex);
    if (!rows.length) {
      lines.push(`  n${box.node}["${label}"]${style}`);
      continue;
    }
    lines.push(`  subgraph g${box.node}["${label}"]`);
    if (boxes.has(box.node)) lines.push(`    n${box.node}["..."]`);
    for (const vertex of rows) {
      const name = project.isRows(vertex) ? "(rows)" : project.columnName(vertex);
      lines.push(`    v${vertex}["${mermaidText(name)}"]`);
    }
    lines.push("  end");
    if (state) lines.push(`  class g${box.node} ${state.state}`);
  }
  for (const edge of view.edges) {
    const from = edge.from === null ? `n${edge.parent}` : `v${edge.from}`;
    const to = edge.to === null ? `n${edge.child}` : `v${edge.to}`;
    const dashed = edge.may || edge.kind === "decides" || edge.kind === "rows";
    const kinds = [...new Set(edge.links.flatMap((link) => project.kindsOf(link)))];
    lines.push(`  ${from} ${dashed ? "-.->" : "-->"}${kinds.length ? `|"${kinds.map(mermaidText).join("<br/>")}"|` : ""} ${to}`);
  }
  if (view.root !== null) lines.push(`  style v${view.root} stroke-width:4px`);
  const fills = {
    added: "fill:#d1e7dd,stroke:#146c43,color:#0a3622",
    changed: "fill:#cfe2ff,stroke:#084298,color:#052c65",
    impacted: "fill:#fff3cd,stroke:#997404,color:#332701",
    broken: "fill:#f8d7da,stroke:#b02a37,color:#58151c",
    stopped: "fill:#e2e3e5,stroke:#6c757d,color:#2b2f32",
    removed: "fill:#f8d7da,stroke:#b02a37,color:#58151c,stroke-dasharray:4",
  };
  for (const state of states) lines.push(`  classDef ${state} ${fills[state]}`);
  return `${lines.join("\n")}\n`;
}

/** Hand a file to the reader; its name has no character that a file system minds. */
export function save(content, type, name, extension) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = `${shown(name).replace(/[^\p{L}\p{N}_-]+/gu, "_").slice(0, 80) || "lineage"}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
