// @ts-check
// turnwheel/durable on Cloudflare Workers, where a wasm file is imported: whoever imports this runs agents with `host.step`.

import { useServer } from "./core.js";

useServer(async () => (await import("./turnwheel-server.wasm")).default);

export * from "./durable.js";
