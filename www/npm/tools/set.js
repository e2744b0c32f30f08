// @ts-check
// The tools of an agent.

import { kindOf, misuse } from "../shared.js";
import { prepare, SUB_AGENT } from "./tool.js";

/** @import { Checked } from "./schema.js" */
/** @import { Prepared } from "./tool.js" */
/**
 * A call whose arguments were checked: the tool that did it, and the arguments as its schema returned them.
 * @typedef {{ prepared: Prepared, checked: Checked | Promise<Checked> }} CheckedCall
 */

export class ToolSet {
  /** @param {unknown} tools @param {boolean} namesMayRepeat if two tools share a name, the first one wins */
  constructor(tools, namesMayRepeat) {
    this.namesMayRepeat = namesMayRepeat;
    /** @type {Prepared[]} */
    this.offered = [];
    /** @type {Map<string, Prepared>} */
    this.byName = new Map();
    /**
     * The tools of every configuration that the engine holds. A turn keeps those that it began with, so that the
     * definition that was asked about is the one that runs.
     * @type {Map<number, Map<string, Prepared>>}
     */
    this.versions = new Map();
    this.latest = 0;
    /**
     * By call id; the tool receives these arguments.
     * @type {Map<string, CheckedCall>}
     */
    this.checked = new Map();
    this.set(tools);
  }

  /** @param {unknown} tools */
  set(tools) {
    this.offered = toTools(tools, this.namesMayRepeat);
    this.byName = new Map(this.offered.map((prepared) => /** @type {const} */ ([prepared.definition.name, prepared])).reverse());
  }

  /** @param {number} version @param {string} name */
  of(version, name) {
    return this.versions.get(version)?.get(name);
  }

  /** Whether a tool of this name runs an agent. @param {string} name */
  hasSubAgent(name) {
    return this.byName.get(name)?.definition[SUB_AGENT] !== undefined;
  }

  /** Whether calls of some tool are answered elsewhere. */
  get hasExternal() {
    return this.offered.some(({ definition }) => definition.execute === undefined);
  }

  /** Nothing in the engine refers to this version any more. @param {number} version */
  forget(version) {
    this.versions.delete(version);
  }

  /** Takes what became of a call's arguments. @param {string} callId */
  takeChecked(callId) {
    const checked = this.checked.get(callId);
    this.checked.delete(callId);
    return checked;
  }

  endRun() {
    for (const version of this.versions.keys()) if (version !== this.latest) this.forget(version);
    this.checked.clear();
  }

  definitions() {
    return this.offered.map(({ definition }) => definition);
  }

  /** For the engine: the tools, and the number of this version of them. */
  settings() {
    this.versions.set(++this.latest, this.byName);
    return { tools: this.offered.map(toolSettings), toolsVersion: this.latest };
  }
}

/**
 * Converts an array or a record of tools.
 * @param {unknown} tools @param {boolean} namesMayRepeat @returns {Prepared[]}
 */
function toTools(tools, namesMayRepeat) {
  if (tools === undefined || tools === null) return [];
  if (typeof tools !== "object") throw misuse(`\`tools\` must be an array of tools or a record by name, got ${kindOf(tools)}`);
  if (tools instanceof Map) throw misuse("`tools` is a Map; write an array: tools: [...map.values()]");
  if (typeof (/** @type {any} */ (tools).then) === "function") throw misuse("`tools` is a promise; write tools: await …");
  if (typeof (/** @type {any} */ (tools).execute) === "function") throw misuse("`tools` is a single tool; write tools: [tool]");
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
    subAgent: definition[SUB_AGENT] !== undefined, external: definition.execute === undefined || undefined,
    // The engine stores the priority as a 32-bit integer.
    priority: Math.min(Math.abs(priority ?? 0) * 1000, 2 ** 31), lowPriority: (priority ?? 0) < 0,
  };
}
