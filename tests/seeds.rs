//! The specification, sentence by sentence: the validation rules and the state tables of the data model, the loop
//! document with its event sequence and its dispatch system, and the loop lessons.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::rc::Rc;

use futures::FutureExt;
use rig::clock::Clock;
use rig::host::{
    Port, ScriptedAnswer, Stage, answers, brief, calls, config, deaf, failure, model, quick, slow, spec,
    stage, text, tool,
};
use turnwheel::approval::{ApprovalMode, ToolDecision};
use turnwheel::config::{CacheHints, Model, ToolExecutionPolicy};
use turnwheel::error::ErrorKind;
use turnwheel::event::{AgentEvent, CompactionReport, TurnEndReason};
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, AssistantMessage, ContentBlock, MessageStopReason};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolOutcome};

/// Notes, in order.
type Notes = Rc<RefCell<Vec<String>>>;

fn note(notes: &Notes, line: impl Into<String>) {
    notes.borrow_mut().push(line.into());
}

fn two_calls() -> ScriptedAnswer {
    calls(&[("a", "t", "{\"n\":1}"), ("b", "t", "{\"n\":2}")])
}

/// A model that records its requests.
fn noting(notes: &Notes, given: Vec<ScriptedAnswer>) -> Model {
    let (notes, given) = (notes.clone(), RefCell::new(std::collections::VecDeque::from(given)));
    model("m", move |request: ModelRequest, _| {
        let asked: Vec<String> = request.messages.iter().cloned().map(|m| brief(&m.into())).collect();
        note(&notes, asked.join(" | "));
        let answer = given.borrow_mut().pop_front().unwrap_or_else(|| text("done"));
        futures::StreamExt::boxed_local(futures::stream::iter(answer))
    })
}

/// A transformer that drops all but the newest message once the model has said that it is too long.
fn shortens(notes: &Notes) -> impl Fn(&[AgentMessage], bool) -> Result<Transform, String> + use<> {
    let notes = notes.clone();
    move |messages, overflow| {
        note(&notes, format!("transform, overflow {overflow}"));
        if !overflow {
            return Ok(Transform::Unchanged);
        }
        let messages = messages[messages.len() - 1..].to_vec();
        Ok(Transform::Replace { messages, report: Some(CompactionReport::default()) })
    }
}

fn noting_tool(name: &'static str, notes: &Notes) -> Rc<dyn AgentTool> {
    let notes = notes.clone();
    tool(spec(name), move |context| {
        note(&notes, format!("run {} with {}", context.call_id, context.arguments.as_str()));
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    })
}

/// What a model that refuses the conversation once was asked, and how the run ended.
fn refused_once(
    history: &[&str],
    transform: impl Fn(&[AgentMessage]) -> Transform + 'static,
) -> (Vec<String>, rig::host::Stage) {
    let (notes, clock) = (Notes::default(), Clock::default());
    let given = vec![failure(ErrorKind::ContextOverflow), text("here")];
    let mut config = config(&clock, noting(&notes, given), Vec::new());
    config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
        Ok(if overflow { transform(messages) } else { Transform::Unchanged })
    }));
    let history = history.iter().map(|text| AgentMessage::user(*text)).collect();
    let mut stage = rig::host::Stage::over(clock, config, history);
    stage.prompt("go").finish().check();
    let asked = notes.borrow().clone();
    (asked, stage)
}

mod context {
    use turnwheel::context::{KeepLast, PruneToolResults, Reducers, SlidingWindow};
    use turnwheel::policy::ContextTransformer;

    use super::*;

    fn newest(messages: &[AgentMessage]) -> Vec<AgentMessage> {
        messages[messages.len() - 1..].to_vec()
    }

    #[test]
    fn a_shorter_view_recovers_and_leaves_the_history_alone() {
        let (asked, stage) = refused_once(&["a", "b"], |messages| Transform::View(newest(messages)));
        assert_eq!(asked, ["user: a | user: b | user: go", "user: go"]);
        assert_eq!(stage.history(), ["user: a", "user: b", "user: go", "assistant: here"]);
        assert_eq!(stage.count("context_compacted"), 0);
    }

    #[test]
    fn a_shorter_history_recovers_with_and_without_a_report() {
        for report in [None, Some(CompactionReport::default())] {
            let reports = usize::from(report.is_some());
            let (asked, stage) = refused_once(&["a", "b"], move |messages| Transform::Replace {
                messages: newest(messages),
                report: report.clone(),
            });
            assert_eq!(asked, ["user: a | user: b | user: go", "user: go"]);
            assert_eq!(stage.history(), ["user: go", "assistant: here"]);
            assert_eq!(stage.count("context_compacted"), reports);
        }
    }

    #[test]
    fn what_is_not_shorter_is_no_recovery_and_an_empty_list_is_an_error() {
        let (asked, stage) = refused_once(&["a"], |messages| Transform::View(messages.to_vec()));
        assert_eq!(asked.len(), 1);
        assert_eq!(stage.lines().last().unwrap(), "run ends error: it failed");
        for empty in [Transform::View(Vec::new()), Transform::Replace { messages: Vec::new(), report: None }]
        {
            let (asked, stage) = refused_once(&["a"], move |_| empty.clone());
            assert_eq!(asked.len(), 1);
            assert!(stage.lines().last().unwrap().contains("it left no message"));
            assert_eq!(stage.history()[..2], ["user: a", "user: go"]);
        }
    }

    #[test]
    fn contents_may_be_what_is_shortened() {
        let (asked, _) =
            refused_once(&["a long story"], |_| Transform::View(vec!["a story".into(), "go".into()]));
        assert_eq!(asked[1], "user: a story | user: go");
    }

    /// Six turns of one call each.
    fn six_turns(transformer: Rc<dyn ContextTransformer>) -> (Vec<String>, rig::host::Stage) {
        let (notes, clock) = (Notes::default(), Clock::default());
        let given = ["a", "b", "c", "d", "e", "f"].map(|id| calls(&[(id, "t", "{}")]));
        let tools: Vec<Rc<dyn AgentTool>> = vec![quick("t")];
        let mut config = config(&clock, noting(&notes, given.to_vec()), tools);
        config.rules.transformers.push(transformer);
        let mut stage = rig::host::Stage::new(clock, config);
        stage.prompt("go").finish().check();
        let asked = notes.borrow().clone();
        (asked, stage)
    }

