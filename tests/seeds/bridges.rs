//! What a host writes: events as JSON, ports that are told whose run it is, options of a call.

use std::cell::RefCell;
use std::future::ready;
use std::rc::Rc;

use futures::StreamExt;
use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use rig::clock::Clock;
use rig::host::{ScriptedAnswer, calls, config, failure, model, quick, spec, stage, text, tool};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::approval::{ApprovalMode, ToolDecision};
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model, ToolExecutionPolicy, TurnOptions};
use turnwheel::driver::{AgentLoopResult, AgentStream};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::AgentEvent;
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::message::{AgentMessage, ContentBlock};
use turnwheel::policy::{
    ContextTransformer, DispatchCall, DispatchVerdict, PolicyContext, PostTurn, RunInfo, Transform, Verdict,
};
use turnwheel::ports::{
    AgentHook, AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, Compaction,
    CompactionCall, CompactionEngine, HookCall, KeySource, MessageProvider, ModelAttempt, NextModel,
    NextTool, StreamFn, TurnCall, TurnChoice,
};
use turnwheel::retry::{RetryStrategy, RetryVerdict};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, StreamOptions};
use turnwheel::tool::{AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome, ToolSpec};

use super::kit::{Notes, note};

fn event(json: &str) -> E {
    E::from_json(&Value::parse(json).unwrap()).unwrap()
}

