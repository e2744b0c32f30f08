// Where the parts of the wasm file are: beside this file. Vite and webpack recognise these lines and ship the files;
// esbuild and Rollup leave them as they are, so there the files must be copied next to the bundle.
import { inParts } from "./core.js";
import { fetched } from "./fetched.js";

const first = new URL("./turnwheel-first.wasm", import.meta.url);
const chat = new URL("./turnwheel-openai-chat.wasm", import.meta.url);
const responses = new URL("./turnwheel-openai-responses.wasm", import.meta.url);
const anthropic = new URL("./turnwheel-anthropic.wasm", import.meta.url);
const gemini = new URL("./turnwheel-gemini.wasm", import.meta.url);
const answer = new URL("./turnwheel-answer.wasm", import.meta.url);
const rest = new URL("./turnwheel-rest.wasm", import.meta.url);

export const load = inParts({
  first: () => fetched(first),
  wires: { "openai-chat": () => fetched(chat), "openai-responses": () => fetched(responses), anthropic: () => fetched(anthropic), gemini: () => fetched(gemini) },
  answer: () => fetched(answer),
  rest: () => fetched(rest),
  whole: () => fetched(new URL("turnwheel.wasm", first)),
});
