// @ts-check
// Everything that ships with the engine, as one file of the package; see shared.js. What is loaded by `import()` when an engine
// is there takes what it needs from here: then bundlers need not cut this file where the others touch it.

export * from "./index.js";
export * from "./shared.js";
export { AgentError } from "./shared.js";
export { coreOf } from "./agent/agent.js";
export { abortText } from "./run/abortion.js";
export { driverOf } from "./run/run.js";
export * from "./boundary/engine.js";
export { inParts } from "./boundary/parts.js";
export { late, loadRest, useRest } from "./boundary/rest.js";
export { fetched } from "./fetched.js";
export * from "./checkpoint/read.js";
export * from "./checkpoint/write.js";
export { undecided } from "./events/approvals.js";
export { withSetup } from "./models/setup.js";
export * from "./effects/names.js";
export { useJudge } from "./tools/json-schema.js";
export { useLinear } from "./tools/patterns.js";
export { SUB_AGENT } from "./tools/tool.js";
