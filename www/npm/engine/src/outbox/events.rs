//! Events as entries: what JavaScript has already is named, not repeated.

use turnwheel::data::list::ListWriter;
use turnwheel::driver::AgentStream;
use turnwheel::event::{AgentEvent, write_usage};
use turnwheel::json::{ObjectWriter, ToJson};
use turnwheel::stream::{Delta, DeltaKind};

use super::{Outbox, Sent, number, write_refs};
use crate::bridge::Bridge;
use crate::protocol::EntryKind;

impl Outbox {
    /// Adds an event.
    pub(crate) fn event(&mut self, sent: &mut Sent, bridge: &Bridge, event: &AgentEvent) {
        match event {
            AgentEvent::MessageUpdate(delta) => self.delta(sent, delta),
            event => self.other_event(sent, bridge, event),
        }
    }

    fn other_event(&mut self, sent: &mut Sent, bridge: &Bridge, event: &AgentEvent) {
        match event {
            AgentEvent::TurnStart { turn_index, .. } => self.empty_entry(EntryKind::TurnStart, *turn_index),
            AgentEvent::MessageStart { .. } => self.empty_entry(EntryKind::MessageStart, 0),
            AgentEvent::MessageEnd { message, .. } if sent.has_answer(message) => {
                sent.call = None;
                self.empty_entry(EntryKind::MessageEnd, 0);
            }
            AgentEvent::ToolCallsProposed { .. } => self.empty_entry(EntryKind::Proposed, 0),
            AgentEvent::ToolExecutionStart { .. } => match sent.own_call(event) {
                Some(call_id) => self.text_entry(EntryKind::ToolStart, 0, call_id),
                None => self.plain(event),
            },
            AgentEvent::ToolExecutionEnd { result, .. } => {
                if sent.has_result(result) {
                    return self.text_entry(EntryKind::ToolEnd, 0, &result.call_id);
                }
                sent.keep_result(result);
                self.plain(event);
            }
            AgentEvent::TurnEnd { .. } => self.turn_end(sent, event),
            AgentEvent::AgentEnd { .. } => self.agent_end(bridge, event),
            AgentEvent::BeforeLlmCall { system_prompt, messages, model } => {
                self.entry(EntryKind::Event, 1, |text| {
                    let mut object = ObjectWriter::new(text);
                    object.field("type", event.name()).field("systemPrompt", system_prompt);
                    write_refs(messages, &bridge.mirror.borrow(), object.key("messages"));
                    object.field("model", model);
                    object.end();
                });
            }
            AgentEvent::MessageReset { .. } | AgentEvent::MessageEnd { .. } => {
                sent.call = None;
                self.plain(event);
            }
            _ => self.plain(event),
        }
    }

    /// Adds `turn_end`, which usually names an answer and results that were sent before.
    fn turn_end(&mut self, sent: &mut Sent, event: &AgentEvent) {
        let AgentEvent::TurnEnd { turn_index, message, tool_results, reason, .. } = event else { return };
        match message {
            Some(message) if sent.has_answer(message) => {
                self.strings(tool_results.iter().map(|result| &*result.call_id));
                self.text_entry(EntryKind::TurnEnded, *turn_index, reason.as_str());
            }
            _ => self.entry(EntryKind::TurnEnd, 0, |text| {
                let mut object = ObjectWriter::new(text);
                object.field("turnIndex", turn_index).field("reason", reason.as_str());
                match message {
                    Some(message) => drop(object.field("message", message)),
                    None => drop(object.fill("\"message\":null", &[])),
                }
                let mut ids = ListWriter::new(object.key("results"));
                tool_results.iter().for_each(|result| result.call_id.write_json(ids.item()));
                ids.end();
                object.end();
            }),
        }
        sent.calls.clear();
    }

    /// Adds `agent_end`, whose last messages are those of the history.
    fn agent_end(&mut self, bridge: &Bridge, event: &AgentEvent) {
        let AgentEvent::AgentEnd { messages, stop_reason, usage, own_usage, turns, error, .. } = event else {
            return;
        };
        let mirror = bridge.mirror.borrow();
        let tail = mirror.iter().rev().zip(messages.iter().rev()).take_while(|(a, b)| a.is_same(b)).count();
        let head = messages.get(..messages.len() - tail).unwrap_or_default();
        self.entry(EntryKind::AgentEnd, number(tail), |text| {
            let mut object = ObjectWriter::new(text);
            object.field("messages", head).field("stopReason", stop_reason.as_str());
            write_usage(usage, own_usage.as_ref(), &mut object);
            object.field("turns", turns).optional("error", error);
            object.end();
        });
    }

    /// Adds the calls that wait to be announced.
    pub(crate) fn starts(&mut self, sent: &Sent, run: &AgentStream) {
        let mut has_only_own = true;
        run.each_offered(&mut |event| has_only_own &= sent.own_call(event).is_some());
        if has_only_own {
            run.each_offered(&mut |event| self.strings(sent.own_call(event)));
            return self.empty_entry(EntryKind::Starts, 0);
        }
        self.entry(EntryKind::Starts, 1, |text| {
            let mut list = ListWriter::new(text);
            run.each_offered(&mut |event| match sent.own_call(event) {
                Some(call_id) => call_id.write_json(list.item()),
                None => event.write_json(list.item()),
            });
            list.end();
        });
    }

    fn delta(&mut self, sent: &mut Sent, delta: &Delta) {
        let kind = match &delta.kind {
            DeltaKind::Text => EntryKind::Text,
            DeltaKind::Thinking => EntryKind::Thinking,
            DeltaKind::ToolCall { call_id, tool_name } => {
                let index = delta.content_index;
                if sent.call.as_ref().is_none_or(|(at, id)| *at != index || id != call_id) {
                    sent.call = Some((index, call_id.clone()));
                    self.strings([&**call_id]);
                    self.text_entry(EntryKind::Call, index, tool_name);
                }
                EntryKind::Arguments
            }
        };
        self.entry(kind, delta.content_index, |text| text.push_str(&delta.text));
    }
}
