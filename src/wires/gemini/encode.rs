//! Requests of this wire: address, headers and body.

use crate::data::json::{RawJson, ToJson, Value};
use crate::data::text::{self, contains, find_any};
use crate::rules::stream::{ModelRequest, ToolChoice};
use crate::wires::HttpRequest;
use crate::wires::compat::{ReasoningStyle, Strict};
use crate::wires::encoding::address::{join_query, split_query};
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::headers::headers;
use crate::wires::encoding::history::EncodedHistory;
use crate::wires::encoding::models;
use crate::wires::encoding::options::{write_max_tokens, write_sampling, write_stop};
use crate::wires::encoding::tools::{EncodedTools, ToolForm};

use super::PROVIDER;
use super::messages::{GeminiMessageWriter, write_all};
use super::thinking::write_thinking;

const TOOLS: ToolForm = ToolForm {
    list: r#"[{"functionDeclarations":[#]}]"#,
    tool: r#"{"name":"$","description":"$","parametersJsonSchema":#}"#,
    strict: ["", ""],
};

/// Builds the requests to one server and keeps what it has encoded.
pub(super) struct GeminiEncoder {
    base_url: String,
    headers: Vec<(String, String)>,
    reasoning: ReasoningStyle,
    history: EncodedHistory,
    tools: EncodedTools,
}

impl GeminiEncoder {
    pub(super) fn new(base_url: String, headers: Vec<(String, String)>, reasoning: ReasoningStyle) -> Self {
        let (history, tools) = (EncodedHistory::default(), EncodedTools::default());
        GeminiEncoder { base_url, headers, reasoning, history, tools }
    }

    /// Returns the generation of a model, as set by hand or as its name says.
    pub(super) fn version(&self, model: &str) -> Option<(u32, u32)> {
        match self.reasoning {
            ReasoningStyle::Level => Some((3, 0)),
            ReasoningStyle::Budget => Some((2, 5)),
            _ => version(model),
        }
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        // Vertex accepts access tokens, and API keys of its own.
        let is_token = contains(&self.base_url, "aiplatform.googleapis.com")
            && !request.api_key.as_ref().is_some_and(|key| key.starts_with("AIza") || key.starts_with("AQ."));
        let key = if is_token { ("authorization", "Bearer ") } else { ("x-goog-api-key", "") };
        HttpRequest {
            url: url(&self.base_url, &request.model),
            headers: headers(key, &[], &self.headers, request),
            body: self.body(request).into_bytes(),
            has_links: self.history.has_links(),
            warnings: self.tools.take_warnings(),
        }
    }

