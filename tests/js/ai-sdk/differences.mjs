// @ts-check
// Why an answer through a package of the AI SDK may differ from the same answer on a wire of the package: the reasons that are
// known, each with a rule that tells from the recording and the two outcomes whether it applies, and which fields it explains.
// Whatever no rule explains is a fault, of the bridge or of this list.

/** @typedef {import("./providers.mjs").Version} Version */
/**
 * @typedef {object} Compared
 * @property {Version} version
 * @property {any} expected
 * @property {string} body the recorded stream; empty for an error answer
 * @property {any} native what is compared of the wire
 * @property {any} bridge and of the bridge
 * @property {string} message of the bridge's error
 */
/** @typedef {{ reason: string, versions: Version[], fields: string[] | "all", applies(compared: Compared): boolean }} Rule */

const ALL = /** @type {Version[]} */ (["v3", "v4"]);

/** @param {Compared} compared */
const isOpenai = ({ expected }) => expected.wire.startsWith("openai");
/** @param {Compared} compared */
const onlyBridgeFails = ({ native, bridge }) => !native.error && bridge.error;

/** The documents of a recorded stream. @param {string} body @returns {any[]} */
const documents = (body) => body.split(/\r\n|\r|\n/).flatMap((line) => {
  try {
    return line.startsWith("data:") ? [JSON.parse(line.slice(5))] : [];
  } catch {
    return [];
  }
});

/** Whether the texts of items are longer than what their deltas held. @param {string} body */
function hasMoreThanDeltas(body) {
  const all = documents(body);
  const texts = (/** @type {string} */ type, /** @type {string} */ key) => all.filter((each) => each.type === type).map((each) => each[key]).join("");
  return texts("response.output_text.delta", "delta") !== texts("response.output_text.done", "text");
}

/** Whether two lists of thoughts differ in nothing but what signs them, which may be all there is of one. @param {any} native @param {any} bridge */
function differInSignatures({ thinking: native }, { thinking: bridge }) {
  const plain = (/** @type {any[]} */ list) => JSON.stringify(list.filter(({ text }) => text !== "").map(({ text }) => text));
  return plain(native) === plain(bridge);
}

/** Whether an expectation says that the server did to the answer what the packages of the AI SDK do not undo. @param {any} expected */
export const isUndone = (expected) => expected.clients_that_differ?.["ai-sdk"] === "does not undo it";

/** @type {Rule[]} */
export const RULES = [
  { reason: "text beside the events is not read", versions: ALL, fields: ["text", "stop", "usage", "error"], applies: ({ body }) => /(^|\n)[ \t]*[{}\[\]"<]/.test(body) },
  { reason: "the last frame has no empty line after it, and is lost", versions: ALL, fields: "all", applies: ({ body }) => body !== "" && !/(\r\n\r\n|\n\n|\r\r)$/.test(body) },
  { reason: "the package's schema refuses a chunk", versions: ALL, fields: "all", applies: ({ bridge, message }) => bridge.error && /^(Type validation failed|JSON parsing failed|Invalid JSON|Expected '?(id|function|a )|Invalid (input|response))/.test(message) },
  { reason: "the package's schema refuses a chunk", versions: ALL, fields: "all", applies: (compared) => Boolean(onlyBridgeFails(compared)) && compared.expected.wire === "openai-responses" && /^the provider ended the answer with `error`/.test(compared.message) && !/"type": ?"(error|response\.failed)"/.test(compared.body) },
  { reason: "the package crashes over ids that change", versions: ["v3"], fields: "all", applies: (compared) => compared.bridge.error && isOpenai(compared) && /^Cannot read properties of undefined/.test(compared.message) },
  { reason: "the package takes a second message as an error", versions: ALL, fields: "all", applies: ({ message }) => /^Received message_start for message/.test(message) },
  { reason: "there is no finish reason and no usage, only [DONE]", versions: ["v4"], fields: "all", applies: (compared) => Boolean(onlyBridgeFails(compared)) && compared.expected.wire === "openai-chat" && /^the stream ended early/.test(compared.message) && !/"finish_reason": ?"/.test(compared.body) },
  { reason: "the package waits for message_stop", versions: ALL, fields: "all", applies: (compared) => Boolean(onlyBridgeFails(compared)) && compared.expected.wire === "anthropic" && compared.bridge.error[0] === "network" && !/message_stop/.test(compared.body) },
  { reason: "the package leaves signatures and encrypted thoughts of other servers out", versions: ALL, fields: ["thinking"], applies: (compared) => isOpenai(compared) && differInSignatures(compared.native, compared.bridge) },
  { reason: "an error before any text is thrown, and what came before it is lost", versions: ALL, fields: ["thinking"], applies: ({ native, bridge }) => native.error && bridge.error && native.text === "" && bridge.thinking.length === 0 },
  { reason: "of an answer that was cut, a package tells sooner or later what of it is whole", versions: ALL, fields: ["calls", "raw", "thinking"], applies: ({ native, bridge }) => native.error?.[0] === "network" && bridge.error?.[0] === "network" && native.text === bridge.text && native.ran.length + bridge.ran.length === 0 },
  { reason: "an item has more text than its deltas", versions: ALL, fields: ["text"], applies: ({ expected, body }) => expected.wire === "openai-responses" && hasMoreThanDeltas(body) },
  { reason: "only the first choice counts, and the package mixes them", versions: ALL, fields: ["text", "thinking", "calls", "ran", "stop"], applies: ({ expected, body }) => expected.wire === "openai-chat" && documents(body).some(({ choices }) => choices?.some?.((/** @type {any} */ choice) => choice.index > 0)) },
  { reason: "the server counts its cache in fields of its own", versions: ALL, fields: ["usage"], applies: ({ expected, body }) => expected.wire === "openai-chat" && /"(prompt_cache_hit_tokens|x_groq)"|"usage":\{[^{}]*"cached_tokens"/.test(body) },
  { reason: "the provider's own blocks have other words", versions: ALL, fields: ["raw"], applies: ({ native, bridge }) => native.raw.length > 0 && bridge.raw.length > 0 },
  { reason: "the package leaves out blocks of the provider", versions: ALL, fields: ["raw"], applies: ({ native, bridge }) => native.raw.length > 0 && bridge.raw.length === 0 },
  { reason: "the package does not undo what the server does", versions: ALL, fields: "all", applies: ({ expected }) => isUndone(expected) },
];

/** The fields that differ, and the reasons that explain them; what is not explained is left over. @param {Compared} compared @param {string[]} fields */
export function explain(compared, fields) {
  let left = fields;
  const reasons = RULES.filter((rule) => {
    if (!rule.versions.includes(compared.version)) return false;
    const explained = left.filter((field) => rule.fields === "all" || rule.fields.includes(field));
    if (explained.length === 0 || !rule.applies(compared)) return false;
    left = left.filter((field) => !explained.includes(field));
    return true;
  });
  return { reasons: reasons.map(({ reason }) => reason), left };
}
