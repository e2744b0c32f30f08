//! What runs use when they end in a hurry, are tried again, or sleep in the middle: nothing is lost, and nothing counts twice.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{pending, ready};
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{Port, ScriptedAnswer, Stage, StagedHook, calls, config, context, model, quick, text};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::budget::{Amounts, Budget, OnExceed};
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model, SteeringTime, TurnOptions};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, BudgetKind, BudgetState, RunStopReason};
use turnwheel::json::Value;
use turnwheel::message::{MessageStopReason, Usage};
use turnwheel::ports::{AgentRunContext, Compaction, HookCall, HookStages, StreamFn, TurnCall, TurnChoice};
use turnwheel::price::Price;
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, StreamOptions};
use turnwheel::tool::{AgentTool, ToolOutcome};

fn used(input: u64, output: u64) -> Usage {
    Usage { input, output, total: input + output, ..Usage::default() }
}

/// A model that tells what it has used so far, and then is silent for ever.
fn silent(usage: Usage) -> Model {
    model("silent", move |_, _| {
        let begun = vec![
            E::Usage(usage),
            E::TextStart { index: 0 },
            E::TextDelta { index: 0, delta: "Well, ".into() },
        ];
        stream::iter(begun).chain(stream::once(pending())).boxed_local()
    })
}

/// A model that gives these answers in order, and then fails; it estimates what it is not told, if it is to.
struct Script {
    answers: RefCell<VecDeque<ScriptedAnswer>>,
    price: Option<Price>,
    estimates: bool,
}

impl StreamFn for Script {
    fn stream(
        &self,
        _: ModelRequest,
        _: &AgentRunContext,
        _: CancelToken,
    ) -> futures::stream::LocalBoxStream<'static, E> {
        match self.answers.borrow_mut().pop_front() {
            Some(answer) if answer.last().is_some_and(|last| matches!(last, E::TextDelta { .. })) => {
                stream::iter(answer).chain(stream::once(pending())).boxed_local()
            }
            answer => stream::iter(answer.unwrap_or_else(|| text("done"))).boxed_local(),
        }
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn estimates_usage(&self) -> bool {
        self.estimates
    }
}

fn script(answers: Vec<ScriptedAnswer>, estimates: bool) -> Model {
    Model::new("p", "m", Rc::new(Script { answers: RefCell::new(answers.into()), price: None, estimates }))
}

fn child(clock: &Clock, inner: impl Fn() -> Model + 'static) -> Rc<dyn AgentTool> {
    let clock = clock.clone();
    Rc::new(SubAgent::new("ask", "", move || config(&clock, inner(), Vec::new())))
}

fn says(words: &str, usage: Usage) -> ScriptedAnswer {
    let mut answer = text(words);
    answer.pop();
    answer.push(E::Done { stop_reason: MessageStopReason::Stop, usage: Some(usage) });
    answer
}

fn ends(stage: &Stage) -> (Usage, Option<Usage>) {
    match stage.events.last() {
        Some(AgentEvent::AgentEnd { usage, own_usage, .. }) => (*usage, *own_usage),
        other => panic!("no end but {other:?}"),
    }
}

const ASK: &[(&str, &str, &str)] = &[("c1", "ask", "{\"prompt\":\"x\"}")];
const BOTH: &[(&str, &str, &str)] = &[("c1", "ask", "{\"prompt\":\"x\"}"), ("c2", "break", "{}")];

/// What ends the run while the agent inside answers.
fn hurried(given: &'static [(&str, &str, &str)], change: impl FnOnce(&mut AgentLoopConfig)) -> Stage {
    let clock = Clock::default();
    let mut broken = rig::host::spec("break");
    broken.fatal = true;
    let waits = clock.clone();
    let broken = rig::host::tool(broken, move |_| {
        let pause = waits.pause(5);
        async move {
            pause.await;
            ToolOutcome::Failed("it broke".to_owned())
        }
    });
    let tools = vec![child(&clock, || silent(used(70, 30))), broken];
    let mut config = config(&clock, rig::host::answers(vec![calls(given)]), tools);
    change(&mut config);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish();
    stage
}

