//! `cargo xtask differ`: random sequences of calls of the public API, played with the package of another revision
//! and with the present one, and compared line by line. The harness is `tests/differ/run.mjs`.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::against;
use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, root};
use crate::setup;

const NUMBERS: [&str; 2] = ["--sequences", "--seed"];

/// Runs `cargo xtask differ`. Fails if a sequence shows a difference that `tests/differ/allowed.mjs` does not
/// name.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let (args, named) = parse(args)?;
    let old = against::find(&named)?;
    setup::for_build()?;
    let package = old.package()?;
    let new = pack::build(Kind::Release)?.folder;
    let mut differ = command("node");
    differ.arg(root().join("tests/differ/run.mjs")).args([package, new]);
    differ.args(old.commit().map(|hash| format!("--since={hash}")));
    for name in NUMBERS {
        differ.args(args.value(name).map(|number| format!("{name}={number}")));
    }
    Ok(exit_code(differ.status().context("cannot start node")?))
}

/// Reads the arguments, before builds that take minutes. Returns them, and what `--against` names.
fn parse(given: &[String]) -> Result<(Args, String)> {
    let args = Args::parse(given, &[], &[&NUMBERS[..], &["--against"]].concat())?;
    args.no_positional()?;
    for name in NUMBERS {
        let number = args.value(name).map(str::parse::<u32>).transpose();
        number.map_err(|_| Misuse(format!("`{name}` wants a whole number")))?;
    }
    let Some(named) = args.value("--against") else {
        return Err(
            Misuse("`--against` is missing: a revision, or the folder of a package".to_owned()).into()
        );
    };
    let named = named.to_owned();
    Ok((args, named))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&words).unwrap_err().downcast::<Misuse>().unwrap().to_string()
    }

    #[test]
    fn what_makes_no_sense_is_named_before_anything_is_built() {
        assert_eq!(refused(&[]), "`--against` is missing: a revision, or the folder of a package");
        assert_eq!(refused(&["--against"]), "`--against` wants a value after it");
        assert_eq!(refused(&["--against=HEAD", "--seed", "x"]), "`--seed` wants a whole number");
        assert_eq!(refused(&["--against=HEAD", "--sequences=-1"]), "`--sequences` wants a whole number");
        assert_eq!(refused(&["--against=HEAD", "--sead=1"]), "no option `--sead`; did you mean `--seed`?");
        assert_eq!(refused(&["HEAD"]), "do not know what to do with `HEAD`");
        assert!(refused(&["--against", "nowhere"]).starts_with("`nowhere` is neither a package ("));
    }
}
