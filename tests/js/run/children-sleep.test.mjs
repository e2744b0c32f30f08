// A family three levels deep that is put to sleep at every event: agents at once, a budget that asks, calls that are asked
// about and tools that ask. tests/children_sleep.rs plays the same natively.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, custom, settle, subagent, tool } from "../kit.mjs";

const USED = { input: 10, output: 5, total: 15 };

/** A model that asks for these calls first, and then repeats what came of them. */
const plan = (callsFor) => custom("plan", async function* ({ messages }) {
  const last = messages.findLastIndex(({ role }) => role === "user");
  const results = messages.slice(last).filter(({ role }) => role === "tool_result");
  if (results.length > 0) {
    const delta = results.map(({ content }) => content[0].text).join("+");
    yield* [{ type: "text_start", contentIndex: 0 }, { type: "text_delta", contentIndex: 0, delta }, { type: "text_end", contentIndex: 0 }];
    yield { type: "done", stopReason: "stop", usage: USED };
    return;
  }
  for (const [index, [callId, toolName, prompt]] of callsFor(messages[last].content[0].text).entries()) {
    yield { type: "tool_call_start", contentIndex: index, callId, toolName };
    yield { type: "tool_call_delta", contentIndex: index, delta: JSON.stringify({ prompt }) };
    yield { type: "tool_call_end", contentIndex: index };
  }
  yield { type: "done", stopReason: "tool_use", usage: USED };
});

const parameters = { type: "object", properties: { prompt: { type: "string" } } };

/** The root calls two agents at once, each calls another, each of those works and asks. */
function options(done, budget) {
  const streamOptions = { maxTokens: 20 };
  const work = tool({
    name: "work", description: "", requiresApproval: true, idempotent: true, parameters,
    execute({ prompt }) {
      done.push(prompt);
      return `did ${prompt}`;
    },
  });
  const ask = tool({
    name: "ask", description: "", idempotent: true, parameters,
    async execute({ prompt }, context) {
      const { action, content } = await context.ask({ message: "Which?", schema: { type: "object" } });
      return `${action} ${content?.n} for ${prompt}`;
    },
  });
  const leaf = () => new Agent({ model: plan((prompt) => [["w", "work", prompt], ["q", "ask", prompt]]), tools: [work, ask], streamOptions });
  const mid = () => new Agent({ model: plan((prompt) => [["k", "leaf", prompt]]), tools: [subagent({ name: "leaf", description: "", agent: leaf })], streamOptions });
  return { model: plan(() => [["c1", "mid", "a"], ["c2", "mid", "b"]]), tools: [subagent({ name: "mid", description: "", agent: mid })], streamOptions, budget };
}

const answerTo = (kind) => (kind === "tool" ? "approve" : kind === "budget" ? { raise: { tokens: 1_000 } } : { action: "accept", content: { n: 1 } });

/** Answers everything that is asked, each question once. */
function answering(agent, seen) {
  const answer = ({ id, kind = "tool" }) => {
    if (seen.has(id)) return;
    seen.add(id);
    assert.equal(agent.resolve(id, answerTo(kind)), true, `${id} is open`);
    assert.equal(agent.resolve(id, answerTo(kind)), false, "an answer counts once");
  };
  return (event) => {
    if (event.type === "tool_approval_requested" || event.type === "question_asked") answer(event);
    if (event.type === "run_resumed") for (const question of [...event.pendingApprovals, ...(event.pendingQuestions ?? [])]) answer(question);
  };
}

const innermost = (event) => (event.type === "subagent_event" ? event.event : event);
const pathOf = (event) => (event.type === "subagent_event" ? event.path.join("/") : "");

