// @ts-check
// Ids and types that every object has as members: `constructor`, `__proto__`. Models, clients and checkpoints may choose them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fromAGUI } from "../../../pkg/ag-ui.js";
import { Agent, AgentError, scripted, subagent } from "../kit.mjs";

const NAMES = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];

test("a call of a sub-agent with such an id runs, is stored, and goes on", async () => {
  for (const callId of NAMES) {
    const inner = subagent({ name: "inner", description: "Looks", agent: () => new Agent({ model: scripted(["in there"]) }) });
    const agent = new Agent({ model: scripted([{ toolCalls: [{ callId, toolName: "inner", arguments: { prompt: "look" } }] }, "Done."]), tools: [inner] });
    /** @type {any[]} */
    const checkpoints = [];
    agent.subscribe((event) => event.type === "subagent_event" && checkpoints.push(JSON.stringify(agent.checkpoint())));
    const { text, messages } = await agent.prompt("Go").result;
    assert.equal(text, "Done.");
    assert.deepEqual(messages.filter(({ role }) => role === "tool_result").map((message) => /** @type {any} */ (message).content[0].text), ["in there"], callId);
    const again = await Agent.restore(checkpoints[1], { model: scripted(["Done again."]), tools: [inner] });
    assert.equal((await again.continue().result).text, "Done again.", callId);
  }
});

test("a checkpoint with such a type of part, or role, is refused as one", async () => {
  for (const name of NAMES) {
    for (const message of [{ role: "user", content: [{ type: name }] }, { role: "assistant", content: [{ type: name, text: "x" }] }, { role: name, content: "x" }]) {
      const checkpoint = JSON.parse(JSON.stringify(new Agent({ model: scripted([]) }).checkpoint()));
      checkpoint.messages = [message];
      await assert.rejects(() => Agent.restore(checkpoint, { model: scripted([]) }), (error) => AgentError.isInstance(error) && error.code === "misuse", JSON.stringify(message));
    }
  }
});

test("whatever an AG-UI client posts is read, or refused as misuse", () => {
  const base = { threadId: "t", runId: "r", messages: [], tools: [], resume: [] };
  const others = [null, 5, "x", {}, [], true, [null], "__proto__", { length: 3 }, { function: null }, { toString: 1, valueOf: 1 }];
  /** @param {any} input */
  const read = (input) => {
    try {
      fromAGUI(input);
    } catch (error) {
      assert.ok(AgentError.isInstance(error) && error.code === "misuse", `${JSON.stringify(input)}: ${error instanceof Error ? error.stack : error}`);
    }
  };
  for (const other of others) {
    for (const key of Object.keys(base)) read({ ...base, [key]: other });
    for (const role of ["user", "assistant", "tool", "reasoning", "system", "activity", "__proto__"]) {
      for (const key of ["content", "toolCalls", "toolCallId", "error", "encryptedValue", "id"]) {
        const message = { role, [key]: other };
        read({ ...base, tools: [{ name: "x" }], messages: [message] });
        read({ ...base, tools: [{ name: "x" }], messages: [message, { role: "tool", toolCallId: "a", content: "x" }, { role: "user", content: "x" }] });
      }
    }
    read({ ...base, messages: [{ role: "assistant", toolCalls: [other] }, { role: "assistant", toolCalls: [{ id: "a", function: other }] }, { role: "user", content: [other] }] });
    read({ ...base, tools: [other, { name: "x", description: other, parameters: other }], resume: [other, { interruptId: "a", status: "resolved", payload: other }] });
  }
});
