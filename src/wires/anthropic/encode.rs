//! Requests: URL, headers, body.

use crate::data::json::RawJson;
use crate::data::text::{self, contains, split_while};
use crate::rules::stream::{ModelRequest, Reasoning, ToolChoice};
use crate::wires::HttpRequest;
use crate::wires::WireOptions;
use crate::wires::compat::{Compat, ReasoningStyle};
use crate::wires::encoding::address::{join_query, split_query};
use crate::wires::encoding::body::Body;
use crate::wires::encoding::headers::headers;
use crate::wires::encoding::history::History;
use crate::wires::encoding::models::parse_u32;
use crate::wires::encoding::options::{effort, write_sampling, write_stop};
use crate::wires::encoding::tools::{ToolForm, Tools};
use crate::words::message::LlmMessage;

use super::PROVIDER;
use super::messages::{AnthropicMessageWriter, begins_with_thinking, write_all};

/// The marks behind which the provider caches what it read, as the last member of an object.
const CACHE: &str = r#","cache_control":{"type":"ephemeral"}"#;
const LONG_CACHE: &str = r#","cache_control":{"type":"ephemeral","ttl":"1h"}"#;

const TOOLS: ToolForm = ToolForm {
    list: "[#]",
    tool: r#"{"name":"$","description":"$","input_schema":##}"#,
    strict: ["", ",\"strict\":true"],
};

/// Tokens of the answer where the host does not say; the wire insists on a number.
const MAX_TOKENS: u64 = 8_192;
const MAX_TOKENS_OF_CLAUDE_3: u64 = 4_096;
/// With the thinking, which counts.
const MAX_TOKENS_ADAPTIVE: u64 = 32_768;

/// Builds the requests to one server and keeps what it has encoded.
pub(super) struct AnthropicEncoder {
    options: WireOptions,
    compat: Compat,
    history: History,
    tools: Tools,
}

