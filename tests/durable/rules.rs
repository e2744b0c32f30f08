//! What durable runs promise, one by one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::executor::block_on;
use futures::future::{FutureExt, LocalBoxFuture, pending};
use rig::clock::Clock;
use rig::host::{calls, spec};
use turnwheel::approval::ToolDecision;
use turnwheel::json::{RawJson, ToJson, Value};
use turnwheel::message::{AgentMessage, ContentBlock};
use turnwheel::ports::{ApprovalRequest, Step, Steps};
use turnwheel::question::QuestionKind;
use turnwheel::scripted::{self, ScriptedAnswer};
use turnwheel::tool::{AgentTool, ToolContext, ToolSpec, external_tool, tool};
use turnwheel::{
    Agent, AgentEvent, AgentLoopConfig, AgentLoopResult, AgentRunContext, CancelToken, agent_loop,
};

/// An engine that keeps records by name, may refuse to store one, and may die after the work of a step.
#[derive(Clone, Default)]
struct Memo {
    records: Rc<RefCell<BTreeMap<String, RawJson>>>,
    names: Rc<RefCell<Vec<String>>>,
    refuses: Option<&'static str>,
    /// The step whose record is lost, with the process.
    dies_after: Option<&'static str>,
    has_died: Rc<Cell<bool>>,
    max_bytes: Option<usize>,
}

impl Steps for Memo {
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>> {
        let own = self.clone();
        Box::pin(async move {
            own.names.borrow_mut().push(step.name().to_owned());
            let stored = own.records.borrow().get(step.name()).cloned();
            if let Some(record) = stored {
                return Ok(record);
            }
            let record = step.work().await;
            if own.refuses == Some(step.name()) {
                return Err("the disk is full".to_owned());
            }
            if own.dies_after == Some(step.name()) && !own.has_died.replace(true) {
                return pending().await;
            }
            own.records.borrow_mut().insert(step.name().to_owned(), record.clone());
            Ok(record)
        })
    }

    fn max_bytes(&self) -> Option<usize> {
        self.max_bytes
    }
}

impl Memo {
    fn names(&self) -> Vec<String> {
        self.records.borrow().keys().cloned().collect()
    }

    fn record(&self, name: &str) -> Value {
        self.records.borrow()[name].to_value()
    }
}

fn config(memo: &Memo, answers: Vec<ScriptedAnswer>, tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(scripted::model(answers), scripted::clock());
    config.set_tools(tools).unwrap();
    config.ports.steps = Some(Rc::new(memo.clone()));
    config
}

fn who() -> AgentRunContext {
    AgentRunContext::new("run", "session")
}

fn run(config: AgentLoopConfig) -> AgentLoopResult {
    block_on(agent_loop(vec!["Go.".into()], config, who(), CancelToken::new()).finish())
}

/// Runs as far as it comes.
fn run_until_it_waits(config: AgentLoopConfig) {
    let mut run = agent_loop(vec!["Go.".into()], config, who(), CancelToken::new());
    while let Some(Some(_)) = run.next().now_or_never() {}
}

fn answers() -> Vec<ScriptedAnswer> {
    vec![calls(&[("a", "pay", "{\"n\":1}")]), scripted::text("Paid.")]
}

fn pay(begins: &Rc<Cell<u32>>) -> Rc<dyn AgentTool> {
    let begins = begins.clone();
    tool(spec("pay"), move |_: ToolContext| {
        begins.set(begins.get() + 1);
        async { "paid" }
    })
}

fn texts(messages: &[AgentMessage]) -> Vec<String> {
    messages.iter().map(ToJson::to_json).collect()
}

#[test]
fn steps_have_the_names_of_a_tape_and_a_marker_comes_before_a_tool() {
    let memo = Memo::default();
    let result = run(config(&memo, answers(), vec![pay(&Rc::default())]));
    assert_eq!(result.text, "Paid.");
    assert_eq!(memo.names(), ["begin", "t0/model", "t0/start/0-pay", "t0/tool/0-pay", "t1/model"]);
    let begun = memo.record("begin");
    let seen = begun.get("value").unwrap();
    assert_eq!(
        (seen.text_at("runId"), seen.text_at("engine")),
        (Some("run"), Some(env!("CARGO_PKG_VERSION")))
    );
    assert_eq!(seen.list_at("tools").len(), 1);
}