#[test]
fn a_host_may_send_every_event_of_a_model_as_json() {
    let answer = vec![
        event(r#"{"type":"ping"}"#),
        event(r#"{"type":"usage","input":7}"#),
        event(r#"{"type":"thinking_start","contentIndex":0}"#),
        event(r#"{"type":"thinking_end","contentIndex":0,"signature":"s","redacted":true}"#),
        event(r#"{"type":"text_start","contentIndex":1}"#),
        event(r#"{"type":"text_end","contentIndex":1,"signature":"t"}"#),
        event(r#"{"type":"raw","contentIndex":2,"data":{"n":1.50}}"#),
        event(r#"{"type":"tool_call_start","contentIndex":3,"callId":"c","toolName":"t"}"#),
        event(r#"{"type":"tool_call_end","contentIndex":3,"metadata":{"k":1}}"#),
        event(r#"{"type":"done","stopReason":"tool_use"}"#),
    ];
    let mut stage = stage(vec![answer, text("so")], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    let message = stage.answer(1);
    assert_eq!(message.usage.input, 7);
    let ContentBlock::Thinking(thought) = &message.content[0] else { panic!("no thought") };
    assert!(thought.redacted && thought.signature.as_deref() == Some("s"));
    assert!(matches!(&message.content[2], ContentBlock::Raw(data) if data.as_str() == r#"{"n":1.50}"#));
    let ContentBlock::ToolCall(call) = &message.content[3] else { panic!("no call") };
    assert!(call.metadata.as_ref().is_some_and(|data| data.as_str() == r#"{"k":1}"#));
    let missing = Value::parse(r#"{"type":"raw","contentIndex":0}"#).unwrap();
    assert!(E::from_json(&missing).unwrap_err().contains("`data`"));
}

#[test]
fn events_and_results_are_the_same_after_json() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert!(stage.events.len() > 8);
    for event in &stage.events {
        let read = AgentEvent::from_json(&Value::parse(&event.to_json()).unwrap());
        assert_eq!(read.as_ref(), Ok(event));
    }
    for message in stage.agent.messages() {
        let read = AgentMessage::from_json(&Value::parse(&message.to_json()).unwrap());
        assert_eq!(read, Ok(message));
    }
    let result = stage.result();
    let read = AgentLoopResult::from_json(&Value::parse(&result.to_json()).unwrap()).unwrap();
    assert_eq!(read.to_json(), result.to_json());
    assert_eq!((read.text.as_str(), read.turns, read.messages), ("so", 2, result.messages.clone()));
    let output =
        AgentToolResult { details: Some(RawJson::parse("[1]").unwrap()), ..AgentToolResult::error("no") };
    assert_eq!(AgentToolResult::from_json(&Value::parse(&output.to_json()).unwrap()), Ok(output));
}

#[test]
fn policies_and_tools_know_the_run_the_session_and_the_turn() {
    let (notes, seen) = (Notes::default(), Notes::default());
    let noted = seen.clone();
    let about = tool(spec("t"), move |context| {
        note(&noted, format!("{} {} {}", context.run_id, context.session_id, context.turn_index));
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    });
    let given = notes.clone();
    let mut stage = stage(vec![text("so"), calls(&[("a", "t", "{}")])], vec![about], |config| {
        config.rules.pre_turn.push(Rc::new(move |context: &PolicyContext<'_>| {
            note(&given, format!("{} {} {}", context.run_id, context.session_id, context.turn_index));
            Ok(Verdict::Continue)
        }));
    });
    stage.prompt("go").finish();
    stage.prompt("again").finish();
    let context = rig::host::context();
    let about = |turn: u32| format!("{} {} {turn}", context.run_id, context.session_id);
    assert_eq!(*notes.borrow(), [about(0), about(0), about(1)]);
    assert_eq!(*seen.borrow(), [about(0)]);
}

/// Writes down whose run it is that somebody is asked for.
fn told(notes: &Notes, what: &str, run: &RunInfo<'_>) {
    let user = run.metadata.and_then(|data| data.to_value().owned_at("user")).unwrap_or_default();
    let RunInfo { run_id, session_id, turn_index, .. } = run;
    note(notes, format!("{what}: {run_id}/{session_id} for {user} in turn {turn_index}"));
}

struct Everything(Notes);

impl KeySource for Everything {
    fn key(&self, _: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        Box::pin(ready(Err("asked without a run".to_owned())))
    }

    fn key_in(
        &self,
        context: &AgentRunContext,
        _: u32,
        _: &str,
    ) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        told(&self.0, "key", &context.about());
        Box::pin(ready(Ok(None)))
    }
}

impl AsyncContextTransformer for Everything {
    fn transform(
        &self,
        _: Rc<[AgentMessage]>,
        _: bool,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        Box::pin(ready(Err("asked without a run".to_owned())))
    }

    fn transform_in(
        &self,
        context: &AgentRunContext,
        _: u32,
        _: Rc<[AgentMessage]>,
        _: bool,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        told(&self.0, "transformer", &context.about());
        Box::pin(ready(Ok(Transform::Unchanged)))
    }
}

impl MessageProvider for Everything {
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        Box::pin(ready(vec!["asked without a run".into()]))
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        Box::pin(ready(vec!["asked without a run".into()]))
    }

    fn poll_in(
        &self,
        context: &AgentRunContext,
        follow_up: bool,
    ) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        told(&self.0, if follow_up { "follow-ups" } else { "steering" }, &context.about());
        Box::pin(ready(Vec::new()))
    }
}

impl Approver for Everything {
    fn decide(
        &self,
        _: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        Box::pin(ready(Err("asked without a run".to_owned())))
    }

    fn decide_in(
        &self,
        context: &AgentRunContext,
        _: u32,
        _: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        told(&self.0, "approver", &context.about());
        Box::pin(ready(Ok(ToolDecision::Accept)))
    }
}

impl AgentHook for Everything {
    fn call(&self, context: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        told(&self.0, call.stage(), &context.about());
        Box::pin(ready(Ok(())))
    }
}

impl CompactionEngine for Everything {
    fn compact(
        &self,
        context: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        told(&self.0, "compaction", &context.about());
        // A result without its call is no conversation.
        let messages = call.messages[call.messages.len().saturating_sub(2)..].to_vec();
        Box::pin(ready(Ok(Compaction { messages, ..Compaction::default() })))
    }
}

struct Asked(Notes, RefCell<std::collections::VecDeque<ScriptedAnswer>>);

impl StreamFn for Asked {
    fn stream(
        &self,
        _: ModelRequest,
        context: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, E> {
        told(&self.0, "model", &context.about());
        futures::stream::iter(self.1.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    }
}

fn model_of_one_answer() -> Model {
    model("inner", |_, _| futures::stream::iter(text("done")).boxed_local())
}

/// A transformer and a retry strategy that want to know whose run it is.
struct Told(Notes);

impl ContextTransformer for Told {
    fn transform(&self, _: &[AgentMessage], _: bool) -> Result<Transform, String> {
        Err("asked without a run".to_owned())
    }

    fn transform_in(&self, run: &RunInfo<'_>, _: &[AgentMessage], _: bool) -> Result<Transform, String> {
        told(&self.0, "view", run);
        Ok(Transform::Unchanged)
    }
}

impl RetryStrategy for Told {
    fn delay(&self, _: &ErrorInfo, _: u32, _: u32) -> RetryVerdict {
        RetryVerdict::Stop
    }

    fn delay_in(&self, run: &RunInfo<'_>, _: &ErrorInfo, _: u32, _: u32) -> RetryVerdict {
        told(&self.0, "retry", run);
        RetryVerdict::Wait(0)
    }
}

/// Everything that decides inside a step.
fn be_told_synchronously(notes: &Notes, config: &mut AgentLoopConfig) {
    let rules = &mut config.rules;
    rules.transformers.push(Rc::new(Told(notes.clone())));
    rules.retry = Rc::new(Told(notes.clone()));
    let seen = notes.clone();
    rules.convert_to_llm = Some(Rc::new(move |message, run| {
        told(&seen, "conversion", run);
        Ok(message.as_llm())
    }));
    let seen = notes.clone();
    rules.dynamic_system_prompt = Some(Rc::new(move |run| {
        told(&seen, "dynamic prompt", run);
        Ok(String::new())
    }));
    let seen = notes.clone();
    rules.validator = Some(Rc::new(move |_, _, run| {
        told(&seen, "validator", run);
        Ok(())
    }));
    let seen = notes.clone();
    rules.result_texts = Some(Rc::new(move |_, _, _, run| {
        told(&seen, "result texts", run);
        None
    }));
    let seen = notes.clone();
    rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(move |calls, run| {
        told(&seen, "groups", run);
        Ok(vec![(0..calls.len()).collect()])
    }));
}

#[test]
fn the_runs_context_is_there_at_every_extension_point() {
    let notes = Notes::default();
    let all = Rc::new(Everything(notes.clone()));
    let answers = vec![
        calls(&[("a", "t", "{}")]),
        failure(ErrorKind::ContextOverflow),
        failure(ErrorKind::Overloaded),
        calls(&[("b", "t", "{}"), ("c", "agent", r#"{"prompt":"go"}"#), ("d", "ghost", "{}")]),
    ];
    let model = Model::new("own", "m", Rc::new(Asked(notes.clone(), RefCell::new(answers.into()))));
    let seen = notes.clone();
    let of_call = notes.clone();
    let asks = move |_: &RawJson, run: &RunInfo<'_>| {
        told(&of_call, "need of approval", run);
        Ok(true)
    };
    let spec = ToolSpec { requires_approval: ApprovalNeed::Depends(Rc::new(asks)), ..spec("t") };
    let about = tool(spec, move |call| {
        told(&seen, "tool", &call.about());
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    });
    let clock = Clock::default();
    let (seen, inner) = (notes.clone(), clock.clone());
    let agent = SubAgent::for_call("agent", "", move |call| {
        told(&seen, "sub-agent", &call.about());
        config(&inner, model_of_one_answer(), Vec::new())
    });
    let mut config = config(&clock, model, vec![about, Rc::new(agent)]);
    be_told_synchronously(&notes, &mut config);
    config.ports.keys = Some(all.clone());
    config.ports.transformer = Some(all.clone());
    config.ports.compaction = Some(all.clone());
    config.set_message_provider(all.clone());
    config.set_approver(all.clone());
    config.set_hooks(vec![all.clone()]);
    config.rules.approval.mode = ApprovalMode::Smart;
    let seen = notes.clone();
    config.set_turn_preparer(Rc::new(move |turn: TurnCall| {
        assert_eq!(turn.context.turn_index, turn.turn_index);
        told(&seen, "turn", &turn.context.about());
        ready(Ok(TurnChoice::default()))
    }));
    let seen = notes.clone();
    let of_policy = move |what: &str, context: &PolicyContext<'_>| {
        told(&seen, what, &context.about());
        Ok(Verdict::Continue)
    };
    let (before, after, last) = (of_policy.clone(), of_policy.clone(), of_policy);
    config.rules.pre_turn.push(Rc::new(move |context: &PolicyContext<'_>| before("pre-turn", context)));
    config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| after("post-turn", &turn.context)));
    config.rules.post_loop.push(Rc::new(move |context: &PolicyContext<'_>| last("post-loop", context)));
    let seen = notes.clone();
    config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
        told(&seen, "pre-dispatch", &call.about());
        Ok(DispatchVerdict::Continue)
    }));
    let seen = notes.clone();
    config.ports.layers.tool = Some(Rc::new(move |call: ToolContext, next: NextTool| {
        told(&seen, "around the tool", &call.about());
        next(call)
    }));
    let seen = notes.clone();
    config.ports.layers.model = Some(Rc::new(move |attempt: ModelAttempt, next: NextModel| {
        assert_eq!(attempt.context.turn_index, attempt.turn_index);
        told(&seen, "around the model", &attempt.context.about());
        next(attempt.request, attempt.cancel)
    }));
    let agent = Agent::new(config, Vec::new());
    let who = AgentRunContext {
        metadata: RawJson::parse(r#"{"user":"u-17"}"#).ok(),
        ..AgentRunContext::new("run", "session")
    };
    let stream = agent.prompt(vec!["go".into()], who, CancelToken::new()).unwrap();
    let result = clock.run(stream.finish()).unwrap();
    assert_eq!(result.turns, 3);
    let notes = notes.borrow();
    let asked: std::collections::BTreeSet<&str> =
        notes.iter().filter_map(|line| line.split(':').next()).collect();
    let points = [
        "after_inference",
        "after_tool_execution",
        "approver",
        "around the model",
        "around the tool",
        "before_inference",
        "before_tool_execution",
        "compaction",
        "conversion",
        "dynamic prompt",
        "follow-ups",
        "groups",
        "key",
        "model",
        "need of approval",
        "post-loop",
        "post-turn",
        "pre-dispatch",
        "pre-turn",
        "result texts",
        "retry",
        "steering",
        "sub-agent",
        "tool",
        "transformer",
        "turn",
        "validator",
        "view",
    ];
    assert_eq!(asked.into_iter().collect::<Vec<_>>(), points);
    for line in notes.iter() {
        let is_told = |run: &str| line.contains(&format!(": {run}/session for u-17 in turn "));
        // The agent inside has the wrappers of the one around it.
        assert!(is_told("run") || is_told("run/c"), "{line}");
    }
    // Between two turns the next one counts, so these come after the last.
    let in_turn = |point: &str| if ["follow-ups", "post-loop"].contains(&point) { 3 } else { 1 };
    for point in points {
        let line = format!("{point}: run/session for u-17 in turn {}", in_turn(point));
        assert!(notes.contains(&line), "{line}: {notes:#?}");
    }
}

#[test]
fn stream_options_are_those_of_the_call() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let seen = notes.clone();
    let answers = RefCell::new(std::collections::VecDeque::from([calls(&[("a", "t", "{}")])]));
    let model = model("m", move |request: ModelRequest, _| {
        note(&seen, request.options.to_json());
        futures::stream::iter(answers.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    });
    let mut config = config(&clock, model, vec![quick("t")]);
    let options = |json: &str| StreamOptions::from_json(&Value::parse(json).unwrap()).unwrap();
    config.rules.stream_options = Rc::new(options(r#"{"temperature":1,"maxTokens":100}"#));
    config.set_turn_preparer(Rc::new(move |turn: TurnCall| {
        let stream_options = (turn.turn_index == 1).then(|| options(r#"{"maxTokens":7}"#));
        ready(Ok(TurnChoice {
            options: TurnOptions { stream_options, ..TurnOptions::default() },
            messages: None,
        }))
    }));
    let agent = Agent::new(config, Vec::new());
    let who = || AgentRunContext::new("run", "session");
    let run = |stream: AgentStream| clock.run(stream.finish()).unwrap();
    run(agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap());
    let once =
        TurnOptions { stream_options: Some(options(r#"{"temperature":0}"#)), ..TurnOptions::default() };
    run(agent.prompt(vec!["once".into()], who(), CancelToken::new()).unwrap().with_options(once).unwrap());
    agent.configure(|config| config.rules.stream_options = Rc::new(options(r#"{"topP":1}"#)));
    run(agent.prompt(vec!["from now on".into()], who(), CancelToken::new()).unwrap());
    assert_eq!(
        *notes.borrow(),
        [
            r#"{"temperature":1,"maxTokens":100}"#,
            r#"{"temperature":1,"maxTokens":7}"#,
            r#"{"temperature":0,"maxTokens":100}"#,
            r#"{"topP":1}"#,
        ]
    );
}

#[test]
fn updates_of_a_tool_are_bounded_and_none_is_later_than_its_end() {
    let chatty = tool(spec("t"), |context| {
        (0..10_000).for_each(|n: u32| context.updates.text(&n.to_string()));
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    });
    let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![chatty], |_| {});
    stage.prompt("go").finish().check();
    assert!((1..=128).contains(&stage.count("tool_execution_update")));
    let names = stage.names();
    let last = names.iter().rposition(|name| *name == "tool_execution_update");
    assert!(last < names.iter().position(|name| *name == "tool_execution_end"));
}
