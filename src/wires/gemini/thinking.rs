//! How a Gemini is told to think.

use crate::data::json::bool_text;
use crate::data::text::{self, contains};
use crate::rules::stream::Reasoning;
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::options::effort;

/// Writes how much to think. Gemini 3 takes a level, Gemini 2.5 a number of tokens, and those before do not
/// think.
pub(super) fn write_thinking(
    reasoning: &Reasoning,
    model: (&str, Option<(u32, u32)>),
    config: &mut RequestBody<'_>,
) {
    let (model, version) = model;
    let word = effort(reasoning);
    let is_off = word == "off" || word == "none";
    let is_pro = contains(model, "-pro");
    if version >= Some((3, 0)) {
        let level = match word {
            // These models cannot stop thinking.
            "off" | "none" | "minimal"
                if is_pro || (version >= Some((3, 7)) && !contains(model, "-lite")) =>
            {
                "LOW"
            }
            "off" | "none" | "minimal" => "MINIMAL",
            "low" => "LOW",
            "medium" => "MEDIUM",
            _ => "HIGH",
        };
        let template = r#"{"includeThoughts":#,"thinkingLevel":"$"}"#;
        config.fill("thinkingConfig", template, &[bool_text(!is_off), level]);
    } else if version >= Some((2, 5)) {
        let budget = match (reasoning, word) {
            (_, "off" | "none") => {
                if is_pro {
                    128
                } else {
                    0
                }
            }
            // What each of these models takes.
            (Reasoning::Budget(tokens), _) if is_pro => (*tokens).clamp(128, 32_768),
            (Reasoning::Budget(tokens), _) if contains(model, "-lite") => (*tokens).clamp(512, 24_576),
            (Reasoning::Budget(tokens), _) => (*tokens).min(24_576),
            (_, "minimal") => 1_024,
            (_, "low") => 2_048,
            (_, "medium") => 8_192,
            _ => 24_576,
        };
        let template = r#"{"includeThoughts":#,"thinkingBudget":#}"#;
        config.fill("thinkingConfig", template, &[bool_text(!is_off), &text::number(budget)]);
    }
}
