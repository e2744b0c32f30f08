//! What a provider's error means: HTTP answers and errors inside a stream, of all wires, by one order of tests.
//!
//! The order matters, because providers use 400 and 429 for nearly everything: overflow, spent quota, content filter,
//! key, overload, throttling, and only then the bare status.

use crate::data::json::{ToJson, Value};
use crate::data::text::{self, Put, contains, has_any, split};
use crate::rules::overflow::OVERFLOWS;
use crate::rules::retry::{delay_from_headers, delay_from_rate_limits, delay_in_text};
use crate::words::error::{ErrorInfo, ErrorKind, ProviderError};

/// Characters of a message that are kept; some providers send the whole request back.
const MAX_MESSAGE: usize = 4_000;

/// An answer with a status other than 2xx.
pub struct Answer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Looks a header up by its name in lower case.
    pub header: &'a dyn Fn(&str) -> Option<String>,
    /// The body, whatever its content type says: servers send JSON as plain text.
    pub body: &'a [u8],
    /// Milliseconds since 1970, for dates in headers.
    pub now: u64,
}

impl Answer<'_> {
    /// What the answer means.
    pub fn error(&self) -> ErrorInfo {
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

/// What an error document inside a 200 answer means.
pub fn in_stream(document: &Value) -> ErrorInfo {
    ErrorDetails::of_document(document).in_stream()
}

/// What a document beside the events means; `None` where it is no error.
pub(super) fn error_in(text: &str) -> Option<ErrorInfo> {
    let document = Value::parse(text).ok()?;
    Some(ErrorDetails::of_value(&document)?.in_stream())
}

/// What an error text inside a 200 answer means.
pub fn in_stream_text(text: &str) -> ErrorInfo {
    match Value::parse(text) {
        Ok(document) => in_stream(&document),
        Err(_) => ErrorDetails::of_text(text).error(None),
    }
}

/// Whether a document is an error in one of the forms that providers use, and no sign of life.
pub fn is_error(document: &Value) -> bool {
    ErrorDetails::of_value(document).is_some()
}

/// The body ended before the provider said that the answer is whole. `rest` is what stood beside the events.
pub fn ended_early(rest: &str) -> ErrorInfo {
    let mut message =
        String::from("the stream ended early: the connection was cut before the answer was whole");
    if !rest.is_empty() {
        message.push_str("; beside the events stood: ");
        message.push_str(&ErrorDetails::of_text(&first_characters(rest, 300)).message);
    }
    ErrorInfo::new(ErrorKind::Network, message)
}

/// The body was no stream of events at all: a web page, plain words. Asking again would bring the same; but not so
/// where it was JSON that suffered on its way.
pub fn no_stream(body: &str) -> ErrorInfo {
    if text::find_any(body, "{[") == Some(0) && Value::parse(body).is_err() {
        return ended_early(body);
    }
    let text = ErrorDetails::of_text(&first_characters(body, 300)).message;
    let message = ["the answer is no stream of events but: ", &text, ADDRESS];
    ErrorInfo::new(ErrorKind::InvalidRequest, message.concat())
}

const ADDRESS: &str = "; is the address that of the API?";

/// The provider's words, whatever the form of the document they stood in.
#[derive(Default)]
struct ErrorDetails {
    message: String,
    kind: Option<String>,
    code: Option<String>,
    /// A status told inside the document.
    status: Option<u16>,
    /// Types, codes, reasons and status words in lower case.
    tags: Vec<String>,
    retry_delay: Option<String>,
}

impl ErrorDetails {
    fn of_body(body: &[u8], status: u16) -> ErrorDetails {
        let text = text::lossy(body);
        let text = text.trim();
        if text.is_empty() {
            let message = ["the provider answered ", &text::number(status), " without a body"].concat();
            // Cerebras says nothing else when the conversation does not fit.
            let tags = if status == 400 { vec!["request_too_large".to_owned()] } else { Vec::new() };
            return ErrorDetails { message, tags, ..ErrorDetails::default() };
        }
        let document = Value::parse(text);
        let is_text = document.is_err();
        let mut details =
            document.map_or_else(|_| ErrorDetails::of_text(text), |value| ErrorDetails::of_document(&value));
        // So says a server of an address that it does not know; of a model it says more.
        if status == 404 && (is_text || details.message.eq_ignore_ascii_case("not found")) {
            details.message.put(ADDRESS);
        }
        details
    }

    fn plain(message: String) -> ErrorDetails {
        ErrorDetails { message: first_characters(&message, MAX_MESSAGE), ..ErrorDetails::default() }
    }

    /// A page of HTML by its title, anything else by its beginning.
    fn of_text(text: &str) -> ErrorDetails {
        let title =
            text::split_once(text, "<title>").and_then(|(_, rest)| text::split_once(rest, "</title>"));
        let title = title.map_or("", |(title, _)| title.trim());
        ErrorDetails::plain(if title.is_empty() { text } else { title }.to_owned())
    }

    /// The words of a document that must be an error.
    fn of_document(value: &Value) -> ErrorDetails {
        ErrorDetails::of_value(value).unwrap_or_else(|| {
            let mut details = ErrorDetails::plain(value.to_json());
            details.read_fields(value);
            details
        })
    }

    /// The words of a document; `None` if it is no error.
    fn of_value(value: &Value) -> Option<ErrorDetails> {
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
        // An error object without a message is still an error: its own text is all there is to show.
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

    /// What they mean inside a 200 answer.
    fn in_stream(&self) -> ErrorInfo {
        let mut info = self.error(self.status);
        info.retry_after_ms = if info.retryable { self.delay() } else { None };
        info
    }

    fn bounded(mut self) -> ErrorDetails {
        self.message = first_characters(&self.message, MAX_MESSAGE);
        self
    }

    /// Type, code and status of the object that holds the message.
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

    /// Names that stand beside the error object instead of in it.
    fn read_outer_fields(&mut self, outer: &Value) {
        let word = |key: &str| word_at(outer, key);
        self.tag(word("error_code"));
        self.code = self.code.take().or_else(|| word("code").map(str::to_owned));
        self.status = self.status.or_else(|| http_status(word("code").or_else(|| word("status_code"))?));
    }

    fn error(&self, status: Option<u16>) -> ErrorInfo {
        let (kind, retryable) = self.classify(status);
        let mut info = ErrorInfo::new(kind, self.message.as_str());
        info.retryable = retryable;
        info.provider =
            Some(ProviderError { status: None, kind: self.kind.clone(), code: self.code.clone() });
        info
    }

    fn classify(&self, status: Option<u16>) -> (ErrorKind, bool) {
        let text = self.message.to_ascii_lowercase();
        let kind = if self.is_overflow(status, &text) {
            ErrorKind::ContextOverflow
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
        // A quota for tokens per minute, and not the model's window, is what did not fit.
        if contains(text, "tokens per min") || contains(text, "token per min") {
            return false;
        }
        let is_size = matches!(status, Some(400 | 413));
        self.has_tag(OVERFLOW_TAGS)
            // Ids may not be long either.
            || (self.has_tag("string_above_max_length") && number_after(text, "maximum length") > Some(999))
            || status == Some(413)
            || has_any(text, OVERFLOWS)
            || has_any(text, OVERFLOW_TEXTS)
            || (contains(text, "input token count") && contains(text, "exceeds the maximum number of tokens"))
            || (status != Some(429) && contains(text, "token limit reached"))
            // These words also stand in texts about rates.
            || (is_size && (contains(text, "too many tokens") || exceeds_a_number(text)))
    }

    fn is_spent(&self, status: Option<u16>, text: &str) -> bool {
        // Gemini says "quota" for what comes back within a minute, and then tells how long.
        let has_delay = self.delay().is_some();
        status == Some(402)
            || self.has_tag(SPENT_TAGS)
            || has_any(text, SPENT_TEXTS)
            || (!has_delay && contains(text, "exceeded your current quota"))
            // A model that those who do not pay may not ask.
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
            // A conflict passes: a lock that was not to be had in time.
            Some(409 | 500..) => ErrorKind::Server,
            Some(400..500) => ErrorKind::InvalidRequest,
            // Of OpenAI's codes a dozen say what is wrong with a picture.
            _ if self.has_tag(REQUEST_TAGS) || self.tags.iter().any(|tag| contains(tag, "image")) => {
                ErrorKind::InvalidRequest
            }
            _ if self.has_tag(NETWORK_TAGS) => ErrorKind::Network,
            // Inside a stream, where the request was good enough to be answered.
            None => ErrorKind::Server,
            Some(_) => ErrorKind::Unknown,
        }
    }

    /// Whether the words, and not the status, say that asking again is of no use.
    fn is_final(&self) -> bool {
        let (kind, retryable) = self.classify(None);
        !retryable && kind != ErrorKind::InvalidRequest
    }

    fn delay(&self) -> Option<u64> {
        self.retry_delay.as_deref().and_then(delay_in_text).or_else(|| delay_in_text(&self.message))
    }
}

const OVERFLOW_TAGS: &str = "\
    context_length_exceeded|context_window_exceeded|exceed_context_size_error|\
    model_context_window_exceeded|request_too_large|too_many_prompt_tokens|too_many_tokens";

const OVERFLOW_TEXTS: &str = "\
    total length of all messages is too long|input is too long for requested model|context length exceeded|\
    contextwindowexceeded|context size has been exceeded|context length of only|\
    than the model's context length|model context window limit|range of input length|\
    exceed max message tokens|`inputs` tokens + `max_new_tokens`|prompt token count of|prompt exceeds max|\
    tokens in request more than max|maximum allowed input length";

const SPENT_TAGS: &str = "\
    arrearage|exceeded_current_quota_error|insufficient_quota|billing_error|billing_not_active|\
    billing_hard_limit_reached|contract_spend_limit_reached|enforced_spend_limit_reached|\
    insufficient_credits|usage_limit_reached";

const SPENT_TEXTS: &str = "\
    daily free allocation|credits are depleted|have any credits|specified api usage limits|\
    extra usage is required|key limit exceeded|credit balance is too low|insufficient balance|\
    insufficient credit|insufficient_quota|insufficient quota|requires more credits|out of credits|\
    used all available credits|monthly spending limit|billing hard limit|payment required";

const FILTER_TAGS: &str = "\
    bio_policy|content_filter|content_policy_violation|data_inspection_failed|\
    image_content_policy_violation|invalid_prompt|moderation_blocked|responsibleaipolicyviolation";

const FILTER_TEXTS: &str = "\
    content management policy|content exists risk|content policy violation|was flagged|been flagged|\
    was blocked by our safety";

const AUTH_TAGS: &str = "\
    authentication_error|permission_error|invalid_api_key|api_key_invalid|service_disabled|\
    permission_denied|unauthenticated|401|403";

const AUTH_TEXTS: &str = "\
    incorrect api key|invalid api key|invalid api-key|invalid x-api-key|api key not valid|\
    api key not found|api key expired|missing authentication";

const OVERLOAD_TAGS: &str = "\
    capacity_exceeded|overloaded_error|overloaded|unavailable|compaction_unavailable|\
    engine_overloaded_error|insufficient_system_resource|service_unavailable|service_unavailable_error|\
    serviceunavailableexception|slow_down";

const OVERLOAD_TEXTS: &str = "\
    overloaded|server is busy|over capacity|capacity temporarily";

const THROTTLE_TAGS: &str = "\
    rate_limit_error|rate_limit_exceeded|rate_limited|ratelimitreached|resource_exhausted|\
    throttlingexception|too_many_requests|429";

const THROTTLE_TEXTS: &str = "\
    rate limit|rate-limit|ratelimit|too many requests";

const REQUEST_TAGS: &str = "\
    invalid_request_error|invalid_request|invalid_argument|failed_precondition|not_found|\
    not_found_error|model_not_found|out_of_range|tool_use_failed|unsupported_parameter";

const NETWORK_TAGS: &str = "\
    cancelled|request_timeout";

/// The message of an error object, or of a document that is one itself.
fn message_of(object: &Value) -> Option<String> {
    let text = |key: &str| match object.get(key)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        inner @ Value::Object(_) => message_of(inner),
        _ => None,
    };
    let message = ["message", "Message", "detail", "base_resp", "status_msg"].into_iter().find_map(text);
    message.or_else(|| joined_details(object))
}

/// `detail: [{loc, msg}]`, as FastAPI has it.
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

/// A text that is not empty, or a number as text.
fn word_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.as_str()),
        _ => None,
    }
}

