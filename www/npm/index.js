// @ts-check
// The public package. Entries in ./entry say where the wasm file comes from and re-export this.

export { Agent, agentLoop, agentLoopContinue } from "./agent.js";
export { AgentError } from "./shared.js";
export { anthropic, custom, gemini, openai, openaiCompatible, openaiResponses, scripted } from "./models.js";
export { subagent } from "./subagent.js";
export { CANCELLED, tool } from "./tools.js";
