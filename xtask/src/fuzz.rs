//! `cargo xtask fuzz`: runs the fuzzing of `tests/fuzz.rs` for as long as one likes.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::{Args, Misuse};
use crate::run::command;

/// Ten minutes for each target, unless it is told otherwise. The same seed plays the same inputs, as far as it gets.
///
/// # Errors
/// Misuse, or no cargo.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--minutes", "--seconds", "--seed"])?;
    let number = |name: &str| -> Result<Option<u64>> {
        let told = args.value(name).map(str::parse).transpose();
        Ok(told.map_err(|_| Misuse(format!("`{name}` wants a whole number")))?)
    };
    let minutes = number("--minutes")?.unwrap_or(10);
    let seconds = number("--seconds")?.unwrap_or(minutes * 60);
    let status = command("cargo")
        .args(["test", "--package", "turnwheel", "--profile", "fuzz", "--test", "fuzz", "--", "--ignored"])
        .args(["--nocapture", "--exact", "on_demand"])
        .env("FUZZ_TARGETS", args.words.join(" "))
        .env("FUZZ_SECONDS", seconds.to_string())
        .env("FUZZ_SEED", number("--seed")?.unwrap_or(1).to_string())
        .status()
        .context("cannot start cargo")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