#[test]
fn a_call_that_may_have_run_is_not_begun_again() {
    let begins: Rc<Cell<u32>> = Rc::default();
    let memo = Memo { dies_after: Some("t0/tool/0-pay"), ..Memo::default() };
    run_until_it_waits(config(&memo, answers(), vec![pay(&begins)]));
    assert_eq!((begins.get(), memo.names().len()), (1, 3));
    let result = run(config(&memo, vec![scripted::text("I do not know.")], vec![pay(&begins)]));
    assert_eq!((begins.get(), result.text.as_str()), (1, "I do not know."));
    assert!(texts(&result.messages)[2].contains("\"cause\":\"interrupted\""), "{:?}", result.messages);
}

#[test]
fn a_call_of_an_idempotent_tool_is_begun_again_and_has_no_marker() {
    let begins: Rc<Cell<u32>> = Rc::default();
    let counted = begins.clone();
    let look = || {
        let counted = counted.clone();
        tool(ToolSpec { idempotent: true, ..spec("pay") }, move |_: ToolContext| {
            counted.set(counted.get() + 1);
            async { "seen" }
        })
    };
    let memo = Memo { dies_after: Some("t0/tool/0-pay"), ..Memo::default() };
    run_until_it_waits(config(&memo, answers(), vec![look()]));
    let result = run(config(&memo, vec![scripted::text("Seen.")], vec![look()]));
    assert_eq!((begins.get(), result.text.as_str()), (2, "Seen."));
    assert_eq!(memo.names(), ["begin", "t0/model", "t0/tool/0-pay", "t1/model"]);
}

#[test]
fn the_end_of_an_answer_waits_until_it_is_stored() {
    let memo = Memo { dies_after: Some("t0/model"), ..Memo::default() };
    let mut run = agent_loop(
        vec!["Go.".into()],
        config(&memo, answers(), vec![pay(&Rc::default())]),
        who(),
        CancelToken::new(),
    );
    let mut names = Vec::new();
    while let Some(Some(event)) = run.next().now_or_never() {
        names.push(event.name());
    }
    // The pieces have come, the end has not, and no tool has begun.
    assert_eq!(names.last(), Some(&"message_update"));
    assert!(!memo.names.borrow().contains(&"t0/start/0-pay".to_owned()));
}

#[test]
fn a_step_that_cannot_be_stored_ends_the_run_in_this_process() {
    let memo = Memo { refuses: Some("t0/tool/0-pay"), ..Memo::default() };
    let result = run(config(&memo, answers(), vec![pay(&Rc::default())]));
    let error = result.error.unwrap();
    assert_eq!(error.info().phase.as_deref(), Some("step"));
    assert!(
        error.info().message.contains("t0/tool/0-pay") && error.info().message.contains("the disk is full")
    );
}

#[test]
fn a_result_that_is_too_large_becomes_an_error_that_names_both_numbers() {
    let memo = Memo { max_bytes: Some(600), ..Memo::default() };
    let large = tool(spec("pay"), |_: ToolContext| async { "x".repeat(1_000) });
    let result = run(config(&memo, answers(), vec![large]));
    assert_eq!(result.text, "Paid.");
    let text = &texts(&result.messages)[2];
    assert!(
        text.contains("bytes, and at most 600 can be stored") && text.contains("\"isError\":true"),
        "{text}"
    );
    let memo = Memo { max_bytes: Some(600), ..Memo::default() };
    let [lived, again] =
        [0, 1].map(|_| run(config(&memo, vec![scripted::text(&"y".repeat(1_000))], Vec::new())));
    assert!(lived.error.unwrap().info().message.contains("at most 600 can be stored"));
    assert_eq!(texts(&lived.messages), texts(&again.messages), "what is in no record is not in the history");
}

