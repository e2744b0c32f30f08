// @ts-check
// A page that listens to an agent on its server; it has no wasm file.

import { fromResponse, RemoteAgent } from "../../../../pkg/remote.js";

const agent = new RemoteAgent({ url: new URL("/agent", location.href), reconnects: { initialMs: 10, maxMs: 100, maxAttempts: 100 } });
/** @type {any[]} */
const received = [];
agent.subscribe((event) => void received.push(event));
Object.assign(globalThis, {
  agent, received,
  begin: async () => void (/** @type {any} */ (globalThis).run = { result: agent.prompt("Go").result }),
  end: async () => (await /** @type {any} */ (globalThis).run.result).text,
  one: async () => {
    let text = "";
    const run = fromResponse(await fetch("/run"), { reconnect: (lastEventId) => fetch("/run", { headers: { "last-event-id": lastEventId } }), reconnects: { initialMs: 10 } });
    for await (const piece of run.textStream) text += piece;
    return { text, result: (await run).text };
  },
});
await agent.ready();
document.documentElement.dataset["ready"] = "";
