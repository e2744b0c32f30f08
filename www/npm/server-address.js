// The address of the wasm file of the server engine, which lies beside this one; see address.js. A bundle in CommonJS has no
// address of its own, which matters only when this is asked, and turnwheel/inline has no files (xtask/src/pack/inline.rs).
export const serverAddress = () => new URL("./turnwheel-server.wasm", import.meta.url);
