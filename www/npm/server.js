// @ts-check
// turnwheel/server: an agent served over HTTP.

export { durableObjectEvents, memoryEvents } from "./server/eventlog.js";
export { fromUIMessages } from "./server/fromuimessages.js";
export { agentHandler } from "./server/server.js";
