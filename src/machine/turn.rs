//! A run and its turns, from top to bottom: begin, prepare, infer (in `infer.rs`), dispatch (in
//! `dispatch.rs`), end, poll, close.

use std::rc::Rc;

use crate::data::json::{ToJson, Value};
use crate::host::config::{QueueMode, SteeringTime};
use crate::host::isolate::guard;
use crate::host::ports::{Compaction, HookCall};
use crate::rules::event::{AgentEvent, RunStopReason, TurnEndReason};
use crate::rules::policy::{PolicyContext, PostTurn, Transform, Verdict};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, ToolCallBlock, ToolResultMessage, Usage,
    UserMessage,
};

use super::output::Answered;
use super::state::{AfterPoll, Ask, AskStep, Letter, Phase, Turn};
use super::{AgentCommand, Effect, EffectId, Input, Output, Queue, Receipt, Reply, Step};

/// The maximum number of consecutive answers that may ask for another call without a new message.
const MAX_PAUSES: u32 = 5;

/// Asks the next policy of a slot.
type NextVerdict<'a> = dyn FnMut(&PolicyContext<'_>) -> Option<Result<Verdict, String>> + 'a;

/// What the policies of a slot decided together.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) stop: bool,
    pub(super) injected: Vec<AgentMessage>,
}

