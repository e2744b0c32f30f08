//! The usage, as this wire reports it.

use crate::data::json::Reader;
use crate::wires::decoding::fields::{ReadResult, in_array, in_object, number};
use crate::words::message::Usage;

/// The tokens reported so far. What was not reported is `None`.
#[derive(Clone, Copy, Default)]
pub(super) struct AnthropicUsage {
    input: Option<u64>,
    output: Option<u64>,
    cache_read: Option<u64>,
    cache_write: Option<u64>,
    thinking: Option<u64>,
    /// The sum over the steps that the provider ran itself.
    pub(super) billed: Option<Usage>,
}

impl AnthropicUsage {
    pub(super) fn read(&mut self, reader: &mut Reader<'_>, key: &str) -> ReadResult {
        match key {
            "input_tokens" => number(reader, &mut self.input),
            "output_tokens" => number(reader, &mut self.output),
            "cache_read_input_tokens" => number(reader, &mut self.cache_read),
            "cache_creation_input_tokens" => number(reader, &mut self.cache_write),
            "output_tokens_details" => in_object(reader, |reader, key| match key {
                "thinking_tokens" => number(reader, &mut self.thinking),
                _ => reader.pass_over(),
            }),
            "iterations" => self.read_steps(reader),
            _ => reader.pass_over(),
        }
    }

    /// Reads the steps that the provider ran itself. Those of an adviser have another price and are left out.
    fn read_steps(&mut self, reader: &mut Reader<'_>) -> ReadResult {
        let mut steps = 0;
        let mut billed = Usage::default();
        in_array(reader, |reader, _| {
            let mut step = AnthropicUsage::default();
            let mut is_other_model = false;
            in_object(reader, |reader, key| match key {
                "type" => {
                    is_other_model = reader.skip()? == "\"advisor_message\"";
                    Ok(())
                }
                // Steps do not contain steps.
                "iterations" => reader.pass_over(),
                _ => step.read(reader, key),
            })?;
            steps += 1;
            if !is_other_model {
                billed.add(&step.usage());
            }
            Ok(())
        })?;
        self.billed = if steps > 1 { Some(billed) } else { None };
        Ok(())
    }

    /// Whether nothing was reported.
    pub(super) fn is_empty(&self) -> bool {
        self.input.is_none() && self.output.is_none()
    }

    /// Replaces earlier values by later ones, field by field: they are totals. Zeros that say nothing of the prompt do
    /// not: SGLang and gateways write them into the last event.
    pub(super) fn merge(&mut self, later: &AnthropicUsage) {
        let of_prompt = [later.input, later.cache_read, later.cache_write];
        if of_prompt.iter().any(|tokens| tokens.is_some_and(|tokens| tokens > 0)) || self.is_empty() {
            self.input = later.input.or(self.input);
            self.cache_read = later.cache_read.or(self.cache_read);
            self.cache_write = later.cache_write.or(self.cache_write);
        }
        self.output = later.output.filter(|tokens| *tokens > 0).or(self.output).or(later.output);
        self.thinking = later.thinking.or(self.thinking);
        self.billed = later.billed.or(self.billed);
    }

    /// Returns the usage. On this wire, cached tokens are not part of the input.
    pub(super) fn usage(&self) -> Usage {
        let usage = Usage {
            input: self.input.unwrap_or(0),
            output: self.output.unwrap_or(0),
            cache_read: self.cache_read.unwrap_or(0),
            cache_write: self.cache_write.unwrap_or(0),
            reasoning: self.thinking,
            total: 0,
            cost: None,
            estimated: false,
        };
        usage.totalled()
    }
}
