//! Licences as SPDX expressions: `MIT OR Apache-2.0`.

use anyhow::{Result, anyhow};
use spdx::{Expression, Licensee, ParseMode};

/// Returns the licences that something is taken under, of those that its expression offers: as few as possible, the first
/// in `accepted` before the others.
///
/// # Errors
/// If the expression makes no sense, or cannot be met with what is accepted.
pub fn taken_under(expression: &str, accepted: &[&str]) -> Result<Vec<String>> {
    let parsed =
        Expression::parse_mode(expression, ParseMode::LAX).map_err(|error| anyhow!("{}", error.reason))?;
    let accepted: Vec<Licensee> = accepted
        .iter()
        .map(|name| Licensee::parse(name).map_err(|_| anyhow!("`{name}` is no licence that SPDX knows")))
        .collect::<Result<_>>()?;
    let taken = parsed
        .minimized_requirements(&accepted)
        .map_err(|_| anyhow!("none of the accepted licences meets it"))?;
    Ok(taken.iter().map(ToString::to_string).collect())
}

/// Writes an expression as SPDX has it today: old crates say `MIT/Apache-2.0`.
pub fn in_todays_form(expression: &str) -> String {
    Expression::canonicalize(expression).ok().flatten().unwrap_or_else(|| expression.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: &[&str] = &["Apache-2.0", "MIT", "Apache-2.0 WITH LLVM-exception"];

    #[test]
    fn of_a_choice_the_first_accepted_is_taken() {
        for (expression, taken) in [
            ("MIT OR Apache-2.0", &["Apache-2.0"][..]),
            ("MIT/Apache-2.0", &["Apache-2.0"]),
            ("Unlicense OR MIT", &["MIT"]),
            ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", &["Apache-2.0"]),
        ] {
            assert_eq!(taken_under(expression, ACCEPTED).unwrap(), taken, "{expression}");
        }
        let both = taken_under("MIT AND Apache-2.0 WITH LLVM-exception", ACCEPTED).unwrap();
        assert!(both.len() == 2 && both.contains(&"MIT".to_owned()), "{both:?}");
    }

    #[test]
    fn what_is_not_accepted_or_makes_no_sense_is_refused() {
        for expression in
            ["GPL-3.0-only", "MIT AND GPL-2.0-only", "mine", "", "MIT OR", "SEE LICENSE IN LICENSE"]
        {
            assert!(taken_under(expression, ACCEPTED).is_err(), "{expression}");
        }
        assert!(taken_under("MIT OR GPL-3.0-only", ACCEPTED).is_ok());
    }

    #[test]
    fn old_expressions_are_written_as_today() {
        assert_eq!(in_todays_form("MIT/Apache-2.0"), "MIT OR Apache-2.0");
        assert_eq!(in_todays_form("MIT"), "MIT");
    }
}
