//! The providers' words for an answer that was filtered or refused.

use crate::data::text::{contains, has_any};
use crate::words::message::MessageStopReason;

/// What the words have in common. Gateways pass the word of one provider on to the wire of another, so all wires know
/// all of them; and a word that is new is probably made of these.
const FILTERED: &str = "\
    filter|safety|recitation|blocklist|prohibited|spii|sensitive|guardrail|model_armor|toxic|content_policy";

/// Returns what a word for the end of an answer forbids, if it is one for a filter or a refusal.
pub(crate) fn filter_of(word: &str) -> Option<MessageStopReason> {
    let word = word.to_ascii_lowercase();
    if contains(&word, "refus") {
        return Some(MessageStopReason::Refusal);
    }
    let is_filter = word == "language" || has_any(&word, FILTERED);
    is_filter.then_some(MessageStopReason::ContentFilter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_all_providers_are_known() {
        let filtered = "content_filter content_filtered sensitive SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT \
                        SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION MODEL_ARMOR guardrail_intervened \
                        ERROR_TOXIC incomplete:content_filter content_policy_violation";
        for word in filtered.split_whitespace() {
            assert_eq!(filter_of(word), Some(MessageStopReason::ContentFilter), "{word}");
        }
        for word in ["refusal", "refused", "REFUSAL"] {
            assert_eq!(filter_of(word), Some(MessageStopReason::Refusal), "{word}");
        }
        for word in
            ["stop", "tool_calls", "end_turn", "length", "max_tokens", "STOP", "completed", "pause_turn", ""]
        {
            assert_eq!(filter_of(word), None, "{word}");
        }
    }
}
