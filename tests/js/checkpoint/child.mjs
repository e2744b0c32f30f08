// @ts-check
// One life in a process of its own:   node child.mjs FOLDER [UNTIL]
// Continues from FOLDER/checkpoint.json if it exists, writes the events to FOLDER, and is killed inside the
// listener of event number UNTIL, right after it has written the checkpoint.

import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runLife } from "./lives.mjs";
import { world } from "./world.mjs";

const [folder = "", until = "Infinity"] = process.argv.slice(2);
const file = (/** @type {string} */ name) => join(folder, name);
const slept = existsSync(file("checkpoint.json"));
const failed = slept && JSON.parse(readFileSync(file("failed.json"), "utf8"));
const ran = { push: (/** @type {string} */ callId) => appendFileSync(file("ran"), `${callId}\n`) };
const own = { ...world(), failed, ran };
const agent = await runLife(own, {
  ...(slept && { from: readFileSync(file("checkpoint.json"), "utf8") }),
  until: Number(until),
  onEvent: (event) => appendFileSync(file("events"), `${JSON.stringify(event)}\n`),
  die(checkpoint) {
    writeFileSync(file("checkpoint.json"), JSON.stringify(checkpoint));
    writeFileSync(file("failed.json"), JSON.stringify(own.failed));
    process.kill(process.pid, "SIGKILL");
  },
});
writeFileSync(file("history.json"), JSON.stringify(agent.messages));
