#!/usr/bin/env node
// @ts-check
// One agent, one question, in the terminal: the events of the run as a timeline, then a picture, the answer and the usage.
//   node once.mjs "What is 17*23, and what time is it in Oslo?"
//   node once.mjs "…" --base-url http://localhost:11434/v1 --model qwen3:4b       (key: OPENAI_API_KEY)

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { explain } from "./advice.js";
import { SYSTEM_PROMPT } from "./agent.js";
import { loadInNode, loadTapeInNode } from "./engine-node.js";
import { LABEL, rehearsal } from "./rehearsal.js";
import { demoTools } from "./tools.js";
import { Trace, duration, inWords, outcomeOf, textOf } from "./trace.js";

/** @typedef {import("../npm/index.js").AgentEvent} AgentEvent */
/** @typedef {{ question: string, model?: string, baseUrl?: string, tape?: string, fast: boolean }} Options */

const USAGE = `Usage: node once.mjs "question" [--model ID --base-url URL] [--tape FILE] [--fast]

Without an address the rehearsal model answers: ${LABEL}.
  --base-url URL   any OpenAI-compatible address, such as http://localhost:11434/v1; the key is read from OPENAI_API_KEY
  --model ID       the model there
  --tape FILE      writes down the run, to be lived again: npx turnwheel tape FILE
  --fast           do not hold words and tools for the eye`;

const colour = process.stdout.isTTY && !process.env["NO_COLOR"];
const paint = (/** @type {number} */ code) => (/** @type {string} */ text) => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
const [bold, faint, red, green, yellow, blue] = [1, 2, 31, 32, 33, 36].map(paint);
const width = Math.max(60, Math.min(process.stdout.columns ?? 100, 120));

/** @returns {Promise<number>} the exit code */
async function main() {
  const options = readArguments(process.argv.slice(2));
  if (typeof options === "string") {
    console.error(options);
    return options === USAGE ? 0 : 1;
  }
  let turnwheel;
  try {
    turnwheel = await loadInNode();
  } catch (error) {
    console.error(`The package could not be loaded (${errorText(error)}).\nBuild it first: cargo xtask build`);
    return 1;
  }
  try {
    return await once(turnwheel, options);
  } catch (error) {
    console.error(red?.(errorText(error)));
    return 1;
  }
}