#[test]
fn changes_of_the_session_state_enter_with_the_result() {
    let memo = Memo::default();
    let counting = |is_live: bool| {
        tool(spec("pay"), move |call: ToolContext| async move {
            assert!(is_live, "it is stored");
            call.state.set("n", Value::from(1_u64));
            call.state.set("gone", Value::from(2_u64));
            call.state.delete("gone");
            assert_eq!((call.state.get("n"), call.state.get("gone")), (Some(Value::from(1_u64)), None));
            assert_eq!(call.state.snapshot().len(), 1);
            "counted"
        })
    };
    for is_live in [true, false] {
        let answers = if is_live { answers() } else { Vec::new() };
        let mut run = agent_loop(
            vec!["Go.".into()],
            config(&memo, answers, vec![counting(is_live)]),
            who(),
            CancelToken::new(),
        );
        let mut changes = Vec::new();
        while let Some(event) = block_on(run.next()) {
            assert_eq!(run.is_replaying(), !is_live, "{}", event.name());
            if let AgentEvent::StateChanged { changes: changed } = event {
                changes.push(changed.as_str().to_owned());
            }
        }
        assert_eq!(changes, ["{\"n\":1,\"gone\":null}"]);
        assert_eq!(run.state().session().get("n"), Some(Value::from(1_u64)));
    }
}

#[test]
fn the_second_run_of_an_agent_has_names_of_its_own() {
    let memo = Memo::default();
    for model in [vec![scripted::text("One."), scripted::text("Two.")], Vec::new()] {
        let agent = Agent::new(config(&memo, model, Vec::new()), Vec::new());
        for text in ["One.", "Two."] {
            let run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
            assert_eq!(block_on(run.finish()).text, text);
        }
    }
    assert_eq!(memo.names(), ["begin", "r2/begin", "r2/t0/model", "t0/model"]);
}

#[test]
fn a_journal_is_lived_again_with_the_prompt_that_it_began_with() {
    let memo = Memo::default();
    let live = |text: &str, timestamp: u64| {
        let mut prompt: AgentMessage = text.into();
        if let AgentMessage::User(user) = &mut prompt {
            Rc::make_mut(user).timestamp = timestamp;
        }
        let config = config(&memo, vec![scripted::text("Done.")], Vec::new());
        block_on(agent_loop(vec![prompt], config, who(), CancelToken::new()).finish())
    };
    assert_eq!(live("Hi", 1).text, "Done.");
    assert_eq!(live("Hi", 2).text, "Done.");
    let error = live("Ho", 1).error.unwrap();
    assert_eq!(error.info().phase.as_deref(), Some("step"));
    assert!(error.info().message.contains("the journal is that of a run with another prompt"));
}

/// Lives a run again, of which one record was changed. Returns why it is not lived.
fn refused(name: &str, change: impl Fn(&str) -> String) -> String {
    let memo = Memo::default();
    run(config(&memo, answers(), vec![pay(&Rc::default())]));
    let changed = RawJson::parse(&change(memo.records.borrow()[name].as_str())).unwrap();
    memo.records.borrow_mut().insert(name.to_owned(), changed);
    let begins: Rc<Cell<u32>> = Rc::default();
    let error = run(config(&memo, Vec::new(), vec![pay(&begins)])).error.unwrap();
    let phase = error.info().phase.as_deref();
    assert_eq!((begins.get(), phase), (0, Some("step")), "{error:?}");
    error.info().message.clone()
}

#[test]
fn what_is_no_record_of_its_step_ends_the_run() {
    let of_another = refused("t1/model", |json| json.replace("t1/model", "t0/model"));
    assert!(of_another.contains("it gave the record of `t0/model`"), "{of_another}");
    let without_value = refused("t0/tool/0-pay", |json| json.replace("\"value\"", "\"volue\""));
    assert!(without_value.contains("the record was damaged"), "{without_value}");
    let of_another_version = refused("begin", |json| json.replace("\"v\":2", "\"v\":1"));
    assert!(of_another_version.contains("is of another version of turnwheel"), "{of_another_version}");
}

