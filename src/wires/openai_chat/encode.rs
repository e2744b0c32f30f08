//! Requests of this wire: address, headers and body.

use crate::data::json::RawJson;
use crate::data::text::contains;
use crate::rules::stream::ModelRequest;
use crate::wires::HttpRequest;
use crate::wires::compat::Compat;
use crate::wires::encoding::address::{join_query as join, split_query};
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::headers::{headers, openai_key};
use crate::wires::encoding::history::EncodedHistory;
use crate::wires::encoding::models::{always_thinks, kimi_version};
use crate::wires::encoding::options::{
    effort, write_cache_key, write_max_tokens, write_openai_choice, write_sampling, write_stop,
};
use crate::wires::encoding::tools::{EncodedTools, ToolForm};

use super::messages::ChatMessageWriter;

/// The Azure API versions that are used if the address names none.
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
    history: EncodedHistory,
    tools: EncodedTools,
}

impl ChatEncoder {
    pub(super) fn new(
        provider: &'static str,
        base_url: String,
        headers: Vec<(String, String)>,
        compat: Compat,
    ) -> Self {
        let (history, tools) = (EncodedHistory::default(), EncodedTools::default());
        ChatEncoder { provider, base_url, headers, compat, history, tools }
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        HttpRequest {
            url: url(&self.base_url, &request.model),
            headers: headers(openai_key(self.provider), &[], &self.headers, request),
            body: self.body(request).into_bytes(),
            has_links: self.history.has_links(),
            warnings: self.tools.take_warnings(),
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
        let mut body = RequestBody::new(&mut text, options);
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
            body.tools(self.tools.text(&request.tools, &TOOLS, (self.compat.strict, self.provider)), "");
            self.write_choice(request, &mut body);
        }
        write_max_tokens(options.max_tokens, self.compat.max_tokens_field, &mut body);
        // Models of OpenAI that think reject the sampling parameters.
        if !(self.checks_efforts() && always_thinks(&request.model, options)) {
            write_sampling(options, "top_p", &mut body);
        }
        write_stop(options, "stop", &mut body);
        self.write_thinking(request, &mut body);
        if let Some(schema) = &request.output {
            self.write_output(schema, &mut body);
        }
        body.end();
        text
    }

    fn write_output(&self, schema: &RawJson, body: &mut RequestBody<'_>) {
        let (schema, is_strict) = self.compat.strict.answer(schema);
        let strict = if is_strict { ",\"strict\":true" } else { "" };
        let template = r#"{"type":"json_schema","json_schema":{"name":"output","schema":##}}"#;
        body.fill("response_format", template, &[schema.as_str(), strict]);
    }

    fn write_choice(&self, request: &ModelRequest, body: &mut RequestBody<'_>) {
        let options = &*request.options;
        let always_thinks = self.always_thinks_at_moonshot(&request.model);
        let is_kimi_3 = always_thinks && kimi_version(&request.model) >= Some((3, 0));
        let is_asked =
            options.reasoning.as_ref().is_some_and(|reasoning| !matches!(effort(reasoning), "off" | "none"));
        let thinks = (is_asked || always_thinks) && !is_kimi_3;
        let is_free = self.is_never_forced() || thinks && self.is_never_forced_while_thinking();
        // Kimi K3 can be forced to call a tool, but not a certain one.
        let named = if is_kimi_3 { "\"required\"" } else { r#"{"type":"function","function":{"name":"$"}}"# };
        write_openai_choice(options, named, is_free, self.compat.parallel_tool_calls, body);
    }
}

fn url(base_url: &str, model: &str) -> String {
    let (base, query) = split_query(base_url);
    let (mut path, mut version) = ("/chat/completions", "");
    if base.ends_with(path) {
        path = "";
    } else if base.ends_with("/ai/run") {
        // In the native form of Workers AI, the model is part of the address.
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
