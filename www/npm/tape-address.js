// The address of the wasm file of turnwheel/tape, which lies beside this one; see address.js.
export const tapeAddress = new URL("./turnwheel-tape.wasm", import.meta.url);
