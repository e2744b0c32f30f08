//! The asynchronous driver. It processes the machine's outputs, starts and drops effects as futures, and
//! feeds their replies back. It decides nothing about the run, spawns nothing and has no executor of its
//! own: whoever polls it runs it.

mod line;
mod start;
mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::stream::{Stream, StreamExt};

use crate::data::json::{ObjectWriter, ToJson};
use crate::data::list::ListWriter;
use crate::host::cancel::CancelToken;
use crate::host::config::AgentLoopConfig;
use crate::host::isolate::guard;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::machine::{AgentCommand, Effect, EffectId, Input, LoopState, Output, Reply, tell_first, unsaid};
use crate::rules::checkpoint::CheckpointEnvelopeV1;
use crate::rules::event::{AgentEvent, RunStopReason};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{AgentError, ErrorKind};
use crate::words::message::{AgentMessage, Usage};

pub(crate) use line::Handover;
pub use line::{AgentLoopResult, Inbox, Next, Published};
use start::is_after_hook;
use tasks::{Polled, Tasks};

/// Starts a run with these messages, on an empty history.
pub fn agent_loop(
    prompts: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> AgentStream {
    AgentStream::standalone(Vec::new(), Input::Begin(prompts), config, context, cancel)
}

/// Starts a run that continues from a history.
///
/// # Errors
/// Misuse, if the history is empty or ends with an assistant message, because there is nothing to answer.
pub fn agent_loop_continue(
    messages: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> Result<AgentStream, AgentError> {
    match messages.last() {
        None => Err(AgentError::new(ErrorKind::Misuse, "cannot continue with an empty message history")),
        Some(AgentMessage::Assistant(_)) => {
            let text = "cannot continue when the last message is an assistant message";
            Err(AgentError::new(ErrorKind::Misuse, text))
        }
        Some(_) => Ok(AgentStream::standalone(messages, Input::Continue, config, context, cancel)),
    }
}

/// A run, as a stream of its events. It makes progress while it is polled. Dropping it stops the run; the
/// history remains consistent.
pub struct AgentStream {
    handover: Handover,
    /// Wakes the run when it is cancelled.
    _watcher: Rc<dyn Fn()>,
    context: AgentRunContext,
    state: LoopState,
    /// The configuration of this turn.
    config: Rc<AgentLoopConfig>,
    /// How the run begins; taken by the first poll.
    begin: Option<Input>,
    outputs: VecDeque<Output>,
    /// The number of outputs that are cancellations, because many calls that start together each check for
    /// their own.
    cancels: usize,
    tasks: Tasks,
    /// The API key of this turn.
    key: KeyOfTurn,
    /// Events from before the checkpoint that have not been emitted yet.
    unemitted: Vec<AgentEvent>,
    /// A reply of an effect, held back until abort and mail have been processed and, for the end of an
    /// answer, until the listeners have received everything before it.
    held: Option<(EffectId, Polled)>,
    /// The model call that sent the last piece of its answer and may have more ready.
    streaming: Option<EffectId>,
    /// The model call that sent the last piece of its answer and is waiting for more.
    paused: Option<EffectId>,
    /// Whether the caller announces calls that start together all at once.
    takes_offers: bool,
    /// Whether a tool has reported progress since progress was last read.
    has_progress: Rc<Cell<bool>>,
    /// Whether the tools of this round have been polled.
    is_round_over: bool,
    is_abort_handled: bool,
    /// The latest reading of the clock.
    now: u64,
    result: Option<AgentLoopResult>,
}

/// The turn, the index of the model, and the key.
type KeyOfTurn = Rc<RefCell<Option<(u32, usize, Option<Rc<str>>)>>>;

impl AgentStream {
    fn standalone(
        messages: Vec<AgentMessage>,
        begin: Input,
        config: AgentLoopConfig,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Self {
        let handover = Handover {
            config: Rc::new(RefCell::new(Rc::new(config))),
            inbox: Inbox::default(),
            used: Rc::default(),
            cancel,
            published: Rc::default(),
            listener: Rc::new(|_| {}),
            receipts: Rc::new(|_, _| {}),
            ended: Rc::new(|| {}),
        };
        let session = SessionState::new(handover.config.borrow().rules.session_state.clone());
        let state = LoopState::new(context.clone(), messages, session);
        AgentStream::new(handover, state, begin, context)
    }

    pub(crate) fn new(handover: Handover, state: LoopState, begin: Input, context: AgentRunContext) -> Self {
        let config = handover.config.borrow().clone();
        let inbox = handover.inbox.clone();
        let watcher: Rc<dyn Fn()> = Rc::new(move || inbox.wake());
        handover.cancel.watch(&watcher);
        let mut stream = AgentStream {
            handover,
            _watcher: watcher,
            context,
            state,
            config,
            begin: Some(begin),
            outputs: VecDeque::new(),
            cancels: 0,
            tasks: Tasks::default(),
            key: KeyOfTurn::default(),
            unemitted: Vec::new(),
            held: None,
            streaming: None,
            paused: None,
            takes_offers: false,
            has_progress: Rc::default(),
            is_round_over: true,
            is_abort_handled: false,
            now: 0,
            result: None,
        };
        stream.publish();
        stream
    }

    /// Returns the ids of the run.
    pub fn context(&self) -> &AgentRunContext {
        &self.context
    }

    /// Returns the inbox, which accepts commands for the run.
    pub fn inbox(&self) -> Inbox {
        self.handover.inbox.clone()
    }

    /// Returns the state of the run.
    pub fn state(&self) -> &LoopState {
        &self.state
    }

    /// Returns the result of the run; `None` until it ends.
    pub fn result(&self) -> Option<&AgentLoopResult> {
        self.result.as_ref()
    }

    /// Continues a run from a checkpoint, with the events that have not been emitted yet.
    pub(crate) fn resumed(
        handover: Handover,
        state: LoopState,
        unemitted: Vec<AgentEvent>,
        context: AgentRunContext,
    ) -> Self {
        let mut stream = AgentStream::new(handover, state, Input::Resume, context);
        stream.unemitted = unemitted;
        stream
    }

    /// Returns a checkpoint of the run, which can be stored and continued elsewhere: see
    /// [`Agent::restore`](crate::agent::Agent::restore). It may be taken at any time, even in the middle of
    /// an answer, a batch or a delay.
    pub fn checkpoint(&mut self) -> CheckpointEnvelopeV1 {
        let is_end_emitted = self.result.is_some();
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(is_end_emitted, &mut object);
        object.end();
        CheckpointEnvelopeV1::of_state(&self.context.run_id, self.state.messages(), &own)
    }

    /// Writes the state of the run: the members that a checkpoint keeps. `is_end_emitted` means that the end of
    /// the run has been emitted, so that the run is only history.
    pub fn write_checkpoint(&mut self, is_end_emitted: bool, out: &mut ObjectWriter<'_>) {
        self.handle_finished();
        let session = self.state.session();
        out.field("session", &session.snapshot()).field("changes", &session.changes());
        out.field("usage", &self.handover.used.get());
        let mut mail = ListWriter::new(out.key("mail"));
        self.handover.inbox.write_mail(&mut mail);
        if !self.is_abort_handled
            && let Some(reason) = self.handover.cancel.reason()
        {
            AgentCommand::Cancel(reason).write_json(mail.item());
        }
        mail.end();
        match &self.begin {
            Some(Input::Begin(prompts)) => drop(out.field("prompts", prompts)),
            Some(Input::Continue) => out.key("prompts").push_str("null"),
            _ if is_end_emitted => {}
            _ => {
                self.update_now();
                let (unannounced, waiting) = unsaid(&self.outputs);
                self.state.write_checkpoint(self.now, &unannounced, out.key("run"));
                let mut unemitted = ListWriter::new(out.key("untold"));
                self.unemitted.iter().for_each(|event| event.write_json(unemitted.item()));
                waiting.iter().for_each(|event| event.write_json(unemitted.item()));
                unemitted.end();
            }
        }
    }

    /// Takes the replies of finished tools, and any held-back reply that only waits for the mail that came
    /// with it to be emitted. What a tool has done and a person has said must not be lost.
    fn handle_finished(&mut self) {
        if self.begin.is_none() && !self.state.is_ended() {
            self.handle_tools();
            self.tasks.begin_round();
            self.handle_tools();
            if let Some((id, polled)) = self.held.take_if(|held| matches!(held.1, Polled::Last(_))) {
                self.take_polled(id, polled);
            }
        }
    }

    /// Runs to the end and returns the result.
    pub async fn finish(mut self) -> AgentLoopResult {
        while self.next().await.is_some() {}
        self.result.clone().unwrap_or_else(|| AgentLoopResult {
            run_id: self.context.run_id.clone(),
            messages: Vec::new(),
            text: String::new(),
            output: None,
            usage: Usage::default(),
            turns: 0,
            stop_reason: RunStopReason::Error,
            error: Some(AgentError::new(ErrorKind::Internal, "the run ended in silence")),
        })
    }

    /// Polls the stream for listeners that receive events in batches. With `is_delivered`, the caller confirms that
    /// everything it received before has reached its listeners. Without it, the run stops at the next
    /// [`Next::Barrier`]: no effect starts and no answer ends before the listeners could respond.
    pub fn poll_output(&mut self, cx: &mut Context<'_>, is_delivered: bool) -> Poll<Next> {
        if let Some(begin) = self.begin.take() {
            self.begin(begin);
        }
        self.streaming = self.streaming.or(self.paused.take());
        loop {
            match self.outputs.pop_front() {
                Some(Output::Event(event)) => {
                    self.emit(&event);
                    return Poll::Ready(Next::Event(event));
                }
                Some(Output::Receipt(id, receipt)) => (self.handover.receipts)(id, receipt),
                Some(Output::Cancel(id)) => {
                    self.cancels = self.cancels.saturating_sub(1);
                    self.drop_effect(id);
                }
                Some(start) if self.takes_offers && !self.has_unhandled() && self.is_offer(&start) => {
                    self.outputs.push_front(start);
                    return Poll::Ready(Next::Offer);
                }
                Some(start @ Output::Start { .. }) if !is_delivered => {
                    self.outputs.push_front(start);
                    return Poll::Ready(Next::Barrier);
                }
                Some(Output::Start { id, effect, announce }) => {
                    // These hooks observe what is already in the history, so they are called regardless of
                    // what has arrived since; then nobody waits for them.
                    if !is_after_hook(&effect) {
                        self.handle_tools();
                        self.handle_commands();
                        if self.is_cancelled(id) {
                            continue;
                        }
                    }
                    if let Some(event) = announce {
                        self.outputs.push_front(Output::Start { id, effect, announce: None });
                        self.outputs.push_front(Output::Event(event));
                        continue;
                    }
                    self.start(id, effect);
                }
                None if self.state.is_ended() => return Poll::Ready(Next::End),
                None if self.streaming.is_some() => {
                    if let Some(event) = self.poll_streaming() {
                        (self.handover.listener)(&event);
                        return Poll::Ready(Next::Event(event));
                    }
                }
                None => match self.poll_tasks(cx, is_delivered) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(Next::Barrier),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    /// Asks for [`Next::Offer`], so that the listeners of a batch are told at once about all calls that
    /// start together.
    pub fn take_offers(&mut self) {
        self.takes_offers = true;
    }

    /// Returns the announcements of the calls that start now, one after the other.
    pub fn each_offered(&self, announce: &mut dyn FnMut(&AgentEvent)) {
        for output in &self.outputs {
            match output {
                Output::Start { announce: Some(event), .. } if self.is_offer(output) => announce(event),
                _ => return,
            }
        }
    }

    /// Announces this many of the offered calls. The others wait for what was posted in the meantime.
    pub fn announced(&mut self, count: usize) {
        for output in self.outputs.iter_mut().take(count) {
            if let Output::Start { announce, .. } = output
                && let Some(event) = announce.take()
            {
                (self.handover.listener)(&event);
            }
        }
    }

    /// Whether the output is a call that may start as soon as its announcement has been emitted.
    fn is_offer(&self, output: &Output) -> bool {
        match output {
            Output::Start { id, effect: Effect::Execute { .. }, announce: Some(_) } => {
                !self.is_cancelled(*id)
            }
            _ => false,
        }
    }

    /// Whether anything has arrived that must be processed before another call starts.
    fn has_unhandled(&self) -> bool {
        self.has_commands() || !self.tasks.is_round_drained()
    }

    /// Applies what was posted before the run, including an abort, before the run begins. A run that
    /// continues from a checkpoint first emits that it does, and then the events not emitted yet.
    #[inline(never)]
    fn begin(&mut self, begin: Input) {
        if matches!(begin, Input::Resume) {
            self.step(begin);
            return tell_first(std::mem::take(&mut self.unemitted), &mut self.outputs);
        }
        while let Some(command) = self.handover.inbox.take() {
            self.step(Input::Command(command));
        }
        self.step(begin);
    }

    /// The fast path for most events: the answer continues, and nothing has happened that would take
    /// precedence.
    fn poll_streaming(&mut self) -> Option<AgentEvent> {
        while let Some(id) = self.streaming.take() {
            if self.held.is_some() || !self.is_round_over || self.has_commands() {
                return None;
            }
            let Some(reply) = self.tasks.poll_if_alone(id) else {
                self.paused = Some(id);
                return None;
            };
            if self.has_commands() {
                // The polled code may itself have aborted or steered, and that takes precedence over its
                // reply.
                self.held = Some((id, Polled::More(reply)));
                return None;
            }
            self.update_now();
            match self.state.apply_stream_event(self.now, id, reply) {
                Ok(event) => {
                    self.streaming = Some(id);
                    if event.is_some() {
                        return event;
                    }
                }
                Err(other) => self.held = Some((id, Polled::More(other))),
            }
        }
        None
    }

    /// Whether an abort or mail is waiting to be processed.
    fn has_commands(&self) -> bool {
        !self.handover.inbox.is_empty() || (!self.is_abort_handled && self.handover.cancel.is_cancelled())
    }

    /// Processes one thing: a tool's reply first, then abort and mail, then the rest. Returns `Ready(true)`
    /// if there was one, and `Ready(false)` if the listeners must be told first.
    #[inline(never)]
    fn poll_tasks(&mut self, cx: &mut Context<'_>, is_delivered: bool) -> Poll<bool> {
        self.tasks.wake_by(cx.waker());
        self.handover.inbox.wake_by(cx.waker());
        if self.is_round_over {
            self.is_round_over = false;
            self.tasks.begin_round();
        }
        if let Some((id, polled)) = self.tasks.poll_round() {
            self.take_polled(id, polled);
            return Poll::Ready(true);
        }
        self.is_round_over = true;
        if self.handle_commands() {
            return Poll::Ready(true);
        }
        if self.held.is_none() {
            self.held = self.tasks.poll_others();
            // The polled code may itself have aborted or steered, and that takes precedence over its reply.
            if self.held.is_some() && self.handle_commands() {
                return Poll::Ready(true);
            }
        }
        match self.held.take() {
            None => {
                if self.tasks.is_empty() && self.handover.inbox.is_closed() {
                    self.step(Input::Deserted);
                    if !self.outputs.is_empty() {
                        return Poll::Ready(true);
                    }
                }
                if self.tasks.has_woken() {
                    // An effect that has woken itself is polled again only after the executor's other tasks
                    // have had their turn.
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Some((id, Polled::More(reply))) if !is_delivered && ends_answer(&reply) => {
                self.held = Some((id, Polled::More(reply)));
                Poll::Ready(false)
            }
            Some((id, polled)) => {
                self.take_polled(id, polled);
                Poll::Ready(true)
            }
        }
    }

    /// Takes the replies of the tools of this round.
    fn handle_tools(&mut self) {
        while let Some((id, polled)) = self.tasks.poll_round() {
            self.take_polled(id, polled);
        }
    }

    fn take_polled(&mut self, id: EffectId, polled: Polled) {
        match polled {
            Polled::More(reply) => {
                self.streaming = matches!(reply, Reply::Stream(_)).then_some(id);
                self.step(Input::Reply(id, reply));
            }
            Polled::Last(reply) => {
                self.handle_progress();
                self.tasks.remove(id);
                self.step(Input::Reply(id, reply));
            }
        }
    }

    /// Takes the progress that tools have reported, before anything that may end them, so that no reported
    /// progress is lost.
    fn handle_progress(&mut self) {
        if !self.has_progress.replace(false) {
            return;
        }
        while let Some((id, polled)) = self.tasks.take_progress() {
            self.take_polled(id, polled);
        }
    }

    /// Processes abort and mail. Returns whether there was any.
    fn handle_commands(&mut self) -> bool {
        let mut has_handled = false;
        if !self.is_abort_handled && self.handover.cancel.is_cancelled() {
            self.is_abort_handled = true;
            has_handled = true;
            self.handle_progress();
            let reason = self.handover.cancel.reason().unwrap_or_else(|| "the run was aborted".into());
            self.step(Input::Abort(reason));
        }
        self.handle_inbox() || has_handled
    }

    fn handle_inbox(&mut self) -> bool {
        let mut has_handled = false;
        // Commands that arrive after the end are for the next run.
        while !self.state.is_ended()
            && let Some(command) = self.handover.inbox.take()
        {
            has_handled = true;
            self.handle_progress();
            self.step(match command {
                AgentCommand::Steer(letter) => Input::Steer(self.handover.inbox.with_steering_after(letter)),
                command => Input::Command(command),
            });
        }
        has_handled
    }

    fn step(&mut self, input: Input) {
        self.update_now();
        // Usually the list is empty; then the machine writes directly into it, and nothing has to be moved.
        let is_behind = !self.outputs.is_empty();
        let mut out = if is_behind { Vec::new() } else { Vec::from(std::mem::take(&mut self.outputs)) };
        self.state.step(&self.config.rules, self.now, input, &mut out);
        self.cancels += out.iter().filter(|output| matches!(output, Output::Cancel(_))).count();
        if is_behind {
            self.outputs.extend(out)
        } else {
            self.outputs = out.into()
        }
        self.publish();
    }

    /// Reads the clock. If the clock fails, time stands still.
    fn update_now(&mut self) {
        self.now = guard(|| Ok(self.config.ports.timer.now())).unwrap_or(self.now);
    }

    /// Publishes what has changed.
    fn publish(&mut self) {
        let mut published = self.handover.published.borrow_mut();
        let messages = self.state.messages();
        if published.epoch != self.state.epoch() {
            published.epoch = self.state.epoch();
            published.messages = messages.to_vec();
        } else if let Some(fresh) = messages.get(published.messages.len()..) {
            published.messages.extend_from_slice(fresh);
        }
        published.usage = *self.state.usage();
        self.state.approvals.update_pending(&mut published.pending_approvals);
    }

    /// Emits an event to the listeners. When they receive the end, the run is over: they may begin another
    /// one.
    fn emit(&mut self, event: &AgentEvent) {
        self.note_end(event);
        (self.handover.listener)(event);
        if let AgentEvent::AgentEnd { .. } = event {
            (self.handover.ended)();
        }
    }

    /// Leaves what is in the queues, and what is known about the messages, to the next run.
    fn hand_over(&mut self) {
        let mut published = self.handover.published.borrow_mut();
        published.ended = true;
        (published.steering, published.follow_up) = self.state.take_queues();
        published.known = Some(Box::new(self.state.take_history()));
    }

    fn note_end(&mut self, event: &AgentEvent) {
        if let AgentEvent::AgentEnd { messages, stop_reason, usage, turns, error } = event {
            self.hand_over();
            let last = messages.iter().rev().find_map(|message| match message {
                AgentMessage::Assistant(answer) => Some(answer.text()),
                _ => None,
            });
            let output = self.state.output().cloned();
            self.result = Some(AgentLoopResult {
                run_id: self.context.run_id.clone(),
                messages: messages.clone(),
                text: output.as_ref().map(|json| json.as_str().to_owned()).or(last).unwrap_or_default(),
                output,
                usage: *usage,
                turns: *turns,
                stop_reason: *stop_reason,
                error: error.clone().map(AgentError::from),
            });
        }
    }

    fn drop_effect(&mut self, id: EffectId) {
        self.tasks.remove(id);
        if self.held.as_ref().is_some_and(|(held, _)| *held == id) {
            self.held = None;
        }
    }

    /// Whether a cancellation of the effect is among the outputs.
    fn is_cancelled(&self, id: EffectId) -> bool {
        let is_this = |output: &Output| matches!(output, Output::Cancel(cancelled) if *cancelled == id);
        self.cancels > 0 && self.outputs.iter().any(is_this)
    }
}

impl Stream for AgentStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        match self.poll_output(cx, true) {
            Poll::Ready(Next::Event(event)) => Poll::Ready(Some(event)),
            Poll::Ready(Next::Barrier | Next::Offer | Next::End) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for AgentStream {
    /// A run that is no longer polled is stopped, so that its history is consistent, and its end is
    /// emitted.
    fn drop(&mut self) {
        if self.result.is_some() {
            return;
        }
        match self.begin.take() {
            None => {}
            // The run began before its checkpoint.
            Some(begin @ Input::Resume) => self.begin(begin),
            Some(_) => {
                // The run never began, so there is nothing to emit.
                self.hand_over();
                return (self.handover.ended)();
            }
        }
        // In the second step only the error hooks can be left, and nobody waits for them.
        for _ in 0..2 {
            self.step(Input::Abort("the run was dropped".into()));
        }
        while let Some(output) = self.outputs.pop_front() {
            match output {
                Output::Event(event) => self.emit(&event),
                Output::Receipt(id, receipt) => (self.handover.receipts)(id, receipt),
                Output::Start { .. } | Output::Cancel(_) => {}
            }
        }
    }
}

fn ends_answer(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::StreamEnded
            | Reply::Stream(AssistantMessageEvent::Done { .. } | AssistantMessageEvent::Error(_))
    )
}