impl Step<'_> {
    pub(super) fn handle(&mut self, input: Input) {
        match input {
            Input::Begin(prompts) => self.begin(prompts),
            Input::Continue => self.continue_run(),
            Input::Resume => self.resume_run(),
            Input::Reply(id, reply) => self.reply(id, reply),
            Input::Command(command) => self.command(command),
            Input::Steer(letters) => self.receive_steering(letters),
            Input::Abort(reason) => self.abort(&reason),
        }
    }

    #[inline(never)]
    fn begin(&mut self, prompts: Vec<AgentMessage>) {
        if !matches!(self.state.phase, Phase::Idle) {
            return;
        }
        let now = self.now;
        self.state.pending.clear();
        for message in prompts {
            self.state.pending.push(Letter { message: message.stamped(now), receipt: 0 });
        }
        self.open_run();
    }

    fn continue_run(&mut self) {
        if !matches!(self.state.phase, Phase::Idle) {
            return;
        }
        // After an assistant message there is nothing to answer except what is in the queues, so both are
        // drained.
        if let Some(AgentMessage::Assistant(_)) = self.state.history.messages().last() {
            let mut waiting = std::mem::take(&mut self.state.steering);
            waiting.append(&mut self.state.follow_up);
            self.state.pending = waiting;
        }
        self.open_run();
    }

    fn open_run(&mut self) {
        self.emit(AgentEvent::AgentStart);
        self.state.began = self.now;
        if let Some(ms) = self.rules.timeouts.total {
            self.state.total_timer = Some(self.start(Effect::Sleep { ms }));
        }
        if self.rules.steering.before_first_call {
            self.poll(Queue::Steering, AfterPoll::Turn);
        } else {
            self.begin_turn();
        }
    }

    pub(super) fn begin_turn(&mut self) {
        self.open_turn();
        self.prepare(false);
    }

    fn open_turn(&mut self) {
        self.state.turn = Turn { open: true, fresh_from: Some(self.state.seen), ..Turn::default() };
        self.emit(AgentEvent::TurnStart { turn_index: self.state.turn_index });
        self.append_pending();
    }

    /// Moves the messages waiting for this turn into the history.
    pub(super) fn append_pending(&mut self) {
        for letter in std::mem::take(&mut self.state.pending) {
            let turn_index = self.state.turn_index;
            self.state.pauses = 0;
            self.append_in_view(letter.message);
            if letter.receipt > 0 {
                self.out.push(Output::Receipt(letter.receipt, Receipt::Delivered { turn_index }));
            }
        }
    }

    /// Messages that arrived while room was made are part of the repeated call.
    pub(super) fn append_arrived(&mut self) {
        let mut arrived = self.take_steering();
        self.state.pending.append(&mut arrived);
        self.append_pending();
    }

    /// Appends a message that is also in this turn's request, whatever view of the history that shows.
    fn append_in_view(&mut self, message: AgentMessage) {
        let message = message.stamped(self.now);
        if let Some(view) = &mut self.state.turn.view {
            view.push(message.clone());
        }
        self.append(message);
    }

    pub(super) fn append(&mut self, message: AgentMessage) {
        let message = message.stamped(self.now);
        self.state.new_messages.push(message.clone());
        self.state.history.push(message);
    }

    /// Always an effect, even without a transformer, so that anything listeners do in response to
    /// `turn_start` is known before the rules read the history.
    pub(super) fn prepare(&mut self, overflow: bool) {
        let effect = self.start(Effect::Prepare { overflow });
        self.state.phase = Phase::Preparing { effect, overflow };
    }

    #[inline(never)]
    fn prepared(&mut self, result: Result<Transform, String>, overflow: bool) {
        self.state.turn.overflow_signal = overflow;
        self.state.turn.view = None;
        let transformed = result.and_then(|transform| self.transform(transform, overflow));
        // The policies of this turn still see the signal; the next transform does not, unless it is set
        // again.
        match transformed {
            Err(text) => {
                let error =
                    ErrorInfo::new(ErrorKind::Hook, ["the context transformer failed: ", &text].concat());
                self.cut_message(MessageStopReason::Error, error.in_phase("transform_context"));
            }
            Ok(reported) if overflow => self.recovered(reported),
            Ok(_) if self.state.turn.message_open => self.ask_again(),
            Ok(_) if self.is_too_long() => {
                self.state.turn.sought_room = true;
                self.prepare(true);
            }
            Ok(_) => self.pre_turn(),
        }
    }

    /// Whether the model is known to have too little room for the history and an answer. Reported once per
    /// turn. A host that shows the model a view of its own knows itself what fits.
    fn is_too_long(&mut self) -> bool {
        let Some(window) = self.rules.models.first().and_then(|model| model.context_window) else {
            return false;
        };
        if self.state.turn.sought_room || self.state.turn.view.is_some() || self.is_out_of_turns() {
            return false;
        }
        let answer = self.rules.stream_options.max_tokens.unwrap_or_default().min(window / 2);
        self.state.history.tokens().1.saturating_add(answer) > window
    }

    /// Applies the asynchronous transformer's result, then the synchronous transformers in order. Returns
    /// whether one of them reported a change.
    fn transform(&mut self, first: Transform, overflow: bool) -> Result<bool, String> {
        let mut reported = self.apply(first, overflow);
        for transformer in &self.rules.transformers {
            let context = self.state.turn.view.as_deref().unwrap_or(self.state.history.messages());
            let answer = guard(|| transformer.transform(context, overflow))?;
            reported |= self.apply(answer, overflow);
        }
        Ok(reported)
    }

    fn apply(&mut self, transform: Transform, overflow: bool) -> bool {
        match transform {
            Transform::Unchanged => false,
            Transform::View(view) => {
                self.state.turn.view = Some(view);
                false
            }
            Transform::Replace { messages, report } => {
                self.state.turn.view = None;
                self.state.history.replace(messages);
                let reported = report.is_some();
                if let Some(mut report) = report {
                    report.overflow = overflow;
                    let refusal = if overflow { self.state.turn.overflow.take() } else { None };
                    self.discard_shown(refusal.as_ref().map_or("", |refusal| &refusal.message));
                    self.emit(AgentEvent::ContextCompacted { report });
                }
                reported
            }
        }
    }

    /// Handles the end of the transformers during an overflow. If none of them shortened anything, the
    /// compaction engine is called.
    fn recovered(&mut self, reported: bool) {
        self.state.turn.overflow_signal = false;
        if !self.state.turn.message_open {
            // The model has not refused anything yet, so a shorter view is sufficient.
            if reported || self.state.turn.view.is_some() { self.pre_turn() } else { self.compact() }
        } else if reported {
            self.append_arrived();
            self.ask_again();
        } else {
            self.compact();
        }
    }

    /// There is room, so the model is called again; what it said before it refused does not count.
    fn discard_shown(&mut self, reason: &str) {
        let shown = std::mem::take(&mut self.state.turn.shown);
        self.state.usage.add(&shown.usage.totalled());
        self.reset_message(&shown, reason);
    }

    pub(super) fn compact(&mut self) {
        let model = self.rules.models.first().map_or_else(|| "".into(), |model| model.id.clone());
        let effect = self.start(Effect::Compact { model });
        self.state.phase = Phase::Compacting { effect };
    }

    #[inline(never)]
    fn compacted(&mut self, result: Option<Result<Compaction, String>>) {
        let overflow = self.state.turn.overflow.take();
        let overflow =
            overflow.unwrap_or_else(|| ErrorInfo::new(ErrorKind::ContextOverflow, "the context is too long"));
        let is_refused = self.state.turn.message_open;
        match result {
            // That was an estimate; the model has the last word.
            None | Some(Err(_)) if !is_refused => self.pre_turn(),
            None => self.cut_message(MessageStopReason::Error, overflow),
            Some(Err(text)) => {
                let message = [&overflow.message, "; the compaction engine failed: ", &text].concat();
                let phase = Some("compaction".to_owned());
                self.cut_message(MessageStopReason::Error, ErrorInfo { message, phase, ..overflow });
            }
            Some(Ok(Compaction { messages, report, usage })) => {
                self.state.usage.add(&usage);
                self.discard_shown(&overflow.message);
                self.apply(Transform::Replace { messages, report }, true);
                if is_refused {
                    self.append_arrived();
                }
                // What the transformers leave out of requests is left out of this one too.
                self.prepare(false);
            }
        }
    }

    fn is_out_of_turns(&self) -> bool {
        self.rules.max_turns.is_some_and(|max| self.state.turns >= max)
    }

    #[inline(never)]
    fn pre_turn(&mut self) {
        if self.is_out_of_turns() {
            return self.stop_before_call(RunStopReason::MaxTurns);
        }
        let mut policies = self.rules.pre_turn.iter();
        let decided = self.decide(policies.len(), &mut |context| Some(policies.next()?.evaluate(context)));
        self.state.turn.overflow_signal = false;
        self.state.turn.fresh_from = None;
        if decided.stop {
            return self.stop_before_call(RunStopReason::PolicyStop);
        }
        for message in decided.injected {
            self.append_in_view(message);
        }
        self.ask();
    }

    fn stop_before_call(&mut self, reason: RunStopReason) {
        self.state.turn.open = false;
        self.emit(AgentEvent::TurnEnd {
            turn_index: self.state.turn_index,
            message: None,
            tool_results: Vec::new(),
            reason: TurnEndReason::Complete,
        });
        self.end_run(reason, None);
    }

    /// Evaluates the given number of policies of a slot in order; `next` evaluates one. The first `Stop`
    /// wins and discards the injections before it.
    fn decide(&self, policies: usize, next: &mut NextVerdict<'_>) -> Decided {
        let mut decided = Decided::default();
        if policies == 0 {
            return decided;
        }
        let state = self.state.session.snapshot();
        let context = self.policy_context(&state);
        for _ in 0..policies {
            match guard(|| next(&context).unwrap_or(Ok(Verdict::Continue))) {
                Ok(Verdict::Continue) | Err(_) => {}
                Ok(Verdict::Inject(mut messages)) => decided.injected.append(&mut messages),
                Ok(Verdict::Stop(_)) => return Decided { stop: true, injected: Vec::new() },
            }
        }
        decided
    }

    fn policy_context<'c>(&'c self, state: &'c crate::data::json::Map) -> PolicyContext<'c> {
        // After the call it is the history that counts.
        let view = self.state.turn.view.as_deref().filter(|_| self.state.turn.fresh_from.is_some());
        let view = view.unwrap_or(self.state.history.messages());
        PolicyContext {
            run_id: &self.state.context.run_id,
            turn_index: self.state.turn_index,
            usage: &self.state.usage,
            message_count: view.len(),
            new_messages: self.fresh_messages(),
            overflow_signal: self.state.turn.overflow_signal,
            state,
        }
    }

    /// Returns the messages appended since the last turn.
    fn fresh_messages(&self) -> &[AgentMessage] {
        let from = self.state.turn.fresh_from.unwrap_or(self.state.new_messages.len());
        self.state.new_messages.get(from..).unwrap_or_default()
    }

    /// The answer has no calls.
    #[inline(never)]
    pub(super) fn finish_text_turn(&mut self, message: &Rc<AssistantMessage>, place: usize) {
        let rejected = match self.check_text(message) {
            Answered::AsItIs => None,
            Answered::Fits(output) => {
                self.state.output = Some(output);
                None
            }
            Answered::Misses(why) => Some(self.reject_output(&why)),
        };
        let paused = message.stop_reason == MessageStopReason::Pause && self.state.pauses < MAX_PAUSES;
        self.state.pauses = if paused { self.state.pauses + 1 } else { 0 };
        let (decided, message) = self.post_turn(message, place, &[]);
        if let Some(Err(error)) = rejected {
            self.end_turn(Some(message), Vec::new(), TurnEndReason::Error);
            return self.end_run(RunStopReason::Error, Some(*error));
        }
        self.end_turn(Some(message), Vec::new(), TurnEndReason::Complete);
        if decided.stop {
            return self.end_run(RunStopReason::PolicyStop, None);
        }
        if let Some(Ok(message)) = rejected {
            self.inject(vec![message]);
        }
        self.inject(decided.injected);
        let then = if paused { AfterPoll::Turn } else { AfterPoll::TurnIfPending };
        self.poll(Queue::Steering, then);
    }

    /// Evaluates the policies. Returns what they decided, and the message, which they may have replaced.
    pub(super) fn post_turn(
        &mut self,
        message: &Rc<AssistantMessage>,
        place: usize,
        results: &[Rc<ToolResultMessage>],
    ) -> (Decided, Rc<AssistantMessage>) {
        let mut message = message.clone();
        self.state.turn.fresh_from = None;
        let mut policies = self.rules.post_turn.iter();
        let mut decided = self.decide(policies.len(), &mut |context| {
            Some(policies.next()?.evaluate(&PostTurn {
                context: *context,
                message: &message,
                tool_results: results,
                messages: self.state.history.messages(),
            }))
        });
        let mut injected = Vec::new();
        for candidate in std::mem::take(&mut decided.injected) {
            match candidate {
                AgentMessage::Assistant(replacement) => {
                    if let Some(replacement) = with_calls_of(&message, &replacement) {
                        message = Rc::new(replacement);
                        self.amend(place, &message);
                    }
                }
                other => injected.push(other),
            }
        }
        decided.injected = injected;
        (decided, message)
    }

    /// Replaces the answer in the history.
    pub(super) fn amend(&mut self, place: usize, message: &Rc<AssistantMessage>) {
        let old = self.state.history.messages().get(place).cloned();
        self.state.history.amend(place, AgentMessage::Assistant(message.clone()));
        let slot = old.and_then(|old| self.state.new_messages.iter_mut().rev().find(|m| m.is_same(&old)));
        if let Some(slot) = slot {
            *slot = AgentMessage::Assistant(message.clone());
        }
    }

    pub(super) fn end_turn(
        &mut self,
        message: Option<Rc<AssistantMessage>>,
        tool_results: Vec<Rc<ToolResultMessage>>,
        reason: TurnEndReason,
    ) {
        self.flush_state();
        self.state.turn.open = false;
        self.state.seen = self.state.new_messages.len();
        let turn_index = self.state.turn_index;
        self.state.turn_index += 1;
        self.emit(AgentEvent::TurnEnd { turn_index, message, tool_results, reason });
    }

    fn flush_state(&mut self) {
        let changes = self.state.session.take_changes();
        if !changes.is_empty() {
            self.emit(AgentEvent::StateChanged { changes: Value::Object(changes).to_raw() });
        }
    }

    pub(super) fn inject(&mut self, messages: Vec<AgentMessage>) {
        for message in messages {
            self.state.pending.push(Letter { message, receipt: 0 });
        }
    }

    /// Always an effect, even without a provider, so that anything listeners do in response to `turn_end`
    /// is known before the run ends.
    pub(super) fn poll(&mut self, queue: Queue, then: AfterPoll) {
        let effect = self.start(Effect::Poll(queue));
        self.state.phase = Phase::Polling { effect, queue, then };
    }

    /// The poll was answered, or messages that arrived in the meantime make its answer unnecessary.
    /// Steering comes first.
    #[inline(never)]
    fn polled(&mut self, queue: Queue, then: AfterPoll) {
        let mut taken = self.take_steering();
        if taken.is_empty() && queue == Queue::FollowUp {
            taken = take(&mut self.state.follow_up, self.rules.follow_up);
        }
        self.state.pending.append(&mut taken);
        if then == AfterPoll::Turn || !self.state.pending.is_empty() {
            return self.begin_turn();
        }
        if queue == Queue::FollowUp {
            return self.end_run(RunStopReason::Completed, None);
        }
        let mut policies = self.rules.post_loop.iter();
        let decided = self.decide(policies.len(), &mut |context| Some(policies.next()?.evaluate(context)));
        if decided.stop {
            return self.end_run(RunStopReason::PolicyStop, None);
        }
        if decided.injected.is_empty() {
            return self.poll(Queue::FollowUp, AfterPoll::TurnIfPending);
        }
        self.inject(decided.injected);
        self.begin_turn();
    }

    pub(super) fn take_steering(&mut self) -> Vec<Letter> {
        take(&mut self.state.steering, self.rules.steering.delivery)
    }

    pub(super) fn end_run(&mut self, reason: RunStopReason, error: Option<ErrorInfo>) {
        match &error {
            Some(info) if reason == RunStopReason::Error && self.rules.hooks.on_error => {
                let effect = self.start(Effect::Hook(HookCall::OnError { error: info.clone() }));
                self.state.phase = Phase::Closing { effect, reason, error };
            }
            _ => self.close(reason, error),
        }
    }

    pub(super) fn close(&mut self, stop_reason: RunStopReason, error: Option<ErrorInfo>) {
        let timer = self.state.total_timer.take();
        self.cancel_some(timer);
        for (poll, _) in std::mem::take(&mut self.state.polls).iter() {
            self.cancel(*poll);
        }
        self.state.phase = Phase::Ended;
        self.state.end = Some((stop_reason, error.clone()));
        let event = AgentEvent::AgentEnd {
            messages: self.state.new_messages.clone(),
            stop_reason,
            usage: self.state.usage,
            turns: self.state.turns,
            error,
        };
        self.emit(event);
    }

    fn abort(&mut self, reason: &Rc<str>) {
        self.interrupt_run(ErrorInfo::new(ErrorKind::Aborted, reason.as_ref()));
    }

    /// Ends the run in any phase. The error says whether it was aborted or exceeded its time limit.
    #[inline(never)]
    fn interrupt_run(&mut self, error: ErrorInfo) {
        match std::mem::take(&mut self.state.phase) {
            Phase::Idle => {}
            Phase::Ended => self.state.phase = Phase::Ended,
            Phase::Preparing { effect, .. } | Phase::Compacting { effect } => {
                self.cancel(effect);
                self.stop_message(error);
            }
            Phase::Asking(ask) => self.interrupt_ask(*ask, error),
            Phase::Dispatching(batch) => self.interrupt_batch(batch, error),
            Phase::Polling { effect, then, .. }
                if then == AfterPoll::Turn || !self.state.pending.is_empty() =>
            {
                // The turn that was due is emitted in full, so that a listener sees where the run was
                // stopped.
                self.cancel(effect);
                self.open_turn();
                self.stop_message(error);
            }
            Phase::Polling { effect, .. } => {
                self.cancel(effect);
                let reason = stop_reason_of(&error);
                self.end_run(reason, Some(error));
            }
            Phase::Closing { effect, reason, error } => {
                self.cancel(effect);
                self.close(reason, error);
            }
        }
    }

    fn interrupt_ask(&mut self, ask: Ask, error: ErrorInfo) {
        match ask.step {
            AskStep::BeforeHook(effect) | AskStep::BackingOff(effect, _) => {
                self.cancel(effect);
                self.stop_message(error);
            }
            AskStep::Cut(_) => self.stop_message(error),
            AskStep::Streaming(streaming) => {
                self.cancel(streaming.effect);
                self.cancel_some(streaming.watchdog);
                self.cut_stream(streaming, cut_reason(&error), error);
            }
            AskStep::AfterHook(effect, answer) => {
                self.cancel(effect);
                self.interrupt_answer(answer, error);
            }
        }
    }

    fn stop_message(&mut self, error: ErrorInfo) {
        self.cut_message(cut_reason(&error), error);
    }

    /// Ends the turn with an answer that never came.
    pub(super) fn cut_message(&mut self, stop_reason: MessageStopReason, error: ErrorInfo) {
        let shown = std::mem::take(&mut self.state.turn.shown);
        let usage = shown.usage;
        self.cut_message_with(shown.partial(), usage, stop_reason, error);
    }

    /// Ends the turn with what has arrived of its answer.
    pub(super) fn cut_message_with(
        &mut self,
        content: Vec<ContentBlock>,
        usage: Usage,
        stop_reason: MessageStopReason,
        error: ErrorInfo,
    ) {
        if !self.state.turn.message_open {
            self.emit(AgentEvent::MessageStart);
        }
        let mut message = self.message(self.state.turn.asked, content, &usage, stop_reason);
        message.error = Some(error.clone());
        let message = Rc::new(message);
        self.state.usage.add(&message.usage);
        self.state.turn.message_open = false;
        self.emit(AgentEvent::MessageEnd { message: message.clone() });
        let place = self.state.history.messages().len();
        self.append(AgentMessage::Assistant(message.clone()));
        let results = self.answer_cut_calls(&message);
        let (_, message) = self.post_turn(&message, place, &results);
        let aborted = stop_reason == MessageStopReason::Aborted;
        let reason = if aborted { TurnEndReason::Aborted } else { TurnEndReason::Error };
        self.end_turn(Some(message), results, reason);
        let reason = if aborted { RunStopReason::Aborted } else { RunStopReason::Error };
        self.end_run(reason, Some(error));
    }

    fn reply(&mut self, id: EffectId, reply: Reply) {
        let Some(reply) = self.stream_in_place(id, reply) else { return };
        let reply = match (reply, self.state.polls.remove(&id)) {
            (Reply::Polled(messages), Some(queue)) => return self.polled_alongside(queue, messages),
            (reply, _) => reply,
        };
        if self.state.total_timer == Some(id) {
            self.state.total_timer = None;
            let text = "the run took longer than its time limit";
            return self.interrupt_run(ErrorInfo::new(ErrorKind::Timeout, text));
        }
        match (&self.state.phase, reply) {
            (Phase::Asking(_), reply) => {
                if let Phase::Asking(ask) = std::mem::take(&mut self.state.phase) {
                    self.reply_to_ask(ask, id, reply);
                }
            }
            (Phase::Dispatching(_), reply) => {
                if let Some(batch) = self.take_batch() {
                    self.reply_to_batch(batch, id, reply);
                }
            }
            (&Phase::Preparing { effect, overflow }, Reply::Prepared(result)) if effect == id => {
                self.prepared(result, overflow);
            }
            (&Phase::Compacting { effect }, Reply::Compacted(result)) if effect == id => {
                self.compacted(result);
            }
            (&Phase::Polling { effect, queue, then }, Reply::Polled(messages)) if effect == id => {
                self.receive(queue, messages);
                self.polled(queue, then);
            }
            (&Phase::Closing { effect, .. }, Reply::Hook(_)) if effect == id => {
                if let Phase::Closing { reason, error, .. } = std::mem::take(&mut self.state.phase) {
                    self.close(reason, error);
                }
            }
            (_, other) => drop(other),
        }
    }

    /// Handles the answer of a poll that nothing waits for: its messages are mail like any other.
    fn polled_alongside(&mut self, queue: Queue, messages: Vec<AgentMessage>) {
        let has_received = self.receive(queue, messages);
        if let Phase::Dispatching(_) = self.state.phase {
            self.steer_batch();
        } else if has_received {
            self.finish_poll_early(queue);
        }
    }

    /// Returns whether there was any.
    fn receive(&mut self, queue: Queue, messages: Vec<AgentMessage>) -> bool {
        let queue = match queue {
            Queue::FollowUp => &mut self.state.follow_up,
            _ => &mut self.state.steering,
        };
        let before = queue.len();
        for message in messages.into_iter().filter(has_content) {
            queue.push(Letter { message, receipt: 0 });
        }
        queue.len() > before
    }

    #[inline(never)]
    fn command(&mut self, command: AgentCommand) {
        match command {
            AgentCommand::Steer(letter) => self.receive_steering(vec![letter]),
            AgentCommand::FollowUp(letter) if !has_content(&letter.message) => self.clear_letter(&letter),
            AgentCommand::FollowUp(letter) => {
                self.state.follow_up.push(letter);
                self.finish_poll_early(Queue::FollowUp);
            }
            AgentCommand::ResolveTool { call_id, decision } => {
                self.resolve_by_command(vec![(call_id, decision)])
            }
            AgentCommand::ResolveTools(decisions) => self.resolve_by_command(decisions),
            AgentCommand::SwitchModel => {}
            AgentCommand::ClearQueues => {
                let mut cleared = std::mem::take(&mut self.state.steering);
                cleared.append(&mut self.state.follow_up);
                cleared.iter().for_each(|letter| self.clear_letter(letter));
            }
            AgentCommand::Cancel(reason) => self.abort(&reason),
        }
    }

    fn receive_steering(&mut self, letters: Vec<Letter>) {
        let before = self.state.steering.len();
        for letter in letters {
            if has_content(&letter.message) {
                self.state.steering.push(letter);
            } else {
                self.clear_letter(&letter);
            }
        }
        if self.state.steering.len() > before {
            self.handle_steering();
        }
    }

    fn clear_letter(&mut self, letter: &Letter) {
        if letter.receipt > 0 {
            self.out.push(Output::Receipt(letter.receipt, Receipt::Cleared));
        }
    }

    /// Steering takes effect at once if no tool is running that could finish first.
    fn handle_steering(&mut self) {
        match &self.state.phase {
            Phase::Dispatching(batch) => {
                if batch.running == 0 || self.rules.steering.when == SteeringTime::Immediate {
                    self.steer_batch();
                }
            }
            _ => self.finish_poll_early(Queue::Steering),
        }
    }

    /// What a poll was waiting for has arrived in another way, so nothing waits for its answer any more.
    fn finish_poll_early(&mut self, arrived: Queue) {
        if let Phase::Polling { effect, queue, then } = self.state.phase
            && (arrived == Queue::Steering || queue == arrived)
        {
            self.state.polls.insert(effect, queue);
            self.polled(queue, then);
        }
    }
}

