// @ts-check
// Long texts in the SQLite database of a Durable Object.

/** SQLite values there are limited to 2 MB, and a UTF-16 unit takes at most three bytes. */
export const MAX_PART_LENGTH = 600_000;

/** No part ends inside a surrogate pair. @param {string} json */
export function partsOf(json) {
  const parts = [];
  for (let at = 0; at < json.length; ) {
    let end = at + MAX_PART_LENGTH;
    if (/[\ud800-\udbff]/.test(json.charAt(end - 1))) end -= 1;
    parts.push(json.slice(at, end));
    at = end;
  }
  return parts;
}
