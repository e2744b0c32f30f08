// @ts-check
// A host that calls in from the depth of a recursion, with every amount of stack that can be left. A call is refused or
// done; whoever else has a run in the same instance hears nothing of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { getEngine } from "../../../pkg/core.js";
import { Agent, call, custom, deferred, scripted, settle, testTool } from "../kit.mjs";

/**
 * Recurses until the stack is full, then calls `work` from every frame on the way back, until it has succeeded a few
 * times in a row.
 * @param {() => unknown} work
 */
function fromEveryDepth(work) {
  let inARow = 0;
  /** @type {unknown[]} */
  const errors = [];
  const down = () => {
    try {
      down();
    } catch {
      // The stack is full.
    }
    if (inARow > 20) return;
    try {
      work();
      inARow++;
    } catch (error) {
      inARow = 0;
      errors.push(error);
    }
  };
  down();
  return errors;
}

/** A value that is nested as deep as it may be. */
const deep = (levels = 120) => {
  /** @type {any} */
  let value = 1;
  for (let i = 0; i < levels; i++) value = [value];
  return value;
};

/** An agent in the middle of its answer; `finish` lets it come to the end. */
function neighbour() {
  const gate = deferred();
  const agent = new Agent({
    model: custom("m", async function* () {
      yield { type: "text_start", contentIndex: 0 };
      yield { type: "text_delta", contentIndex: 0, delta: "one " };
      await gate.promise;
      yield { type: "text_delta", contentIndex: 0, delta: "two" };
      yield { type: "text_end", contentIndex: 0 };
      yield { type: "done", stopReason: "stop" };
    }),
  });
  const run = agent.prompt("Go");
  return { finish: async () => (gate.resolve(), (await run).text) };
}

/** An agent whose tool runs until it is told to end. */
async function busy() {
  const gate = deferred();
  const begun = deferred();
  const abort = new AbortController();
  const tools = [
    testTool("work", (/** @type {any} */ _, /** @type {any} */ context) => (begun.resolve(context), gate.promise)),
    testTool("ask", () => "asked", { requiresApproval: true }),
  ];
  const agent = new Agent({ model: scripted([call("work"), "done", "again", "and again"]), tools });
  const run = agent.prompt("Go", { signal: abort.signal });
  const iterator = run[Symbol.asyncIterator]();
  return { agent, run, iterator, tools, abort, context: await begun.promise, finish: () => gate.resolve("worked") };
}

/** @typedef {Awaited<ReturnType<typeof busy>>} World */
/** Everything that a host can call at once. @type {Record<string, (world: World) => unknown>} */
const CALLS = {
  "steer": ({ agent }) => agent.steer("left"),
  "steer with a deep message": ({ agent }) => agent.steer(/** @type {any} */ ({ role: "custom", kind: "x", data: deep(), timestamp: 1 })),
  "followUp": ({ agent }) => agent.followUp("more"),
  "clearQueues": ({ agent }) => agent.clearQueues(),
  "resolveTool": ({ agent }) => agent.resolveTool("nobody", { action: "approve", arguments: { a: deep() } }),
  "resolveTools": ({ agent }) => agent.resolveTools({ nobody: "reject" }),
  "a new tool": ({ agent }) => (agent.tools = [testTool("other", () => "", { parameters: { type: "object", default: deep() } })]),
  "a new model": ({ agent }) => (agent.model = scripted(["new"])),
  "a new prompt": ({ agent }) => (agent.systemPrompt = "new"),
  "a new output": ({ agent }) => ((agent.output = { type: "object", default: deep() }), (agent.output = undefined)),
  "canContinue": ({ agent }) => agent.canContinue,
  "checkpoint": ({ agent }) => agent.checkpoint(),
  "the run's checkpoint": ({ run }) => run.checkpoint(),
  "restore": ({ agent, tools }) => void Agent.restore(agent.checkpoint(), { model: scripted([]), tools }).catch(() => {}),
  "prompt": () => new Agent({ model: scripted(["x"]) }).prompt("Go"),
  "an update of a tool": ({ context }) => context.update(deep()),
  "a short update of a tool": ({ context }) => context.update("a bit"),
  "the state of a session": ({ context }) => context.state.set("k", deep()),
  "abort": ({ agent }) => agent.abort("enough"),
  "the run's abort": ({ run }) => run.abort("enough"),
  "the next event": ({ iterator }) => void iterator.next(),
  "the end of the iteration": ({ iterator }) => void iterator.return?.(),
  "reset": ({ agent }) => agent.reset(),
  "dispose": ({ agent }) => /** @type {any} */ (agent)[Symbol.dispose ?? Symbol.for("Symbol.dispose")](),
};

for (const [name, work] of Object.entries(CALLS)) {
  test(`with any amount of stack: ${name}`, async (t) => {
    t.mock.method(console, "error", () => {});
    const other = neighbour();
    const world = await busy();
    const engine = getEngine();
    // Once more when V8 has compiled it: then it needs less, and gets further before it is out of stack.
    for (let round = 0; round < 3; round++) {
      for (const error of fromEveryDepth(() => work(world))) {
        // Node itself throws nothing at all where its own code runs out of stack.
        const { name, code, message } = /** @type {any} */ (error ?? new RangeError());
        assert.ok(name === "RangeError" || (code === "misuse" && /stack|was disposed of/.test(message)), `${name} ${code}: ${message}`);
      }
      await settle();
    }
    assert.equal(getEngine(), engine, "the engine was taken for dead");
    world.finish();
    const { error } = await world.run;
    assert.notEqual(error?.code, "internal", error?.message);
    assert.equal(await other.finish(), "one two");
    assert.equal((await new Agent({ model: scripted(["next"]) }).prompt("Go")).text, "next");
  });
}

test("a signal that is given on a full stack stops the run", async () => {
  // Node ends the process for what a listener throws; with enough stack to call ours, nothing is thrown.
  const { run, abort, finish } = await busy();
  const down = (/** @type {number} */ left) => (left === 0 ? abort.abort("stop") : down(left - 1));
  let depth = 0;
  const measure = () => { depth++; measure(); };
  try {
    measure();
  } catch {
    // Now the depth of the stack is known.
  }
  down(Math.floor(depth / 4));
  assert.equal((await run).stopReason, "aborted");
  finish();
});

test("a rule that overflows the stack, and one that calls in from there, fail alone", async () => {
  const other = neighbour();
  const engine = getEngine();
  /** @type {Agent} */
  let agent;
  const overflow = () => overflow();
  const rules = {
    dynamicSystemPrompt: () => (fromEveryDepth(() => agent.steer("x")), "fine"),
    convertToLlm: overflow,
  };
  for (const [name, rule] of Object.entries(rules)) {
    agent = new Agent({ model: scripted(Array(200).fill("a")), maxTurns: 3, [name]: rule });
    const { error } = await agent.prompt("Go");
    assert.notEqual(error?.code, "internal", error?.message);
  }
  assert.equal(getEngine(), engine);
  assert.equal(await other.finish(), "one two");
});
