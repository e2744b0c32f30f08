// @ts-check
// What is written in an odd way because of how V8 compiles. In a short run, compiling costs more than anything
// else; docs/internals/boundary.md says what it saved, and what else follows from it:
//
// - A class sets all its fields in its constructor, so that its objects have one shape.
// - The entries of a batch have a table of small functions, not one large one (run/entries.js): V8 compiles a
//   function with everything that it inlines.
// - Methods of the host's objects are called by `.call`, and what looks into such objects is called by a promise
//   (effects/http.js): V8 throws code away when a guess about a shape fails, or when the shape is gone.

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

/** @type {object[]} */
const kept = [];

/**
 * Keeps one object of a small class for ever. When a garbage collection finds the last object of a shape, V8
 * forgets the shape, and the code that it compiled for it.
 * @param {object} object
 */
export function keepShape(object) {
  kept.push(object);
}
