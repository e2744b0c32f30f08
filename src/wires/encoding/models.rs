//! What the name of a model says about it.

use crate::data::text::{contains, has_any, parse_u64, rsplit_once, split_once, split_while};
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
/// only later models know `none`. Codex and most of the sixth generation know neither. `xhigh` came with Codex-Max and
/// GPT-5.2, `max` with GPT-5.6.
pub(crate) fn known_effort<'a>(word: &'a str, model: &str) -> &'a str {
    let can_disable = ["gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"].iter().any(|name| contains(model, name));
    let version = gpt_version(model);
    let is_gpt_6 = version >= Some((6, 0));
    match word {
        "off" | "none" | "minimal" if contains(model, "codex") || (is_gpt_6 && !can_disable) => "low",
        "off" | "none" | "minimal" if version == Some((5, 0)) => "minimal",
        "off" | "none" if !model_name(model).starts_with("o") => "none",
        "off" | "none" | "minimal" => "low",
        "max" if version.is_some() && version < Some((5, 6)) => known_effort("xhigh", model),
        "xhigh" if version.is_some() && version < Some((5, 2)) && !contains(model, "codex-max") => "high",
        "xhigh" | "max" if ["o1", "o3", "o4"].iter().any(|old| model_name(model).starts_with(old)) => "high",
        word => word,
    }
}

/// Models of other providers that always think, by parts of their names. Each was refused a request that turned its
/// thinking off: "Reasoning is mandatory for this endpoint and cannot be disabled".
const THINKERS: &str = "\
    minimax-m|step-3|deepseek-r1|gpt-oss|grok-4|grok-3-mini|grok-code|kimi-k2.7-code|kimi-k2-thinking|qwq|-thinking|\
    magistral|stealth/|fable|mythos|claude-opus-5.5";

/// Of these, those that do not.
const NO_THINKERS: &str = "non-reasoning|non-thinking|grok-4.3|grok-4-fast|grok-4.1-fast";

/// Returns the least effort of a model that cannot be told not to think, by its name at OpenRouter; `None` if it can. An
/// unknown model of a known family is taken for its newest member.
pub(crate) fn least_effort(model: &str) -> Option<&'static str> {
    if contains(model, "gpt-5") || contains(model, "gpt-6") || is_reasoning_model(model) {
        return match known_effort("none", model) {
            "minimal" => Some("minimal"),
            "none" => None,
            _ => Some("low"),
        };
    }
    if let Some((_, name)) = split_once(model, "gemini-") {
        let version = version(name);
        let is_pro = contains(name, "pro") && version >= Some((2, 5));
        let is_new = version >= Some((3, 7)) && !contains(name, "-lite");
        return (is_pro || is_new).then_some("low");
    }
    let is_thinker = kimi_version(model) >= Some((3, 0)) || has_any(model, THINKERS);
    (is_thinker && !has_any(model, NO_THINKERS)).then_some("low")
}

/// Returns the version of a Kimi: `kimi-k2.6`, `kimi-k3`. The one that is called the latest is the newest.
pub(crate) fn kimi_version(model: &str) -> Option<(u32, u32)> {
    if contains(model, "kimi-latest") {
        return Some((u32::MAX, 0));
    }
    version(split_once(model, "kimi-k")?.1)
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
    let (word, _) = split_while(name, |byte| !b"-:@".contains(&byte));
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
