//! Requests: URL, headers, body.

use crate::data::json::bool_text;
use crate::data::text::{contains, number};
use crate::rules::stream::{ModelRequest, Reasoning, StreamOptions, ToolChoice};
use crate::wires::HttpRequest;
use crate::wires::compat::{Compat, ReasoningStyle};
use crate::wires::encoding::address::{join_query as join, split_query};
use crate::wires::encoding::body::Body;
use crate::wires::encoding::headers::{headers, openai_key};
use crate::wires::encoding::history::History;
use crate::wires::encoding::models::{always_thinks, gpt_version, is_reasoning_model, known_effort};
use crate::wires::encoding::options::{
    effort, write_cache_key, write_max_tokens, write_openai_choice, write_sampling, write_stop,
};
use crate::wires::encoding::tools::{ToolForm, Tools};

use super::messages::ChatMessageWriter;

/// The Azure API versions that are asked for where the address names none.
const AZURE_DEPLOYMENTS: &str = "api-version=2024-10-21";
const AZURE_MODELS: &str = "api-version=2024-05-01-preview";

const TOOLS: ToolForm = ToolForm {
    list: "[#]",
    tool: r#"{"type":"function","function":{"name":"$","description":"$","parameters":##}}"#,
    strict: ["", ",\"strict\":true"],
};

/// Builds the requests to one server and keeps what it has encoded.
pub(super) struct ChatEncoder {
    pub(super) provider: &'static str,
    base_url: String,
    headers: Vec<(String, String)>,
    pub(super) compat: Compat,
    history: History,
    tools: Tools,
}

impl ChatEncoder {
    pub(super) fn new(
        provider: &'static str,
        base_url: String,
        headers: Vec<(String, String)>,
        compat: Compat,
    ) -> Self {
        let (history, tools) = (History::default(), Tools::default());
        ChatEncoder { provider, base_url, headers, compat, history, tools }
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        HttpRequest {
            url: url(&self.base_url, &request.model),
            headers: headers(openai_key(self.provider), &[], &self.headers, request),
            body: self.body(request).into_bytes(),
        }
    }

    fn body(&mut self, request: &ModelRequest) -> String {
        let writer = ChatMessageWriter {
            provider: self.provider,
            model: &request.model,
            compat: &self.compat,
            caches: request.options.cache != Some(false),
        };
        self.history.update(&request.model, &request.messages, &mut |message, carried, out| {
            writer.write(message, carried, out);
        });
        let mut text = self.history.body_buffer(&request.system_prompt);
        let options = &*request.options;
        let mut body = Body::new(&mut text, options);
        body.text("model", &request.model);
        body.raw("stream", "true");
        if self.compat.stream_options {
            body.raw("stream_options", "{\"include_usage\":true}");
        }
        if self.compat.store {
            body.raw("store", "false");
        }
        write_cache_key(request, self.compat.prompt_cache_key, &mut body);
        if let Some(out) = body.key("messages") {
            writer.write_all(&request.system_prompt, self.history.text(), self.history.carried(), out);
        }
        if !request.tools.is_empty() {
            body.tools(self.tools.text(&request.tools, &TOOLS, self.compat.strict), "");
            self.write_choice(options, &mut body);
        }
        write_max_tokens(options.max_tokens, self.compat.max_tokens_field, &mut body);
        // Models of OpenAI that think refuse to be told how freely.
        if !(self.checks_efforts() && always_thinks(&request.model, options)) {
            write_sampling(options, "top_p", &mut body);
        }
        write_stop(options, "stop", &mut body);
        match &options.reasoning {
            Some(reasoning) => self.write_reasoning(reasoning, &request.model, &mut body),
            // By default they think.
            None if self.is_never_forced_while_thinking()
                && !self.is_never_forced()
                && !request.tools.is_empty()
                && is_forced(options) =>
            {
                self.write_reasoning(&Reasoning::Budget(0), &request.model, &mut body);
            }
            // By default they think, and who thinks is refused tools on this wire.
            None if self.checks_efforts() && !request.tools.is_empty() => {
                let is_new = matches!(gpt_version(&request.model), Some((5, 6..) | (6..=9, _)));
                if is_new && known_effort("none", &request.model) == "none" {
                    body.text("reasoning_effort", "none");
                }
            }
            None => {}
        }
        if let Some(schema) = &request.output {
            let strict = if self.compat.strict.marks(schema) { ",\"strict\":true" } else { "" };
            let template = r#"{"type":"json_schema","json_schema":{"name":"output","schema":##}}"#;
            body.fill("response_format", template, &[schema.as_str(), strict]);
        }
        body.end();
        text
    }

    #[inline(never)]
    fn write_choice(&self, options: &StreamOptions, body: &mut Body<'_>) {
        let thinks =
            options.reasoning.as_ref().is_some_and(|reasoning| !matches!(effort(reasoning), "off" | "none"));
        let is_free = self.is_never_forced() || thinks && self.is_never_forced_while_thinking();
        let named = r#"{"type":"function","function":{"name":"$"}}"#;
        write_openai_choice(options, named, is_free, self.compat.parallel_tool_calls, body);
    }

