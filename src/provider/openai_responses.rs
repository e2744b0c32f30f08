//! OpenAI Responses and the servers that speak it too. Nothing is kept at the provider: each request holds the whole
//! conversation.

mod decode;
mod encode;
mod event;
mod items;

use crate::provider::openai_chat::known;
use crate::provider::{Decoder, HttpRequest, Limits, Wire};
use crate::stream::ModelRequest;

use decode::decoder;
use encode::Encoder;

/// Where the server is.
#[derive(Clone, Debug, Default)]
pub struct OpenAiResponsesOptions {
    /// The address before `/responses`, with or without a slash at its end; a query stays behind. Empty for OpenAI
    /// itself.
    pub base_url: String,
    /// Sent with each request. They win over those made here.
    pub headers: Vec<(String, String)>,
    /// What an answer may not exceed.
    pub limits: Limits,
}

/// The wire to one server.
pub struct OpenAiResponses {
    provider: &'static str,
    limits: Limits,
    encoder: Encoder,
}

impl OpenAiResponses {
    /// A wire to the server of these options.
    pub fn new(options: OpenAiResponsesOptions) -> Self {
        let OpenAiResponsesOptions { mut base_url, headers, limits } = options;
        if base_url.is_empty() {
            "https://api.openai.com/v1".clone_into(&mut base_url);
        }
        let (provider, _) = known(&base_url);
        OpenAiResponses { provider, limits, encoder: Encoder::new(provider, base_url, headers) }
    }
}

impl Wire for OpenAiResponses {
    fn provider(&self) -> &str {
        self.provider
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decoder(self.limits))
    }
}
