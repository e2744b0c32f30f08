//! What an error document says, whatever its form.

use crate::data::json::{ToJson, Value};
use crate::data::text::{self, Put};
use crate::rules::retry::delay_in_text;
use crate::words::error::{ErrorInfo, ProviderError};

/// How many characters of a message are kept. Some providers send the whole request back.
pub(super) const MAX_MESSAGE: usize = 4_000;

/// How many characters of a type or a code are kept.
const MAX_WORD: usize = 200;

pub(super) const ADDRESS: &str = "; is the address that of the API?";

/// What the provider says of an error.
#[derive(Default)]
pub(super) struct ErrorDetails {
    pub(super) message: String,
    kind: Option<String>,
    code: Option<String>,
    /// A status that stands in the document.
    status: Option<u16>,
    /// Types, codes, reasons and status words in lower case.
    pub(super) tags: Vec<String>,
    retry_delay: Option<String>,
    /// Which part of the request was refused.
    pub(super) param: Option<String>,
}

impl ErrorDetails {
    pub(super) fn of_body(body: &[u8], status: u16) -> ErrorDetails {
        let text = text::lossy(body);
        let text = text.trim();
        if text.is_empty() {
            let message = ["the provider answered ", &text::number(status), " without a body"].concat();
            // Cerebras answers like this when the conversation does not fit.
            let tags = if status == 400 { vec!["request_too_large".to_owned()] } else { Vec::new() };
            return ErrorDetails { message, tags, ..ErrorDetails::default() };
        }
        let document = Value::parse_bounded(text);
        let is_text = document.is_err();
        let mut details =
            document.map_or_else(|_| ErrorDetails::of_text(text), |value| ErrorDetails::of_document(&value));
        // This is what servers say of an unknown address. Of an unknown model they say more.
        if status == 404 && (is_text || details.message.eq_ignore_ascii_case("not found")) {
            details.message.put(ADDRESS);
        }
        details
    }

    fn plain(message: String) -> ErrorDetails {
        ErrorDetails { message: first_characters(&message, MAX_MESSAGE), ..ErrorDetails::default() }
    }

    /// Takes the title of an HTML page, and the beginning of anything else.
    pub(super) fn of_text(text: &str) -> ErrorDetails {
        let title =
            text::split_once(text, "<title>").and_then(|(_, rest)| text::split_once(rest, "</title>"));
        let title = title.map_or("", |(title, _)| title.trim());
        ErrorDetails::plain(if title.is_empty() { text } else { title }.to_owned())
    }

    /// Reads a document that must be an error.
    pub(super) fn of_document(value: &Value) -> ErrorDetails {
        ErrorDetails::of_value(value).unwrap_or_else(|| {
            let mut details = ErrorDetails::plain(value.to_json());
            details.read_fields(value);
            details
        })
    }

    /// Reads a document; `None` if it is not an error.
    pub(super) fn of_value(value: &Value) -> Option<ErrorDetails> {
        if let Some(items) = value.as_array() {
            return items.iter().find_map(ErrorDetails::of_value);
        }
        let outer = value.as_object()?;
        let inner = match outer.get("error") {
            Some(error @ Value::Object(_)) => error,
            Some(Value::String(text)) if !text.is_empty() => {
                let mut details = ErrorDetails { message: text.clone(), ..ErrorDetails::default() };
                details.read_fields(value);
                return Some(details.bounded());
            }
            _ => value.list_at("errors").first().unwrap_or(value),
        };
        let is_inner = !std::ptr::eq(inner, value);
        // An error object without a message is still an error. Its JSON text is all there is to show.
        let own_text = || if is_inner { Some(inner.to_json()) } else { None };
        let mut details =
            ErrorDetails { message: message_of(inner).or_else(own_text)?, ..ErrorDetails::default() };
        details.read_fields(inner);
        if is_inner {
            details.read_outer_fields(value);
        }
        if let Some(raw) = inner.path(&["metadata", "raw"]).and_then(Value::as_str) {
            details.message = [&details.message, " | ", raw].concat();
        }
        Some(details.bounded())
    }

    /// Returns what the error means inside a 200 answer.
    pub(super) fn in_stream(&self) -> ErrorInfo {
        let mut info = self.error(self.status);
        info.retry_after_ms = if info.retryable { self.delay() } else { None };
        info
    }

