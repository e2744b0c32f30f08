//! The progress of an answer. It belongs to the [`SseDecoder`](super::frames::SseDecoder); what a wire's
//! decoder does to it becomes events.

use crate::data::json::{JsonError, RawJson};
use crate::rules::stream::AssistantMessageEvent as Event;
use crate::wires::Remarks;
use crate::wires::errors::{ended_early, error_in, in_stream_text, no_stream};
use crate::wires::limits::{Limits, limit_error};
use crate::wires::sse::Frame;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{MessageStopReason, Usage};

use super::blocks::Blocks;
use super::stop::filter_of;
use super::template::Holes;

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
    usage: Option<Usage>,
    is_started: bool,
    /// `Done` or `Error` is out.
    pub(crate) is_ended: bool,
    /// The body has ended: the last frame may be truncated.
    pub(super) is_over: bool,
    calls: usize,
    argument_bytes: usize,
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
    pub(crate) fn report_usage(&mut self, usage: Usage) {
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
        if self.argument_bytes > self.limits.arguments {
            self.exceed("the arguments of the tool calls are longer than ", self.limits.arguments, " bytes");
        }
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

    /// Judges a frame that is not JSON: the text of an error, the last frame of a connection that was cut, or
    /// the words by which some proxies keep a connection alive.
    pub(crate) fn broken(&mut self, frame: &Frame<'_>, error: &JsonError) {
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
