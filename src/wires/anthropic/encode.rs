//! Requests of this wire: address, headers and body.

use std::borrow::Cow;

use crate::data::json::{RawJson, ToJson, Value};
use crate::data::text::{self};
use crate::rules::stream::{ModelRequest, ToolChoice};
use crate::wires::HttpRequest;
use crate::wires::WireOptions;
use crate::wires::compat::Compat;
use crate::wires::encoding::address::{join_query, split_query};
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::headers::headers;
use crate::wires::encoding::history::EncodedHistory;
use crate::wires::encoding::options::{write_sampling, write_stop};
use crate::wires::encoding::strict::{BY_ANTHROPIC, closed};
use crate::wires::encoding::tools::{EncodedTools, ToolForm};

use super::PROVIDER;
use super::messages::{AnthropicMessageWriter, write_all};
use super::models::{always_thinks, known_version, version};
use super::thinking::AnthropicThinking;

/// Marks the end of what the provider shall cache. Each is the last member of an object.
const CACHE: &str = r#","cache_control":{"type":"ephemeral"}"#;
const LONG_CACHE: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

const TOOLS: ToolForm = ToolForm {
    list: "[#]",
    tool: r#"{"name":"$","description":"$","input_schema":##}"#,
    strict: ["", ",\"strict\":true"],
};

/// The limit on the length of the answer if the host sets none. The wire requires a number.
const MAX_TOKENS: u64 = 8_192;
const MAX_TOKENS_OF_CLAUDE_3: u64 = 4_096;
/// Includes the thinking, which counts as part of the answer.
const MAX_TOKENS_ADAPTIVE: u64 = 32_768;

/// Builds the requests to one server and keeps what it has encoded.
pub(super) struct AnthropicEncoder {
    options: WireOptions,
    compat: Compat,
    history: EncodedHistory,
    tools: EncodedTools,
}

impl AnthropicEncoder {
    pub(super) fn new(options: WireOptions, compat: Compat) -> Self {
        AnthropicEncoder {
            options,
            compat,
            history: EncodedHistory::default(),
            tools: EncodedTools::default(),
        }
    }

    /// Whether the server is the provider itself, and not one that imitates it.
    pub(super) fn is_at_anthropic(&self) -> bool {
        self.options.base_url.is_empty()
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        let own = [
            ("anthropic-version", "2023-06-01"),
            // Browsers are not answered without it.
            ("anthropic-dangerous-direct-browser-access", "true"),
        ];
        let count = if self.options.dangerously_allow_browser { 2 } else { 1 };
        let own = own.get(..count).unwrap_or_default();
        HttpRequest {
            url: url(&self.options.base_url),
            headers: headers(("x-api-key", ""), own, &self.options.headers, request),
            body: self.body(request).into_bytes(),
            has_links: self.history.has_links(),
            warnings: self.tools.take_warnings(),
        }
    }

    fn body(&mut self, request: &ModelRequest) -> String {
        let writer = AnthropicMessageWriter { provider: PROVIDER, model: &request.model };
        self.history.update(&request.model, &request.messages, &mut |message, carried, out| {
            writer.write(message, carried, out);
        });
        let options = &*request.options;
        let cache = match self.compat.cache_ttl {
            _ if options.cache == Some(false) || !self.compat.cache_control => "",
            "1h" => LONG_CACHE,
            _ => CACHE,
        };
        let thinking = AnthropicThinking::of(request, self.compat.reasoning);
        let mut text = self.history.body_buffer(&request.system_prompt);
        let mut body = RequestBody::new(&mut text, options);
        body.text("model", &request.model);
        body.raw("max_tokens", &text::number(max_tokens(request, &thinking)));
        body.raw("stream", "true");
        let (schema, prompt) = match &request.output {
            Some(schema) => asked_for(schema, &request.system_prompt),
            None => (None, Cow::Borrowed(&*request.system_prompt)),
        };
        // The provider rejects a blank text.
        if !prompt.trim_ascii().is_empty() {
            body.fill("system", r##"[{"type":"text","text":"$"#}]"##, &[&prompt, cache]);
        }
        if let Some(out) = body.key("messages") {
            write_all(&self.history.carried(), self.history.text(), cache, out);
        }
        if !request.tools.is_empty() {
            body.tools(self.tools.text(&request.tools, &TOOLS, (self.compat.strict, PROVIDER)), cache);
            write_choice(request, &thinking, self.compat.parallel_tool_calls, &mut body);
        }
        write_freedom(request, &thinking, &mut body);
        write_stop(options, "stop_sequences", &mut body);
        thinking.write(&mut body);
        write_output(schema.as_ref(), &thinking, &mut body);
        body.end();
        text
    }
}

/// Returns how an answer that fits a schema is asked for: by the schema, or by the prompt if the provider does not take it.
fn asked_for<'p>(schema: &RawJson, prompt: &'p str) -> (Option<Value>, Cow<'p, str>) {
    let closed = closed(&schema.to_value(), BY_ANTHROPIC);
    let line = "\n\nAnswer with nothing but JSON that fits this JSON Schema: ";
    let prompt =
        if closed.is_some() { prompt.into() } else { [prompt, line, schema.as_str()].concat().into() };
    (closed, prompt)
}

