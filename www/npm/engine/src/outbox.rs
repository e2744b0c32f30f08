//! What leaves the instance: one batch per call, consisting of a table and one text.
//!
//! The control block is four `u32`: the address of the table, its length in numbers, the address of the
//! text, and its length in bytes. The table has three numbers per entry: the kind, a number whose
//! meaning depends on the kind, and the length of the entry's text in UTF-16 units. JavaScript decodes
//! the text once and slices it. A message is sent once; later entries refer to it. `www/npm/engine.js`
//! reads what is written here.

use std::ops::Range;
use std::rc::Rc;

use turnwheel::agent::Receipt;
use turnwheel::data::id_map::IdMap;
use turnwheel::data::list::ListWriter;
use turnwheel::data::text::utf16_length;
use turnwheel::driver::{AgentStream, Published};
use turnwheel::event::AgentEvent;
use turnwheel::json::{ObjectWriter, RawJson, ToJson, write_u64};
use turnwheel::message::{AgentMessage, AssistantMessage, LlmMessage, ToolResultMessage};
use turnwheel::stream::{Delta, DeltaKind};

use super::bridge::{Bridge, Effect, SlotId};

/// The kinds of entries. Unless stated otherwise the text comes first, the number after the semicolon.
mod kind {
    /// A piece of text; the block.
    pub(super) const TEXT: u32 = 1;
    /// A piece of thinking; the block.
    pub(super) const THINKING: u32 = 2;
    /// A piece of a call's arguments; the block.
    pub(super) const ARGUMENTS: u32 = 3;
    /// The streaming block belongs to this call, whose id is the preceding string:
    /// the tool's name; the block.
    pub(super) const CALL: u32 = 4;
    /// An event as JSON.
    pub(super) const EVENT: u32 = 5;
    /// A message, as JSON, was appended to the history.
    pub(super) const APPEND: u32 = 6;
    /// The message of the last `message_end` was appended to the history.
    pub(super) const APPEND_ANSWER: u32 = 7;
    /// The result of this call was appended to the history.
    pub(super) const APPEND_RESULT: u32 = 8;
    /// The history was truncated; how many messages it keeps.
    pub(super) const TRUNCATE: u32 = 9;
    /// A message from before the truncation was appended to the history; its index there.
    pub(super) const COPY: u32 = 10;
    /// An effect starts, as JSON; its slot.
    pub(super) const EFFECT: u32 = 11;
    /// An effect is cancelled; its slot.
    pub(super) const CANCEL: u32 = 12;
    /// The fate of a posted message: the turn, or nothing if it was not delivered; the receipt.
    pub(super) const RECEIPT: u32 = 13;
    /// The run is over; nothing follows. The text is the structured output, if there is one.
    pub(super) const END: u32 = 14;
    /// `message_end` with the last answer in the history.
    pub(super) const MESSAGE_END: u32 = 15;
    /// `tool_execution_end` with a result that was already sent; the text is the call's id.
    pub(super) const TOOL_END: u32 = 16;
    /// `turn_end` as JSON.
    pub(super) const TURN_END: u32 = 17;
    /// `agent_end` as JSON, whose messages are followed by the last messages of the
    /// history; how many of them.
    pub(super) const AGENT_END: u32 = 18;
    /// `tool_calls_proposed` with the calls of the last answer in the history.
    pub(super) const PROPOSED: u32 = 19;
    /// `tool_execution_start` with the call's own arguments; the text is the call's id.
    pub(super) const TOOL_START: u32 = 20;
    /// `turn_start`; the turn.
    pub(super) const TURN_START: u32 = 21;
    /// `message_start`.
    pub(super) const MESSAGE_START: u32 = 22;
    /// Calls that start together. Each is announced in turn, until somebody posts anything; then
    /// `run_started` is told how many were. Always the last entry. 0: the ids of the calls are the
    /// preceding strings; 1: a JSON list of ids, or of whole `tool_execution_start` events where the
    /// arguments differ from the model's.
    pub(super) const STARTS: u32 = 23;
    /// A string for the next entry of another kind.
    pub(super) const STRING: u32 = 24;
    /// A request starts, as JSON; its slot.
    pub(super) const HTTP: u32 = 25;
    /// A tool call starts, with the tool's name as the preceding string: the call's id; its slot.
    pub(super) const TOOL: u32 = 26;
    /// `turn_end` with the last answer in the history and the results of calls, whose ids are the
    /// preceding strings: the reason; the turn.
    pub(super) const TURN_ENDED: u32 = 27;
    /// A tool result with a single text was appended to the history. Preceding strings: the call's id,
    /// the tool's name, the text. The text of this entry is the time.
    pub(super) const APPEND_TEXT: u32 = 28;
}

