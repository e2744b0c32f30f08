//! What must be right in every request, whatever the history looks like.

use std::rc::Rc;

use super::passes::{
    DanglingCalls, Link, PART_TRIMMED, Reducible, Role, TRUNCATED, dedup_results, keep_last_results,
    merge_same_role, remove_orphaned_results, shorten_old_answers, strip_dangling_calls,
};
use super::weight;
use crate::data::id_map::IdMap;
use crate::words::message::{AgentMessage, ContentBlock, LlmMessage, MessageStopReason};

/// What happens to adjacent messages of the same role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SameRole {
    /// They stay as they are.
    #[default]
    Keep,
    /// They are merged, for wires that require the roles to alternate. Tool results are never merged.
    Merge,
}

/// Turns messages into a valid request: every result is paired with its call, only the last of several
/// results for a call remains, and nothing is empty or failed. Aborted messages keep their text and their
/// answered calls. Messages that are already right are passed through unchanged; if all are, so is the
/// list.
pub fn hygiene(messages: Vec<LlmMessage>, same_role: SameRole) -> Vec<LlmMessage> {
    if is_clean(&messages, same_role) {
        return messages;
    }
    let mut whole: Vec<AgentMessage> = Vec::with_capacity(messages.len());
    for message in messages.into_iter().filter(|message| !has_failed(message)) {
        whole.push(message.into());
    }
    let mut messages = whole;
    dedup_results(&mut messages);
    if same_role == SameRole::Merge {
        merge_same_role(&mut messages);
    }
    strip_dangling_calls(&mut messages, DanglingCalls::StripUnanswered);
    remove_orphaned_results(&mut messages);
    order_results(&mut messages);
    if same_role == SameRole::Merge {
        // Messages between two of the same role may be gone now.
        merge_same_role(&mut messages);
    }
    shown(&messages)
}

/// Puts the results of each answer into the order of its calls. Where the wire has no ids, only the order says which
/// result belongs to which call.
fn order_results(messages: &mut [AgentMessage]) {
    let mut ids: Vec<String> = Vec::new();
    let mut next = 0;
    for at in 0..messages.len() {
        match messages.get(at) {
            Some(AgentMessage::Assistant(answer)) => {
                ids = answer.tool_calls().map(|call| call.call_id.clone()).collect();
                next = 0;
            }
            Some(AgentMessage::ToolResult(_)) => {
                let wanted = ids.get(next);
                let results = messages.iter().skip(at).map_while(|message| match message {
                    AgentMessage::ToolResult(result) => Some(&result.call_id),
                    _ => None,
                });
                let found = results.into_iter().position(|id| Some(id) == wanted);
                messages.swap(at, at + found.unwrap_or(0));
                next += 1;
            }
            _ => ids.clear(),
        }
    }
}

/// Returns the messages that the model is shown.
pub(crate) fn shown(messages: &[AgentMessage]) -> Vec<LlmMessage> {
    let mut shown = Vec::with_capacity(messages.len());
    for message in messages {
        shown.extend(message.as_llm());
    }
    shown
}

/// Whether there is nothing to do.
fn is_clean(messages: &[LlmMessage], same_role: SameRole) -> bool {
    let mut before: Option<&LlmMessage> = None;
    let repeats = |message| match before.replace(message) {
        Some(before) => !matches!(message, LlmMessage::ToolResult(_)) && same_sender(before, message),
        None => false,
    };
    let alternates = same_role == SameRole::Keep || !messages.iter().any(repeats);
    alternates && CleanPrefix::default().covers(messages)
}

/// How far a growing list is known to be right, so that each message is checked only once.
#[derive(Clone, Debug, Default)]
pub(crate) struct CleanPrefix {
    /// The number of messages that are right, with none of their calls open.
    messages: usize,
    /// The ids of their calls.
    ids: IdMap<String, u64>,
}

