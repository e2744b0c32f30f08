// Browsers, web workers and bundlers: the module is fetched in halves when the first run begins. Vite and webpack recognise
// the lines with the addresses and ship the files; esbuild and Rollup leave them as they are, so there the files must be
// copied next to the bundle.
import { inHalves, use } from "../core.js";
import { fetched } from "../fetched.js";

const first = new URL("../turnwheel-first.wasm", import.meta.url);
const rest = new URL("../turnwheel-rest.wasm", import.meta.url);

use(inHalves(() => fetched(first), () => fetched(rest), () => fetched(new URL("turnwheel.wasm", first))), true);

export * from "../index.js";
