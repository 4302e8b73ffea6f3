// Names of a project may hold anything: here they become text that shows what it is.

// Characters that nobody sees, or that turn the text around them: written out as \u{...}. Joiners stay,
// which emoji are made with.
const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e01ef}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

const SHORT = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** One line of text with everything that is not seen written out. */
export function shown(text) {
  return String(text).replace(
    UNSEEN,
    (char) => SHORT[char] ?? `\\u{${char.codePointAt(0).toString(16)}}`,
  );
}

/** The same for text of several lines, as SQL and descriptions are. */
export function shownLines(text) {
  return String(text).split(/\r?\n/).map((line) => shown(line.replaceAll("\t", "    "))).join("\n");
}

let context;

/** How wide a line of text is, in pixels. */
export function widthOf(line, font) {
  context ??= document.createElement("canvas").getContext("2d");
  context.font = font;
  return context.measureText(line).width;
}

/** A text as it fits into a width in pixels: its beginning, an ellipsis and its end. */
export function fitted(text, width, font) {
  const whole = shown(text);
  const fits = (candidate) => widthOf(candidate, font) <= width;
  const chars = [...whole.slice(0, 400)];
  if (chars.length === [...whole].length && fits(whole)) return whole;
  const tail = [...whole.slice(-80)];
  let low = 1;
  let high = chars.length;
  const cut = (n) =>
    `${chars.slice(0, Math.ceil(n * 0.65)).join("")}…${tail.slice(-Math.max(1, Math.floor(n * 0.35))).join("")}`;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (fits(cut(middle))) low = middle;
    else high = middle - 1;
  }
  return cut(low);
}

/** A name in lines of a width, broken behind `_`, `.`, `/` and blanks; what is left over the last line is cut. */
export function inLines(text, width, font, most = 3) {
  const lines = [];
  let line = "";
  const parts = shown(text).slice(0, 400).match(/[^_./ -]*[_./ -]+|[^_./ -]+/g) ?? [""];
  for (const [i, part] of parts.entries()) {
    if (line && widthOf((line + part).trimEnd(), font) > width) {
      if (lines.length === most - 1) {
        line += parts.slice(i).join("");
        break;
      }
      lines.push(line);
      line = "";
    }
    line += part;
  }
  return [...lines, line].map((one) => fitted(one, width, font));
}

/** Text that means nothing to Mermaid, inside quotes. */
export function mermaidText(text) {
  return [...shown(text)]
    .map((char) => (/[\p{L}\p{N} _.,:()/-]/u.test(char) ? char : `#${char.codePointAt(0)};`))
    .join("");
}

/** A number and what is counted, of which there may be one: 1 query, 2 queries. */
export function count(number, one, many = one.endsWith("y") ? `${one.slice(0, -1)}ies` : `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
