//! Builds a message from the events of one model call.

use std::rc::Rc;

use crate::data::json::{JsonError, RawJson, mended_object};
use crate::data::text;
use crate::rules::call_ids::keep_original;
use crate::words::event::{Delta, DeltaKind};
use crate::words::message::{
    ContentBlock, MessageStopReason, TextBlock, ThinkingBlock, ToolCallBlock, Usage,
};

use super::event::AssistantMessageEvent;

#[cfg(feature = "durable")]
mod again;
mod limit;

pub use limit::{Excess, MAX_ANSWER};

/// Why a call in a finished message cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFault {
    /// The token limit cut the call off.
    Cut,
    /// The arguments are not valid JSON, or have a number that is not finite, which one would be shown and another
    /// would run. The text says what is wrong, so that the model can correct the call.
    Malformed(String),
    /// The arguments are JSON, but not an object.
    NotAnObject,
}

/// Assembles a message from the events of one model call.
#[derive(Clone, Debug)]
pub struct Assembler {
    blocks: Vec<Partial>,
    /// The bytes so far, and how many there may be; see `limit.rs`.
    bytes: usize,
    limit: usize,
    /// The usage reported last.
    pub usage: Usage,
}

#[derive(Clone, Debug)]
enum Partial {
    Text(TextBlock),
    Thinking(ThinkingBlock),
    Call(PartialCall),
    Raw(RawJson),
}

#[derive(Clone, Debug)]
struct PartialCall {
    call_id: Rc<str>,
    tool_name: Rc<str>,
    text: String,
    metadata: Option<RawJson>,
    /// The model's own id, if the call was given another one because it is not unique.
    original: Option<String>,
    open: bool,
}

/// The blocks of a finished message, and what is wrong with its calls.
#[derive(Clone, Debug, Default)]
pub struct Assembled {
    /// The blocks in order. The arguments of a call are the model's own value, or `{}` if the call was cut
    /// off.
    pub content: Vec<ContentBlock>,
    /// The id and the fault of each faulty call, in the order of the calls.
    pub faults: Vec<(String, CallFault)>,
}

impl Default for Assembler {
    fn default() -> Self {
        Assembler { blocks: Vec::new(), bytes: 0, limit: MAX_ANSWER, usage: Usage::default() }
    }
}

impl Assembler {
    /// Adds an event, and returns the piece to show, if there is one. The caller handles `Done` and
    /// `Error`.
    ///
    /// # Errors
    /// If the order described at [`AssistantMessageEvent`] is violated. The text says how.
    pub fn push(&mut self, event: AssistantMessageEvent) -> Result<Option<Delta>, String> {
        use AssistantMessageEvent as E;
        match event {
            E::Start => self.clear(),
            E::Ping | E::Done { .. } | E::Error(_) => {}
            E::Raw { index, data } => self.open(index, Partial::Raw(data))?,
            E::Usage(usage) => self.usage = usage,
            E::TextStart { index } => self.open(index, Partial::Text(TextBlock::default()))?,
            E::ThinkingStart { index } => self.open(index, Partial::Thinking(ThinkingBlock::default()))?,
            E::ToolCallStart { index, call_id, tool_name } => {
                self.open(index, Partial::Call(PartialCall::new(call_id, tool_name)))?;
            }
            E::TextDelta { index, delta } => match self.block(index) {
                Some(Partial::Text(block)) => {
                    block.text.push_str(&delta);
                    return Ok(Some(Delta { content_index: index, kind: DeltaKind::Text, text: delta }));
                }
                _ => return Err(misplaced("text_delta", index)),
            },
            E::ThinkingDelta { index, delta } => match self.block(index) {
                Some(Partial::Thinking(block)) => {
                    block.thinking.push_str(&delta);
                    return Ok(Some(Delta { content_index: index, kind: DeltaKind::Thinking, text: delta }));
                }
                _ => return Err(misplaced("thinking_delta", index)),
            },
            E::ToolCallDelta { index, delta } => match self.block(index) {
                Some(Partial::Call(call)) if call.open => {
                    call.text.push_str(&delta);
                    let kind = DeltaKind::ToolCall {
                        call_id: call.call_id.clone(),
                        tool_name: call.tool_name.clone(),
                    };
                    return Ok(Some(Delta { content_index: index, kind, text: delta }));
                }
                _ => return Err(misplaced("tool_call_delta", index)),
            },
            E::TextEnd { index, signature } => match self.block(index) {
                Some(Partial::Text(block)) => block.signature = signature,
                _ => return Err(misplaced("text_end", index)),
            },
            E::ThinkingEnd { index, signature, redacted } => match self.block(index) {
                Some(Partial::Thinking(block)) => {
                    block.signature = signature;
                    block.redacted = redacted;
                }
                _ => return Err(misplaced("thinking_end", index)),
            },
            E::ToolCallEnd { index, metadata } => match self.block(index) {
                Some(Partial::Call(call)) => {
                    call.open = false;
                    call.metadata = metadata;
                }
                _ => return Err(misplaced("tool_call_end", index)),
            },
        }
        Ok(None)
    }

