//! turnwheel: an LLM agent is a loop — call a model, stream its answer, run the tools it asks for, feed the
//! results back — and this crate is that loop, as a sans-IO [`machine`] and one thin asynchronous
//! [`driver`].
//!
//! [`driver::agent_loop`] starts a single run; [`agent::Agent`] keeps a conversation across runs. Both
//! return a [`driver::AgentStream`], and the run makes progress while you poll it. Nothing is spawned.
//!
//! ```
//! use std::rc::Rc;
//! use futures::{StreamExt, executor::block_on};
//! use turnwheel::cancel::CancelToken;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::driver::agent_loop;
//! use turnwheel::event::AgentEvent;
//! use turnwheel::json::RawJson;
//! use turnwheel::ports::AgentRunContext;
//! use turnwheel::scripted::{self, Clock};
//! use turnwheel::tool::{AgentToolResult, ToolContext, ToolOutcome, ToolSpec, tool};
//!
//! let time = ToolSpec::new("time", "Tells the time", RawJson::parse(r#"{"type":"object"}"#)?);
//! let time = tool(time, async |_: ToolContext| ToolOutcome::Completed(AgentToolResult::text("noon")));
//! let model = scripted::model([scripted::calls([("a", "time", "{}")]), scripted::text("It is noon.")]);
//! let mut config = AgentLoopConfig::new(model, Rc::new(Clock::default()));
//! config.set_tools(vec![time])?;
//!
//! let who = AgentRunContext::new("run-1", "session-1");
//! let mut run = agent_loop(vec!["What time is it?".into()], config, who, CancelToken::new());
//! block_on(async {
//!     while let Some(event) = run.next().await {
//!         if let AgentEvent::MessageUpdate(delta) = event {
//!             print!("{}", delta.text);
//!         }
//!     }
//! });
//! assert_eq!(run.result().expect("it is over").text, "It is noon.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agent;
pub mod data;
pub mod driver;
mod host;
pub mod machine;
mod rules;
mod stock;
pub mod wires;
mod words;

pub use data::json;
pub use host::{cancel, config, isolate, ports, state, tool};
pub use rules::{approval, call_ids, checkpoint, context, overflow, policy, retry, stream, stream_parts};
pub use stock::{http, scripted, summarize};
pub use words::{error, event, message, price};