    fn body(&mut self, request: &ModelRequest) -> String {
        let version = self.version(&request.model);
        let is_gemini_3 = version >= Some((3, 0));
        let writer = GeminiMessageWriter { provider: PROVIDER, model: &request.model, is_gemini_3 };
        self.history.update(&request.model, &request.messages, &mut |message, carried, out| {
            writer.write(message, carried, out);
        });
        let options = &*request.options;
        // The user's `generationConfig` is merged with ours, field by field.
        let mut own = options.body.clone();
        let own_config = own.iter().position(|(key, _)| key == "generationConfig").map(|at| own.remove(at).1);
        // A cache at the provider contains the system prompt and the tools.
        let is_cached = own.iter().any(|(key, _)| key == "cachedContent");
        let mut text = self.history.body_buffer(&request.system_prompt);
        let mut body = RequestBody::of(&mut text, &own);
        let mut prompt = if is_cached { "" } else { &*request.system_prompt };
        // Gemma 3 knows no system instruction: the prompt becomes the first user message.
        if !prompt.is_empty() && !contains(&request.model, "gemma-3") {
            body.fill("systemInstruction", r#"{"parts":[{"text":"$"}]}"#, &[prompt]);
            prompt = "";
        }
        if let Some(out) = body.key("contents") {
            write_all(prompt, self.history.carried(), self.history.text(), out);
        }
        if !request.tools.is_empty() && !is_cached {
            body.tools(self.tools.text(&request.tools, &TOOLS, (Strict::Never, PROVIDER)), "");
            if let Some(choice) = &options.tool_choice {
                write_choice(choice, &mut body);
            }
        }
        let version = version.filter(|_| self.reasoning != ReasoningStyle::None);
        let config = config(request, version, &own_config.map(|config| members(&config)).unwrap_or_default());
        if config != "{}" {
            body.raw("generationConfig", &config);
        }
        body.end();
        text
    }
}

fn config(request: &ModelRequest, version: Option<(u32, u32)>, own: &[(String, RawJson)]) -> String {
    let options = &*request.options;
    let mut text = String::new();
    let mut config = RequestBody::of(&mut text, own);
    write_max_tokens(options.max_tokens, "maxOutputTokens", &mut config);
    write_sampling(options, "topP", &mut config);
    write_stop(options, "stopSequences", &mut config);
    if let Some(reasoning) = &options.reasoning {
        write_thinking(reasoning, (&request.model, version), &mut config);
    }
    if let Some(schema) = &request.output {
        config.text("responseMimeType", "application/json");
        config.raw("responseJsonSchema", schema.as_str());
    }
    config.end();
    text
}

fn write_choice(choice: &ToolChoice, body: &mut RequestBody<'_>) {
    let (mode, name) = match choice {
        ToolChoice::Auto => ("AUTO", ""),
        ToolChoice::None => ("NONE", ""),
        ToolChoice::Required => ("ANY", ""),
        ToolChoice::Tool(name) => ("ANY", name.as_str()),
    };
    let template = match choice {
        ToolChoice::Tool(_) => r#"{"functionCallingConfig":{"mode":"$","allowedFunctionNames":["$"]}}"#,
        _ => r#"{"functionCallingConfig":{"mode":"$"}}"#,
    };
    body.fill("toolConfig", template, &[mode, name]);
}

fn members(object: &RawJson) -> Vec<(String, RawJson)> {
    match object.to_value() {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, value.to_raw())).collect(),
        _ => Vec::new(),
    }
}

/// Returns the version in the name of a Gemini: `gemini-2.5-flash`, `gemini-3-pro-preview`. `-latest` is at
/// least the third generation.
fn version(model: &str) -> Option<(u32, u32)> {
    if contains(model, "gemini-") && model.ends_with("-latest") {
        return Some((3, u32::MAX));
    }
    models::version(text::split_once(model, "gemini-")?.1)
}

fn url(base_url: &str, model: &str) -> String {
    let (base, query) = split_query(base_url);
    let (base, version) = match base {
        "" => ("https://generativelanguage.googleapis.com", "/v1beta"),
        base if base.ends_with("generativelanguage.googleapis.com")
            || base.ends_with("/google-ai-studio") =>
        {
            (base, "/v1beta")
        }
        base => (base, ""),
    };
    let folder = if find_any(model, "/").is_some() { "/" } else { "/models/" };
    let separator = if query.is_empty() { "" } else { "&" };
    let query = [query, separator, "alt=sse"].concat();
    join_query(&[base, version, folder, model, ":streamGenerateContent"], &query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_made_of_any_form_of_base_and_model() {
        let own = "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse";
        let addresses = [
            ("", "m", own),
            ("", "models/m", own),
            ("https://generativelanguage.googleapis.com/v1beta/", "m", own),
            ("https://generativelanguage.googleapis.com", "m", own),
            (
                "https://h/google-ai-studio",
                "m",
                "https://h/google-ai-studio/v1beta/models/m:streamGenerateContent?alt=sse",
            ),
            ("https://h/p?key=k", "m", "https://h/p/models/m:streamGenerateContent?key=k&alt=sse"),
            ("https://h/p", "tunedModels/t", "https://h/p/tunedModels/t:streamGenerateContent?alt=sse"),
        ];
        for (base, model, wanted) in addresses {
            assert_eq!(url(base, model), wanted);
        }
    }

    #[test]
    fn the_version_of_a_gemini_is_read_from_its_name() {
        for (name, wanted) in [
            ("gemini-2.5-flash", Some((2, 5))),
            ("models/gemini-3-pro-preview", Some((3, 0))),
            ("gemini-3.1-pro-preview", Some((3, 1))),
            ("gemini-flash-latest", Some((3, u32::MAX))),
            ("gemma-3", None),
        ] {
            assert_eq!(version(name), wanted, "{name}");
        }
    }
}
