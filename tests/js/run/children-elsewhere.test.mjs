// Agents inside agents where the agent is elsewhere, or what it says goes somewhere: a client of a server that starts again, a
// React page, UI and AG-UI streams of a run that goes on and is stopped. No part stays open.
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { toAGUI } from "../../../pkg/ag-ui.js";
import { AgentStore } from "../../../pkg/react-store.js";
import { RemoteAgent } from "../../../pkg/remote.js";
import { agentHandler } from "../../../pkg/server.js";
import { CLIENTS, refusal } from "../ag-ui/verify.mjs";
import { Agent, call, scripted, settle, subagent, testTool } from "../kit.mjs";

/** A boss calls two clerks at once; each has a call that is asked about, and a tool that asks. */
function options(more = {}) {
  const pay = testTool("pay", () => "paid", { requiresApproval: true, idempotent: true });
  const ask = testTool("ask", async (_, context) => (await context.ask({ message: "Which?", schema: { type: "object" } })).action, { idempotent: true });
  const inner = () => new Agent({ model: again(call("pay", "ask"), "Inner."), tools: [pay, ask] });
  const middle = () => new Agent({ model: again(call(["inner", { prompt: "x" }]), "Middle."), tools: [subagent({ name: "inner", description: "", agent: inner })] });
  return { model: again(call(["middle", { prompt: "x" }], ["middle", { prompt: "y" }]), "Done."), tools: [subagent({ name: "middle", description: "", agent: middle })], ...more };
}

/** A scripted model that goes on after a restore: it answers the results in words. */
const again = (calls, text) => {
  const [one, two] = [scripted([calls, text, text, text]), scripted([text, text, text])];
  return { provider: "x", id: "x", streamFn: (request, context) => (request.messages.some(({ role }) => role === "tool_result") ? two : one).streamFn(request, context) };
};

const answers = { tool: "approve", elicitation: { action: "accept", content: {} } };

/** All that the responses of a run say: one ends where people alone are waited for, and the next goes on. */
async function responses(run) {
  let text = "";
  do text += await run.toUIMessageStreamResponse().text();
  while (/"finishReason":"tool-calls"\}\s+data: \[DONE\]\s+$/.test(text) && (await new Promise((resolve) => run.result.then(() => resolve(true)))));
  return text;
}

async function open(agent, count) {
  for (let i = 0; i < 600 && agent.pendingQuestions.length < count; i++) await settle();
  assert.equal(agent.pendingQuestions.length, count);
  return agent.pendingQuestions;
}

// Whole first, so that everything is loaded: what follows counts turns of the event loop.
before(async () => {
  const whole = new Agent(options());
  whole.subscribe((event) => (event.type === "tool_approval_requested" || event.type === "question_asked") && whole.resolve(event.id, answers[event.kind ?? "tool"]));
  await whole.prompt("Go.");
});

/** A checkpoint in the middle: all are asked. */
async function sleeping() {
  const first = new Agent(options());
  const run = first.prompt("Go.", { runId: "r" });
  await open(first, 2);
  const checkpoint = JSON.stringify(first.checkpoint());
  first.abort();
  await run;
  return checkpoint;
}

