//! turnwheel: an LLM agent is a loop — call a model, stream its answer, run the tools it asks for, feed the results
//! back — and this crate is that loop. A run is a stream of events that makes progress while you poll it: the crate
//! spawns nothing, has no runtime, no HTTP client, no clock and no ids of its own. It builds for every target, wasm
//! included.
//!
//! # An agent with a tool
//!
//! ```toml
//! [dependencies]
//! futures = "0.3"
//! serde = { version = "1", features = ["derive"] }
//! turnwheel = { path = "../turnwheel", features = ["reqwest"] }
//! ```
//!
//! A whole program: `OPENAI_API_KEY=… cargo run`.
//!
#![cfg_attr(feature = "reqwest", doc = "```no_run")]
#![cfg_attr(not(feature = "reqwest"), doc = "```ignore")]
//! use std::error::Error;
//!
//! use futures::executor::block_on;
//! use serde::Deserialize;
//! use turnwheel::reqwest::Client;
//! use turnwheel::wires::{WireOptions, wire};
//! use turnwheel::{Agent, AgentLoopConfig, AgentRunContext, CancelToken, ToolSpec, typed_tool};
//!
//! #[derive(Deserialize)]
//! struct Word {
//!     word: String,
//! }
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let schema = r#"{ "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"] }"#;
//!     let spec = ToolSpec::parse("letters", "Counts the letters of a word", schema)?;
//!     let letters = typed_tool(spec, async |Word { word }, _call| word.chars().count().to_string());
//!
//!     let client = Client::new()?;
//!     let wire = wire("openai-chat", WireOptions::default())?; // or anthropic, gemini, openai-responses
//!     let model = client.over(wire).with_key(&std::env::var("OPENAI_API_KEY")?).model("gpt-5-mini");
//!     let mut config = AgentLoopConfig::new(model, client.timer());
//!     config.set_tools(vec![letters])?;
//!
//!     let agent = Agent::new(config, Vec::new());
//!     let question = "How many letters has Llanfairpwllgwyngyll?";
//!     let mut run = agent.prompt(vec![question.into()], AgentRunContext::random(), CancelToken::new())?;
//!     block_on(async {
//!         while let Some(event) = run.next().await {
//!             print!("{}", event.added_text().unwrap_or_default()); // the answer, as it streams
//!         }
//!     });
//!     let result = run.result().ok_or("the run is not over")?;
//!     match &result.error {
//!         Some(error) => Err(error.to_string().into()),
//!         None => Ok(()),
//!     }
//! }
//! ```
//!
//! - A server of your own, such as Ollama or llama.cpp, is `WireOptions { base_url: "http://127.0.0.1:11434/v1".into(),
//!   ..Default::default() }`, and needs no `with_key`.
//! - On a server with many threads, [`spawn()`] gives a handle that is `Send`: [`spawn`](mod@spawn).
//!
//! # Hello
//!
//! Without a model, for tests:
//!
//! ```
//! use turnwheel::{AgentLoopConfig, AgentRunContext, CancelToken, agent_loop, scripted};
//!
//! let model = scripted::model([scripted::text("Hello!")]); // for tests; a real one: HttpModel
//! let config = AgentLoopConfig::new(model, scripted::clock());
//! let who = AgentRunContext::new("run-1", "session-1");
//!
//! let run = agent_loop(vec!["Say hello.".into()], config, who, CancelToken::new());
//! let result = futures::executor::block_on(run.finish());
//! assert_eq!(result.text, "Hello!");
//! ```
//!
//! # A tool, and the answer as it streams
//!
//! A [`tool()`] is a description for the model and an asynchronous closure; a [`typed_tool`] takes its arguments as a type of
//! serde. What goes wrong in it becomes an error result that the model reads; it never ends the run. [`AgentStream::next`] gives
//! the events one by one:
//!
//! ```
//! use turnwheel::{AgentLoopConfig, AgentRunContext, CancelToken, ToolSpec, agent_loop, scripted, tool};
//!
//! let zone = r#"{ "type": "object", "properties": { "zone": { "type": "string" } }, "required": ["zone"] }"#;
//! let time = tool(ToolSpec::parse("time", "Tells the time in a time zone", zone)?, async |call| {
//!     match call.arguments.to_value().text_at("zone") {
//!         Some("Europe/Oslo") => Ok("noon"),
//!         _ => Err("only Europe/Oslo is known here"),
//!     }
//! });
//! # let call = ("call-1", "time", r#"{"zone":"Europe/Oslo"}"#);
//! # let model = scripted::model([scripted::calls([call]), scripted::text("It is noon.")]);
//! let mut config = AgentLoopConfig::new(model, scripted::clock());
//! config.rules.system_prompt = "You are brief.".into();
//! config.set_tools(vec![time])?;
//!
//! let who = AgentRunContext::new("run-1", "session-1");
//! let mut run = agent_loop(vec!["What time is it in Oslo?".into()], config, who, CancelToken::new());
//! futures::executor::block_on(async {
//!     while let Some(event) = run.next().await {
//!         if let Some(text) = event.added_text() {
//!             print!("{text}");
//!         }
//!     }
//! });
//! let result = run.result().ok_or("the run is over")?;
//! assert_eq!((result.text.as_str(), result.turns), ("It is noon.", 2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every start among the [events](event) has its end, whatever happens, and every call in the history has exactly one
//! result. An [`AgentEvent`] is plain data: `serde_json::to_string(&event)` is what the npm package gives to JavaScript,
//! which adds the `runId`.
//!
//! # A conversation, with approval
//!
//! An [`Agent`] keeps the history across runs. From anywhere and at any time it can be [steered](Agent::steer), given a
//! [follow-up](Agent::follow_up), [aborted](Agent::abort), or told what to do about a call that waits for approval:
//!
//! ```
//! use turnwheel::approval::ToolDecision;
//! use turnwheel::tool::ApprovalNeed;
//! use turnwheel::{Agent, AgentEvent, AgentLoopConfig, AgentRunContext, CancelToken, ToolSpec, scripted, tool};
//!
//! let spec = ToolSpec::parse("delete", "Deletes everything", r#"{ "type": "object" }"#)?;
//! let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec };
//! # let model = scripted::model([scripted::calls([("a", "delete", "{}")]), scripted::text("As you wish.")]);
//! let mut config = AgentLoopConfig::new(model, scripted::clock());
//! config.set_tools(vec![tool(spec, async |_| "everything is gone")])?;
//!
//! let agent = Agent::new(config, Vec::new());
//! let who = AgentRunContext::new("run-1", "session-1");
//! let mut run = agent.prompt(vec!["Tidy up.".into()], who, CancelToken::new())?;
//! futures::executor::block_on(async {
//!     while let Some(event) = run.next().await {
//!         if let AgentEvent::ToolApprovalRequested { call_id, .. } = event {
//!             agent.resolve_tool(call_id, ToolDecision::Reject { reason: Some("not today".into()) });
//!         }
//!     }
//! });
//! assert_eq!(agent.messages().len(), 4); // the question, the call, its refusal, the answer
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A host that decides by itself sets an [`Approver`](ports::Approver) instead, or [rules](approval::ApprovalOptions).
//!
//! # A model over HTTP
//!
//! Four wires are built in: `openai-chat` (also the one of Ollama, llama.cpp, OpenRouter, …), `openai-responses`,
//! `anthropic` and `gemini`. The feature `reqwest` brings an HTTP client and a clock. Without it both are yours: a closure that
//! posts a request is a [`Transport`](http::Transport).
//!
//! ```
//! use std::rc::Rc;
//! use turnwheel::wires::{HttpRequest, WireOptions, wire};
//! use turnwheel::{AgentLoopConfig, AgentRunContext, CancelToken, HttpModel, agent_loop};
//! use turnwheel::{http::HttpResponse, scripted};
//!
//! let transport = async |request: HttpRequest| {
//!     // With your HTTP client: post `request.body` to `request.url` with `request.headers`, and hand on what comes.
//! #   use futures::{StreamExt, stream};
//! #   let said = br#"data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}"#;
//! #   let (status, headers) = (200, Vec::new());
//! #   let body = stream::iter([Ok([said, &b"\n\ndata: [DONE]\n\n"[..]].concat())]).boxed_local();
//! #   assert_eq!(request.url, "https://api.openai.com/v1/chat/completions");
//!     Ok::<_, String>(HttpResponse { status, headers, body })
//! };
//! let clock = scripted::clock(); // yours sleeps: see `ports::Timer`
//! let wire = wire("openai-chat", WireOptions::default())?;
//! let model = HttpModel::new(wire, Rc::new(transport), clock.clone()).with_key("sk-test").model("gpt-5-mini");
//! # let who = AgentRunContext::new("run-1", "session-1");
//! # let run = agent_loop(vec!["Hi".into()], AgentLoopConfig::new(model, clock), who, CancelToken::new());
//! # assert_eq!(futures::executor::block_on(run.finish()).text, "Hello.");
//! # Ok::<(), String>(())
//! ```
//!
//! Anything else that can answer is a [`StreamFn`](ports::StreamFn): a model in this process, a recording, a server of
//! your own. What fails for a moment is repeated as the [`retry`] rules say, then the next of the
//! [models](AgentLoopConfig::set_models) is asked.
//!
//! # Sleep and wake
//!
//! A [checkpoint](CheckpointEnvelopeV1) is the whole conversation as JSON, at any moment: in the middle of an answer,
//! while a tool runs, while a person takes days to decide. Another process goes on from there.
//!
//! ```
//! use turnwheel::{Agent, AgentLoopConfig, AgentRunContext, CancelToken, CheckpointEnvelopeV1, scripted};
//!
//! let config = || AgentLoopConfig::new(scripted::model([scripted::text("Here I am.")]), scripted::clock());
//! let agent = Agent::new(config(), Vec::new());
//! let who = AgentRunContext::new("run-1", "session-1");
//! let mut run = agent.prompt(vec!["Where are you?".into()], who, CancelToken::new())?;
//! futures::executor::block_on(run.next()); // it has only begun
//! let stored: String = run.checkpoint().encode();
//! drop((run, agent));
//!
//! let agent = Agent::restore(config(), &CheckpointEnvelopeV1::decode(stored.as_bytes())?)?;
//! let who = agent.resumable().ok_or("no run was active")?;
//! let run = agent.continue_run(who, CancelToken::new())?;
//! assert_eq!(futures::executor::block_on(run.finish()).text, "Here I am.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where everything is
//!
//! The words of these examples stand here, at the root. The rest is in modules, each with a page of its own:
//!
//! | to … | see |
//! |---|---|
//! | start one run, listen to it, post commands to it | [`driver`] |
//! | keep a conversation, subscribe, steer; make an agent the tool of another | [`agent`], [`agent::subagent`] |
//! | know every event, and why a turn or a run ended | [`event`] |
//! | read and write messages; count tokens and money | [`message`], [`price`] |
//! | describe tools, report progress, share state between them | [`tool`](mod@tool), [`state`] |
//! | set limits, order, texts, fallbacks | [`config`] |
//! | implement what the loop awaits: models, approvers, hooks, queues, clocks | [`ports`] |
//! | decide without waiting: before a turn, about a call, after a turn, at the end | [`policy`] |
//! | say which calls need a person; know what is asked | [`approval`], [`question`] |
//! | keep a long history within the model's window | [`context`], [`overflow`], [`summarize`] |
//! | repeat failed calls | [`retry`] |
//! | sleep and wake | [`checkpoint`] |
//! | live in a durable engine, which stores what each effect answers | [`ports::Steps`] |
//! | talk to a provider | [`http`], [`wires`], [`stream`]; ready to use: [`reqwest`](mod@reqwest) |
//! | hand an agent to a server with many threads | [`spawn`](mod@spawn) |
//! | test without a model and without waiting | [`scripted`] |
//! | record a run, live it again, look at any moment of it | [`tape`] |
//! | cancel | [`cancel`] |
//! | handle errors | [`error`] |
//! | pass JSON through as it is | [`json`] |
//! | drive the loop yourself, without futures | [`machine`] |
//!
//! Futures here are not `Send`: a run belongs to one thread, as in a browser. Any executor that polls it there will do, such as a
//! `tokio::task::LocalSet`; with the feature `spawn`, an agent has a thread of its own, and [`spawn()`] gives a handle that is
//! `Send`.
//!
//! # Features
//!
//! - `durable`, on by default: [`ports::Steps`], and the [recording](tape::Recorder) of runs.
//! - `jsonschema`: `schema::validator` checks the arguments of calls against the whole JSON Schema (some 80 crates).
//! - `reqwest`: [`reqwest::Client`], a transport and a clock on any executor, with TLS by rustls (some 90 crates).
//! - `spawn`: [`spawn()`], an agent on a thread of its own.
//! - `tracing`: every run is a span of the `tracing` crate, each answer and each call of a tool one inside it, with the
//!   names of OpenTelemetry's GenAI conventions (`tracing-opentelemetry` sends them there). A call's span is current
//!   while its tool runs, and that of the answer while the model is called; an agent inside a call is inside its span.