    #[test]
    fn reducers_run_in_every_turn_keep_pairs_and_the_newest_question_and_report() {
        let window = SlidingWindow { normal_budget: 8, overflow_budget: 4, anchor: 0 };
        let list: Vec<Rc<dyn ContextTransformer>> =
            vec![Rc::new(PruneToolResults { keep_last: 1 }), Rc::new(window)];
        let (asked, stage) = six_turns(Rc::new(Reducers::new(list)));
        assert_eq!(asked.len(), 7);
        for request in &asked {
            assert!(request.contains("user: go"), "{request}");
            let of = |word: &str| request.matches(word).count();
            assert_eq!(of("assistant: ["), of(": t is done") + of(": [trimmed]"), "{request}");
        }
        assert!(asked[6].len() < asked[5].len() * 2 && asked[6].contains("f: t is done"));
        assert!(stage.count("context_compacted") >= 4);
        assert_eq!(stage.history().len(), 14);
    }

    #[test]
    fn the_newest_results_stay_whole() {
        let (asked, _) = six_turns(Rc::new(PruneToolResults { keep_last: 2 }));
        assert_eq!(asked[6].matches("[trimmed]").count(), 4);
        let (asked, _) = six_turns(Rc::new(KeepLast { messages: 2 }));
        assert_eq!(asked[6], "user: go | assistant: [e] | e: t is done | assistant: [f] | f: t is done");
    }

    #[test]
    fn reducers_that_make_no_room_leave_it_to_the_engine() {
        let (notes, clock) = (Notes::default(), Clock::default());
        let given =
            vec![calls(&[("a", "t", "{}")]), calls(&[("b", "t", "{}")]), failure(ErrorKind::ContextOverflow)];
        let mut config = config(&clock, noting(&notes, given), vec![quick("t")]);
        config.rules.transformers.push(Rc::new(PruneToolResults { keep_last: 1 }));
        config.ports.compaction = Some(Rc::new(Port(|_| {
            let messages = vec!["notes".into()];
            ready(Ok(turnwheel::ports::Compaction { messages, ..Default::default() }))
        })));
        let mut stage = rig::host::Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(notes.borrow().last().unwrap(), "user: notes");
    }

    #[test]
    fn the_overflow_signal_of_policies_is_true_in_the_turn_that_had_to_make_room() {
        let (notes, clock) = (Notes::default(), Clock::default());
        let given = vec![failure(ErrorKind::ContextOverflow), calls(&[("a", "t", "{}")])];
        let mut config = config(&clock, noting(&Notes::default(), given), vec![quick("t")]);
        config.rules.transformers.push(Rc::new(|messages: &[AgentMessage], overflow: bool| {
            Ok(if overflow { Transform::View(newest(messages)) } else { Transform::Unchanged })
        }));
        let seen = notes.clone();
        config.rules.pre_turn.push(Rc::new(move |context: &PolicyContext<'_>| {
            note(&seen, format!("before {}", context.overflow_signal));
            Ok(Verdict::Continue)
        }));
        let seen = notes.clone();
        config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
            note(&seen, format!("after {}", turn.context.overflow_signal));
            Ok(Verdict::Continue)
        }));
        let mut stage = rig::host::Stage::over(clock, config, vec!["old".into()]);
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["before false", "after true", "before false", "after false"]);
    }
}

mod bridges {
    use futures::StreamExt;
    use futures::future::LocalBoxFuture;
    use futures::stream::LocalBoxStream;
    use turnwheel::agent::Agent;
    use turnwheel::agent::subagent::SubAgent;
    use turnwheel::cancel::CancelToken;
    use turnwheel::config::{AgentLoopConfig, TurnOptions};
    use turnwheel::driver::{AgentLoopResult, AgentStream};
    use turnwheel::error::ErrorInfo;
    use turnwheel::json::{FromJson, ToJson, Value};
    use turnwheel::policy::{ContextTransformer, RunInfo};
    use turnwheel::ports::{
        AgentHook, AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, Compaction,
        CompactionCall, CompactionEngine, HookCall, KeySource, MessageProvider, ModelAttempt, NextModel,
        NextTool, StreamFn, TurnCall, TurnChoice,
    };
    use turnwheel::retry::{RetryStrategy, RetryVerdict};
    use turnwheel::stream::StreamOptions;
    use turnwheel::tool::{ToolContext, ToolSpec};

    use super::*;

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
        fn call(
            &self,
            context: &AgentRunContext,
            call: HookCall,
        ) -> LocalBoxFuture<'static, Result<(), String>> {
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
            futures::stream::iter(self.1.borrow_mut().pop_front().unwrap_or_else(|| text("done")))
                .boxed_local()
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
            futures::stream::iter(answers.borrow_mut().pop_front().unwrap_or_else(|| text("done")))
                .boxed_local()
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
        run(agent
            .prompt(vec!["once".into()], who(), CancelToken::new())
            .unwrap()
            .with_options(once)
            .unwrap());
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
}

mod hooks {
    use turnwheel::message::ToolResultCause;
    use turnwheel::ports::HookCall;

    use super::*;

    /// One word for each call of a hook.
    fn word(call: &HookCall) -> String {
        match call {
            HookCall::BeforeInference { turn_index, attempt, .. } => format!("before {turn_index}.{attempt}"),
            HookCall::AfterInference { turn_index, attempt, message, .. } => {
                format!("after {turn_index}.{attempt} {}", message.stop_reason.as_str())
            }
            HookCall::AfterToolExecution { call, result } => format!("{} {:?}", call.call_id, result.cause),
            _ => "other".to_owned(),
        }
    }

    fn noting_hooks(notes: &Notes) -> impl Fn(HookCall) -> std::future::Ready<Result<(), String>> + use<> {
        let notes = notes.clone();
        move |call| {
            note(&notes, word(&call));
            ready(Ok(()))
        }
    }