/// Writes how freely a model chooses its words. The models from 4.1 on take only one of the two numbers, those from 4.7 on
/// neither, and no model takes any while it thinks.
fn write_freedom(request: &ModelRequest, thinking: &AnthropicThinking, body: &mut RequestBody<'_>) {
    let version = known_version(&request.model);
    if thinking.is_on() || version >= Some((4, 7)) {
        return;
    }
    let options = &*request.options;
    match &options.temperature {
        Some(temperature) if version >= Some((4, 1)) => body.raw("temperature", temperature.as_str()),
        _ => write_sampling(options, "top_p", body),
    }
}

/// Returns how long an answer of a model may be at most; `None` if that is not known.
fn max_output(model: &str) -> Option<u64> {
    let is_opus = text::contains(model, "opus");
    Some(match version(model)? {
        (..=2, _) => return None,
        (3, 0) => 4_096,
        (3, ..=5) => 8_192,
        (4, ..=1) if is_opus => 32_000,
        (3, _) | (4, ..=5) => 64_000,
        _ => 128_000,
    })
}

/// Returns the limit on the length of the answer, which is at most what the model can write.
fn max_tokens(request: &ModelRequest, thinking: &AnthropicThinking) -> u64 {
    let wanted = wanted_tokens(request, thinking);
    max_output(&request.model).map_or(wanted, |most| wanted.min(most))
}

/// Returns the limit on the length of the answer, with room for the thinking.
fn wanted_tokens(request: &ModelRequest, thinking: &AnthropicThinking) -> u64 {
    let default = match version(&request.model) {
        Some(version) if version < (3, 5) => MAX_TOKENS_OF_CLAUDE_3,
        // These models think unless they are told not to.
        Some(version) if version >= (5, 0) => MAX_TOKENS_ADAPTIVE,
        _ => MAX_TOKENS,
    };
    match (request.options.max_tokens, thinking) {
        (Some(limit), AnthropicThinking::Budget(budget)) if limit <= *budget => budget.saturating_add(limit),
        (Some(limit), _) => limit,
        (None, AnthropicThinking::Budget(budget)) => budget.saturating_add(default),
        (None, AnthropicThinking::Adaptive(_)) => MAX_TOKENS_ADAPTIVE,
        (None, _) => default,
    }
}

fn write_choice(
    request: &ModelRequest,
    thinking: &AnthropicThinking,
    has_parallel: bool,
    body: &mut RequestBody<'_>,
) {
    let options = &*request.options;
    let is_single = options.parallel_tool_calls == Some(false) && has_parallel;
    // A model that thinks cannot be forced to call a tool.
    let is_free = thinking.is_on() || always_thinks(&request.model);
    let single = if is_single { ",\"disable_parallel_tool_use\":true" } else { "" };
    match &options.tool_choice {
        Some(ToolChoice::None) => body.raw("tool_choice", "{\"type\":\"none\"}"),
        Some(ToolChoice::Required) if !is_free => {
            body.fill("tool_choice", "{\"type\":\"any\"#}", &[single]);
        }
        Some(ToolChoice::Tool(name)) if !is_free => {
            body.fill("tool_choice", "{\"type\":\"tool\",\"name\":\"$\"#}", &[name, single]);
        }
        None if !is_single => {}
        _ => body.fill("tool_choice", "{\"type\":\"auto\"#}", &[single]),
    }
}

fn write_output(schema: Option<&Value>, thinking: &AnthropicThinking, body: &mut RequestBody<'_>) {
    let word = match thinking {
        AnthropicThinking::Adaptive(word) => word,
        AnthropicThinking::Lowest => "low",
        _ => "",
    };
    let schema = schema.map(ToJson::to_json).unwrap_or_default();
    let template = match (word, &*schema) {
        ("", "") => return,
        (_, "") => "{\"effort\":\"$\"}",
        ("", _) => r#"{"format":{"type":"json_schema","schema":##}}"#,
        _ => r#"{"effort":"$","format":{"type":"json_schema","schema":#}}"#,
    };
    body.fill("output_config", template, &[word, &schema]);
}

fn url(base_url: &str) -> String {
    let (base, query) = split_query(base_url);
    let (base, path) = match base {
        "" => ("https://api.anthropic.com", "/v1/messages"),
        base if base.ends_with("/messages") => (base, ""),
        base if base.ends_with("/v1") => (base, "/messages"),
        base => (base, "/v1/messages"),
    };
    join_query(&[base, path], query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_made_of_any_form_of_base() {
        let addresses = [
            ("", "https://api.anthropic.com/v1/messages"),
            ("https://h/", "https://h/v1/messages"),
            ("https://h/v1", "https://h/v1/messages"),
            ("https://h/anthropic", "https://h/anthropic/v1/messages"),
            ("https://h/v1/messages?beta=true", "https://h/v1/messages?beta=true"),
        ];
        for (base, wanted) in addresses {
            assert_eq!(url(base), wanted);
        }
    }
}
