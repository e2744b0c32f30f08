//! The sans-IO machine: the state of one run as plain data, and [`LoopState::step`], the only function that
//! changes it.
//!
//! A step takes one [`Input`] and appends everything that follows from it to a list, in order: events to emit,
//! effects to start, effects to cancel, receipts. It never waits, never reads a clock, and calls nothing but
//! [`Rules`](crate::config::Rules), which decide at once. Whatever takes time is an [`Effect`]: somebody else does
//! it and comes back with a [`Reply`].
//!
//! # The phases
//!
//! A run is always in one of eleven phases. Each waits for its own effects, and ends in one of few others:
//!
//! | phase | what happens | waits for the reply of | then | file |
//! |---|---|---|---|---|
//! | `Idle` | nothing yet; mail is kept | `Begin`, `Continue` or `Resume`, which are inputs | `Preparing`, or `Polling` if steering is read first | `turn` |
//! | `Choosing` | the host chooses what holds for the turn | `Choose` | `Preparing`; in a restored run, where the turn was | `prepare` |
//! | `Preparing` | the transformers look at the history; then the policies before the call decide | `Prepare` | `Inferring`; `Compacting` or again `Preparing` if it is too long; the end | `prepare`, `policies` |
//! | `Compacting` | the compaction engine makes room | `Compact` | `Preparing`, or `Inferring` if it was only an estimate; the end | `prepare` |
//! | `Inferring` | hooks, the model's stream, hooks; perhaps several attempts | `Hook`, `Infer` (many), `Sleep` | `Dispatching` if there are calls; `Polling` if not, or if a message cut it off; `Preparing` if the model refuses the length; the end | `request`, `infer`, `retry` |
//! | `Dispatching` | the calls of the answer: asked about, run, settled | `Approve`, `Hook`, `Execute` (many), `Sleep`; commands | `Polling`; the end | `dispatch`, `approve`, `plan`, `execute`, `settle` |
//! | `Flushing` | policies decide next: the listeners receive every event before | `Flushed`, which is an input | `Inferring`; `Dispatching`; `Polling`; the end | `policies` |
//! | `Questioned` | a budget has no room, and a person is asked | `Resolve`, which is a command | `Preparing`; the end | `budget` |
//! | `Polling` | between turns: has anything arrived? | `Poll` | `Preparing`; again `Polling` for the follow-ups; the end | `poll` |
//! | `Closing` | an error ends the run: the error hooks hear of it | `Hook` | `Ended` | `end` |
//! | `Ended` | nothing any more | | | `end` |
//!
//! *The end* is `Closing` if there are error hooks and an error, and `Ended` otherwise. A turn is what happens between
//! the entry into `Preparing` with a fresh turn and the next `Polling` or the end:
//!
//! ```text
//!              ┌───────────────── another turn ────────────────┐
//!              ▼                                               │
//! Idle ──► Preparing ──────► Inferring ──► Dispatching ──► Polling ──► Ended
//!           ▲   ▲              │ └─────── no calls ────────▲           ▲
//!           │   └── too long ──┘                                        │
//!           ▼                           an error, from anywhere ──► Closing
//!       Compacting
//! ```
//!
//! # What a phase does with an input
//!
//! | input | effect |
//! |---|---|
//! | [`Input::Begin`], [`Input::Continue`] | begin a run that is `Idle`; later they change nothing |
//! | [`Input::Resume`] | a run from a checkpoint starts again the effect that its phase waits for |
//! | [`Input::Reply`] | goes to the phase that waits for that effect. A late reply to an effect that was cancelled is legal and changes nothing. A reply of the wrong kind, or to an effect that was never started, is a mistake of the caller: it changes nothing either, and debug builds panic |
//! | [`Input::Steer`] | kept until the turn is over; in `Inferring` it may cut the answer off, in `Dispatching` stop the calls, in `Polling` it is what is waited for |
//! | [`Input::Command`] | a decision goes to the table of approvals, a message to its queue |
//! | [`Input::Abort`] | ends any phase at once, with everything closed that is open. Before the run begins it is kept until then |
//! | [`Input::Flushed`] | policies decide about the turn or the batch; later it changes nothing |
//! | [`Input::Deserted`] | ends a run that waits for a person, because nobody is left to decide |
//!
//! The time limit of the run and polls beside the tools are not tied to a phase; `step` looks at them first.
//!
//! # What holds at any moment
//!
//! - What is open is closed: the message before the tools, the tools before the turn, the turn before the run. The
//!   grammar is in [`event`](crate::event).
//! - A call whose answer is in the history has a result, or will have one: in `Dispatching`, or before that in the
//!   hooks that end `Inferring`.
//! - Effect ids are given out in order and never used twice in a run.
//! - A phase carries what only it needs, so that there is no batch outside of `Dispatching` and no stream outside of
//!   `Inferring`; the rest of the state is in groups (`queues`, `tally`, …) that every phase may use.
//! - All of it can be written down (`checkpoint`), in any phase, and continued elsewhere (`resume`). Effects are not
//!   written: whatever waits for one starts it again.
//!
//! # Who drives it
//!
//! The driver processes the list in order. Before it starts an effect, it emits all events that come before
//! it and delivers the mail that has arrived in the meantime. If that cancels the effect, the effect never
//! starts. Where the list says [`Output::Flush`], it answers with [`Input::Flushed`] as soon as it has emitted all events
//! before, and delivered the mail that has arrived in the meantime.
//!
//! ```
//! use std::rc::Rc;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::machine::{Effect, Input, LoopState, Output, Reply};
//! use turnwheel::ports::AgentRunContext;
//! use turnwheel::scripted::{self, Clock};
//! use turnwheel::state::SessionState;
//!
//! let rules = AgentLoopConfig::new(scripted::model([]), Rc::new(Clock::default())).rules;
//! let mut run = LoopState::new(AgentRunContext::new("run", "session"), Vec::new(), SessionState::default());
//! let mut out = Vec::new();
//! run.step(&rules, 0, Input::Begin(vec!["Hello".into()]), &mut out);
//!
//! // agent_start, turn_start, and a wish: that somebody prepares the context.
//! let [Output::Event(_), Output::Event(_), Output::Start { id, effect: Effect::Prepare { .. }, .. }] = out[..] else {
//!     panic!("{out:?}");
//! };
//! run.step(&rules, 0, Input::Reply(id, Reply::Prepared(Ok(Default::default()))), &mut out);
//! assert!(matches!(out.last(), Some(Output::Start { effect: Effect::Infer { .. }, .. })));
//! ```

mod approve;
mod batch;
mod budget;
mod checkpoint;
mod children;
mod closing;
mod dispatch;
mod end;
mod execute;
mod history;
mod infer;
mod input;
mod mail;
mod name;
mod output;
mod phase;
mod plan;
mod policies;
mod poll;
mod prepare;
mod questions;
mod recheck;
mod request;
mod resume;
mod retry;
mod settle;
mod state;
mod step;
#[cfg(feature = "durable")]
mod steps;
mod structured;
mod texts;
mod turn;
mod usage;

pub(crate) use checkpoint::child::{
    QuestionsInside, any as read_any_child, enveloped as read_enveloped_child,
};
pub use checkpoint::unsaid;
pub(crate) use history::History;
pub use input::{AgentCommand, Input, Letter, Queue, Reply};
pub(crate) use mail::has_content;
pub use name::EffectNames;
pub(crate) use name::hash_of;
pub use output::{Effect, EffectId, Output, Receipt};
pub use resume::tell_first;
pub use state::LoopState;
#[cfg(feature = "durable")]
pub(crate) use steps::Timed;
pub use structured::OUTPUT_TOOL;
