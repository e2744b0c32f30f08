//! What kind of error the words mean, by one order of tests.
//!
//! The order matters, because providers use 400 and 429 for nearly everything: overflow, spent quota, content
//! filter, key, overload, throttling, and only then the bare status.

use crate::data::text::{self, contains, has_any, split};
use crate::rules::overflow::OVERFLOWS;
use crate::words::error::ErrorKind;

use super::details::ErrorDetails;
use super::signs::*;

impl ErrorDetails {
    pub(super) fn classify(&self, status: Option<u16>) -> (ErrorKind, bool) {
        let text = self.message.to_ascii_lowercase();
        let kind = if self.is_overflow(status, &text) && !self.is_about_another_part(&text) {
            ErrorKind::ContextOverflow
        // A key that is wrong has no quota, whatever else the text speaks of.
        } else if self.has_tag(KEY_TAGS) || (matches!(status, Some(401)) && !self.has_tag(SPENT_TAGS)) {
            ErrorKind::Auth
        } else if self.is_spent(status, &text) || exceeds_minute_limit(&text) {
            return (ErrorKind::Throttled, false);
        } else if self.has_tag(FILTER_TAGS) || has_any(&text, FILTER_TEXTS) {
            ErrorKind::ContentFiltered
        } else if matches!(status, Some(401 | 403)) || self.is_auth(status, &text) {
            ErrorKind::Auth
        } else if matches!(status, Some(503 | 529)) || self.is_overloaded(status, &text) {
            ErrorKind::Overloaded
        } else if status == Some(429) || self.has_tag(THROTTLE_TAGS) || self.is_throttled(status, &text) {
            ErrorKind::Throttled
        } else {
            self.kind_of_status(status)
        };
        (kind, kind.is_transient())
    }

    fn has_tag(&self, known: &str) -> bool {
        split(known, "|").any(|known| self.tags.iter().any(|tag| tag == known))
    }

    fn is_overflow(&self, status: Option<u16>, text: &str) -> bool {
        // What did not fit is a quota of tokens per minute, not the model's window.
        if contains(text, "tokens per min") || contains(text, "token per min") {
            return false;
        }
        let is_size = matches!(status, Some(400 | 413));
        self.has_tag(OVERFLOW_TAGS)
            // The same tag is used for ids that are too long.
            || (self.has_tag("string_above_max_length") && number_after(text, "maximum length") > Some(999))
            || status == Some(413)
            || has_any(text, OVERFLOWS)
            || has_any(text, OVERFLOW_TEXTS)
            || (contains(text, "input token count") && contains(text, "exceeds the maximum number of tokens"))
            || (status != Some(429) && contains(text, "token limit reached"))
            // These words also stand in texts about rates.
            || (is_size && (contains(text, "too many tokens") || exceeds_a_number(text)))
    }

    /// Whether what is too long is not the conversation: the description of a tool, a name, metadata. No room in the history
    /// would help.
    fn is_about_another_part(&self, text: &str) -> bool {
        let parts = "messages|message|input|prompt|contents|content|instructions|system|conversation";
        let is_conversation = |param: &str| split(parts, "|").any(|part| param.starts_with(part));
        let param = self.param.as_deref().unwrap_or_default();
        // Where no field names the part, OpenAI's text does: `Invalid 'tools[0].function.description'`.
        let named = text::split_once(text, "invalid '").map_or("", |(_, rest)| rest);
        let is_other = !param.is_empty() && !is_conversation(param);
        let limits = ["max_tokens", "max_completion_tokens", "max_output_tokens", "model"];
        (is_other && !limits.contains(&param))
            || (param.is_empty()
                && !named.is_empty()
                && !is_conversation(named)
                && contains(text, "string too long"))
    }

    fn is_spent(&self, status: Option<u16>, text: &str) -> bool {
        // Gemini also says "quota" of a limit that is lifted within a minute, but then it says how long that
        // takes.
        let has_delay = self.delay().is_some();
        status == Some(402)
            || self.has_tag(SPENT_TAGS)
            || has_any(text, SPENT_TEXTS)
            || (!has_delay && contains(text, "exceeded your current quota"))
            // The model is not available to those who do not pay.
            || (status == Some(429) && contains(text, "limit: 0,"))
    }

    fn is_auth(&self, status: Option<u16>, text: &str) -> bool {
        let is_possible = status.is_none_or(|status| (400..500).contains(&status) && status != 429);
        self.has_tag(AUTH_TAGS) || (is_possible && has_any(text, AUTH_TEXTS))
    }

    fn is_overloaded(&self, status: Option<u16>, text: &str) -> bool {
        let is_possible = status.is_none_or(|status| status == 429 || status >= 500);
        self.has_tag(OVERLOAD_TAGS) || (is_possible && has_any(text, OVERLOAD_TEXTS))
    }

    fn is_throttled(&self, status: Option<u16>, text: &str) -> bool {
        status.is_none_or(|status| (400..500).contains(&status)) && has_any(text, THROTTLE_TEXTS)
    }

    fn kind_of_status(&self, status: Option<u16>) -> ErrorKind {
        match status {
            Some(408 | 499) => ErrorKind::Network,
            // A conflict is temporary: a lock was not available in time.
            Some(409 | 500..) => ErrorKind::Server,
            Some(400..500) => ErrorKind::InvalidRequest,
            // About a dozen codes of OpenAI say what is wrong with an image.
            _ if self.has_tag(REQUEST_TAGS) || self.tags.iter().any(|tag| contains(tag, "image")) => {
                ErrorKind::InvalidRequest
            }
            _ if self.has_tag(NETWORK_TAGS) => ErrorKind::Network,
            // The error is inside a stream, so the request was good enough to be answered.
            None => ErrorKind::Server,
            Some(_) => ErrorKind::Unknown,
        }
    }

    /// Whether the words, and not the status, say that a retry is of no use.
    pub(super) fn is_final(&self) -> bool {
        let (kind, retryable) = self.classify(None);
        !retryable && kind != ErrorKind::InvalidRequest
    }
}

/// Whether a text says `exceeds the limit of 123`, with any number.
fn exceeds_a_number(text: &str) -> bool {
    number_after(text, "exceeds the limit of").is_some()
}

/// Whether a request needs more than the quota of a whole minute, so that waiting does not help.
fn exceeds_minute_limit(text: &str) -> bool {
    if !contains(text, "per min") {
        return false;
    }
    match (number_after(text, "limit"), number_after(text, "requested")) {
        (Some(limit), Some(requested)) => requested > limit,
        _ => false,
    }
}

/// Returns the number after the first occurrence of a word that is followed by one, such as 30000 in `Limit:
/// 30,000`.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let mut rest = text;
    while let Some((_, after)) = text::split_once(rest, word) {
        rest = after;
        let number = rest.trim_ascii_start();
        let number = number.strip_prefix(":").unwrap_or(number).trim_ascii_start();
        let (digits, _) = text::split_while(number, |byte| byte.is_ascii_digit() || byte == b',');
        if let Some(number) = text::parse_u64(&text::replace(digits, ",", "")) {
            return Some(number);
        }
    }
    None
}
