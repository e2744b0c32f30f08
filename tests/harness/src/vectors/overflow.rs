use turnwheel::json::Value;
use turnwheel::overflow::is_context_overflow;

use super::{Case, Player, gives_wanted, object, same, text_of};

pub(super) const PLAYER: Player = Player { set: "overflow", play, meets: same, meets_recommendation };

fn play(input: &Value) -> Result<Value, String> {
    // The text counts only if the adapter knows no kind.
    let is_typed = input.get("kind").and_then(Value::as_str) == Some("rate_limit");
    let overflow = !is_typed && is_context_overflow(text_of(input, "error")?);
    Ok(object([("overflow", overflow.into())]))
}

/// Of two possible answers, a recommendation without an assertion means the one that was not observed.
fn meets_recommendation(case: &Case<'_>, actual: &Value) -> bool {
    match case.wanted {
        Some(_) => gives_wanted(case, actual),
        None => case.recommended.is_some() && !same(case.expected, actual),
    }
}
