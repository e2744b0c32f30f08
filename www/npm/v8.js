// @ts-check
// Arrays.

/**
 * Returns an empty array for objects and strings. To V8 `[]` is an array of small integers until something
 * else is put into it, and all code compiled for such arrays is then discarded.
 * @returns {any[]}
 */
export function emptyList() {
  const list = [undefined];
  list.pop();
  return list;
}
