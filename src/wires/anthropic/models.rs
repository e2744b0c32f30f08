//! What the name of a Claude says about the model.

use crate::data::text::{self, contains, split_while};
use crate::wires::encoding::models::parse_u32;

/// Whether a Claude always thinks, and therefore cannot be forced to call a tool.
pub(super) fn always_thinks(model: &str) -> bool {
    let since = if contains(model, "fable") || contains(model, "mythos") { (5, 1) } else { (5, 5) };
    !contains(model, "haiku") && version(model) >= Some(since)
}

/// Returns the version of a Claude. One without a number in its name is taken for the newest.
pub(super) fn known_version(model: &str) -> Option<(u32, u32)> {
    version(model).or(if contains(model, "claude-") { Some((u32::MAX, 0)) } else { None })
}

/// Returns the version in the name of a Claude: `claude-3-7-sonnet-20250219`, `claude-sonnet-4-20250514`,
/// `claude-opus-4-6`.
pub(super) fn version(model: &str) -> Option<(u32, u32)> {
    let (_, mut name) = text::split_once(model, "claude-")?;
    let mut major = None;
    loop {
        let (part, rest) = split_while(name, |byte| !b"-.@:".contains(&byte));
        match (major, number(part)) {
            (None, number) => major = number,
            (Some(major), minor) => return Some((major, minor.unwrap_or(0))),
        }
        let Some(rest) = rest.get(1..) else { return major.map(|major| (major, 0)) };
        name = rest;
    }
}

/// Reads a part of a version. Longer ones are dates.
fn number(part: &str) -> Option<u32> {
    if part.len() <= 2 { parse_u32(part) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_claude_is_read_from_its_name() {
        let names = [
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-sonnet-5", Some((5, 0))),
            ("anthropic.claude-haiku-4.5@2025", Some((4, 5))),
            ("MiniMax-M2", None),
            ("claude-next", None),
        ];
        for (name, wanted) in names {
            assert_eq!(version(name), wanted, "{name}");
        }
    }
}