/// The word at a key.
#[inline(never)]
fn word_at<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    object.get(key).and_then(word_of)
}

/// The word at a key of the first of the `details` that has one.
fn detail_at<'v>(object: &'v Value, key: &str) -> Option<&'v str> {
    let details = object.list_at("details");
    details.iter().find_map(|detail| word_at(detail, key))
}

fn http_status(word: &str) -> Option<u16> {
    u16::try_from(text::parse_u64(word)?).ok().filter(|status| (400..600).contains(status))
}

fn first_characters(text: &str, limit: usize) -> String {
    let end = text.char_indices().nth(limit).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default().to_owned()
}

/// `exceeds the limit of 123`
fn exceeds_a_number(text: &str) -> bool {
    number_after(text, "exceeds the limit of").is_some()
}

/// A request that is larger than all that a minute allows: waiting does not help.
fn exceeds_minute_limit(text: &str) -> bool {
    if !contains(text, "per min") {
        return false;
    }
    match (number_after(text, "limit"), number_after(text, "requested")) {
        (Some(limit), Some(requested)) => requested > limit,
        _ => false,
    }
}

/// The number that stands behind the first of these words that has one, such as 30000 in `Limit: 30,000`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use ErrorKind as K;

    fn answer(status: u16, body: &str) -> ErrorInfo {
        Answer { status, header: &|_| None, body: body.as_bytes(), now: 0 }.error()
    }

    fn with_headers(status: u16, body: &str, headers: &[(&str, &str)]) -> ErrorInfo {
        let header = |wanted: &str| {
            headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        };
        Answer { status, header: &header, body: body.as_bytes(), now: 0 }.error()
    }

    fn openai(message: &str) -> String {
        let mut body = String::from("{\"error\":{\"message\":");
        crate::data::json::write_str(message, &mut body);
        body + ",\"type\":\"invalid_request_error\",\"code\":null}}"
    }

    #[test]
    fn every_known_overflow_text_is_an_overflow() {
        let texts = [
            "prompt is too long: 3333404 tokens > 200000 maximum",
            "input length and max_tokens exceed context limit: 190000 + 20000 > 200000, decrease input length",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 150021",
            "The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).",
            "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021",
            "Token limit reached",
            "prompt too long; exceeded max context length by 12 tokens (ref: x)",
            "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
            "The total length of all messages is too long.",
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length",
            "Input is too long for requested model.",
            "too many tokens: size limit exceeded by 4 tokens",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Please reduce the length of the messages or completion",
            "Prompt contains 200000 tokens and is too large for model with 131072 maximum context length",
            "tokens to keep from the initial prompt is greater than the context length",
            "prompt token count of 150000 exceeds the limit of 128000",
            "exceeded model token limit: 131072 (requested: 140000)",
            "invalid params, context window exceeds limit",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
            "Context size has been exceeded.",
            "However, the model is loaded with context length of only 4096 tokens, which is not enough",
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
            "AiError: (8000) exceeded this model context window limit (7968).",
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
            "Total tokens of image and text exceed max message tokens.",
            "`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 10000 `inputs` tokens",
            "Prompt exceeds max length",
            "tokens in request more than max tokens allowed",
            "Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        ];
        for text in texts {
            assert_eq!(answer(400, &openai(text)).code, K::ContextOverflow, "{text}");
        }
        assert_eq!(answer(413, "<html><title>413 Request Entity Too Large</title>").code, K::ContextOverflow);
        assert_eq!(answer(400, "").code, K::ContextOverflow);
        assert_eq!(answer(413, "").code, K::ContextOverflow);
    }

    #[test]
    fn an_id_that_is_too_long_is_no_overflow() {
        let text = |limit: &str| {
            let message =
                ["string too long. Expected a string with maximum length ", limit, ", but got"].concat();
            openai(&message).replace("null", "\"string_above_max_length\"")
        };
        assert_eq!(answer(400, &text("40")).code, K::InvalidRequest);
        assert_eq!(answer(400, &text("1048576")).code, K::ContextOverflow);
    }

    #[test]
    fn a_sign_of_life_is_no_error() {
        let is = |text: &str| is_error(&Value::parse(text).unwrap());
        assert!(!is(r#"{"detail":[]}"#) && !is(r#"{"message":""}"#));
        assert!(!is(r#"{"type":"keepalive"}"#) && !is(r#"{"status":"processing","code":1}"#));
        assert!(is(r#"{"error":{"code":500}}"#) && is(r#"[{"error":{"status":"INTERNAL"}}]"#));
    }

    #[test]
    fn texts_about_rates_are_no_overflow() {
        for text in ["Too many tokens, please wait before trying again.", "rate exceeds the limit of 20"] {
            let info = answer(429, &openai(text));
            assert_eq!((info.code, info.retryable), (K::Throttled, true), "{text}");
        }
    }

    #[test]
    fn a_request_larger_than_the_quota_of_a_minute_is_not_retried() {
        let text = "Request too large for gpt-4o in organization x on tokens per min (TPM): Limit 30000, Requested 40000.";
        for status in [429, 413] {
            let info = answer(status, &openai(text));
            assert_eq!((info.code, info.retryable), (K::Throttled, false), "{status}");
        }
        let text = "Rate limit reached on tokens per min (TPM): Limit 30000, Used 27000, Requested 6000.";
        assert!(answer(429, &openai(text)).retryable);
    }

    #[test]
    fn spent_money_is_throttled_and_final() {
        let bodies = [
            (429, r#"{"error":{"message":"x","type":"insufficient_quota"}}"#),
            (402, r#"{"error":{"message":"Insufficient credits","code":402}}"#),
            (402, "{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":\"x\"}}"),
            (429, r#"{"error":{"message":"x","error_code":"enforced_spend_limit_reached"}}"#),
            (429, r#"{"error_code":"contract_spend_limit_reached","error":{"message":"x"}}"#),
            (400, r#"{"error":{"message":"Your credit balance is too low to access the API."}}"#),
            (400, r#"{"error":{"message":"You have reached your specified API usage limits."}}"#),
            (429, r#"{"error":{"message":"Extra usage is required for long context requests."}}"#),
            (429, r#"{"error":{"message":"Quota exceeded, limit: 0, model: x\nPlease retry in 26.6s."}}"#),
            (429, r#"{"error":{"message":"Your prepayment credits are depleted."}}"#),
            (
                429,
                r#"{"errors":[{"message":"you have used up your daily free allocation of 10,000 neurons"}]}"#,
            ),
            (429, r#"{"error":{"message":"x","type":"exceeded_current_quota_error"}}"#),
            (403, r#"{"code":"x","error":"Your newly created team doesn't have any credits yet."}"#),
            (403, r#"{"error":{"message":"Key limit exceeded (total limit).","code":403}}"#),
            (400, r#"{"error":{"message":"Access denied.","code":"Arrearage"}}"#),
        ];
        for (status, body) in bodies {
            let info = answer(status, body);
            assert_eq!((info.code, info.retryable), (K::Throttled, false), "{body}");
        }
    }

    #[test]
    fn every_form_of_body_gives_up_its_message() {
        let bodies = [
            (r#"{"error":{"message":"m","type":"t","code":"c"}}"#, Some("t"), Some("c")),
            (
                r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#,
                Some("INVALID_ARGUMENT"),
                Some("400"),
            ),
            (r#"{"error":"m"}"#, None, None),
            (r#"{"code":"c","error":"m"}"#, None, Some("c")),
            (r#"{"detail":"m"}"#, None, None),
            (r#"{"detail":[{"loc":[],"msg":"m","type":"missing"}]}"#, None, None),
            (r#"{"object":"error","message":"m","type":"t","code":"1500"}"#, Some("t"), Some("1500")),
            (
                r#"{"object":"error","message":{"detail":[{"msg":"m"}]},"type":"t","code":null}"#,
                Some("t"),
                None,
            ),
            (r#"{"code":400,"message":"m","type":"t"}"#, Some("t"), Some("400")),
            (r#"{"message":"m"}"#, None, None),
            (r#"{"success":false,"errors":[{"code":7003,"message":"m"}]}"#, None, Some("7003")),
            ("m", None, None),
            ("<html><head><title> m </title></head></html>", None, None),
        ];
        for (body, kind, code) in bodies {
            let info = answer(400, body);
            let provider = info.provider.unwrap();
            assert_eq!(info.message, "m", "{body}");
            assert_eq!((provider.kind.as_deref(), provider.code.as_deref()), (kind, code), "{body}");
            assert_eq!(provider.status, Some(400));
        }
        let fastapi = r#"{"detail":[{"loc":["body","n"],"msg":"too big"},{"msg":"b"}]}"#;
        assert_eq!(answer(422, fastapi).message, "body.n: too big; b");
    }

    #[test]
    fn an_address_that_nobody_knows_is_asked_about() {
        let hint = "; is the address that of the API?";
        for (body, expected) in
            [("404 page not found", "404 page not found"), (r#"{"detail":"Not Found"}"#, "Not Found")]
        {
            assert_eq!(answer(404, body).message, [expected, hint].concat());
            assert_eq!(answer(400, body).message, expected);
        }
        let model = r#"{"error":{"message":"model \"m\" not found"}}"#;
        assert_eq!(answer(404, model).message, "model \"m\" not found");
    }

    #[test]
    fn the_bare_status_decides_last() {
        let kinds = [
            (400, K::InvalidRequest),
            (401, K::Auth),
            (403, K::Auth),
            (404, K::InvalidRequest),
            (408, K::Network),
            (429, K::Throttled),
            (499, K::Network),
            (409, K::Server),
            (500, K::Server),
            (502, K::Server),
            (503, K::Overloaded),
            (504, K::Server),
            (520, K::Server),
            (529, K::Overloaded),
            (302, K::Unknown),
        ];
        for (status, kind) in kinds {
            let info = answer(status, "{}");
            assert_eq!((info.code, info.retryable), (kind, kind.is_transient()), "{status}");
        }
    }

    #[test]
    fn keys_and_filters_hide_behind_other_statuses() {
        let xai = r#"{"code":"invalid-argument","error":"Incorrect API key provided."}"#;
        assert_eq!(answer(400, xai).code, K::Auth);
        let gemini = r#"{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        assert_eq!(answer(400, gemini).code, K::Auth);
        let azure = r#"{"error":{"message":"x","code":"content_filter","innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#;
        assert_eq!(answer(400, azure).code, K::ContentFiltered);
        let openrouter = r#"{"error":{"code":403,"message":"x","metadata":{"flagged_input":"y"}}}"#;
        assert_eq!(answer(403, openrouter).code, K::ContentFiltered);
        let moonshot =
            r#"{"error":{"message":"The engine is currently overloaded","type":"engine_overloaded_error"}}"#;
        assert_eq!(answer(429, moonshot).code, K::Overloaded);
    }

    #[test]
    fn the_server_may_overrule_its_status_but_not_its_words() {
        let no = with_headers(500, "{}", &[("x-should-retry", "false"), ("retry-after", "3")]);
        assert_eq!((no.code, no.retryable, no.retry_after_ms), (K::Server, false, None));
        let yes = with_headers(400, "{}", &[("x-should-retry", "true"), ("retry-after", "3")]);
        assert_eq!((yes.code, yes.retryable, yes.retry_after_ms), (K::InvalidRequest, true, Some(3_000)));
        let spent = r#"{"error":{"message":"x","type":"insufficient_quota"}}"#;
        assert!(!with_headers(429, spent, &[("x-should-retry", "true")]).retryable);
    }

    #[test]
    fn the_nearest_hint_wins() {
        let body = r#"{"error":{"message":"Please try again in 5.82s","details":[{"retryDelay":"48s"}]}}"#;
        let hints = [
            ("retry-after-ms", "700"),
            ("retry-after", "2"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        let delay = |from: usize, body: &str| {
            with_headers(429, body, hints.get(from..).unwrap_or_default()).retry_after_ms
        };
        assert_eq!(delay(0, body), Some(700));
        assert_eq!(delay(1, body), Some(2_000));
        assert_eq!(delay(2, body), Some(48_000));
        assert_eq!(delay(2, &openai("Please try again in 5.82s")), Some(5_820));
        assert_eq!(delay(2, "{}"), Some(360_000));
        assert_eq!(delay(4, "{}"), None);
    }

    /// Status 0: inside a stream.
    #[test]
    fn words_are_judged_with_the_status_that_they_came_with() {
        let cases = [
            (400, "filtered by the content management policy", K::ContentFiltered),
            (400, "Rate limit exceeded", K::Throttled),
            (500, "Rate limit exceeded", K::Server),
            (0, "Rate limit exceeded", K::Throttled),
            (413, "Request too large on token per min: Limit: 30,000, Requested 4,500,000", K::Throttled),
            (0, "Requests per min: Limit 3, Requested 3.", K::Server),
            (429, "Token limit reached", K::Throttled),
            (400, "The input token count is negative", K::InvalidRequest),
            (400, "max_tokens exceeds the maximum number of tokens", K::InvalidRequest),
            (400, "the input exceeds the limit of 4096", K::ContextOverflow),
            (400, "names have a maximum length 2000", K::InvalidRequest),
            (400, "limit: 3, requested: 5", K::InvalidRequest),
            (402, "x", K::Throttled),
            (400, "limit: 0, got 1", K::InvalidRequest),
            (0, "You exceeded your current quota", K::Throttled),
            (429, "invalid api key", K::Throttled),
            (500, "invalid api key", K::Server),
            (404, "invalid api key", K::Auth),
            (400, "the station is overloaded", K::InvalidRequest),
            (429, "The server is busy", K::Overloaded),
            (500, "The server is busy", K::Overloaded),
            (0, "The server is busy", K::Overloaded),
        ];
        for (status, message, kind) in cases {
            let body = ["{\"error\":{\"message\":\"", message, "\"}}"].concat();
            let info = if status == 0 { in_stream_text(&body) } else { answer(status, &body) };
            assert_eq!((info.code, info.message.as_str()), (kind, message), "{status}");
        }
        assert_eq!(answer(500, "").code, K::Server);
        assert_eq!(answer(418, "").message, "the provider answered 418 without a body");
        let plain = openai("x");
        assert!(with_headers(400, &plain, &[("x-should-retry", "true")]).retryable);
    }

    #[test]
    fn names_and_statuses_stand_in_many_places() {
        let cases = [
            (r#"{"error":{"message":"m","status_code":429}}"#, K::Throttled, None),
            (r#"{"error":{"message":"m","raw_status_code":503}}"#, K::Overloaded, None),
            (r#"{"error":{"message":"m","status":401}}"#, K::Auth, None),
            (r#"{"error":{"message":"m"},"status_code":429}"#, K::Throttled, None),
            (r#"{"code":503,"error":{"message":"m"}}"#, K::Overloaded, Some("503")),
            (r#"{"error":{"message":"m","type":"t","status":"UNAVAILABLE"}}"#, K::Overloaded, None),
            (r#"{"error":{"message":"m","error_code":"e"}}"#, K::Server, Some("e")),
            (r#"{"error":{"message":"m","code":20}}"#, K::Server, Some("20")),
            (
                r#"{"error":{"message":"m","code":400,"details":[{"reason":"r"}]}}"#,
                K::InvalidRequest,
                Some("r"),
            ),
            (r#"{"error":{"message":"m","innererror":{"code":"i"}}}"#, K::Server, Some("i")),
            (r#"{"error":{"message":"m","type":"request_timeout"}}"#, K::Network, None),
            (r#"{"error":"","message":"m"}"#, K::Server, None),
            (r#"{"Message":"m"}"#, K::Server, None),
            (r#"{"detail":["m"]}"#, K::Server, None),
        ];
        for (document, kind, code) in cases {
            let info = in_stream_text(document);
            assert_eq!((info.code, info.message.as_str()), (kind, "m"), "{document}");
            assert_eq!(info.provider.unwrap().code.as_deref(), code, "{document}");
        }
        let long = in_stream_text(&openai(&"x".repeat(5_000)));
        assert_eq!(long.message.len(), MAX_MESSAGE);
    }

    #[test]
    fn a_hint_inside_a_stream_counts_where_asking_again_is_of_use() {
        let delay_of = |kind: &str| {
            let message = r#"{"error":{"message":"Please try again in 2s","type":"KIND"}}"#;
            in_stream_text(&message.replace("KIND", kind)).retry_after_ms
        };
        assert_eq!(delay_of("rate_limit_error"), Some(2_000));
        assert_eq!(delay_of("insufficient_quota"), None);
    }

    #[test]
    fn what_stands_in_the_place_of_events_is_told() {
        let early = ended_early("<title>Bad gateway</title>");
        assert!(early.message.ends_with("whole; beside the events stood: Bad gateway"), "{}", early.message);
        assert!(ended_early("").message.ends_with("whole"));
        assert_eq!(no_stream("{\"a\":").code, K::Network);
        for body in ["{}", "Welcome {", "Welcome"] {
            let info = no_stream(body);
            assert_eq!((info.code, info.message.contains(body)), (K::InvalidRequest, true), "{body}");
        }
    }

    #[test]
    fn errors_inside_a_stream_are_told_by_their_words() {
        let cases = [
            (r#"{"error":{"message":"x","type":"server_error"}}"#, K::Server),
            (r#"{"error":{"message":"x","type":"invalid_request_error"}}"#, K::InvalidRequest),
            (r#"{"error":{"message":"x","code":429}}"#, K::Throttled),
            (r#"{"error":{"message":"x","code":502}}"#, K::Server),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#, K::Overloaded),
            (r#"{"error":{"code":503,"message":"x","status":"UNAVAILABLE"}}"#, K::Overloaded),
            (r#"{"error":{"code":499,"message":"x","status":"CANCELLED"}}"#, K::Network),
            (r#"{"error":{"message":"x","code":"insufficient_quota"}}"#, K::Throttled),
            (r#"{"error":"something broke"}"#, K::Server),
            (r#"{"code":"rate_limit_exceeded"}"#, K::Throttled),
            (r#"{"error":{"message":"x","code":"invalid_base64_image"}}"#, K::InvalidRequest),
            (r#"{"error":{"message":"x","code":"image_too_large"}}"#, K::InvalidRequest),
            (r#"{"error":{"message":"x","code":"image_content_policy_violation"}}"#, K::ContentFiltered),
            (r#"{"error":{"message":"x","code":"bio_policy"}}"#, K::ContentFiltered),
            (r#"{"error":{"message":"x","code":"vector_store_timeout"}}"#, K::Server),
        ];
        for (document, kind) in cases {
            assert_eq!(in_stream_text(document).code, kind, "{document}");
        }
        assert_eq!(in_stream_text("Internal Server Error").code, K::Server);
    }
}
