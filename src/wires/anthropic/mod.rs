//! Anthropic Messages, and compatible servers.

mod block;
mod decode;
mod encode;
mod frame;
mod messages;
mod models;
mod thinking;
mod usage;

use crate::rules::stream::{ModelRequest, NativeOutput};
use crate::wires::compat::{Compat, server};
use crate::wires::{Decoder, Dialect, HttpRequest, Limits, Wire, WireOptions};

pub(super) use decode::decoder;
use encode::AnthropicEncoder;

/// The switches of [`Compat`] that this wire has.
const SWITCHES: &str = "cacheControl cacheTtl parallelToolCalls strict reasoning";

/// The wire to one server.
pub struct Anthropic {
    limits: Limits,
    encoder: AnthropicEncoder,
}

/// The name of the provider, for messages and keys.
const PROVIDER: &str = "anthropic";

impl Anthropic {
    /// Creates a wire to the server of these options.
    ///
    /// # Errors
    /// If `compat` holds an unknown switch. The text names it.
    pub fn new(options: WireOptions) -> Result<Self, String> {
        server(&options.base_url, &options.compat)?;
        let mut compat = Compat { cache_control: true, parallel_tool_calls: true, ..Compat::default() };
        compat.apply(&options.compat, SWITCHES)?;
        Ok(Anthropic { limits: options.limits, encoder: AnthropicEncoder::new(options, compat) })
    }
}

impl Wire for Anthropic {
    fn provider(&self) -> &str {
        PROVIDER
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        let takes = self.encoder.is_at_anthropic() && models::version(model) >= Some((4, 5));
        takes.then_some(NativeOutput { with_tools: true, any_root: false })
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn dialect(&self) -> Dialect {
        Dialect::plain("anthropic", self.provider())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        decoder(self.limits)
    }
}
