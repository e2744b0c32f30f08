// @ts-check
// The open questions of an agent, as clients see them: those that wait for a person, and none that the host is deciding.

import { isForPeople, shownQuestions } from "../shared.js";

/** @import { Agent, AgentEvent, Question } from "../index.js" */

/** Those about calls, and the others, if there are any. @param {Agent} agent */
export function questionsOf(agent) {
  const { pendingApprovals, pendingQuestions = [] } = agent;
  const others = /** @type {readonly Question[]} */ (pendingQuestions).filter(({ kind }) => kind !== "tool");
  return { pendingApprovals: shownQuestions(agent, pendingApprovals), ...(others.length > 0 && { pendingQuestions: others }) };
}

/** An event as clients see it; nothing if it is about a question that the host decides. @param {Agent} agent @param {AgentEvent} event @returns {AgentEvent | undefined} */
export function shownEvent(agent, event) {
  const { event: inner = event, path } = /** @type {{ event?: AgentEvent, path?: string[] }} */ (event);
  if (inner.type === "run_resumed") {
    const around = inner === event ? [] : (path ?? []);
    const pendingApprovals = inner.pendingApprovals.filter(({ kind, path = [] }) => isForPeople(agent, { kind, path: [...around, ...path] }));
    if (pendingApprovals.length === inner.pendingApprovals.length) return event;
    const shown = { ...inner, pendingApprovals };
    return inner === event ? shown : /** @type {AgentEvent} */ ({ ...event, event: shown });
  }
  if (inner.type !== "tool_approval_requested" && inner.type !== "tool_approval_resolved") return event;
  return isForPeople(agent, { kind: "tool", path: [...(path ?? []), ...(inner === event ? [] : inner.path ?? [])] }) ? event : undefined;
}
