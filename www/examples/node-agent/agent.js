#!/usr/bin/env node
// A chat with an agent in the terminal. It reads and writes files in this folder, asks before it writes, and continues
// where it stopped. What you type during a run steers it; Ctrl-C stops the run, a second one exits.

import { existsSync, readFileSync, readdirSync, realpathSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve, sep } from "node:path";
import { createInterface } from "node:readline";
import { Agent, anthropic, gemini, openai, openaiCompatible, tool } from "turnwheel";

const { env, stdin, stdout } = process;
const FILE = env.CHAT ?? ".chat.json";

/** The provider whose key is set. Without a key: a server on this machine, Ollama unless BASE_URL names another. */
function chooseModel() {
  const baseUrl = env.BASE_URL;
  if (env.OPENAI_API_KEY) return openai(env.MODEL ?? "gpt-5-mini", { apiKey: env.OPENAI_API_KEY, baseUrl });
  if (env.ANTHROPIC_API_KEY) return anthropic(env.MODEL ?? "claude-sonnet-4-5", { apiKey: env.ANTHROPIC_API_KEY, baseUrl });
  if (env.GEMINI_API_KEY) return gemini(env.MODEL ?? "gemini-3-flash", { apiKey: env.GEMINI_API_KEY, baseUrl });
  return openaiCompatible(env.MODEL ?? "qwen3", { baseUrl: baseUrl ?? "http://localhost:11434/v1" });
}

/** Returns the real path if it is in this folder. Paths come from the model, so they are not trusted. */
function inside(path) {
  const absolute = resolve(path);
  const real = existsSync(absolute) ? realpathSync(absolute) : join(realpathSync(dirname(absolute)), basename(absolute));
  const folder = realpathSync(".");
  if (real !== folder && !real.startsWith(folder + sep)) throw new Error(`${path} is not in this folder`);
  return real;
}

const path = { type: "string", description: "A path in this folder" };
const tools = [
  tool({
    name: "list_files", description: "Lists the files of a folder", idempotent: true,
    parameters: { type: "object", properties: { path } },
    execute: ({ path = "." }) => readdirSync(inside(path)).join("\n"),
  }),
  tool({
    name: "read_file", description: "Reads a text file", idempotent: true, maxResultBytes: 50_000,
    parameters: { type: "object", properties: { path }, required: ["path"] },
    execute: ({ path }) => readFileSync(inside(path), "utf8"),
  }),
  tool({
    name: "write_file", description: "Writes a text file", requiresApproval: true,
    parameters: { type: "object", properties: { path, text: { type: "string" } }, required: ["path", "text"] },
    execute({ path, text }) {
      writeFileSync(inside(path), text);
      return `wrote ${text.length} characters`;
    },
  }),
];

/** Models and tools have written it: an escape sequence would change what stands above, or what is asked. */
const show = (text) => stdout.write(text.replace(/[\0-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (letter) => (letter === "\t" ? "  " : "\ufffd")));
const terminal = createInterface({ input: stdin, output: stdout });
/** Resolves the question that waits for an answer from the keyboard. */
let resolveAnswer;
const askOnce = (question, signal) =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve("");
    show(question);
    resolveAnswer = resolve;
    signal.addEventListener("abort", () => resolve(""), { once: true });
  }).finally(() => (resolveAnswer = undefined));
/** Several calls may ask at once; their questions are asked one after the other. */
let lastQuestion = Promise.resolve("");
const ask = (question, signal) => (lastQuestion = lastQuestion.then(() => askOnce(question, signal)));

const options = {
  model: chooseModel(),
  tools,
  systemPrompt: "You help with the files of one folder. Be brief.",
  approveTool: async ({ toolName, arguments: args }, { signal }) =>
    /^y/i.test(await ask(`\nMay it ${toolName} ${JSON.stringify(args)}? [y/N] `, signal)) ? "approve" : { action: "reject", reason: "the user said no" },
};
const agent = existsSync(FILE) ? await Agent.restore(readFileSync(FILE, "utf8"), options) : new Agent(options);

agent.subscribe((event) => {
  // There are many of these, and an interrupted answer is requested again anyway.
  if (event.type === "message_update") return;
  writeFileSync(`${FILE}.new`, JSON.stringify(agent.checkpoint()));
  renameSync(`${FILE}.new`, FILE);
}, { keep: true }); // a disk that was full once must not end the saving
agent.subscribe((event) => {
  if (event.type === "message_update" && event.delta.type === "text") show(event.delta.delta);
  if (event.type === "tool_execution_start") show(`\n[${event.toolName} ${JSON.stringify(event.arguments)}]\n`);
  if (event.type === "tool_execution_end" && event.isError) show(`[${event.result.content[0]?.text}]\n`);
  if (event.type === "retry_attempt") show(`\n[again in ${event.delayMs} ms: ${event.reason}]\n`);
});

async function showResult(run) {
  const { stopReason, error, usage } = await run;
  show(`\n${error ? `[${stopReason}: ${error.message}]` : `[${usage.total} tokens]`}\n> `);
}

terminal.on("line", (line) => {
  if (resolveAnswer) resolveAnswer(line);
  else if (agent.isRunning) agent.steer(line), stdout.write("[it reads that next]\n");
  else if (line.trim()) showResult(agent.prompt(line));
});
terminal.on("SIGINT", () => (agent.isRunning ? agent.abort() : terminal.close()));

if (agent.canContinue) showResult(agent.continue());
else stdout.write("> ");
