//! Recognizes, from the text of an error, that the conversation does not fit into the model's context. This
//! is the last resort: if a provider gives a code or a type, that decides.

use crate::data::text::has_any;

/// Whether a text says so. Limits on the rate, the account, the key or the length of the answer do not
/// count, even if their texts share some words with it.
pub fn is_context_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let has = |phrases: &str| has_any(&text, phrases);
    if has(OTHER_LIMITS) {
        return false;
    }
    has(OVERFLOWS) || has(LIKELY) || (has(SUBJECTS) && has(LIMITS) && !has(OTHER_SUBJECTS))
}

/// Limits on the rate, the account, the key.
const OTHER_LIMITS: &str = "\
    rate limit|rate_limit|rate-limit|ratelimit|per min|per hour|per day|per second|daily|monthly|(tpm)|\
    (rpm)|quota|billing|credit balance|too many requests|throttl|please wait|try again later|try again in|\
    retry after|api key|api_key|api token|access token|auth token|bearer|jwt|unauthorized|authentication|\
    permission|expired";

/// Phrases that providers use for nothing else, in lower case.
pub(crate) const OVERFLOWS: &str = "\
    context_length_exceeded|context_window_exceeded|exceed_context_size|exceeds the context|\
    exceed the context|exceeds context|exceed context|exceeds the available context|exceeded max context|\
    maximum context length|maximum prompt length|maximum model length|greater than the context length|\
    context window exceeds|prompt is too long|prompt too long|input tokens exceed|model token limit|\
    reduce the length of the messages";

/// Phrases that providers also use for other things, which have been ruled out by then.
const LIKELY: &str = "\
    prompt_too_long|input is too long|input too long|messages is too long|too many tokens|too_many_tokens|\
    too_many_prompt_tokens|max tokens allowed|input token count|number of input tokens exceeds|\
    prompt token count|reduce the length of your|request_too_large|request too large";

/// Counts together with one of the [`LIMITS`], anywhere in the text.
const SUBJECTS: &str = "context|token";
const LIMITS: &str = "overflow|maximum|too long|limit";
/// Unless the text is about the length of the answer, or about something else with the same name.
const OTHER_SUBJECTS: &str =
    "output tokens|completion tokens|max_tokens|max_output_tokens|max_completion_tokens|tokenizer";

#[cfg(test)]
mod tests {
    use super::is_context_overflow;

    #[test]
    fn what_providers_write_about_the_context_is_recognised() {
        for text in [
            "prompt is too long: 3333404 tokens > 200000 maximum",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
            "The total length of all messages is too long.",
            "Input Tokens Exceeded: Number of input tokens exceeds maximum length...",
            "Input is too long for requested model",
            "too many tokens: size limit exceeded by 12 tokens",
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            "Prompt contains 9000 tokens and is too large for model with 8192 maximum context length",
            "tokens to keep from the initial prompt is greater than the context length",
            "prompt token count of 130000 exceeds the limit of 128000",
            "Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)",
            "context window exceeds limit",
            "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
            "Token limit reached",
            "'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192 tokens",
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 142900 tokens.",
        ] {
            assert!(is_context_overflow(text), "{text}");
        }
    }

    #[test]
    fn limits_of_the_rate_the_key_and_the_answer_are_not() {
        for text in [
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000",
            "Rate limit reached: 10 requests; token bucket limit",
            "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for this model",
            "Your token has expired; limit access",
            "Too many tokens, please wait before trying again.",
            "Daily token limit reached",
            "You exceeded your current quota of tokens; limit 5",
            "context deadline exceeded",
            "tokenizer failed: sequence too long",
            "",
        ] {
            assert!(!is_context_overflow(text), "{text}");
        }
    }
}
