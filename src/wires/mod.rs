//! The wires, without I/O. A [`Wire`] turns a [`ModelRequest`] into an [`HttpRequest`] and provides a
//! [`Decoder`] for the bytes of the answer. Nothing here opens a socket.

pub mod anthropic;
pub mod compat;
mod decoding;
mod encoding;
pub mod errors;
pub mod gemini;
mod limits;
pub mod openai_chat;
pub mod openai_responses;
pub mod sse;
mod tap;

pub(crate) use encoding::schemas::{has_odd_names, with_own_names};
pub use limits::Limits;
pub use tap::{Heard, Tap, TappedWire};

use crate::data::json::Value;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest, NativeOutput};
use crate::words::error::ErrorInfo;

/// The request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// Always sent with POST.
    pub url: String,
    /// In order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// JSON in UTF-8.
    pub body: Vec<u8>,
    /// The body refers to images or files by their addresses. A host that sends it to a server that does not fetch them
    /// may put in their contents.
    pub has_links: bool,
    /// What was left out of the tools because this server refuses it, a sentence per tool: for a log. Said once, with the first
    /// request that has these tools.
    pub warnings: Vec<String>,
}

/// The address of a server, and how it differs from others.
#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// The address before the part that the wire itself appends (`/chat/completions`, `/responses`,
    /// `/v1/messages`, `/models/…`), with or without a trailing slash; a query stays at the end. Empty for
    /// the provider's own address.
    pub base_url: String,
    /// Sent with each request; they override the headers made here. Browsers ask the server for permission
    /// for each custom header (CORS), and Ollama rejects unknown ones.
    pub headers: Vec<(String, String)>,
    /// Switches set by hand, which override those known from the address: see [`compat::Compat`]. Null for
    /// none.
    pub compat: Value,
    /// Anthropic only: sends the header that allows requests from browsers. Anyone who can open the page can
    /// then read the key.
    pub dangerously_allow_browser: bool,
    /// Limits on the size of an answer.
    pub limits: Limits,
}

/// The wire with this name: `openai-chat`, `openai-responses`, `anthropic` or `gemini`.
///
/// # Errors
/// If there is no such wire, or `compat` holds a switch that the wire does not have. The text names it.
pub fn wire(name: &str, options: WireOptions) -> Result<Box<dyn Wire>, String> {
    Ok(match name {
        "openai-chat" => Box::new(openai_chat::OpenAiChat::new(options)?),
        "openai-responses" => Box::new(openai_responses::OpenAiResponses::new(options)?),
        "anthropic" => Box::new(anthropic::Anthropic::new(options)?),
        "gemini" => Box::new(gemini::Gemini::new(options)?),
        other => return Err(["there is no wire `", other, "`"].concat()),
    })
}

/// What a decoder must know: the wire, and how the server differs from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The name of the wire: see [`wire`].
    pub wire: &'static str,
    /// The name of the provider.
    pub provider: String,
    /// Chat only: what `reasoning_details` hold is kept.
    pub keeps_details: bool,
}

impl Dialect {
    /// The dialect of a wire that no switch bends.
    fn plain(wire: &'static str, provider: &str) -> Dialect {
        Dialect { wire, provider: provider.to_owned(), keeps_details: false }
    }
}

/// A decoder of answers on the wire with this name, for those that were recorded.
pub fn decoder(wire: &str, provider: &str, keeps_details: bool) -> Option<Box<dyn Decoder>> {
    let limits = Limits::default();
    Some(match wire {
        "openai-chat" => openai_chat::decoder(limits, keeps_details),
        "openai-responses" => openai_responses::decoder(limits, provider == "xai"),
        "anthropic" => anthropic::decoder(limits),
        "gemini" => gemini::decoder(limits),
        _ => return None,
    })
}

/// The protocol of one provider. Keeps what it has encoded, so that each message is encoded once, however
/// long the history.
pub trait Wire {
    /// The name of the provider, such as `openai`.
    fn provider(&self) -> &str;

    /// Builds the request.
    fn encode(&mut self, request: &ModelRequest) -> HttpRequest;

    /// Whether the model with this id answers with JSON that fits a schema, if the request holds one.
    fn native_output(&self, _model: &str) -> Option<NativeOutput> {
        None
    }

    /// What the decoder must know of the server.
    fn dialect(&self) -> Dialect;

    /// Creates a decoder for the body of a 200 answer.
    fn decoder(&self) -> Box<dyn Decoder>;

    /// Limits on the size of an answer.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// The error that an answer with any other status means. `header` looks up a response header by its name
    /// in lower case; `now` is in milliseconds since 1970, for dates in headers.
    fn error(
        &self,
        status: u16,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
        now: u64,
    ) -> ErrorInfo {
        errors::ErrorResponse { status, header, body, now }.error()
    }
}

/// Bytes in, events out. The bytes may be split anywhere.
pub trait Decoder {
    /// Takes the next bytes and appends the events that they complete.
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<AssistantMessageEvent>);

    /// The body has ended. Appends `Done` or `Error`, unless one of them was emitted before.
    fn finish(&mut self, out: &mut Vec<AssistantMessageEvent>);

    /// Whether `Done` or `Error` was emitted: the rest of the body no longer matters.
    fn is_done(&self) -> bool;

    /// What the events do not say.
    fn remarks(&self) -> Remarks {
        Remarks::default()
    }
}

/// What a decoder saw besides its events, for logs and tests; the engine does not act on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The provider's own word for why the answer stopped.
    pub raw_stop_reason: Option<String>,
    /// Whether the provider closed the stream with `[DONE]`.
    pub saw_done: bool,
    /// The text blocks that are a refusal.
    pub refusals: Vec<u32>,
    /// What the model wrote, if the provider rejected it as a tool call.
    pub failed_generation: Option<String>,
    /// The stop sequence that ended the answer.
    pub stop_sequence: Option<String>,
    /// The provider's details on why it stopped: an object or a text.
    pub stop_details: Option<crate::data::json::RawJson>,
    /// The provider's own ids of items that are calls, by the number of their block.
    pub items: Vec<(u32, String)>,
    /// The billed usage, where the reported usage is only that of the last of several steps that the provider
    /// ran.
    pub billed: Option<crate::words::message::Usage>,
}
