//! Estimates of tokens, for what no provider has told.

use crate::rules::stream::ToolSchema;
use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock};

/// The tokens that a message or a call costs besides what is in it.
const PER_PART: u64 = 4;

/// The tokens of an image or a file.
const PICTURE: u64 = 1_200;

/// In how many of the newest messages measured answers are looked for.
const NEWEST: usize = 64;

/// How many measured answers say how many tokens a text has.
const MEASURED: usize = 8;

/// The tokens of a text: four bytes of ASCII are one, two of any other script.
pub(crate) fn tokens_of_text(text: &str) -> u64 {
    let others = text.bytes().filter(|byte| !byte.is_ascii()).count();
    long((text.len() - others).div_ceil(4) + others.div_ceil(2))
}

/// The tokens of blocks.
pub(crate) fn tokens_of_blocks(content: &[ContentBlock]) -> u64 {
    content.iter().fold(0, |sum: u64, block| {
        sum.saturating_add(match block {
            ContentBlock::Text(block) => tokens_of_text(&block.text),
            ContentBlock::Thinking(block) => tokens_of_text(&block.thinking),
            ContentBlock::ToolCall(call) => {
                PER_PART + tokens_of_text(&call.tool_name) + tokens_of_text(call.arguments.as_str())
            }
            ContentBlock::Raw(block) => tokens_of_text(block.as_str()),
            ContentBlock::Image(_) | ContentBlock::File(_) => PICTURE,
        })
    })
}

fn tokens_of_message(message: &AgentMessage) -> u64 {
    let content = match message {
        AgentMessage::User(message) => &message.content,
        AgentMessage::Assistant(message) => &message.content,
        AgentMessage::ToolResult(message) => &message.content,
        AgentMessage::Custom(_) => return PER_PART,
    };
    tokens_of_blocks(content).saturating_add(PER_PART)
}

/// The tokens of a request that holds these messages. What the provider has measured of them counts as measured; what was
/// estimated of them before is not looked at again.
pub(crate) fn tokens_of_request(messages: &[AgentMessage], system_prompt: &str, tools: &[ToolSchema]) -> u64 {
    let reported = messages.iter().enumerate().rev().find_map(|(at, message)| match message {
        AgentMessage::Assistant(answer) => Some((at + 1, known_tokens(answer)?)),
        _ => None,
    });
    let (from, measured) = reported.unwrap_or_else(|| {
        let tools = tools.iter().map(|tool| {
            let schema = tokens_of_text(tool.parameters.as_str());
            PER_PART + tokens_of_text(&tool.name) + tokens_of_text(&tool.description) + schema
        });
        (0, tokens_of_text(system_prompt) + tools.sum::<u64>())
    });
    let rest = messages.iter().skip(from).map(tokens_of_message).fold(0, u64::saturating_add);
    measured.saturating_add(scaled(rest, messages))
}

/// The tokens of an answer and of the request before it, if they are known.
fn known_tokens(answer: &AssistantMessage) -> Option<u64> {
    let told = super::context::reported_tokens(answer);
    told.or_else(|| answer.usage.estimated.then_some(answer.usage.total)).filter(|tokens| *tokens > 0)
}

/// The tokens of an answer, in the light of the answers before it.
pub(crate) fn tokens_of_answer(content: &[ContentBlock], messages: &[AgentMessage]) -> u64 {
    scaled(tokens_of_blocks(content), messages)
}

/// An estimate, corrected by what the provider has measured of the newest answers.
fn scaled(tokens: u64, messages: &[AgentMessage]) -> u64 {
    let measured = messages.iter().rev().take(NEWEST).filter_map(|message| match message {
        AgentMessage::Assistant(answer) => measured_text(answer),
        _ => None,
    });
    let sum = |(told, estimated): (u64, u64), (a, b): (u64, u64)| {
        (told.saturating_add(a), estimated.saturating_add(b))
    };
    let (told, estimated) = measured.take(MEASURED).fold((0, 0), sum);
    // From so little nothing follows.
    if estimated < 20 {
        return tokens;
    }
    let scaled = tokens.saturating_mul(told) / estimated;
    scaled.clamp(tokens / 2, tokens.saturating_mul(2))
}

/// What the provider has told of an answer that is all to be seen, and what it would be estimated at.
fn measured_text(answer: &AssistantMessage) -> Option<(u64, u64)> {
    let is_hidden = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(_) | ContentBlock::Raw(_));
    let usage = &answer.usage;
    let is_whole = usage.reasoning.is_none_or(|tokens| tokens == 0) && !answer.content.iter().any(is_hidden);
    let counts = !answer.is_cut() && !usage.estimated && usage.output > 0 && is_whole;
    counts.then(|| (usage.output, tokens_of_blocks(&answer.content)))
}

fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::{FromJson, Value};

    #[test]
    fn scripts_differ() {
        assert_eq!(tokens_of_text(""), 0);
        assert_eq!(tokens_of_text("four bytes are one"), 5);
        assert_eq!(tokens_of_text("日本語"), 5);
    }

    #[test]
    fn measured_answers_correct_an_estimate() {
        let answer = |text: &str, output: u64| {
            let json = format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"output":{output}}},"stopReason":"stop"}}"#
            );
            AgentMessage::from_json(&Value::parse(&json).unwrap()).unwrap()
        };
        let long = "a".repeat(400);
        let history = [answer(&long, 150)];
        assert_eq!(tokens_of_answer(&[ContentBlock::text(long.as_str())], &history), 150);
        assert_eq!(
            tokens_of_answer(&[ContentBlock::text(long.as_str())], &[answer(&long, 10_000)]),
            200,
            "at most twice"
        );
        assert_eq!(tokens_of_answer(&[ContentBlock::text(long.as_str())], &[]), 100);
    }
}
