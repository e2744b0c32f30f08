// @ts-check
// npx turnwheel tape FILE: shows a tape in the terminal. With --test it writes a test of it.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { ready, replay, Tape } from "../tape.js";
import { complain, harmless, parsed, say, short, textOf } from "./terminal.mjs";
import { usageOf } from "./usage.mjs";

/** @import { AgentEvent, Usage } from "../index.js" */
/** @import { TapeEntry } from "../tape.js" */

/** @param {string[]} args @returns {Promise<number>} the exit code */
export async function tape(args) {
  if (args[0] === "diff") return (await import("./tape-diff.mjs")).tapeDiff(args.slice(1));
  let given;
  try {
    given = parsed(args, [], ["json", "test"]);
  } catch (error) {
    return complain(`${textOf(error)}\n\n${usageOf("tape")}`);
  }
  const { values, positionals: [file, ...more] } = given;
  if (values.help) return say(usageOf("tape"));
  if (file === undefined || more.length > 0) return complain(usageOf("tape"));
  try {
    const recorded = Tape.parse(readFileSync(file, "utf8"));
    await ready();
    if (values.test) return await writeTest(file, recorded);
    const replayed = replay(recorded);
    const used = new Used();
    for (const entry of replayed.entries()) {
      used.take(entry);
      const line = values.json ? JSON.stringify(entry) : lineOf(entry, recorded.header.createdAt);
      if (line !== undefined) say(line);
    }
    const rest = replay(recorded).seek(recorded.events);
    if (!values.json) say(`\n${recorded.events} events, ${rest.messages.length} messages, ${used.with(rest.usage)}${recorded.complete ? "" : "; the recording was cut here"}`);
    return 0;
  } catch (error) {
    return complain(textOf(error));
  }
}

/** A line of the timeline; nothing for what only adds to another. @param {TapeEntry} entry @param {number} from */
function lineOf(entry, from) {
  const stamp = `${((entry.at - from) / 1000).toFixed(3).padStart(10)} s  `;
  const line = shown(entry);
  return line && stamp + "  ".repeat(line[0]) + line[1];
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
      return [2, `${event.toolName} ${event.isError ? "fails" : "ends"}: ${short(textsOf(event.result.content))}`];
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

/** @param {readonly any[]} content */
const textsOf = (content) => content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("");

/** @param {any} input @returns {[number, string] | undefined} */
function ofInput(input) {
  const texts = (/** @type {any[]} */ messages) => short(messages.map(({ content }) => (Array.isArray(content) ? content.map(({ text = "" }) => text).join("") : "")).join(" / "));
  if (input.in === "begin") return [0, `asked: ${texts(input.messages)}`];
  if (input.in === "steer") return [1, `steered: ${texts(input.letters.map((/** @type {any} */ { message }) => message))}`];
  if (input.in === "abort") return [0, `aborted: ${input.reason}`];
  if (input.in === "command") return [1, `command: ${short(JSON.stringify(input.command))}`];
  return undefined;
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
  writeFileSync(test, `// Replays ${harmless(name).replace(/[\n\u2028\u2029]/g, " ")}: no model, no tools, no network.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { replay, Tape } from "turnwheel/tape";

test(${JSON.stringify(`${name} replays as it was`)}, async () => {
  const tape = Tape.parse(readFileSync(new URL(${JSON.stringify(`./${encodeURIComponent(name)}`)}, import.meta.url), "utf8"));
  // To run a tool of yours for real and compare: replay(tape, { tools: { search } })
  const result = await replay(tape).result;
  assert.equal(result.stopReason, ${JSON.stringify(stopReason)});
  assert.equal(result.text, ${JSON.stringify(text)});
});
`);
  return say(`${join(dirname(test), basename(test))} is written`);
}
