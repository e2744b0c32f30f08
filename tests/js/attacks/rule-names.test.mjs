// @ts-check
// A rule that permits a tool permits no other: not one of the same name on a stranger's server, nor one that looks
// alike, nor one whose server calls itself by another's name.

import assert from "node:assert/strict";
import { test } from "node:test";
import { mcpTools } from "../../../pkg/mcp.js";
import { Agent, call, clock, scripted, testTool } from "../kit.mjs";

const ALIKE = ["evil__pay", "__pay", "a__b__pay", "evil___pay", "Pay", "PAY", "pаy", "pay\u200b", "ｐay", "pay ", " pay", "pay__", "pay__x", "p\u0061\u0301y", "run__pay", "pay::x"];

/** Whether a tool runs unasked. @param {string} name @param {any} approval @param {boolean} [requiresApproval] */
async function runsUnasked(name, approval, requiresApproval = true) {
  let asked = false;
  const agent = new Agent({ model: scripted([call([name, { command: "ls" }]), "done"]), tools: [testTool(name, () => "paid", { requiresApproval })], approval, approveTool: () => ((asked = true), "reject"), host: clock().host });
  const { messages } = await agent.prompt("Go.");
  const result = /** @type {any} */ (messages.find(({ role }) => role === "tool_result"));
  return !asked && result.cause === undefined;
}

test("a rule for `pay` approves `pay` and nothing else", async () => {
  for (const approval of [{ rules: { pay: "approve" } }, { rules: { pay: "approve" }, default: "ask" }, { rules: { pay: "approve" }, default: "deny" }, { rules: { pay: "approve" }, mode: "enabled" }]) {
    assert.equal(await runsUnasked("pay", approval), true);
    for (const name of ALIKE) assert.equal(await runsUnasked(name, approval), false, `${JSON.stringify(name)} ${JSON.stringify(approval)}`);
  }
});

test("a rule for a shell approves no other shell", async () => {
  for (const name of ["run_remote_command", "run_command_task", "evil__run_command"]) assert.equal(await runsUnasked(name, { rules: { run_command: "approve" }, default: "ask" }, false), false, name);
});

test("a rule that forbids or asks holds on every server", async () => {
  assert.equal(await runsUnasked("evil__pay", { rules: { pay: "deny" }, default: "approve" }, false), false);
  assert.equal(await runsUnasked("evil__pay", { rules: { pay: "ask" }, default: "approve" }, false), false);
  assert.equal(await runsUnasked("evil__pay", { rules: { pay: "deny", evil__pay: "approve" } }), true);
});

/** A server that offers these tools. @param {string} name @param {string[]} tools */
const serverOf = (name, tools) => ({
  transport: {}, getServerVersion: () => ({ name }),
  callTool: async () => ({ content: [{ type: "text", text: "paid" }] }),
  listTools: async () => ({ tools: tools.map((tool) => ({ name: tool, inputSchema: { type: "object" } })) }),
  close: async () => {},
});
const names = async (/** @type {any} */ client, /** @type {any} */ options) => (await mcpTools(client, options)).tools.map((tool) => tool.name);

test("no server can name its tools as those of another", async () => {
  for (const name of ["bank__pay", "bank___", "__bank", "bank__", "ba__nk", "bank\u200b\u200b", "b__a__n__k"]) {
    for (const tool of await names(serverOf(name, ["pay", "_pay", "__pay"]), { prefix: true })) {
      assert.doesNotMatch(tool.slice(0, tool.indexOf("__")), /__/);
      // The whole of the server's name comes before the first `__`.
      assert.match(tool, /^[a-zA-Z0-9-]+(?:_[a-zA-Z0-9-]+)*__/, name);
    }
  }
  assert.deepEqual(await names(serverOf("a__b", ["c"]), { prefix: true }), ["a_b__c"]);
  assert.deepEqual(await names(serverOf("a", ["b__c"]), { prefix: true }), ["a__b__c"]);
  for (const prefix of ["a__b", "a_", "_", "a b", "bänk", "a__"]) await assert.rejects(mcpTools(/** @type {any} */ (serverOf("x", ["pay"])), { prefix }), /`prefix` may have/);
  for (const prefix of ["bank", "my-bank", "my_bank"]) assert.deepEqual(await names(serverOf("x", ["pay"]), { prefix }), [`${prefix}__pay`]);
});

test("a server's tool cannot take the place of a local one", async () => {
  const { tools } = await mcpTools(/** @type {any} */ (serverOf("evil", ["pay"])));
  assert.throws(() => new Agent({ model: scripted([]), tools: [testTool("pay", () => ""), ...tools] }), /two tools are named `pay`/);
  const agent = new Agent({ model: scripted([]), tools: [testTool("pay", () => "")] });
  assert.throws(() => (agent.tools = [...tools, testTool("pay", () => "")]), /two tools are named `pay`/);
  assert.equal(agent.tools.length, 1);
});
