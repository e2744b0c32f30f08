#!/usr/bin/env node
// @ts-check
// Records the run that the page plays before anybody has asked anything: the rehearsal answers, and the tape is written to
// recorded.tape. A page that wants to show a few seconds does not load the module that lives a tape again, so what the tape gives
// is written beside it, to recorded.json.
//   cargo xtask build && node www/demo/record.mjs            records anew
//   node www/demo/record.mjs --check                         fails if recorded.json is not what the tape gives

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { SYSTEM_PROMPT } from "./agent.js";
import { loadInNode, loadTapeInNode } from "./engine-node.js";
import { rehearsal } from "./rehearsal.js";
import { OPENING } from "./suggestions.js";
import { demoTools } from "./tools.js";

/** @typedef {import("./recorded.js").Recorded} Recorded */

const at = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** Lets the rehearsal answer at the pace that the page has, and returns the tape. */
async function newTape() {
  const [turnwheel, tapes] = await Promise.all([loadInNode(), loadTapeInNode()]);
  const agent = new turnwheel.Agent({ model: turnwheel.custom("rehearsal", rehearsal()), systemPrompt: SYSTEM_PROMPT, tools: demoTools({ tool: turnwheel.tool }), includeRequests: true });
  const recorder = await tapes.record(agent);
  await agent.prompt(OPENING);
  recorder.stop();
  return recorder.toText();
}

/**
 * What the page needs of a tape: its events, each with the milliseconds since the one before.
 * @param {string} text @returns {Promise<Recorded>}
 */
export async function eventsOfTape(text) {
  const tapes = await loadTapeInNode();
  await tapes.ready();
  const replayed = tapes.replay(tapes.Tape.parse(text));
  const entries = replayed.entries();
  const [first] = replayed.seek(1).messages;
  let last = entries[0]?.at ?? 0;
  /** @type {Recorded["events"]} */
  const events = [];
  for (const entry of entries) {
    if (entry.kind !== "event") continue;
    events.push([entry.at - last, entry.event]);
    last = entry.at;
  }
  const said = first?.role === "user" ? first.content : [];
  return { question: said.map((block) => (block.type === "text" ? block.text : "")).join(""), events };
}

/** A line for each event, so that a change can be read. @param {Recorded} recorded */
const written = ({ question, events }) => `{"question":${JSON.stringify(question)},"events":[\n${events.map((event) => JSON.stringify(event)).join(",\n")}\n]}\n`;

async function main() {
  const isCheck = process.argv[2] === "--check";
  const tape = isCheck ? readFileSync(at("recorded.tape"), "utf8") : await newTape();
  const text = written(await eventsOfTape(tape));
  if (isCheck) return text === readFileSync(at("recorded.json"), "utf8") ? 0 : 1;
  writeFileSync(at("recorded.tape"), tape);
  writeFileSync(at("recorded.json"), text);
  return 0;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) process.exitCode = await main();
