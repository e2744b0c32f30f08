//! Batches that go on from a checkpoint.

use std::cell::{Cell, RefCell};
use std::future::{poll_fn, ready};
use std::rc::Rc;
use std::task::Poll;

use rig::clock::Clock;
use rig::host::{
    Port, ScriptedAnswer, Stage, StagedHook, answers, asking, calls, config, deaf, quick, spec, stage, tool,
};
use turnwheel::agent::Agent;
use turnwheel::approval::ToolDecision;
use turnwheel::config::ToolExecutionPolicy;
use turnwheel::ports::{ApprovalRequest, HookCall, HookStages};
use turnwheel::tool::{AgentToolResult, ToolOutcome, Transfer};

use super::kit::three;

#[test]
fn who_is_restored_with_an_approver_waits_for_no_command() {
    let mut before = stage(vec![three("asks")], vec![asking("asks")], |_| {});
    before.prompt("go").settle();
    before.agent.resolve_tool("b", ToolDecision::Reject { reason: None });
    before.settle();
    let checkpoint = before.stream.as_mut().unwrap().checkpoint();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let log = asked.clone();
    let mut config = config(&before.clock, answers(Vec::new()), vec![asking("asks")]);
    config.set_approver(Rc::new(Port(move |request: ApprovalRequest| {
        log.borrow_mut().push(request.call_id);
        ready(Ok(ToolDecision::Accept))
    })));
    before.stream = None;
    before.agent = Agent::restore(config, &checkpoint).unwrap();
    before.resume().finish();
    assert_eq!(*asked.borrow(), ["a", "c"]);
    assert_eq!(before.result().text, "done");
}

#[test]
fn a_call_that_cannot_run_waits_for_its_turn_in_a_restored_run_too() {
    let clock = Clock::default();
    let setup = |given: Vec<ScriptedAnswer>, ms: u64| {
        let (mut again, pauses) = (spec("again"), clock.clone());
        again.idempotent = true;
        let again = tool(again, move |_| {
            let pause = pauses.pause(ms);
            async move {
                pause.await;
                ToolOutcome::Completed(AgentToolResult::text("well"))
            }
        });
        let mut config = config(&clock, answers(given), vec![again]);
        config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        config
    };
    let given = vec![calls(&[("a", "again", "{}"), ("b", "ghost", "{}"), ("c", "again", "{}")])];
    let mut stage = Stage::new(clock.clone(), setup(given, 1_000_000));
    stage.prompt("go").until("tool_execution_start");
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    stage.stream = None;
    stage.agent = Agent::restore(setup(Vec::new(), 10), &checkpoint).unwrap();
    stage.resume().finish();
    let lines = stage.lines();
    let place = |start: &str| lines.iter().position(|line| line.starts_with(start)).unwrap();
    assert!(place("a: well") < place("b!: no tool") && place("b!: no tool") < place("c starts"), "{lines:?}");
}

#[test]
fn queues_that_are_cleared_before_a_restored_run_goes_on_are_empty() {
    let mut stage = stage(vec![calls(&[("a", "asks", "{}")])], vec![asking("asks")], |_| {});
    stage.prompt("go").settle();
    drop(stage.agent.follow_up("and then".into()));
    stage.settle();
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    stage.stream = None;
    for is_cleared in [true, false] {
        let config = config(&stage.clock, answers(Vec::new()), vec![asking("asks")]);
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        if is_cleared {
            stage.agent.clear_queues();
        }
        stage.agent.resolve_tool("a", ToolDecision::Accept);
        stage.resume().finish();
        assert_eq!(stage.history().contains(&"user: and then".to_owned()), !is_cleared);
    }
}

