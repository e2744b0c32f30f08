// @ts-check
// The models to choose from. A model is a row; a wire format is a function of the package. A new provider is
// one more row, a new wire format one more entry.

/** @typedef {import("../npm/index.js").Model} Model */
/** @typedef {typeof import("../npm/index.js")} Turnwheel */

/** The user's choice. @typedef {{ row: string, baseUrl: string, model: string, apiKey: string }} Choice */

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {"page" | "server" | "key"} group
 * @property {string} label
 * @property {string} note one line under the label
 * @property {keyof typeof WIRES} wire
 * @property {"none" | "optional" | "required"} key
 * @property {string} [baseUrl]
 * @property {string} [model] a model that it probably has
 * @property {string} [start] how to start the server
 * @property {(origin: string) => string} [allow] how to make it accept this page
 */

/** What the rows have in common, by group. @type {[Row["group"], string][]} */
export const GROUPS = [["page", "In this page"], ["server", "A server of yours"], ["key", "With a key"]];

/** @type {Row[]} */
export const ROWS = [
  { id: "browser", group: "page", label: "The browser’s own model", note: "", wire: "device", key: "none" },
  { id: "small", group: "page", label: "A small model", note: "", wire: "device", key: "none" },
  { id: "script", group: "page", label: "Scripted clerk", note: "Works everywhere, at once: a script, not a language model.", wire: "script", key: "none" },
  {
    id: "ollama", group: "server", label: "Ollama", note: "", wire: "openaiCompatible", key: "none", baseUrl: "http://localhost:11434/v1", model: "qwen3:4b",
    start: "ollama serve", allow: (origin) => `start it with \`OLLAMA_ORIGINS=${origin}\`.`,
  },
  {
    id: "llama.cpp", group: "server", label: "llama.cpp", note: "", wire: "openaiCompatible", key: "optional", baseUrl: "http://localhost:8080/v1", model: "default",
    start: "llama-server -m MODEL.gguf --jinja", allow: () => "llama-server allows every page unless something stands before it.",
  },
  {
    id: "lm-studio", group: "server", label: "LM Studio", note: "", wire: "openaiCompatible", key: "none", baseUrl: "http://localhost:1234/v1", model: "qwen/qwen3-4b",
    start: "lms server start --cors", allow: () => "switch on “Enable CORS” in its server settings.",
  },
  { id: "own", group: "server", label: "Another address", note: "", wire: "openaiCompatible", key: "optional", baseUrl: "", model: "" },
  { id: "openai", group: "key", label: "OpenAI", note: "", wire: "openai", key: "required", baseUrl: "https://api.openai.com/v1", model: "gpt-5-mini" },
  { id: "openai-responses", group: "key", label: "OpenAI Responses", note: "", wire: "openaiResponses", key: "required", baseUrl: "https://api.openai.com/v1", model: "gpt-5-mini" },
  { id: "anthropic", group: "key", label: "Anthropic", note: "", wire: "anthropic", key: "required", baseUrl: "https://api.anthropic.com/v1", model: "claude-sonnet-4-5" },
  { id: "gemini", group: "key", label: "Gemini", note: "", wire: "gemini", key: "required", baseUrl: "https://generativelanguage.googleapis.com/v1beta", model: "gemini-flash-latest" },
];

/** What models need of their process. @typedef {{ script: import("../npm/index.js").StreamFn, fetch: typeof fetch }} Means */

/** @type {Record<"script" | "device" | "openai" | "openaiResponses" | "openaiCompatible" | "anthropic" | "gemini", (turnwheel: Turnwheel, choice: Choice, means: Means) => Model>} */
const WIRES = {
  script: (turnwheel, _, { script }) => turnwheel.custom("scripted-clerk", script),
  // It is in the page, and its process asks it there.
  device: (turnwheel, _, { script }) => turnwheel.custom("in-the-page", script),
  openai: (turnwheel, choice, means) => turnwheel.openai(choice.model, endpoint(choice, means)),
  openaiResponses: (turnwheel, choice, means) => turnwheel.openaiResponses(choice.model, endpoint(choice, means)),
  openaiCompatible: (turnwheel, choice, means) => turnwheel.openaiCompatible(choice.model, endpoint(choice, means)),
  // The user's own key, typed for this page: the case that the switch exists for.
  anthropic: (turnwheel, choice, means) => turnwheel.anthropic(choice.model, { ...endpoint(choice, means), dangerouslyAllowBrowser: true }),
  gemini: (turnwheel, choice, means) => turnwheel.gemini(choice.model, endpoint(choice, means)),
};

/** @param {Choice} choice @param {Means} means */
const endpoint = ({ baseUrl, apiKey }, { fetch }) => ({ baseUrl, fetch, ...(apiKey && { apiKey }) });

/** @type {Choice} */
export const FIRST_CHOICE = { row: "script", baseUrl: "", model: "", apiKey: "" };