const stops = { abort: (agent) => agent.abort("enough"), steer: (agent) => void agent.steer("Leave it."), dispose: (agent) => agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")](), answer: () => {} };

for (const [name, stop] of Object.entries(stops)) {
  for (const isAnswered of [true, false]) {
    test(`AG-UI and UI streams of a restored family: ${name}, ${isAnswered ? "at once" : "once it has gone on"}`, async () => {
      for (const to of ["agui", "ui"]) {
        const agent = await Agent.restore(await sleeping(), options());
        const seen = new Set();
        const answer = ({ id, kind = "tool" }) => !seen.has(id) && (seen.add(id), agent.resolve(id, answers[kind]));
        if (name === "answer" || name === "steer") agent.subscribe((event) => {
          if (event.type === "run_resumed") [...event.pendingApprovals, ...(event.pendingQuestions ?? [])].forEach(answer);
          if (event.type === "tool_approval_requested" || event.type === "question_asked") answer(event);
        });
        const run = agent.continue({ runId: "r" });
        const reading = to === "agui" ? (async () => { const all = []; for await (const event of toAGUI(run)) all.push(event); return all; })() : responses(run);
        if (!isAnswered) for (let i = 0; i < 8; i++) await settle();
        stop(agent);
        await run;
        const said = await reading;
        if (to === "agui") for (const [version, verify, schemas] of CLIENTS) assert.equal(await refusal(said, verify, schemas), "", `@ag-ui/client ${version}`);
        else {
          const parts = said.split("\n").filter((line) => line.startsWith("data: {")).map((line) => JSON.parse(line.slice(6)));
          const opened = new Map();
          for (const part of parts) {
            const key = `${part.type.replace(/-(start|delta|end|available|error|delta)$/, "")} ${part.id ?? part.toolCallId ?? ""}`;
            if (/^(text|reasoning)-start$/.test(part.type)) opened.set(key, part);
            if (/^(text|reasoning)-end$/.test(part.type)) opened.delete(key);
            if (part.type === "data-question") part.data.state === "open" ? opened.set(part.id, part) : opened.delete(part.id);
            if (/^tool-(input-start|input-available|approval-request)/.test(part.type)) opened.set(part.toolCallId, part);
            if (/^tool-output|^tool-input-error/.test(part.type)) opened.delete(part.toolCallId);
            if (part.type === "start-step") opened.set("step", part);
            if (part.type === "finish-step") opened.delete("step");
          }
          assert.deepEqual([...opened.values()], [], `${name} ${parts.map(({ type }) => type).join(" ")}`);
        }
        assert.deepEqual(agent.pendingQuestions, []);
      }
    });
  }
}

test("a client answers what a family asks, over a start of the server in between", async () => {
  let agent = new Agent(options());
  let handler = agentHandler(agent);
  const client = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
  const run = client.prompt("Go.", { runId: "r" });
  const [one] = await open(client, 2);
  assert.deepEqual(one.path, ["c1", "c1"]);
  const checkpoint = JSON.stringify(agent.checkpoint());
  agent[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
  agent = await Agent.restore(checkpoint, options());
  handler = agentHandler(agent);
  await run.result.catch(() => {});
  const second = new RemoteAgent({ url: "http://a.localhost/x", fetch: (url, init) => handler(new Request(url, init)) });
  const heard = [];
  second.subscribe((event) => heard.push(event));
  const goesOn = agent.continue({ runId: "r" });
  const asked = await open(second, 2);
  assert.deepEqual(new Set(asked.map(({ id }) => id)), new Set(agent.pendingQuestions.map(({ id }) => id)));
  for (const { id, kind } of asked) await second.resolve(id, answers[kind]);
  for (const { id, kind } of await open(second, 2)) {
    assert.equal(kind, "elicitation");
    await second.resolve(id, answers[kind]);
    await assert.rejects(async () => second.resolve(id, answers[kind]));
  }
  assert.equal((await goesOn).text, "Done.");
  for (let i = 0; i < 50; i++) await settle();
  assert.deepEqual(second.pendingQuestions, []);
  for (const one of [client, second]) one[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
});

for (const [name, stop] of Object.entries(stops)) {
  test(`a page shows nothing as open after a family was restored, and then: ${name}`, async () => {
    const agent = await Agent.restore(await sleeping(), options());
    const store = new AgentStore(agent, { schedule: (work) => (queueMicrotask(work), () => {}) });
    const leave = store.subscribe(() => {});
    const view = () => store.getSnapshot();
    assert.equal(view().pendingQuestions.length, 2);
    if (name === "answer" || name === "steer") agent.subscribe((event) => {
      for (const { id, kind = "tool" } of event.type === "run_resumed" ? event.pendingApprovals : event.type === "tool_approval_requested" || event.type === "question_asked" ? [event] : []) agent.resolve(id, answers[kind]);
    });
    const run = agent.continue({ runId: "r" });
    stop(agent);
    await run;
    await settle();
    assert.deepEqual(view().pendingQuestions, []);
    assert.deepEqual(view().pendingApprovals, []);
    assert.ok(!/"(running|pending|streaming|asks)"/.test(JSON.stringify({ ...view(), agent: 0 }, (key, value) => (key === "status" || key === "state" ? value : value))), JSON.stringify(view()).slice(0, 2000));
    leave();
  });
}
