// @ts-check
// turnwheel/ai-sdk: models of the AI SDK for agents, and its chat without a server.

import { misuse } from "./shared.js";

export { chatTransport } from "./ai-sdk/chat.js";
export { fromLanguageModel } from "./ai-sdk/model.js";
export { toUIMessages } from "./ai-sdk/ui-messages.js";
export { fromUIMessages } from "./server/fromuimessages.js";

/** It stood here once. @returns {never} */
export function toAgent() {
  throw misuse("`toAgent` is gone: give useChat `chatTransport(agent)`, or answer with `agent.prompt(text).toUIMessageStreamResponse()`");
}
