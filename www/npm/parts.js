// Where the parts of the wasm file are: beside this file. Vite and webpack recognise these lines and ship the files;
// esbuild and Rollup leave them as they are, so there the files must be copied next to the bundle.
import { inParts } from "./core.js";
import { fetched } from "./fetched.js";

/** @import { Fetch } from "./boundary/parts.js" */

const first = new URL("./turnwheel-first.wasm", import.meta.url);
const answer = new URL("./turnwheel-answer.wasm", import.meta.url);
const rest = new URL("./turnwheel-rest.wasm", import.meta.url);

/** What must not take the network from the first request. @param {URL} address @returns {Fetch} */
const later = (address) => (begun) => fetched(address, begun, "low");

export const load = inParts({
  first: (begun) => fetched(first, begun),
  answer: later(answer),
  rest: later(rest),
  // An address of Turbopack's has no base to build on; there the parts are always beside each other.
  whole: async () => fetched(new URL("turnwheel.wasm", first)),
});
