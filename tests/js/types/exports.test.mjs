// @ts-check
// The types: a file that uses every export, and events and messages of real runs, compiled by tsc.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import * as turnwheel from "../../../pkg/entry/node.js";
import { Agent, call, clock, deferred, readRun, scripted, testTool } from "../kit.mjs";

const here = (/** @type {string} */ path) => fileURLToPath(new URL(path, import.meta.url));
const declared = readFileSync(here("../../../www/npm/index.d.ts"), "utf8");
/** @param {string} text of declarations */
const namesOf = (text) => [...new Set([...text.matchAll(/^export (?:(?:abstract )?class|interface|type|const|function) (\w+)/gm)].map(([, name]) => /** @type {string} */ (name)))];
const exported = namesOf(declared);

/** Runs that produce as many kinds of events as possible. */
async function record() {
  const { host } = clock();
  const requested = deferred();
  const agent = new Agent({
    host, includeRequests: true,
    model: scripted([
      { error: { code: "throttled", message: "later", retryAfterMs: 5 } },
      { thinking: "hm", text: ["a", "b"], toolCalls: [{ toolName: "go", arguments: { a: [1, null] } }, { callId: "asked", toolName: "ask" }, { toolName: "nope" }], usage: { input: 4, output: 3, reasoning: 2 } },
      "done",
    ]),
    tools: [testTool("go", (/** @type {any} */ _, /** @type {any} */ { update, state }) => (update({ half: true }), state.set("n", 1), { content: [{ type: "text", text: "x" }], details: { n: 1 } })), testTool("ask", () => "", { requiresApproval: true })],
    transformContext: (messages) => (messages.length > 4 ? { messages: messages.slice(-4), report: { text: "cut" } } : undefined),
  });
  agent.subscribe((event) => { if (event.type === "tool_approval_requested") requested.resolve(); });
  requested.promise.then(() => { agent.resolveTool("asked", "approve"); agent.resolveTool("asked", "reject"); });
  const first = await readRun(agent.prompt("Go"));
  const failed = await readRun(new Agent({ model: scripted([]) }).prompt([{ role: "custom", kind: "k", data: { a: 1 }, timestamp: 1 }, "Go"]));
  const aborted = await readRun(new Agent({ model: scripted([]) }).prompt("Go", { signal: AbortSignal.abort("no") }));
  return [first, failed, aborted];
}

test("tsc agrees: every export as a user would use it, and every event as it really comes", async () => {
  const outcome = await record();
  const events = outcome.flatMap((run) => run.events);
  assert.ok(new Set(events.map((event) => event.type)).size >= 18, "the runs bring out many kinds of events");
  mkdirSync(here("../../out/types"), { recursive: true });
  const results = outcome.map(({ result: { error, ...result } }) => result);
  writeFileSync(here("../../out/types/trace.ts"), [
    'import type { AgentEvent, AgentMessage, AgentResult } from "turnwheel";',
    `export const events: AgentEvent[] = ${JSON.stringify(events, null, 1)};`,
    `export const results: AgentResult[] = ${JSON.stringify(results, null, 1)};`,
    `export const messages: AgentMessage[] = ${JSON.stringify(outcome.flatMap((run) => run.result.messages), null, 1)};`,
  ].join("\n"));
  writeFileSync(here("../../out/types/contract.ts"), contract());
  writeFileSync(here("../../out/types/api.ts"), theContract());
  writeFileSync(here("../../out/types/examples.ts"), examples());
  await compiles("tsconfig.json");
  // docs/hosts.md names the oldest compiler.
  await compiles("tsconfig.oldest.json", "typescript-oldest");
});

test("tsc agrees: tools of the AI SDK are taken as they are", () => compiles("tsconfig.ai-sdk.json"));

test("tsc agrees: what a page has is enough", () => compiles("tsconfig.web.json"));

test("tsc agrees: what a server has is enough", () => compiles("tsconfig.server.json"));

/** @param {string} project @param {string} [compiler] */
async function compiles(project, compiler = "typescript") {
  const output = await promisify(execFile)(process.execPath, [here(`../../../node_modules/${compiler}/bin/tsc`), "--project", here(project)]).catch((error) => error);
  assert.equal(output.stdout, "");
  assert.equal(output.stderr, "");
}

/**
 * The modules whose examples are compiled, by import name; those of `turnwheel/react` are JSX.
 * @type {[string, string][]}
 */
