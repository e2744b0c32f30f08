//! What the name of a model says about it.

use crate::data::text::{contains, parse_u64, rsplit_once, split, split_once};
use crate::rules::stream::StreamOptions;

use super::options::effort;

/// Whether a model of OpenAI thinks, and knows the role `developer`.
pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let name = model_name(model);
    let is_family = ["o1", "o3", "o4", "codex"].iter().any(|family| name.starts_with(family))
        || matches!(gpt_version(model), Some((5..=9, _)));
    is_family && !name.starts_with("o1-mini") && !contains(name, "-chat")
}

/// Whether a model of OpenAI thinks before this answer, and therefore rejects `temperature` and `top_p`. The
/// sixth generation always rejects them.
pub(crate) fn always_thinks(model: &str, options: &StreamOptions) -> bool {
    let effort = options.reasoning.as_ref().map(|reasoning| known_effort(effort(reasoning), model));
    is_reasoning_model(model) && (effort != Some("none") || gpt_version(model) >= Some((6, 0)))
}

/// Returns the nearest word for an effort that a model of OpenAI knows. Only GPT-5.0 knows `minimal`, and
/// only later models know `none`. Codex and most of the sixth generation know neither.
pub(crate) fn known_effort<'a>(word: &'a str, model: &str) -> &'a str {
    let can_disable = ["gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"].iter().any(|name| contains(model, name));
    let is_gpt_6 = gpt_version(model) >= Some((6, 0));
    match word {
        "off" | "none" | "minimal" if contains(model, "codex") || (is_gpt_6 && !can_disable) => "low",
        "off" | "none" | "minimal" if gpt_version(model) == Some((5, 0)) => "minimal",
        "off" | "none" if !model_name(model).starts_with("o") => "none",
        "off" | "none" | "minimal" => "low",
        word => word,
    }
}

/// Whether a model of OpenAI answers with JSON that fits a schema. The first ones do not.
pub(crate) fn takes_schemas(model: &str) -> bool {
    let name = model_name(model);
    name != "gpt-4" && !["gpt-3", "gpt-4-", "o1-mini", "o1-preview"].iter().any(|old| name.starts_with(old))
}

/// Returns the version of a GPT by its name, such as `gpt-5.4-mini`.
pub(crate) fn gpt_version(model: &str) -> Option<(u32, u32)> {
    version(model_name(model).strip_prefix("gpt-")?)
}

/// Returns the version at the start of a name.
pub(crate) fn version(name: &str) -> Option<(u32, u32)> {
    let word = split(name, "-").next()?;
    let (major, minor) = split_once(word, ".").unwrap_or((word, "0"));
    Some((parse_u32(major)?, parse_u32(minor).unwrap_or(0)))
}

/// Parses a number of a version.
pub(crate) fn parse_u32(digits: &str) -> Option<u32> {
    u32::try_from(parse_u64(digits)?).ok()
}

/// Returns the name of a model without the path before it.
fn model_name(model: &str) -> &str {
    rsplit_once(model, b'/').map_or(model, |(_, name)| name)
}
