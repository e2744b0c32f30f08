//! `wasm-bindgen`, as `cargo install wasm-bindgen-cli` would give it. Not under its own name: rustc takes a crate
//! `wasm_bindgen` for the library, and one of another version for an old one.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen::run_cli_with_args(std::env::args_os())
}
