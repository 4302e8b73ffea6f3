// Elements without markup: text is always text.

/** An element with attributes, listeners (`onclick`) and children; what is null or false is left out. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
}

const LONGEST_NAME = 200;

/** A name that cannot turn the text around it, and is broken, where it has to be, between its words. */
export function bdi(text) {
  if (typeof text !== "string" || text.length > LONGEST_NAME) return h("bdi", {}, text);
  return h("bdi", {}, text.split(/(?<=[_./])(?=[^_./])/).flatMap((part, i) => (i ? [h("wbr"), part] : [part])));
}
