// @ts-check
// Warnings about a request. Loaded with the first request that deserves one.

/** Origins and sentences that the console has shown. @type {Set<string>} */
const told = new Set();
/** How many of them are remembered: schemas may come from strangers. */
const MOST = 1_000;

/** Shows each sentence once. @param {string[]} sentences */
export function warnOnce(sentences) {
  for (const sentence of sentences) {
    if (told.has(sentence) || told.size >= MOST) continue;
    told.add(sentence);
    console.warn(`turnwheel: ${sentence}`);
  }
}

const SECRET = /auth|key|token|secret|cookie|password|credential|^sig$|^code$/i;

/** Warns once per origin. @param {string} url @param {Record<string, string>} headers */
export function warnOfPlainHttp(url, headers) {
  const { origin, searchParams } = new URL(url);
  if (told.has(origin) || ![...Object.keys(headers), ...searchParams.keys()].some((name) => SECRET.test(name))) return;
  told.add(origin);
  console.warn(`turnwheel: the key for ${origin} is sent without encryption, and everybody on the way can read it; use https:// in \`baseUrl\``);
}