fn take(queue: &mut Vec<Letter>, delivery: QueueMode) -> Vec<Letter> {
    match delivery {
        QueueMode::All => std::mem::take(queue),
        QueueMode::OneAtATime if queue.is_empty() => Vec::new(),
        QueueMode::OneAtATime => vec![queue.remove(0)],
    }
}

/// Returns a replacement with the calls of the message that it replaces, if it has the same calls.
/// Arguments may differ in whitespace: the model's own text stays.
fn with_calls_of(message: &AssistantMessage, replacement: &AssistantMessage) -> Option<AssistantMessage> {
    let mut calls = message.tool_calls();
    let mut content = replacement.content.clone();
    for block in &mut content {
        let ContentBlock::ToolCall(call) = block else { continue };
        *call = calls.next().filter(|own| is_same_call(own, call))?.clone();
    }
    calls.next().is_none().then(|| AssistantMessage { content, ..replacement.clone() })
}

fn is_same_call(own: &ToolCallBlock, other: &ToolCallBlock) -> bool {
    own.call_id == other.call_id
        && own.tool_name == other.tool_name
        && (own.arguments == other.arguments || own.arguments.to_value() == other.arguments.to_value())
}

/// Empty texts do not count as messages.
pub(crate) fn has_content(message: &AgentMessage) -> bool {
    let AgentMessage::User(user) = message else { return true };
    let UserMessage { content, .. } = user.as_ref();
    content.iter().any(|block| !matches!(block, ContentBlock::Text(text) if text.text.trim().is_empty()))
}

fn cut_reason(error: &ErrorInfo) -> MessageStopReason {
    if error.code == ErrorKind::Aborted { MessageStopReason::Aborted } else { MessageStopReason::Error }
}

pub(super) fn stop_reason_of(error: &ErrorInfo) -> RunStopReason {
    if error.code == ErrorKind::Aborted { RunStopReason::Aborted } else { RunStopReason::Error }
}
