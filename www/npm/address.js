// The address of the wasm file, which lies beside this one. Vite and webpack recognise this line and ship the
// file; esbuild, Rollup and Bun leave the line as it is, so there the file must be copied next to the bundle.
export const address = new URL("./turnwheel.wasm", import.meta.url);
