// @ts-check
// turnwheel/remote: agents and runs that live elsewhere.

export { RemoteAgent } from "./remote/agent.js";
export { fromResponse } from "./remote/from-response.js";
