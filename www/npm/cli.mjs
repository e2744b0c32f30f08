#!/usr/bin/env node
// @ts-check
// npx turnwheel tape FILE: shows a tape in the terminal. npx turnwheel smoke --server NAME: tries a server.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { ready, replay, Tape } from "./tape.js";

/** @import { AgentEvent, Usage } from "./index.js" */
/** @import { TapeEntry } from "./tape.js" */

const USAGE = `Usage: npx turnwheel tape FILE [--json | --test]
       npx turnwheel smoke --server NAME [--model ID] [--base-url URL] [--key-env NAME] [--only CHECKS] [--skip CHECKS] [--timeout SECONDS] [--out FILE]

npx turnwheel tape
Shows what happened in the runs on a tape, by living them again: no model, no tools, no network.
  --json   everything as JSON, a line each: events, effects, replies, answers of rules, notes
  --test   writes FILE.test.mjs beside the tape: a test for node:test that lives it again

npx turnwheel smoke
Asks a server eight small things: text, tools, parallel, thinking, abort, overflow, image, structured. The key is read from the
environment. The exit code is 0 if no check failed.
  --server    openai, openai-responses, anthropic, gemini, ollama, llama.cpp, openrouter, …: an unknown name shows all
  --model     the id of the model; may be left out where the server has only one
  --base-url  the address, if it is not the usual one of the server
  --key-env   the variable of the environment that holds the key, if it is not the usual one (OPENAI_API_KEY, …)
  --only      names of checks with commas between them; no others are made
  --skip      names of checks that are left out; overflow sends most
  --timeout   seconds that a check may take, 60 unless you say otherwise
  --out       the file for the results, turnwheel-smoke-SERVER-MODEL-DATE.json unless you say otherwise`;

/** Pipes that nobody reads any more end the program, not in an error; but checks that were not made have not passed. */
process.stdout.on("error", () => process.exit(process.argv[2] === "smoke" ? 1 : 0));

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function main(args) {
  if (args[0] === "smoke") return trySmoke(args.slice(1));
  let parsed;
  try {
    parsed = parseArgs({ args, allowPositionals: true, options: { json: { type: "boolean" }, test: { type: "boolean" }, help: { type: "boolean", short: "h" } } });
  } catch (error) {
    return complain(`${textOf(error)}\n\n${USAGE}`);
  }
  const { values, positionals: [command, file, ...more] } = parsed;
  if (values.help) return say(USAGE);
  if (command !== "tape" || file === undefined || more.length > 0) return complain(USAGE);
  try {
    const tape = Tape.parse(readFileSync(file, "utf8"));
    await ready();
    if (values.test) return await writeTest(file, tape);
    const replayed = replay(tape);
    const used = new Used();
    for (const entry of replayed.entries()) {
      used.take(entry);
      const line = values.json ? JSON.stringify(entry) : lineOf(entry, tape.header.createdAt);
      if (line !== undefined) say(line);
    }
    const rest = replay(tape).seek(tape.events);
    if (!values.json) say(`\n${tape.events} events, ${rest.messages.length} messages, ${used.with(rest.usage)}${tape.complete ? "" : "; the recording was cut here"}`);
    return 0;
  } catch (error) {
    return complain(textOf(error));
  }
}

/** @param {string[]} args @returns {Promise<number>} the exit code */
async function trySmoke(args) {
  let parsed;
  try {
    const options = Object.fromEntries(["server", "base-url", "model", "key-env", "out", "only", "skip", "timeout"].map((name) => [name, { type: /** @type {const} */ ("string") }]));
    parsed = parseArgs({ args, allowPositionals: true, options: { ...options, help: { type: "boolean", short: "h" } } });
  } catch (error) {
    return complain(`${textOf(error)}\n\n${USAGE}`);
  }
  const { help, ...values } = parsed.values;
  if (help) return say(USAGE);
  // Not repeated: it may be a key that somebody meant to pass.
  if (parsed.positionals.length > 0) return complain(`smoke takes nothing but options; a key is read from the environment\n\n${USAGE}`);
  // The first says where the engine is.
  const [, { smoke }] = await Promise.all([import("./entry/node.js"), import("./smoke.js")]);
  const { version } = JSON.parse(readFileSync(new URL("./package.json", import.meta.url), "utf8"));
  const code = await smoke(values, { env: process.env, versions: { turnwheel: version, node: process.version }, say, complain, harmless });
  // What a server leaves open does not keep the program from its end.
  setTimeout(() => process.exit(), 2000).unref();
  return code;
}

/** @param {string} text */
function say(text) {
  console.log(harmless(text));
  return 0;
}

/** @param {string} text */
function complain(text) {
  console.error(harmless(text));
  return 1;
}

/**
 * A text of which the terminal makes nothing but letters: somebody else has written what is on a tape. An escape sequence would
 * change what stands above it, or the clipboard. Within JSON it says the same.
 * @param {string} text
 */
