// @ts-check
// Creates elements. Text is only ever inserted as text.

/** @typedef {Node | string | undefined | null | false} Child */
/** @typedef {{ [name: string]: string | number | boolean | undefined | null | ((event: any) => void) }} Properties `on…` listens; `true` and `false` set an attribute and leave it out */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag @param {Properties} [properties] @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false && value !== null) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== undefined && child !== null && child !== false)));
  return element;
}

/** Shows a text, touching the page only if it is another one. @param {Node} node @param {string} text */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Shows these children, touching the page only where they differ. @param {Element} parent @param {readonly Node[]} children */
export function fill(parent, children) {
  const wanted = new Set(children);
  for (const child of [...parent.childNodes]) if (!wanted.has(child)) child.remove();
  children.forEach((child, index) => {
    if (parent.childNodes[index] !== child) parent.insertBefore(child, parent.childNodes[index] ?? null);
  });
}

/**
 * A text that may be too long to draw at once: its beginning or its end, and a button that shows all of it.
 * @param {string} text @param {{ most?: number, isEnd?: boolean, tag?: "pre" | "p" | "div" }} [options]
 */
export function longText(text, { most = 4000, isEnd = false, tag = "p" } = {}) {
  const part = text.length <= most ? text : isEnd ? `…${text.slice(-most)}` : `${text.slice(0, most)}…`;
  const shown = h(tag, { class: "long" }, part);
  if (text.length <= most) return shown;
  const button = h("button", { type: "button", class: "more", onall: () => {
    say(shown, text);
    whole.dataset["all"] = "";
    button.remove();
  }, onclick: () => {
    // Whoever came here by the keyboard goes on from here.
    Object.assign(shown, { tabIndex: -1 }).focus({ preventScroll: true });
    button.dispatchEvent(new Event("all"));
  } }, `Show all ${text.length.toLocaleString("en")} characters`);
  const whole = h("div", {}, shown, button);
  return whole;
}
