//! What is said of a request that failed, in the words of the npm package's `fetch` transport.

use ::reqwest::{Error, Url};

use crate::words::error::{ErrorInfo, ErrorKind};

use super::causes;

/// Why no response came.
pub(super) fn unanswered(error: &Error, url: &str) -> ErrorInfo {
    let (place, detail) = (Place::of(url), text_of(error));
    if error.is_builder() {
        let text = ["the request to ", &place.host, " cannot be sent: ", &detail].concat();
        return ErrorInfo::new(ErrorKind::Misuse, text).in_phase("connect");
    }
    let hint = if place.is_here { ". Is the server running?" } else { "" };
    let text = ["no answer from ", &place.host, ": ", &detail, hint].concat();
    ErrorInfo::new(ErrorKind::Network, text).in_phase(if error.is_connect() { "connect" } else { "model" })
}

/// Why a response was cut.
pub(super) fn cut(error: &Error) -> String {
    text_of(error)
}

/// The text of an error with its causes, each once, without the address: its query may hold a key. The outermost error only
/// says that a request failed, so it is left out where there is a cause.
pub(super) fn text_of(error: &Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    for cause in causes(error).skip(1) {
        let text = cause.to_string();
        // Many errors repeat their cause in their own words.
        texts.retain(|before| !text.contains(before.as_str()));
        if texts.iter().all(|before| !before.contains(&text)) {
            texts.push(text);
        }
    }
    if texts.is_empty() { kind_of(error).to_owned() } else { texts.join(": ") }
}

fn kind_of(error: &Error) -> &'static str {
    match () {
        () if error.is_timeout() => "it took too long",
        () if error.is_connect() => "the connection failed",
        () if error.is_builder() => "its address or a header is none",
        () => "the request failed",
    }
}

/// Where a request goes.
struct Place {
    /// The host and, if it is not the usual one, the port.
    host: String,
    /// Whether it is this machine.
    is_here: bool,
}

impl Place {
    fn of(url: &str) -> Self {
        let url = Url::parse(url).ok();
        let name = url.as_ref().and_then(Url::host_str).unwrap_or("the server");
        let port = url.as_ref().and_then(Url::port).map(|port| format!(":{port}"));
        let is_here = matches!(name, "localhost" | "127.0.0.1" | "[::1]");
        Place { host: [name, &port.unwrap_or_default()].concat(), is_here }
    }
}
