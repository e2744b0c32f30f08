//! Estimates of tokens, for what no provider has told.

use crate::data::text::contains;
use crate::rules::stream::ToolSchema;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock};

/// The tokens that a message or a call costs besides what is in it.
const PER_PART: u64 = 4;

/// The tokens of an image or a file.
const PICTURE: u64 = 1_200;

/// In how many of the newest messages measured answers are looked for.
const NEWEST: usize = 64;

/// How many measured answers say how many tokens a text has.
const MEASURED: usize = 8;

/// What a model writes around an answer that nobody sees, in tokens: to end it, and for each call of a tool, which take more
/// room when there are several.
#[derive(Clone, Copy)]
struct Framing {
    end: u64,
    call: u64,
    calls: u64,
}

impl Framing {
    /// As the recordings of the families of models show it.
    fn of(model: &str) -> Self {
        let is = |family: &str| contains(model, family);
        match () {
            () if is("claude") => Framing { end: 3, call: 28, calls: 24 },
            () if is("gemini") => Framing { end: 0, call: 8, calls: 8 },
            () if is("gpt-5") => Framing { end: 8, call: 9, calls: 16 },
            () => Framing { end: 1, call: 9, calls: 16 },
        }
    }
}

/// Whether the server has refused a request before it read it, or never saw it: a transport says so with the phase `connect`.
pub(crate) fn was_refused(error: &ErrorInfo) -> bool {
    use ErrorKind as E;
    let is_unsent = error.code == E::Network && error.phase.as_deref() == Some("connect");
    let is_refusal =
        matches!(error.code, E::Auth | E::Throttled | E::InvalidRequest | E::ContextOverflow | E::Misuse);
    is_refusal || is_unsent
}

/// The tokens of a text. Vocabularies differ, but most of them have the words of English, three digits, and runs of
/// punctuation; other scripts need more for each letter.
pub(crate) fn tokens_of_text(text: &str) -> u64 {
    let (mut tokens, mut tenths) = (0, 0);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let run = Run::of(first);
        let length = run.length(rest);
        tokens += match run {
            Run::Word => length.div_ceil(LONGEST_WORD),
            Run::Digits => length.div_ceil(3),
            Run::Marks => length.div_ceil(3),
            Run::Lines => 1,
            Run::Blanks => 0,
            Run::Other => {
                // Letters of two bytes are in words, those of three are words; pictures have four.
                tenths += match length {
                    2 => 4,
                    3 => 7,
                    _ => 20,
                };
                0
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    long(tokens) + u64::div_ceil(tenths, 10)
}

/// How many letters a word of one token may have.
const LONGEST_WORD: usize = 7;

/// Letters that belong together.
#[derive(Clone, Copy, PartialEq)]
enum Run {
    Word,
    Digits,
    Marks,
    Lines,
    Blanks,
    /// A single letter of another script.
    Other,
}

impl Run {
    fn of(letter: char) -> Self {
        match letter {
            letter if !letter.is_ascii() => Run::Other,
            letter if letter.is_ascii_alphabetic() => Run::Word,
            letter if letter.is_ascii_digit() => Run::Digits,
            '\n' | '\t' | '\r' => Run::Lines,
            letter if letter.is_ascii_whitespace() => Run::Blanks,
            _ => Run::Marks,
        }
    }

    /// How many bytes of the text are of this run.
    fn length(self, text: &str) -> usize {
        if self == Run::Other {
            return text.chars().next().map_or(1, char::len_utf8);
        }
        let mut before = b' ';
        let end = text.bytes().position(|byte| {
            // A capital letter begins a word: `getWeather`.
            let begins = byte.is_ascii_uppercase() && before.is_ascii_lowercase();
            before = byte;
            let run = Run::of(char::from(byte));
            begins || (run != self && !(self == Run::Lines && run == Run::Blanks))
        });
        end.unwrap_or(text.len())
    }
}

/// The tokens of blocks, without what stands around calls.
fn tokens_in(content: &[ContentBlock]) -> u64 {
    content.iter().fold(0, |sum: u64, block| {
        sum.saturating_add(match block {
            ContentBlock::Text(block) => tokens_of_text(&block.text),
            ContentBlock::Thinking(block) => tokens_of_text(&block.thinking),
            ContentBlock::ToolCall(call) => {
                tokens_of_text(&call.tool_name).saturating_add(tokens_of_text(call.arguments.as_str()))
            }
            ContentBlock::Raw(block) => tokens_of_text(block.as_str()),
            ContentBlock::Image(_) | ContentBlock::File(_) => PICTURE,
        })
    })
}

/// The tokens of the blocks of a request.
fn tokens_of_blocks(content: &[ContentBlock]) -> u64 {
    let is_call = |block: &&ContentBlock| matches!(block, ContentBlock::ToolCall(_));
    tokens_in(content).saturating_add(long(content.iter().filter(is_call).count()) * PER_PART)
}

/// The tokens of the blocks of an answer, as a model of this family writes it.
fn tokens_written(content: &[ContentBlock], model: &str, is_whole: bool) -> u64 {
    let framing = Framing::of(model);
    let calls = long(content.iter().filter(|block| matches!(block, ContentBlock::ToolCall(_))).count());
    let around = calls * if calls > 1 { framing.calls } else { framing.call };
    tokens_in(content) + around + if is_whole { framing.end } else { 0 }
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

/// The tokens of an answer of a model, in the light of the answers before it.
pub(crate) fn tokens_of_answer(
    content: &[ContentBlock],
    messages: &[AgentMessage],
    model: &str,
    is_whole: bool,
) -> u64 {
    scaled(tokens_written(content, model, is_whole), messages)
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
    counts.then(|| (usage.output, tokens_written(&answer.content, &answer.model, true)))
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
        assert_eq!(tokens_of_text("a word is one, mostly"), 6);
        assert_eq!(tokens_of_text("{\"city\":\"Paris\",\"n\":12345}"), 10);
        assert_eq!(tokens_of_text("getWeather\n\n  2025"), 5);
        assert_eq!(tokens_of_text("日本語"), 3);
        assert_eq!(tokens_of_text("Здравствуйте 🌸"), 7);
    }

    #[test]
    fn measured_answers_correct_an_estimate() {
        let answer = |text: &str, output: u64| {
            let json = format!(
                r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}],"usage":{{"output":{output}}},"stopReason":"stop"}}"#
            );
            AgentMessage::from_json(&Value::parse(&json).unwrap()).unwrap()
        };
        let long = "words ".repeat(100);
        let of = |history: &[AgentMessage]| {
            tokens_of_answer(&[ContentBlock::text(long.as_str())], history, "m", true)
        };
        assert_eq!(of(&[]), 101);
        assert_eq!(of(&[answer(&long, 150)]), 150);
        assert_eq!(of(&[answer(&long, 10_000)]), 202, "at most twice");
    }
}
