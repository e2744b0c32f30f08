// @ts-check

/** A call as text, for comparison. @param {any} call */
export function callText({ callId, toolName, arguments: args }) {
  return JSON.stringify([callId, toolName, args]);
}