#[test]
fn what_was_posted_before_the_run_belongs_to_its_beginning() {
    let memo = Memo::default();
    for life in 0..2 {
        let model =
            if life == 0 { vec![scripted::text("Yes."), scripted::text("Done.")] } else { Vec::new() };
        let agent = Agent::new(config(&memo, model, Vec::new()), Vec::new());
        if life == 0 {
            drop(agent.follow_up("And then?".into()));
        }
        let run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        assert_eq!(block_on(run.finish()).messages.len(), 4);
    }
}

#[test]
fn silence_and_the_limit_of_a_tool_are_in_their_records() {
    let memo = Memo::default();
    let mut histories = Vec::new();
    for life in 0..2 {
        let clock = Clock::default();
        let own = clock.clone();
        let model = rig::host::model("m", move |request, _| {
            assert_eq!(life, 0, "it is stored");
            use futures::stream::{self, StreamExt};
            match request.messages.len() {
                1 => stream::iter(calls(&[("a", "slow", "{}")])).boxed_local(),
                _ => stream::once(own.pause(1_000))
                    .map(|()| turnwheel::stream::AssistantMessageEvent::Ping)
                    .boxed_local(),
            }
        });
        let own = clock.clone();
        let slow = tool(ToolSpec { timeout_ms: Some(50), ..spec("slow") }, move |_: ToolContext| {
            let pause = own.pause(500);
            async move {
                pause.await;
                "late"
            }
        });
        let mut config = rig::host::config(&clock, model, vec![slow]);
        config.rules.timeouts.first_chunk = Some(30);
        config.rules.retry = Rc::new(turnwheel::retry::RetryConfig { max_attempts: 1, ..Default::default() });
        config.ports.steps = Some(Rc::new(memo.clone()));
        let result =
            clock.run(agent_loop(vec!["Go.".into()], config, who(), CancelToken::new()).finish()).unwrap();
        assert_eq!(result.error.unwrap().info().message, "the model was silent for 30 ms");
        assert!(texts(&result.messages)[2].contains("\"cause\":\"timeout\""));
        assert_eq!(clock.elapsed(), if life == 0 { 80 } else { 0 });
        histories.push(texts(&result.messages));
    }
    assert_eq!(histories[0], histories[1]);
}

#[test]
fn a_run_that_went_on_days_later_gives_its_model_the_whole_time() {
    let memo = Memo { dies_after: Some("t0/model"), ..Memo::default() };
    run_until_it_waits(config(&memo, answers(), vec![pay(&Rc::default())]));
    let clock = Clock::default();
    clock.at(10 * 86_400_000, || {});
    clock.advance();
    let mut config = rig::host::config(&clock, rig::host::answers(vec![scripted::text("Here.")]), Vec::new());
    config.rules.timeouts.model = Some(1_000);
    config.ports.steps = Some(Rc::new(memo));
    let result =
        clock.run(agent_loop(vec!["Go.".into()], config, who(), CancelToken::new()).finish()).unwrap();
    assert_eq!(result.text, "Here.");
}

/// Lives a run that somebody interferes with when an event comes, and once more from its records. Returns what each life saw.
fn twice(meddle: impl Fn(&Agent, &AgentEvent)) -> [(Vec<String>, Vec<String>); 2] {
    let memo = Memo::default();
    [true, false].map(|is_first| {
        let asks = ToolSpec { requires_approval: turnwheel::tool::ApprovalNeed::Always, ..spec("pay") };
        let pay = tool(asks, |_: ToolContext| async { "paid" });
        let model = if is_first { answers() } else { Vec::new() };
        let agent = Agent::new(config(&memo, model, vec![pay]), Vec::new());
        let mut run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = block_on(run.next()) {
            if is_first {
                meddle(&agent, &event);
            }
            if !matches!(event, AgentEvent::MessageUpdate(_)) {
                events.push(event.to_json());
            }
        }
        (events, texts(&agent.messages()))
    })
}

