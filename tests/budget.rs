//! Budgets: of each kind, over attempts, tools, sub-agents and restores.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::cell::Cell;
use std::rc::Rc;

use futures::executor::block_on;
use futures::stream::{self, StreamExt};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::budget::{Amounts, Budget, BudgetScope, OnExceed};
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::{AgentLoopConfig, Model, TurnOptions};
use turnwheel::driver::AgentLoopResult;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, BudgetKind, BudgetState, RunStopReason};
use turnwheel::message::{AgentMessage, MessageStopReason, ToolResultCause, Usage};
use turnwheel::ports::AgentRunContext;
use turnwheel::scripted::Clock;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest, ToolChoice};
use turnwheel::tool::{AgentTool, ToolSpec, tool};

/// What a model was asked.
#[derive(Default)]
struct Asked {
    calls: Cell<u32>,
    last: std::cell::RefCell<Option<ModelRequest>>,
}

/// A model that asks for `work` for ever; each answer uses 100 tokens. It fails before each answer as often as it is told.
fn tireless(asked: &Rc<Asked>, failures: u32) -> Model {
    let asked = asked.clone();
    let left = Cell::new(failures);
    let answer = move |request: ModelRequest, _: CancelToken| {
        let number = asked.calls.get();
        asked.calls.set(number + 1);
        let usage =
            Usage { input: 60, output: 40, total: 100, cost: Some(1_000_000_000), ..Usage::default() };
        let may_call = request.options.tool_choice != Some(ToolChoice::None);
        *asked.last.borrow_mut() = Some(request);
        let mut events = Vec::new();
        if left.get() > 0 {
            left.set(left.get() - 1);
            events.push(E::Usage(usage));
            events.push(E::Error(ErrorInfo::new(ErrorKind::Server, "it failed")));
        } else if may_call {
            events.push(E::ToolCallStart {
                index: 0,
                call_id: format!("c{number}"),
                tool_name: "work".into(),
            });
            events.push(E::ToolCallDelta { index: 0, delta: r#"{"prompt":"x"}"#.into() });
            events.push(E::ToolCallEnd { index: 0, metadata: None });
            events.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: Some(usage) });
        } else {
            events.push(E::TextStart { index: 0 });
            events.push(E::TextDelta { index: 0, delta: "That is what there is.".into() });
            events.push(E::TextEnd { index: 0, signature: None });
            events.push(E::Done { stop_reason: MessageStopReason::Stop, usage: Some(usage) });
        }
        stream::iter(events).boxed_local()
    };
    Model::new("own", "m", Rc::new(answer))
}

fn work() -> Rc<dyn AgentTool> {
    tool(ToolSpec::parse("work", "", "{\"type\":\"object\"}").unwrap(), async |_| "done".to_owned())
}

fn config(asked: &Rc<Asked>, budget: Budget) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(tireless(asked, 0), Rc::new(Clock::default()));
    config.set_tools(vec![work()]).unwrap();
    config.rules.budget = Some(budget);
    config
}

fn who() -> AgentRunContext {
    AgentRunContext::new("r", "s")
}

fn play(config: AgentLoopConfig) -> (AgentLoopResult, Vec<AgentEvent>) {
    let agent = Agent::new(config, Vec::new());
    block_on(async {
        let mut run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.next().await {
            events.push(event);
        }
        (run.result().unwrap().clone(), events)
    })
}

fn told(events: &[AgentEvent]) -> Vec<(BudgetState, BudgetKind, u64, u64)> {
    let mut told = Vec::new();
    for event in events {
        if let AgentEvent::Budget { state, kind, used, limit } = event {
            told.push((*state, *kind, *used, *limit));
        }
    }
    told
}

