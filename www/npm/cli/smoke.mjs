// @ts-check
// npx turnwheel smoke: tries a server. The checks are in smoke.js.

import { readFileSync } from "node:fs";
import { complain, harmless, parsed, say, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function smoke(args) {
  let given;
  try {
    given = parsed(args, ["server", "base-url", "model", "key-env", "out", "only", "skip", "timeout"]);
  } catch (error) {
    return complain(`${textOf(error)}\n\n${usageOf("smoke")}`);
  }
  const { help, ...values } = given.values;
  if (help) return say(usageOf("smoke"));
  // Not repeated: it may be a key that somebody meant to pass.
  if (given.positionals.length > 0) return complain(`smoke takes nothing but options; a key is read from the environment\n\n${usageOf("smoke")}`);
  // The first says where the engine is.
  const [, checks] = await Promise.all([import("../entry/node.js"), import("../smoke.js")]);
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const code = await checks.smoke(values, { env: process.env, versions: { turnwheel: version, node: process.version }, say, complain, harmless });
  // What a server leaves open does not keep the program from its end.
  setTimeout(() => process.exit(), 2000).unref();
  return code;
}