    fn bounded(mut self) -> ErrorDetails {
        self.message = first_characters(&self.message, MAX_MESSAGE);
        self
    }

    /// Reads the type, the code and the status in the object that holds the message.
    fn read_fields(&mut self, object: &Value) {
        let word = |key: &str| word_at(object, key);
        let reason = detail_at(object, "reason");
        let inner_code = object.path(&["innererror", "code"]).and_then(word_of);
        self.retry_delay = detail_at(object, "retryDelay").map(str::to_owned);
        self.kind = word("type").or_else(|| word("status")).map(str::to_owned);
        let code = word("code").or_else(|| word("error_code"));
        self.code = match (reason, code, inner_code) {
            (None, Some(code), Some(inner)) => Some([code, "/", inner].concat()),
            _ => reason.or(code).or(inner_code).map(str::to_owned),
        };
        self.param = word("param").or_else(|| word("parameter")).map(str::to_owned).or(self.param.take());
        let status = ["code", "status_code", "status", "raw_status_code"];
        self.status = status.iter().find_map(|key| http_status(word(key)?));
        for tag in [word("type"), word("status"), word("error_code"), code, reason, inner_code] {
            self.tag(tag);
        }
        if object.path(&["metadata", "flagged_input"]).is_some() {
            self.tag(Some("content_filter"));
        }
    }

    fn tag(&mut self, tag: Option<&str>) {
        self.tags.extend(tag.map(str::to_ascii_lowercase));
    }

    /// Reads codes that stand beside the error object instead of in it.
    fn read_outer_fields(&mut self, outer: &Value) {
        let word = |key: &str| word_at(outer, key);
        self.tag(word("error_code"));
        self.code = self.code.take().or_else(|| word("code").map(str::to_owned));
        self.status = self.status.or_else(|| http_status(word("code").or_else(|| word("status_code"))?));
    }

    pub(super) fn error(&self, status: Option<u16>) -> ErrorInfo {
        let (kind, retryable) = self.classify(status);
        let mut info = ErrorInfo::new(kind, self.message.as_str());
        info.retryable = retryable;
        let word = |word: &Option<String>| word.as_deref().map(|word| first_characters(word, MAX_WORD));
        info.provider = Some(ProviderError { status: None, kind: word(&self.kind), code: word(&self.code) });
        info
    }

    pub(super) fn delay(&self) -> Option<u64> {
        self.retry_delay.as_deref().and_then(delay_in_text).or_else(|| delay_in_text(&self.message))
    }
}

/// Returns the message of an error object, or of a document that is one itself.
fn message_of(object: &Value) -> Option<String> {
    let text = |key: &str| match object.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        inner @ Value::Object(_) => message_of(inner),
        _ => None,
    };
    let message = ["message", "Message", "detail", "base_resp", "status_msg"].into_iter().find_map(text);
    message.or_else(|| joined_details(object))
}

/// Joins the messages of `detail: [{loc, msg}]`, which is the form of FastAPI.
fn joined_details(object: &Value) -> Option<String> {
    let items = object.get("detail")?.as_array()?;
    let mut all = String::new();
    for item in items {
        let Some(text) = item.text_at("msg").or_else(|| item.as_str()) else {
            continue;
        };
        if !all.is_empty() {
            all.put("; ");
        }
        for place in item.list_at("loc") {
            if let Some(place) = word_of(place) {
                all.put(place);
                all.put(".");
            }
        }
        if all.ends_with(".") {
            all.pop();
            all.put(": ");
        }
        all.put(text);
    }
    if all.is_empty() { None } else { Some(all) }
}

/// Returns a text that is not empty, or a number as text.
fn word_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.as_str()),
        _ => None,
    }
}

/// Returns the word at a key.
fn word_at<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(word_of)
}

/// Returns the word at a key of the first of the `details` that has one.
fn detail_at<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    let details = object.list_at("details");
    details.iter().find_map(|detail| word_at(detail, key))
}

fn http_status(word: &str) -> Option<u16> {
    u16::try_from(text::parse_u64(word)?).ok().filter(|status| (400..600).contains(status))
}

/// Shortens a text, and marks the cut: what masks secrets afterwards also finds one of which only the beginning is left.
pub(super) fn first_characters(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => [text.get(..end).unwrap_or_default(), "…"].concat(),
        None => text.to_owned(),
    }
}
