// @ts-check
// Accepts tools of the AI SDK as they are: different names and shapes are converted here.

/**
 * Converts a tool of the AI SDK to the shape of turnwheel's; tools of turnwheel pass through.
 * @param {any} given
 */
export function adaptTool(given) {
  const { inputSchema, description, needsApproval, execute, toModelOutput } = given;
  if (given.parameters !== undefined || inputSchema === undefined) return given;
  return {
    ...given,
    parameters: schemaOf(inputSchema),
    description: typeof description === "function" ? description({}) : description,
    requiresApproval: typeof needsApproval === "function" ? (/** @type {any} */ args) => needsApproval(args, { toolCallId: "", messages: [] }) : needsApproval,
    execute: execute && (async (/** @type {any} */ input, /** @type {any} */ context) => {
      const messages = toModelMessages(context.messages);
      const output = await awaitOutput(execute.call(given, input, { ...context, messages }), context);
      return toModelOutput ? toToolResult(await toModelOutput({ toolCallId: context.callId, input, output })) : output;
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

/**
 * Awaits an output. A generator's yields are progress updates, and its last yield is the result.
 * @param {any} output @param {any} context
 */
async function awaitOutput(output, context) {
  const value = await output;
  if (!value?.[Symbol.asyncIterator]) return value;
  let last;
  for await (last of value) context.update(last);
  return last;
}

/** Converts what `toModelOutput` made for the model. @param {any} output */
function toToolResult({ type, value, reason }) {
  const content = type === "content" ? value.map(blockOf) : [textBlock(reason ?? value ?? "The call was denied.")];
  return { content, isError: /^error|denied$/.test(type) };
}

/** @param {any} part */
function blockOf(part) {
  const data = part.data?.data ?? part.data;
  if (typeof data === "string" && part.mediaType?.startsWith("image")) return { type: "image", mimeType: part.mediaType, data };
  return textBlock(part.text ?? part);
}

/** @param {unknown} value */
function textBlock(value) {
  return { type: "text", text: typeof value === "string" ? value : JSON.stringify(value) };
}

/**
 * The history in the form that AI SDK tools expect, up to the answer that contains the call.
 * @param {any[]} messages
 */
function toModelMessages(messages) {
  const before = messages.slice(0, messages.findLastIndex(({ role }) => role === "assistant"));
  return before.flatMap((message) => {
    const { role, content, callId: toolCallId, toolName, isError } = message;
    if (role === "custom") return [];
    if (role !== "tool_result") return [{ role, content: content.flatMap(partOf) }];
    const value = content.map((/** @type {any} */ block) => block.text ?? "").join("");
    return [{ role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output: { type: isError ? "error-text" : "text", value } }] }];
  });
}

/** @param {any} block */
function partOf({ type, text, thinking, mimeType: mediaType, data, name: filename, callId: toolCallId, toolName, arguments: input }) {
  if (type === "text") return { type, text };
  if (type === "thinking") return { type: "reasoning", text: thinking };
  if (type === "image") return { type, image: data, mediaType };
  if (type === "file") return { type, data, mediaType, filename };
  return type === "tool_call" ? { type: "tool-call", toolCallId, toolName, input } : [];
}
