#!/usr/bin/env node
// @ts-check
// npx turnwheel COMMAND: each command is a file of its own in cli/, which is loaded when it is called.

import { refuse, say } from "./cli/terminal.mjs";
import { USAGE } from "./cli/usage.mjs";

/** @type {Record<string, () => Promise<(args: string[]) => Promise<number>>>} */
const COMMANDS = {
  chat: async () => (await import("./cli/chat.mjs")).chat,
  inspect: async () => (await import("./cli/inspect.mjs")).inspect,
  smoke: async () => (await import("./cli/smoke.mjs")).smoke,
  tape: async () => (await import("./cli/tape.mjs")).tape,
  verify: async () => (await import("./cli/verify.mjs")).verify,
};

/** A pipe that nobody reads any more ends the program, not in an error; but what was not checked has not passed. */
process.stdout.on("error", () => process.exit(["smoke", "verify"].includes(process.argv[2] ?? "") ? 1 : 0));

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function main([name = "", ...args]) {
  if (["--help", "-h", "help"].includes(name)) return say(USAGE);
  if (!Object.hasOwn(COMMANDS, name)) return refuse(`${name === "" ? "" : `there is no command ${JSON.stringify(name)}; there are ${Object.keys(COMMANDS).join(", ")}\n\n`}${USAGE}`);
  const command = await COMMANDS[name]?.();
  return command?.(args) ?? 2;
}

process.exitCode = await main(process.argv.slice(2));
