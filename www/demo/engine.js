// @ts-check
// Where the built package is for the page. `cargo xtask demo` serves this folder at `/` and the
// package at `/pkg/`, and puts both into one folder with `--out`; in the repository the package is built to `pkg/` at the root.

/** @typedef {typeof import("../npm/index.js")} Turnwheel */

/** @typedef {typeof import("../npm/stores.js")} Stores */

/** @returns {Promise<Stores>} */
export function loadStores() {
  // @ts-ignore: built, not checked in
  return import("./pkg/stores.js");
}

/** @returns {Promise<typeof import("../npm/tabs.js")>} */
export function loadTabs() {
  // @ts-ignore: built, not checked in
  return import("./pkg/tabs.js");
}

/** @typedef {typeof import("../npm/inspector.js")} InspectorModule */

/** Defines <turnwheel-inspector>. @returns {Promise<InspectorModule>} */
export function loadInspector() {
  // @ts-ignore: built, not checked in
  return import("./pkg/inspector.js");
}

/** @returns {Promise<typeof import("../npm/remote.js")>} */
export function loadRemote() {
  // @ts-ignore: built, not checked in
  return import("./pkg/remote.js");
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

/** @returns {Promise<Turnwheel>} */
export function loadInPage() {
  // @ts-ignore: built, not checked in
  return import("./pkg/entry/web.js");
}