#[test]
fn the_end_of_a_run_counts_what_agents_inside_had_used_until_then() {
    let failing = |config: &mut AgentLoopConfig| {
        let stages = HookStages { after_tool_execution: true, ..HookStages::default() };
        config.set_hooks(vec![Rc::new(StagedHook(stages, |_: HookCall| ready(Err("no".to_owned()))))]);
    };
    let limited = |config: &mut AgentLoopConfig| config.rules.timeouts.total = Some(50);
    let runs = [
        ("its time limit", hurried(ASK, limited)),
        ("a fatal tool", hurried(BOTH, |_| {})),
        ("a hook", hurried(BOTH, failing)),
    ];
    for (what, mut stage) in runs {
        let (usage, own) = ends(&stage);
        assert_eq!(usage.total, 100, "{what}");
        assert_eq!(own, Some(Usage::default()), "{what}");
        assert_eq!(stage.result().usage, usage, "{what}");
        assert_eq!(stage.agent.usage(), usage, "{what}");
        stage.check();
    }
}

/// An agent inside that has answered once already is cancelled by a message while it answers again.
#[test]
fn what_a_cancelled_agent_inside_has_used_counts_once() {
    let clock = Clock::default();
    let inner = clock.clone();
    let tool = SubAgent::new("ask", "", move || {
        let mut first = calls(&[("k", "look", "{}")]);
        first.pop();
        first.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: Some(used(7, 3)) });
        let begun = vec![
            E::Usage(used(70, 30)),
            E::TextStart { index: 0 },
            E::TextDelta { index: 0, delta: "Well, ".into() },
        ];
        config(&inner, script(vec![first, begun], false), vec![quick("look")])
    });
    let given = vec![calls(ASK), says("done", used(1, 1))];
    let mut config = config(&clock, script(given, false), vec![Rc::new(tool)]);
    config.rules.budget = Some(Budget { tokens: Some(10_000), ..Budget::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").until("tool_execution_start").settle();
    let wanted = stage.agent.usage();
    drop(stage.agent.steer_when("Stop.".into(), SteeringTime::Immediate));
    stage.finish().check();
    let (usage, own) = ends(&stage);
    assert_eq!((wanted.total, usage.total, own.map(|own| own.total)), (10, 112, Some(2)));
}

fn budgeted(model: Model, tokens: u64, on_exceed: OnExceed) -> AgentLoopConfig {
    let mut config = config(&Clock::default(), model, vec![quick("look")]);
    config.rules.budget = Some(Budget { tokens: Some(tokens), on_exceed, ..Budget::default() });
    config.rules.stream_options = Rc::new(StreamOptions { max_tokens: Some(90), ..StreamOptions::default() });
    config
}

#[test]
fn what_an_attempt_had_reserved_is_free_for_the_next_one() {
    let failed =
        vec![E::Error(ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Throttled, "later") })];
    let clock = Clock::default();
    let mut config = budgeted(script(vec![failed, says("done", used(20, 10))], false), 150, OnExceed::Stop);
    config.ports.timer = Rc::new(clock.clone());
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.result().stop_reason, RunStopReason::Completed, "{:?}", stage.result().error);
    assert_eq!(stage.result().usage.total, 30);
}

#[test]
fn what_a_refused_call_had_reserved_is_free_for_a_summary() {
    let refused = vec![E::Error(ErrorInfo::new(ErrorKind::ContextOverflow, "too long"))];
    let mut config = budgeted(script(vec![refused, says("done", used(20, 10))], false), 150, OnExceed::Stop);
    let summaries = Rc::new(Cell::new(0));
    let counted = summaries.clone();
    config.ports.compaction = Some(Rc::new(Port(move |messages: Rc<[_]>| {
        counted.set(counted.get() + 1);
        let last = messages.last().cloned().into_iter().collect();
        ready(Ok(Compaction { messages: last, ..Compaction::default() }))
    })));
    let clock = Clock::default();
    let history = vec![turnwheel::message::AgentMessage::user("before")];
    let mut stage = Stage::over(clock, config, history);
    stage.prompt("go").finish().check();
    assert_eq!(summaries.get(), 1);
    assert_eq!(stage.result().stop_reason, RunStopReason::Completed, "{:?}", stage.result().error);
}

