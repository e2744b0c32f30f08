//! Continues a run that was restored from a checkpoint: whatever waited for an effect starts it again.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::host::ports::HookCall;
use crate::words::event::AgentEvent;
use crate::words::message::{AssistantMessage, MessageStopReason};

use super::batch::CallStatus;
use super::output::{Effect, Output};
use super::phase::{AttemptStage, Inference, Phase, StoredAnswer};
use super::step::Step;

/// Inserts events that have not been emitted yet after the first output of [`Input::Resume`](super::Input),
/// which is `run_resumed`. That event then describes the turn in which they begin.
pub fn tell_first(unemitted: Vec<AgentEvent>, outputs: &mut VecDeque<Output>) {
    let mut resumed = outputs.pop_front();
    if let Some(Output::Event(resumed)) = &mut resumed {
        let turn = |event: &AgentEvent| match event {
            AgentEvent::TurnStart { turn_index, .. } | AgentEvent::TurnEnd { turn_index, .. } => {
                Some(u64::from(*turn_index))
            }
            _ => None,
        };
        begin_with(resumed, unemitted.iter().map(|event| (Some(event.name()), turn(event))));
    }
    for event in unemitted.into_iter().rev() {
        outputs.push_front(Output::Event(event));
    }
    if let Some(resumed) = resumed {
        outputs.push_front(resumed);
    }
}

/// The events that follow `run_resumed`, each by its name and its turn, begin where it says that the run goes on.
pub(super) fn begin_with<'a>(
    resumed: &mut AgentEvent,
    untold: impl Iterator<Item = (Option<&'a str>, Option<u64>)> + Clone,
) {
    let AgentEvent::RunResumed { turn_index, partial_message, .. } = resumed else { return };
    let first = untold.clone().find_map(|(_, turn)| turn).and_then(|turn| u32::try_from(turn).ok());
    *turn_index = first.unwrap_or(*turn_index);
    // Its pieces are still to be emitted.
    let mut names = untold.filter_map(|(name, _)| name);
    if names.any(|name| name == "message_start" || name == "message_update") {
        *partial_message = None;
    }
}

impl Step<'_> {
    pub(super) fn resume_run(&mut self) {
        let Some(elapsed) = self.state.timing.restored.take() else { return };
        self.state.timing.began = self.now.saturating_sub(elapsed);
        self.begin_spending();
        let event = self.run_resumed();
        self.emit(event);
        if std::mem::take(&mut self.state.turn.has_shown) {
            let refusal = self.state.turn.overflow.as_ref().map(|refusal| refusal.message.clone());
            self.emit(AgentEvent::MessageReset { reason: refusal.unwrap_or_default() });
        }
        if let Some(limit) = self.rules.timeouts.total {
            self.state.timing.limit = Some(self.start(Effect::Sleep { ms: limit.saturating_sub(elapsed) }));
        }
        match std::mem::take(&mut self.state.phase) {
            // Whatever was chosen for the turn is no data, so it is asked again.
            phase if phase.is_before_answer() => self.choose(phase),
            phase => self.enter(phase),
        }
    }

    /// Begins a phase anew: what it waits for is started.
    pub(super) fn enter(&mut self, phase: Phase) {
        match phase {
            Phase::Idle => {}
            Phase::Choosing { then, .. } => self.enter(*then),
            // Its end was not emitted yet.
            Phase::Ended { reason, error } => self.close(reason, error),
            Phase::Preparing { overflow, .. } => self.prepare(overflow),
            questioned @ Phase::Questioned(_) => self.state.phase = questioned,
            Phase::Flushing { then } => self.enter(*then),
            Phase::Compacting { .. } => self.compact(),
            Phase::Inferring(inference) => self.resume_inference(*inference),
            Phase::Dispatching(batch) => self.resume_batch(batch),
            Phase::Polling { queue, then, .. } => self.poll(queue, then),
            Phase::Closing { reason, error, .. } => self.end_run(reason, error),
        }
    }

    pub(super) fn run_resumed(&self) -> AgentEvent {
        let running = match &self.state.phase {
            Phase::Dispatching(batch) => batch
                .blocks(&|call| matches!(call.status, CallStatus::Running(..) | CallStatus::Elsewhere(_))),
            _ => Vec::new(),
        };
        AgentEvent::RunResumed {
            turn_index: self.state.tally.turn_index,
            partial_message: self.partial_message(),
            pending_approvals: [self.state.questions(), self.state.child_questions.clone()].concat(),
            running_tools: running,
            at: self.now,
        }
    }

    fn partial_message(&self) -> Option<Rc<AssistantMessage>> {
        let Phase::Inferring(inference) = &self.state.phase else { return None };
        let AttemptStage::Cut(cut) = &inference.stage else { return None };
        self.rules.models.get(inference.model).filter(|_| !cut.content.is_empty())?;
        Some(Rc::new(self.message(
            inference.model,
            cut.content.clone(),
            &cut.usage,
            MessageStopReason::Aborted,
        )))
    }

    fn resume_inference(&mut self, inference: Inference) {
        match inference.stage {
            AttemptStage::AfterHook(_, answer) => {
                return self.resume_after_hook(inference.model, inference.attempt, answer);
            }
            AttemptStage::BackingOff(_, until) => {
                return self.resume_attempt(inference.model, inference.attempt, Some(until));
            }
            AttemptStage::Cut(cut) => {
                let usage = self.estimated(inference.model, &cut.usage, false, &|| cut.content.clone());
                self.count(&usage);
                if cut.shown {
                    let reason = "the process ended while the answer came".to_owned();
                    self.emit(AgentEvent::MessageReset { reason });
                }
            }
            AttemptStage::BeforeHook(_) | AttemptStage::Streaming(_) | AttemptStage::FailedHook(..) => {}
        }
        self.resume_attempt(inference.model, inference.attempt, None);
    }

    /// Continues an attempt from a checkpoint: calls again, after the rest of the delay.
    fn resume_attempt(&mut self, model: usize, attempt: u32, until: Option<u64>) {
        let Some(mut request) = self.new_request() else { return };
        self.note_model(&request);
        // The chain of models may be shorter now.
        let model = if model < self.rules.models.len() { model } else { 0 };
        self.fit_request(&mut request, model);
        self.state.turn.model = model;
        let mut inference =
            Box::new(Inference { request, model, attempt, last_error: None, stage: AttemptStage::default() });
        match until {
            None => self.attempt_again(inference),
            Some(until) => {
                let left = self.start(Effect::Sleep { ms: until.saturating_sub(self.now) });
                inference.stage = AttemptStage::BackingOff(left, until);
                self.state.phase = Phase::Inferring(inference);
            }
        }
    }

    /// Continues hooks from a checkpoint: they are called again for the answer.
    fn resume_after_hook(&mut self, model: usize, attempt: u32, answer: StoredAnswer) {
        let call = HookCall::AfterInference {
            turn_index: self.state.tally.turn_index,
            attempt,
            model: answer.message.model.as_str().into(),
            message: answer.message.clone(),
        };
        if !self.rules.hooks.has(&call) {
            return self.answered(answer);
        }
        let stage = AttemptStage::AfterHook(self.start(Effect::Hook(call)), answer);
        let request = self.request(Rc::default());
        self.state.phase =
            Phase::Inferring(Box::new(Inference { request, model, attempt, last_error: None, stage }));
    }
}
