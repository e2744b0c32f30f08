// @ts-check
// An agent in a React component.
"use client";

import { useState, useSyncExternalStore } from "react";
import { AgentStore } from "./react-store.js";

/**
 * Returns an agent's state and the actions on it. If a function is passed, the component creates its
 * own agent with it, once.
 * @param {any} agent @param {import("./react.js").UseAgentOptions} [options]
 */
export function useAgent(agent, options) {
  // The function may be a new one in every render; the agent that it made stays.
  const of = typeof agent === "function" ? AgentStore : agent;
  const make = () => ({ of, store: new AgentStore(agent, options) });
  let [held, hold] = useState(make);
  if (held.of !== of) hold((held = make()));
  const { subscribe, getSnapshot, getServerSnapshot } = held.store;
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