impl CleanPrefix {
    /// Whether all messages are right. Adjacent messages of the same role are not checked for.
    pub(crate) fn covers(&mut self, messages: &[LlmMessage]) -> bool {
        let (mut ids, mut open) = (Vec::new(), Vec::new());
        for (at, message) in messages.iter().enumerate().skip(self.messages) {
            let content = match message {
                LlmMessage::ToolResult(result) => {
                    if open.pop() != Some(&*result.call_id) {
                        return false;
                    }
                    continue;
                }
                LlmMessage::User(message) => &message.content,
                LlmMessage::Assistant(message) => &message.content,
            };
            if !open.is_empty() || has_failed(message) || is_empty_content(content) || !self.add_ids(&mut ids)
            {
                return false;
            }
            self.messages = at;
            let mut calls = content.as_slice();
            while let Some(id) = next_call(&mut calls) {
                ids.push(id);
            }
            open.extend(ids.iter().rev().copied());
        }
        if !open.is_empty() || !self.add_ids(&mut ids) {
            return false;
        }
        self.messages = messages.len();
        true
    }

    /// Adds the ids of an answer whose calls all have results. Returns whether all ids are new.
    fn add_ids(&mut self, ids: &mut Vec<&str>) -> bool {
        ids.drain(..).all(|id| self.ids.insert(id.to_owned(), 0).is_none())
    }
}

/// Takes the next call from the front of the blocks.
fn next_call<'a>(blocks: &mut &'a [ContentBlock]) -> Option<&'a str> {
    while let Some((block, rest)) = blocks.split_first() {
        *blocks = rest;
        if let ContentBlock::ToolCall(call) = block {
            return Some(&call.call_id);
        }
    }
    None
}

/// Whether a message is left out of every request, with no effect on other messages.
pub(crate) fn is_empty_message(message: &LlmMessage) -> bool {
    match message {
        LlmMessage::User(message) => is_empty_content(&message.content),
        LlmMessage::Assistant(answer) => {
            is_empty_content(&answer.content)
                || (has_failed(message) && next_call(&mut answer.content.as_slice()).is_none())
        }
        LlmMessage::ToolResult(_) => false,
    }
}

fn has_failed(message: &LlmMessage) -> bool {
    matches!(message, LlmMessage::Assistant(message) if message.stop_reason == MessageStopReason::Error)
}

fn same_sender(one: &LlmMessage, other: &LlmMessage) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

/// Thinking alone does not count as content: no provider accepts a message that ends with it.
fn is_empty_content(content: &[ContentBlock]) -> bool {
    content.iter().all(|block| match block {
        ContentBlock::Text(block) => block.text.is_empty(),
        ContentBlock::Thinking(_) => true,
        _ => false,
    })
}

/// A stock transformer that keeps the newest tool results and answers whole. Older results are removed
/// along with their calls; older answers are reduced to a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepLast {
    /// How many results, and how many answers, to keep.
    pub messages: usize,
}

impl Default for KeepLast {
    fn default() -> Self {
        KeepLast { messages: 64 }
    }
}

impl KeepLast {
    /// Returns a view for one request, or `None` if there is nothing to leave out.
    pub fn apply(&self, messages: &[AgentMessage]) -> Option<Vec<AgentMessage>> {
        let of = |role: Role| messages.iter().filter(|message| message.role() == role).count();
        if of(Role::Tool) <= self.messages && of(Role::Assistant) <= self.messages {
            return None;
        }
        let mut messages = messages.to_vec();
        dedup_results(&mut messages);
        keep_last_results(&mut messages, self.messages);
        shorten_old_answers(&mut messages, self.messages);
        strip_dangling_calls(&mut messages, DanglingCalls::StripAll);
        remove_orphaned_results(&mut messages);
        Some(messages)
    }
}

impl Reducible for AgentMessage {
    fn role(&self) -> Role {
        match self {
            AgentMessage::User(_) => Role::User,
            AgentMessage::Assistant(_) => Role::Assistant,
            AgentMessage::ToolResult(_) => Role::Tool,
            AgentMessage::Custom(_) => Role::Aside,
        }
    }

    fn parts(&self) -> usize {
        match self {
            AgentMessage::User(message) => message.content.len(),
            AgentMessage::Assistant(message) => message.content.len(),
            AgentMessage::ToolResult(_) => 1,
            AgentMessage::Custom(_) => 0,
        }
    }

