// @ts-check
// An agent in a React component.

import { useState, useSyncExternalStore } from "react";
import { AgentStore } from "./store.js";

/** @import { AgentLike, UseAgentOptions } from "../react.js" */

/**
 * Returns an agent's state and the actions on it. If a function is passed, the component creates its
 * own agent with it, once.
 * @param {AgentLike | ((earlier?: object) => AgentLike)} agent @param {UseAgentOptions} [options]
 */
export function useAgent(agent, options) {
  // The function may be a new one in every render; the agent that it made stays.
  const source = typeof agent === "function" ? AgentStore : agent;
  const make = () => ({ of: source, store: new AgentStore(agent, options) });
  let [state, setState] = useState(make);
  if (state.of !== source) setState((state = make()));
  const { subscribe, getSnapshot, getServerSnapshot } = state.store;
  return useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot);
}