/// What JavaScript knows of a run, besides the history that the bridge mirrors.
#[derive(Default)]
pub(super) struct Sent {
    epoch: u64,
    /// The last answer in the history.
    answer: Option<Rc<AssistantMessage>>,
    /// Its calls, in this turn.
    calls: IdMap<String, Known>,
    /// The call that the streaming block belongs to.
    call: Option<(u32, Rc<str>)>,
}

/// What JavaScript knows of a call: first its arguments, then its result.
enum Known {
    Arguments(RawJson),
    Result(Rc<ToolResultMessage>),
}

/// The batch under construction.
pub(super) struct Outbox {
    control: Box<[u32; 4]>,
    table: Vec<u32>,
    text: String,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox { control: Box::new([0; 4]), table: Vec::new(), text: String::new() }
    }
}

impl Outbox {
    pub(super) fn control(&self) -> *const u32 {
        self.control.as_ptr()
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.text.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Fills in the control block. Nothing may be added afterwards.
    pub(super) fn publish(&mut self) {
        let address = |pointer: usize| u32::try_from(pointer).unwrap_or(0);
        *self.control = [
            address(self.table.as_ptr() as usize),
            address(self.table.len()),
            address(self.text.as_ptr() as usize),
            address(self.text.len()),
        ];
    }

    /// Adds an entry whose text `write` appends.
    fn entry(&mut self, kind: u32, number: u32, write: impl FnOnce(&mut String)) {
        let from = self.text.len();
        write(&mut self.text);
        self.close(kind, number, from);
    }

    /// Adds the entry whose text begins at `from`.
    #[inline(never)]
    fn close(&mut self, kind: u32, number: u32, from: usize) {
        let written = self.text.get(from..).unwrap_or_default();
        self.table.extend_from_slice(&[kind, number, utf16_length(written)]);
    }

    /// Adds an entry without a text.
    fn empty_entry(&mut self, kind: u32, number: u32) {
        self.close(kind, number, self.text.len());
    }

    /// Adds an entry with the given text.
    fn text_entry(&mut self, kind: u32, number: u32, text: &str) {
        self.entry(kind, number, |out| out.push_str(text));
    }

    /// Adds strings for the next entry.
    fn strings<'a>(&mut self, strings: impl IntoIterator<Item = &'a str>) {
        for string in strings {
            self.text_entry(kind::STRING, 0, string);
        }
    }

    /// Adds an event as JSON.
    #[inline(never)]
    fn plain(&mut self, event: &AgentEvent) {
        self.entry(kind::EVENT, 0, |text| event.write_json(text));
    }

    pub(super) fn end(&mut self, output: Option<&RawJson>) {
        self.text_entry(kind::END, 0, output.map_or("", RawJson::as_str));
    }

    pub(super) fn receipt(&mut self, id: u32, receipt: Receipt) {
        self.entry(kind::RECEIPT, id, |text| {
            if let Receipt::Delivered { turn_index } = receipt {
                write_u64(u64::from(turn_index), text);
            }
        });
    }

