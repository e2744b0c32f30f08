//! What shortens a conversation that is too long, and what stays whole.

use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, calls, config, failure, quick};
use turnwheel::context::{KeepLast, PruneToolResults, Reducers, SlidingWindow};
use turnwheel::error::ErrorKind;
use turnwheel::event::CompactionReport;
use turnwheel::message::AgentMessage;
use turnwheel::policy::{ContextTransformer, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::tool::AgentTool;

use super::kit::{Notes, note, noting, refused_once};

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
    for empty in [Transform::View(Vec::new()), Transform::Replace { messages: Vec::new(), report: None }] {
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
