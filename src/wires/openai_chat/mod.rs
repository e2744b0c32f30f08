//! OpenAI Chat Completions, and compatible servers.

mod calls;
mod decode;
mod details;
mod encode;
mod frame;
mod messages;
mod thinking;
mod usage;

use crate::rules::stream::{ModelRequest, NativeOutput};
use crate::wires::compat::{Replay, server};
use crate::wires::encoding::models::takes_schemas;
use crate::wires::{Decoder, Dialect, HttpRequest, Limits, Wire, WireOptions};

pub(super) use decode::decoder;
use encode::ChatEncoder;

/// The switches of [`Compat`](crate::wires::compat::Compat) that this wire has.
const SWITCHES: &str = "\
    maxTokensField developerRole streamOptions store parallelToolCalls strict reasoning \
    toolIds replayReasoning toolResultName assistantAfterTool cacheControl promptCacheKey";

/// The wire to one server. For Azure, the base URL is that of the resource, of a deployment, or ends in
/// `/models`.
pub struct OpenAiChat {
    limits: Limits,
    encoder: ChatEncoder,
}

impl OpenAiChat {
    /// Creates a wire to the server of these options.
    ///
    /// # Errors
    /// If `compat` holds an unknown switch. The text names it.
    pub fn new(options: WireOptions) -> Result<Self, String> {
        let WireOptions { mut base_url, headers, compat: switches, limits, .. } = options;
        if base_url.is_empty() {
            "https://api.openai.com/v1".clone_into(&mut base_url);
        }
        let (provider, mut compat) = server(&base_url, &switches)?;
        compat.apply(&switches, SWITCHES)?;
        Ok(OpenAiChat { limits, encoder: ChatEncoder::new(provider, base_url, headers, compat) })
    }
}

impl Wire for OpenAiChat {
    fn provider(&self) -> &str {
        self.encoder.provider
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        self.encoder.encode(request)
    }

    /// Servers that only bend the answer to the schema cannot offer tools beside it. Of the others some refuse a schema,
    /// and some ignore it.
    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        match self.encoder.provider {
            "openai" if takes_schemas(model) => Some(NativeOutput { with_tools: true, any_root: false }),
            "llama.cpp" | "vllm" | "lmstudio" | "ollama" => {
                Some(NativeOutput { with_tools: false, any_root: true })
            }
            _ => None,
        }
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn dialect(&self) -> Dialect {
        let keeps_details = self.encoder.compat.replay == Replay::Details;
        Dialect { keeps_details, ..Dialect::plain("openai-chat", self.provider()) }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        decoder(self.limits, self.encoder.compat.replay == Replay::Details)
    }
}