#[test]
fn tokens_end_a_run_before_they_are_exceeded() {
    let asked = Rc::new(Asked::default());
    let (result, events) = play(config(&asked, Budget { tokens: Some(430), ..Budget::default() }));
    assert_eq!(result.stop_reason, RunStopReason::Budget);
    // A fourth call would have been expected to use 100 for its input, 40 for its answer, and some for the result.
    assert_eq!((asked.calls.get(), result.usage.total), (3, 300));
    let told = told(&events);
    assert_eq!(told.last().unwrap().0, BudgetState::Exceeded);
    assert_eq!(told.first().unwrap().3, 430);
    assert!(matches!(
        &events[events.len() - 2..],
        [AgentEvent::TurnEnd { message: None, .. }, AgentEvent::AgentEnd { .. }]
    ));
}

#[test]
fn listeners_are_warned_once() {
    let asked = Rc::new(Asked::default());
    let (_, events) = play(config(&asked, Budget { turns: Some(10), warn_at: 50, ..Budget::default() }));
    let told = told(&events);
    assert_eq!(
        told,
        [(BudgetState::Warn, BudgetKind::Turns, 5, 10), (BudgetState::Exceeded, BudgetKind::Turns, 10, 10),]
    );
    assert_eq!(asked.calls.get(), 10);
}

#[test]
fn money_and_time_end_a_run() {
    let asked = Rc::new(Asked::default());
    let (result, _) = play(config(&asked, Budget { usd: Some(2_500_000_000), ..Budget::default() }));
    assert_eq!((result.stop_reason, asked.calls.get()), (RunStopReason::Budget, 3));
    assert_eq!(result.usage.cost, Some(3_000_000_000));
    let asked = Rc::new(Asked::default());
    let (result, _) = play(config(&asked, Budget { ms: Some(0), ..Budget::default() }));
    assert_eq!((result.stop_reason, asked.calls.get()), (RunStopReason::Budget, 0));
}

