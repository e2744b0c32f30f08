// @ts-check
// Creates elements. Text is only ever inserted as text.

/** @typedef {Node | string | undefined | null | false} Child */
/** @typedef {{ [name: string]: string | number | boolean | undefined | ((event: any) => void) }} Properties `on…` listens, `true` and `false` set and leave out, `testid` is data-testid */

/**
 * Creates an HTML element.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  set(element, properties);
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

/** @param {Element} element @param {Properties} properties */
export function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === undefined || value === false) element.removeAttribute(attribute(name));
    else element.setAttribute(attribute(name), value === true ? "" : String(value));
  }
}

/** @param {string} name */
function attribute(name) {
  return name === "testid" ? "data-testid" : name;
}

/**
 * Returns the element with that id and class, which the page is sure to contain.
 *
 * @template {typeof Element} Kind
 * @param {string} id
 * @param {Kind} kind
 * @returns {InstanceType<Kind>}
 */
export function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${kind.name} with the id ${id}`);
  return /** @type {InstanceType<Kind>} */ (element);
}

/** Renders text with `code` in it. @param {string} text @returns {(Node | string)[]} */
export function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, index) => (index % 2 === 1 ? h("code", {}, part) : part));
}