    pub(super) fn effect(&mut self, slot: SlotId, effect: &Effect) {
        match effect {
            Effect::Json(json) => self.text_entry(kind::EFFECT, slot, json),
            Effect::Http(json) => self.text_entry(kind::HTTP, slot, json),
            Effect::Tool(name, call_id) => {
                self.strings([&**name]);
                self.text_entry(kind::TOOL, slot, call_id);
            }
        }
    }

    pub(super) fn cancel(&mut self, slot: SlotId) {
        self.empty_entry(kind::CANCEL, slot);
    }

    /// Brings JavaScript's mirror of the history up to date.
    #[inline(never)]
    pub(super) fn history(&mut self, sent: &mut Sent, bridge: &Bridge, published: &Published) {
        let mut mirror = bridge.mirror.borrow_mut();
        if published.epoch != sent.epoch {
            sent.epoch = published.epoch;
            let same = mirror.iter().zip(&published.messages).take_while(|(a, b)| a.is_same(b)).count();
            if same < mirror.len() {
                self.empty_entry(kind::TRUNCATE, number(same));
                let old = mirror.split_off(same);
                let mut from = 0;
                for message in published.messages.get(same..).unwrap_or_default() {
                    let tail = old.get(from..).unwrap_or_default();
                    match tail.iter().position(|candidate| candidate.is_same(message)) {
                        Some(at) => {
                            self.empty_entry(kind::COPY, number(same + from + at));
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
                self.empty_entry(kind::APPEND_ANSWER, 0);
            }
            AgentMessage::ToolResult(result) if sent.has_result(result) => {
                self.text_entry(kind::APPEND_RESULT, 0, &result.call_id);
            }
            AgentMessage::ToolResult(result) if let Some(text) = result.plain_text() => {
                self.strings([&*result.call_id, &*result.tool_name, text]);
                self.entry(kind::APPEND_TEXT, 0, |text| write_u64(result.timestamp, text));
            }
            _ => self.entry(kind::APPEND, 0, |text| message.write_json(text)),
        }
        sent.note(message);
    }

    /// Adds an event.
    pub(super) fn event(&mut self, sent: &mut Sent, bridge: &Bridge, event: &AgentEvent) {
        match event {
            AgentEvent::MessageUpdate(delta) => self.delta(sent, delta),
            event => self.other_event(sent, bridge, event),
        }
    }

    #[inline(never)]
    fn other_event(&mut self, sent: &mut Sent, bridge: &Bridge, event: &AgentEvent) {
        match event {
            AgentEvent::TurnStart { turn_index } => self.empty_entry(kind::TURN_START, *turn_index),
            AgentEvent::MessageStart => self.empty_entry(kind::MESSAGE_START, 0),
            AgentEvent::MessageEnd { message } if sent.has_answer(message) => {
                sent.call = None;
                self.empty_entry(kind::MESSAGE_END, 0);
            }
            AgentEvent::ToolCallsProposed { .. } => self.empty_entry(kind::PROPOSED, 0),
            AgentEvent::ToolExecutionStart { .. } => match sent.own_call(event) {
                Some(call_id) => self.text_entry(kind::TOOL_START, 0, call_id),
                None => self.plain(event),
            },
            AgentEvent::ToolExecutionEnd { result } => {
                if sent.has_result(result) {
                    return self.text_entry(kind::TOOL_END, 0, &result.call_id);
                }
                sent.keep_result(result);
                self.plain(event);
            }
            AgentEvent::TurnEnd { turn_index, message, tool_results, reason } => {
                match message {
                    Some(message) if sent.has_answer(message) => {
                        self.strings(tool_results.iter().map(|result| &*result.call_id));
                        self.text_entry(kind::TURN_ENDED, *turn_index, reason.as_str());
                    }
                    _ => self.entry(kind::TURN_END, 0, |text| {
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
            AgentEvent::AgentEnd { messages, stop_reason, usage, turns, error } => {
                let mirror = bridge.mirror.borrow();
                let tail = mirror.iter().rev().zip(messages.iter().rev()).take_while(|(a, b)| a.is_same(b));
                let tail = tail.count();
                let head = messages.get(..messages.len() - tail).unwrap_or_default();
                self.entry(kind::AGENT_END, number(tail), |text| {
                    let mut object = ObjectWriter::new(text);
                    object.field("messages", head).field("stopReason", stop_reason.as_str());
                    object.field("usage", usage).field("turns", turns).optional("error", error);
                    object.end();
                });
            }
            AgentEvent::BeforeLlmCall { system_prompt, messages, model } => {
                self.entry(kind::EVENT, 1, |text| {
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

    /// Adds the calls that wait to be announced.
    pub(super) fn starts(&mut self, sent: &Sent, run: &AgentStream) {
        let mut has_only_own = true;
        run.each_offered(&mut |event| has_only_own &= sent.own_call(event).is_some());
        if has_only_own {
            run.each_offered(&mut |event| self.strings(sent.own_call(event)));
            return self.empty_entry(kind::STARTS, 0);
        }
        self.entry(kind::STARTS, 1, |text| {
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
            DeltaKind::Text => kind::TEXT,
            DeltaKind::Thinking => kind::THINKING,
            DeltaKind::ToolCall { call_id, tool_name } => {
                let index = delta.content_index;
                if sent.call.as_ref().is_none_or(|(at, id)| *at != index || id != call_id) {
                    sent.call = Some((index, call_id.clone()));
                    self.strings([&**call_id]);
                    self.text_entry(kind::CALL, index, tool_name);
                }
                kind::ARGUMENTS
            }
        };
        self.entry(kind, delta.content_index, |text| text.push_str(&delta.text));
    }
}

impl Sent {
    /// What JavaScript knows of the history that a run resumes from: the last answer
    /// and the results after it.
    pub(super) fn of(history: &[AgentMessage]) -> Self {
        let mut sent = Sent::default();
        let last = history.iter().rposition(|message| matches!(message, AgentMessage::Assistant(_)));
        history.get(last.unwrap_or(history.len())..).unwrap_or_default().iter().for_each(|m| sent.note(m));
        sent
    }

    fn has_answer(&self, answer: &Rc<AssistantMessage>) -> bool {
        self.answer.as_ref().is_some_and(|last| Rc::ptr_eq(last, answer))
    }

    /// Returns the id of the call that starts, if its arguments are the model's own.
    fn own_call<'a>(&self, event: &'a AgentEvent) -> Option<&'a str> {
        let AgentEvent::ToolExecutionStart { call_id, arguments, .. } = event else { return None };
        let known = self.calls.get(call_id);
        matches!(known, Some(Known::Arguments(own)) if own.is_same(arguments)).then_some(call_id)
    }

    fn has_result(&self, result: &Rc<ToolResultMessage>) -> bool {
        matches!(self.calls.get(&result.call_id), Some(Known::Result(sent)) if Rc::ptr_eq(sent, result))
    }

    fn keep_result(&mut self, result: &Rc<ToolResultMessage>) {
        let known = Known::Result(result.clone());
        match self.calls.get_mut(&result.call_id) {
            Some(call) => *call = known,
            None => drop(self.calls.insert(result.call_id.clone(), known)),
        }
    }

    fn note(&mut self, message: &AgentMessage) {
        match message {
            AgentMessage::Assistant(answer) => {
                self.answer = Some(answer.clone());
                self.calls.clear();
                for call in answer.tool_calls() {
                    self.calls.insert(call.call_id.clone(), Known::Arguments(call.arguments.clone()));
                }
            }
            AgentMessage::ToolResult(result) => {
                self.keep_result(result);
            }
            AgentMessage::User(_) | AgentMessage::Custom(_) => {}
        }
    }
}

/// Writes messages as a list. A pair of numbers is a range of the mirror, without its end; anything
/// else is a message itself.
pub(super) fn write_refs(messages: &[LlmMessage], mirror: &[AgentMessage], out: &mut String) {
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

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
