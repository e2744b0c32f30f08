// A family three levels deep that is stopped in every way, and put to sleep at every event meanwhile: each agent inside ends
// once, before its call does, and no question stays open.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { Agent, custom, settle, subagent, tool } from "../kit.mjs";

const USED = { input: 10, output: 5, total: 15 };

/** A model that asks for these calls first, and then repeats what came of them. */
const plan = (callsFor) => custom("plan", async function* ({ messages }) {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(last).filter(({ role }) => role === "tool_result");
  const text = messages[last].content[0].text;
  const calls = results.length > 0 || text === "Leave it." ? [] : callsFor(text);
  if (calls.length === 0) {
    const delta = results.map(({ content }) => content[0].text).join("+") || "Well.";
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta }, { type: "text_end", contentIndex: 0 }];
    yield { type: "done", stopReason: "stop", usage: USED };
    return;
  }
  for (const [index, [callId, toolName, prompt]] of calls.entries()) {
    yield { type: "tool_call_start", contentIndex: index, callId, toolName };
    yield { type: "tool_call_delta", contentIndex: index, delta: JSON.stringify({ prompt }) };
    yield { type: "tool_call_end", contentIndex: index };
  }
  yield { type: "done", stopReason: "tool_use", usage: USED };
});

const parameters = { type: "object", properties: { prompt: { type: "string" } } };

/** The root calls two agents at once, each calls another, each of those has a call that is asked about and a tool that asks. */
function options() {
  const work = tool({ name: "work", description: "", requiresApproval: true, idempotent: true, parameters, execute: ({ prompt }) => `did ${prompt}` });
  const ask = tool({
    name: "ask", description: "", idempotent: true, parameters,
    execute: async ({ prompt }, context) => `${(await context.ask({ message: "Which?", schema: { type: "object" } })).action} for ${prompt}`,
  });
  const leaf = () => new Agent({ model: plan((prompt) => [["w", "work", prompt], ["q", "ask", prompt]]), tools: [work, ask] });
  const mid = () => new Agent({ model: plan((prompt) => [["k", "leaf", prompt]]), tools: [subagent({ name: "leaf", description: "", agent: leaf })] });
  return { model: plan(() => [["c1", "mid", "a"], ["c2", "mid", "b"]]), tools: [subagent({ name: "mid", description: "", agent: mid })] };
}

const STOPS = {
  abort: (agent) => agent.abort("enough"),
  steer: (agent) => void agent.steer("Leave it."),
  dispose: (agent) => void agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")](),
};

/** What is wrong with what was heard of a family, over all of its processes. */
function flaw(events) {
  const ended = new Set();
  const asked = new Map();
  const openCalls = new Map();
  for (const event of events) {
    const path = event.type === "subagent_event" ? event.path.join("/") : "";
    const inner = event.type === "subagent_event" ? event.event : event;
    if (ended.has(path)) return `${path} ${inner.type} after its end`;
    const calls = openCalls.get(path) ?? openCalls.set(path, new Set()).get(path);
    if (inner.type === "tool_execution_start") {
      if (calls.has(inner.callId)) return `${path}/${inner.callId} begins twice`;
      calls.add(inner.callId);
    }
    if (inner.type === "tool_execution_end") {
      calls.delete(inner.callId);
      const below = path ? `${path}/${inner.callId}` : inner.callId;
      if (openCalls.has(below) && !ended.has(below)) return `${below} has no end before its call has`;
    }
    if (inner.type === "agent_end") {
      ended.add(path);
      if (calls.size > 0) return `${path} ends with open calls ${[...calls]}`;
    }
    if (event.type === "run_resumed") {
      // What is open from here on.
      const listed = [...event.pendingApprovals, ...(event.pendingQuestions ?? [])].map(({ id }) => id);
      if (new Set(listed).size < listed.length) return "a question is listed twice";
      // What it does not list is closed, and may be told to be; what it lists may be told to be asked.
      for (const [id, state] of asked) if (state === "open") asked.set(id, "closing");
      for (const id of listed) asked.set(id, "listed");
    }
    if (event.type === "tool_approval_requested" || event.type === "question_asked") {
      if (asked.has(event.id) && asked.get(event.id) !== "listed") return `${event.id} is asked twice`;
      asked.set(event.id, "open");
    }
    if (event.type === "tool_approval_resolved" || event.type === "question_resolved") {
      if ((asked.get(event.id) ?? "closed") === "closed") return `${event.id} is closed, and was not open`;
      asked.set(event.id, "closed");
    }
  }
  if (!ended.has("")) return "the run has no end";
  for (const path of openCalls.keys()) if (!ended.has(path)) return `${path} has no end`;
  const still = [...asked].filter(([, state]) => state === "open" || state === "listed");
  return still.length > 0 ? `open at the end: ${still.map(([id]) => id)}` : undefined;
}

