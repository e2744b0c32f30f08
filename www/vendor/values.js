// @ts-check
// How the validator compares and measures values of JSON, in place of its own ways, which are longer.

/** @param {any} a @param {any} b @returns {boolean} */
export function deepCompareStrict(a, b) {
  if (Object(a) !== a || Object(b) !== b) return a === b;
  const keys = Object.keys(a);
  const isAlike = Array.isArray(a) === Array.isArray(b) && keys.length === Object.keys(b).length;
  return isAlike && keys.every((key) => Object.hasOwn(b, key) && deepCompareStrict(a[key], b[key]));
}

/** The characters of a text: two halves are one. @param {string} text */
export function ucs2length(text) {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g) ?? []).length;
}
