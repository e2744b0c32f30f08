//! How the models of each server are told to think.

use crate::data::json::bool_text;
use crate::data::text::{contains, number, split_once};
use crate::rules::stream::{ModelRequest, Reasoning, StreamOptions, ToolChoice};
use crate::wires::compat::ReasoningStyle;
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::models::{
    gpt_version, is_reasoning_model, kimi_version, known_effort, least_effort, version,
};
use crate::wires::encoding::options::effort;

use super::encode::ChatEncoder;

impl ChatEncoder {
    /// Writes how much to think: what the host says, and otherwise what the server needs to hear.
    pub(super) fn write_thinking(&self, request: &ModelRequest, body: &mut RequestBody<'_>) {
        let (options, model) = (&*request.options, &*request.model);
        let has_tools = !request.tools.is_empty();
        match &options.reasoning {
            Some(reasoning) => self.write_reasoning(reasoning, model, body),
            // By default these models think, and while they think they refuse to be forced.
            None if self.is_never_forced_while_thinking()
                && !self.is_never_forced()
                && !self.always_thinks_at_moonshot(model)
                && has_tools
                && is_forced(options) =>
            {
                self.write_reasoning(&Reasoning::Budget(0), model, body);
            }
            // By default these models think, and while they think they refuse tools on this wire.
            None if self.checks_efforts() && has_tools => {
                let is_new = matches!(gpt_version(model), Some((5, 6..) | (6..=9, _)));
                if is_new && known_effort("none", model) == "none" {
                    body.text("reasoning_effort", "none");
                }
            }
            None => {}
        }
    }

    fn write_reasoning(&self, reasoning: &Reasoning, model: &str, body: &mut RequestBody<'_>) {
        let effort = effort(reasoning);
        let is_off = effort == "off" || effort == "none";
        let word = if is_off { "none" } else { effort };
        let budget = match reasoning {
            Reasoning::Budget(tokens) if *tokens > 0 => Some(number(*tokens)),
            _ => None,
        };
        let kind = if is_off { "disabled" } else { "enabled" };
        match self.compat.reasoning {
            // The others are those of other wires.
            ReasoningStyle::None
            | ReasoningStyle::Adaptive
            | ReasoningStyle::Budget
            | ReasoningStyle::Level => {}
            ReasoningStyle::Effort => self.write_effort(word, model, body),
            ReasoningStyle::OpenRouter => match budget {
                Some(tokens) => body.fill("reasoning", "{\"max_tokens\":#}", &[&tokens]),
                None if is_off && least_effort(model).is_none() => {
                    body.raw("reasoning", "{\"enabled\":false}");
                }
                None if is_off => {
                    body.fill("reasoning", "{\"effort\":\"$\"}", &[least_effort(model).unwrap_or("low")]);
                }
                None => body.fill("reasoning", "{\"effort\":\"$\"}", &[word]),
            },
            ReasoningStyle::DeepSeek => {
                body.fill("thinking", "{\"type\":\"$\"}", &[kind]);
                let word = match word {
                    "minimal" => "low",
                    "medium" => "high",
                    "xhigh" => "max",
                    word => word,
                };
                if !is_off {
                    body.text("reasoning_effort", word);
                }
            }
            ReasoningStyle::Thinking if self.always_thinks_at_moonshot(model) => {
                write_kimi(word, model, body);
            }
            ReasoningStyle::Thinking => body.fill("thinking", "{\"type\":\"$\"}", &[kind]),
            ReasoningStyle::EnableThinking => {
                body.raw("enable_thinking", bool_text(!is_off));
                if let Some(tokens) = budget {
                    body.raw("thinking_budget", &tokens);
                }
            }
            ReasoningStyle::TemplateKwargs => {
                let template = if is_off {
                    "{\"enable_thinking\":#}"
                } else {
                    "{\"enable_thinking\":#,\"reasoning_effort\":\"$\"}"
                };
                body.fill("chat_template_kwargs", template, &[bool_text(!is_off), word]);
            }
            ReasoningStyle::Mistral => write_mistral(is_off, model, body),
        }
    }

    /// Writes the effort as a word that the server and the model accept.
    fn write_effort(&self, word: &str, model: &str, body: &mut RequestBody<'_>) {
        if self.checks_efforts() {
            // A model that cannot think refuses to be told not to.
            if word != "none" || is_reasoning_model(model) {
                body.text("reasoning_effort", known_effort(word, model));
            }
            return;
        }
        let is_groq = self.provider == "groq";
        let can_disable = contains(model, "qwen") || contains(model, "grok-4.3");
        let word = match word {
            // The other models think whatever they are told, or never do, and refuse the word.
            "none" if !can_disable && (is_groq || self.provider == "xai") => return,
            "none" if self.provider == "together" => {
                return body.raw("reasoning", "{\"enabled\":false}");
            }
            "none" => word,
            // On Groq, Qwen either thinks or does not.
            _ if is_groq && can_disable => "default",
            // Most servers know no lower word, and no higher one.
            "minimal" => "low",
            "xhigh" | "max" if self.knows_higher_words(model) => "xhigh",
            "xhigh" | "max" if is_groq || matches!(self.provider, "xai" | "together" | "ollama") => "high",
            word => word,
        };
        body.text("reasoning_effort", word);
    }

    /// Grok knows `xhigh` since 4.6.
    fn knows_higher_words(&self, model: &str) -> bool {
        let version = split_once(model, "grok-").and_then(|(_, name)| version(name));
        self.provider == "xai" && version >= Some((4, 6)) && version < Some((100, 0))
    }

    /// Whether the server is Moonshot's and the model one that cannot be told not to think.
    pub(super) fn always_thinks_at_moonshot(&self, model: &str) -> bool {
        let is_thinker = kimi_version(model) >= Some((3, 0)) || contains(model, "kimi-k2.7-code");
        self.provider == "moonshot" && is_thinker
    }

    /// Z.ai refuses to force its models to a tool, whether they think or not.
    pub(super) fn is_never_forced(&self) -> bool {
        self.provider == "zai"
    }

    /// DeepSeek, Kimi and Qwen refuse to be forced to a tool while they think.
    pub(super) fn is_never_forced_while_thinking(&self) -> bool {
        use ReasoningStyle as R;
        matches!(self.compat.reasoning, R::DeepSeek | R::Thinking | R::EnableThinking)
    }

    /// Whether the server checks the effort against what the model knows.
    pub(super) fn checks_efforts(&self) -> bool {
        matches!(self.provider, "openai" | "azure")
    }
}

/// Kimi K3 knows three words, and no `thinking` (platform.kimi.ai, guide to the reasoning effort). Before it, models that
/// always think take nothing but that they shall.
fn write_kimi(word: &str, model: &str, body: &mut RequestBody<'_>) {
    match (kimi_version(model) >= Some((3, 0)), word) {
        (false, "none") => {}
        (false, _) => body.raw("thinking", "{\"type\":\"enabled\"}"),
        (true, "none" | "minimal" | "low") => body.text("reasoning_effort", "low"),
        (true, "medium" | "high") => body.text("reasoning_effort", "high"),
        (true, _) => body.text("reasoning_effort", "max"),
    }
}

/// Magistral is told to think by another field than the other models of Mistral.
fn write_mistral(is_off: bool, model: &str, body: &mut RequestBody<'_>) {
    if !model.starts_with("magistral") {
        body.text("reasoning_effort", if is_off { "none" } else { "high" });
    } else if !is_off {
        body.text("prompt_mode", "reasoning");
    }
}

fn is_forced(options: &StreamOptions) -> bool {
    matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)))
}
