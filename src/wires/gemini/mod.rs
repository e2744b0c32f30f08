//! Google Gemini, at Google's own address and on Vertex.

mod decode;
mod encode;
mod frame;
mod messages;
mod partial_arguments;
mod thinking;
mod usage;

use crate::rules::stream::{ModelRequest, NativeOutput};
use crate::wires::compat::{Compat, server};
use crate::wires::{Decoder, Dialect, HttpRequest, Limits, Wire, WireOptions};

pub(super) use decode::decoder;
use encode::GeminiEncoder;

/// The wire to one server. For Vertex, the base URL is that of the publisher.
pub struct Gemini {
    limits: Limits,
    encoder: GeminiEncoder,
}

/// The name of the provider, for messages and keys.
const PROVIDER: &str = "gemini";

impl Gemini {
    /// Creates a wire to the server of these options.
    ///
    /// # Errors
    /// If `compat` holds an unknown switch. The text names it.
    pub fn new(options: WireOptions) -> Result<Self, String> {
        let WireOptions { base_url, headers, compat: switches, limits, .. } = options;
        server(&base_url, &switches)?;
        let mut compat = Compat::default();
        compat.apply(&switches, "reasoning")?;
        Ok(Gemini { limits, encoder: GeminiEncoder::new(base_url, headers, compat.reasoning) })
    }
}

impl Wire for Gemini {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    /// Before the third generation, a schema and tools exclude each other.
    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        let version = self.encoder.version(model)?;
        Some(NativeOutput { with_tools: version >= (3, 0), any_root: true })
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn dialect(&self) -> Dialect {
        Dialect::plain("gemini", self.provider())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        decoder(self.limits)
    }
}