    #[test]
    fn the_after_hook_hears_of_tools_that_threw_or_took_too_long() {
        let notes = Notes::default();
        let broken = tool(spec("broken"), |_| ready(ToolOutcome::Failed("no".to_owned())));
        let limited = turnwheel::tool::ToolSpec { timeout_ms: Some(10), ..spec("deaf") };
        let deaf = tool(limited, |_| pending::<ToolOutcome>());
        let asked =
            calls(&[("a", "broken", "{}"), ("b", "deaf", "{}"), ("c", "quick", "{}"), ("d", "none", "{}")]);
        let mut stage = stage(vec![asked], vec![broken, deaf, quick("quick")], |config| {
            config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
        });
        stage.prompt("go").finish().check();
        let told: Vec<String> =
            notes.borrow().iter().filter(|line| line.contains(['N', 'S'])).cloned().collect();
        let cause = |cause: ToolResultCause| format!("{:?}", Some(cause));
        let threw = format!("a {}", cause(ToolResultCause::Threw));
        let late = format!("b {}", cause(ToolResultCause::Timeout));
        assert_eq!(told, [threw, late, "c None".to_owned()]);
    }

    #[test]
    fn every_attempt_has_one_beginning_and_one_end() {
        let notes = Notes::default();
        let given =
            vec![failure(ErrorKind::Network), failure(ErrorKind::Network), calls(&[("a", "t", "{}")])];
        let mut stage = stage(given, vec![quick("t")], |config| {
            config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
        });
        stage.prompt("go").finish().check();
        let told: Vec<String> = notes.borrow().iter().filter(|line| line.contains('.')).cloned().collect();
        assert_eq!(
            told,
            [
                "before 0.1",
                "after 0.1 error",
                "before 0.2",
                "after 0.2 error",
                "before 0.3",
                "after 0.3 tool_use",
                "before 1.1",
                "after 1.1 stop"
            ]
        );
    }

    #[test]
    fn an_attempt_that_is_aborted_ends_too_and_one_that_never_began_does_not() {
        for (at, wanted) in [(0, vec![]), (1, vec!["before 0.1", "after 0.1 aborted"])] {
            let notes = Notes::default();
            let silent = model("m", |_: ModelRequest, _| {
                futures::StreamExt::boxed_local(futures::stream::pending::<E>())
            });
            let clock = Clock::default();
            let mut config = config(&clock, silent, Vec::new());
            config.set_hooks(vec![Rc::new(Port(noting_hooks(&notes)))]);
            let mut stage = rig::host::Stage::new(clock, config);
            stage.prompt("go");
            if at == 1 {
                stage.settle();
            }
            stage.agent.abort("enough");
            stage.finish().check();
            assert_eq!(*notes.borrow(), wanted);
        }
    }
}

mod data_model {
    use super::*;

