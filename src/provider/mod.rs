//! The wires: sans-IO. A [`Wire`] turns a [`ModelRequest`] into an [`HttpRequest`] and gives a [`Decoder`] for the
//! answer's bytes. Nothing here opens a socket.

pub mod anthropic;
mod blocks;
pub mod compat;
pub mod error;
pub mod gemini;
mod history;
pub mod openai_chat;
pub mod openai_responses;
mod progress;
mod read;
mod request;
pub mod sse;
mod strict;

pub use progress::Limits;

use crate::error::ErrorInfo;
use crate::json::{RawJson, Value};
use crate::stream::{AssistantMessageEvent, ModelRequest};

/// What is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Always sent with POST.
    pub url: String,
    /// In order; names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON in UTF-8.
    pub body: Vec<u8>,
}

/// Where a server is and what is special about it.
#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// The address before the part that the wire itself adds (`/chat/completions`, `/responses`, `/v1/messages`,
    /// `/models/…`), with or without a slash at its end; a query stays behind. Empty for the provider's own.
    pub base_url: String,
    /// Sent with each request. They win over those made here. Browsers ask the server for leave for each header of
    /// one's own, and Ollama refuses unknown ones.
    pub headers: Vec<(String, String)>,
    /// Switches set by hand, over those known by the address: see [`compat::Compat`]. Null for none.
    pub compat: Value,
    /// Anthropic alone: sends the header by which it lets browsers ask. Whoever can open the page can then read the key.
    pub dangerously_allow_browser: bool,
    /// What an answer may not exceed.
    pub limits: Limits,
}

/// The wire of a name: `openai-chat`, `openai-responses`, `anthropic` or `gemini`.
///
/// # Errors
/// Where there is no such wire, or `compat` holds a switch that the wire does not have: the text names it.
pub fn wire(name: &str, options: WireOptions) -> Result<Box<dyn Wire>, String> {
    Ok(match name {
        "openai-chat" => Box::new(openai_chat::OpenAiChat::new(options)?),
        "openai-responses" => Box::new(openai_responses::OpenAiResponses::new(options)?),
        "anthropic" => Box::new(anthropic::Anthropic::new(options)?),
        "gemini" => Box::new(gemini::Gemini::new(options)?),
        other => return Err(["there is no wire `", other, "`"].concat()),
    })
}

/// One provider's way to speak. Keeps what it encoded, so that a message is encoded once however long the history.
pub trait Wire {
    /// The name of the provider, such as `openai`.
    fn provider(&self) -> &str;

    /// Makes the request.
    fn encode(&mut self, request: &ModelRequest) -> HttpRequest;

    /// A decoder for the body of a 200 answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// What an answer with another status means. `header` looks a response header up, by its name in lower case;
    /// `now` is milliseconds since 1970, for dates in headers.
    fn error(
        &self,
        status: u16,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
        now: u64,
    ) -> ErrorInfo {
        error::Answer { status, header, body, now }.error()
    }
}

/// Bytes in, events out. Bytes may be cut anywhere.
pub trait Decoder {
    /// Takes the next bytes and appends what they mean.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<AssistantMessageEvent>);

    /// The body has ended. Appends `Done` or `Error`, unless one of them came before.
    fn finish(&mut self, out: &mut Vec<AssistantMessageEvent>);

    /// Whether `Done` or `Error` came: what follows in the body does not matter.
    fn is_done(&self) -> bool;

    /// What the events do not tell.
    #[cfg(not(target_os = "unknown"))]
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }
}

/// What a decoder saw beside its events: for logs and tests, nothing that the engine acts on. In the package, where nobody can
/// ask for it, a decoder keeps what it needs itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The provider's own word for how the answer stopped.
    pub raw_stop_reason: Option<String>,
    /// Whether the provider closed the stream with `[DONE]`.
    #[cfg(not(target_os = "unknown"))]
    pub saw_done: bool,
    /// The text blocks that are a refusal.
    pub refusals: Vec<u32>,
    /// What the model wrote where a provider refused it as a tool call.
    #[cfg(not(target_os = "unknown"))]
    pub failed_generation: Option<String>,
    /// The text at which the answer was told to end.
    #[cfg(not(target_os = "unknown"))]
    pub stop_sequence: Option<String>,
    /// What the provider tells of why it stopped: an object, or a text.
    pub stop_details: Option<RawJson>,
    /// The provider's own ids of items that are calls, by the number of their block.
    #[cfg(not(target_os = "unknown"))]
    pub items: Vec<(u32, String)>,
    /// What is paid for, where the usage is that of the last of several steps that the provider ran.
    #[cfg(not(target_os = "unknown"))]
    pub billed: Option<crate::message::Usage>,
}
