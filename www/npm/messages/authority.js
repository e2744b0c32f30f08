// @ts-check
// Generated from src/rules/authority.rs: `WRITE_PROTOCOL=1 cargo test -p turnwheel-npm`.

/**
 * What a client may do: without being asked, only if its door allows it, never. The host may do all of it.
 * @type {{ readonly [act: string]: "yes" | "asked" | "no" }}
 */
export const CLIENTS = {
  speak: "yes",
  stop: "yes",
  rewind: "yes",
  tool: "yes",
  elicitation: "yes",
  arguments: "asked",
  result: "asked",
  tool_call: "yes",
  budget: "asked",
  approver: "no",
  history: "no",
};
