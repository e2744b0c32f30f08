//! OpenAI Chat Completions and the servers that speak it too.

mod chunk;
mod compat;
mod decode;
mod encode;
mod messages;
pub(super) mod strict;

pub use compat::{Compat, ReasoningStyle, Replay, Strict, ToolIds, known};

use crate::json::Value;
pub use crate::provider::Limits;
use crate::provider::{Decoder, HttpRequest, Wire};
use crate::stream::ModelRequest;

use decode::decoder;
use encode::Encoder;

/// Where the server is and what is special about it.
#[derive(Clone, Debug, Default)]
pub struct OpenAiChatOptions {
    /// The address before `/chat/completions`, with or without a slash at its end; a query stays behind. Azure: the
    /// resource alone, a deployment, or `/models`. Empty for OpenAI itself.
    pub base_url: String,
    /// Sent with each request. They win over `authorization` and `content-type`. Browsers ask the server for leave
    /// for each header of one's own, and Ollama refuses unknown ones.
    pub headers: Vec<(String, String)>,
    /// Switches set by hand, over those known by the address: see [`Compat`]. Null for none.
    pub compat: Value,
    /// What an answer may not exceed.
    pub limits: Limits,
}

/// The wire to one server.
pub struct OpenAiChat {
    provider: &'static str,
    compat: Compat,
    limits: Limits,
    encoder: Encoder,
}

impl OpenAiChat {
    /// A wire to the server of these options.
    ///
    /// # Errors
    /// Where `compat` holds an unknown switch: the text names it.
    pub fn new(options: OpenAiChatOptions) -> Result<Self, String> {
        let OpenAiChatOptions { mut base_url, headers, compat: switches, limits } = options;
        if base_url.is_empty() {
            "https://api.openai.com/v1".clone_into(&mut base_url);
        }
        let (provider, mut compat) = known(&base_url);
        if !switches.is_null() {
            compat.apply(&switches)?;
        }
        let encoder = Encoder::new(provider, base_url, headers, compat.clone());
        Ok(OpenAiChat { provider, compat, limits, encoder })
    }
}

impl Wire for OpenAiChat {
    fn provider(&self) -> &str {
        self.provider
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decoder(self.limits, self.compat.replay == Replay::Details))
    }
}
