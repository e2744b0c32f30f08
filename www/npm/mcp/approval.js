// @ts-check
// Which tools of a server need approval, by its own hints.

/** @import { McpTool } from "../mcp.js" */
/** @typedef {NonNullable<McpTool["annotations"]>} Hints */

/** @type {Record<"always" | "never" | "writes" | "destructive", (hints: Hints) => boolean>} */
export const APPROVAL = {
  always: () => true,
  never: () => false,
  writes: ({ readOnlyHint }) => readOnlyHint !== true,
  // Without hints a tool counts as destructive, as the protocol says.
  destructive: ({ readOnlyHint, destructiveHint }) => readOnlyHint !== true && destructiveHint !== false,
};
