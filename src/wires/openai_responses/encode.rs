//! Requests of this wire: address, headers and body.

use crate::data::json::{RawJson, bool_text, without_comma};
use crate::rules::stream::ModelRequest;
use crate::wires::HttpRequest;
use crate::wires::compat::{Compat, ReasoningStyle};
use crate::wires::encoding::address::{join_query, split_query};
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::headers::{headers, openai_key};
use crate::wires::encoding::history::EncodedHistory;
use crate::wires::encoding::options::{
    write_cache_key, write_max_tokens, write_openai_choice, write_sampling,
};
use crate::wires::encoding::tools::{EncodedTools, ToolForm};

use super::messages::ResponsesMessageWriter;
use super::thinking::ResponsesThinking;

const TOOLS: ToolForm = ToolForm {
    list: "[#]",
    tool: r#"{"type":"function","name":"$","description":"$","parameters":#,"strict":#}"#,
    // Here a tool is strict unless the request says otherwise.
    strict: ["false", "true"],
};

/// Builds the requests to one server and keeps what it has encoded.
pub(super) struct ResponsesEncoder {
    pub(super) provider: &'static str,
    url: String,
    headers: Vec<(String, String)>,
    compat: Compat,
    history: EncodedHistory,
    tools: EncodedTools,
}

impl ResponsesEncoder {
    pub(super) fn new(
        provider: &'static str,
        base_url: String,
        headers: Vec<(String, String)>,
        compat: Compat,
    ) -> Self {
        let (history, tools) = (EncodedHistory::default(), EncodedTools::default());
        ResponsesEncoder { provider, url: url(&base_url), headers, compat, history, tools }
    }

    pub(super) fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        HttpRequest {
            url: self.url.clone(),
            headers: headers(openai_key(self.provider), &[], &self.headers, request),
            body: self.body(request).into_bytes(),
            has_links: self.history.has_links(),
            warnings: self.tools.take_warnings(),
        }
    }

    fn body(&mut self, request: &ModelRequest) -> String {
        let writer = ResponsesMessageWriter { provider: self.provider, model: &request.model };
        self.history.update(&request.model, &request.messages, &mut |message, carried, out| {
            writer.write(message, carried, out);
        });
        let options = &*request.options;
        let mut text = self.history.body_buffer(&request.system_prompt);
        let mut body = RequestBody::new(&mut text, options);
        body.text("model", &request.model);
        body.raw("stream", "true");
        if self.compat.store {
            body.raw("store", "false");
        }
        write_cache_key(request, self.compat.prompt_cache_key, &mut body);
        let thinking = ResponsesThinking::of(request, self.provider);
        if thinking.is_possible() {
            body.raw("include", "[\"reasoning.encrypted_content\"]");
        }
        if !request.system_prompt.is_empty() {
            body.text("instructions", &request.system_prompt);
        }
        body.fill("input", "[#]", &[without_comma(self.history.text())]);
        if !request.tools.is_empty() {
            body.tools(self.tools.text(&request.tools, &TOOLS, (self.compat.strict, self.provider)), "");
            let named = r#"{"type":"function","name":"$"}"#;
            write_openai_choice(options, named, false, self.compat.parallel_tool_calls, &mut body);
        }
        write_max_tokens(options.max_tokens, "max_output_tokens", &mut body);
        if !thinking.excludes_sampling {
            write_sampling(options, "top_p", &mut body);
        }
        if self.compat.reasoning != ReasoningStyle::None {
            thinking.write(&request.model, &mut body);
        }
        if let Some(schema) = &request.output {
            self.write_output(schema, &mut body);
        }
        body.end();
        text
    }

    fn write_output(&self, schema: &RawJson, body: &mut RequestBody<'_>) {
        let template = r#"{"format":{"type":"json_schema","name":"output","schema":#,"strict":#}}"#;
        let (schema, is_strict) = self.compat.strict.answer(schema);
        body.fill("text", template, &[schema.as_str(), bool_text(is_strict)]);
    }
}

fn url(base_url: &str) -> String {
    let (base, query) = split_query(base_url);
    let path = if base.ends_with("/responses") {
        ""
    } else if base.ends_with(".azure.com") {
        "/openai/v1/responses"
    } else if base.ends_with(".azure.com/openai") {
        "/v1/responses"
    } else {
        "/responses"
    };
    join_query(&[base, path], query)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_made_of_any_form_of_base() {
        let addresses = [
            ("https://h/v1/", "https://h/v1/responses"),
            ("https://h/v1/responses?a=b", "https://h/v1/responses?a=b"),
            ("https://r.openai.azure.com", "https://r.openai.azure.com/openai/v1/responses"),
            ("https://r.openai.azure.com/openai", "https://r.openai.azure.com/openai/v1/responses"),
            ("https://r.openai.azure.com/openai/v1", "https://r.openai.azure.com/openai/v1/responses"),
        ];
        for (base, wanted) in addresses {
            assert_eq!(url(base), wanted);
        }
    }
}
