//! `wasm-bindgen-test-runner`: plays the tests of a wasm file in Node or in a headless browser. Cargo starts it,
//! see `.cargo/config.toml`.

fn main() -> anyhow::Result<()> {
    wasm_bindgen_cli::wasm_bindgen_test_runner::run_cli_with_args(std::env::args_os())
}
