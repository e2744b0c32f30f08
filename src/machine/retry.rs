//! An attempt has failed: room is made, it is tried again, another model is called, or the turn ends.

use std::rc::Rc;

use crate::data::text;
use crate::data::text::contains;
use crate::host::isolate::guard;
use crate::rules::overflow::is_context_overflow;
use crate::rules::retry::RetryVerdict;
use crate::rules::stream::Assembler;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{MessageStopReason, Usage};

use super::output::{Effect, EffectId};
use super::phase::{AttemptStage, FailedAttempt, Inference, Phase, Streaming};
use super::state::LoopState;
use super::step::Step;

impl LoopState {
    /// Whether this effect is the delay before the next attempt.
    pub(crate) fn is_backing_off(&self, id: EffectId) -> bool {
        let Phase::Inferring(inference) = &self.phase else { return false };
        matches!(inference.stage, AttemptStage::BackingOff(effect, _) if effect == id)
    }
}

impl Step<'_> {
    /// An attempt has failed.
    pub(super) fn failed(&mut self, inference: Box<Inference>, streaming: Streaming, error: ErrorInfo) {
        self.fail(inference, streaming, error, None);
    }

    /// Tells the hooks of a failed attempt before anything is done about it. The stop reason is the provider's, if that
    /// is what ended the answer.
    pub(super) fn fail(
        &mut self,
        mut inference: Box<Inference>,
        mut streaming: Streaming,
        error: ErrorInfo,
        stop_reason: Option<MessageStopReason>,
    ) {
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        let mut error = error.in_phase("model");
        classify(&mut error);
        // An answer that the provider itself has ended is told like any other.
        self.account(inference.model, &mut streaming, stop_reason.is_none().then_some(&error));
        let hook = self.tell_of_failure(&inference, Some(&streaming.assembler), &error);
        let failed = FailedAttempt { streaming, error, stop_reason };
        match hook {
            None => self.handle_failure(inference, failed),
            Some(hook) => {
                inference.stage = AttemptStage::FailedHook(hook, Box::new(failed));
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// Calls the hooks for an attempt with which the run ends at once, so that nobody waits for them.
    pub(super) fn tell_unawaited(
        &mut self,
        inference: &Inference,
        shown: Option<&Assembler>,
        error: &ErrorInfo,
    ) {
        let hook = self.tell_of_failure(inference, shown, error);
        self.cancel_some(hook);
    }

    /// Calls the hooks for an attempt without an answer, if there are any.
    fn tell_of_failure(
        &mut self,
        inference: &Inference,
        shown: Option<&Assembler>,
        error: &ErrorInfo,
    ) -> Option<EffectId> {
        if !self.rules.hooks.after_inference {
            return None;
        }
        let shown = shown.filter(|shown| shown.can_be_handed_over()).cloned().unwrap_or_default();
        let is_aborted = error.code == ErrorKind::Aborted;
        let stop_reason = if is_aborted { MessageStopReason::Aborted } else { MessageStopReason::Error };
        let usage = shown.usage;
        let mut message = self.message(inference.model, shown.partial(), &usage, stop_reason);
        message.error = Some(error.clone());
        self.call_after_inference(inference, Rc::new(message))
    }

    /// Handles a failed attempt: recovers, retries, falls back or gives up.
    pub(super) fn handle_failure(&mut self, mut inference: Box<Inference>, failed: FailedAttempt) {
        let FailedAttempt { streaming, mut error, stop_reason } = failed;
        if let Some(stop_reason) = stop_reason {
            return self.cut_stream(streaming, stop_reason, error);
        }
        let verdict = match error.code {
            ErrorKind::Aborted => return self.cut_stream(streaming, MessageStopReason::Aborted, error),
            ErrorKind::ContextOverflow if self.state.turn.recoveries < self.rules.max_recoveries_per_turn => {
                return self.recover(streaming, error);
            }
            ErrorKind::ContextOverflow if self.rules.max_recoveries_per_turn > 0 => RetryVerdict::Stop,
            _ => {
                let (retry, random) = (&self.rules.retry, &self.rules.random);
                let verdict =
                    guard(|| Ok(retry.delay_in(&self.state.about(), &error, inference.attempt, random())));
                verdict.unwrap_or(RetryVerdict::Stop)
            }
        };
        let can_pay = matches!(verdict, RetryVerdict::Stop | RetryVerdict::StopNaming(_))
            || !self.is_out_of_budget(&streaming.assembler.usage);
        if let (RetryVerdict::Wait(delay_ms), true) = (&verdict, can_pay) {
            let delay_ms = *delay_ms;
            self.discard_answer(streaming, &error.message);
            let reason = error.message.clone();
            inference.last_error = Some(error.code);
            self.emit(AgentEvent::RetryAttempt { attempt: inference.attempt, delay_ms, reason, error });
            inference.attempt += 1;
            inference.stage = AttemptStage::BackingOff(
                self.start(Effect::Sleep { ms: delay_ms }),
                self.now.saturating_add(delay_ms),
            );
            self.state.phase = Phase::Inferring(inference);
            return;
        }
        if let RetryVerdict::StopNaming(asked) = verdict {
            let text = [&error.message, " (the server asks to wait ", &text::number(asked), " ms)"].concat();
            error.message = text;
        }
        match self
            .rules
            .models
            .get(inference.model + 1)
            .filter(|_| can_pay && (concerns_the_server(&error) || inference.last_error == Some(error.code)))
        {
            Some(_) => self.fall_back(inference, streaming, &error),
            None => self.cut_stream(streaming, MessageStopReason::Error, error),
        }
    }

    /// The model refuses the conversation as too long: the transformers are told, in the same turn.
    fn recover(&mut self, streaming: Streaming, error: ErrorInfo) {
        self.state.turn.shown = streaming.assembler;
        self.state.turn.recoveries += 1;
        self.state.turn.overflow = Some(error);
        self.prepare(true);
    }

    /// The delay is over. Time has passed, and others may have used what was left of the budgets.
    pub(super) fn attempt_again(&mut self, inference: Box<Inference>) {
        if self.may_pay_again(inference.last_error.unwrap_or(ErrorKind::Network)) {
            self.attempt(inference);
        }
    }

    /// Whether there is room in the budgets for another call in the same turn. If not, the turn ends, with an error of this
    /// kind.
    pub(super) fn may_pay_again(&mut self, code: ErrorKind) -> bool {
        let is_out = self.is_out_of_budget(&Usage::default());
        if is_out {
            let error = ErrorInfo::new(code, "the budget has no room for another attempt");
            self.cut_message(MessageStopReason::Error, error);
        }
        !is_out
    }

    fn fall_back(&mut self, mut inference: Box<Inference>, streaming: Streaming, error: &ErrorInfo) {
        self.discard_answer(streaming, &error.message);
        inference.attempt = 1;
        inference.last_error = None;
        self.call_next(inference);
    }

    /// Nothing makes the conversation short enough for this model, so the next one is called, if there is one: it may have
    /// more room. Returns whether it is.
    pub(super) fn falls_back_to_more_room(&mut self) -> bool {
        let model = self.state.turn.model;
        let used = self.state.turn.shown.usage.totalled();
        if self.rules.models.get(model + 1).is_none() || self.is_out_of_budget(&used) {
            return false;
        }
        self.discard_shown();
        self.state.turn.overflow = None;
        self.state.turn.recoveries = 0;
        self.append_arrived();
        if let Some(request) = self.new_request() {
            let stage = AttemptStage::default();
            self.call_next(Box::new(Inference { request, model, attempt: 1, last_error: None, stage }));
        }
        true
    }

    fn call_next(&mut self, mut inference: Box<Inference>) {
        let Some(next) = self.rules.models.get(inference.model + 1) else { return };
        let own = self.rules.models.first().map_or("", |model| &model.id);
        let (from, to) = (own.to_owned(), next.id.as_ref().to_owned());
        inference.model += 1;
        self.fit_request(&mut inference.request, inference.model);
        self.state.turn.model = inference.model;
        self.emit(AgentEvent::ModelFallback { from, to });
        self.attempt(inference);
    }

    /// What was shown of the attempt does not count.
    pub(super) fn discard_answer(&mut self, streaming: Streaming, reason: &str) {
        self.count(&streaming.assembler.usage.totalled());
        self.reset_message(&streaming.assembler, reason);
    }

    /// What was shown does not count.
    pub(super) fn reset_message(&mut self, shown: &Assembler, reason: &str) {
        if shown.is_empty() {
            return;
        }
        for call_id in shown.call_ids() {
            self.state.history.call_ids.release(call_id);
        }
        // They were about the calls of an answer that does not count.
        self.state.approvals.forget_parked();
        self.emit(AgentEvent::MessageReset { reason: reason.to_owned() });
    }
}

/// Whether another server may do what this one could not, whether or not it is worth asking this one again: its quota is
/// spent, say, or the model that was to run in the page is not there.
fn concerns_the_server(error: &ErrorInfo) -> bool {
    error.retryable || error.code.is_transient()
}

/// Classifies an error that nobody classified, by its text.
fn classify(error: &mut ErrorInfo) {
    if error.code != ErrorKind::Unknown || error.retryable || error.provider.is_some() {
        return;
    }
    let message = error.message.to_ascii_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| contains(&message, phrase));
    error.code = if is_context_overflow(&message) {
        ErrorKind::ContextOverflow
    } else if has(&["rate limit", "rate_limit", "throttl", "too many requests"])
        || has_number(&message, "429")
    {
        ErrorKind::Throttled
    } else if has(&["content filter", "content_filter"]) {
        ErrorKind::ContentFiltered
    } else {
        return;
    };
    error.retryable = error.code.is_transient();
}

/// Whether a number occurs in a text as a word of its own.
fn has_number(text: &str, number: &str) -> bool {
    text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).any(|word| word == number.as_bytes())
}
