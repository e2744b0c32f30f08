//! The input of a summary: which messages stay, and the others as texts of limited length.

use super::estimate_tokens;
use super::window::tail_start;
use crate::words::message::{AgentMessage, ContentBlock, ToolResultMessage, text_of};

/// How a history is split for a summary. By default some 10,000 tokens stay, or a quarter if that is less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryRules {
    /// The tokens of the newest messages, which stay unchanged.
    pub keep_tokens: u64,
    /// The bytes of the conversation given to one call. Halved if the model says that they are too many.
    pub part_bytes: usize,
    /// The length in bytes to which a tool result is cut in the text to summarize.
    pub result_bytes: usize,
    /// The maximum number of calls for one summary. What does not fit into them is cut.
    pub max_calls: u32,
}

impl Default for SummaryRules {
    fn default() -> Self {
        SummaryRules { keep_tokens: 10_000, part_bytes: 120_000, result_bytes: 4_000, max_calls: 8 }
    }
}

/// A split history.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// What to summarize: one entry for each message, of limited length.
    pub entries: Vec<String>,
    /// The user's last request, if it is older than the messages that stay.
    pub request: Option<AgentMessage>,
    /// The newest messages. Results have their calls, and no message is longer than everything that may
    /// stay.
    pub kept: Vec<AgentMessage>,
    /// The estimated tokens of the history.
    pub tokens: u64,
}

impl SummaryRules {
    /// Splits a history. Returns `None` if there is nothing but the newest exchange.
    pub fn split(&self, messages: &[AgentMessage]) -> Option<Split> {
        let weights: Vec<u64> = messages.iter().map(estimate_tokens).collect();
        let sum = weights.iter().copied().fold(0, u64::saturating_add);
        let budget = self.keep_tokens.min(sum / 4);
        let from = tail_start(messages, &weights, budget);
        let (old, kept) = messages.split_at_checked(from)?;
        let limit = usize::try_from(budget.saturating_mul(4)).unwrap_or(usize::MAX).max(self.result_bytes);
        let is_user = |message: &&AgentMessage| matches!(message, AgentMessage::User(_));
        let request = old.iter().rev().find(is_user).filter(|_| !kept.iter().any(|m| is_user(&m)));
        let mut entries = Vec::with_capacity(old.len());
        old.iter().for_each(|message| entries.extend(self.entry(message)));
        if entries.is_empty() {
            return None;
        }
        let total_bytes =
            self.part_bytes.saturating_mul(usize::try_from(self.max_calls).unwrap_or(usize::MAX));
        let entry_bytes = (total_bytes / entries.len()).max(200).min(self.part_bytes);
        entries
            .iter_mut()
            .for_each(|entry| cut(entry, entry_bytes.max(self.result_bytes).min(self.part_bytes)));
        if entries.iter().map(String::len).fold(0, usize::saturating_add) > total_bytes {
            entries.iter_mut().for_each(|entry| cut(entry, entry_bytes));
        }
        Some(Split {
            entries,
            request: request.cloned(),
            kept: kept.iter().map(|message| bounded(message, limit)).collect(),
            tokens: sum,
        })
    }

    fn entry(&self, message: &AgentMessage) -> Option<String> {
        let (speaker, content) = match message {
            AgentMessage::User(message) => ("User: ", &message.content),
            AgentMessage::Assistant(message) => ("Assistant: ", &message.content),
            AgentMessage::ToolResult(result) => {
                let mut entry = ["Result of ", &result.tool_name, ": ", &result.text()].concat();
                cut(&mut entry, self.result_bytes);
                return Some(entry);
            }
            AgentMessage::Custom(_) => return None,
        };
        let mut text = String::new();
        for block in content {
            match block {
                ContentBlock::Text(block) => text.push_str(&block.text),
                ContentBlock::ToolCall(call) => {
                    let mut arguments = call.arguments.as_str().to_owned();
                    cut(&mut arguments, self.result_bytes);
                    text.push_str(&["\n[calls ", &call.tool_name, " ", &arguments, "]"].concat());
                }
                ContentBlock::Image(_) => text.push_str("[a picture]"),
                ContentBlock::File(_) => text.push_str("[a file]"),
                ContentBlock::Thinking(_) | ContentBlock::Raw(_) => {}
            }
        }
        (!text.trim().is_empty()).then(|| [speaker, text.trim()].concat())
    }
}

