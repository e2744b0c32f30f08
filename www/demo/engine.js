// @ts-check
// Where the built package is for the page. `cargo xtask demo` serves this folder at `/` and the
// package at `/pkg/`, and puts both into one folder with `--out`; in the repository the package is built to `pkg/` at the root.

/** Defines <turnwheel-inspector>. @returns {Promise<typeof import("../npm/inspector.js")>} */
export function loadInspector() {
  // @ts-ignore: built, not checked in
  return import("./pkg/inspector.js");
}

/** @returns {Promise<typeof import("../npm/local.js")>} */
export function loadLocal() {
  // @ts-ignore: built, not checked in
  return import("./pkg/local.js");
}

/** llama.cpp as WebAssembly, of the npm package @wllama/wllama, which is served at `/wllama/`. @returns {Promise<any>} */
export function loadWllama() {
  // @ts-ignore: of another package
  return import("./wllama/index.min.js");
}

/** @returns {Promise<typeof import("../npm/tape.js")>} */
export function loadTape() {
  // @ts-ignore: built, not checked in
  return import("./pkg/tape.js");
}