/** @param {string[]} args @returns {Options | string} what is wanted, or what to print instead */
function readArguments(args) {
  let parsed;
  try {
    parsed = parseArgs({
      args,
      allowPositionals: true,
      options: { model: { type: "string" }, "base-url": { type: "string" }, tape: { type: "string" }, fast: { type: "boolean", default: false }, help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    return `${errorText(error)}\n\n${USAGE}`;
  }
  const { model, "base-url": baseUrl, tape, fast = false, help } = parsed.values;
  const question = parsed.positionals.join(" ").trim();
  if (help) return USAGE;
  if (!question) return `There is no question.\n\n${USAGE}`;
  if ((model === undefined) !== (baseUrl === undefined)) return `--model and --base-url belong together; ${model === undefined ? "--model" : "--base-url"} is missing.\n\n${USAGE}`;
  return { question, fast, ...(tape !== undefined && { tape }), ...(model !== undefined && { model }), ...(baseUrl !== undefined && { baseUrl }) };
}

/** @param {import("./engine.js").Turnwheel} turnwheel @param {Options} wanted */
async function once(turnwheel, { question, model, baseUrl, tape, fast }) {
  const pace = () => (fast ? 0 : 0.6);
  const apiKey = process.env["OPENAI_API_KEY"];
  const tools = demoTools({ tool: turnwheel.tool, pace });
  const agent = new turnwheel.Agent({
    model: model !== undefined && baseUrl !== undefined
      ? turnwheel.openaiCompatible(model, { baseUrl, ...(apiKey && { apiKey }) })
      : turnwheel.custom("rehearsal", rehearsal({ pace })),
    systemPrompt: SYSTEM_PROMPT,
    tools,
  });

  print("asked", question);
  print("model", model !== undefined ? `${model} at ${baseUrl}` : `rehearsal: ${LABEL}`);
  print("tools", tools.map(({ name }) => name).join(", ") + (fast || model !== undefined ? "" : faint?.("   (held for a moment each, so that they can be watched; --fast lets them go)")));
  console.log();

  const recorder = tape === undefined ? undefined : await (await loadTapeInNode()).record(agent);
  const run = agent.prompt(question);
  let isStopping = false;
  const stop = () => {
    // A second Ctrl-C exits at once: by now the run has had its chance to end in order.
    if (isStopping) process.exit(130);
    isStopping = true;
    run.abort(new Error("stopped from the keyboard"));
  };
  process.on("SIGINT", stop);

  const trace = new Trace(performance.now());
  const timeline = new Timeline(trace);
  for await (const event of run) {
    trace.push(event, performance.now());
    timeline.show(event);
  }
  const result = await run.result;
  process.off("SIGINT", stop);
  if (recorder && tape !== undefined) {
    recorder.stop();
    writeFileSync(tape, recorder.toText());
  }

  console.log(`\n${picture(trace)}\n`);
  if (result.text) console.log(`${bold?.("answer")}\n${wrapped(result.text, 2)}\n`);
  const { usage } = result;
  print("usage", `${usage.input} tokens in, ${usage.output} out${model === undefined ? " (estimated)" : ""}; ${plural(result.turns, "turn")}, ${plural(trace.calls.size, "tool call")}${trace.mostAtOnce() > 1 ? `, ${trace.mostAtOnce()} at once` : ""}`);
  if (result.stopReason === "completed") return 0;
  print("ended", red?.(inWords(result.stopReason)) ?? "");
  if (result.error) {
    const { title, advice } = explain(result.error.info, { label: model === undefined ? "the rehearsal model" : baseUrl ?? "", ...(baseUrl && { baseUrl }), ...(model && { model }) });
    for (const line of [title, ...advice, `(${result.error.code}: ${result.error.message})`]) console.error(wrapped(line, 2));
  }
  return 1;
}

/** Prints each event below the one it belongs to; pieces are joined and printed once. */
class Timeline {
  /** @param {Trace} trace */
  constructor(trace) {
    this.trace = trace;
    /** @type {{ key: string, label: string, text: string, at: number } | undefined} */
    this.open = undefined;
    this.running = 0;
    this.updatedAt = -Infinity;
  }

  /** @param {AgentEvent} event */
  show(event) {
    if (event.type === "message_update") return this.#gather(event.delta);
    this.#flush();
    switch (event.type) {
      case "agent_start": return this.#line(0, "run starts");
      case "turn_start": return this.#line(1, bold?.(`turn ${event.turnIndex}`) ?? "");
      case "message_start": return this.#line(2, "message starts");
      case "message_reset": return this.#line(3, `taken back: ${event.reason}`);
      case "message_end": return this.#line(2, `message ends: ${inWords(event.message.stopReason)}`);
      case "tool_execution_start":
        this.running += 1;
        return this.#line(2, `${blue?.(event.toolName)} starts${this.running > 1 ? `, ${this.running} tools at once` : ""}`);
      case "tool_execution_update": return this.#update(event);
      case "tool_execution_end": return this.#end(event);
      case "turn_end": return this.#line(1, `turn ${event.turnIndex} ends: ${inWords(event.reason)}`);
      case "agent_end": return this.#line(0, `run ends: ${inWords(event.stopReason)}`);
      case "retry_attempt": return this.#line(3, yellow?.(`attempt ${event.attempt} failed (${event.error.message}); next in ${duration(event.delayMs)}`) ?? "");
      default: return this.#line(2, faint?.(event.type.replaceAll("_", " ")) ?? "");
    }
  }

  /**
   * Not every update: a person reads two lines a second.
   * @param {Extract<AgentEvent, { type: "tool_execution_update" }>} event
   */
  #update({ toolName, update }) {
    if (this.#now() - this.updatedAt < 500) return;
    this.updatedAt = this.#now();
    this.#line(3, faint?.(`${toolName}: ${textOf(update)}`) ?? "");
  }

  /** @param {Extract<AgentEvent, { type: "tool_execution_end" }>} event */
  #end(event) {
    const call = this.trace.calls.get(event.callId);
    const took = call?.start === undefined ? "" : ` after ${duration((call.end ?? 0) - call.start)}`;
    if (call?.start !== undefined) this.running -= 1;
    const outcome = outcomeOf(event.result);
    const paintOutcome = outcome === "done" ? green : outcome === "cut" ? yellow : red;
    this.#line(2, `${blue?.(event.toolName)} ${outcome === "done" ? "ends" : outcome === "cut" ? "is cut short" : "fails"}${took}: ${paintOutcome?.(textOf(event.result))}`);
  }

  /** @param {import("../npm/index.js").Delta} delta */
  #gather(delta) {
    const key = `${delta.type} ${delta.contentIndex}`;
    if (this.open?.key !== key) {
      this.#flush();
      const label = delta.type === "tool_call" ? `asks ${blue?.(delta.toolName)}` : delta.type === "thinking" ? "thinks" : "says";
      this.open = { key, label, text: "", at: this.#now() };
    }
    this.open.text += delta.delta;
  }

  #flush() {
    if (!this.open) return;
    const { key, label, text, at } = this.open;
    this.open = undefined;
    this.#line(3, `${label} ${key.startsWith("thinking") ? faint?.(text) : text}`, at);
  }

  #now() {
    return performance.now() - this.trace.startedAt;
  }

  /** @param {number} depth @param {string} text @param {number} [at] */
  #line(depth, text, at = this.#now()) {
    const stamp = `${(at / 1000).toFixed(3).padStart(8)} s  `;
    console.log(faint?.(stamp) + wrapped(text, stamp.length + 2 * depth).slice(stamp.length));
  }
}

