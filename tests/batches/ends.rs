//! Batches that end the run: hand-over, abort, policies, and the state that they leave.

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, asking, calls, config, deaf, quick, spec, stage, text, tool};
use turnwheel::approval::{ApprovalGate, ToolDecision};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PostTurn, Verdict};
use turnwheel::stream::AssistantMessageEvent as E;
use turnwheel::tool::{AgentToolResult, ToolContext, ToolOutcome, Transfer};

use super::kit::{ABORTED, batch, raw, three, timed_stage};

#[test]
fn a_hand_over_ends_the_run_and_cancels_the_siblings() {
    let hands_over = tool(spec("hand"), |_| {
        let transfer = Some(Transfer { to: "billing".to_owned(), reason: Some("money".to_owned()) });
        ready(ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() }))
    });
    let mut stage = stage(
        vec![calls(&[("a", "deaf", "{}"), ("b", "hand", "{}")])],
        vec![deaf("deaf"), hands_over],
        |_| {},
    );
    drop(stage.agent.follow_up("more".into()));
    stage.prompt("go").finish().check();
    assert_eq!(
        batch(&stage)[2..],
        [
            "b: Transfer to billing initiated.",
            "a!: tool call cancelled: transfer initiated",
            "transfer to billing"
        ]
    );
    assert_eq!(stage.lines()[stage.lines().len() - 2..], ["turn ends transfer", "run ends transfer"]);
}

#[test]
fn a_hand_over_in_a_circle_or_down_a_chain_that_is_too_long_is_refused() {
    for (chain, to) in [(vec!["front"], "front"), (vec![], "me"), (vec!["1", "2", "3", "4"], "next")] {
        let hands_over = tool(spec("hand"), move |_| {
            let transfer = Some(Transfer { to: to.to_owned(), reason: None });
            ready(ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() }))
        });
        let mut stage = stage(vec![calls(&[("a", "hand", "{}")])], vec![hands_over], |config| {
            config.rules.agent_name = "me".into();
            config.rules.transfer_chain = chain.into_iter().map(str::to_owned).collect();
        });
        stage.prompt("go").finish().check();
        assert!(stage.history()[2].starts_with("a!: transfer refused"), "{}", stage.history()[2]);
        assert_eq!(stage.lines().last().unwrap(), "run ends completed");
    }
}

#[test]
fn changes_of_the_state_are_told_once_a_turn_right_before_its_end() {
    let clock = Clock::default();
    let writes = tool(spec("t"), |context: ToolContext| {
        let n = context.state.get("n").and_then(|n| n.as_u64()).unwrap_or(0) + 1;
        context.state.set("n", n.into());
        context.state.delete("old");
        ready(ToolOutcome::Completed(AgentToolResult::text("ok")))
    });
    let mut config = config(&clock, answers(vec![three("t"), calls(&[("d", "t", "{}")])]), vec![writes]);
    config.rules.session_state.insert("old", true.into());
    config.rules.session_state.insert("n", 5_u64.into());
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    let changes: Vec<String> = stage.lines().into_iter().filter(|line| line.starts_with("state")).collect();
    assert_eq!(changes, ["state {\"n\":8,\"old\":null}", "state {\"n\":9}"]);
}

#[test]
fn an_abort_in_a_batch_marks_its_message_in_the_history_and_at_the_end_of_the_turn() {
    let mut stage = timed_stage(&[("a", "quick", "{}"), ("b", "deaf", "{}")], |_| {});
    stage.prompt("go").until("tool_execution_end");
    stage.cancel.cancel("the user left");
    stage.finish().check();
    assert_eq!(
        stage.history()[1..],
        ["assistant: [a b] (aborted)", "a: quick is done", &format!("b!: {ABORTED}")]
    );
    assert_eq!(stage.answer(1).error.as_ref().unwrap().message, "the user left");
    assert_eq!(
        stage.end().0,
        ["user: go", "assistant: [a b] (aborted)", "a: quick is done", &format!("b!: {ABORTED}")]
    );
}

#[test]
fn an_abort_between_turns_shows_the_turn_that_was_due() {
    let mut stage = stage(vec![calls(&[("a", "t", "{}")])], vec![quick("t")], |config| {
        let polls = Cell::new(0);
        config.set_message_provider(Rc::new(Port(move |_| {
            polls.set(polls.get() + 1);
            let silent = polls.get() == 2;
            async move {
                if silent {
                    pending::<()>().await;
                }
                Vec::new()
            }
        })));
    });
    stage.prompt("go").settle();
    stage.cancel.cancel("stop");
    stage.finish().check();
    assert_eq!(
        stage.lines()[6..],
        [
            "turn ends tools_executed",
            "turn 1",
            "assistant:  (aborted)",
            "turn ends aborted",
            "run ends aborted: stop"
        ]
    );
}