/** Plays it with an end of the process after each event, with people before it and without. */
async function sleepEverywhere(budget, check) {
  // Whole, so that everything is loaded.
  const whole = new Agent(options([], budget));
  whole.subscribe(answering(whole, new Set()));
  await whole.prompt("Go.");
  for (const answersBefore of [true, false]) {
    let kills = 0;
    for (let kill = 0; ; kill++) {
      const done = [];
      const begun = new Set();
      const first = new Agent(options(done, budget));
      const answer = answering(first, new Set());
      let seen = 0;
      let isOver = false;
      let checkpoint;
      /** @type {string[]} */
      let before = [];
      const isBegun = (event) => innermost(event).type === "tool_execution_start" && begun.add(`${pathOf(event)}/${innermost(event).callId}`);
      first.subscribe((event) => {
        if (checkpoint || isOver) return;
        isBegun(event);
        if (answersBefore) answer(event);
        if (seen++ !== kill) return;
        checkpoint = JSON.stringify(first.checkpoint());
        before = [...done];
      });
      const run = first.prompt("Go.", { runId: "r" });
      for (let i = 0; i < 60 && !checkpoint; i++) await settle();
      // The process ends here: nothing of it is heard any more.
      isOver = true;
      first.abort();
      await run;
      if (!checkpoint) break;
      kills++;
      done.splice(0, done.length, ...before);
      const again = await Agent.restore(checkpoint, options(done, budget));
      if (!again.canContinue) continue;
      const events = [];
      again.subscribe((event) => {
        events.push(event);
        isBegun(event);
      });
      again.subscribe(answering(again, new Set()));
      const where = () => `${answersBefore ? "decided" : "asked"}, killed after event ${kill}: ${events.map((event) => `${pathOf(event)} ${innermost(event).type}`).join(", ")}`;
      const hang = async () => {
        for (let i = 0; i < 800; i++) await settle();
        assert.fail(`it hangs: ${where()}`);
      };
      const result = await Promise.race([again.continue({ runId: "r" }), hang()]);
      check({ result, done, begun, where });
    }
    assert.ok(kills > 25, String(kills));
  }
}

test("with a budget that asks, nothing is lost or done twice", async () => {
  await sleepEverywhere({ tokens: 120, onExceed: "ask" }, ({ result, done, begun, where }) => {
    assert.equal(result.error, undefined, where());
    assert.equal(result.text, "did a+accept 1 for a+did b+accept 1 for b", where());
    assert.deepEqual([...done].sort(), ["a", "b"], where());
    assert.equal(begun.size, 8, where());
  });
});

test("what agents inside ask stays open if a process ends before they go on", async () => {
  const given = () => options([]);
  const openIn = (agent) => [...agent.pendingApprovals, ...agent.pendingQuestions].map(({ id, path }) => `${path.join("/")} ${id}`).sort();
  const first = new Agent(given());
  let checkpoint = "";
  first.subscribe(() => void (checkpoint = JSON.stringify(first.checkpoint())));
  first.prompt("Go.", { runId: "r" });
  for (let i = 0; i < 200 && openIn(first).length < 4; i++) await settle();
  assert.equal(openIn(first).length, 4);
  const open = openIn(await Agent.restore(checkpoint, given()));
  assert.equal(open.length, 4);
  // The next process ends before the two calls begin again, as it may with letters that wait.
  const [own, ...inside] = checkpoint.split('"children":');
  const begun = own.replaceAll('"status":"running"', '"status":"ready","announced":true').replace('"ready":[]', '"ready":[0,1]');
  const later = [begun, ...inside].join('"children":');
  assert.match(begun, /"announced":true.*"announced":true/);
  assert.deepEqual(openIn(await Agent.restore(later, given())), open);
});

test("no more calls begin than a budget allows, however often it sleeps", async () => {
  for (const toolCalls of [3, 5]) {
    await sleepEverywhere({ toolCalls }, ({ result, done, begun, where }) => {
      assert.equal(begun.size, toolCalls, where());
      assert.equal(new Set(done).size, done.length, where());
      assert.equal(result.error, undefined, where());
    });
  }
});