/** Lanes drawn to scale: one for the model, one or more for each tool. @param {Trace} trace */
function picture(trace) {
  const lanes = trace.lanes().flatMap(({ name, rows }) => rows.map((row, index) => ({ name: index === 0 ? name : "", row })));
  const margin = Math.max(5, ...lanes.map(({ name }) => name.length)) + 2;
  const columns = width - margin - 12;
  const total = Math.max(1, trace.endedAt ?? 1);
  const column = (/** @type {number} */ at) => Math.min(columns - 1, Math.floor((at / total) * columns));
  const empty = () => Array.from({ length: columns }, () => faint?.("·") ?? "");
  /** @param {string[]} cells @param {number} start @param {number} end @param {string} mark */
  const fill = (cells, start, end, mark) => {
    for (let at = column(start); at <= Math.max(column(start), column(end) - 1); at += 1) cells[at] = mark;
  };
  const model = empty();
  for (const answer of trace.answers) {
    fill(model, answer.start, answer.end ?? total, faint?.("─") ?? "");
    for (const part of answer.parts) fill(model, part.start, part.end, { thinking: "░", text: "▓", tool_call: "▒" }[part.kind]);
  }
  const rows = [`${bold?.("model".padEnd(margin))}${model.join("")}`];
  for (const { name, row } of lanes) {
    const cells = empty();
    for (const call of row) {
      const mark = call.state === "done" ? green?.("█") : call.state === "cut" ? yellow?.("▚") : red?.("▚");
      fill(cells, call.start ?? call.end ?? call.asked, call.end ?? total, mark ?? "");
    }
    const took = row.reduce((sum, call) => sum + (call.start === undefined ? 0 : (call.end ?? total) - call.start), 0);
    rows.push(`${blue?.(name.padEnd(margin))}${cells.join("")}  ${faint?.(duration(took))}`);
  }
  rows.push(faint?.(`${" ".repeat(margin)}0${duration(total).padStart(columns - 1)}`) ?? "");
  rows.push(faint?.(`${" ".repeat(margin)}─ waiting  ░ thinking  ▓ words  ▒ tool call  █ tool running`) ?? "");
  return rows.join("\n");
}

/** Models and tools have written it: of escape sequences only colours reach the terminal. @param {string} text */
function harmless(text) {
  return text.replace(/\t/g, "  ").replace(/\x1b(?!\[[\d;]*m)|[\0-\x09\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Breaks a text at spaces and indents every line. @param {string} text @param {number} indent */
function wrapped(text, indent) {
  const room = width - indent;
  /** @type {string[]} */
  const lines = [];
  for (const paragraph of harmless(text).split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      if (line && visible(line).length + 1 + visible(word).length > room) {
        lines.push(line);
        line = word;
      } else line = line ? `${line} ${word}` : word;
    }
    lines.push(line);
  }
  return lines.map((line) => (line ? " ".repeat(indent) + line : "")).join("\n");
}

/** @param {string} text */
function visible(text) {
  return text.replace(/\x1b\[\d+m/g, "");
}

/** @param {string} label @param {string} text */
function print(label, text) {
  console.log(`${bold?.(label)}  ${wrapped(text, 7).trimStart()}`);
}

/** @param {number} count @param {string} what */
function plural(count, what) {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** @param {unknown} error */
function errorText(error) {
  return error instanceof Error ? error.message : String(error);
}

// Last, so that everything above is defined.
process.exitCode = await main();
