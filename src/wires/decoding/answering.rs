//! The progress of an answer. It belongs to the [`SseDecoder`](super::frames::SseDecoder); what a wire's
//! decoder does to it becomes events.

use crate::data::json::{JsonError, RawJson, Value, escaped_controls};
use crate::data::room::{grow_text, has_room};
use crate::rules::stream::{AssistantMessageEvent as Event, Excess};
use crate::wires::Remarks;
use crate::wires::errors::{ended_early, error_in, in_stream_text, no_stream};
use crate::wires::limits::{Limits, limit_error};
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{MessageStopReason, Usage};

use super::blocks::Blocks;
use super::stop::filter_of;
use super::template::Holes;

/// What a tree of the largest number of values takes.
const TREE: usize = 4 << 20;

/// Shorter frames are read without asking for memory.
const LONG_FRAME: usize = 1 << 16;

/// An answer that is arriving. Its blocks are in `blocks.rs`.
#[derive(Default)]
pub(crate) struct Answering {
    /// The events so far of one call of the decoder, which moves the caller's list in here meanwhile.
    pub(super) out: Vec<Event>,
    pub(super) blocks: Blocks,
    limits: Limits,
    /// The provider's own word for why the answer stopped.
    pub(crate) stop_word: Option<String>,
    /// What only logs and tests read. The raw stop reason and the refusals are filled in by
    /// [`Answering::remarks`].
    pub(crate) remarks: Remarks,
    /// Where the frame just read may differ from the next one.
    pub(crate) holes: Holes,
    /// The last frame, mended: see [`Answering::take_mended`].
    mended: Option<String>,
    usage: Option<Usage>,
    is_started: bool,
    /// `Done` or `Error` is out.
    pub(crate) is_ended: bool,
    /// The body has ended: the last frame may be truncated.
    pub(super) is_over: bool,
    calls: usize,
    argument_bytes: usize,
    /// Bytes that the decoder itself holds, because they become events later or must be recognised again.
    held_bytes: usize,
    /// Bytes of the response.
    received: u64,
}

impl Answering {
    pub(super) fn new(limits: Limits) -> Self {
        Answering { limits, ..Answering::default() }
    }

    /// The provider answered.
    pub(crate) fn start(&mut self) {
        if !self.is_started {
            self.is_started = true;
            self.out.push(Event::Start);
        }
    }

    /// The provider starts over: everything it said before is void, including why it stopped.
    pub(crate) fn restart(&mut self) {
        self.blocks = Blocks::default();
        self.stop_word = None;
        self.remarks = Remarks::default();
        self.usage = None;
        self.out.push(Event::Start);
    }

    /// Takes the provider's word for why the answer stopped. If there are several, the last one counts; but none lifts
    /// a filter.
    pub(crate) fn stop(&mut self, word: String) {
        if self.stop_word.as_deref().and_then(filter_of).is_none() {
            self.stop_word = Some(word);
        }
    }

    /// Reports the usage so far, if it has changed.
    pub(crate) fn report_usage(&mut self, mut usage: Usage) {
        if let Some(known) = &self.usage {
            keep_counts(known, &mut usage);
        }
        if !self.is_ended && self.usage != Some(usage) {
            self.usage = Some(usage);
            self.out.push(Event::Usage(usage));
        }
    }

    /// Counts one more call, or another block that is kept whole. Returns `false` if there are too many, or
    /// if the answer has ended.
    pub(crate) fn count_call(&mut self) -> bool {
        self.calls += 1;
        if self.calls > self.limits.calls {
            self.exceed("the answer holds more than ", self.limits.calls, " tool calls");
        }
        !self.is_ended
    }

    /// Counts bytes of arguments, and of blocks that are kept whole.
    pub(crate) fn count_bytes(&mut self, bytes: usize) {
        self.argument_bytes = self.argument_bytes.saturating_add(bytes);
        if self.argument_bytes > self.limits.answer {
            self.exceed_answer();
        } else if self.argument_bytes > self.limits.arguments {
            self.exceed("the arguments of the tool calls are longer than ", self.limits.arguments, " bytes");
        }
    }

    /// Adds to a text that the decoder holds, and counts it.
    pub(crate) fn hold(&mut self, text: &mut String, more: &str) {
        self.count_held(more.len());
        if !grow_text(text, more.len()) {
            self.fail(Excess::Memory.error());
        } else if !self.is_ended {
            text.push_str(more);
        }
    }