    #[inline(never)]
    fn write_reasoning(&self, reasoning: &Reasoning, model: &str, body: &mut Body<'_>) {
        let effort = effort(reasoning);
        let is_off = effort == "off" || effort == "none";
        let word = if is_off { "none" } else { effort };
        let budget = match reasoning {
            Reasoning::Budget(tokens) if *tokens > 0 => Some(number(*tokens)),
            _ => None,
        };
        let kind = if is_off { "disabled" } else { "enabled" };
        let thinks = bool_text(!is_off);
        match self.compat.reasoning {
            // The others are those of other wires.
            ReasoningStyle::None
            | ReasoningStyle::Adaptive
            | ReasoningStyle::Budget
            | ReasoningStyle::Level => {}
            // A model that cannot think refuses to be told not to.
            ReasoningStyle::Effort if is_off && self.checks_efforts() && !is_reasoning_model(model) => {}
            ReasoningStyle::Effort if self.checks_efforts() => {
                body.text("reasoning_effort", known_effort(word, model));
            }
            ReasoningStyle::Effort => {
                let is_groq = self.provider == "groq";
                let can_disable = contains(model, "qwen") || contains(model, "grok-4.3");
                let word = match word {
                    // The others think whatever they are told, or never do, and refuse the word.
                    "none" if !can_disable && (is_groq || self.provider == "xai") => return,
                    "none" if self.provider == "together" => {
                        return body.raw("reasoning", "{\"enabled\":false}");
                    }
                    "none" => word,
                    // Qwen thinks there or does not.
                    _ if is_groq && can_disable => "default",
                    // Most servers know nothing below.
                    "minimal" => "low",
                    word => word,
                };
                body.text("reasoning_effort", word);
            }
            ReasoningStyle::OpenRouter => match budget {
                Some(tokens) => body.fill("reasoning", "{\"max_tokens\":#}", &[&tokens]),
                None if is_off => body.raw("reasoning", "{\"enabled\":false}"),
                None => body.fill("reasoning", "{\"effort\":\"$\"}", &[word]),
            },
            ReasoningStyle::DeepSeek => {
                body.fill("thinking", "{\"type\":\"$\"}", &[kind]);
                let word = match word {
                    "minimal" => "low",
                    "medium" => "high",
                    word => word,
                };
                if !is_off {
                    body.text("reasoning_effort", word);
                }
            }
            ReasoningStyle::Thinking => body.fill("thinking", "{\"type\":\"$\"}", &[kind]),
            ReasoningStyle::EnableThinking => {
                body.raw("enable_thinking", thinks);
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
                body.fill("chat_template_kwargs", template, &[thinks, word]);
            }
            ReasoningStyle::Mistral if model.starts_with("magistral") => {
                if !is_off {
                    body.text("prompt_mode", "reasoning");
                }
            }
            ReasoningStyle::Mistral => {
                body.text("reasoning_effort", if is_off { "none" } else { "high" });
            }
        }
    }

    /// Z.ai refuses to force its models to a tool, whether they think or not.
    fn is_never_forced(&self) -> bool {
        self.provider == "zai"
    }

    /// DeepSeek, Kimi and Qwen refuse to be forced to a tool while they think.
    fn is_never_forced_while_thinking(&self) -> bool {
        use ReasoningStyle as R;
        matches!(self.compat.reasoning, R::DeepSeek | R::Thinking | R::EnableThinking)
    }

    /// Whether the server checks the effort against what the model knows.
    fn checks_efforts(&self) -> bool {
        matches!(self.provider, "openai" | "azure")
    }
}

fn is_forced(options: &StreamOptions) -> bool {
    matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)))
}

fn url(base_url: &str, model: &str) -> String {
    let (base, query) = split_query(base_url);
    let (mut path, mut version) = ("/chat/completions", "");
    if base.ends_with(path) {
        path = "";
    } else if base.ends_with("/ai/run") {
        // The native form of Workers AI: the model stands in the address.
        return join(&[base, "/", model], query);
    } else if base.ends_with(".azure.com") {
        path = "/openai/v1/chat/completions";
    } else if base.ends_with(".azure.com/openai") {
        path = "/v1/chat/completions";
    } else if contains(base, ".azure.com/openai/deployments/") {
        version = AZURE_DEPLOYMENTS;
    } else if base.ends_with(".azure.com/models") {
        version = AZURE_MODELS;
    }
    if contains(query, "api-version=") || version.is_empty() {
        return join(&[base, path], query);
    }
    let separator = if query.is_empty() { "" } else { "&" };
    join(&[base, path], &[query, separator, version].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_made_of_any_form_of_base() {
        let addresses = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
            ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
            ("https://h/v1?key=a", "https://h/v1/chat/completions?key=a"),
            ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/chat/completions"),
            ("https://r.openai.azure.com/openai/", "https://r.openai.azure.com/openai/v1/chat/completions"),
            (
                "https://r.openai.azure.com/openai/v1/",
                "https://r.openai.azure.com/openai/v1/chat/completions",
            ),
            (
                "https://r.openai.azure.com/openai/deployments/d?api-version=2025-01-01",
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01",
            ),
            (
                "https://r.openai.azure.com/openai/deployments/d/",
                "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            (
                "https://r.services.ai.azure.com/models",
                "https://r.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview",
            ),
            ("https://h/accounts/a/ai/run", "https://h/accounts/a/ai/run/@cf/m"),
        ];
        for (base, wanted) in addresses {
            assert_eq!(url(base, "@cf/m"), wanted);
        }
    }
}
