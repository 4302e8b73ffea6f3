// Texts and lines of the picture, which other parts of the page use, too.

import { widthOf } from "./text.js";

export const NAME = "600 13px system-ui, sans-serif";
export const SMALL = "11px system-ui, sans-serif";

const SVG = "http://www.w3.org/2000/svg";

/** A text in a group of the picture. */
export function put(parent, name, x, y, content) {
  return parent.append("text").attr("class", name).attr("x", x).attr("y", y).text(content);
}

/** As many of the marks as fit whole, the first ones first. */
export function fittingMarks(marks, width) {
  let line = "";
  for (const mark of marks) {
    const longer = line ? `${line} · ${mark}` : mark;
    if (line && widthOf(longer, SMALL) > width) break;
    line = longer;
  }
  return line;
}

/** A piece of an edge as the picture draws it, for legends and lists. */
export function sample(kind, label = null) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "sample");
  svg.setAttribute("viewBox", "0 0 34 8");
  if (label === null) svg.setAttribute("aria-hidden", "true");
  else {
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
  }
  const group = document.createElementNS(SVG, "g");
  group.setAttribute("class", `edge ${kind}`);
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("class", "line");
  line.setAttribute("d", "M1,4H33");
  group.append(line);
  svg.append(group);
  return svg;
}