#[test]
fn an_answer_that_is_refused_in_its_middle_is_not_free() {
    for kind in [ErrorKind::Throttled, ErrorKind::InvalidRequest, ErrorKind::Auth] {
        let words = "many words that the server has written before it had enough of it";
        let cut = vec![
            E::Start,
            E::TextStart { index: 0 },
            E::TextDelta { index: 0, delta: words.into() },
            E::Error(ErrorInfo::new(kind, "enough")),
        ];
        let clock = Clock::default();
        let mut config = config(&clock, script(vec![cut], true), Vec::new());
        config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").finish().check();
        let usage = stage.result().usage;
        assert!(usage.estimated && usage.input > 0 && usage.output > 5, "{kind:?}: {usage:?}");
    }
}

#[test]
fn what_was_told_counts_though_nobody_has_added_it_up() {
    let told = Usage { input: 1_000, output: 2, ..Usage::default() };
    let words = "more words than the two tokens that this provider says they are, and still some more";
    let config = config(&Clock::default(), script(vec![says(words, told)], true), Vec::new());
    let mut stage = Stage::new(Clock::default(), config);
    stage.prompt("go").finish().check();
    assert_eq!(stage.result().usage, used(1_000, 2));
}

#[test]
fn an_answer_that_was_cut_by_sleep_costs_what_it_had_cost() {
    let price = Price::read(&Value::parse("{\"input\":1,\"output\":2}").unwrap());
    for estimates in [false, true] {
        let make = || {
            let begun = vec![
                E::Usage(used(1_000, 500)),
                E::TextStart { index: 0 },
                E::TextDelta { index: 0, delta: "Well, ".into() },
            ];
            let answers = RefCell::new(VecDeque::from(vec![begun]));
            Model::new("p", "m", Rc::new(Script { answers, price, estimates }))
        };
        let clock = Clock::default();
        let mut first = Stage::new(clock.clone(), config(&clock, make(), Vec::new()));
        first.prompt("go").until("message_update").settle();
        let checkpoint = first.stream.as_mut().unwrap().checkpoint();
        let model =
            Script { answers: RefCell::new(vec![says("done", used(10, 5))].into()), price, estimates };
        let config = config(&clock, Model::new("p", "m", Rc::new(model)), Vec::new());
        let mut second = Stage::new(clock.clone(), config.clone());
        second.agent = Agent::restore(config, &checkpoint).unwrap();
        second.resume().finish();
        // 1,010 tokens at 1 for a million, 505 at 2 for a million.
        assert_eq!(second.result().usage.cost, Some(2_020_000_000));
    }
}

#[test]
fn what_a_refused_answer_had_used_counts_in_budgets_after_a_restore() {
    let make = || {
        let refused =
            vec![E::Usage(used(60, 20)), E::Error(ErrorInfo::new(ErrorKind::ContextOverflow, "too long"))];
        let mut config = budgeted(script(vec![refused], false), 1_000, OnExceed::Stop);
        config.ports.compaction = Some(Rc::new(Port(|_: Rc<[_]>| pending())));
        config
    };
    let clock = Clock::default();
    let mut first =
        Stage::over(clock.clone(), make(), vec![turnwheel::message::AgentMessage::user("before")]);
    first.prompt("go").settle();
    let checkpoint = first.stream.as_mut().unwrap().checkpoint();
    let mut config = budgeted(script(vec![says("done", used(20, 10))], false), 100, OnExceed::Stop);
    config.rules.stream_options = Rc::default();
    config.ports.compaction = Some(Rc::new(Port(|messages: Rc<[_]>| {
        let last = messages.last().cloned().into_iter().collect();
        ready(Ok(Compaction { messages: last, usage: used(25, 10), ..Compaction::default() }))
    })));
    let mut second = Stage::new(clock, config.clone());
    second.agent = Agent::restore(config, &checkpoint).unwrap();
    second.resume().finish();
    let exceeded = second.events.iter().find_map(|event| match event {
        AgentEvent::Budget { state: BudgetState::Exceeded, used, limit, .. } => Some((*used, *limit)),
        _ => None,
    });
    assert_eq!(second.result().usage.total, exceeded.map_or(0, |(used, _)| used), "{:?}", second.lines());
}

