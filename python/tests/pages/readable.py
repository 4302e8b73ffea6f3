"""What a reader of a page cannot read, measured in the real page: cut, overlapping, out of sight."""

from __future__ import annotations

from browsers import OpenPage


def unreadable(one: OpenPage, subject: str | None = None) -> list[str]:
    """What cannot be read, one line each; empty where all of it can.

    Measured are texts as they are drawn: none lies on another, none is cut by its box, its column or
    an ellipsis, no box of a picture lies on another, and the page does not scroll sideways. What is shown only
    while one points at something lies above all, and does not count.

    Args:
        one: the page, in its present state.
        subject: a selector; the first thing that it finds has to be in sight without scrolling.
    """
    found: list[str] = one.page.evaluate(_MEASURE, subject)
    return found


_MEASURE = """subject => {
  const found = [];
  const said = element => `${element.tagName.toLowerCase()} "${(element.textContent || '').trim().slice(0, 60)}"`;
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;
  const within = (r, of) => r.left >= of.left - 1.5 && r.right <= of.right + 1.5;
  const clip = element => {
    let box = {left: -1e9, right: 1e9, top: -1e9, bottom: 1e9};
    for (let up = element.parentElement; up && up !== document.documentElement; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      const r = up.getBoundingClientRect();
      box = {left: Math.max(box.left, r.left), right: Math.min(box.right, r.right),
        top: Math.max(box.top, r.top), bottom: Math.min(box.bottom, r.bottom)};
    }
    return box;
  };
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page scrolls sideways');
  // Each text by itself, in its lines.
  const texts = [];
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || element.closest('.hidden-visually, .skip, #hint, option, script, style, title')) continue;
    const own = [...element.childNodes].filter(n => n.nodeType === 3 && n.data.trim());
    if (!own.length) continue;
    const inPicture = element.namespaceURI.endsWith('svg');
    const lines = own.flatMap(node => {
      if (inPicture) return [element.getBoundingClientRect()];
      const range = document.createRange();
      range.selectNodeContents(node);
      return [...range.getClientRects()];
    }).filter(r => r.width > 1);
    const frame = clip(element);
    const scrolls = element.closest('.wide, .picture, pre, #details, #found, .welcome');
    for (const r of lines) {
      const seen = {left: Math.max(r.left, frame.left), right: Math.min(r.right, frame.right),
        top: Math.max(r.top, frame.top), bottom: Math.min(r.bottom, frame.bottom)};
      if (seen.right - seen.left < 2 || seen.bottom - seen.top < 2) continue;
      texts.push({element, r: seen});
      if (!scrolls && !inPicture && !within(r, {left: 0, right: innerWidth})) found.push(`out of the page: ${said(element)}`);
    }
    if (!inPicture) {
      for (let up = element; up && up !== document.body; up = up.parentElement) {
        const style = getComputedStyle(up);
        if (style.overflowX === 'auto' || style.overflowX === 'scroll' || style.display.startsWith('inline')) break;
        if (up.clientWidth && up.scrollWidth > up.clientWidth + 1) found.push(`wider than its box: ${said(up)}`);
        if (style.overflowY === 'hidden' && up.clientHeight && up.scrollHeight > up.clientHeight + 1) found.push(`cut below: ${said(up)}`);
        if (style.borderLeftWidth !== '0px') break;
      }
    } else {
      if (element.textContent.includes('…')) found.push(`cut: ${said(element)}`);
      const box = element.closest('.box, .group')?.querySelector('.frame')?.getBoundingClientRect();
      if (box && !lines.every(r => within(r, box))) found.push(`out of its box: ${said(element)}`);
      const svg = element.ownerSVGElement.getBoundingClientRect();
      if (!box && !lines.every(r => within(r, svg))) found.push(`out of its picture: ${said(element)}`);
    }
  }
  for (let i = 0; i < texts.length; i++) {
    for (let j = i + 1; j < texts.length; j++) {
      const [a, b] = [texts[i], texts[j]];
      if (a.element !== b.element && meet(a.r, b.r)) found.push(`on each other: ${said(a.element)} and ${said(b.element)}`);
    }
  }
  const frames = [...document.querySelectorAll('#picture .frame, .picture rect.box')].map(e => [e, e.getBoundingClientRect()]);
  frames.forEach(([a, r], i) => frames.slice(i + 1).forEach(([b, q]) => {
    if (meet(r, q)) found.push(`boxes on each other: ${said(a.parentElement)} and ${said(b.parentElement)}`);
  }));
  if (subject) {
    const r = document.querySelector(subject)?.getBoundingClientRect();
    if (!r) found.push(`there is no ${subject}`);
    else if (r.left < 0 || r.right > innerWidth || r.top < 0 || r.top > innerHeight) found.push(`out of sight: ${subject}`);
  }
  return [...new Set(found)];
}"""
