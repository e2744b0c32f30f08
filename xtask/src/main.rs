//! `cargo xtask NAME`: everything this repository does besides `cargo build`.

mod conformance;

use std::process::ExitCode;

use anyhow::{Result, bail};

fn main() -> Result<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((name, rest)) if name == "conformance" => conformance::run(rest),
        _ => bail!("usage: cargo xtask conformance SCENARIO_DIR TRACE_DIR [--engine native|wasm]"),
    }
}
