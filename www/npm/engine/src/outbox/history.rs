//! The history as entries: JavaScript's mirror grows by what is appended, and requests name its messages.

use std::ops::Range;

use turnwheel::data::list::ListWriter;
use turnwheel::driver::Published;
use turnwheel::json::{ToJson, write_u64};
use turnwheel::message::{AgentMessage, LlmMessage};

use super::{Outbox, Sent, number};
use crate::bridge::Bridge;
use crate::protocol::EntryKind;

impl Outbox {
    /// Brings JavaScript's mirror of the history up to date.
    pub(crate) fn history(&mut self, sent: &mut Sent, bridge: &Bridge, published: &Published) {
        let mut mirror = bridge.mirror.borrow_mut();
        if published.epoch != sent.epoch {
            sent.epoch = published.epoch;
            let same = mirror.iter().zip(&published.messages).take_while(|(a, b)| a.is_same(b)).count();
            if same < mirror.len() {
                self.empty_entry(EntryKind::Truncate, number(same));
                let old = mirror.split_off(same);
                let mut from = 0;
                for message in published.messages.get(same..).unwrap_or_default() {
                    let tail = old.get(from..).unwrap_or_default();
                    match tail.iter().position(|candidate| candidate.is_same(message)) {
                        Some(at) => {
                            self.empty_entry(EntryKind::Copy, number(same + from + at));
                            from += at + 1;
                            sent.note(message);
                        }
                        None => self.append(sent, message),
                    }
                    mirror.push(message.clone());
                }
            }
        }
        for message in published.messages.get(mirror.len()..).unwrap_or_default() {
            self.append(sent, message);
            mirror.push(message.clone());
        }
    }

    fn append(&mut self, sent: &mut Sent, message: &AgentMessage) {
        match message {
            AgentMessage::Assistant(answer) if sent.has_answer(answer) => {
                self.empty_entry(EntryKind::AppendAnswer, 0);
            }
            AgentMessage::ToolResult(result) if sent.has_result(result) => {
                self.text_entry(EntryKind::AppendResult, 0, &result.call_id);
            }
            AgentMessage::ToolResult(result) if let Some(text) = result.plain_text() => {
                self.strings([&*result.call_id, &*result.tool_name, text]);
                self.entry(EntryKind::AppendText, 0, |text| write_u64(result.timestamp, text));
            }
            _ => self.entry(EntryKind::Append, 0, |text| message.write_json(text)),
        }
        sent.note(message);
    }
}

/// Writes messages as a list. A pair of numbers is a range of the mirror, without its end; anything
/// else is a message itself.
pub(crate) fn write_refs(messages: &[LlmMessage], mirror: &[AgentMessage], out: &mut String) {
    let mut list = ListWriter::new(out);
    let mut run = 0..0;
    for message in messages {
        let tail = mirror.get(run.end..).unwrap_or_default();
        let found = tail.iter().position(|candidate| candidate.shows(message));
        match found {
            Some(0) if !run.is_empty() => run.end += 1,
            _ => {
                write_run(&run, &mut list);
                let from = run.end + found.unwrap_or(0);
                run = from..from + usize::from(found.is_some());
            }
        }
        if found.is_none() {
            message.write_json(list.item());
        }
    }
    write_run(&run, &mut list);
    list.end();
}

fn write_run(run: &Range<usize>, list: &mut ListWriter<'_>) {
    if !run.is_empty() {
        let mut pair = ListWriter::new(list.item());
        pair.place(run.start);
        pair.place(run.end);
        pair.end();
    }
}
