//! The options of a call that several wires write alike.

use crate::data::json::{ToJson, bool_text};
use crate::data::text::number;
use crate::rules::stream::{ModelRequest, Reasoning, StreamOptions, ToolChoice};

use super::body::RequestBody;
use super::ids::fitting_id;

/// Writes the tool choice and whether calls may be parallel, in OpenAI's form. `named` is the template for
/// one tool. A model that `is_free` cannot be forced to call one.
pub(crate) fn write_openai_choice(
    options: &StreamOptions,
    named: &str,
    is_free: bool,
    has_parallel: bool,
    body: &mut RequestBody<'_>,
) {
    match &options.tool_choice {
        None => {}
        Some(ToolChoice::Tool(name)) if !is_free => body.fill("tool_choice", named, &[name]),
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Required) if !is_free => body.text("tool_choice", "required"),
        Some(_) => body.text("tool_choice", "auto"),
    }
    if let Some(parallel) = options.parallel_tool_calls.filter(|_| has_parallel) {
        body.raw("parallel_tool_calls", bool_text(parallel));
    }
}

/// Writes the cache key: the id of the session, shortened if necessary.
pub(crate) fn write_cache_key(request: &ModelRequest, has_key: bool, body: &mut RequestBody<'_>) {
    if let Some(session) = &request.session_id
        && has_key
        && request.options.cache != Some(false)
    {
        body.text("prompt_cache_key", &fitting_id(session, 64, |_| true));
    }
}

/// Returns the word for how much to think. A budget of tokens becomes the nearest word, for servers without
/// budgets.
pub(crate) fn effort(reasoning: &Reasoning) -> &str {
    match reasoning {
        Reasoning::Effort(word) => word,
        Reasoning::Budget(0) => "off",
        Reasoning::Budget(..=2_048) => "low",
        Reasoning::Budget(..=16_384) => "medium",
        Reasoning::Budget(_) => "high",
    }
}

/// Writes the sampling parameters.
pub(crate) fn write_sampling(options: &StreamOptions, top_p: &str, body: &mut RequestBody<'_>) {
    for (key, number) in [("temperature", &options.temperature), (top_p, &options.top_p)] {
        if let Some(number) = number {
            body.raw(key, number.as_str());
        }
    }
}

/// Writes the stop sequences.
pub(crate) fn write_stop(options: &StreamOptions, key: &str, body: &mut RequestBody<'_>) {
    if !options.stop.is_empty() {
        body.raw(key, &options.stop.to_json());
    }
}

/// Writes the limit on the length of the answer.
pub(crate) fn write_max_tokens(tokens: Option<u64>, key: &str, body: &mut RequestBody<'_>) {
    if let Some(tokens) = tokens {
        body.raw(key, &number(tokens));
    }
}
