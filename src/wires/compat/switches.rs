//! Switches that are set by hand.

use crate::data::json::Value;
use crate::data::text::split;

use super::{Compat, ReasoningStyle, Replay, Strict, ToolIds};

impl Compat {
    /// Sets switches by hand: an object with the names that are documented at the fields. Null sets none.
    ///
    /// # Errors
    /// If a name or a value is unknown, or the switch is not among those that the wire `has`.
    pub fn apply(&mut self, switches: &Value, has: &str) -> Result<(), String> {
        let Some(switches) = switches.as_object() else {
            return if switches.is_null() {
                Ok(())
            } else {
                Err(["`compat` must be an object, got ", switches.kind()].concat())
            };
        };
        for (name, value) in switches.iter().filter(|(name, _)| *name != "server") {
            if !split(has, " ").any(|known| known == name) {
                return Err(
                    ["unknown `compat` switch `", name, "` of this wire; it has", &quoted_list(has)].concat()
                );
            }
            self.set(name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let flag = match name {
            "developerRole" => &mut self.developer_role,
            "streamOptions" => &mut self.stream_options,
            "store" => &mut self.store,
            "parallelToolCalls" => &mut self.parallel_tool_calls,
            "toolResultName" => &mut self.tool_result_name,
            "assistantAfterTool" => &mut self.assistant_after_tool,
            "cacheControl" => &mut self.cache_control,
            "promptCacheKey" => &mut self.prompt_cache_key,
            "strict" => {
                self.strict = if read_flag(name, value)? { Strict::Always } else { Strict::Never };
                return Ok(());
            }
            _ => return self.set_word(name, value),
        };
        *flag = read_flag(name, value)?;
        Ok(())
    }

    fn set_word(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "maxTokensField" => {
                self.max_tokens_field = word(name, value, "max_tokens max_completion_tokens")?.1;
            }
            "reasoning" => {
                use ReasoningStyle as R;
                let allowed = "none reasoning_effort openrouter deepseek thinking enable_thinking \
                    chat_template_kwargs mistral adaptive budget level";
                self.reasoning = match word(name, value, allowed)?.0 {
                    0 => R::None,
                    1 => R::Effort,
                    2 => R::OpenRouter,
                    3 => R::DeepSeek,
                    4 => R::Thinking,
                    5 => R::EnableThinking,
                    6 => R::TemplateKwargs,
                    7 => R::Mistral,
                    8 => R::Adaptive,
                    9 => R::Budget,
                    _ => R::Level,
                };
            }
            "cacheTtl" => self.cache_ttl = word(name, value, "5m 1h")?.1,
            "toolIds" => {
                self.tool_ids = match word(name, value, "any short mistral")?.0 {
                    0 => ToolIds::Any,
                    1 => ToolIds::Short,
                    _ => ToolIds::Mistral,
                };
            }
            "replayReasoning" => {
                let allowed = "none reasoning_content reasoning reasoning_details thinking";
                self.replay = match word(name, value, allowed)?.0 {
                    0 => Replay::None,
                    1 => Replay::ReasoningContent,
                    2 => Replay::Reasoning,
                    3 => Replay::Details,
                    _ => Replay::ThinkingChunk,
                };
            }
            // `apply` has checked the names.
            _ => {}
        }
        Ok(())
    }
}

fn read_flag(name: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| ["`compat.", name, "` must be a boolean, got ", value.kind()].concat())
}

/// Returns the position of a value among some words, and the word.
pub(super) fn word(
    name: &str,
    value: &Value,
    allowed: &'static str,
) -> Result<(usize, &'static str), String> {
    let found = split(allowed, " ").enumerate().find(|(_, word)| value.as_str() == Some(*word));
    found.ok_or_else(|| ["`compat.", name, "` must be one of", &quoted_list(allowed)].concat())
}

fn quoted_list(allowed: &str) -> String {
    let mut list = String::new();
    for word in split(allowed, " ") {
        list.push_str(" `");
        list.push_str(word);
        list.push_str("`");
    }
    list
}
