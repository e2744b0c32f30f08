// @ts-check
// turnwheel/ai-sdk: models of the AI SDK for agents, agents for the AI SDK, and its chat without a server.

export { fromLanguageModel } from "./ai-sdk/model.js";
