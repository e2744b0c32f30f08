//! Calling the model: an attempt, its stream, the answer.

use std::rc::Rc;

use crate::data::json::{RawJson, ToJson};
use crate::data::table::Table;
use crate::data::text;
use crate::host::config::Timeouts;
use crate::host::ports::HookCall;
use crate::rules::stream::{Assembled, Assembler, AssistantMessageEvent, CallFault, Excess, MAX_ANSWER};
use crate::wires::with_own_names;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, ToolResultCause, Usage,
};

use super::batch::{Ending, new_batch};
use super::input::Reply;
use super::output::{Effect, EffectId, Output};
use super::phase::{AttemptStage, Inference, Phase, StoredAnswer, Streaming};
use super::state::LoopState;
use super::step::Step;

impl Step<'_> {
    /// One attempt: the hooks, then the call.
    pub(super) fn attempt(&mut self, mut inference: Box<Inference>) {
        if !self.take_urgent(&mut inference) {
            return;
        }
        let call = HookCall::BeforeInference {
            turn_index: self.state.tally.turn_index,
            attempt: inference.attempt,
            model: inference.request.model.clone(),
            messages: inference.request.messages.clone(),
        };
        if !self.rules.hooks.has(&call) {
            return self.infer(inference);
        }
        inference.stage = AttemptStage::BeforeHook(self.start(Effect::Hook(call)));
        self.state.phase = Phase::Inferring(inference);
    }

    fn infer(&mut self, mut inference: Box<Inference>) {
        self.reserve();
        let effect = self.start(Effect::Infer {
            model: inference.model,
            turn_index: self.state.tally.turn_index,
            request: inference.request.clone(),
        });
        let limits = &self.rules.timeouts;
        // A model that has begun early must not be allowed a silence as long as one that has not begun.
        let watchdog_ms = limits.first_chunk.into_iter().chain(limits.chunk).chain(limits.model).min();
        let (began, ends) = (self.now, limits.end_of_answer(self.now));
        let watchdog = watchdog_ms.filter(|ms| *ms < u64::MAX).map(|ms| self.start(Effect::Sleep { ms }));
        let limit = self.rules.models.get(inference.model).map_or(MAX_ANSWER, |model| model.max_answer_bytes);
        inference.stage = AttemptStage::Streaming(Streaming {
            effect,
            assembler: Assembler::with_limit(limit),
            watchdog,
            last_activity: self.now,
            began,
            ends,
            has_received: false,
        });
        self.state.phase = Phase::Inferring(inference);
    }

    pub(super) fn reply_to_inference(&mut self, mut inference: Box<Inference>, id: EffectId, reply: Reply) {
        let stage = std::mem::take(&mut inference.stage);
        match (stage, reply) {
            (AttemptStage::BeforeHook(effect), Reply::Hook(result)) if effect == id => match result {
                // The hooks are not called twice for an attempt: they may be who posted the message.
                Ok(()) if !self.take_urgent(&mut inference) => {}
                Ok(()) => self.infer(inference),
                Err(error) => {
                    self.tell_unawaited(&inference, None, &error);
                    self.cut_message(MessageStopReason::Error, error);
                }
            },
            (AttemptStage::FailedHook(effect, failed), Reply::Hook(result)) if effect == id => match result {
                Ok(()) => self.handle_failure(inference, *failed),
                Err(error) => self.cut_stream(failed.streaming, MessageStopReason::Error, error),
            },
            (AttemptStage::BackingOff(effect, _), Reply::Slept) if effect == id => {
                self.attempt_again(inference)
            }
            (AttemptStage::AfterHook(effect, answer), Reply::Hook(result)) if effect == id => match result {
                Ok(()) => self.answered(answer),
                Err(error) => self.interrupt_answer(answer, error),
            },
            (AttemptStage::Streaming(streaming), reply) => {
                self.reply_to_stream(inference, streaming, id, reply)
            }
            (stage, _) => {
                inference.stage = stage;
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// Handles a piece of the streaming answer, which changes nothing but the answer. Returns any other
    /// event.
    pub(super) fn stream_in_place(&mut self, id: EffectId, reply: Reply) -> Option<Reply> {
        match self.state.apply_stream_event(self.now, id, reply) {
            Ok(event) => {
                self.out.extend(event.map(Output::Event));
                None
            }
            Err(reply) => Some(reply),
        }
    }

    fn reply_to_stream(
        &mut self,
        mut inference: Box<Inference>,
        mut streaming: Streaming,
        id: EffectId,
        reply: Reply,
    ) {
        if streaming.watchdog == Some(id) {
            return self.check_watchdog(inference, streaming);
        }
        if streaming.effect != id {
            inference.stage = AttemptStage::Streaming(streaming);
            self.state.phase = Phase::Inferring(inference);
            return;
        }
        streaming.last_activity = self.now;
        streaming.has_received = true;
        match reply {
            Reply::Stream(AssistantMessageEvent::Done { stop_reason, usage }) => {
                if let Some(usage) = usage {
                    streaming.assembler.usage = usage;
                }
                self.finish_message(inference, streaming, stop_reason);
            }
            Reply::Stream(AssistantMessageEvent::Error(error)) => self.failed(inference, streaming, error),
            Reply::StreamEnded => {
                let text = "the answer ended before it was complete";
                self.failed(inference, streaming, ErrorInfo::new(ErrorKind::Network, text));
            }
            other => {
                if matches!(other, Reply::Stream(AssistantMessageEvent::Start)) {
                    if let Err(error) = streaming.admit(self.now, &AssistantMessageEvent::Start) {
                        return self.failed(inference, streaming, *error);
                    }
                    self.reset_message(&streaming.assembler, "the provider began the answer anew");
                    streaming.assembler.clear();
                }
                inference.stage = AttemptStage::Streaming(streaming);
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// Gives the arguments of calls the names of their tools' schemas: some providers were told others.
    #[cold]
    fn give_own_names(&self, content: &mut [ContentBlock]) {
        for block in content {
            if let ContentBlock::ToolCall(call) = block
                && let Some(tool) = self.rules.tools.iter().find(|tool| *tool.schema.name == *call.tool_name)
                && let Some(arguments) =
                    with_own_names(&call.arguments.to_value(), &tool.schema.parameters.to_value())
            {
                call.arguments = arguments.to_raw();
            }
        }
    }

    /// Handles the watchdog's timer. Silence is measured by the clock, because timers in hidden tabs fire
    /// late, and because frequent signs of life must not each cost a timer.
    fn check_watchdog(&mut self, mut inference: Box<Inference>, mut streaming: Streaming) {
        streaming.watchdog = None;
        match streaming.patience(&self.rules.timeouts, self.now) {
            Err(error) => self.failed(inference, streaming, *error),
            Ok(next) => {
                streaming.watchdog = next.map(|ms| self.start(Effect::Sleep { ms }));
                inference.stage = AttemptStage::Streaming(streaming);
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// The answer is complete: it is shown, stored, and the hooks are called.
    fn finish_message(
        &mut self,
        mut inference: Box<Inference>,
        streaming: Streaming,
        stop_reason: MessageStopReason,
    ) {
        if stop_reason == MessageStopReason::Error {
            // The answer is complete, so calling again would not be another attempt but another answer.
            let text = "the provider ended the answer with an error";
            let error = ErrorInfo::new(ErrorKind::Unknown, text);
            return self.fail(inference, streaming, error, Some(stop_reason));
        }
        if stop_reason == MessageStopReason::Aborted {
            let text = "the provider stopped the answer";
            let error = ErrorInfo::new(ErrorKind::Aborted, text);
            return self.fail(inference, streaming, error, Some(stop_reason));
        }
        if !streaming.assembler.can_be_handed_over() {
            return self.failed(inference, streaming, Excess::Memory.error());
        }
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        let mut streaming = streaming;
        self.account(inference.model, &mut streaming, None);
        let usage = streaming.assembler.usage.totalled();
        let Assembled { mut content, faults } = streaming.assembler.finish(stop_reason);
        if self.rules.has_odd_names() {
            self.give_own_names(&mut content);
        }
        let shown = Rc::new(self.message(inference.model, content, &usage, stop_reason));
        let (stored, own_arguments) = without_faults(&shown, &faults);
        self.count(&usage);
        self.state.turn.message_open = false;
        self.emit(AgentEvent::MessageEnd { message: shown, at: self.now });
        let place = self.state.history.messages().len();
        self.append(AgentMessage::Assistant(stored.clone()));
        let answer = StoredAnswer { message: stored, place, faults, own_arguments };
        match self.call_after_inference(&inference, answer.message.clone()) {
            None => self.answered(answer),
            Some(hook) => {
                inference.stage = AttemptStage::AfterHook(hook, answer);
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// Calls the hooks after an attempt, if there are any.
    pub(super) fn call_after_inference(
        &mut self,
        inference: &Inference,
        message: Rc<AssistantMessage>,
    ) -> Option<EffectId> {
        let call = HookCall::AfterInference {
            turn_index: self.state.tally.turn_index,
            attempt: inference.attempt,
            model: inference.request.model.clone(),
            message,
        };
        self.rules.hooks.has(&call).then(|| self.start(Effect::Hook(call)))
    }

    /// Adds the messages that wait for nothing to a request that is about to leave. Returns whether there still is one: the
    /// budgets may have no room for it.
    fn take_urgent(&mut self, inference: &mut Inference) -> bool {
        if !self.is_steered_now() {
            return true;
        }
        self.append_urgent();
        if !self.may_pay_again(ErrorKind::Network) {
            return false;
        }
        let Some(mut request) = self.new_request() else { return false };
        self.fit_request(&mut request, inference.model);
        inference.request = request;
        true
    }

    /// A message waits for nothing, so the streaming answer stops. Before it streams, the message goes into the request; when
    /// it is complete, the calls are what the message interrupts.
    #[cold]
    pub(super) fn steer_answer(&mut self) {
        let Phase::Inferring(mut inference) = std::mem::take(&mut self.state.phase) else { return };
        match std::mem::take(&mut inference.stage) {
            AttemptStage::Streaming(streaming) => self.interrupt_stream(inference, streaming),
            stage => {
                inference.stage = stage;
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// What has arrived of the answer stays, and the turn ends. If nothing of it stays, it is asked for again, with the
    /// message.
    fn interrupt_stream(&mut self, inference: Box<Inference>, mut streaming: Streaming) {
        let why = ErrorInfo::new(ErrorKind::Aborted, "a steering message cut the answer off");
        self.account(inference.model, &mut streaming, Some(&why));
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        let fits = streaming.assembler.can_be_handed_over();
        let mut content = if fits { streaming.assembler.clone().partial() } else { Vec::new() };
        // No provider takes thinking back that it has not signed.
        content.retain(|block| !matches!(block, ContentBlock::Thinking(block) if block.signature.is_none()));
        let is_empty = content.is_empty();
        let usage = streaming.assembler.usage;
        let message = Rc::new(self.message(inference.model, content, &usage, MessageStopReason::Interrupted));
        let hook = self.call_after_inference(&inference, message.clone());
        self.cancel_some(hook);
        if is_empty {
            self.discard_answer(streaming, &why.message);
            return self.attempt_again(inference);
        }
        let mut batch = new_batch(self.store_cut(message));
        batch.ending = Ending::Interrupted;
        self.settle_all(&mut batch, ToolResultCause::Steering, "");
        self.end_batch(batch);
    }

    /// Calls are taken from the content: the provider's stop reason is not trusted to say whether there are any.
    /// It is trusted to forbid them.
    pub(super) fn answered(&mut self, answer: StoredAnswer) {
        if answer.message.tool_calls().next().is_some() {
            self.state.tally.pauses = 0;
            self.begin_batch(answer);
        } else {
            self.end_text(answer);
        }
    }

    /// Ends the turn with what has arrived of the streaming answer.
    pub(super) fn cut_stream(
        &mut self,
        mut streaming: Streaming,
        stop_reason: MessageStopReason,
        error: ErrorInfo,
    ) {
        if !streaming.assembler.can_be_handed_over() {
            self.reset_message(&streaming.assembler, &error.message);
            streaming.assembler.clear();
        }
        let usage = streaming.assembler.usage;
        self.cut_message_with(streaming.assembler.partial(), usage, stop_reason, error);
    }

    /// An answer of one of the models.
    pub(super) fn message(
        &self,
        model: usize,
        content: Vec<ContentBlock>,
        usage: &Usage,
        stop_reason: MessageStopReason,
    ) -> AssistantMessage {
        let name = self.rules.models.get(model);
        AssistantMessage {
            content,
            provider: name.map_or("", |name| &name.provider).to_owned(),
            model: name.map_or("", |name| &name.id).to_owned(),
            usage: usage.totalled(),
            stop_reason,
            error: None,
            timestamp: self.now,
            id: self.named(&text::number(self.state.tally.turn_index)),
            foreign: None,
        }
    }
}

impl Streaming {
    /// Counts a sign of life: an answer has an end, in bytes and in time, that no trickle puts off.
    fn admit(&mut self, now: u64, event: &AssistantMessageEvent) -> Result<(), Box<ErrorInfo>> {
        if now >= self.ends {
            return Err(Box::new(self.overdue(now)));
        }
        self.assembler.admit(event).map_err(|excess| Box::new(excess.error()))
    }

    /// After how many milliseconds to look again whether the answer takes too long, or is silent for too long; the error, if
    /// it is.
    pub(super) fn patience(&self, limits: &Timeouts, now: u64) -> Result<Option<u64>, Box<ErrorInfo>> {
        let limit = if self.has_received { limits.chunk } else { limits.first_chunk.or(limits.chunk) };
        let silent = now.saturating_sub(self.last_activity);
        if now >= self.ends {
            return Err(Box::new(self.overdue(now)));
        }
        let left = limits.model.filter(|ms| *ms < u64::MAX).map(|_| self.ends - now);
        match limit {
            Some(limit) if silent >= limit => {
                let text = ["the model was silent for ", &text::number(silent), " ms"].concat();
                Err(Box::new(ErrorInfo::new(ErrorKind::Network, text).in_phase("model")))
            }
            limit => Ok(limit.map(|limit| limit - silent).into_iter().chain(left).min()),
        }
    }

    /// The error of an answer that takes too long. It is final, because the next answer would take as long.
    #[cold]
    fn overdue(&self, now: u64) -> ErrorInfo {
        let taken = text::number(now.saturating_sub(self.began));
        let text = ["the answer was not complete after ", &taken, " ms; `timeouts.modelMs` is its limit"];
        ErrorInfo::new(ErrorKind::Timeout, text.concat())
    }
}

impl LoopState {
    /// The hot path, which needs no rules: adds a piece to the streaming answer and returns the event to
    /// emit. Anything else is returned unchanged.
    #[allow(
        clippy::result_large_err,
        reason = "what comes back is handed on at once; a box would cost one per answer"
    )]
    pub(crate) fn apply_stream_event(
        &mut self,
        now: u64,
        id: EffectId,
        reply: Reply,
    ) -> Result<Option<AgentEvent>, Reply> {
        use AssistantMessageEvent as E;
        let Phase::Inferring(inference) = &mut self.phase else { return Err(reply) };
        let AttemptStage::Streaming(streaming) = &mut inference.stage else { return Err(reply) };
        match reply {
            Reply::Stream(mut event)
                if streaming.effect == id && !matches!(event, E::Start | E::Done { .. } | E::Error(_)) =>
            {
                streaming.last_activity = now;
                streaming.has_received = true;
                if let Err(error) = streaming.admit(now, &event) {
                    return Err(Reply::Stream(E::Error(*error)));
                }
                // The id of a call is made unique in the whole history when the call starts, so that every
                // event shows the same id.
                let original = match &mut event {
                    E::ToolCallStart { index, call_id, .. } => {
                        self.history.call_ids.claim_for(call_id).map(|original| (*index, original))
                    }
                    _ => None,
                };
                let pushed = streaming.assembler.push(event);
                if let Some((index, original)) = original {
                    streaming.assembler.note_original_id(index, original);
                }
                match pushed {
                    Ok(delta) => {
                        Ok(delta.filter(|delta| !delta.text.is_empty()).map(AgentEvent::MessageUpdate))
                    }
                    Err(text) => {
                        let text = ["stream error: ", &text].concat();
                        Err(Reply::Stream(E::Error(ErrorInfo::new(ErrorKind::Unknown, text))))
                    }
                }
            }
            reply => Err(reply),
        }
    }
}

/// Returns the message as it is stored, in which faulty calls have `{}`, and the arguments that they had
/// instead.
fn without_faults(
    shown: &Rc<AssistantMessage>,
    faults: &[(String, CallFault)],
) -> (Rc<AssistantMessage>, Table<String, RawJson>) {
    let mut own = Table::new();
    if faults.is_empty() {
        return (shown.clone(), own);
    }
    let mut stored = shown.as_ref().clone();
    for block in &mut stored.content {
        if let ContentBlock::ToolCall(call) = block
            && faults.iter().any(|(id, _)| *id == call.call_id)
        {
            let given = std::mem::replace(&mut call.arguments, RawJson::empty_object());
            own.insert(call.call_id.clone(), given);
        }
    }
    (Rc::new(stored), own)
}
