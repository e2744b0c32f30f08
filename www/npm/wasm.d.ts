/** Whatever your bundler makes of the file: its URL, its bytes, or a compiled module. For `use(…)` of `turnwheel/slim`. */
declare const wasm: any;
export default wasm;
