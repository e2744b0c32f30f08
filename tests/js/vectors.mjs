// @ts-check
// node tests/js/vectors.mjs DIR
//
// Plays the golden vectors of a folder on the built package in pkg/, by its public API, and writes what came of each case on a
// line of JSON: `{ file, at, actual }`, with the members of `expected` that the package does not show as `hidden`, and
// `asSent` where it shows messages as a wire sends them; or `{ file, at, unreachable }` with the reason; or
// `{ file, at, error }`. `cargo xtask vectors DIR --engine wasm` judges the lines.
// A case is played by its contents, never by its name.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The module of each set. @type {Record<string, string>} */
const PLAYERS = {
  runs: "run", approval_policy: "policy", approval_fsm: "decisions", retry: "retry", overflow: "overflow", checkpoint: "checkpoint",
  context_reduction: "context", stream: "stream",
};

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: node tests/js/vectors.mjs DIR");
  process.exit(2);
}

// What is loaded on demand is there before virtual time begins.
for (const file of readdirSync(new URL("../../pkg/", import.meta.url))) if (/^core-.*\.js$/.test(file)) await import(`../../pkg/${file}`);

for (const file of readdirSync(folder).filter((name) => name.endsWith(".json")).sort()) {
  const { set, cases = [] } = JSON.parse(readFileSync(join(folder, file), "utf8"));
  const player = PLAYERS[set] && (await import(`./vectors/${PLAYERS[set]}.mjs`));
  for (const [at, { input }] of cases.entries()) {
    const came = player ? await outcome(player, input) : { error: `nobody plays the set ${set}` };
    process.stdout.write(`${JSON.stringify({ file, at, ...came })}\n`);
  }
}

/** @param {any} player @param {any} input */
async function outcome(player, input) {
  try {
    const unreachable = player.unreachable(input);
    if (unreachable !== undefined) return { unreachable };
    return { actual: await player.play(input), hidden: player.HIDDEN ?? [], asSent: player.AS_SENT ?? false };
  } catch (/** @type {any} */ error) {
    return { error: String(error?.stack ?? error) };
  }
}