const COMPILED = [["index", "turnwheel"], ...["slim", "stores", "server", "remote", "tabs", "mcp", "local", "ai-sdk", "ag-ui", "otel", "inspector", "tape", "cloudflare"].map((name) => /** @type {[string, string]} */ ([name, `turnwheel/${name}`]))];

/** The examples that editors show, each in a function of its own, with declarations for what they assume. */
function examples() {
  const lines = [];
  const found = [];
  const known = new Set();
  for (const [file, from] of COMPILED) {
    const text = readFileSync(here(`../../../www/npm/${file}.d.ts`), "utf8");
    const fresh = namesOf(text).filter((name) => !known.has(name) && known.add(name));
    lines.push(`import { ${fresh.join(", ")} } from "${from}";`);
    for (const [, example = ""] of text.matchAll(/@example\n((?:[ \t]*\*(?!\/)(?! @).*\n)+)/g)) found.push(example.replace(/^[ \t]*\* ?/gm, ""));
  }
  assert.ok(found.length > 80, `${found.length} examples`);
  lines.push(readFileSync(here("examples.prelude.ts"), "utf8"));
  found.forEach((text, i) => lines.push(`export async function* example${i}(): any {\n${text.replace(/^import .*\n/gm, "").replace(/^export default /gm, "const exported: { fetch(request: Request): unknown } = ").replace(/^export /gm, "")}}\n`));
  return lines.join("\n");
}

/**
 * What our types add to the contract, textually, so that everything else must match in both directions.
 * @type {[string, RegExp, any][]}
 */
