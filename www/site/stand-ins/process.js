// What the programs of the docs use of Node's `process`.
export const process = { env: {}, stdout: { write: (/** @type {string} */ text) => globalThis.postMessage({ text }) } };