#[test]
fn what_was_decided_before_a_checkpoint_is_asked_again() {
    let given = vec![calls(&[("a", "quick", "{}")]), calls(&[("b", "asks", "{}")])];
    let asked = Rc::new(Cell::new(0));
    let tools = || vec![quick("quick"), asking("asks")];
    let mut stage = stage(given, tools(), |_| {});
    let (agent, asks) = (stage.agent.clone(), asked.clone());
    let approver = Rc::new(Port(move |_: ApprovalRequest| {
        asks.set(asks.get() + 1);
        let agent = agent.clone();
        async move {
            // The call is finished already, and that is reported before the decision counts.
            agent.resolve_tool("a", ToolDecision::Accept);
            Ok(ToolDecision::Accept)
        }
    }));
    stage.agent.configure(|config| config.set_approver(approver.clone()));
    stage.prompt("go").until("command_refused");
    let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
    let mut config = config(&stage.clock, answers(Vec::new()), tools());
    config.set_approver(approver);
    stage.finish().check();
    stage.agent = Agent::restore(config, &checkpoint).unwrap();
    stage.resume().finish();
    assert_eq!(stage.result().text, "done");
    assert_eq!(asked.get(), 2);
}

#[test]
fn what_nobody_has_heard_yet_is_in_the_checkpoint() {
    type Act = fn(&Agent);
    let acts: [(&str, Act); 4] = [
        ("steer", |agent| drop(agent.steer("steered".into()))),
        ("follow up", |agent| drop(agent.follow_up("and then".into()))),
        ("clear the queues", Agent::clear_queues),
        ("abort", |agent| agent.abort("enough")),
    ];
    let run_to_end = |stage: &mut Stage| {
        stage.settle();
        for id in ["a", "b"] {
            stage.agent.resolve_tool(id, ToolDecision::Accept);
        }
        stage.finish();
        (stage.history(), stage.result().stop_reason)
    };
    for (name, act) in acts {
        let tools = || vec![asking("asks")];
        let mut stage = stage(vec![calls(&[("a", "asks", "{}"), ("b", "asks", "{}")])], tools(), |_| {});
        stage.prompt("go").settle();
        drop(stage.agent.follow_up("queued before".into()));
        stage.settle();
        act(&stage.agent);
        let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
        let uninterrupted = run_to_end(&mut stage);
        let config = config(&stage.clock, answers(Vec::new()), tools());
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        assert_eq!(run_to_end(stage.resume()), uninterrupted, "{name}");
    }
}

#[test]
fn a_batch_that_ends_the_run_does_so_after_a_checkpoint_too() {
    // The hook of the first call has not returned when the second call ends the run.
    let after = |answer: Poll<Result<(), String>>| {
        let stages = HookStages { after_tool_execution: true, ..HookStages::default() };
        Rc::new(StagedHook(stages, move |_: HookCall| {
            let answer = answer.clone();
            poll_fn(move |_| answer.clone())
        }))
    };
    let hand_over = || {
        let transfer = Some(Transfer { to: "billing".to_owned(), reason: Some("money".to_owned()) });
        ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::text("moving") })
    };
    let outcomes: [fn() -> ToolOutcome; 2] = [hand_over, || ToolOutcome::Cancelled];
    for outcome in outcomes {
        let tools = || vec![quick("quick"), tool(spec("ends"), move |_| ready(outcome())), deaf("deaf")];
        let begin = |answer| {
            let given = calls(&[("a", "quick", "{}"), ("b", "ends", "{}"), ("c", "deaf", "{}")]);
            let mut stage = stage(vec![given], tools(), |config| config.set_hooks(vec![after(answer)]));
            stage.prompt("go");
            stage
        };
        let mut whole = begin(Poll::Ready(Ok(())));
        whole.finish().check();
        let mut stage = begin(Poll::Pending);
        stage.settle();
        assert!(!stage.is_over());
        let checkpoint = stage.stream.as_mut().unwrap().checkpoint();
        let mut config = config(&stage.clock, answers(Vec::new()), tools());
        config.set_hooks(vec![after(Poll::Ready(Ok(())))]);
        stage.agent = Agent::restore(config, &checkpoint).unwrap();
        stage.resume().finish();
        assert_eq!(stage.history(), whole.history());
        let (woken, whole) = (stage.lines(), whole.lines());
        assert_eq!(woken[woken.len() - 2..], whole[whole.len() - 2..]);
    }
}
