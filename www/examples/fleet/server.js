// One process of the fleet. Start as many as you like:   PORT=3001 STORE=postgres://… node server.js
//   /agents/ID/prompt, /agents/ID/events, …   docs/remote.md; 409 with the header `turnwheel-owner` if another process has it
//   /health     200 while it takes agents, 503 once it hands over or cannot reach the store
//   /metrics    numbers for Prometheus

import { agentHandler } from "turnwheel/server";
import { joinFleet, openAgent } from "turnwheel/stores/node";
import { agentOptions, mayUse } from "./agent.js";
import { listen } from "./http.js";
import { metrics } from "./metrics.js";
import { openStore } from "./store.js";

const { env } = process;
const PORT = Number(env.PORT ?? 3001);
const HOST = env.HOST ?? "127.0.0.1";
if (!env.TOKEN && !["127.0.0.1", "::1", "localhost"].includes(HOST)) throw new Error("without a TOKEN only this machine may reach the process: set TOKEN, or leave HOST out");
/** Where the routers reach this process. */
const ADDRESS = env.ADDRESS ?? `http://127.0.0.1:${PORT}`;

const { store, end } = await openStore(env.STORE ?? "./agents", { owner: ADDRESS, ttlMs: Number(env.TTL_MS ?? 30_000) });
const fleet = joinFleet(store, {
  agents: Number(env.AGENTS ?? 1_000),
  idleMs: Number(env.IDLE_MS ?? 60_000),
  async open(lease) {
    const agent = await openAgent(lease, agentOptions(lease.id, lease));
    // Who may use it was asked before, in `answer`.
    const handler = agentHandler(agent, { events: lease.events, allowedHosts: true, keepAliveMs: Number(env.KEEP_ALIVE_MS ?? 7000), limits: { historyBytes: 4_000_000, commandsPerMinute: 600 } });
    return { agent, handler };
  },
});

const refuse = (status, code, message) => Response.json({ error: { code, message } }, { status });

async function health() {
  if (fleet.isLeaving) return refuse(503, "overloaded", "this process hands its agents over");
  const late = new Promise((resolve) => setTimeout(resolve, 2_000, "late").unref());
  const found = await Promise.race([store.owner("health").then(() => "here", () => "gone"), late]);
  return found === "here" ? Response.json({ status: "ok", address: ADDRESS, ...fleet.counts() }) : refuse(503, "overloaded", "the store does not answer");
}

async function answer(request) {
  const { pathname } = new URL(request.url);
  if (pathname === "/health") return health();
  if (pathname === "/metrics") return metrics(fleet.counts());
  const [, agents, name = ""] = pathname.split("/");
  let id;
  try {
    id = decodeURIComponent(name);
  } catch {
    return refuse(400, "invalid_request", "the id of the agent is no URL component");
  }
  if (agents !== "agents" || id === "" || id.length > 200) return refuse(404, "invalid_request", "ask for /agents/ID/state");
  if (!mayUse(request, id)) return refuse(401, "auth", "who asks is not allowed to");
  return fleet.answer(id, request);
}

const server = await listen(answer, PORT, HOST);
console.log(`${ADDRESS} is ready`);

/** The others go on with what this process has; nothing runs twice. */
async function leave() {
  await fleet.handOver({ graceMs: Number(env.GRACE_MS ?? 20_000) });
  server.close();
  server.closeAllConnections();
  await end();
  process.exit(0);
}
for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => void leave());
