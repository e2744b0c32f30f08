// @ts-check
// Tools: each definition is checked once, and its schema becomes JSON Schema for the model and a validation
// function.

import { checkVersion, didYouMean, kindOf, misuse } from "../shared.js";
import { TOOL } from "../options/options.js";
import { checkShape } from "../options/shape.js";
import { adaptTool } from "./ai-sdk.js";
import { prepareSchema } from "./schema.js";

/** @import { ToolDefinition } from "../index.js" */
/** @import { PreparedSchema } from "./schema.js" */

/** A tool returns this to end the run as if aborted. */
export const CANCELLED = Symbol.for("turnwheel.cancelled");

/** Marks the tools that run an agent, with the version of the package that they are of. @type {unique symbol} */
export const SUB_AGENT = Symbol.for("turnwheel.subagent");

/** Defines a tool; the argument type of `execute` follows from `parameters`. @template {object} T @param {T} definition @returns {T} */
export function tool(definition) {
  prepare(definition);
  return definition;
}

/**
 * A tool of ours, or one of the AI SDK in our shape; its rule for approval then has the SDK's name.
 * @typedef {ToolDefinition & { needsApproval?: ToolDefinition["requiresApproval"], [SUB_AGENT]?: string }} Definition
 */
/**
 * A checked tool. `self` is the very object that the host passed in.
 * @typedef {{ definition: Definition, self: object } & PreparedSchema} Prepared
 */

/** The checked form of each definition. @type {WeakMap<object, Prepared>} */
const prepared = new WeakMap();

/** @param {object} definition @param {string} [name] @returns {Prepared} */
export function prepare(definition, name) {
  if (typeof definition !== "object" || definition === null) throw misuse(`${name === undefined ? "a tool" : `tool \`${name}\``} must be an object, got ${kindOf(definition)}`);
  const known = prepared.get(definition);
  if (known && (name === undefined || known.definition.name === name)) return known;
  const named = name === undefined ? definition : Object.setPrototypeOf({ ...definition, name }, Object.getPrototypeOf(definition));
  const adapted = adaptTool(named);
  if (typeof adapted.name !== "string" || adapted.name === "") {
    throw misuse(`a tool needs a \`name\`, got ${kindOf(adapted.name)}; those that have none go into a record: { get_weather: … }`);
  }
  const owner = `tool \`${adapted.name}\``;
  // Control characters, written out: the first look at a class of Unicode takes a browser five milliseconds.
  if (/[\0-\x1f\x7f-\x9f]/.test(adapted.name) || adapted.name.length > MAX_NAME) throw misuse(`${owner.slice(0, 100)}: no provider accepts this name; letters, digits, \`_\` and \`-\` are safe, at most 64`);
  if (adapted[SUB_AGENT] !== undefined) checkVersion(owner, adapted[SUB_AGENT]);
  if (adapted === named) checkTypos(owner, adapted);
  // A tool without it is answered elsewhere; one that has nothing else either was forgotten.
  if (adapted.execute === undefined && adapted.parameters === undefined) throw misuse(`${owner} needs an \`execute\` function, got nothing; with \`parameters\` alone, its calls are answered elsewhere, by \`agent.resolve(id, { output })\``);
  if (adapted.execute !== undefined && typeof adapted.execute !== "function") throw misuse(`\`execute\` of ${owner} must be a function, got ${kindOf(adapted.execute)}; leave it out if its calls are answered elsewhere, by \`agent.resolve(id, { output })\``);
  for (const [key, shape] of Object.entries(TOOL)) checkShape(key, adapted[key], shape, `${owner}: `);
  const parameters = adapted.parameters ?? { type: "object", properties: {} };
  const result = { definition: adapted, self: known?.self ?? definition, ...prepareSchema(owner, parameters) };
  const { type = "object" } = result.schema;
  if (![type].flat().includes("object")) throw misuse(`the parameters of ${owner} must describe an object, they describe ${[type].flat().join(" or ")}`);
  // Also under the copy, for those who take it from `agent.tools` and pass it in again.
  prepared.set(definition, result).set(adapted, result);
  return result;
}

/** Longer than any provider accepts; the wires shorten no names. */
const MAX_NAME = 128;

/** Names that other libraries use. @type {Record<string, string>} */
const FOREIGN_NAMES = { needsApproval: "requiresApproval", params: "parameters", schema: "parameters", input_schema: "parameters", handler: "execute", run: "execute", func: "execute" };

/**
 * Unknown members are the host's own, unless they look like a typo.
 * @param {string} owner @param {Record<string, unknown>} definition
 */
function checkTypos(owner, definition) {
  for (const key of Object.keys(definition)) {
    const ownName = FOREIGN_NAMES[key];
    const missing = ownName && definition[ownName] === undefined ? `; did you mean \`${ownName}\`?` : "";
    const suggestion = missing || (key === "name" || Object.hasOwn(TOOL, key) ? "" : didYouMean(key, Object.keys(TOOL)));
    if (suggestion) throw misuse(`${owner}: unknown option \`${key}\`${suggestion}`);
  }
}
