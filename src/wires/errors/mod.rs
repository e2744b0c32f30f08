//! What a provider's error means: HTTP answers and errors inside a stream, of all wires.

mod classify;
mod details;
mod redirect;
mod signs;

use crate::data::json::Value;
use crate::data::text;
use crate::rules::retry::{delay_from_headers, delay_from_rate_limits};
use crate::words::error::{ErrorInfo, ErrorKind};

use details::{ADDRESS, ErrorDetails, first_characters};

/// An HTTP answer with a status other than 2xx.
pub struct ErrorResponse<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Looks a header up by its name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<String>,
    /// The body. Its content type does not matter, because servers send JSON as plain text.
    pub body: &'a [u8],
    /// Milliseconds since 1970, for dates in headers.
    pub now: u64,
}

impl ErrorResponse<'_> {
    /// Returns the error that the answer means.
    pub fn error(&self) -> ErrorInfo {
        if redirect::is_redirect(self.status) {
            return redirect::error(self.status, (self.header)("location").as_deref());
        }
        let details = ErrorDetails::of_body(self.body, self.status);
        let mut info = details.error(Some(self.status));
        if let Some(provider) = &mut info.provider {
            provider.status = Some(self.status);
        }
        match (self.header)("x-should-retry").as_deref().map(str::trim) {
            Some("false") => info.retryable = false,
            // The server knows better than its status, but not better than its own words.
            Some("true") if !details.is_final() => info.retryable = true,
            _ => {}
        }
        if info.retryable {
            info.retry_after_ms = self.delay(&details);
        }
        info
    }

    fn delay(&self, details: &ErrorDetails) -> Option<u64> {
        let asked = delay_from_headers(self.header, self.now).map(|delay| delay.delay_ms);
        asked.or_else(|| details.delay()).or_else(|| delay_from_rate_limits(self.header, self.now))
    }
}

/// Returns what an error document inside a 200 answer means.
pub fn in_stream(document: &Value) -> ErrorInfo {
    ErrorDetails::of_document(document).in_stream()
}

/// Returns what a document beside the events means; `None` if it is not an error.
pub(super) fn error_in(text: &str) -> Option<ErrorInfo> {
    let document = Value::parse_bounded(text).ok()?;
    Some(ErrorDetails::of_value(&document)?.in_stream())
}

/// Returns what an error text inside a 200 answer means.
pub fn in_stream_text(text: &str) -> ErrorInfo {
    match Value::parse_bounded(text) {
        Ok(document) => in_stream(&document),
        Err(_) => ErrorDetails::of_text(text).error(None),
    }
}

/// Whether a document is an error in one of the forms that providers use, and not a keep-alive message.
pub fn is_error(document: &Value) -> bool {
    ErrorDetails::of_value(document).is_some()
}

/// Returns the error of a body that ended before the provider said that the answer is whole. `rest` is the
/// text beside the events.
pub fn ended_early(rest: &str) -> ErrorInfo {
    let mut message =
        String::from("the stream ended early: the connection was cut before the answer was whole");
    if !rest.is_empty() {
        message.push_str("; beside the events stood: ");
        message.push_str(&ErrorDetails::of_text(&first_characters(rest, 300)).message);
    }
    ErrorInfo::new(ErrorKind::Network, message)
}

/// Returns the error of a body that was not a stream of events, but a web page or plain words. A retry would
/// bring the same, except if the body was JSON that was cut on its way.
pub fn no_stream(body: &str) -> ErrorInfo {
    if text::find_any(body, "{[") == Some(0) && Value::parse_bounded(body).is_err() {
        return ended_early(body);
    }
    let text = ErrorDetails::of_text(&first_characters(body, 300)).message;
    let message = ["the answer is no stream of events but: ", &text, ADDRESS];
    ErrorInfo::new(ErrorKind::InvalidRequest, message.concat())
}

#[cfg(test)]
mod tests;
