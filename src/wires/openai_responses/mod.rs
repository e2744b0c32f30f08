//! OpenAI Responses, and compatible servers. The provider stores nothing: each request holds the whole
//! conversation.

mod decode;
mod encode;
mod finished;
mod frame;
mod items;
mod keys;
mod messages;
mod signatures;
mod thinking;
mod usage;

use crate::rules::stream::{ModelRequest, NativeOutput};
use crate::wires::compat::{Compat, Strict, server};
use crate::wires::encoding::models::takes_schemas;
use crate::wires::{Decoder, Dialect, HttpRequest, Limits, Wire, WireOptions};

pub(super) use decode::decoder;
use encode::ResponsesEncoder;

/// The switches of [`Compat`] that this wire has.
const SWITCHES: &str = "store parallelToolCalls strict reasoning promptCacheKey";

/// The wire to one server.
pub struct OpenAiResponses {
    limits: Limits,
    encoder: ResponsesEncoder,
}

impl OpenAiResponses {
    /// Creates a wire to the server of these options.
    ///
    /// # Errors
    /// If `compat` holds an unknown switch. The text names it.
    pub fn new(options: WireOptions) -> Result<Self, String> {
        let WireOptions { mut base_url, headers, compat: switches, limits, .. } = options;
        if base_url.is_empty() {
            "https://api.openai.com/v1".clone_into(&mut base_url);
        }
        let (provider, known) = server(&base_url, &switches)?;
        let mut compat = Compat {
            // The provider shall store nothing, and a tool is strict unless the request says otherwise.
            store: true,
            strict: Strict::Fitting,
            parallel_tool_calls: true,
            prompt_cache_key: known.prompt_cache_key,
            ..Compat::default()
        };
        compat.apply(&switches, SWITCHES)?;
        Ok(OpenAiResponses { limits, encoder: ResponsesEncoder::new(provider, base_url, headers, compat) })
    }
}

impl Wire for OpenAiResponses {
    fn provider(&self) -> &str {
        self.encoder.provider
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        let takes = matches!(self.provider(), "openai" | "azure" | "xai") && takes_schemas(model);
        takes.then_some(NativeOutput { with_tools: true, any_root: false })
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn dialect(&self) -> Dialect {
        Dialect::plain("openai-responses", self.provider())
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        decoder(self.limits, self.provider() == "xai")
    }
}
