//! Anthropic Messages and the servers that speak it too.

mod decode;
mod encode;
mod event;
mod messages;

use crate::provider::{Decoder, HttpRequest, Limits, Wire};
use crate::stream::ModelRequest;

use decode::decoder;
use encode::Encoder;

/// Where the server is and how it is asked.
#[derive(Clone, Debug, Default)]
pub struct AnthropicOptions {
    /// The address before `/v1/messages` or `/messages`. Empty for Anthropic itself.
    pub base_url: String,
    /// Sent with each request, such as `anthropic-beta`. They win over those made here.
    pub headers: Vec<(String, String)>,
    /// Sends the header by which Anthropic lets browsers ask. Whoever can open the page can then read the key.
    pub dangerously_allow_browser: bool,
    /// What an answer may not exceed.
    pub limits: Limits,
}

/// The wire to one server.
pub struct Anthropic {
    limits: Limits,
    encoder: Encoder,
}

/// The name of the provider, in messages and for keys.
const PROVIDER: &str = "anthropic";

impl Anthropic {
    /// A wire to the server of these options.
    pub fn new(options: AnthropicOptions) -> Self {
        Anthropic { limits: options.limits, encoder: Encoder::new(options) }
    }
}

impl Wire for Anthropic {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decoder(self.limits))
    }
}
