// @ts-check
// What is drawn anew while a run plays, for somebody who is in the middle of it: who was at a button, in a list or at a
// place of a text is there again, and what was opened stays open.

/** Where an element stands: from outside to inside, its tag, its classes, and the how many-th of its kind it is. @typedef {{ key?: string | undefined, tag: string, looks: string, at: number }[]} Place */

/**
 * Draws what is inside an element, and puts back what a person has done there.
 * @param {HTMLElement} container @param {() => void} draw
 */
export function keeping(container, draw) {
  const root = /** @type {ShadowRoot} */ (container.getRootNode());
  const active = /** @type {HTMLElement | null} */ (root.activeElement ?? null);
  const focused = active && active !== container && container.contains(active) ? active : undefined;
  const place = focused && placeOf(focused, container);
  const { scrollTop, scrollLeft } = container;
  const opened = [...container.querySelectorAll("details, [data-all]")].map((element) => ({ element, place: placeOf(element, container) }));
  draw();
  for (const { element, place } of opened) if (!element.isConnected) reopen(find(container, place, true), element);
  Object.assign(container, { scrollTop, scrollLeft });
  // A node that was only moved has lost the focus too.
  if (!focused || !place || root.activeElement === focused) return;
  const again = focused.isConnected ? focused : /** @type {HTMLElement | undefined} */ (find(container, place, false));
  // A text that was shown whole has the focus only because its button had it.
  if (focused.getAttribute("tabindex") === "-1") again?.setAttribute("tabindex", "-1");
  const nearest = again?.matches("button, summary, a, input, [tabindex]") ? again : again?.querySelector("button, summary") ?? container;
  /** @type {HTMLElement} */ (nearest).focus({ preventScroll: true });
}

/** @param {Element | undefined} made @param {Element} before */
function reopen(made, before) {
  if (!made) return;
  if (before.matches("details")) made.toggleAttribute("open", before.hasAttribute("open"));
  else made.querySelector(":scope > button.more")?.dispatchEvent(new Event("all"));
}

/** @param {Element} element @param {Element} container @returns {Place} */
function placeOf(element, container) {
  /** @type {Place} */
  const place = [];
  for (let one = element; one !== container; one = /** @type {Element} */ (one.parentElement)) {
    const alike = [.../** @type {Element} */ (one.parentElement).children].filter(({ tagName }) => tagName === one.tagName);
    place.unshift({ key: keyOf(one), tag: one.tagName, looks: one.className, at: alike.indexOf(one) });
  }
  return place;
}

/** Rows are known by their number, wherever they stand. @param {Element} element */
const keyOf = (element) => element.id || element.getAttribute("aria-rowindex") || undefined;

/** What stands there now. @param {Element} container @param {Place} place @param {boolean} isSame whether it must look the same @returns {Element | undefined} */
function find(container, place, isSame) {
  let found = /** @type {Element | undefined} */ (container);
  for (const { key, tag, looks, at } of place) {
    /** @type {Element[]} */
    const alike = [...(found?.children ?? [])].filter(({ tagName }) => tagName === tag);
    found = key === undefined ? alike[at] : alike.find((one) => keyOf(one) === key);
    if (!found || (isSame && found.className !== looks)) return undefined;
  }
  return found;
}