#[test]
fn calls_over_the_budget_do_not_start() {
    let asked = Rc::new(Asked::default());
    let mut config = config(&asked, Budget { tool_calls: Some(2), ..Budget::default() });
    config.rules.max_turns = Some(4);
    let (result, events) = play(config);
    assert_eq!(result.stop_reason, RunStopReason::MaxTurns);
    let causes: Vec<Option<ToolResultCause>> = result
        .messages
        .iter()
        .filter_map(|message| match message {
            AgentMessage::ToolResult(result) => Some(result.cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [None, None, Some(ToolResultCause::Budget), Some(ToolResultCause::Budget)]);
    let started =
        events.iter().filter(|event| matches!(event, AgentEvent::ToolExecutionStart { .. })).count();
    assert_eq!(started, 2);
    assert_eq!(told(&events).last().unwrap().1, BudgetKind::ToolCalls);
}

#[test]
fn a_run_may_wrap_up() {
    let asked = Rc::new(Asked::default());
    let budget = Budget { turns: Some(2), on_exceed: OnExceed::WrapUp, ..Budget::default() };
    let (result, _) = play(config(&asked, budget));
    assert_eq!(result.stop_reason, RunStopReason::Budget);
    assert_eq!(result.text, "That is what there is.");
    assert_eq!(asked.calls.get(), 3);
    let last = asked.last.take().unwrap();
    assert!(last.system_prompt.contains("The budget of this run is used up."));
    assert_eq!(last.options.max_tokens, Some(1_024));
    // The line is not in the history.
    assert!(!format!("{:?}", result.messages).contains("used up"));
}

#[test]
fn attempts_that_fail_are_paid_for() {
    let asked = Rc::new(Asked::default());
    let mut config = config(&asked, Budget { tokens: Some(150), ..Budget::default() });
    config.set_models(vec![tireless(&asked, 5)]);
    let (result, events) = play(config);
    assert_eq!(result.stop_reason, RunStopReason::Error);
    assert_eq!(asked.calls.get(), 2);
    assert_eq!(told(&events).last().unwrap().0, BudgetState::Exceeded);
}

#[test]
fn a_budget_may_be_for_all_runs_of_an_agent_and_survives_restores() {
    for scope in [BudgetScope::Run, BudgetScope::Agent] {
        let asked = Rc::new(Asked::default());
        let budget = Budget { turns: Some(3), scope, ..Budget::default() };
        let agent = Agent::new(config(&asked, budget), Vec::new());
        let run = |agent: &Agent| {
            block_on(agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap().finish())
        };
        assert_eq!(run(&agent).turns, 3);
        let again = Agent::restore(config(&asked, budget), &agent.checkpoint(0)).unwrap();
        assert_eq!(run(&again).turns, if scope == BudgetScope::Run { 3 } else { 0 });
        again.reset();
        assert_eq!(run(&again).turns, 3);
    }
}

#[test]
fn what_was_used_is_in_a_checkpoint() {
    let asked = Rc::new(Asked::default());
    let budget = Budget { turns: Some(4), tool_calls: Some(3), ..Budget::default() };
    for kill in 0..40 {
        asked.calls.set(0);
        let agent = Agent::new(config(&asked, budget), Vec::new());
        let (checkpoint, is_over) = block_on(async {
            let mut run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
            let mut warned = 0;
            for _ in 0..kill {
                warned += usize::from(matches!(run.next().await, Some(AgentEvent::Budget { .. })));
            }
            assert!(warned <= 4, "{warned}");
            (run.checkpoint().encode(), run.result().is_some())
        });
        if is_over {
            return;
        }
        let envelope = CheckpointEnvelopeV1::decode(checkpoint.as_bytes()).unwrap();
        let again = Agent::restore(config(&asked, budget), &envelope).unwrap();
        let result = block_on(again.continue_run(who(), CancelToken::new()).unwrap().finish());
        assert_eq!((result.stop_reason, result.turns), (RunStopReason::Budget, 4), "killed after {kill}");
    }
    panic!("it never ended");
}

#[test]
fn sub_agents_use_the_budget_of_the_agent_around_them() {
    let asked = Rc::new(Asked::default());
    let inner = Rc::new(Asked::default());
    let mut outer = config(&asked, Budget { tokens: Some(1_000), ..Budget::default() });
    let child = {
        let inner = inner.clone();
        SubAgent::new("work", "", move || {
            let mut config = AgentLoopConfig::new(tireless(&inner, 0), Rc::new(Clock::default()));
            config.set_tools(vec![work()]).unwrap();
            config
        })
    };
    outer.set_tools(vec![Rc::new(child)]).unwrap();
    let (result, events) = play(outer);
    assert_eq!(result.stop_reason, RunStopReason::Budget);
    assert!(result.usage.total <= 1_000, "{:?}", result.usage);
    assert!(inner.calls.get() > 3);
    assert_eq!(result.usage.total, u64::from(100 * (asked.calls.get() + inner.calls.get())), "counted once");
    let stopped = events.iter().any(|event| match event {
        AgentEvent::ToolExecutionEnd { result, .. } => result.text().contains("budget"),
        _ => false,
    });
    assert!(stopped, "the model is told why");
}

#[test]
fn the_last_call_of_a_sub_agent_is_tried_again_only_within_the_budget_around_it() {
    // The agent inside has no turn left, so its first call is its last one: that fails, and another attempt would pass what
    // the agent around it allows.
    for (tokens, attempts) in [(202, 1), (600, 2)] {
        let (asked, inner) = (Rc::new(Asked::default()), Rc::new(Asked::default()));
        let mut outer = config(&asked, Budget { tokens: Some(tokens), ..Budget::default() });
        let child = {
            let inner = inner.clone();
            SubAgent::new("work", "", move || {
                let budget = Budget { turns: Some(0), on_exceed: OnExceed::WrapUp, ..Budget::default() };
                let mut config = config(&inner, budget);
                config.set_models(vec![tireless(&inner, 1)]);
                config
            })
        };
        outer.set_tools(vec![Rc::new(child)]).unwrap();
        outer.rules.max_turns = Some(1);
        let (result, _) = play(outer);
        assert_eq!(inner.calls.get(), attempts, "{tokens}");
        assert!(result.usage.total <= tokens, "{:?}", result.usage);
    }
}

#[test]
fn calls_over_the_budget_do_not_hold_up_those_behind_them() {
    let answer = |_: ModelRequest, _: CancelToken| {
        let mut events = Vec::new();
        for index in 0..3 {
            events.push(E::ToolCallStart { index, call_id: format!("c{index}"), tool_name: "work".into() });
            events.push(E::ToolCallEnd { index, metadata: None });
        }
        events.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: None });
        stream::iter(events).boxed_local()
    };
    let model = Model::new("own", "m", Rc::new(answer));
    let mut config = AgentLoopConfig::new(model, Rc::new(Clock::default()));
    config.set_tools(vec![work()]).unwrap();
    config.rules.budget = Some(Budget { tool_calls: Some(1), ..Budget::default() });
    config.rules.max_turns = Some(1);
    config.rules.tool_execution = turnwheel::config::ToolExecutionPolicy::Sequential;
    config.rules.gate = turnwheel::approval::ApprovalGate::Prefix;
    let (result, _) = play(config);
    assert_eq!(result.stop_reason, RunStopReason::MaxTurns);
    let causes: Vec<_> = result
        .messages
        .iter()
        .filter_map(|message| match message {
            AgentMessage::ToolResult(result) => Some(result.cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, [None, Some(ToolResultCause::Budget), Some(ToolResultCause::Budget)]);
}

#[test]
fn a_run_may_have_a_budget_of_its_own_which_its_checkpoint_keeps() {
    let asked = Rc::new(Asked::default());
    let agents = Budget { turns: Some(5), scope: BudgetScope::Agent, ..Budget::default() };
    let own = TurnOptions {
        // Whatever the scope says, it is the run's.
        budget: Some(Budget { turns: Some(2), scope: BudgetScope::Agent, ..Budget::default() }),
        ..TurnOptions::default()
    };
    for kill in 1..12 {
        let agent = Agent::new(config(&asked, agents), Vec::new());
        let run = |agent: &Agent| agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        let mut first = run(&agent).with_options(own.clone()).unwrap();
        let envelope = block_on(async {
            for _ in 0..kill {
                first.next().await;
            }
            first.checkpoint()
        });
        let again = Agent::restore(config(&asked, agents), &envelope).unwrap();
        let goes_on = again.continue_run(who(), CancelToken::new()).unwrap();
        assert_eq!(block_on(goes_on.finish()).turns, 2, "killed after {kill}");
        // The next run has what is left of the agent's.
        assert_eq!(block_on(run(&again).finish()).turns, 3, "killed after {kill}");
    }
}

#[test]
fn what_raises_another_limit_answers_nothing() {
    let asked = Rc::new(Asked::default());
    let budget = Budget { tokens: Some(250), on_exceed: OnExceed::Ask, ..Budget::default() };
    let agent = Agent::new(config(&asked, budget), Vec::new());
    let (mut answers, mut refused) = (0, Vec::new());
    let result = block_on(async {
        let mut run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
        while let Some(event) = run.next().await {
            match event {
                AgentEvent::QuestionAsked { question } => {
                    answers += 1;
                    let turns = Amounts { turns: 5, ..Amounts::default() };
                    assert!(!agent.resolve(&question.id, Answer::Raise(turns)));
                    // It is still open.
                    let tokens = Amounts { tokens: 100, ..Amounts::default() };
                    let answer = if answers == 1 {
                        Answer::Raise(tokens)
                    } else {
                        ToolDecision::Reject { reason: None }.into()
                    };
                    assert!(agent.resolve(&question.id, answer));
                }
                AgentEvent::CommandRefused { reason, .. } => refused.push(reason),
                _ => {}
            }
        }
        run.result().unwrap().clone()
    });
    assert_eq!((result.stop_reason, result.usage.total, answers), (RunStopReason::Budget, 300, 2));
    assert_eq!(refused[0], "the question is about `tokens`, which this raises by nothing");
}
