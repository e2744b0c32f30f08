// @ts-check
// turnwheel/remote: agents and runs that live elsewhere.

export { RemoteAgent, fromResponse } from "./remote/agent.js";