#[test]
fn who_prepares_a_turn_is_asked_once_in_each_life_of_a_run() {
    let asked = Rc::new(Cell::new(0));
    let make = || {
        let mut config = budgeted(script(vec![says("done", used(1, 1))], false), 10, OnExceed::Ask);
        let noted = asked.clone();
        config.set_turn_preparer(Rc::new(move |_: TurnCall| {
            noted.set(noted.get() + 1);
            async move { Ok(TurnChoice { options: TurnOptions::default(), messages: None }) }
        }));
        config
    };
    // Asleep before it was asked, and asleep with an open question.
    for (until, answered_before) in [("turn_start", 0), ("question_asked", 1)] {
        asked.set(0);
        let mut first = Stage::new(Clock::default(), make());
        first.prompt("go").until(until);
        assert_eq!(asked.get(), answered_before);
        let checkpoint = first.stream.as_mut().unwrap().checkpoint();
        let mut second = Stage::new(Clock::default(), make());
        second.agent = Agent::restore(make(), &checkpoint).unwrap();
        asked.set(0);
        second.stream = Some(second.agent.continue_run(context(), CancelToken::new()).unwrap());
        second.settle();
        let id = second.agent.pending_questions()[0].id.clone();
        assert!(second.agent.resolve(&id, Answer::Raise(Amounts { tokens: 1_000, ..Amounts::default() })));
        // Whoever answers twice is refused.
        assert!(!second.agent.resolve(&id, Answer::Raise(Amounts { tokens: 1_000, ..Amounts::default() })));
        second.finish();
        assert_eq!(asked.get(), 1, "{until}");
        assert_eq!(second.count("command_refused"), 1);
        let raised = |event: &&AgentEvent| {
            matches!(
                event,
                AgentEvent::Budget { state: BudgetState::Raised, kind: BudgetKind::Tokens, limit: 1_010, .. }
            )
        };
        assert_eq!(second.events.iter().filter(raised).count(), 1);
    }
}

fn spent(agent: &Agent) -> u64 {
    let checkpoint = Value::parse(&agent.checkpoint(0).encode()).unwrap();
    let own = checkpoint.get("metadata").and_then(|metadata| metadata.get("turnwheel")).unwrap();
    own.get("spent").and_then(|spent| spent.number_at("tokens")).unwrap_or_default()
}

/// Two agents inside, each of which answers twice, and fails once.
fn family(clock: &Clock, seed: usize) -> AgentLoopConfig {
    let inner = clock.clone();
    let tool = SubAgent::new("ask", "", move || {
        let own = inner.clone();
        let asked = model("inner", move |request: ModelRequest, _| {
            let has_looked =
                request.messages.iter().any(|m| matches!(m, turnwheel::message::LlmMessage::ToolResult(_)));
            let mut answer = if has_looked { text("seen") } else { calls(&[("k", "look", "{}")]) };
            answer.pop();
            answer.insert(1, E::Usage(used(5, 1)));
            let reason = if has_looked { MessageStopReason::Stop } else { MessageStopReason::ToolUse };
            answer.push(E::Done { stop_reason: reason, usage: Some(used(7, 3)) });
            let pause = own.pause(1);
            stream::once(pause).flat_map(move |()| stream::iter(answer.clone())).boxed_local()
        });
        config(&inner, asked, vec![rig::host::slow("look", &inner, 3)])
    });
    let root = model("root", move |request: ModelRequest, _| {
        let has_asked =
            request.messages.iter().any(|m| matches!(m, turnwheel::message::LlmMessage::ToolResult(_)));
        let (one, two) = (format!("c{seed}"), format!("d{seed}"));
        let both = [(&*one, "ask", "{\"prompt\":\"x\"}"), (&*two, "ask", "{\"prompt\":\"y\"}")];
        let mut answer = if has_asked { text("done") } else { calls(&both) };
        answer.pop();
        let reason = if has_asked { MessageStopReason::Stop } else { MessageStopReason::ToolUse };
        answer.push(E::Done { stop_reason: reason, usage: Some(used(1, 1)) });
        stream::iter(answer).boxed_local()
    });
    let mut config = config(clock, root, vec![Rc::new(tool)]);
    config.rules.budget = Some(Budget { tokens: Some(100_000), ..Budget::default() });
    config
}