const ADDED = [
  ["of two unique symbols neither fits the other", /^export declare const CANCELLED: unique symbol;$/m, 'import { CANCELLED, type AgentEvent as OwnEvent, type Question, type RawBlock, type RunInfo, type ToolAnswer, type ToolQuestion, type ToolQuestionInput, type Transfer, type TransformInfo, type WrappedModelCall, type WrappedToolCall } from "turnwheel";\nexport { CANCELLED };'],
  ["what only its provider understands", /(interface AssistantMessage .*)\| ToolCallBlock\)\[\]/, "$1| ToolCallBlock | RawBlock)[]"],
  ["a tool may be answered elsewhere", /^  execute\(args: Args, context: ToolContext\)/m, "  execute?(args: Args, context: ToolContext)"],
  ["a tool hands over", /^(export type ToolOutput = .*);$/m, "$1 | Transfer;"],
  ["how much is cached", /overflowSignal: boolean(, signal: AbortSignal)?\) => (Promise<)?TransformResult/g, "overflowSignal: boolean$1, info: TransformInfo) => $2TransformResult"],
  ["what a transformer or an engine gives may be readonly, as what it got", /(type TransformResult = void \| )(AgentMessage\[\] \| \{ messages: )(AgentMessage)/, "$1readonly $2readonly $3"],
  ["so may the history of a compaction", /(Promise<\{ messages: )(AgentMessage\[\]; report)/, "$1readonly $2"],
  ["a question has an id", /pendingApprovals: ToolCallBlock\[\]/, "pendingApprovals: ToolQuestion[]; pendingQuestions?: Question[]"],
  ["a tool may ask a person", /(interface ToolContext \{)/, "$1 ask(question: ToolQuestionInput): Promise<ToolAnswer>;"],
  ["a question has an id, and was asked at some time", /(type: "tool_approval_requested"; )(callId: string; toolName: string; arguments: \{[^}]*\})/, "$1id: string; $2; askedAt: number"],
  ["the answer names it", /(type: "tool_approval_resolved"; )/, "$1id: string; "],
  ["an answer that is refused may have named one", /(type: "command_refused"; )/, "$1id?: string; "],
  ["a person is asked about other things too", /(\| \{ type: "command_refused")/, '| Extract<OwnEvent, { type: "question_asked" | "question_resolved" | "budget" | "history_rewound" }> $1'],
  ["a result may have files", /\(TextBlock \| ImageBlock\)\[\]/g, "(TextBlock | ImageBlock | FileBlock)[]"],
  ["a message may be lost", /("run_ended" \| "disposed")/, '$1 | "lost"'],
  ["an approver is asked a question", /(interface ApprovalRequest \{ )/, "$1id: string; "],
  ["a decision may come early", /(interface AgentLoopConfig \{)/, '$1\n  earlyDecisions?: "park" | "refuse";'],
  ["a message may say that it waits for the whole batch, so an agent may", /(steering\?: \{ when\?: "after_tool" \| "immediate")/, '$1 | "after_batch"'],
  ["what an environment gives may not be there, for exactOptionalPropertyTypes", /(apiKey\?: string \| \(\(\) [^;]*|signal\?: AbortSignal)(?=; )/g, "$1 | undefined"],
  ["what begins or ends says when", /(type: "(?:agent|turn|message|tool_execution)_(?:start|end)"|type: "run_resumed")/g, "$1; at: number"],
  ["a tool knows its run", /(interface ToolContext \{.*sessionId: string;)/, "$1 turnIndex: number; metadata?: NonNullable<RunInfo[\"metadata\"]>;"],
  ["an approver knows the run", /(interface ApprovalRequest \{.*)runId: string \}/, '$1runId: string; sessionId: string; turnIndex: number; metadata?: NonNullable<RunInfo["metadata"]> }'],
  ["a policy knows the run", /interface PolicyContext \{ runId: string; turnIndex: number; /, "interface PolicyContext extends RunInfo { "],
  ["a policy knows the run, at a call too", /preDispatch\?: \(\(call: \{/, "preDispatch?: ((call: RunInfo & {"],
  ["hooks know the run", /(Inference|ToolExecution|onError)\?\(context: \{ runId: string; (?:turnIndex: number; )?/g, "$1?(context: RunInfo & { "],
  ["the end of an attempt", /(afterInference\?\(context: RunInfo & \{ )/, "$1attempt: number; "],
  ["a stream knows the run", /context: \{ signal: AbortSignal; runId: string \}/, "context: RunInfo & { signal: AbortSignal }"],
  ["a key is asked for a run", /apiKey\?: string \| \(\(\) =>/, "apiKey?: string | ((run: RunInfo) =>"],
  ["keys, queues, prompts are asked for a run", /(getApiKey\?: \(provider: string|getSteeringMessages\?: \(|getFollowUpMessages\?: \(|dynamicSystemPrompt\?: \()\)/g, (/** @type {string} */ _, /** @type {string} */ head) => `${head}${head.endsWith("(") ? "" : ", "}run: RunInfo)`],
  ["so are messages, retries, groups, texts, compactions, approvals", /(convertToLlm\?: \(message: AgentMessage|error: ErrorInfo, attempt: number|\(\(calls: ToolCallBlock\[\]|model: Model, signal: AbortSignal|requiresApproval\?: boolean \| \(\(args: Args)\)/g, "$1, run: RunInfo)"],
  ["a text for a result is made for a run", /\(call: ToolCallBlock, detail\?: string\)/, "(call: ToolCallBlock, detail: string, run: RunInfo)"],
  ["what stands around execution", /(interface AgentLoopConfig \{)/, "$1\n  wrapTool?: (call: WrappedToolCall, next: () => Promise<unknown>) => unknown;\n  wrapModel?: (call: WrappedModelCall, next: () => Promise<AssistantMessage | undefined>) => unknown;"],
  ["an agent has a session", /(export declare class Agent [^{]*\{)/, "$1\n  readonly sessionId: string;"],
  ["what a host may stream", /\| \{ type: "text_end" \| "tool_call_end"; contentIndex: number \}/, '| { type: "text_end"; contentIndex: number; signature?: string } | { type: "tool_call_end"; contentIndex: number; metadata?: { [name: string]: JsonValue } } | { type: "raw"; contentIndex: number; data: JsonValue } | ({ type: "usage" } & Partial<Usage>) | { type: "ping" }'],
  ["a thought may be redacted", /(type: "thinking_end"; contentIndex: number; signature\?: string)/, "$1; redacted?: boolean"],
  ["an image may be elsewhere", /^export interface ImageBlock \{.*\}$/m, 'export type ImageBlock = { type: "image"; mimeType: string; data: string; url?: never } | { type: "image"; url: string; mimeType?: string; data?: never };'],
  ["so may a file", /^export interface FileBlock \{.*\}$/m, 'export type FileBlock = { type: "file"; mimeType: string; name?: string } & ({ data: string; url?: never } | { url: string; data?: never });'],
  ["of tools in a record something is known", /tools\?: ToolDefinition\[\] \| \{ \[name: string\]: unknown \};/, 'tools?: ToolDefinition[] | { [name: string]: import("turnwheel").RecordTool };'],
  ["libraries declare it so, for exactOptionalPropertyTypes", /readonly types\?: \{ input: unknown; output: Output \}/, "readonly types?: { readonly input: unknown; readonly output: Output } | undefined"],
];

/** The contract, with these additions. */
function theContract() {
  const text = readFileSync(here("api.d.ts"), "utf8").replace(/^export (class|function|const)/gm, "export declare $1");
  if (!/^  toResponse\(/m.test(declared)) ADDED.push(["not built yet", /^  to(UIMessageStream)?Response\(.*\n/gm, ""]);
  return ADDED.reduce((made, [why, from, to]) => {
    assert.match(made, from, why);
    return made.replace(from, to);
  }, text);
}

/**
 * What users receive and never create, so our types may have more members. Functions may also accept more.
 */
const GIVEN = ["AgentRun", "Agent"];

/** Lines that only compile if each name in the contract matches ours, and the other way round. */
function contract() {
  const lines = ['import type * as Api from "./api.ts";', 'import type * as Own from "turnwheel";'];
  for (const [, kind, name = ""] of readFileSync(here("api.d.ts"), "utf8").matchAll(/^export (class|interface|type|function|const) (\w+)/gm)) {
    // `tool` has another form, which usage.ts tests; generic types are compared with their defaults.
    if (name === "CANCELLED" || name === "tool") continue;
    const value = kind === "function" ? "typeof " : "";
    if (!value && !GIVEN.includes(name)) lines.push(`export const in_${name}: Own.${name} = null! as Api.${name};`);
    lines.push(`export const out_${name}: ${value}Api.${name} = null! as ${value}Own.${name};`);
  }
  return lines.join("\n");
}

test("what is declared is there, and what is there is declared", () => {
  const values = [...new Set([...declared.matchAll(/^export (?:class|const|function) (\w+)/gm)].map(([, name]) => name))];
  assert.deepEqual(Object.keys(turnwheel).sort(), values.sort());
});

test("the stores are declared as they are, each with a word and an example", async () => {
  const text = readFileSync(here("../../../www/npm/stores.d.ts"), "utf8");
  const names = [...text.matchAll(/^export (interface|type|function) (\w+)/gm)];
  assert.deepEqual(Object.keys(await import("../../../pkg/stores.js")).sort(), names.filter(([, kind]) => kind === "function").map(([, , name]) => name).sort());
  assert.equal(text.match(/@example/g)?.length, names.length);
});

for (const entry of ["remote", "server", "tabs", "ai-sdk", "ag-ui", "otel", "inspector"]) {
  test(`turnwheel/${entry} is declared as it is, each name with a word and an example`, async () => {
    const text = readFileSync(here(`../../../www/npm/${entry}.d.ts`), "utf8");
    const values = [...text.matchAll(/^export (?:(?:class|function) |\{ )(\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(await import(`../../../pkg/${entry}.js`)).sort(), values.sort());
    const names = [...text.matchAll(/^export (?:class|interface|type|function) (\w+)/gm)].map(([, name]) => /** @type {string} */ (name));
    for (const name of names) {
      const comment = text.slice(0, text.search(new RegExp(`^export \\w+ ${name}\\b`, "m"))).match(/\/\*\*((?!\*\/)[^])*\*\/\s*$/)?.[0];
      assert.match(comment ?? "", /@example/, `${name} has an example`);
    }
  });
}

test("the usage file uses every export, and every export has a word and an example", () => {
  const usage = ["usage", "tools"].map((file) => readFileSync(here(`${file}.ts`), "utf8")).join("\n");
  for (const name of exported) {
    assert.ok(new RegExp(`\\b${name}\\b`).test(usage), `${name} is used`);
    const comment = declared.slice(0, declared.search(new RegExp(`^export \\w+ ${name}\\b`, "m"))).match(/\/\*\*((?!\*\/)[^])*\*\/\s*$/)?.[0];
    assert.match(comment ?? "", /@example/, `${name} has an example`);
  }
});

test("every option and member that editors list has a word", () => {
  for (const name of ["AgentLoopConfig", "AgentOptions", "ToolDefinition", "ToolContext", "ProviderOptions", "Compat", "AgentRun", "Agent", "AgentError", "ErrorInfo"]) {
    const [, body = ""] = declared.match(new RegExp(`^export (?:class|interface|type) ${name}\\b.*\\{\\n([^]*?)^\\}`, "m")) ?? [];
    const bare = body.split("\n").filter((line, i, lines) => /^ {2}[\w[]/.test(line) && !/^ {2}(constructor|code: ErrorKind|message: string)/.test(line) && !/\*\/$/.test(lines[i - 1] ?? ""));
    assert.ok(body.length > 0, name);
    assert.deepEqual(bare, [], name);
  }
});
