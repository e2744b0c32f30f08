// @ts-check
// A SharedWorker that owns the agent of the tabs.

import { openAgent, shared } from "../../../../pkg/tabs.js";
import { Agent, options, world } from "../../checkpoint/world.mjs";

void Agent;
shared("worker", (lease) => openAgent(lease, options(world()))).then((agent) => {
  // As a crash does: all tabs lose it at once.
  new BroadcastChannel("end the worker").onmessage = () => void (agent, close());
});

/** By this it is known which one it is. */
const name = crypto.randomUUID();
const asked = new BroadcastChannel("which worker");
asked.onmessage = ({ data }) => void (data === "?" && asked.postMessage(name));
