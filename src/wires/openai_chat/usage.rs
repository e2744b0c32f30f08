//! The usage, as the servers of this wire report it.

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_object, number};
use crate::words::message::Usage;

/// Reads the usage. Cached tokens are part of the prompt, and reasoning is part of the completion unless the
/// total says otherwise (xAI).
pub(super) fn read_usage(reader: &mut Reader<'_>, slot: &mut Option<Usage>) -> ReadResult {
    let (mut prompt, mut completion, mut total) = (None, None, None);
    let (mut cached, mut cached_elsewhere, mut written, mut written_elsewhere) = (None, None, None, None);
    let (mut reasoning, mut reasoning_elsewhere) = (None, None);
    in_object(reader, |reader, key| {
        match key {
            "prompt_tokens" => number(reader, &mut prompt),
            "completion_tokens" => number(reader, &mut completion),
            "total_tokens" => number(reader, &mut total),
            "prompt_tokens_details" | "prompt_token_details" => in_object(reader, |reader, key| match key {
                "cached_tokens" => number(reader, &mut cached),
                "cache_write_tokens" => number(reader, &mut written),
                _ => reader.pass_over(),
            }),
            "completion_tokens_details" => in_object(reader, |reader, key| match key {
                "reasoning_tokens" => number(reader, &mut reasoning),
                _ => reader.pass_over(),
            }),
            // Copilot.
            "reasoning_tokens" => number(reader, &mut reasoning_elsewhere),
            // DeepSeek, Moonshot, gateways over Claude, Mistral.
            "prompt_cache_hit_tokens" | "cached_tokens" | "cache_read_input_tokens" | "num_cached_tokens" => {
                number(reader, &mut cached_elsewhere)
            }
            "cache_creation_input_tokens" => number(reader, &mut written_elsewhere),
            _ => reader.pass_over(),
        }
    })?;
    if prompt.is_none() && completion.is_none() {
        return Ok(());
    }
    let (prompt, mut output) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    let reasoning = reasoning.or(reasoning_elsewhere);
    let cache_read = cached.or(cached_elsewhere).unwrap_or(0);
    let cache_write = written.or(written_elsewhere).unwrap_or(0);
    if let (Some(total), Some(reasoning)) = (total, reasoning)
        && total == prompt.saturating_add(output).saturating_add(reasoning)
    {
        output = output.saturating_add(reasoning);
    }
    let usage = Usage {
        // Some servers count more cached tokens than the prompt has.
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        output,
        cache_read,
        cache_write,
        reasoning,
        total: total.unwrap_or(0),
        cost: None,
        estimated: false,
    };
    *slot = Some(usage.totalled());
    Ok(())
}