/// How a model is told to think.
enum Thinking {
    /// As much as it wants, told by a word.
    Adaptive(&'static str),
    /// At most so many tokens.
    Budget(u64),
    /// As little as it can, said by a type.
    Off(&'static str),
    /// As little as it can, told by a word.
    Lowest,
    /// Nothing is said.
    Unspecified,
}

impl AnthropicEncoder {
    pub(super) fn new(options: WireOptions, compat: Compat) -> Self {
        AnthropicEncoder { options, compat, history: History::default(), tools: Tools::default() }
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        let own = [
            ("anthropic-version", "2023-06-01"),
            // Without it browsers are not answered.
            ("anthropic-dangerous-direct-browser-access", "true"),
        ];
        let count = if self.options.dangerously_allow_browser { 2 } else { 1 };
        let own = own.get(..count).unwrap_or_default();
        HttpRequest {
            url: url(&self.options.base_url),
            headers: headers(("x-api-key", ""), own, &self.options.headers, request),
            body: self.body(request).into_bytes(),
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
        let thinking = thinking(request, self.compat.reasoning);
        let mut text = self.history.body_buffer(&request.system_prompt);
        let mut body = Body::new(&mut text, options);
        body.text("model", &request.model);
        body.raw("max_tokens", &text::number(max_tokens(request, &thinking)));
        body.raw("stream", "true");
        // A blank text is refused.
        if !request.system_prompt.trim_ascii().is_empty() {
            body.fill("system", r##"[{"type":"text","text":"$"#}]"##, &[&request.system_prompt, cache]);
        }
        if let Some(out) = body.key("messages") {
            write_all(&self.history.carried(), self.history.text(), cache, out);
        }
        if !request.tools.is_empty() {
            body.tools(self.tools.text(&request.tools, &TOOLS, self.compat.strict), cache);
            write_choice(request, &thinking, self.compat.parallel_tool_calls, &mut body);
        }
        // The newer ones refuse to be told how freely to choose their words.
        if !thinking.is_on() && version(&request.model) < Some((4, 7)) {
            write_sampling(options, "top_p", &mut body);
        }
        write_stop(options, "stop_sequences", &mut body);
        thinking.write(&mut body);
        write_output(request, &thinking, &mut body);
        body.end();
        text
    }
}

impl Thinking {
    fn is_on(&self) -> bool {
        matches!(self, Thinking::Adaptive(_) | Thinking::Budget(_))
    }

    fn write(&self, body: &mut Body<'_>) {
        match self {
            Thinking::Adaptive(_) => {
                body.raw("thinking", r#"{"type":"adaptive","display":"summarized"}"#);
            }
            Thinking::Budget(tokens) => {
                body.fill("thinking", r#"{"type":"enabled","budget_tokens":#}"#, &[&text::number(*tokens)]);
            }
            Thinking::Off(word) => body.fill("thinking", "{\"type\":\"$\"}", &[word]),
            Thinking::Lowest | Thinking::Unspecified => {}
        }
    }
}

#[inline(never)]
fn thinking(request: &ModelRequest, style: ReasoningStyle) -> Thinking {
    let Some(reasoning) = request.options.reasoning.as_ref().filter(|_| style != ReasoningStyle::None) else {
        return Thinking::Unspecified;
    };
    let version = match style {
        ReasoningStyle::Adaptive => Some((4, 6)),
        ReasoningStyle::Budget => Some((4, 5)),
        _ => version(&request.model),
    };
    let word = effort(reasoning);
    if word == "off" || word == "none" {
        let is = |family| contains(&request.model, family);
        return match version {
            Some(version) if is("fable") || is("mythos") || (is("opus") && version >= (5, 5)) => {
                Thinking::Lowest
            }
            Some(version) if is("sonnet") && version >= (5, 5) => Thinking::Off("between_tools"),
            Some(version) if version >= (3, 7) => Thinking::Off("disabled"),
            // Models that cannot think know no switch for it.
            _ => Thinking::Unspecified,
        };
    }
    if version >= Some((4, 6)) {
        return Thinking::Adaptive(match word {
            "minimal" | "low" => "low",
            "high" => "high",
            "xhigh" => "xhigh",
            "max" => "max",
            _ => "medium",
        });
    }
    // A tool loop that began without thinking goes on without. One that began with it goes on with it, although not
    // every answer in it thinks.
    let (mut answers, mut thinks) = (0, false);
    for message in request.messages.iter().rev() {
        match message {
            LlmMessage::User(_) => break,
            LlmMessage::Assistant(answer) => {
                answers += 1;
                thinks = begins_with_thinking(answer, PROVIDER, &request.model);
            }
            LlmMessage::ToolResult(_) => {}
        }
        if thinks {
            break;
        }
    }
    if answers > 0 && !thinks {
        return Thinking::Unspecified;
    }
    Thinking::Budget(match reasoning {
        Reasoning::Budget(tokens) => (*tokens).max(1_024),
        Reasoning::Effort(_) => match word {
            "minimal" => 1_024,
            "low" => 2_048,
            "high" => 16_384,
            "xhigh" | "max" => 32_768,
            _ => 8_192,
        },
    })
}

/// The answer has room behind the thinking.
fn max_tokens(request: &ModelRequest, thinking: &Thinking) -> u64 {
    let default = match version(&request.model) {
        Some(version) if version < (3, 5) => MAX_TOKENS_OF_CLAUDE_3,
        // These think where nobody says that they shall not.
        Some(version) if version >= (5, 0) => MAX_TOKENS_ADAPTIVE,
        _ => MAX_TOKENS,
    };
    match (request.options.max_tokens, thinking) {
        (Some(limit), Thinking::Budget(budget)) if limit <= *budget => budget.saturating_add(limit),
        (Some(limit), _) => limit,
        (None, Thinking::Budget(budget)) => budget.saturating_add(default),
        (None, Thinking::Adaptive(_)) => MAX_TOKENS_ADAPTIVE,
        (None, _) => default,
    }
}

/// Whether a Claude thinks whatever it is told, and so refuses to be forced to call a tool.
fn always_thinks(model: &str) -> bool {
    let since = if contains(model, "fable") || contains(model, "mythos") { (5, 1) } else { (5, 5) };
    !contains(model, "haiku") && version(model) >= Some(since)
}

/// The version in the name of a Claude: `claude-3-7-sonnet-20250219`, `claude-sonnet-4-20250514`, `claude-opus-4-6`.
#[inline(never)]
fn version(model: &str) -> Option<(u32, u32)> {
    let (_, mut name) = text::split_once(model, "claude-")?;
    let mut major = None;
    loop {
        let (part, rest) = split_while(name, |byte| !b"-.@:".contains(&byte));
        match (major, number(part)) {
            (None, number) => major = number,
            (Some(major), minor) => return Some((major, minor.unwrap_or(0))),
        }
        let Some(rest) = rest.get(1..) else { return major.map(|major| (major, 0)) };
        name = rest;
    }
}

/// Dates are no versions.
fn number(part: &str) -> Option<u32> {
    if part.len() <= 2 { parse_u32(part) } else { None }
}

#[inline(never)]
fn write_choice(request: &ModelRequest, thinking: &Thinking, has_parallel: bool, body: &mut Body<'_>) {
    let options = &*request.options;
    let is_single = options.parallel_tool_calls == Some(false) && has_parallel;
    // A model that thinks is not forced, nor one that always does.
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

#[inline(never)]
fn write_output(request: &ModelRequest, thinking: &Thinking, body: &mut Body<'_>) {
    let word = match thinking {
        Thinking::Adaptive(word) => word,
        Thinking::Lowest => "low",
        _ => "",
    };
    let schema = request.output.as_ref().map_or("", RawJson::as_str);
    let template = match (word, schema) {
        ("", "") => return,
        (_, "") => "{\"effort\":\"$\"}",
        ("", _) => r#"{"format":{"type":"json_schema","schema":##}}"#,
        _ => r#"{"effort":"$","format":{"type":"json_schema","schema":#}}"#,
    };
    body.fill("output_config", template, &[word, schema]);
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
    fn the_version_of_a_claude_is_read_from_its_name() {
        let names = [
            ("claude-3-7-sonnet-20250219", Some((3, 7))),
            ("claude-3-haiku-20240307", Some((3, 0))),
            ("claude-sonnet-4-20250514", Some((4, 0))),
            ("claude-sonnet-4-5-20250929", Some((4, 5))),
            ("claude-opus-4-6", Some((4, 6))),
            ("claude-sonnet-5", Some((5, 0))),
            ("anthropic.claude-haiku-4.5@2025", Some((4, 5))),
            ("MiniMax-M2", None),
            ("claude-next", None),
        ];
        for (name, wanted) in names {
            assert_eq!(version(name), wanted, "{name}");
        }
    }

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