#[test]
fn what_a_policy_injected_is_kept_when_the_run_is_stopped_before_its_turn() {
    let mut stage = stage(vec![text("hi")], Vec::new(), |config| {
        let judge = |_: &PostTurn<'_>| Ok(Verdict::Inject(vec!["a note".into()]));
        config.rules.post_turn.push(Rc::new(judge));
        config.set_message_provider(Rc::new(Port(|_| pending())));
    });
    stage.prompt("go").settle();
    stage.cancel.cancel("stop");
    stage.finish().check();
    assert_eq!(stage.history()[2..], ["user: a note", "assistant:  (aborted)"]);
}

#[test]
fn what_policies_injected_about_a_call_goes_with_it_when_a_later_one_skips_it() {
    let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
        let policies = &mut config.rules.pre_dispatch;
        policies.push(Rc::new(|call: &mut DispatchCall<'_>| {
            Ok(DispatchVerdict::Inject(vec![format!("about {}", call.call_id).as_str().into()]))
        }));
        policies.push(Rc::new(|call: &mut DispatchCall<'_>| {
            let skip = call.call_id == "b";
            Ok(if skip { DispatchVerdict::Skip("no".to_owned()) } else { DispatchVerdict::Continue })
        }));
    });
    stage.prompt("go").finish().check();
    let results = ["a: t is done", "b!: no", "c: t is done", "user: about a", "user: about c"];
    assert_eq!(stage.history()[2..7], results);
}

#[test]
fn a_stop_before_the_calls_drops_what_policies_injected_and_gives_every_call_its_result() {
    let mut stage = stage(vec![three("t")], vec![quick("t")], |config| {
        config.rules.pre_dispatch.push(Rc::new(|call: &mut DispatchCall<'_>| {
            Ok(match call.call_id {
                "c" => DispatchVerdict::Stop("enough".to_owned()),
                id => DispatchVerdict::Inject(vec![format!("about {id}").as_str().into()]),
            })
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("tool_execution_start"), 0);
    assert_eq!(stage.lines().last().unwrap(), "run ends policy_stop");
    let history = stage.history();
    assert_eq!(history.len(), 5, "{history:?}");
    assert!(history[2..].iter().all(|result| result.contains("enough")), "{history:?}");
}

#[test]
fn policies_see_the_session_state_as_it_was_when_the_batch_began() {
    let seen: Rc<RefCell<Vec<String>>> = Rc::default();
    let notes = seen.clone();
    let writes = tool(spec("writes"), |context: ToolContext| {
        context.state.set("k", turnwheel::json::Value::from("late"));
        ready(ToolOutcome::Completed(AgentToolResult::text("written")))
    });
    let calls = calls(&[("a", "writes", "{}"), ("b", "asks", "{}")]);
    let mut stage = stage(vec![calls], vec![writes, asking("asks")], |config| {
        config.rules.gate = ApprovalGate::Prefix;
        config.rules.session_state.insert("old", true.into());
        config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
            let has = |key| call.state.get(key).is_some();
            notes.borrow_mut().push(format!("{} {} {}", call.call_id, has("old"), has("k")));
            Ok(DispatchVerdict::Continue)
        }));
    });
    stage.prompt("go").settle();
    stage.agent.resolve_tool("b", ToolDecision::AcceptWith(raw("{\"n\":1}")));
    stage.finish().check();
    assert_eq!(*seen.borrow(), ["a true false", "b true false", "b true false"]);
}

#[test]
fn content_of_the_answer_decides_not_its_stop_reason() {
    let mut answer = calls(&[("a", "t", "{}")]);
    answer.pop();
    answer.push(E::Done { stop_reason: turnwheel::message::MessageStopReason::Stop, usage: None });
    let mut without = text("I would use a tool");
    without.pop();
    without.push(E::Done { stop_reason: turnwheel::message::MessageStopReason::ToolUse, usage: None });
    let mut stage = stage(vec![answer, without], vec![quick("t")], |_| {});
    stage.prompt("go").finish().check();
    assert_eq!(stage.history()[2..], ["a: t is done", "assistant: I would use a tool"]);
}
