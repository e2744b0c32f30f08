// @ts-check
// The entry `turnwheel/durable`: hosts for durable engines. An engine is passed in, never imported.

export { byData } from "./durable/by-data.js";
export { dbos } from "./durable/dbos.js";
export { elsewhere } from "./durable/elsewhere.js";
export { perform } from "./durable/perform.js";
export { restate } from "./durable/restate.js";
export { use } from "./boundary/server.js";
