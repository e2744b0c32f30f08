//! The usage, as this wire reports it.

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_object, number};
use crate::words::message::Usage;

/// Reads the usage. Cached tokens are part of the prompt; thoughts are counted apart from the answer.
pub(super) fn read_usage(reader: &mut Reader<'_>, slot: &mut Option<Usage>) -> ReadResult {
    let (mut prompt, mut tools, mut cached) = (None, None, None);
    let (mut answer, mut thoughts, mut total) = (None, None, None);
    in_object(reader, |reader, key| match key {
        "promptTokenCount" => number(reader, &mut prompt),
        "toolUsePromptTokenCount" => number(reader, &mut tools),
        "cachedContentTokenCount" => number(reader, &mut cached),
        "candidatesTokenCount" => number(reader, &mut answer),
        "thoughtsTokenCount" => number(reader, &mut thoughts),
        "totalTokenCount" => number(reader, &mut total),
        _ => reader.pass_over(),
    })?;
    if prompt.is_none() && answer.is_none() {
        return Ok(());
    }
    let cache_read = cached.unwrap_or(0);
    let usage = Usage {
        input: prompt.unwrap_or(0).saturating_add(tools.unwrap_or(0)).saturating_sub(cache_read),
        output: answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)),
        cache_read,
        cache_write: 0,
        reasoning: thoughts,
        total: total.unwrap_or(0),
        cost: None,
        estimated: false,
    };
    *slot = Some(usage.totalled());
    Ok(())
}
