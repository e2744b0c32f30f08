// @ts-check
// The form of an answer as a JSON Schema, for engines without a grammar.

/** @import { JsonSchema } from "../index.js" */
/** @import { Form, Shape } from "./shape.js" */

/** @param {Form} form @returns {JsonSchema} */
export function schemaOf({ tools, calls, output, mustCall }) {
  const closed = (/** @type {{ [name: string]: JsonSchema }} */ properties) => ({ type: "object", properties, required: Object.keys(properties), additionalProperties: false });
  const say = closed({ say: output ? strict(output) : { type: "string", minLength: 1 } });
  if (tools.length === 0 || calls === 0) return say;
  const items = { anyOf: tools.map(({ name, shape }) => closed({ name: { const: name }, arguments: strict(shape) })) };
  const called = closed({ calls: { type: "array", items, minItems: 1, maxItems: calls } });
  return mustCall ? called : { anyOf: [called, say] };
}

/** @param {Shape} shape @returns {JsonSchema} */
function strict(shape) {
  switch (shape.kind) {
    case "object":
      return {
        type: "object",
        properties: Object.fromEntries(shape.members.map((member) => [member.name, strict(member.shape)])),
        required: shape.members.filter((member) => member.required).map(({ name }) => name),
        additionalProperties: false,
      };
    case "array":
      return { type: "array", items: strict(shape.items), minItems: shape.min, maxItems: shape.max };
    case "string":
      return { type: "string", ...(shape.min > 0 && { minLength: shape.min }), ...(shape.max !== undefined && { maxLength: shape.max }) };
    case "integer":
    case "number":
      return { type: shape.kind, ...(!shape.signed && { minimum: 0 }) };
    case "boolean":
      return { type: "boolean" };
    case "literal":
      return { enum: shape.values };
    case "either":
      return { anyOf: shape.of.map(strict) };
    case "any":
      return {};
  }
}