/** @param {string} id @returns {Row} the script for an id that is no longer there */
export function rowOf(id) {
  return /** @type {Row} */ (ROWS.find((row) => row.id === id) ?? ROWS.find((row) => row.id === FIRST_CHOICE.row));
}

/** Whether the row needs an address and a model id. @param {Row} row */
export function isRemote(row) {
  return row.baseUrl !== undefined;
}

/** Whether the model runs in this page, and has to be loaded first. @param {Row} row */
export function isOnDevice(row) {
  return row.wire === "device";
}

/** @param {Turnwheel} turnwheel @param {Choice} choice @param {Means} means @returns {Model} */
export function modelOf(turnwheel, choice, means) {
  return WIRES[rowOf(choice.row).wire](turnwheel, choice, means);
}

/** What leaves the page if this choice answers, and to whom, in one sentence. @param {Choice} choice */
export function whatLeaves(choice) {
  const row = rowOf(choice.row);
  if (!isRemote(row)) return "Nothing leaves this page.";
  const host = hostOf(choice.baseUrl);
  const isHere = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])(?::\d+)?$/.test(host);
  return `The invoices${row.key === "none" ? " and what the tools say" : ", what the tools say and your key"} go to ${host}${isHere ? ", on this machine," : ","} and to nobody else.`;
}

/** A name for the choice, in one line. @param {Choice} choice */
export function nameOf(choice) {
  const row = rowOf(choice.row);
  if (isOnDevice(row)) return choice.model || row.label;
  return isRemote(row) ? `${choice.model} · ${row.id === "own" ? hostOf(choice.baseUrl) : row.label}` : row.label;
}

/**
 * Describes a choice for `explain`.
 * @param {Choice} choice @param {string} origin
 * @returns {import("./advice.js").Where}
 */
export function whereOf(choice, origin) {
  const row = rowOf(choice.row);
  return {
    label: row.id === "own" ? hostOf(choice.baseUrl) : row.label,
    origin,
    ...(isRemote(row) && { baseUrl: choice.baseUrl, model: choice.model }),
    ...(row.start && { start: row.start }),
    ...(row.allow && { allow: row.allow(origin) }),
  };
}

/**
 * Says what is missing in a choice, by field.
 *
 * @param {Choice} choice
 * @returns {{ baseUrl?: string, model?: string, apiKey?: string }}
 */
export function missingIn({ row: id, baseUrl, model, apiKey }) {
  const row = rowOf(id);
  if (!isRemote(row)) return {};
  const isUrl = /^https?:\/\/[^\s/]+/.test(baseUrl);
  return {
    ...(!isUrl && { baseUrl: baseUrl ? "An address begins with http:// or https://." : "Give the address, usually ending in /v1." }),
    ...(!model && { model: "Give the id of a model that is there." }),
    ...(row.key === "required" && !apiKey && { apiKey: `${row.label} answers with a key only.` }),
  };
}

/**
 * Lists the models that the address offers.
 *
 * @param {Choice} choice
 * @param {AbortSignal} signal
 * @returns {Promise<{ ids: string[] } | { error: import("../npm/index.js").ErrorInfo }>}
 */
export async function listModels({ row, baseUrl, apiKey }, signal) {
  let response;
  try {
    response = await fetch(`${baseUrl.replace(/\/+$/, "")}/models`, { signal, redirect: "error", headers: keyHeaders(rowOf(row).wire, apiKey) });
  } catch (error) {
    return { error: { code: signal.aborted ? "timeout" : "network", message: error instanceof Error ? error.message : String(error), retryable: true } };
  }
  if (!response.ok) {
    const code = response.status === 401 || response.status === 403 ? "auth" : response.status >= 500 ? "server" : "invalid_request";
    return { error: { code, message: response.statusText, retryable: false, provider: { status: response.status } } };
  }
  try {
    const body = await response.json();
    /** @type {{ id?: unknown, name?: unknown }[]} */
    const models = body.data ?? body.models ?? [];
    const ids = models.map(({ id, name }) => id ?? String(name).replace(/^models\//, "")).filter((id) => typeof id === "string");
    return { ids };
  } catch {
    return { error: { code: "unknown", message: "The address answers, but not with a list of models. Is it the right one? It usually ends in /v1.", retryable: false } };
  }
}

/**
 * The headers that carry the key, by wire format.
 * @param {Row["wire"]} wire @param {string} key @returns {Record<string, string>}
 */
function keyHeaders(wire, key) {
  if (wire === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01", "anthropic-dangerous-direct-browser-access": "true" };
  if (!key) return {};
  return wire === "gemini" ? { "x-goog-api-key": key } : { authorization: `Bearer ${key}` };
}

/** @param {string} baseUrl */
function hostOf(baseUrl) {
  try {
    return new URL(baseUrl).host;
  } catch {
    return baseUrl || "the address";
  }
}
