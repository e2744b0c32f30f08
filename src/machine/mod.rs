//! The sans-IO machine: the state of one run as plain data, and [`LoopState::step`], the only function that
//! changes it.
//!
//! A step takes one input and appends everything that follows from it to a list, in order: events to emit,
//! effects to start, effects to cancel. It never waits, never reads a clock, and calls nothing but
//! [`Rules`].
//!
//! The driver processes the list in order. Before it starts an effect, it emits all events that come before
//! it and delivers the mail that has arrived in the meantime. If that cancels the effect, the effect never
//! starts. A late reply to a cancelled effect changes nothing.
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
mod checkpoint;
mod dispatch;
mod end;
mod execute;
mod history;
mod infer;
mod input;
mod mail;
mod output;
mod phase;
mod plan;
mod policies;
mod poll;
mod prepare;
mod request;
mod resume;
mod retry;
mod settle;
mod state;
mod step;
mod structured;
mod texts;
mod turn;

pub use checkpoint::unsaid;
pub(crate) use history::History;
pub use input::{AgentCommand, Input, Letter, Queue, Reply};
pub(crate) use mail::has_content;
pub use output::{Effect, EffectId, Output, Receipt};
pub use resume::tell_first;
pub use state::LoopState;
pub use structured::OUTPUT_TOOL;
