//! Parses the arguments of `cargo xtask NAME`, with a helpful error for unknown options.

use std::collections::BTreeMap;

use anyhow::Result;
use lexopt::{Arg, Parser, ValueExt};

/// The arguments make no sense. The error is shown with the usage of the command.
#[derive(Debug)]
pub struct Misuse(pub String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

/// Parsed arguments: flags, options with a value, and everything else (words).
#[derive(Debug, Default, PartialEq)]
pub struct Args {
    flags: Vec<String>,
    values: BTreeMap<String, Vec<String>>,
    pub positional: Vec<String>,
}

impl Args {
    /// Reads `--flag`, `--name value` and `--name=value`; after a lone `--` everything is a word.
    ///
    /// # Errors
    /// [`Misuse`] for an option in neither list, or a value that is missing or not expected.
    pub fn parse(given: &[String], flags: &[&str], values: &[&str]) -> Result<Self> {
        let mut args = Self::default();
        let mut parser = Parser::from_args(given);
        while let Some(arg) = parser.next()? {
            let name = match arg {
                Arg::Value(word) => {
                    args.positional.push(word.string()?);
                    continue;
                }
                Arg::Long(name) => format!("--{name}"),
                Arg::Short(letter) => format!("-{letter}"),
            };
            if flags.contains(&name.as_str()) {
                if parser.optional_value().is_some() {
                    return Err(Misuse(format!("`{name}` takes no value")).into());
                }
                args.flags.push(name);
            } else if values.contains(&name.as_str()) {
                let no_value = |_| Misuse(format!("`{name}` wants a value after it"));
                let value = parser.value().map_err(no_value)?.string()?;
                args.values.entry(name).or_default().push(value);
            } else {
                let known: Vec<&str> = flags.iter().chain(values).copied().collect();
                return Err(Misuse(unknown("option", &name, &known)).into());
            }
        }
        Ok(args)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// Returns the value of an option; the last one if it was given more than once.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.all(name).last().map(String::as_str)
    }

    pub fn all(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the options as they were given, each as one word: `--name=value`.
    pub fn options(&self) -> Vec<String> {
        let values =
            self.values.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        self.flags.iter().cloned().chain(values.map(|(name, value)| format!("{name}={value}"))).collect()
    }

    /// Checks that there are no words left, for a command that takes none.
    ///
    /// # Errors
    /// [`Misuse`] if there are.
    pub fn no_positional(&self) -> Result<()> {
        match self.positional.first() {
            Some(word) => Err(Misuse(format!("do not know what to do with `{word}`")).into()),
            None => Ok(()),
        }
    }
}

/// Returns ``no option `--prot`; did you mean `--port`?``, or the list of known names.
pub fn unknown(what: &str, given: &str, known: &[&str]) -> String {
    let near = known.iter().map(|name| (distance(given, name), name)).min();
    match near {
        Some((steps, name)) if steps <= 2 || name.starts_with(given) => {
            format!("no {what} `{given}`; did you mean `{name}`?")
        }
        Some(_) => format!("no {what} `{given}`; there is {}", known.join(", ")),
        None => format!("no {what} `{given}`; there is none here"),
    }
}

/// Counts the letters to add, drop or change to turn one word into the other.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, letter) in from.chars().enumerate() {
        let mut next = vec![line + 1];
        for (column, other) in to.iter().enumerate() {
            let change = row[column] + usize::from(letter != *other);
            next.push(change.min(row[column + 1] + 1).min(next[column] + 1));
        }
        row = next;
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Args> {
        let given: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
        Args::parse(&given, &["--dev"], &["--port", "--once"])
    }

    #[test]
    fn flags_values_and_words_are_told_apart() {
        let args = parse(&["--dev", "--port", "80", "a", "--once=b=c", "--", "--dev2"]).unwrap();
        assert!(args.has("--dev") && !args.has("--port"));
        assert_eq!((args.value("--port"), args.value("--once")), (Some("80"), Some("b=c")));
        assert_eq!(args.positional, ["a", "--dev2"]);
        assert_eq!(args.options(), ["--dev", "--once=b=c", "--port=80"]);
    }

    #[test]
    fn a_slip_of_the_finger_gets_a_proposal() {
        let error = parse(&["--prot", "80"]).unwrap_err().to_string();
        assert_eq!(error, "no option `--prot`; did you mean `--port`?");
    }

    #[test]
    fn a_word_far_from_everything_gets_the_list() {
        assert_eq!(
            unknown("command", "deploy", &["build", "test"]),
            "no command `deploy`; there is build, test"
        );
    }

    #[test]
    fn an_option_without_its_value_is_refused() {
        assert_eq!(parse(&["--port"]).unwrap_err().to_string(), "`--port` wants a value after it");
        assert_eq!(parse(&["--dev=1"]).unwrap_err().to_string(), "`--dev` takes no value");
    }
}
