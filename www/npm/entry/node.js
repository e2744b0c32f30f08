// Node and Bun: the bytes are read when the first run begins.
import { address } from "../address.js";
import { common, undecided, use, useJudge, useRest, useServer } from "../core.js";
import { serverAddress } from "../server-address.js";
import { checkOf, excessOf, Judge } from "../tools/judge.js";
import { REST } from "../rest.js";

// On a server nothing is won by loading it later.
useJudge({ checkOf, excessOf, Judge });
useRest(REST);
use(() => {
  // A named import costs a cold start some milliseconds: all of the module's getters are called to build its
  // exports.
  const fs = process.getBuiltinModule?.("node:fs");
  return fs ? read(fs) : import("node:fs").then(read);
}, true);
useServer(async () => (await import("node:fs")).readFileSync(serverAddress()));

// Node ends without a word when nothing but an open promise is left: 13 is its exit code for that.
if (!common.hasExitListener) process.on?.("exit", () => {
  if (process.exitCode !== 13 || undecided.size === 0) return;
  const tools = [...new Set(undecided.values())].map((name) => `\`${name}\``).join(", ");
  console.error(`turnwheel: a run waits for a decision about ${tools}, and nobody is left to make it; answer with agent.resolve(id, "approve"), or set \`approveTool\``);
});
common.hasExitListener = true;

/** @param {import("node:fs")} fs */
function read({ readFileSync }) {
  try {
    return readFileSync(address);
  } catch (cause) {
    throw new Error(`turnwheel.wasm cannot be read from ${address}; copy it there, or say with \`use\` of turnwheel/slim where it is`, { cause });
  }
}

export * from "../index.js";
