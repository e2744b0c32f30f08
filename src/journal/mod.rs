//! What enters a run, in order.
//!
//! A run is decided by what enters its machine: prompts, pieces of answers, what effects answered, commands, and the time of
//! each. With all of that in order, the machine can run again and gives the same events. Two things in this room keep it:
//!
//! - A [**tape**](tape) is written while a run goes on, and read afterwards. It has every input, every piece of an answer and what
//!   the host's rules said, a line of JSON each. A [`Player`](tape::Player) replays it without the host: for inspection, for
//!   tests, for a fork.
//! - A [**journal**](steps) is what a run lives on. An effect is a step; what it answered is a record, which a durable engine stores
//!   before the answer enters. A later process asks the engine for the same steps, gets the same records, and goes on where they
//!   end. It has no pieces and no rules: the host is there and does the same again.
//!
//! Both give an effect the same name ([`EffectNames`](crate::machine::EffectNames)), and write what it answered in the same form
//! ([`tape::write_reply`]). Both sit at the [`Seam`] of a run, at four moments: an effect would start, a reply has arrived, something
//! is about to enter, the run rests. A recorder only writes at the third. A journal turns the first into a step, keeps the second as
//! the outcome of that step, and decides in the fourth what comes third. At the seam of most runs there is nobody; then all of this
//! costs nothing.

#[cfg(feature = "durable")]
pub(crate) mod steps;
pub mod tape;

use std::rc::Rc;
use std::task::{Context, Poll};

use crate::host::config::AgentLoopConfig;
use crate::host::tool::ChildEvent;
use crate::machine::{Effect, EffectId, Input, LoopState, Output, Reply};
use crate::rules::budget::Ledger;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::event::AgentEvent;
use crate::words::message::Usage;

/// Who sits between a run and its host. Each method does nothing unless it is implemented.
pub(crate) trait Seam<Run> {
    /// A configuration takes force. Returns the one that does.
    fn configure(&self, config: Rc<AgentLoopConfig>) -> Rc<AgentLoopConfig> {
        config
    }

    /// An effect would start. Returns it if it starts now.
    fn starts(&self, _run: &mut Run, _id: EffectId, effect: Effect, _by: Answers) -> Option<Effect> {
        Some(effect)
    }

    /// Nobody wants an effect any more.
    fn drops(&self, _run: &mut Run, _id: EffectId) {}

    /// A reply has arrived, or a piece of one. Returns what enters of it now.
    fn arrives(&self, _run: &mut Run, _id: EffectId, reply: Reply) -> Option<Reply> {
        Some(reply)
    }

    /// Something is about to enter the machine.
    fn enters(&self, _state: &LoopState, _now: u64, _entering: &Entering<'_>) {}

    /// It has entered, and the machine has put this out.
    fn entered(&self, _state: &LoopState, _out: &[Output]) {}

    /// Commands may have reached the run. Returns whether one was handled; `None` if they enter at once.
    fn commands(&self, _run: &mut Run) -> Option<bool> {
        None
    }

    /// The run rests. Returns what it does then; `None` if that is not decided here.
    fn rests(&self, _run: &mut Run, _rest: Rest, _cx: &mut Context<'_>) -> Option<Poll<bool>> {
        None
    }

    /// The run has emitted its end, or is dropped.
    fn leaves(&self, _run: &mut Run) {}
}

/// Who answers an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The host.
    Host,
    /// The driver, at once: the host has no such port.
    Driver,
}

/// What is about to enter the machine.
pub(crate) enum Entering<'a> {
    /// A run begins, or goes on from a checkpoint.
    Beginning(&'a Beginning<'a>),
    Input(&'a Input),
    /// A piece of an answer, by the short way.
    Piece(EffectId, &'a AssistantMessageEvent),
    /// An event of an agent inside a call that has its result already, because this effect is dropped or by itself.
    Late {
        call_id: &'a str,
        event: &'a ChildEvent,
        dropped: Option<EffectId>,
    },
}

/// When a run rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It has not begun.
    Beginning,
    /// It is between two things that it does. Here it ends if it cannot go on in this process.
    Between,
    /// It is about to poll its effects.
    Polling,
    /// Nothing is left to do until something enters.
    Idle,
    /// It is over.
    Over,
}

/// What a run begins with, beside its state.
pub(crate) struct Beginning<'a> {
    /// The events that its checkpoint had not emitted yet; `None` for a run that has no checkpoint.
    pub(crate) unemitted: Option<&'a [AgentEvent]>,
    /// What the earlier runs of the agent have used.
    pub(crate) used: Usage,
    pub(crate) spent: Ledger,
}
