// @ts-check
// Values as lines of text: what JSON leaves out is said too, so that a member that is gone is a difference.

/** @param {unknown} value @returns {string} */
export function show(value) {
  /** @type {Set<unknown>} */
  const inside = new Set();
  const plain = (/** @type {any} */ it) => /** @type {any} */ (asPlain(it));
  /** @param {any} it @returns {unknown} */
  const asPlain = (it) => {
    if (it === undefined) return "‹undefined›";
    if (typeof it === "function") return "‹function›";
    if (typeof it === "symbol" || typeof it === "bigint") return `‹${String(it)}›`;
    if (typeof it === "number" && !Number.isFinite(it)) return `‹${it}›`;
    if (typeof it !== "object" || it === null) return it;
    if (inside.has(it)) return "‹inside itself›";
    if (it instanceof AbortSignal) return `‹signal${it.aborted ? ", aborted" : ""}›`;
    if (ArrayBuffer.isView(it)) return new TextDecoder().decode(it);
    inside.add(it);
    const shown = it instanceof Error ? error(it) : Array.isArray(it) ? it.map(plain) : Object.fromEntries(Object.entries(it).map(([name, member]) => [name, plain(member)]));
    inside.delete(it);
    return shown;
  };
  /** @param {any} it @returns {unknown} */
  const error = (it) => ({
    "‹error›": it.name, message: it.message, ...(it.code !== undefined && { code: plain(it.code) }), ...(it.phase !== undefined && { phase: it.phase }),
    ...(it.info !== undefined && { info: plain(it.info) }), ...(it.cause !== undefined && { cause: plain(it.cause) }),
  });
  return JSON.stringify(plain(value));
}
