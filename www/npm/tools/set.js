// @ts-check
// The tools of an agent.

import { kindOf, misuse } from "../shared.js";
import { prepare } from "./tool.js";

/** @import { Checked } from "./schema.js" */
/** @import { Prepared } from "./tool.js" */

export class ToolSet {
  /** @param {unknown} tools @param {boolean} namesMayRepeat if two tools share a name, the first one wins */
  constructor(tools, namesMayRepeat) {
    this.namesMayRepeat = namesMayRepeat;
    /** @type {Prepared[]} */
    this.offered = [];
    /** @type {Map<string, Prepared>} */
    this.byName = new Map();
    /** Tools that were removed; a turn in progress may still call them. @type {Map<string, Prepared>} */
    this.former = new Map();
    /**
     * The arguments as the schemas returned them, by call id; the tools receive these.
     * @type {Map<string, Checked | Promise<Checked>>}
     */
    this.checked = new Map();
    this.set(tools);
  }

  /** @param {unknown} tools */
  set(tools) {
    for (const [name, prepared] of this.byName) this.former.set(name, prepared);
    this.offered = toTools(tools, this.namesMayRepeat);
    this.byName = new Map(this.offered.map((prepared) => /** @type {const} */ ([prepared.definition.name, prepared])).reverse());
  }

  /** @param {string} name */
  of(name) {
    return this.byName.get(name) ?? this.former.get(name);
  }

  /** Takes what became of a call's arguments. @param {string} callId @returns {Checked | Promise<Checked> | undefined} */
  takeChecked(callId) {
    const checked = this.checked.get(callId);
    this.checked.delete(callId);
    return checked;
  }

  endRun() {
    this.former.clear();
    this.checked.clear();
  }

  definitions() {
    return this.offered.map(({ definition }) => definition);
  }

  /** For the engine. */
  settings() {
    return this.offered.map(toolSettings);
  }
}

/**
 * Converts an array or a record of tools.
 * @param {unknown} tools @param {boolean} namesMayRepeat @returns {Prepared[]}
 */
function toTools(tools, namesMayRepeat) {
  if (tools === undefined || tools === null) return [];
  if (typeof tools !== "object") throw misuse(`\`tools\` must be an array of tools or a record by name, got ${kindOf(tools)}`);
  const list = Symbol.iterator in tools ? Array.from(/** @type {Iterable<object>} */ (tools), (given) => prepare(given)) : Object.entries(tools).map(([name, given]) => prepare(given, name));
  const names = new Set();
  for (const { definition } of list) {
    if (names.has(definition.name) && !namesMayRepeat) throw misuse(`two tools are named \`${definition.name}\`; names must be unique`);
    names.add(definition.name);
  }
  return list;
}

/** For the engine. @param {Prepared} prepared */
function toolSettings({ definition, schema }) {
  const { name, description = "", requiresApproval, needsApproval, timeoutMs, maxResultBytes, idempotent, fatal, priority } = definition;
  const approvalRule = requiresApproval ?? needsApproval;
  return {
    name, description, parameters: schema,
    requiresApproval: typeof approvalRule === "function" ? "depends" : approvalRule === true,
    // A missing value means the agent's default limit, so Infinity becomes a number.
    timeoutMs: timeoutMs === Infinity ? 2 ** 53 : timeoutMs, maxResultBytes, idempotent: idempotent === true, fatal: fatal === true,
    // The engine stores the priority as a 32-bit integer.
    priority: Math.min(Math.abs(priority ?? 0) * 1000, 2 ** 31), lowPriority: (priority ?? 0) < 0,
  };
}
