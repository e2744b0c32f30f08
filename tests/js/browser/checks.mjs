// @ts-check
// The checks of the package in a page and in a web worker: the same in both. Served beside pkg/, run by
// page.mjs and worker.mjs, started by package.mjs.

import { checkTrace } from "/tests/js/grammar.mjs";
import { Agent, AgentError, agentLoop, openaiCompatible, scripted, tool } from "/pkg/entry/web.js";

const KEY = "sk-browser-0123456789";

/** @param {unknown} holds @param {string} what */
function assert(holds, what) {
  if (!holds) throw new Error(what);
}

/** @param {any} actual @param {any} expected @param {string} [what] */
function equal(actual, expected, what = "") {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} expected ${b}, got ${a}`);
}

/** @param {any} run */
async function readRun(run) {
  /** @type {any[]} */
  const events = [];
  for await (const event of run) events.push(event);
  checkTrace(events);
  const result = await run;
  assert(!JSON.stringify([events, result, String(result.error)]).includes(KEY), "the key is shown");
  return { events, result, all: (/** @type {string} */ type) => events.filter((event) => event.type === type) };
}

/**
 * @param {{ models: string, closed: string, nobody: string }} at the addresses of a server that allows calls from
 *   anywhere, of one that does not, and of none
 */
export function checks(at) {
  const model = (/** @type {string} */ name, /** @type {any} */ options) => openaiCompatible("m", { baseUrl: `${at.models}/${name}/v1`, apiKey: KEY, ...options });

  /** @type {Record<string, () => Promise<void>>} */
  const all = {
    async "a text over HTTP, in odd cuts"() {
      const { result, all } = await readRun(new Agent({ model: model("unicode") }).prompt("Hello"));
      assert(result.text.length > 10 && !result.text.includes("\ufffd"), `the text is whole: ${result.text}`);
      equal(all("message_update").filter((event) => event.delta.type === "text").map((event) => event.delta.delta).join(""), result.text);
      assert(result.usage.total > 0, "the usage is told");
    },

    async "no redirect is followed, not even within its origin"() {
      const { result } = await readRun(new Agent({ model: model("redirected") }).prompt("Hello"));
      equal([result.text, result.error?.code, result.error?.message.includes("a page is not told where to")], ["", "invalid_request", true]);
    },

    async "two tools at once over HTTP, then the answer"() {
      let running = 0;
      let most = 0;
      const execute = async (/** @type {any} */ args) => {
        most = Math.max(most, ++running);
        await new Promise((resolve) => setTimeout(resolve));
        running -= 1;
        return args;
      };
      const tools = ["a", "b"].map((name) => tool({ name, description: "", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, execute }));
      const { result } = await readRun(new Agent({ model: model("tools"), tools }).prompt("Go"));
      equal([result.text, result.turns, most], ["both are done", 2, 2]);
    },

    async "arguments grow while they arrive"() {
      const agent = new Agent({ model: model("arguments"), tools: [tool({ name: "write", description: "", parameters: { type: "object" }, execute: () => "written" })], maxTurns: 1 });
      const run = agent.prompt("Go");
      const lengths = /** @type {number[]} */ ([]);
      agent.subscribe((event) => {
        if (event.type === "message_update" && event.delta.type === "tool_call") lengths.push(/** @type {any} */ (run.partialArguments(event.delta.callId))?.text?.length ?? 0);
      });
      await run;
      assert(lengths.length > 3 && lengths.every((length, i) => i === 0 || length >= (lengths[i - 1] ?? 0)) && lengths.at(-1) === 40, String(lengths));
    },

    async "an abort in mid-stream frees the connection"() {
      const agent = new Agent({ model: model("silent") });
      const run = agent.prompt("Go");
      agent.subscribe((event) => { if (event.type === "message_update") run.abort("enough"); });
      const { result } = await readRun(run);
      equal([result.stopReason, result.text], ["aborted", "half "]);
      const response = await fetch(`${at.models}/closed`, { method: "POST", body: "silent" });
      equal(await response.text(), "left");
    },

    async "a signal and the leaving of the loop stop a run"() {
      const controller = new AbortController();
      const first = new Agent({ model: model("silent-too") }).prompt("Go", { signal: controller.signal });
      for await (const event of first) if (event.type === "message_update") controller.abort();
      equal((await first).stopReason, "aborted");
      const second = agentLoop(["Go"], { model: model("silent-three") });
      for await (const event of second) if (event.type === "message_update") break;
      equal((await second).stopReason, "aborted");
    },

    async "a server that refuses calls from pages: the text says what it may be and what to set"() {
      const { result } = await readRun(new Agent({ model: openaiCompatible("m", { baseUrl: `${at.closed}/v1`, apiKey: KEY }), retry: { maxAttempts: 1 } }).prompt("Hello"));
      const { message, code, cause } = result.error;
      equal(code, "network");
      for (const word of [new URL(at.closed).host, "CORS", location.origin, "Either nothing is reachable there", "--cors-origins"]) assert(message.includes(word), `${word} in: ${message}`);
      assert(cause instanceof TypeError, "the cause is what fetch threw");
    },

    async "nobody at the address reads the same: a page cannot tell"() {
      const { result } = await readRun(new Agent({ model: openaiCompatible("m", { baseUrl: `${at.nobody}/v1` }), retry: { maxAttempts: 1 } }).prompt("Hello"));
      assert(result.error.message.includes("CORS"), result.error.message);
    },

    async "a refused key ends the run with the server's words"() {
      const { result } = await readRun(new Agent({ model: model("refused") }).prompt("Hello"));
      equal([result.error.code, AgentError.isInstance(result.error), result.error.info.provider.status], ["auth", true, 401]);
      assert(/Incorrect API key/.test(result.error.message), result.error.message);
    },

    async "a server that asks for patience gets it"() {
      const slept = /** @type {number[]} */ ([]);
      const host = { sleep: async (/** @type {number} */ ms) => void slept.push(ms) };
      const { result } = await readRun(new Agent({ model: model("patience"), host }).prompt("Hello"));
      equal([result.text, slept], ["here I am", [3000]]);
    },

    async "a stream that breaks is taken back and asked for again"() {
      const host = { sleep: async () => {} };
      const agent = new Agent({ model: model("broken"), host });
      // A browser discards unread data when a connection breaks, so the server waits until it is read.
      const stop = agent.subscribe((event) => {
        if (event.type === "message_update") (stop(), void fetch(`${at.models}/read`, { method: "POST" }));
      });
      const { result, all } = await readRun(agent.prompt("Hello"));
      equal([result.text, all("message_reset").length, all("retry_attempt")[0]?.error.code], ["one two", 1, "network"]);
    },

    async "steering, follow-up and the state of the agent"() {
      const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "stuck" }] }, "as you wish", "and more"]), tools: [tool({ name: "stuck", description: "", parameters: { type: "object" }, execute: () => new Promise(() => {}) })], steering: { when: "immediate" } });
      const run = agent.prompt("Go");
      const follow = agent.followUp("more");
      agent.subscribe((event) => { if (event.type === "tool_execution_start") agent.steer("stop"); });
      const { result } = await readRun(run);
      equal([result.text, agent.messages.length, (await follow).delivered, agent.isRunning], ["and more", 7, true, false]);
    },

    async "events can be sent to another thread"() {
      const { port1, port2 } = new MessageChannel();
      const { events } = await readRun(new Agent({ model: scripted(["hi"]) }).prompt("Go"));
      const came = new Promise((resolve) => (port2.onmessage = ({ data }) => resolve(data)));
      port1.postMessage(events);
      equal(await came, events);
      port1.close();
    },

    async "timers run on their own"() {
      const { result } = await readRun(new Agent({ model: scripted([{ error: { code: "network", message: "gone" } }, { text: "back", delayMs: 2 }]), retry: { initialBackoffMs: 2, jitter: false }, timeouts: { totalMs: 60_000 } }).prompt("Go"));
      equal([result.text, result.error?.message], ["back", undefined]);
    },
  };
  return all;
}

/** Runs them one after the other. @param {any} at @param {string} [only] the name of one */
export async function runChecks(at, only) {
  const rows = [];
  for (const [name, check] of Object.entries(checks(at))) {
    if (only !== undefined && name !== only) continue;
    const from = performance.now();
    const tooLong = new Promise((_, reject) => setTimeout(reject, 60_000, "it takes too long"));
    const failure = await Promise.race([check(), tooLong]).then(() => undefined, (error) => `${error}\n${error?.stack ?? ""}`);
    rows.push({ name, failure, ms: Math.round(performance.now() - from) });
  }
  return rows;
}
