// The types of what `cargo xtask build` writes for ../inline.js.

/** How many bytes the wasm file has. */
export const SIZE: number;
/** It, compressed (zlib), in base64. */
export const PACKED: string;
