// @ts-check
// turnwheel/server: an agent served over HTTP.

export { agentHandler, durableObjectEvents, fromUIMessages, memoryEvents } from "./server/server.js";