function harmless(text) {
  return text.replace(/[\0-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** @param {unknown} error */
const textOf = (error) => (error instanceof Error ? error.message : String(error));

/** A line of the timeline; nothing for what only adds to another. @param {TapeEntry} entry @param {number} from */
function lineOf(entry, from) {
  const stamp = `${((entry.at - from) / 1000).toFixed(3).padStart(10)} s  `;
  const told = shown(entry);
  return told === undefined ? undefined : stamp + "  ".repeat(told[0]) + told[1];
}

/** The texts that are gathered from pieces. */
let gathered = "";

/** How deep a line stands, and what it says. @param {TapeEntry} entry @returns {[number, string] | undefined} */
function shown(entry) {
  switch (entry.kind) {
    case "event":
      return ofEvent(entry.event);
    case "start":
      return /\/(tool|model|approve|sleep|compact)/.test(entry.name) ? [3, `> ${entry.name}`] : undefined;
    case "cancel":
      return /\/tool/.test(entry.name) ? [3, `< ${entry.name} is not wanted any more`] : undefined;
    case "input":
      return ofInput(/** @type {any} */ (entry.input));
    case "rule":
      return JSON.stringify(entry.answer) === "{}" || entry.answer === true ? undefined : [3, `${entry.rule} says ${short(JSON.stringify(entry.answer))}`];
    case "note":
      return [0, `note: ${entry.text}`];
    default:
      return undefined;
  }
}

/** @param {AgentEvent} event @returns {[number, string] | undefined} */
function ofEvent(event) {
  switch (event.type) {
    case "message_update":
      gathered += event.delta.delta;
      return undefined;
    case "agent_start":
      return [0, `run ${event.runId} starts`];
    case "run_resumed":
      return [0, `run ${event.runId} goes on from a checkpoint`];
    case "agent_end":
      return [0, `run ends: ${event.stopReason}${event.error ? ` (${event.error.code}: ${short(event.error.message)})` : ""}`];
    case "turn_start":
      return [1, `turn ${event.turnIndex}`];
    case "turn_end":
      return [1, `turn ${event.turnIndex} ends: ${event.reason}`];
    case "message_end": {
      const said = gathered;
      gathered = "";
      return [2, `the model${said === "" ? " says nothing" : `: ${short(said)}`} (${event.message.stopReason})`];
    }
    case "message_reset":
      gathered = "";
      return [2, `taken back: ${short(event.reason)}`];
    case "tool_execution_start":
      return [2, `${event.toolName} ${short(JSON.stringify(event.arguments))}`];
    case "tool_execution_end":
      return [2, `${event.toolName} ${event.isError ? "fails" : "ends"}: ${short(event.result.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join(""))}`];
    case "tool_approval_requested":
      return [2, `asks whether ${event.toolName} may run`];
    case "tool_approval_resolved":
      return [2, `${event.toolName} ${event.approved ? "may run" : "may not run"}, says ${event.by}`];
    case "retry_attempt":
      return [2, `attempt ${event.attempt} failed (${short(event.error.message)}); next in ${event.delayMs} ms`];
    case "message_start":
    case "tool_calls_proposed":
      return undefined;
    case "subagent_event":
      return event.event.type === "message_update" ? undefined : [3, `inside ${event.callId}: ${event.event.type}`];
    default:
      return [2, event.type.replaceAll("_", " ")];
  }
}

/** @param {any} input @returns {[number, string] | undefined} */
function ofInput(input) {
  const texts = (/** @type {any[]} */ messages) => short(messages.map(({ content }) => (Array.isArray(content) ? content.map(({ text = "" }) => text).join("") : "")).join(" / "));
  if (input.in === "begin") return [0, `asked: ${texts(input.messages)}`];
  if (input.in === "steer") return [1, `steered: ${texts(input.letters.map((/** @type {any} */ { message }) => message))}`];
  if (input.in === "abort") return [0, `aborted: ${input.reason}`];
  if (input.in === "command") return [1, `command: ${short(JSON.stringify(input.command))}`];
  return undefined;
}

/** One line of a text. @param {string} text */
function short(text) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 120 ? `${line.slice(0, 119)}…` : line;
}

/** What the runs on a tape have used. A frame has that of its own run. */
class Used {
  #input = 0;
  #output = 0;
  #isOver = true;

  /** @param {TapeEntry} entry */
  take(entry) {
    if (entry.kind !== "event") return;
    const { event } = entry;
    if (event.type === "agent_start" || event.type === "run_resumed") this.#isOver = false;
    if (event.type !== "agent_end") return;
    this.#add(event.usage);
    this.#isOver = true;
  }

  /** @param {Usage} usage */
  #add({ input, output }) {
    this.#input += input;
    this.#output += output;
  }

  /** In words, with what a run has used that has no end. @param {Usage} open */
  with(open) {
    if (!this.#isOver) this.#add(open);
    return `${this.#input} tokens in, ${this.#output} out`;
  }
}

/** @param {string} file @param {Tape} tape */
async function writeTest(file, tape) {
  const test = `${file.replace(/\.(tape|jsonl?)$/, "")}.test.mjs`;
  if (existsSync(test)) return complain(`${test} is there already`);
  const { text, stopReason } = await replay(tape).result;
  const name = basename(file);
  writeFileSync(test, `// Lives ${harmless(name).replace(/[\n\u2028\u2029]/g, " ")} again: no model, no tools, no network.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { replay, Tape } from "turnwheel/tape";

test(${JSON.stringify(`${name} is lived again as it was`)}, async () => {
  const tape = Tape.parse(readFileSync(new URL(${JSON.stringify(`./${encodeURIComponent(name)}`)}, import.meta.url), "utf8"));
  // To run a tool of yours for real and compare: replay(tape, { tools: { search } })
  const result = await replay(tape).result;
  assert.equal(result.stopReason, ${JSON.stringify(stopReason)});
  assert.equal(result.text, ${JSON.stringify(text)});
});
`);
  return say(`${join(dirname(test), basename(test))} is written`);
}

process.exitCode = await main(process.argv.slice(2));
