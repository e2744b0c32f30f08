//! `cargo xtask soak`: agents by the hundred against a server that does everything wrong, and a ledger of what became of
//! them. The soak is `tests/soak/run.mjs`.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, root};
use crate::setup;

const NUMBERS: [&str; 6] = ["--minutes", "--seconds", "--seed", "--lives", "--at-once", "--patience"];
const WORDS: [&str; 4] = ["--life", "--only", "--hosts", "--sabotage"];

/// Runs `cargo xtask soak`. The exit code is 0 only if everything held that the ledger lists.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = parse(args)?;
    setup::for_build()?;
    pack::build(Kind::Release)?;
    let mut soak = command("node");
    soak.arg(root().join("tests/soak/run.mjs")).args(args.options());
    Ok(exit_code(soak.status().context("cannot start node")?))
}

/// Reads the arguments, before a build that takes minutes.
fn parse(given: &[String]) -> Result<Args> {
    let args = Args::parse(given, &["--verbose"], &[&NUMBERS[..], &WORDS].concat())?;
    args.no_positional()?;
    for name in NUMBERS {
        let number = args.value(name).map(str::parse::<u64>).transpose();
        number.map_err(|_| Misuse(format!("`{name}` wants a whole number")))?;
    }
    if args.value("--minutes").is_some() && args.value("--seconds").is_some() {
        return Err(Misuse("`--minutes` or `--seconds`, not both".to_owned()).into());
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let error = parse(&words).unwrap_err();
        assert!(error.is::<Misuse>(), "{error}");
        error.to_string()
    }

    #[test]
    fn what_makes_no_sense_is_named_before_anything_is_built() {
        assert_eq!(refused(&["--minutes", "x"]), "`--minutes` wants a whole number");
        assert_eq!(refused(&["--minutes=1", "--seconds=2"]), "`--minutes` or `--seconds`, not both");
        assert_eq!(refused(&["--sead", "1"]), "no option `--sead`; did you mean `--seed`?");
        assert_eq!(refused(&["talk"]), "do not know what to do with `talk`");
    }
}