#[test]
fn an_abort_at_any_event_is_at_the_same_place_when_it_is_lived_again() {
    let moments = [
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "tool_approval_requested",
    ];
    for moment in moments {
        let [one, two] = twice(|agent, event| {
            if event.name() == moment {
                agent.abort("enough");
            }
        });
        assert_eq!(one, two, "{moment}");
        assert!(one.0.last().unwrap().contains("enough"), "{moment}: {:?}", one.0);
    }
}

#[test]
fn a_decision_rides_in_the_step_that_waits_for_it() {
    let [one, two] = twice(|agent, event| {
        if let AgentEvent::ToolApprovalRequested { id, .. } = event {
            assert!(agent.resolve(id, turnwheel::approval::ToolDecision::Accept));
        }
    });
    assert_eq!(one, two);
    assert!(one.1[2].contains("paid"), "{:?}", one.1);
}

#[test]
fn a_run_that_nobody_can_decide_about_ends_though_it_waits_for_mail() {
    let memo = Memo::default();
    let asks = || {
        let asks = ToolSpec { requires_approval: turnwheel::tool::ApprovalNeed::Always, ..spec("pay") };
        vec![tool(asks, |_: ToolContext| async { "paid" })]
    };
    let mut run = agent_loop(vec!["Go.".into()], config(&memo, answers(), asks()), who(), CancelToken::new());
    while let Some(Some(_)) = run.next().now_or_never() {}
    assert_eq!(memo.names.borrow().last().unwrap(), "t0/mail/1");
    run.inbox().close();
    let mut last = "";
    while let Some(Some(event)) = run.next().now_or_never() {
        last = event.name();
    }
    assert_eq!((last, run.result().unwrap().stop_reason.as_str()), ("agent_end", "aborted"));
    assert!(run.next().now_or_never().is_some_and(|event| event.is_none()), "the step that waited has ended");
}

/// An engine that waits for answers itself: here they are there at once.
struct Waiting {
    memo: Memo,
    asked: Rc<RefCell<Vec<String>>>,
    answer: Result<ToolDecision, String>,
}

impl Steps for Waiting {
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>> {
        self.memo.step(step)
    }

    fn waits(&self) -> bool {
        true
    }

    fn wait(
        &self,
        name: &str,
        kind: QuestionKind,
        request: &ApprovalRequest,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let (tool, arguments) = (&request.tool_name, request.arguments.as_str());
        self.asked.borrow_mut().push(format!("{name} {} {tool} {arguments}", kind.as_str()));
        futures::future::ready(self.answer.clone()).boxed_local()
    }
}

/// The result of a call that is answered elsewhere, with a durable engine that waits for it; twice, with the same records.
fn answered(answer: Result<ToolDecision, String>) -> (Vec<String>, Vec<String>) {
    let memo = Memo::default();
    let live = || {
        let asked = Rc::<RefCell<Vec<String>>>::default();
        let external = spec("pay");
        let mut config = config(&memo, answers(), vec![external_tool(external)]);
        config.ports.steps =
            Some(Rc::new(Waiting { memo: memo.clone(), asked: asked.clone(), answer: answer.clone() }));
        let result = run(config);
        (asked.take(), texts(&result.messages))
    };
    let first = live();
    assert_eq!(live(), first, "the second life is as the first");
    first
}

#[test]
fn an_engine_that_waits_for_decisions_waits_for_results_from_elsewhere() {
    let content = vec![ContentBlock::text("paid")];
    let result = ToolDecision::Result { content, details: None, is_error: false };
    let (asked, texts) = answered(Ok(result));
    assert_eq!(asked, [r#"t0/answer/0-pay tool_call pay {"n":1}"#]);
    assert!(texts.iter().any(|text| text.contains(r#""text":"paid""#)), "{texts:?}");
    let rejected = ToolDecision::Reject { reason: Some("not today".to_owned()) };
    assert!(answered(Ok(rejected)).1.iter().any(|text| text.contains("not today")));
    assert!(answered(Err("it is closed".to_owned())).1.iter().any(|text| text.contains("it is closed")));
    let misfit = answered(Ok(ToolDecision::Accept)).1;
    assert!(misfit.iter().any(|text| text.contains("rejected")), "{misfit:?}");
}
