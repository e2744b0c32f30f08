// @ts-check
// Lists.

/**
 * An empty list for objects and texts. `[]` is one of small integers to V8 until something else comes into it: whatever was compiled for
 * such lists is thrown away then.
 * @returns {any[]}
 */
export function emptyList() {
  const list = [undefined];
  list.pop();
  return list;
}
