// @ts-check
// DBOS: steps that may run side by side, in a PostgreSQL of your own.

import { misuse } from "../shared.js";

/** @import { DBOSLike } from "../durable.js" */
/** @import { AgentHost, JsonValue } from "../index.js" */

/** How long a decision is waited for, in seconds: 30 days. */
const PATIENCE = 30 * 86_400;

/** @param {DBOSLike} DBOS @returns {AgentHost} */
export function dbos(DBOS) {
  if (typeof DBOS?.runStep !== "function") throw misuse("`dbos` takes the class `DBOS` of @dbos-inc/dbos-sdk: dbos(DBOS)");
  return {
    step: (name, work) => DBOS.runStep(() => work(), { name }),
    sleep: (ms) => DBOS.sleep(ms),
    wait: async (name) => {
      const decision = await DBOS.recv(name, PATIENCE);
      return /** @type {JsonValue} */ (decision ?? { kind: "reject", reason: "nobody decided within 30 days" });
    },
  };
}
