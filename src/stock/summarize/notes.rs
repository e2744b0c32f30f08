//! A compaction in progress: the model reads the conversation part by part and keeps notes.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;

use super::Summarizer;
use crate::data::text;
use crate::host::ports::{AgentRunContext, Compaction, CompactionCall};
use crate::rules::context::{Split, estimate_tokens};
use crate::rules::estimate::{tokens_of_text, was_refused};
use crate::rules::overflow::is_context_overflow;
use crate::rules::retry::RetryVerdict;
use crate::rules::stream::{AssistantMessageEvent as E, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::CompactionReport;
use crate::words::message::{LlmMessage, MessageStopReason as S, Usage, UserMessage};

const TASK: &str = "You keep the notes of a long conversation between a user and an assistant that works with tools. \
The conversation does not fit any more: from now on the assistant has your notes in the place of what you are shown. \
Write down what it needs to go on as if nothing was missing: what the user wants, in the user's own words where they \
matter; what was decided and why; what was done and found out, with names, paths, numbers and errors exactly as they \
stand; what is still to do. Do not answer the conversation, do not add anything. Only the notes, no more than a page.";

/// Precedes the summary in the history.
pub const SUMMARY_HEAD: &str = "Notes of the conversation up to here, which was shortened:\n\n";

/// The length in bytes to which a longer summary is cut.
const LONGEST_SUMMARY: usize = 40_000;

/// Parts below this number of bytes are not halved any more.
const SMALLEST_PART: usize = 8_000;

/// A compaction in progress: the parts of the conversation, one after the other.
pub(super) struct Summarizing {
    summarizer: Summarizer,
    context: AgentRunContext,
    call: CompactionCall,
    split: Split,
    usage: Usage,
    key: Option<Rc<str>>,
    /// The notes so far.
    summary: String,
    /// The number of entries that the notes cover.
    done: usize,
    part_bytes: usize,
    /// The attempt of the current call, counted from 1.
    attempt: u32,
    stage: Stage,
}

/// What the work is waiting for.
enum Stage {
    Key(LocalBoxFuture<'static, Result<Option<Rc<str>>, String>>),
    Answer {
        events: LocalBoxStream<'static, E>,
        timeout: Option<LocalBoxFuture<'static, ()>>,
        received: String,
        reported: Usage,
        /// The tokens of the request, as an estimate.
        asked: u64,
        /// When the answer has taken too long.
        ends: u64,
        /// The number of entries in the current call.
        taken: usize,
    },
    BackOff(LocalBoxFuture<'static, ()>),
}

/// Written by hand instead of as an `async` function: nested ones were the largest function of the Wasm
/// file.
impl Future for Summarizing {
    type Output = Result<Compaction, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let work = &mut *self;
        loop {
            match &mut work.stage {
                Stage::Key(key) => work.key = ready!(key.as_mut().poll(cx))?,
                Stage::BackOff(sleep) => ready!(sleep.as_mut().poll(cx)),
                Stage::Answer { events, timeout, received, reported, asked, ends, taken } => {
                    let event = match (events.as_mut().poll_next(cx), &mut *timeout) {
                        (Poll::Ready(_), _) if work.summarizer.dependencies.timer.now() >= *ends => {
                            let text = "the notes were not complete in time";
                            Some(E::Error(ErrorInfo::new(ErrorKind::Timeout, text)))
                        }
                        (Poll::Ready(event), _) => event,
                        (Poll::Pending, None) => return Poll::Pending,
                        (Poll::Pending, Some(sleep)) => {
                            ready!(sleep.as_mut().poll(cx));
                            Some(E::Error(network("the model was silent for too long")))
                        }
                    };
                    let outcome = receive(event, received, reported);
                    if let Some(outcome) = &outcome {
                        // Counts even if the answer failed, because it was paid for.
                        let told = reported.totalled();
                        let used = work.summarizer.used(told, *asked, received, outcome.as_ref().err());
                        work.usage.add(&used);
                    }
                    match outcome {
                        None => {
                            let limit = work.summarizer.dependencies.timeouts.chunk;
                            *timeout = limit.map(|ms| work.summarizer.dependencies.timer.sleep(ms));
                            continue;
                        }
                        Some(Ok(text)) => {
                            work.summary = text;
                            work.done += *taken;
                            work.attempt = 1;
                        }
                        Some(Err(error)) => match work.fail(error) {
                            Err(text) => return Poll::Ready(work.given_up(text)),
                            Ok(Some(sleep)) => {
                                work.stage = Stage::BackOff(sleep);
                                continue;
                            }
                            Ok(None) => {}
                        },
                    }
                }
            }
            if work.done == work.split.entries.len() {
                return Poll::Ready(Ok(work.finish()));
            }
            work.stage = work.ask();
        }
    }
}

impl Summarizing {
    /// Waits for the key first.
    pub(super) fn new(
        summarizer: Summarizer,
        context: AgentRunContext,
        call: CompactionCall,
        split: Split,
        key: LocalBoxFuture<'static, Result<Option<Rc<str>>, String>>,
    ) -> Self {
        Summarizing {
            part_bytes: summarizer.rules.part_bytes,
            summarizer,
            context,
            call,
            split,
            usage: Usage::default(),
            key: None,
            summary: String::new(),
            done: 0,
            attempt: 1,
            stage: Stage::Key(key),
        }
    }

    /// Summarizes the next part: the part and the notes so far become the new notes.
    fn ask(&self) -> Stage {
        let dependencies = &self.summarizer.dependencies;
        let rest = self.split.entries.get(self.done..).unwrap_or_default();
        let taken = fitting_count(rest, self.part_bytes);
        let (request, asked) = self.request(rest.get(..taken).unwrap_or_default());
        let limit = dependencies.timeouts.first_chunk.or(dependencies.timeouts.chunk);
        Stage::Answer {
            events: dependencies.model.stream_fn.stream(request, &self.context, self.call.cancel.clone()),
            timeout: limit.map(|ms| dependencies.timer.sleep(ms)),
            received: String::new(),
            reported: Usage::default(),
            asked,
            ends: dependencies.timeouts.end_of_answer(dependencies.timer.now()),
            taken,
        }
    }

    /// Handles an error: waits, starts over with smaller parts, or gives up.
    fn fail(&mut self, error: ErrorInfo) -> Result<Option<LocalBoxFuture<'static, ()>>, String> {
        let dependencies = &self.summarizer.dependencies;
        if is_overflow(&error) && self.part_bytes / 2 >= SMALLEST_PART {
            self.part_bytes /= 2;
            self.attempt = 1;
            return Ok(None);
        }
        match dependencies.retry.delay(&error, self.attempt, (dependencies.random)()) {
            RetryVerdict::Wait(ms) if !is_overflow(&error) => {
                self.attempt += 1;
                Ok(Some(dependencies.timer.back_off(ms)))
            }
            _ => Err(error.message),
        }
    }

    /// There are no notes; what was tried counts, if it used anything.
    fn given_up(&self, text: String) -> Result<Compaction, String> {
        match self.usage == Usage::default() {
            true => Err(text),
            false => Ok(Compaction { failed: Some(text), usage: self.usage, ..Compaction::default() }),
        }
    }

    /// Returns what replaces the conversation.
    fn finish(&mut self) -> Compaction {
        let split = &mut self.split;
        let summary = UserMessage::from_text([SUMMARY_HEAD, &self.summary].concat());
        let dropped = self.call.messages.len().saturating_sub(split.kept.len());
        let mut messages = Vec::with_capacity(split.kept.len() + 2);
        messages.extend(split.request.take());
        messages.push(summary.into());
        messages.append(&mut split.kept);
        let report = CompactionReport {
            text: ["summarised ", &text::number(dropped), " messages"].concat(),
            dropped_count: u64::try_from(dropped).unwrap_or(u64::MAX),
            tokens_before: split.tokens,
            tokens_after: messages.iter().map(estimate_tokens).fold(0, u64::saturating_add),
            overflow: true,
        };
        Compaction { messages, report: Some(report), usage: self.usage, failed: None }
    }

    /// The request for a part, and its tokens.
    fn request(&self, part: &[String]) -> (ModelRequest, u64) {
        let before = if self.summary.is_empty() { "" } else { "\n\n# Your notes of what came before\n\n" };
        let text = [
            "# The conversation",
            before,
            &self.summary,
            "\n\n",
            &part.join("\n\n"),
            "\n\n# Now write the notes.",
        ];
        let text = text.concat();
        let tokens = tokens_of_text(TASK).saturating_add(tokens_of_text(&text));
        let message = Rc::new(UserMessage::from_text(text));
        let request = ModelRequest {
            model: self.summarizer.dependencies.model.id.clone(),
            system_prompt: TASK.into(),
            messages: Rc::new(vec![LlmMessage::User(message)]),
            tools: Rc::new([]),
            options: self.summarizer.dependencies.options.clone(),
            api_key: self.key.clone(),
            output: None,
            session_id: None,
        };
        (request, tokens)
    }
}

impl Summarizer {
    /// What an answer used: as the provider has told, or an estimate, unless the server refused the request unread.
    fn used(&self, told: Usage, asked: u64, received: &str, error: Option<&ErrorInfo>) -> Usage {
        let model = &self.dependencies.model.stream_fn;
        let is_unread = received.is_empty() && error.is_some_and(was_refused);
        if told.total > 0 || is_unread || !model.estimates_usage() {
            return told;
        }
        let mut used =
            Usage { input: asked, output: tokens_of_text(received), estimated: true, ..told }.totalled();
        used.cost = model.price().map(|price| price.of(&used));
        used
    }
}

/// Reads an event of the answer; returns the end of the answer if this was it.
fn receive(
    event: Option<E>,
    received: &mut String,
    reported: &mut Usage,
) -> Option<Result<String, ErrorInfo>> {
    match event {
        Some(E::Start) => received.clear(),
        Some(E::TextDelta { delta, .. }) if received.len() < LONGEST_SUMMARY => received.push_str(&delta),
        Some(E::Done { usage, stop_reason }) => {
            *reported = usage.unwrap_or(*reported);
            // A refusal must not replace the conversation.
            let is_whole = matches!(stop_reason, S::Stop | S::Length | S::ToolUse | S::Pause);
            return Some(match received.trim() {
                text if is_whole && !text.is_empty() => Ok(text.to_owned()),
                _ => Err(ErrorInfo::new(ErrorKind::Unknown, "the model gave no summary")),
            });
        }
        Some(E::Usage(usage)) => *reported = usage,
        Some(E::Error(error)) => return Some(Err(error)),
        None => return Some(Err(network("the answer ended before it was complete"))),
        Some(_) => {}
    }
    None
}

fn network(text: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Network, text)
}

fn is_overflow(error: &ErrorInfo) -> bool {
    match error.code {
        ErrorKind::ContextOverflow => true,
        ErrorKind::Unknown => error.provider.is_none() && is_context_overflow(&error.message),
        _ => false,
    }
}

/// Returns how many entries fit into one call; at least one.
fn fitting_count(entries: &[String], bytes: usize) -> usize {
    let mut left = bytes;
    let fit = entries.iter().take_while(|entry| {
        let fits = entry.len() <= left;
        left = left.saturating_sub(entry.len());
        fits
    });
    fit.count().max(1)
}