const shown = (events) => events.map((e) => (e.type === "subagent_event" ? `${e.path.join("/")}:${e.event.type}` : e.type) + ((e.event ?? e).callId ? `(${(e.event ?? e).callId})` : "")).join("\n");

/** Waits until so many questions are open. */
async function asked(agent, count) {
  for (let i = 0; i < 400 && agent.pendingQuestions.length < count; i++) await settle();
  assert.equal(agent.pendingQuestions.length, count);
}

const hang = async (what) => {
  for (let i = 0; i < 1500; i++) await settle();
  assert.fail(`it hangs: ${what()}`);
};

/** Lets a restored agent end, and checks all that was heard of the family, over both processes. */
async function goOn(checkpoint, before, stop, name) {
  const again = await Agent.restore(checkpoint, options());
  const listed = again.pendingQuestions.map(({ id }) => id);
  assert.equal(new Set(listed).size, listed.length, `${name}: a question is open twice`);
  if (!again.canContinue || before.at(-1).type === "agent_end") return undefined;
  const events = [...before];
  const answer = answering(again);
  again.subscribe((event) => {
    events.push(event);
    if (stop === "answer" || stop === "steer") answer(event);
  });
  const run = again.continue({ runId: "r" });
  if (stop !== "answer") STOPS[stop](again);
  const what = () => `${name}\nBEFORE\n${shown(before)}\nAFTER\n${shown(events.slice(before.length))}`;
  const result = await Promise.race([run, hang(what)]);
  assert.equal(flaw(events), undefined, what());
  assert.deepEqual(again.pendingQuestions, [], name);
  return result;
}

/** Answers everything that is asked, each question once. */
function answering(agent) {
  const seen = new Set();
  return (event) => {
    const isAsked = event.type === "tool_approval_requested" || event.type === "question_asked";
    for (const { id, kind = "tool" } of event.type === "run_resumed" ? [...event.pendingApprovals, ...(event.pendingQuestions ?? [])] : isAsked ? [event] : []) {
      if (!seen.has(id)) agent.resolve(id, kind === "tool" ? "approve" : { action: "accept", content: {} });
      seen.add(id);
    }
  };
}

/**
 * Plays a family in a process that ends after this event of those that count; `act` is called when all are asked. Returns what
 * was heard, and the checkpoint.
 */
async function firstProcess(kill, { act, answers }) {
  const agent = new Agent(options());
  const events = [];
  const answer = answering(agent);
  let isCounted = !act;
  let seen = 0;
  /** @type {{ checkpoint: string, heard: any[] } | undefined} */
  let taken;
  agent.subscribe((event) => {
    events.push(event);
    if (answers && !taken) answer(event);
    if (isCounted && seen++ === kill) taken = { checkpoint: JSON.stringify(agent.checkpoint()), heard: [...events] };
  });
  const run = agent.prompt("Go.", { runId: "r" });
  if (act) {
    await asked(agent, 2);
    isCounted = true;
    act(agent);
  }
  for (let i = 0; i < 60 && !taken; i++) await settle();
  isCounted = false;
  agent.abort();
  await run;
  assert.equal(flaw(events), undefined, `before the end of the process: ${shown(events)}`);
  return taken;
}

// Whole first, so that everything is loaded: what follows counts turns of the event loop.
before(async () => {
  const whole = new Agent(options());
  whole.subscribe(answering(whole));
  await whole.prompt("Go.");
});

for (const [name, act] of Object.entries(STOPS)) {
  test(`${name}: a checkpoint at any moment of the end has the rest of it`, async () => {
    let kill = 0;
    for (let taken; (taken = await firstProcess(kill, { act })); kill++) {
      for (const stop of ["answer", ...Object.keys(STOPS)]) await goOn(taken.checkpoint, taken.heard, stop, `${name}, killed after ${kill} (${shown(taken.heard.slice(-1))}), then ${stop}`);
    }
    assert.ok(kill > 20, String(kill));
  });
}

for (const answers of [true, false]) {
  test(`a family that sleeps ${answers ? "after answers" : "before answers"} ends whole, answered or stopped before it goes on`, async () => {
    let kill = 0;
    for (let taken; (taken = await firstProcess(kill, { answers })); kill++) {
      for (const stop of ["answer", Object.keys(STOPS)[kill % 3]]) {
        const result = await goOn(taken.checkpoint, taken.heard, stop, `killed after ${kill} (${shown(taken.heard.slice(-1))}), then ${stop}`);
        if (result && stop === "answer" && kill > 0) assert.equal(result.usage.total, 150, `killed after ${kill}`);
      }
    }
    assert.ok(kill > 40, String(kill));
  });
}
