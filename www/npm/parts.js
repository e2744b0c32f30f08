// Where the parts of the wasm file are: beside this file. Vite and webpack recognise these lines and ship the files;
// esbuild and Rollup leave them as they are, so there the files must be copied next to the bundle.
import { inParts } from "./core.js";
import { fetched } from "./fetched.js";

/** @import { Fetch } from "./boundary/parts.js" */

const first = new URL("./turnwheel-first.wasm", import.meta.url);
const chat = new URL("./turnwheel-openai-chat.wasm", import.meta.url);
const responses = new URL("./turnwheel-openai-responses.wasm", import.meta.url);
const anthropic = new URL("./turnwheel-anthropic.wasm", import.meta.url);
const gemini = new URL("./turnwheel-gemini.wasm", import.meta.url);
const answer = new URL("./turnwheel-answer.wasm", import.meta.url);
const answerChat = new URL("./turnwheel-answer-openai-chat.wasm", import.meta.url);
const answerResponses = new URL("./turnwheel-answer-openai-responses.wasm", import.meta.url);
const answerAnthropic = new URL("./turnwheel-answer-anthropic.wasm", import.meta.url);
const answerGemini = new URL("./turnwheel-answer-gemini.wasm", import.meta.url);
const requests = new URL("./turnwheel-requests.wasm", import.meta.url);
const rest = new URL("./turnwheel-rest.wasm", import.meta.url);

/** @param {URL} address @returns {Fetch} */
const now = (address) => (begun) => fetched(address, begun);
/** What must not take the network from the first request. @param {URL} address @returns {Fetch} */
const later = (address) => (begun) => fetched(address, begun, "low");

export const load = inParts({
  first: now(first),
  wires: { "openai-chat": now(chat), "openai-responses": now(responses), anthropic: now(anthropic), gemini: now(gemini) },
  answer: later(answer),
  answers: { "openai-chat": later(answerChat), "openai-responses": later(answerResponses), anthropic: later(answerAnthropic), gemini: later(answerGemini) },
  requests: later(requests),
  rest: later(rest),
  // An address of Turbopack's has no base to build on; there the parts are always beside each other.
  whole: async () => fetched(new URL("turnwheel.wasm", first)),
});
