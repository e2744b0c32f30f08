// @ts-check
// A key that crosses the network for everybody on the way to read. Loaded with the first request over http:// that
// leaves the machine.

/** The origins of which the console was told. @type {Set<string>} */
const told = new Set();

const SECRET = /auth|key|token|secret|cookie|password|credential|^sig$|^code$/i;

/** Warns once per origin. @param {string} url @param {Record<string, string>} headers */
export function warnOfPlainHttp(url, headers) {
  const { origin, searchParams } = new URL(url);
  if (told.has(origin) || ![...Object.keys(headers), ...searchParams.keys()].some((name) => SECRET.test(name))) return;
  told.add(origin);
  console.warn(`turnwheel: the key for ${origin} is sent without encryption, and everybody on the way can read it; use https:// in \`baseUrl\``);
}
