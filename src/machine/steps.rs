//! What a host that stores what effects answer must know of the state: which effect a time limit is for, and what has
//! arrived of an answer.

use crate::host::config::Rules;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::ErrorInfo;
use crate::words::event::AgentEvent;
use crate::words::message::Usage;

use super::batch::Batch;
use super::output::EffectId;
use super::phase::{AttemptStage, Phase, Streaming};
use super::state::LoopState;

/// What a timer of the machine is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timed {
    /// The delay between two attempts to call a model.
    BackOff,
    /// The call of a model, which must not be silent for too long, nor take too long.
    Attempt(EffectId),
    /// The call of a tool.
    Call(EffectId),
    /// The whole run.
    Run,
    /// Nothing any more.
    Nothing,
}

impl LoopState {
    /// What a timer is for.
    pub(crate) fn timed_by(&self, timer: EffectId) -> Timed {
        if self.timing.limit == Some(timer) {
            return Timed::Run;
        }
        if self.is_backing_off(timer) {
            return Timed::BackOff;
        }
        match &self.phase {
            Phase::Inferring(_) => match self.streaming() {
                Some(streaming) if streaming.watchdog == Some(timer) => Timed::Attempt(streaming.effect),
                _ => Timed::Nothing,
            },
            Phase::Dispatching(batch) => batch.timed_by(timer).map_or(Timed::Nothing, Timed::Call),
            _ => Timed::Nothing,
        }
    }

    /// The time limit of a call that runs.
    pub(crate) fn timer_of(&self, effect: EffectId) -> Option<EffectId> {
        let Phase::Dispatching(batch) = &self.phase else { return None };
        batch.timer_of(effect)
    }

    /// What has arrived of the answer of a call of a model, each block in one piece.
    pub(crate) fn arrived_of(&self, effect: EffectId) -> Vec<AssistantMessageEvent> {
        let streaming = self.streaming().filter(|streaming| streaming.effect == effect);
        streaming.map(|streaming| streaming.assembler.events()).unwrap_or_default()
    }

    /// What has arrived of an answer does not count.
    pub(crate) fn take_back(&mut self, reason: &str) -> Option<AgentEvent> {
        let Phase::Inferring(inference) = &mut self.phase else { return None };
        let AttemptStage::Streaming(streaming) = &mut inference.stage else { return None };
        streaming.assembler.usage = Usage::default();
        if streaming.assembler.is_empty() {
            return None;
        }
        for call_id in streaming.assembler.call_ids() {
            self.history.call_ids.release(call_id);
        }
        streaming.assembler.clear();
        Some(AgentEvent::MessageReset { reason: reason.to_owned() })
    }

    /// Whether the answer that streams takes too long, or is silent for too long. If not, returns after how many
    /// milliseconds that is to be asked again.
    pub(crate) fn patience(&self, rules: &Rules, now: u64) -> Result<Option<u64>, Box<ErrorInfo>> {
        match self.streaming() {
            Some(streaming) => streaming.patience(&rules.timeouts, now),
            None => Ok(None),
        }
    }

    fn streaming(&self) -> Option<&Streaming> {
        match &self.phase {
            Phase::Inferring(inference) => match &inference.stage {
                AttemptStage::Streaming(streaming) => Some(streaming),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Batch {
    fn running(&self) -> impl Iterator<Item = (EffectId, Option<EffectId>)> {
        self.calls.iter().filter_map(|call| call.status.running())
    }

    fn timed_by(&self, timer: EffectId) -> Option<EffectId> {
        self.running().find(|(_, own)| *own == Some(timer)).map(|(effect, _)| effect)
    }

    fn timer_of(&self, effect: EffectId) -> Option<EffectId> {
        self.running().find(|(own, _)| *own == effect)?.1
    }
}
