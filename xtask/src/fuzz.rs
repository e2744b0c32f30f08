//! `cargo xtask fuzz`: runs the fuzzing in `tests/fuzz.rs` for as long as you like.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::{self, Args, Misuse};
use crate::run::command;

/// Fuzzes each target, for ten minutes by default. The same seed produces the same inputs,
/// as far as the time allows.
///
/// # Errors
/// Misuse, or cargo cannot be run.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--minutes", "--seconds", "--seed"])?;
    // Checked before the build, which takes minutes.
    let known = targets();
    if let Some(name) = args.positional.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Misuse(args::unknown("target", name, &known)).into());
    }
    let number = |name: &str| -> Result<Option<u64>> {
        let parsed = args.value(name).map(str::parse).transpose();
        Ok(parsed.map_err(|_| Misuse(format!("`{name}` wants a whole number")))?)
    };
    let minutes = number("--minutes")?.unwrap_or(10);
    let seconds = number("--seconds")?.unwrap_or(minutes * 60);
    let status = command("cargo")
        .args(["test", "--package", "turnwheel", "--profile", "fuzz", "--test", "fuzz", "--", "--ignored"])
        .args(["--nocapture", "--exact", "on_demand"])
        .env("FUZZ_TARGETS", args.positional.join(" "))
        .env("FUZZ_SECONDS", seconds.to_string())
        .env("FUZZ_SEED", number("--seed")?.unwrap_or(1).to_string())
        .status()
        .context("cannot start cargo")?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

/// Returns the names of the targets, read from their own list.
fn targets() -> Vec<&'static str> {
    let named = |line: &'static str| line.trim().strip_prefix("Target { name: \"")?.split('"').next();
    include_str!("../../tests/harness/src/fuzz/targets.rs").lines().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_none_is_named_before_anything_is_built() {
        assert!(targets().contains(&"sse"), "{:?}", targets());
        let error = run(&["jsom".to_owned()]).unwrap_err();
        assert!(error.to_string().contains("no target `jsom`; did you mean `json`?"), "{error}");
    }
}
