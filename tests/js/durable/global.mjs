// @ts-check
// A Worker whose agent is created in the global scope, where neither randomness nor timers are available.

import { Agent, scripted, tool } from "turnwheel";

const look = tool({ name: "look", description: "Looks", parameters: { type: "object" }, execute: (_, { sessionId }) => sessionId });
const agent = new Agent({ model: scripted([{ toolCalls: [{ toolName: "look" }] }, (request) => request.messages.at(-1).content[0].text]), tools: [look] });

export default {
  async fetch() {
    const { stopReason, text } = await agent.prompt("Go");
    return Response.json({ stopReason, hasSession: text.length === 36 });
  },
};