    #[test]
    fn events_must_be_emitted_in_lifecycle_order() {
        let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![quick("t")], |_| {});
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.names(),
            [
                "agent_start",
                "turn_start",
                "message_start",
                "message_update",
                "message_end",
                "tool_calls_proposed",
                "tool_execution_start",
                "tool_execution_end",
                "turn_end",
                "turn_start",
                "message_start",
                "message_update",
                "message_end",
                "turn_end",
                "agent_end",
            ]
        );
    }

    #[test]
    fn tool_calls_must_execute_concurrently() {
        let clock = Clock::default();
        let tools = vec![slow("s", &clock, 100)];
        let given = vec![calls(&[("a", "s", "{}"), ("b", "s", "{}"), ("c", "s", "{}")])];
        let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), tools));
        stage.prompt("go").finish().check();
        assert_eq!(clock.elapsed(), 100);
    }

    #[test]
    fn overflow_signal_must_reset_after_transform_context() {
        let notes = Notes::default();
        let mut stage = stage(
            vec![failure(ErrorKind::ContextOverflow), calls(&[("a", "t", "{}")])],
            vec![quick("t")],
            |config| config.rules.transformers.push(Rc::new(shortens(&notes))),
        );
        stage.prompt("go").finish().check();
        assert_eq!(
            *notes.borrow(),
            ["transform, overflow false", "transform, overflow true", "transform, overflow false"]
        );
    }

    #[test]
    fn overflow_recovery_attempted_must_reset_at_the_start_of_each_turn() {
        let notes = Notes::default();
        let too_long = || failure(ErrorKind::ContextOverflow);
        let given = vec![too_long(), calls(&[("a", "t", "{}")]), too_long(), text("done")];
        let mut stage = stage(given, vec![quick("t")], |config| {
            let shorten = shortens(&notes);
            config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
                match shorten(messages, overflow)? {
                    // The newest message of the second turn is a result, which
                    // cannot stand without its call.
                    Transform::Replace { report, .. } if messages.len() > 1 => {
                        Ok(Transform::Replace { messages: messages.to_vec(), report })
                    }
                    transform => Ok(transform),
                }
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines().last().unwrap(), "run ends completed");
        assert_eq!(stage.count("context_compacted"), 2);
    }

    #[test]
    fn emergency_overflow_recovery_must_not_occur_when_overflow_recovery_attempted_is_true() {
        let notes = Notes::default();
        let too_long = || failure(ErrorKind::ContextOverflow);
        let mut stage = stage(vec![too_long(), too_long(), text("never")], Vec::new(), |config| {
            config.rules.transformers.push(Rc::new(shortens(&notes)));
        });
        stage.prompt("go").finish().check();
        assert_eq!(notes.borrow().len(), 2);
        assert_eq!(
            stage.lines()[2..],
            ["compacted (overflow)", "assistant:  (error)", "turn ends error", "run ends error: it failed"]
        );
    }

    #[test]
    fn error_and_abort_must_skip_follow_up_polling() {
        for kind in [ErrorKind::Auth, ErrorKind::Aborted] {
            let asked = Rc::new(Cell::new(0));
            let count = asked.clone();
            let mut stage = stage(vec![failure(kind)], Vec::new(), |config| {
                config.set_message_provider(Rc::new(Port(move |_| {
                    count.set(count.get() + 1);
                    ready(vec![AgentMessage::user("more")])
                })));
            });
            drop(stage.agent.follow_up("more".into()));
            stage.prompt("go").finish().check();
            assert_eq!((asked.get(), stage.count("turn_start")), (0, 1));
        }
    }

    #[test]
    fn transform_must_run_before_convert_to_llm() {
        let notes = Notes::default();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.rules.transformers.push(Rc::new(shortens(&notes)));
            let notes = notes.clone();
            config.rules.convert_to_llm = Some(Rc::new(move |message, _| {
                note(&notes, format!("convert {}", brief(message)));
                Ok(message.as_llm())
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["transform, overflow false", "convert user: go"]);
    }

    #[test]
    fn convert_to_llm_filters_messages_for_the_provider_and_is_asked_once_per_message() {
        let (asked, converted) = (Notes::default(), Notes::default());
        let clock = Clock::default();
        let mut config = config(&clock, noting(&asked, vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
        let notes = converted.clone();
        config.rules.convert_to_llm = Some(Rc::new(move |message, _| {
            note(&notes, brief(message));
            Ok(message.as_llm().filter(|_| brief(message) != "user: secret"))
        }));
        let mut stage = Stage::over(clock, config, vec!["secret".into()]);
        stage.prompt("go").finish().check();
        assert_eq!(*asked.borrow(), ["user: go", "user: go | assistant: [a] | a: t is done"]);
        assert_eq!(*converted.borrow(), ["user: secret", "user: go", "assistant: [a]", "a: t is done"]);
        // Nor are they converted again in the next run, unless by another function.
        converted.borrow_mut().clear();
        stage.prompt("on").finish().check();
        assert_eq!(*converted.borrow(), ["assistant: done", "user: on"]);
        assert!(!asked.borrow().last().unwrap().contains("secret"));
        stage.agent.configure(|config| config.rules.convert_to_llm = Some(Rc::new(|m, _| Ok(m.as_llm()))));
        stage.prompt("still").finish().check();
        assert!(asked.borrow().last().unwrap().starts_with("user: secret | user: go"));
    }

    #[test]
    fn transform_context_is_the_identity_if_absent() {
        let notes = Notes::default();
        let clock = Clock::default();
        let config = config(&clock, noting(&notes, Vec::new()), Vec::new());
        let mut stage = Stage::over(clock, config, vec!["before".into()]);
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["user: before | user: go"]);
    }

    #[test]
    fn get_api_key_is_an_async_callback_for_dynamic_resolution() {
        let clock = Clock::default();
        let keys = Notes::default();
        let seen = keys.clone();
        let asks = model("m", move |request, _| {
            note(&seen, request.api_key.as_deref().unwrap_or("none"));
            futures::StreamExt::boxed_local(futures::stream::iter(text("hi")))
        });
        let mut config = config(&clock, asks, Vec::new());
        let slow_clock = clock.clone();
        config.ports.keys = Some(Rc::new(Port(move |provider: &str| {
            let (pause, key) = (slow_clock.pause(30), format!("key of {provider}"));
            async move {
                pause.await;
                Ok(Some(key.into()))
            }
        })));
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(*keys.borrow(), ["key of provider-of-m"]);
    }

    #[test]
    fn get_steering_messages_is_polled_after_each_tool_completion() {
        let clock = Clock::default();
        let tools = vec![slow("s", &clock, 10), slow("l", &clock, 50)];
        let given = vec![calls(&[("a", "s", "{}"), ("b", "l", "{}")])];
        let mut config = config(&clock, answers(given), tools);
        let polls = Notes::default();
        let (notes, at) = (polls.clone(), clock.clone());
        config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
            note(&notes, format!("{} at {}", if follow_up { "follow-up" } else { "steering" }, at.elapsed()));
            ready(Vec::new())
        })));
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(
            *polls.borrow(),
            [
                "steering at 10",
                "steering at 50", // after the tools
                "steering at 50", // after their turn
                "steering at 50",
                "follow-up at 50", // after the text
            ]
        );
    }

    #[test]
    fn get_follow_up_messages_is_polled_when_the_agent_would_stop() {
        let left = Cell::new(2);
        let mut stage = stage(vec![text("one"), text("two"), text("three")], Vec::new(), |config| {
            config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
                let some = follow_up && left.get() > 0;
                left.set(left.get() - i32::from(some));
                ready(if some { vec!["more".into()] } else { Vec::new() })
            })));
        });
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.history(),
            ["user: go", "assistant: one", "user: more", "assistant: two", "user: more", "assistant: three"]
        );
    }

    #[test]
    fn agent_end_carries_all_produced_messages() {
        let clock = Clock::default();
        let config = config(&clock, answers(vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
        let mut stage = Stage::over(clock, config, vec!["before".into()]);
        drop(stage.agent.follow_up("and?".into()));
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.end().0,
            [
                "user: go",
                "assistant: [a]",
                "a: t is done",
                "assistant: done",
                "user: and?",
                "assistant: done"
            ]
        );
    }

    #[test]
    fn pending_messages_are_steering_and_follow_up_messages_queued_for_the_next_turn() {
        let mut stage = stage(Vec::new(), Vec::new(), |_| {});
        drop(stage.agent.follow_up("later".into()));
        drop(stage.agent.steer("sooner".into()));
        stage.prompt("go").finish().check();
        let users: Vec<String> =
            stage.history().into_iter().filter(|line| line.starts_with("user")).collect();
        assert_eq!(users, ["user: go", "user: sooner", "user: later"]);
    }

    #[test]
    fn turn_end_reasons() {
        let reasons = |stage: &Stage| -> Vec<TurnEndReason> {
            let ends = stage.events.iter().filter_map(|event| match event {
                AgentEvent::TurnEnd { reason, .. } => Some(*reason),
                _ => None,
            });
            ends.collect()
        };
        let mut watched = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
        watched.prompt("go").finish();
        assert_eq!(reasons(&watched), [TurnEndReason::ToolsExecuted, TurnEndReason::Complete]);
        let mut watched = stage(vec![failure(ErrorKind::Auth)], Vec::new(), |_| {});
        watched.prompt("go").finish();
        assert_eq!(reasons(&watched), [TurnEndReason::Error]);
        let mut watched = stage(vec![calls(&[("a", "t", "{}")])], vec![deaf("t")], |_| {});
        watched.prompt("go").until("tool_execution_start");
        watched.cancel.cancel("stop");
        watched.finish();
        assert_eq!(reasons(&watched), [TurnEndReason::Aborted]);
        let clock = Clock::default();
        let tools = vec![slow("s", &clock, 10), deaf("d")];
        let given = vec![calls(&[("a", "s", "{}"), ("b", "d", "{}")])];
        let mut watched = Stage::new(clock.clone(), config(&clock, answers(given), tools));
        watched.prompt("go").until("tool_execution_start");
        drop(watched.agent.steer("this".into()));
        watched.finish();
        assert_eq!(reasons(&watched), [TurnEndReason::SteeringInterrupt, TurnEndReason::Complete]);
    }
}