    /// Discards the blocks received so far, but keeps the usage.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
    }

    /// Whether nothing has arrived yet that could be shown.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Records the model's own id of a call that was given a different one.
    pub fn note_original_id(&mut self, index: u32, original: String) {
        if let Some(Partial::Call(call)) = self.block(index) {
            call.original = Some(original);
        }
    }

    /// Returns the ids of the calls that have begun.
    pub fn call_ids(&self) -> impl Iterator<Item = &str> {
        self.blocks.iter().filter_map(|block| match block {
            Partial::Call(call) => Some(call.call_id.as_ref()),
            _ => None,
        })
    }

    /// Returns the blocks of a message that ended with `stop_reason`.
    pub fn finish(self, stop_reason: MessageStopReason) -> Assembled {
        let mut assembled = Assembled::default();
        for block in self.blocks {
            assembled.content.push(match block {
                Partial::Text(block) => ContentBlock::Text(block),
                Partial::Thinking(block) => ContentBlock::Thinking(block),
                Partial::Raw(data) => ContentBlock::Raw(data),
                Partial::Call(call) => {
                    let (block, fault) = call.finish(stop_reason);
                    if let Some(fault) = fault {
                        assembled.faults.push((block.call_id.clone(), fault));
                    }
                    ContentBlock::ToolCall(block)
                }
            });
        }
        assembled
    }

    /// Returns what was shown of a message that was aborted or failed: text, thinking and complete calls,
    /// but no cut-off calls.
    pub fn partial(self) -> Vec<ContentBlock> {
        let whole = |block: &Partial| !matches!(block, Partial::Call(call) if call.open);
        let blocks = self.blocks.into_iter().filter(whole).collect();
        let assembled = Assembler { blocks, ..self }.finish(MessageStopReason::Aborted);
        let faulty = |id: &str| assembled.faults.iter().any(|(faulty, _)| faulty == id);
        let sound = |block: &ContentBlock| !matches!(block, ContentBlock::ToolCall(c) if faulty(&c.call_id));
        assembled.content.into_iter().filter(sound).collect()
    }

    /// Returns everything that the model has written, for an estimate of its size: calls that were cut off too, and
    /// nothing that a server has written.
    #[cold]
    pub(crate) fn written(self) -> Vec<ContentBlock> {
        let block = |block: Partial| match block {
            Partial::Text(block) => Some(ContentBlock::Text(block)),
            Partial::Thinking(block) => Some(ContentBlock::Thinking(block)),
            Partial::Raw(_) => None,
            Partial::Call(call) => Some(ContentBlock::ToolCall(ToolCallBlock {
                call_id: call.call_id.as_ref().to_owned(),
                tool_name: call.tool_name.as_ref().to_owned(),
                arguments: RawJson::parse(&call.text).unwrap_or_else(|_| RawJson::string(&call.text)),
                metadata: None,
            })),
        };
        self.blocks.into_iter().filter_map(block).collect()
    }

    fn open(&mut self, index: u32, block: Partial) -> Result<(), String> {
        if usize::try_from(index) != Ok(self.blocks.len()) {
            let next = text::number(self.blocks.len());
            return Err(
                ["block ", &text::number(index), " was started where ", &next, " comes next"].concat()
            );
        }
        self.blocks.push(block);
        Ok(())
    }

    fn block(&mut self, index: u32) -> Option<&mut Partial> {
        self.blocks.get_mut(usize::try_from(index).ok()?)
    }
}

/// Arguments that are no JSON object, unless they become one by what servers are known to do to them.
#[cold]
fn odd_arguments(
    text: &str,
    read: Result<Result<RawJson, String>, JsonError>,
) -> (RawJson, Option<CallFault>) {
    match (mended_object(text).map(|object| object.as_arguments()), read) {
        (Some(Ok(object)), _) => (object, None),
        (None, Ok(Ok(value))) => (value, Some(CallFault::NotAnObject)),
        (Some(Err(why)), _) | (None, Ok(Err(why))) => {
            (RawJson::string(text), Some(CallFault::Malformed(why)))
        }
        (None, Err(error)) => (RawJson::string(text), Some(CallFault::Malformed(error.text()))),
    }
}

impl PartialCall {
    fn new(call_id: String, tool_name: String) -> Self {
        PartialCall {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            text: String::new(),
            metadata: None,
            original: None,
            open: true,
        }
    }

    fn finish(self, stop_reason: MessageStopReason) -> (ToolCallBlock, Option<CallFault>) {
        let length = stop_reason == MessageStopReason::Length;
        let text = self.text.trim();
        let (arguments, fault) = if self.open {
            (RawJson::empty_object(), Some(CallFault::Cut))
        } else if matches!(text, "" | "null") {
            (RawJson::empty_object(), None)
        } else {
            match RawJson::parse_arguments(text) {
                Ok(Ok(value)) if value.is_object() => (value, None),
                Err(_) if length => (RawJson::empty_object(), Some(CallFault::Cut)),
                Ok(Err(why)) => (RawJson::string(text), Some(CallFault::Malformed(why))),
                read => odd_arguments(text, read),
            }
        };
        let mut block = ToolCallBlock {
            call_id: self.call_id.as_ref().to_owned(),
            tool_name: self.tool_name.as_ref().to_owned(),
            arguments,
            metadata: self.metadata,
        };
        if let Some(original) = self.original {
            keep_original(&mut block, original);
        }
        (block, fault)
    }
}

fn misplaced(event: &str, index: u32) -> String {
    ["`", event, "` for block ", &text::number(index), ", which is not open or of another kind"].concat()
}

#[cfg(test)]
mod tests;
