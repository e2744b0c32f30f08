#![doc = include_str!("../README.md")]

mod abort;
mod approver;
mod call;
mod clock;
mod fetch;
mod flaw;
mod model;
mod output;
mod random;
mod spawn;
mod thrown;
mod tool;
mod value;

use std::rc::Rc;

use turnwheel::{AgentLoopConfig, Model};

pub use abort::{cancel_by, signal_of};
pub use approver::JsApprover;
pub use clock::Clock;
pub use fetch::Fetch;
pub use model::JsModel;
pub use random::{new_context, random, uuid};
pub use spawn::{Spawned, spawn};
pub use tool::JsTool;
pub use value::{event_to_js, from_js, to_js};

/// Returns a configuration with the clock, the timers, the random numbers and the ids of the host, and defaults for everything
/// else.
pub fn config(model: Model) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::with_ids(model, Rc::new(Clock), Rc::new(uuid));
    config.rules.random = Rc::new(random);
    config
}