mod loop_document {
    use super::*;

    #[test]
    fn every_event_of_a_two_turn_run_with_one_tool_call() {
        let mut stage = stage(vec![calls(&[("a", "t", "{}")]), text("so")], vec![quick("t")], |_| {});
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.lines(),
            [
                "run",
                "turn 0",
                "+{}",
                "assistant: [a]",
                "a starts with {}",
                "a: t is done",
                "turn ends tools_executed",
                "turn 1",
                "+so",
                "assistant: so",
                "turn ends complete",
                "run ends completed",
            ]
        );
    }

    #[test]
    fn steering_messages_cause_the_loop_to_abandon_remaining_tools_and_are_injected_before_the_next_turn() {
        let clock = Clock::default();
        let tools = vec![slow("s", &clock, 10), deaf("d")];
        let given = vec![calls(&[("a", "s", "{}"), ("b", "d", "{}"), ("c", "d", "{}")])];
        let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), tools));
        stage.prompt("go").until("tool_execution_start");
        drop(stage.agent.steer("rather this".into()));
        stage.finish().check();
        let cancelled = "tool call cancelled: user requested steering interrupt";
        assert_eq!(
            stage.lines()[6..],
            [
                "a starts with {}",
                "b starts with {}",
                "c starts with {}",
                "a: s is done",
                &format!("b!: {cancelled}"),
                &format!("c!: {cancelled}"),
                "turn ends steering_interrupt",
                "turn 1",
                "+done",
                "assistant: done",
                "turn ends complete",
                "run ends completed",
            ]
        );
        assert_eq!(stage.history()[5..], ["user: rather this", "assistant: done"]);
    }

    #[test]
    fn each_event_is_delivered_to_every_registered_subscriber_before_the_loop_proceeds() {
        let notes = Notes::default();
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![noting_tool("t", &notes)], |_| {});
        for name in ["one", "two"] {
            let notes = notes.clone();
            stage.agent.subscribe(move |event| {
                if event.name() == "tool_execution_start" {
                    note(&notes, name);
                }
            });
        }
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["one", "two", "run a with {}"]);
    }

    #[test]
    fn pre_turn_stop_ends_the_run_with_its_turn_told() {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config
                .rules
                .pre_turn
                .push(Rc::new(|_: &PolicyContext<'_>| Ok(Verdict::Stop("no budget".to_owned()))));
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines(), ["run", "turn 0", "turn ends complete", "run ends policy_stop"]);
    }
}

mod lessons {
    use super::*;

    #[test]
    fn tool_dispatch_order_is_pre_dispatch_policies_then_approval_then_schema_validation_then_execute() {
        let notes = Notes::default();
        let [policy, approver, schema] = [notes.clone(), notes.clone(), notes.clone()];
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![noting_tool("t", &notes)], |config| {
            config.rules.approval.mode = ApprovalMode::Enabled;
            config.rules.pre_dispatch.push(Rc::new(move |_: &mut DispatchCall<'_>| {
                note(&policy, "policy");
                Ok(DispatchVerdict::Continue)
            }));
            config.set_approver(Rc::new(Port(move |_| {
                note(&approver, "approval");
                ready(Ok(ToolDecision::Accept))
            })));
            config.rules.validator = Some(Rc::new(move |_, _, _| {
                note(&schema, "schema");
                Ok(())
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["policy", "approval", "schema", "run a with {}"]);
    }

    #[test]
    fn turn_index_advances_after_every_completed_turn_including_text_only() {
        let mut stage = stage(vec![text("one"), calls(&[("a", "t", "{}")])], vec![quick("t")], |_| {});
        drop(stage.agent.follow_up("more".into()));
        stage.prompt("go").finish().check();
        let turns: Vec<String> = stage
            .lines()
            .into_iter()
            .filter(|line| line.starts_with("turn ") && !line.contains("ends"))
            .collect();
        assert_eq!(turns, ["turn 0", "turn 1", "turn 2"]);
    }

    #[test]
    fn pre_dispatch_is_batch_wide_and_approval_starts_only_after_the_entire_batch_clears() {
        let notes = Notes::default();
        let (policy, approver) = (notes.clone(), notes.clone());
        let mut stage = stage(vec![two_calls()], vec![quick("t")], |config| {
            config.rules.approval.mode = ApprovalMode::Enabled;
            config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
                note(&policy, format!("policy {}", call.call_id));
                Ok(DispatchVerdict::Continue)
            }));
            config.set_approver(Rc::new(Port(move |request: turnwheel::ports::ApprovalRequest| {
                note(&approver, format!("approve {}", request.call_id));
                ready(Ok(ToolDecision::Accept))
            })));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["policy a", "policy b", "approve a", "approve b"]);
    }

