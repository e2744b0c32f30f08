// @ts-check
// turnwheel/ai-sdk: models of the AI SDK for agents, agents for the AI SDK, and its chat without a server.

export { toAgent } from "./ai-sdk/agent.js";
export { chatTransport } from "./ai-sdk/chat.js";
export { fromLanguageModel } from "./ai-sdk/model.js";
export { toUIMessages } from "./ai-sdk/ui-messages.js";
export { fromUIMessages } from "./server/fromuimessages.js";
