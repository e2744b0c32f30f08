// @ts-check
// turnwheel/ai-sdk: models of the AI SDK for agents, and its chat without a server.

export { chatTransport } from "./ai-sdk/chat.js";
export { fromLanguageModel } from "./ai-sdk/model.js";
export { toUIMessages } from "./ai-sdk/ui-messages.js";
export { fromUIMessages } from "./server/fromuimessages.js";
