// @ts-check
// Reads site.json, which the server of this page writes: where the weights of a small model are, and whether the folder
// was built to work offline.

/** Weights that the page may load. Without `bytes` the size is known once they come. @typedef {{ url: string, name: string, bytes?: number, sha256?: string }} Weights */
/** @typedef {{ weights: Weights | null, offline: boolean }} Site */

/** @returns {Promise<Site>} */
export async function siteOf() {
  const none = { weights: null, offline: false };
  try {
    return { ...none, ...(await (await fetch("./site.json")).json()) };
  } catch {
    return none;
  }
}
