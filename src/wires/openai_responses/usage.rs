//! The usage, as this wire reports it.

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_object, number};
use crate::words::message::Usage;

/// Reads the usage. Cached tokens are part of the input, reasoning is part of the output.
pub(super) fn read_usage(reader: &mut Reader<'_>, slot: &mut Option<Usage>) -> ReadResult {
    let (mut input, mut output, mut total) = (None, None, None);
    let (mut cached, mut written, mut reasoning) = (None, None, None);
    in_object(reader, |reader, key| match key {
        "input_tokens" => number(reader, &mut input),
        "output_tokens" => number(reader, &mut output),
        "total_tokens" => number(reader, &mut total),
        "input_tokens_details" => in_object(reader, |reader, key| match key {
            "cached_tokens" => number(reader, &mut cached),
            "cache_write_tokens" => number(reader, &mut written),
            _ => reader.pass_over(),
        }),
        "output_tokens_details" => in_object(reader, |reader, key| match key {
            "reasoning_tokens" => number(reader, &mut reasoning),
            _ => reader.pass_over(),
        }),
        _ => reader.pass_over(),
    })?;
    if input.is_none() && output.is_none() {
        return Ok(());
    }
    let (cache_read, cache_write) = (cached.unwrap_or(0), written.unwrap_or(0));
    let usage = Usage {
        input: input.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
        output: output.unwrap_or(0),
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
