//! Tapes: what went into a run, written down, and the run lived again.
//!
//! A run is decided by what goes into its machine, in order: prompts, pieces of answers, results of tools, letters, aborts, the
//! time of each, and what the rules of the host answered. A [`Recorder`] writes that down, a line of JSON each.
//! [`replay`] is a fold of [`LoopState::step`](crate::machine::LoopState::step) over the lines: it needs no model, no tools,
//! no futures and no clock, and gives the same events. A run of minutes takes milliseconds.
//!
//! ```
//! use turnwheel::tape::{Recorder, Tape, replay};
//! use turnwheel::{Agent, AgentLoopConfig, AgentRunContext, CancelToken, scripted};
//!
//! let config = AgentLoopConfig::new(scripted::model([scripted::text("Hello.")]), scripted::clock());
//! let agent = Agent::new(config, Vec::new());
//! let recorder = Recorder::new(0);
//! agent.record(&recorder)?;
//! let run = agent.prompt(vec!["Hi".into()], AgentRunContext::new("run", "session"), CancelToken::new())?;
//! futures::executor::block_on(run.finish());
//! recorder.stop();
//!
//! let tape = Tape::parse(&recorder.to_text())?;
//! let replayed = replay(&tape)?;
//! assert_eq!(replayed.events.last().map(|event| event.name()), Some("agent_end"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The format is described in `docs/tape.md`. It never holds keys, values of headers, or functions.

mod answering;
mod asking;
mod beginning;
mod digest;
mod frame;
mod input;
mod messages;
mod outputs;
mod pen;
mod pieces;
mod plain;
mod play;
mod record;
mod redact;
mod seek;
mod seen;
mod text;
mod wire;

use crate::data::json::{FromJson, Value};
use crate::words::event::AgentEvent;

pub use answering::RuleAnswer;
pub use digest::seal;
pub use frame::Frame;
#[cfg(feature = "durable")]
pub(crate) use input::{read_reply, write_reply};
pub use play::{Divergence, Player};
pub use record::{Recorder, RecorderOptions, header};
pub use redact::Redact;
pub use seek::Seeker;
pub use seen::Seen;
pub use text::{Tape, TapeError};
pub use wire::decode_again;

/// A tape that was lived again.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// All events, in order.
    pub events: Vec<AgentEvent>,
    /// Whether the recording was stopped in order. One that was cut is lived up to its end.
    pub is_complete: bool,
}

/// Lives a tape again.
///
/// # Errors
/// If the engine does not do what the tape says, or the tape cannot be read.
pub fn replay(tape: &Tape) -> Result<Replayed, Divergence> {
    let mut player = Player::new(tape);
    let mut events = Vec::new();
    while let Some(seen) = player.advance()? {
        if let Seen::Event(event) = seen {
            events.push(event);
        }
    }
    Ok(Replayed { events, is_complete: tape.is_complete() })
}

/// Reads a member, or its default if there is none.
fn optional<T: FromJson + Default>(value: &Value, key: &str) -> Result<T, String> {
    match value.get(key) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::from_json(value).map_err(|why| ["`", key, "`: ", &why].concat()),
    }
}
