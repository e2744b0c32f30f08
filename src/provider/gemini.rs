//! Google Gemini, at Google's own address and on Vertex.

mod chunk;
mod contents;
mod decode;
mod encode;
mod partial;

use crate::provider::{Decoder, HttpRequest, Limits, Wire};
use crate::stream::ModelRequest;

use decode::decoder;
use encode::Encoder;

/// Where the server is.
#[derive(Clone, Debug, Default)]
pub struct GeminiOptions {
    /// The address before `/models/…`, such as that of a publisher on Vertex. Empty for Google's own.
    pub base_url: String,
    /// Sent with each request. They win over those made here.
    pub headers: Vec<(String, String)>,
    /// What an answer may not exceed.
    pub limits: Limits,
}

/// The wire to one server.
pub struct Gemini {
    limits: Limits,
    encoder: Encoder,
}

/// The name of the provider, in messages and for keys.
const PROVIDER: &str = "gemini";

impl Gemini {
    /// A wire to the server of these options.
    pub fn new(options: GeminiOptions) -> Self {
        let GeminiOptions { base_url, headers, limits } = options;
        Gemini { limits, encoder: Encoder::new(base_url, headers) }
    }
}

impl Wire for Gemini {
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