    #[test]
    fn pre_dispatch_stop_synthesizes_terminal_errors_for_all_unresolved_calls_and_is_terminal_for_the_turn() {
        let notes = Notes::default();
        let given = vec![calls(&[("a", "t", "{}"), ("b", "t", "{}"), ("c", "t", "{}")])];
        let mut stage = stage(given, vec![noting_tool("t", &notes)], |config| {
            config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
                Ok(match call.call_id {
                    "b" => DispatchVerdict::Stop("dangerous".to_owned()),
                    _ => DispatchVerdict::Continue,
                })
            }));
        });
        drop(stage.agent.follow_up("more".into()));
        stage.prompt("go").finish().check();
        let stopped = "policy stopped tool batch before dispatch: dangerous";
        assert_eq!(
            stage.lines()[6..],
            [
                &format!("a!: {stopped}"),
                &format!("b!: {stopped}"),
                &format!("c!: {stopped}"),
                "turn ends tools_executed",
                "run ends policy_stop",
            ]
        );
        assert!(notes.borrow().is_empty());
    }

    #[test]
    fn approved_with_rewrites_re_enter_pre_dispatch_before_enqueue() {
        let notes = Notes::default();
        let policy = notes.clone();
        let mut stage =
            stage(vec![calls(&[("a", "t", "{\"n\":1}")])], vec![noting_tool("t", &notes)], |config| {
                config.rules.approval.mode = ApprovalMode::Enabled;
                config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
                    note(&policy, format!("policy {}", call.arguments.as_str()));
                    Ok(DispatchVerdict::Continue)
                }));
                config.set_approver(Rc::new(Port(|_| {
                    ready(Ok(ToolDecision::AcceptWith(RawJson::parse("{\"n\":2}").unwrap())))
                })));
            });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["policy {\"n\":1}", "policy {\"n\":2}", "run a with {\"n\":2}"]);
    }

    #[test]
    fn partition_indices_target_the_calls_left_after_preprocessing() {
        let notes = Notes::default();
        let given =
            vec![calls(&[("a", "t", "{}"), ("b", "ghost", "{}"), ("c", "t", "{}"), ("d", "t", "{}")])];
        let mut stage = stage(given, vec![noting_tool("t", &notes)], |config| {
            config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
                Ok(match call.call_id {
                    "a" => DispatchVerdict::Skip("not this one".to_owned()),
                    _ => DispatchVerdict::Continue,
                })
            }));
            config.rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(|calls, _| {
                // The tool is looked up when it is the call's turn.
                let ids: Vec<_> = calls.iter().map(|call| call.call_id.as_str()).collect();
                assert_eq!(ids, ["b", "c", "d"]);
                Ok(vec![vec![2], vec![0], vec![1]])
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["run d with {}", "run c with {}"]);
    }

    #[test]
    fn tool_update_events_carry_call_id_and_name_and_are_all_relayed_before_the_end() {
        let chatty = tool(spec("t"), |context| {
            for n in 0..1_000 {
                context.updates.text(&format!("{n} "));
            }
            ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
        });
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![chatty], |_| {});
        stage.prompt("go").finish().check();
        let mut updates = Vec::new();
        for event in &stage.events {
            if let AgentEvent::ToolExecutionUpdate { call_id, tool_name, update } = event {
                assert_eq!((call_id.as_str(), tool_name.as_str()), ("a", "t"));
                updates.push(update.to_value().as_str().unwrap().to_owned());
            }
        }
        // Bounded: the excess coalesces, and nothing is lost.
        assert_eq!(updates.len(), 128);
        assert_eq!(updates.concat(), (0..1_000).map(|n| format!("{n} ")).collect::<String>());
    }

    #[test]
    fn post_turn_replacements_preserve_the_original_tool_call_blocks() {
        for keep in [true, false] {
            let mut stage = stage(vec![two_calls()], vec![quick("t")], |config| {
                config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
                    let mut other: AssistantMessage = (**turn.message).clone();
                    if !keep {
                        other.content.clear();
                    }
                    other.content.insert(0, ContentBlock::text("redacted"));
                    Ok(Verdict::Inject(vec![other.into()]))
                }));
            });
            stage.prompt("go").finish().check();
            let expected = if keep { "assistant: redacted[a b]" } else { "assistant: [a b]" };
            assert_eq!(stage.history()[1], expected);
            let Some(AgentEvent::TurnEnd { message: Some(message), .. }) =
                stage.events.iter().find(|event| event.name() == "turn_end")
            else {
                return assert!(stage.events.is_empty(), "no turn_end");
            };
            assert_eq!(brief(&AgentMessage::Assistant(message.clone())), expected);
        }
    }

    #[test]
    fn pre_dispatch_snapshots_session_state_once_per_batch_not_per_tool() {
        let states = Notes::default();
        let notes = states.clone();
        let writes = tool(spec("t"), |context| {
            context.state.set("by", (&*context.call_id).into());
            ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
        });
        let mut stage = stage(vec![two_calls(), calls(&[("c", "t", "{}")])], vec![writes], |config| {
            config.rules.tool_execution = ToolExecutionPolicy::Sequential;
            config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
                let by = call.state.get("by").and_then(|by| by.as_str().map(str::to_owned));
                note(&notes, format!("{} sees {}", call.call_id, by.as_deref().unwrap_or("nothing")));
                Ok(DispatchVerdict::Continue)
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*states.borrow(), ["a sees nothing", "b sees nothing", "c sees b"]);
    }

    #[test]
    fn cancellation_is_checked_in_preprocessing() {
        let notes = Notes::default();
        let mut stage = stage(vec![two_calls()], vec![noting_tool("t", &notes)], |_| {});
        let cancel = Rc::new(RefCell::new(None::<turnwheel::cancel::CancelToken>));
        let shared = cancel.clone();
        stage.agent.configure(|config| {
            config.rules.pre_dispatch.push(Rc::new(move |_: &mut DispatchCall<'_>| {
                if let Some(cancel) = shared.borrow().as_ref() {
                    cancel.cancel("stop");
                }
                Ok(DispatchVerdict::Continue)
            }));
        });
        stage.prompt("go");
        *cancel.borrow_mut() = Some(stage.cancel.clone());
        stage.finish().check();
        assert!(notes.borrow().is_empty());
        assert_eq!(
            stage.lines()[5..],
            [
                "a!: tool call cancelled: operation aborted",
                "b!: tool call cancelled: operation aborted",
                "turn ends aborted",
                "run ends aborted: stop"
            ]
        );
    }

    #[test]
    fn cancellation_is_checked_before_each_dispatch() {
        let clock = Clock::default();
        let tools = vec![slow("t", &clock, 10)];
        let mut config = config(&clock, answers(vec![two_calls()]), tools);
        config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").until("tool_execution_end");
        stage.cancel.cancel("stop");
        stage.finish().check();
        assert_eq!(stage.count("tool_execution_start"), 1);
        assert_eq!(stage.history()[2..], ["a: t is done", "b!: tool call cancelled: operation aborted"]);
    }

    #[test]
    fn parent_cancellation_is_observed_while_the_tools_run() {
        let mut stage = stage(vec![two_calls()], vec![deaf("t")], |_| {});
        stage.prompt("go").until("tool_execution_start");
        stage.cancel.cancel("stop");
        stage.settle();
        assert!(stage.is_over());
        stage.check();
    }

    #[test]
    fn a_panicked_tool_task_becomes_an_error_result_and_an_end_event() {
        let at_once = tool(spec("t"), |_| {
            std::panic::resume_unwind(Box::new("boom".to_owned()));
            #[allow(unreachable_code, reason = "the closure must give a future")]
            pending::<ToolOutcome>()
        });
        let later = tool(spec("t"), |_| async { std::panic::resume_unwind(Box::new("boom".to_owned())) });
        for bomb in [at_once, later] {
            let mut stage =
                stage(vec![calls(&[("a", "t", "{}"), ("b", "q", "{}")])], vec![bomb, quick("q")], |_| {});
            stage.prompt("go").finish().check();
            assert_eq!(stage.history()[2..4], ["a!: tool `t` failed: boom", "b: q is done"]);
        }
    }

    #[test]
    fn an_aborted_batch_terminates_the_turn_inline() {
        let mut stage = stage(vec![two_calls()], vec![deaf("t")], |_| {});
        stage.prompt("go").until("tool_execution_start");
        stage.cancel.cancel("stop");
        stage.finish().check();
        assert_eq!(
            (stage.count("turn_start"), stage.count("turn_end"), stage.count("message_start")),
            (1, 1, 1)
        );
    }

    #[test]
    fn an_abort_in_overflow_recovery_reuses_the_started_turn() {
        let mut stage = stage(vec![failure(ErrorKind::ContextOverflow)], Vec::new(), |config| {
            config.ports.transformer = Some(Rc::new(Port(|_, overflow: bool| {
                if overflow { pending().boxed_local() } else { ready(Ok(Transform::Unchanged)).boxed_local() }
            })));
        });
        stage.prompt("go").settle();
        stage.cancel.cancel("stop");
        stage.finish().check();
        assert_eq!(
            stage.names(),
            ["agent_start", "turn_start", "message_start", "message_end", "turn_end", "agent_end"]
        );
    }

    #[test]
    fn an_overflow_emits_no_message_end() {
        let notes = Notes::default();
        let mut stage =
            stage(vec![failure(ErrorKind::ContextOverflow), text("fits")], Vec::new(), |config| {
                config.rules.transformers.push(Rc::new(shortens(&notes)));
            });
        stage.prompt("go").finish().check();
        assert_eq!((stage.count("message_start"), stage.count("message_end")), (1, 1));
    }

    #[test]
    fn provider_terminal_error_and_aborted_commit_the_assistant_message_and_run_post_turn_policies() {
        for kind in [ErrorKind::Auth, ErrorKind::Aborted] {
            let notes = Notes::default();
            let policy = notes.clone();
            let mut answer = text("so far");
            answer.truncate(3);
            answer.extend(failure(kind));
            let mut stage = stage(vec![answer], Vec::new(), |config| {
                config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
                    note(&policy, brief(&AgentMessage::Assistant(turn.message.clone())));
                    Ok(Verdict::Continue)
                }));
            });
            stage.prompt("go").finish().check();
            let word = if kind == ErrorKind::Auth { "error" } else { "aborted" };
            assert_eq!(*notes.borrow(), [format!("assistant: so far ({word})")]);
            assert_eq!(stage.history()[1], format!("assistant: so far ({word})"));
        }
    }

    #[test]
    fn what_a_completion_drains_from_steering_is_handed_to_the_batch() {
        let clock = Clock::default();
        let tools = vec![slow("s", &clock, 10)];
        let mut config = config(&clock, answers(vec![calls(&[("a", "s", "{}")])]), tools);
        let polls = Cell::new(0);
        config.set_message_provider(Rc::new(Port(move |_| {
            polls.set(polls.get() + 1);
            ready(if polls.get() == 1 { vec!["x".into(), "y".into()] } else { Vec::new() })
        })));
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(stage.history()[2..], ["a: s is done", "user: x", "user: y", "assistant: done"]);
    }

    #[test]
    fn text_only_turns_poll_steering_after_turn_end() {
        let notes = Notes::default();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            let notes = notes.clone();
            config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
                note(&notes, if follow_up { "follow-up" } else { "steering" });
                ready(Vec::new())
            })));
        });
        let log = notes.clone();
        stage.agent.subscribe(move |event| note(&log, event.name()));
        stage.prompt("go").finish().check();
        let after = notes.borrow().iter().position(|line| line == "turn_end").unwrap();
        assert_eq!(notes.borrow()[after..], ["turn_end", "steering", "follow-up", "agent_end"]);
    }

    #[test]
    fn pending_messages_drain_before_the_inner_loop_is_left() {
        let mut stage = stage(vec![text("one"), text("two")], Vec::new(), |config| {
            let once = Cell::new(true);
            config.rules.post_turn.push(Rc::new(move |_: &PostTurn<'_>| {
                Ok(if once.replace(false) {
                    Verdict::Inject(vec!["check it".into()])
                } else {
                    Verdict::Continue
                })
            }));
        });
        drop(stage.agent.follow_up("later".into()));
        stage.prompt("go").finish().check();
        assert_eq!(stage.history()[2..5], ["user: check it", "assistant: two", "user: later"]);
    }

    #[test]
    fn the_context_of_turn_policies_is_always_a_committed_snapshot() {
        let notes = Notes::default();
        let seen = notes.clone();
        let mut stage = stage(vec![two_calls()], vec![quick("t")], |config| {
            config.rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
                let messages: Vec<String> = turn.messages.iter().map(brief).collect();
                note(&seen, messages.join(" | "));
                Ok(Verdict::Continue)
            }));
        });
        stage.prompt("go").finish().check();
        let first = "user: go | assistant: [a b] | a: t is done | b: t is done";
        assert_eq!(*notes.borrow(), [first.to_owned(), format!("{first} | assistant: done")]);
    }

    #[test]
    fn pre_turn_policies_run_after_context_transformers() {
        let notes = Notes::default();
        let policy = notes.clone();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.rules.transformers.push(Rc::new(shortens(&notes)));
            config.rules.pre_turn.push(Rc::new(move |_: &PolicyContext<'_>| {
                note(&policy, "policy");
                Ok(Verdict::Continue)
            }));
        });
        stage.prompt("go").finish().check();
        assert_eq!(*notes.borrow(), ["transform, overflow false", "policy"]);
    }

    #[test]
    fn dynamic_system_prompts_are_computed_once_per_turn_and_carried_into_overflow_retries() {
        let (asked, transformed) = (Notes::default(), Notes::default());
        let clock = Clock::default();
        let given = vec![
            failure(ErrorKind::Throttled),
            failure(ErrorKind::ContextOverflow),
            calls(&[("a", "t", "{}")]),
        ];
        let mut config = config(&clock, noting(&asked, given), vec![quick("t")]);
        config.rules.transformers.push(Rc::new(shortens(&transformed)));
        let evaluations = Cell::new(0);
        config.rules.dynamic_system_prompt = Some(Rc::new(move |_| {
            evaluations.set(evaluations.get() + 1);
            Ok(format!("prompt {}", evaluations.get()))
        }));
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        assert_eq!(
            *asked.borrow(),
            [
                "user: prompt 1 | user: go",
                "user: prompt 1 | user: go",
                "user: prompt 1 | user: go",
                "user: prompt 2 | user: go | assistant: [a] | a: t is done",
            ]
        );
        assert!(!stage.history().iter().any(|line| line.contains("prompt")));
    }

    #[test]
    fn retry_attempts_share_one_assistant_message_lifecycle() {
        let mut half = text("half an ans");
        half.truncate(3);
        half.extend(failure(ErrorKind::Network));
        let mut stage = stage(vec![half, failure(ErrorKind::Throttled), text("whole")], Vec::new(), |_| {});
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.lines(),
            [
                "run",
                "turn 0",
                "+half an ans",
                "reset: it failed",
                "attempt 1 failed, wait 999",
                "attempt 2 failed, wait 1999",
                "+whole",
                "assistant: whole",
                "turn ends complete",
                "run ends completed",
            ]
        );
        assert_eq!((stage.count("message_start"), stage.count("message_end")), (1, 1));
    }

    #[test]
    fn cache_prefix_tracking_is_turn_to_turn() {
        let prompt = "p".repeat(80);
        let given = (0..4).map(|n| calls(&[(&format!("c{n}"), "t", "{}")])).collect();
        let mut stage = stage(given, vec![quick("t")], |config| {
            config.rules.cache = Some(CacheHints::new(300_000, 10, 2));
        });
        stage.prompt(&prompt).finish().check();
        let hints: Vec<String> = stage.lines().into_iter().filter(|line| line.starts_with("cache")).collect();
        assert_eq!(
            hints,
            ["cache write 20", "cache read 20", "cache write 24", "cache read 24", "cache write 28"]
        );
    }

    #[test]
    fn async_approval_is_guarded_on_both_callback_invocation_and_future_polling() {
        let at_once =
            |_: turnwheel::ports::ApprovalRequest| -> std::future::Ready<Result<ToolDecision, String>> {
                std::panic::resume_unwind(Box::new("no ui".to_owned()))
            };
        let later = |_: turnwheel::ports::ApprovalRequest| async {
            std::panic::resume_unwind(Box::new("ui crashed".to_owned()))
        };
        let guarded = |approver: Rc<dyn turnwheel::ports::Approver>| {
            let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
                config.rules.approval.mode = ApprovalMode::Enabled;
                config.set_approver(approver);
            });
            stage.prompt("go").finish().check();
            stage.history()[2].clone()
        };
        assert_eq!(
            guarded(Rc::new(Port(at_once))),
            "a!: tool call `t` was rejected: the approver failed: no ui"
        );
        assert_eq!(
            guarded(Rc::new(Port(later))),
            "a!: tool call `t` was rejected: the approver failed: ui crashed"
        );
    }

    #[test]
    fn max_tokens_recovery_replaces_incomplete_tool_calls() {
        let mut cut = calls(&[("a", "t", "{}"), ("b", "t", "{\"n\":")]);
        // The second call is never closed: the token limit cut it off.
        cut.truncate(cut.len() - 2);
        cut.push(E::Done { stop_reason: MessageStopReason::Length, usage: None });
        let mut stage = stage(vec![cut], vec![quick("t")], |_| {});
        stage.prompt("go").finish().check();
        assert_eq!(
            stage.history()[2..4],
            ["a: t is done", "b!: error: tool call was incomplete due to max tokens reached"]
        );
        let stored = stage.answer(1);
        assert!(stored.tool_calls().all(|call| call.arguments.as_str() == "{}"));
    }

    #[test]
    fn a_tool_that_asks_for_approval_is_never_run_unasked() {
        let ran = Rc::new(Cell::new(false));
        let flag = ran.clone();
        let mut asks = spec("t");
        asks.requires_approval = ApprovalNeed::Always;
        let asks = tool(asks, move |_| {
            flag.set(true);
            ready(ToolOutcome::Completed(AgentToolResult::text("ran")))
        });
        let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![asks], |_| {});
        stage.prompt("go").settle();
        assert!(!ran.get() && !stage.is_over());
        assert_eq!(stage.agent.pending_approvals()[0].call_id, "a");
        stage.agent.resolve_tool("a", ToolDecision::Accept);
        stage.finish().check();
        assert!(ran.get());
    }
}
