// @ts-check
// Accepts tools of the AI SDK as they are: different names and shapes are converted here, their calls in ai-sdk-call.js.

import { late, loadRest } from "../boundary/rest.js";

/**
 * Converts a tool of the AI SDK to the shape of turnwheel's; tools of turnwheel pass through.
 * @param {any} given
 */
export function adaptTool(given) {
  const { inputSchema, description, needsApproval, execute } = given;
  if (given.parameters !== undefined || inputSchema === undefined) return given;
  return {
    ...given,
    parameters: schemaOf(inputSchema),
    description: typeof description === "function" ? description({}) : description,
    requiresApproval: typeof needsApproval === "function" ? (/** @type {any} */ args) => needsApproval(args, { toolCallId: "", messages: [] }) : needsApproval,
    execute: execute && (async (/** @type {any} */ input, /** @type {any} */ context) => {
      if (!late.rest) await loadRest();
      return late.rest.executeForeign(given, input, context);
    }),
  };
}

/**
 * Lazy schemas are functions; `jsonSchema(…, { validate })` and `zodSchema(…)` bring their own validation.
 * @param {any} given
 */
function schemaOf(given) {
  const schema = typeof given === "function" && !given["~standard"] ? given() : given;
  const { validate, "~standard": standard } = schema;
  if (standard || typeof validate !== "function") return schema;
  const toStandardResult = (/** @type {any} */ { success, value, error }) => (success ? { value } : { issues: [{ message: error.message }] });
  return {
    "~standard": {
      version: 1, vendor: "ai", jsonSchema: { input: () => schema.jsonSchema },
      validate(/** @type {unknown} */ value) {
        const answer = validate(value);
        return typeof answer.then === "function" ? Promise.resolve(answer).then(toStandardResult) : toStandardResult(answer);
      },
    },
  };
}