    fn link(&self, part: usize) -> Link<'_> {
        match self {
            AgentMessage::ToolResult(result) => Link::Result(&result.call_id),
            AgentMessage::Assistant(message) => match message.content.get(part) {
                Some(ContentBlock::ToolCall(call)) => Link::Call(&call.call_id),
                _ => Link::None,
            },
            _ => Link::None,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            AgentMessage::User(message) => is_empty_content(&message.content),
            AgentMessage::Assistant(message) => is_empty_content(&message.content),
            AgentMessage::ToolResult(_) | AgentMessage::Custom(_) => false,
        }
    }

    fn retain(&mut self, keep: &dyn Fn(usize) -> bool) -> bool {
        let content = match self {
            AgentMessage::ToolResult(_) => return keep(0),
            AgentMessage::Custom(_) => return true,
            AgentMessage::User(message) => &mut Rc::make_mut(message).content,
            AgentMessage::Assistant(message) => &mut Rc::make_mut(message).content,
        };
        let mut kept = Vec::with_capacity(content.len());
        // The thinking that led to a removed call goes with it: Responses refuses thinking that leads to nothing.
        let mut is_lost = false;
        for (part, block) in std::mem::take(content).into_iter().enumerate() {
            if !keep(part) {
                is_lost = true;
                continue;
            }
            if is_lost && is_thinking(&block) {
                drop_last_thinking(&mut kept);
            }
            is_lost = false;
            kept.push(block);
        }
        if is_lost {
            drop_last_thinking(&mut kept);
        }
        *content = kept;
        !content.is_empty()
    }

    fn merges_with(&self, next: &Self) -> bool {
        matches!(
            (self, next),
            (AgentMessage::User(_), AgentMessage::User(_))
                | (AgentMessage::Assistant(_), AgentMessage::Assistant(_))
        )
    }

    fn append(&mut self, next: Self) {
        match (self, next) {
            (AgentMessage::User(first), AgentMessage::User(next)) => {
                Rc::make_mut(first).content.extend(next.content.iter().cloned());
            }
            (AgentMessage::Assistant(first), AgentMessage::Assistant(next)) => {
                Rc::make_mut(first).content.extend(next.content.iter().cloned());
            }
            _ => {}
        }
    }

    fn joins(&self, next: &Self) -> bool {
        matches!((self, next), (AgentMessage::ToolResult(_), AgentMessage::ToolResult(_)))
    }

    fn shorten(&mut self) {
        let AgentMessage::Assistant(message) = self else { return };
        let is_call = |block: &ContentBlock| matches!(block, ContentBlock::ToolCall(_));
        if message.content.iter().all(is_call) || is_empty_content(&message.content) {
            return;
        }
        let content = &mut Rc::make_mut(message).content;
        content.retain(is_call);
        if content.is_empty() {
            content.push(ContentBlock::text(TRUNCATED));
        }
    }

    fn trim(&mut self) {
        match self {
            AgentMessage::Assistant(message) if message.content.iter().any(is_trimmable) => {
                let content = &mut Rc::make_mut(message).content;
                // Thinking about a text that is gone is of no use.
                content.retain(|block| !matches!(block, ContentBlock::Thinking(_)));
                for block in content.iter_mut().filter(|block| is_trimmable(block)) {
                    *block = ContentBlock::text(PART_TRIMMED);
                }
            }
            AgentMessage::ToolResult(result) => {
                let trimmed = ContentBlock::text(PART_TRIMMED);
                if !matches!(result.content.as_slice(), [one] if *one == trimmed) {
                    Rc::make_mut(result).content = vec![trimmed];
                }
            }
            _ => {}
        }
    }

    fn weight(&self) -> u64 {
        match self {
            AgentMessage::User(message) => weight::weight_of_blocks(&message.content),
            AgentMessage::Assistant(message) => weight::weight_of_blocks(&message.content),
            AgentMessage::ToolResult(result) => weight::weight_of_result(&result.content),
            AgentMessage::Custom(_) => 0,
        }
    }
}

fn is_thinking(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Thinking(_))
}

fn drop_last_thinking(content: &mut Vec<ContentBlock>) {
    while content.last().is_some_and(is_thinking) {
        content.pop();
    }
}

fn is_trimmable(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(block) => block.text != PART_TRIMMED,
        ContentBlock::Thinking(_) => true,
        _ => false,
    }
}