/// Cuts a text at a character boundary, and adds a note.
fn cut(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(" […]");
}

/// Cuts a result that alone would fill what may stay: the model can ask for it again.
fn bounded(message: &AgentMessage, limit: usize) -> AgentMessage {
    let AgentMessage::ToolResult(result) = message else { return message.clone() };
    if text_of(&result.content).len() <= limit {
        return message.clone();
    }
    let mut result: ToolResultMessage = result.as_ref().clone();
    let mut left = limit;
    for block in &mut result.content {
        if let ContentBlock::Text(block) = block {
            cut(&mut block.text, left);
            left = left.saturating_sub(block.text.len());
        }
    }
    result.into()
}

#[cfg(test)]
mod tests {
    use super::super::window::is_result;
    use super::*;
    use crate::data::json::RawJson;
    use crate::words::message::{AssistantMessage, MessageStopReason, ToolCallBlock, Usage};

    fn exchange(id: &str, result: &str) -> [AgentMessage; 2] {
        let call = ToolCallBlock {
            call_id: id.to_owned(),
            tool_name: "view".to_owned(),
            arguments: RawJson::empty_object(),
            metadata: None,
        };
        let asked = AssistantMessage {
            content: vec![ContentBlock::ToolCall(call)],
            provider: String::new(),
            model: String::new(),
            usage: Usage::default(),
            stop_reason: MessageStopReason::ToolUse,
            error: None,
            timestamp: 0,
            id: None,
            foreign: None,
        };
        let answered = ToolResultMessage {
            call_id: id.to_owned(),
            tool_name: "view".to_owned(),
            content: vec![ContentBlock::text(result)],
            details: None,
            is_error: false,
            cause: None,
            timestamp: 0,
            foreign: None,
        };
        [asked.into(), answered.into()]
    }

    #[test]
    fn the_newest_exchange_stays_and_the_request_before_it_too() {
        let long = "x".repeat(4_000);
        let mut history = vec![AgentMessage::user("please")];
        for id in ["a", "b", "c"] {
            history.extend(exchange(id, &long));
        }
        let split = SummaryRules::default().split(&history).unwrap();
        assert_eq!(split.request, Some(AgentMessage::user("please")));
        assert_eq!(split.kept.len(), 2);
        assert!(split.kept.first() == history.get(5));
        assert_eq!(split.entries.len(), 5);
        assert!(split.entries.iter().any(|entry| entry.starts_with("Assistant: [calls view {}]")));
    }

    #[test]
    fn nothing_is_left_to_summarise_where_the_newest_exchange_is_all() {
        let rules = SummaryRules::default();
        assert_eq!(rules.split(&[]), None);
        assert_eq!(rules.split(&[AgentMessage::user("x".repeat(1_000_000))]), None);
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_character() {
        let rules = SummaryRules { keep_tokens: 100, part_bytes: 2_000, result_bytes: 501, max_calls: 2 };
        let mut history: Vec<AgentMessage> = (0..30).map(|_| AgentMessage::user("ä".repeat(900))).collect();
        history.extend(exchange("a", &"ü".repeat(100_000)));
        let split = rules.split(&history).unwrap();
        let bytes: usize = split.entries.iter().map(String::len).sum();
        assert!(bytes <= 30 * 206, "{bytes}");
        let AgentMessage::ToolResult(result) = split.kept.last().unwrap() else { panic!("no result") };
        assert!(result.text().len() < 510 && result.text().ends_with("ü […]"));
    }

    #[test]
    fn results_never_lose_their_calls() {
        for keep_tokens in [0, 10, 1_000, 100_000] {
            let rules = SummaryRules { keep_tokens, ..SummaryRules::default() };
            for n in 1..8 {
                let mut history = vec![AgentMessage::user("q".repeat(4_000))];
                for id in 0..n {
                    history.extend(exchange(&id.to_string(), &"y".repeat(400 + id * 300)));
                }
                let split = rules.split(&history).unwrap();
                assert!(!is_result(split.kept.first().unwrap()));
            }
        }
    }
}
