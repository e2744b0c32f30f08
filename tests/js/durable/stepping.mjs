// @ts-check
// Tells a test of every transaction of a Durable Object, right inside its beginning and right before its end.

/** @param {any} ctx @param {() => void} step @returns {any} the same */
export function stepping(ctx, step) {
  const { storage } = ctx;
  const transactionSync = storage.transactionSync.bind(storage);
  const value = (/** @type {() => unknown} */ work) => transactionSync(() => {
    step();
    const made = work();
    step();
    return made;
  });
  Object.defineProperty(storage, "transactionSync", { value });
  return ctx;
}