#[test]
fn the_budget_has_used_what_the_run_has_used_wherever_a_family_sleeps_or_is_stopped() {
    let clock = Clock::default();
    let mut whole = Stage::new(clock.clone(), family(&clock, 0));
    whole.prompt("go").finish().check();
    let count = whole.events.len();
    assert_eq!((whole.agent.usage().total, spent(&whole.agent)), (44, 44));
    for kill in 1..count {
        for stops in [false, true] {
            let clock = Clock::default();
            let mut first = Stage::new(clock.clone(), family(&clock, kill));
            first.prompt("go");
            while first.events.len() < kill {
                if first.poll_once().is_none() {
                    assert!(clock.advance());
                }
            }
            if stops {
                first.cancel.cancel("enough");
                first.finish();
                assert_eq!(first.agent.usage().total, spent(&first.agent), "stopped after {kill}");
                continue;
            }
            let checkpoint = first.stream.as_mut().unwrap().checkpoint();
            let mut second = Stage::new(clock.clone(), family(&clock, kill));
            second.agent = Agent::restore(family(&clock, kill), &checkpoint).unwrap();
            if second.agent.resumable().is_none() {
                continue;
            }
            second.resume().finish();
            let total = second.agent.usage().total;
            assert_eq!(total, spent(&second.agent), "killed after {kill}");
            assert!((44..=56).contains(&total), "killed after {kill}: {total}");
        }
    }
}

#[test]
fn what_a_dropped_agent_inside_had_reserved_is_free() {
    for way in ["timeout", "steering"] {
        let clock = Clock::default();
        let inner = clock.clone();
        let tool = SubAgent::new("ask", "", move || {
            let mut config = config(&inner, silent(used(10, 0)), Vec::new());
            let max_tokens = Some(200);
            config.rules.stream_options = Rc::new(StreamOptions { max_tokens, ..StreamOptions::default() });
            config
        });
        let given = vec![calls(ASK), says("done", used(1, 1))];
        let mut config = config(&clock, script(given, false), vec![Rc::new(tool)]);
        config.rules.budget = Some(Budget { tokens: Some(250), ..Budget::default() });
        config.rules.timeouts.tool = Some(50);
        let mut stage = Stage::new(clock, config);
        stage.prompt("go").until("tool_execution_start").settle();
        if way == "steering" {
            drop(stage.agent.steer_when("Stop.".into(), SteeringTime::Immediate));
        }
        stage.finish().check();
        assert_eq!(stage.result().stop_reason, RunStopReason::Completed, "{way}: {:?}", stage.lines());
        assert_eq!((stage.agent.usage().total, spent(&stage.agent)), (12, 12), "{way}");
    }
}

#[test]
fn a_person_may_raise_the_budget_around_two_agents_that_ask_at_once() {
    let clock = Clock::default();
    let mut config = family(&clock, 1);
    config.rules.budget = Some(Budget { turns: Some(1), on_exceed: OnExceed::Ask, ..Budget::default() });
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").settle();
    let mut asked = Vec::new();
    for _ in 0..20 {
        let Some(question) = stage.agent.pending_questions().first().cloned() else {
            if stage.is_over() {
                break;
            }
            assert!(stage.clock.advance());
            stage.settle();
            continue;
        };
        assert!(!asked.contains(&question.id));
        let answer = Answer::Raise(Amounts { turns: 1, ..Amounts::default() });
        assert!(stage.agent.resolve(&question.id, answer));
        asked.push(question.id);
        stage.settle();
    }
    stage.finish().check();
    assert_eq!(stage.result().stop_reason, RunStopReason::Completed);
    assert_eq!(asked.len(), 5);
}

#[test]
fn an_estimate_stays_one_when_the_hooks_of_its_attempt_are_cut_by_sleep() {
    let make = |given, hears: bool| {
        let clock = Clock::default();
        let mut config = config(&clock, script(given, true), Vec::new());
        let stages = HookStages { after_inference: true, ..HookStages::default() };
        let hook =
            StagedHook(
                stages,
                move |_: HookCall| async move { if hears { Ok(()) } else { pending().await } },
            );
        config.set_hooks(vec![Rc::new(hook)]);
        (clock, config)
    };
    let cut = vec![
        E::TextStart { index: 0 },
        E::TextDelta { index: 0, delta: "some words that nobody has counted".into() },
        E::Error(ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Server, "it broke") }),
    ];
    let (clock, first) = make(vec![cut], false);
    let mut first = Stage::new(clock.clone(), first);
    first.prompt("go").settle();
    let checkpoint = first.stream.as_mut().unwrap().checkpoint();
    let (_, config) = make(vec![says("done", used(10, 5))], true);
    let mut second = Stage::new(clock, config.clone());
    second.agent = Agent::restore(config, &checkpoint).unwrap();
    second.resume().finish();
    let usage = second.result().usage;
    assert!(usage.total > 15 && usage.estimated, "{usage:?}");
}
