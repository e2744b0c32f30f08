//! Before the model is called: the transformers, and room for what is too long.

use crate::host::isolate::guard;
use crate::host::ports::{Compaction, TurnChoice};
use crate::rules::context::ListLength;
use crate::rules::policy::Transform;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, MessageStopReason};

use super::output::Effect;
use super::phase::Phase;
use super::step::Step;

impl Step<'_> {
    /// Asks what holds for the turn, if anybody is to be asked, before a phase begins.
    pub(super) fn choose(&mut self, then: Phase) {
        self.state.turn.is_restored = false;
        if !self.rules.prepares_turns {
            return self.enter(then);
        }
        let effect = self.start(Effect::Choose);
        self.state.phase = Phase::Choosing { effect, then: Box::new(then) };
    }

    pub(super) fn chosen(&mut self, choice: Result<Box<TurnChoice>, String>) {
        let Phase::Choosing { then, .. } = std::mem::take(&mut self.state.phase) else { return };
        match choice {
            Err(text) => {
                let error = ErrorInfo::new(ErrorKind::Hook, ["prepareTurn failed: ", &text].concat());
                self.cut_message(MessageStopReason::Error, error.in_phase("prepare_turn"));
            }
            Ok(choice) => {
                self.state.turn.chosen_view = choice.messages;
                self.enter(*then);
            }
        }
    }

    /// Always an effect, even without a transformer, so that anything listeners do in response to
    /// `turn_start` is known before the rules read the history.
    pub(super) fn prepare(&mut self, overflow: bool) {
        let effect = self.start(Effect::Prepare { overflow });
        self.state.phase = Phase::Preparing { effect, overflow };
    }

    pub(super) fn prepared(&mut self, result: Result<Transform, String>, overflow: bool) {
        if !overflow && !self.state.turn.message_open && self.is_out_of_turns() {
            // For a call that will not be, nothing is shortened.
            return self.pre_turn();
        }
        let refused = overflow.then(|| ListLength::of(self.shown_list()));
        self.state.turn.view = self.state.turn.chosen_view.clone();
        let transformed = result.and_then(|transform| self.transform(transform, overflow));
        match transformed {
            Err(text) => {
                let error =
                    ErrorInfo::new(ErrorKind::Hook, ["the context transformer failed: ", &text].concat());
                self.cut_message(MessageStopReason::Error, error.in_phase("transform_context"));
            }
            Ok(is_reported) => match refused {
                // Whoever reports that the conversation was compacted is believed.
                Some(refused) => {
                    self.recovered(is_reported || ListLength::of(self.shown_list()).is_shorter_than(refused))
                }
                None if self.state.turn.message_open => self.call_model_again(),
                None if self.is_too_long() => {
                    self.state.turn.sought_room = true;
                    self.prepare(true);
                }
                None => self.pre_turn(),
            },
        }
    }

    /// Returns the messages that a request of this turn is made of.
    pub(super) fn shown_list(&self) -> &[AgentMessage] {
        self.state.turn.view.as_deref().unwrap_or(self.state.history.messages())
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
    /// whether one of them reported a compaction.
    fn transform(&mut self, first: Transform, overflow: bool) -> Result<bool, String> {
        let mut is_reported = self.apply_given(first, overflow)?;
        for transformer in &self.rules.transformers {
            let answer =
                guard(|| transformer.transform_in(&self.state.about(), self.shown_list(), overflow))?;
            is_reported |= self.apply_given(answer, overflow)?;
        }
        Ok(is_reported)
    }

    /// Applies what a transformer gave. A model cannot be asked about nothing.
    fn apply_given(&mut self, transform: Transform, overflow: bool) -> Result<bool, String> {
        let is_emptied = transform.messages().is_some_and(<[_]>::is_empty) && !self.shown_list().is_empty();
        if is_emptied {
            let text = "it left no message; to change nothing, it must give nothing";
            return Err(text.to_owned());
        }
        Ok(self.apply(transform, overflow))
    }

    /// Returns whether the history was compacted, with a report. A view that reports what it leaves out may leave out
    /// the same in every turn.
    fn apply(&mut self, transform: Transform, overflow: bool) -> bool {
        let is_replaced = matches!(transform, Transform::Replace { .. });
        let report = match transform {
            Transform::Unchanged => return false,
            Transform::View(view) => {
                self.state.turn.view = Some(view);
                None
            }
            Transform::Reduced { view, report } => {
                self.state.turn.view = Some(view);
                Some(report)
            }
            Transform::Replace { messages, report } => {
                (self.state.turn.view, self.state.turn.chosen_view) = (None, None);
                self.state.history.replace(messages);
                report
            }
        };
        let Some(mut report) = report else { return false };
        report.overflow = overflow;
        if overflow && is_replaced {
            self.discard_shown();
        }
        self.emit(AgentEvent::ContextCompacted { report });
        is_replaced
    }

    /// Handles the end of the transformers during an overflow. If none of them shortened anything, the
    /// compaction engine is called.
    fn recovered(&mut self, is_shorter: bool) {
        if !is_shorter {
            self.compact();
        } else if self.state.turn.message_open {
            self.discard_shown();
            self.state.turn.overflow = None;
            self.append_arrived();
            self.call_model_again();
        } else {
            // The model has not refused anything yet.
            self.pre_turn();
        }
    }

    /// Messages that arrived while room was made are part of the repeated call.
    pub(super) fn append_arrived(&mut self) {
        let mut arrived = self.take_steering();
        self.state.queues.pending.append(&mut arrived);
        self.append_pending();
    }

    /// Messages that wait for nothing are part of the call that is about to be made.
    pub(super) fn append_urgent(&mut self) {
        while self.is_steered_now() {
            self.append_arrived();
        }
    }

    /// There is room, so the model is called again; what it said before it refused does not count.
    pub(super) fn discard_shown(&mut self) {
        let shown = std::mem::take(&mut self.state.turn.shown);
        self.count(&shown.usage.totalled());
        let reason = self.state.turn.overflow.as_ref().map(|refusal| refusal.message.clone());
        self.reset_message(&shown, &reason.unwrap_or_default());
    }

    pub(super) fn compact(&mut self) {
        let used = self.state.turn.shown.usage.totalled();
        if self.is_out_of_budget(&used) {
            return self.compacted(None);
        }
        let model = self.rules.models.first().map_or_else(|| "".into(), |model| model.id.clone());
        let effect = self.start(Effect::Compact { model });
        self.state.phase = Phase::Compacting { effect };
    }

    pub(super) fn compacted(&mut self, result: Option<Result<Compaction, String>>) {
        let overflow = self.state.turn.overflow.clone();
        let overflow =
            overflow.unwrap_or_else(|| ErrorInfo::new(ErrorKind::ContextOverflow, "the context is too long"));
        let is_refused = self.state.turn.message_open;
        let result = match result {
            Some(Ok(Compaction { failed: Some(text), usage, .. })) => {
                self.count(&usage);
                Some(Err(text))
            }
            // A model cannot be asked about nothing.
            Some(Ok(Compaction { messages, usage, .. })) if messages.is_empty() => {
                self.count(&usage);
                Some(Err("it left no message".to_owned()))
            }
            other => other,
        };
        match result {
            // That was an estimate; the model has the last word.
            None | Some(Err(_)) if !is_refused => self.pre_turn(),
            None | Some(Err(_)) if self.falls_back_to_more_room() => {}
            None => self.cut_message(MessageStopReason::Error, overflow),
            Some(Err(text)) => {
                let message = [&overflow.message, "; the compaction engine failed: ", &text].concat();
                let phase = Some("compaction".to_owned());
                self.cut_message(MessageStopReason::Error, ErrorInfo { message, phase, ..overflow });
            }
            Some(Ok(Compaction { messages, report, usage, failed: _ })) => {
                self.count(&usage);
                self.discard_shown();
                self.state.turn.overflow = None;
                self.apply(Transform::Replace { messages, report }, true);
                if is_refused {
                    self.append_arrived();
                }
                // What the transformers leave out of requests is left out of this one too.
                self.prepare(false);
            }
        }
    }
}
