//! The fast path for most events: an answer that continues, with nothing else to do in between.

use crate::machine::{EffectId, Reply};

/// What is known of the model call that sent the last piece of its answer.
#[derive(Clone, Copy, Default)]
pub(super) enum AnswerPump {
    /// There is none, or something else has happened since.
    #[default]
    Idle,
    /// It may have more ready.
    Ready(EffectId),
    /// It is waiting for more.
    Paused(EffectId),
}

impl AnswerPump {
    /// The run is polled anew: what was waiting may have more ready.
    pub(super) fn wake(&mut self) {
        if let AnswerPump::Paused(id) = *self {
            *self = AnswerPump::Ready(id);
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self, AnswerPump::Ready(_))
    }

    /// Takes the call that may have more ready.
    pub(super) fn take_ready(&mut self) -> Option<EffectId> {
        let AnswerPump::Ready(id) = *self else { return None };
        *self = AnswerPump::Idle;
        Some(id)
    }

    /// Notes a reply after which more may follow.
    pub(super) fn note(&mut self, id: EffectId, reply: &Reply) {
        if let Reply::Stream(_) = reply {
            *self = AnswerPump::Ready(id);
        } else if self.is_ready() {
            *self = AnswerPump::Idle;
        }
    }
}
