//! Before the model is called: the transformers, and room for what is too long.

use crate::host::isolate::guard;
use crate::host::ports::Compaction;
use crate::rules::policy::Transform;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::MessageStopReason;

use super::output::Effect;
use super::phase::Phase;
use super::step::Step;

impl Step<'_> {
    /// Always an effect, even without a transformer, so that anything listeners do in response to
    /// `turn_start` is known before the rules read the history.
    pub(super) fn prepare(&mut self, overflow: bool) {
        let effect = self.start(Effect::Prepare { overflow });
        self.state.phase = Phase::Preparing { effect, overflow };
    }

    #[inline(never)]
    pub(super) fn prepared(&mut self, result: Result<Transform, String>, overflow: bool) {
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
            Ok(_) if self.state.turn.message_open => self.call_model_again(),
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
            self.call_model_again();
        } else {
            self.compact();
        }
    }

    /// Messages that arrived while room was made are part of the repeated call.
    fn append_arrived(&mut self) {
        let mut arrived = self.take_steering();
        self.state.queues.pending.append(&mut arrived);
        self.append_pending();
    }

    /// There is room, so the model is called again; what it said before it refused does not count.
    fn discard_shown(&mut self, reason: &str) {
        let shown = std::mem::take(&mut self.state.turn.shown);
        self.state.tally.usage.add(&shown.usage.totalled());
        self.reset_message(&shown, reason);
    }

    pub(super) fn compact(&mut self) {
        let model = self.rules.models.first().map_or_else(|| "".into(), |model| model.id.clone());
        let effect = self.start(Effect::Compact { model });
        self.state.phase = Phase::Compacting { effect };
    }

    #[inline(never)]
    pub(super) fn compacted(&mut self, result: Option<Result<Compaction, String>>) {
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
                self.state.tally.usage.add(&usage);
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
}