#![warn(missing_docs)]

pub mod agent;
#[doc(hidden)]
pub mod data;
pub mod driver;
mod host;
mod journal;
pub mod machine;
mod rules;
#[cfg(feature = "spawn")]
pub mod spawn;
mod stock;
pub mod wires;
mod words;

#[doc(inline)]
pub use data::json;
pub use host::{cancel, config, isolate, ports, state, tool};
pub use journal::tape;
pub use rules::{
    answer, approval, authority, budget, call_ids, checkpoint, context, overflow, policy, retry, secrets,
    stream, stream_parts,
};
#[cfg(feature = "reqwest")]
pub use stock::reqwest;
#[cfg(feature = "jsonschema")]
pub use stock::schema;
pub use stock::{http, scripted, summarize};
pub use words::{error, event, message, price, question};

// The words of hello world.
#[doc(inline)]
pub use agent::Agent;
#[doc(inline)]
pub use driver::{AgentLoopResult, AgentStream, agent_loop, agent_loop_continue};
pub use host::cancel::CancelToken;
pub use host::config::{AgentLoopConfig, Model};
pub use host::ports::AgentRunContext;
pub use host::tool::{
    AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec, external_tool, tool, typed_tool,
};
pub use rules::checkpoint::CheckpointEnvelopeV1;
#[cfg(feature = "spawn")]
pub use spawn::spawn;
pub use stock::http::HttpModel;
pub use words::error::AgentError;
pub use words::event::AgentEvent;
pub use words::message::AgentMessage;
