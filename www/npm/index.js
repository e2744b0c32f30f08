// @ts-check
// The public package. The entry files in ./entry set where the wasm file comes from and re-export this one.

export { Agent, agentLoop, agentLoopContinue } from "./agent/agent.js";
export { AgentError } from "./shared.js";
export { anthropic, custom, gemini, openai, openaiCompatible, openaiResponses, scripted } from "./models/models.js";
export { subagent } from "./tools/subagent.js";
export { CANCELLED, tool } from "./tools/tools.js";