    /// Counts bytes that the decoder holds.
    pub(crate) fn count_held(&mut self, bytes: usize) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        if self.held_bytes > self.limits.answer {
            self.exceed_answer();
        }
    }

    #[cold]
    fn exceed_answer(&mut self) {
        self.fail(Excess::Limit(self.limits.answer).error());
    }

    /// Counts bytes of the response: what is not part of the answer must have an end too.
    pub(super) fn count_received(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.received > self.limits.response() {
            self.exceed_answer();
        }
    }

    /// Whether there is memory to read a frame of this length; if not, the answer fails. Of a long frame, texts are
    /// copied: once as they are read, once into the message.
    pub(super) fn has_room_for(&mut self, frame: usize) -> bool {
        let has_room = frame < LONG_FRAME || has_room(frame.saturating_mul(3) + TREE);
        if !has_room {
            self.fail(Excess::Memory.error());
        }
        has_room
    }

    /// Keeps a block that only its provider understands.
    pub(crate) fn keep(&mut self, written: &str) {
        self.count_bytes(written.len());
        if self.count_call()
            && let Ok(data) = RawJson::parse(written)
        {
            self.raw(data);
        }
    }

    /// The answer is whole.
    pub(crate) fn done(&mut self, stop_reason: MessageStopReason) {
        if !self.is_ended {
            self.is_ended = true;
            self.out.push(Event::Done { stop_reason, usage: self.usage });
        }
    }

    /// The answer failed.
    pub(crate) fn fail(&mut self, error: ErrorInfo) {
        if !self.is_ended {
            self.abandon();
            self.is_ended = true;
            self.out.push(Event::Error(error));
        }
    }

    /// Fails with the error that a document holds, if it is one.
    pub(crate) fn fail_if_error(&mut self, document: &str) {
        if let Some(error) = error_in(document) {
            self.fail(error);
        }
    }

    /// Fails because the body ended before the answer was whole. `stray` is the text beside the frames.
    pub(super) fn fail_early(&mut self, stray: &str) {
        let is_no_stream = !self.is_started && !stray.is_empty();
        self.fail(if is_no_stream { no_stream(stray) } else { ended_early(stray) });
    }

    /// Returns the frame that was read last without the raw control characters that made it unreadable.
    pub(super) fn take_mended(&mut self) -> Option<String> {
        self.mended.take()
    }

    /// Judges a frame that is not JSON: the text of an error, the last frame of a connection that was cut, or
    /// the words by which some proxies keep a connection alive.
    pub(crate) fn broken(&mut self, frame: &Frame<'_>, error: &JsonError) {
        self.mended = escaped_controls(frame.data).filter(|text| Value::parse_bounded(text).is_ok());
        if self.mended.is_some() {
            return;
        }
        if frame.event == "error" {
            self.fail(in_stream_text(frame.data));
        } else if !self.is_over && frame.data.starts_with("{") {
            let message = ["a chunk of the stream is no JSON: ", &error.text()].concat();
            self.fail(ErrorInfo::new(ErrorKind::Server, message));
        }
    }

    /// Fails because a limit is exceeded.
    #[cold]
    pub(super) fn exceed(&mut self, before: &str, limit: usize, unit: &str) {
        self.fail(limit_error(before, limit, unit));
    }

    /// Returns the remarks, with what else the answer knows.
    pub(super) fn remarks(&self) -> Remarks {
        let (raw_stop_reason, refusals) = (self.stop_word.clone(), self.blocks.refusals.clone());
        Remarks { raw_stop_reason, refusals, ..self.remarks.clone() }
    }
}

/// Keeps what is known where a later report says zero: neither a prompt nor an answer shrinks to nothing while it is
/// counted. Gateways that do not count write zeros into the last event.
fn keep_counts(known: &Usage, usage: &mut Usage) {
    let prompt =
        |usage: &Usage| usage.input.saturating_add(usage.cache_read).saturating_add(usage.cache_write);
    let is_without_prompt = prompt(usage) == 0 && prompt(known) > 0;
    let is_without_answer = usage.output == 0 && known.output > 0;
    if is_without_prompt {
        (usage.input, usage.cache_read, usage.cache_write) =
            (known.input, known.cache_read, known.cache_write);
    }
    if is_without_answer {
        (usage.output, usage.reasoning) = (known.output, known.reasoning);
    }
    if is_without_prompt || is_without_answer {
        usage.total = 0;
        *usage = usage.totalled();
    }
}
