// Where the halves of the wasm file are: beside this file. Vite and webpack recognise these lines and ship the files;
// esbuild and Rollup leave them as they are, so there the files must be copied next to the bundle.
import { inHalves } from "./core.js";
import { fetched } from "./fetched.js";

const first = new URL("./turnwheel-first.wasm", import.meta.url);
const rest = new URL("./turnwheel-rest.wasm", import.meta.url);

export const load = inHalves(() => fetched(first), () => fetched(rest), () => fetched(new URL("turnwheel.wasm", first)));
