// @ts-check
// JSON from somebody who may mean harm. Values nested without end overflow the stack of whoever walks through them later,
// and a member named `__proto__` changes an object that it is copied into.

/** Far more than any schema or answer has. */
const MAX_DEPTH = 200;

/**
 * Parses JSON. Throws if it is nested too deep; calls `onProto` with every object that has a member `__proto__`, which
 * is removed unless that throws.
 * @param {string} text @param {() => void} [onProto] @returns {any}
 */
export function parseJson(text, onProto) {
  const value = JSON.parse(text);
  check(value, 0, onProto);
  return value;
}

/** @param {unknown} value @param {number} depth @param {(() => void) | undefined} onProto */
function check(value, depth, onProto) {
  if (typeof value !== "object" || value === null) return;
  if (depth > MAX_DEPTH) throw new Error(`the JSON is nested more than ${MAX_DEPTH} deep`);
  if (Array.isArray(value)) {
    for (const item of value) check(item, depth + 1, onProto);
    return;
  }
  if (Object.hasOwn(value, "__proto__")) {
    onProto?.();
    Reflect.deleteProperty(value, "__proto__");
  }
  for (const item of Object.values(value)) check(item, depth + 1, onProto);
}
