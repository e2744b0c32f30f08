// @ts-check
// The public package. The entry files in ./entry set where the wasm file comes from and re-export this one.

export { Agent, agentLoop, agentLoopContinue } from "./agent/agent.js";
export { peek } from "./checkpoint/peek.js";
export { budgetTrim, keepLast, pruneToolResults, reduce, slidingWindow } from "./context/reducers.js";
export { errorInfo } from "./errors/error-info.js";
export { AgentError } from "./shared.js";
export { custom } from "./models/custom.js";
export { scripted } from "./models/scripted.js";
export { anthropic, gemini, openai, openaiCompatible, openaiResponses } from "./models/wires.js";
export { subagent } from "./tools/subagent.js";
export { fileAt, imageAt, transferTo } from "./tools/made.js";
export { CANCELLED, tool } from "./tools/tool.js";
