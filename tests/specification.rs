//! The specification, sentence by sentence: `tests/data/spec` says of each which tests show it, and this says that they are
//! there; and what was shown by none before is shown here.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that fails here says where"
)]

use std::cell::{Cell, RefCell};
use std::future::ready;
use std::rc::Rc;

use futures::StreamExt;
use rig::clock::Clock;
use rig::host::{
    Port, Stage, answers, asking, brief, calls, config, context, failure, model, quick, spec, stage, text,
    tool,
};
use turnwheel::agent::Agent;
use turnwheel::approval::{ApprovalGate, ToolDecision};
use turnwheel::cancel::CancelToken;
use turnwheel::config::ToolExecutionPolicy;
use turnwheel::driver::{agent_loop, agent_loop_continue};
use turnwheel::error::{AgentError, ErrorKind};
use turnwheel::event::AgentEvent;
use turnwheel::message::AgentMessage;
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, Transform, Verdict};
use turnwheel::ports::HookCall;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolOutcome};

#[path = "source/spec.rs"]
mod check;

#[test]
fn every_row_names_tests_that_are_there() {
    let report = check::check();
    assert!(report.faults.is_empty(), "\n{}\n", report.faults.join("\n"));
    assert_eq!(report.summary, check::told_in_the_docs(), "docs/specification.md counts otherwise");
}

#[test]
fn a_row_that_shows_nothing_is_found() {
    let faults = |table: &str| check::faults_of("x.md", table);
    assert!(faults("| 1 | a | `tests/seeds/data_model.rs::turn_end_reasons` |").is_empty());
    for (row, fault) in [
        ("| 1 | a |  |", "shows nothing"),
        ("| 1 |  | `scenario:text_only` |", "claims nothing"),
        ("|  | a | `scenario:text_only` |", "no line"),
        ("| 1 | a | `tests/seeds/data_model.rs::turn_end_reason` |", "is not there"),
        ("| 1 | a | `tests/seed.rs::turn_end_reasons` |", "is not there"),
        ("| 1 | a | `scenario:text_onl` |", "is not there"),
        ("| 1 | a | `vector:ctx-0` |", "is not there"),
        ("| 1 | a | `package:ctx-0` |", "is not there"),
        ("| 1 | a | `package:str-001` |", "is not there"),
        ("| 1 | a | `tests/js/run/loop.test.mjs: no such title` |", "is not there"),
        ("| 1 | a | differs: `which nobody has written` |", "is not there"),
        ("| 1 | a | differs: `single-threaded` |", "no test"),
        ("| 1 | a | `whatever` |", "nobody understands"),
    ] {
        assert!(faults(row).iter().any(|found| found.contains(fault)), "{row}: {:?}", faults(row));
    }
}

/// What a crate depends on, of those that are no part of what it is for: a list of its own, as Cargo.toml has it.
fn foreign_dependencies(manifest: &str) -> Vec<String> {
    /// Futures and JSON; a validator of schemas and a tracer, for who wants them.
    const OWN: [&str; 5] = ["futures", "serde", "serde_json", "jsonschema", "tracing"];
    let (mut found, mut is_inside) = (Vec::new(), false);
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            is_inside = section.ends_with("dependencies]") && !section.contains("dev-");
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| is_inside && !line.starts_with('#'))
        {
            // What is optional is for hosts that ask for it by a feature.
            let is_asked_for = line.contains("optional = true");
            found.extend(Some(name.to_owned()).filter(|name| !is_asked_for && !OWN.contains(&name.as_str())));
        }
    }
    found
}

#[test]
fn the_crate_depends_on_no_transport_no_terminal_and_no_store() {
    assert_eq!(foreign_dependencies(include_str!("../Cargo.toml")), Vec::<String>::new());
}

#[test]
fn a_dependency_on_a_transport_would_be_found() {
    let manifest = "[dependencies]\nfutures = \"0.3\"\n# reqwest = \"1\"\nhyper = { version = \"1\" }\n\n\
        [target.'cfg(unix)'.dependencies]\nsled = \"1\"\n\n[dev-dependencies]\ntokio = \"1\"\n";
    assert_eq!(foreign_dependencies(manifest), ["hyper", "sled"]);
}

/// Notes, in order.
type Notes = Rc<RefCell<Vec<String>>>;

fn note(notes: &Notes, line: impl Into<String>) {
    notes.borrow_mut().push(line.into());
}

fn lines(messages: &[AgentMessage]) -> String {
    messages.iter().map(brief).collect::<Vec<_>>().join(" | ")
}

#[test]
fn one_turn_in_the_order_of_the_chart() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let seen = notes.clone();
    let asked = model("m", move |request, _| {
        note(&seen, format!("call of {} messages", request.messages.len()));
        futures::stream::iter(text("so")).boxed_local()
    });
    let mut config = config(&clock, asked, Vec::new());
    let (seen, time) = (notes.clone(), clock.clone());
    config.ports.transformer = Some(Rc::new(Port(move |messages: Rc<[AgentMessage]>, _| {
        note(&seen, format!("async {}", lines(&messages)));
        let pause = time.pause(5);
        async move {
            pause.await;
            Ok(Transform::Unchanged)
        }
    })));
    let seen = notes.clone();
    config.rules.transformers.push(Rc::new(move |messages: &[AgentMessage], _: bool| {
        note(&seen, format!("sync {}", messages.len()));
        Ok(Transform::Unchanged)
    }));
    let seen = notes.clone();
    config.rules.pre_turn.push(Rc::new(move |_: &PolicyContext<'_>| {
        note(&seen, "policy");
        Ok(Verdict::Continue)
    }));
    let seen = notes.clone();
    config.rules.convert_to_llm = Some(Rc::new(move |message, _| {
        note(&seen, format!("convert {}", brief(message)));
        Ok(message.as_llm())
    }));
    let seen = notes.clone();
    config.ports.keys = Some(Rc::new(Port(move |_: &str| {
        note(&seen, "key");
        ready(Ok(Some("k".into())))
    })));
    let mut stage = Stage::new(clock, config);
    let seen = notes.clone();
    stage.agent.subscribe(move |event| note(&seen, event.name()));
    drop(stage.agent.steer("this too".into()));
    stage.prompt("go").finish().check();
    let turn = |context: &str, new: &[&str], count: usize| {
        let mut turn = vec!["turn_start".to_owned(), format!("async {context}"), format!("sync {count}")];
        turn.push("policy".to_owned());
        turn.extend(new.iter().map(|message| format!("convert {message}")));
        turn.extend(["key".to_owned(), "message_start".to_owned(), format!("call of {count} messages")]);
        turn.extend(["message_update", "message_end", "turn_end"].map(str::to_owned));
        turn
    };
    let mut wanted = vec!["agent_start".to_owned()];
    wanted.extend(turn("user: go", &["user: go"], 1));
    let context = "user: go | assistant: so | user: this too";
    wanted.extend(turn(context, &["assistant: so", "user: this too"], 3));
    wanted.push("agent_end".to_owned());
    let order = |lines: &[String]| {
        // Whether the message begins before its key is asked for or after it, the chart does not say.
        let (starts, rest): (Vec<_>, Vec<_>) =
            lines.iter().cloned().partition(|line| line == "message_start");
        (starts.len(), rest)
    };
    assert_eq!(order(&notes.borrow()), order(&wanted));
}

#[test]
fn policies_see_the_whole_batch_though_its_first_call_stops_it() {
    let notes = Notes::default();
    let seen = notes.clone();
    let given = vec![calls(&[("a", "t", "{}"), ("b", "t", "{}"), ("c", "t", "{}")])];
    let mut stage = stage(given, vec![quick("t")], |config| {
        config.rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
            note(&seen, call.call_id);
            Ok(match call.call_id {
                "a" => DispatchVerdict::Stop("first".to_owned()),
                "b" => DispatchVerdict::Stop("second".to_owned()),
                _ => DispatchVerdict::Skip("not this".to_owned()),
            })
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["a", "b", "c"]);
    let stopped = "policy stopped tool batch before dispatch: first";
    assert_eq!(stage.history()[2..], ["a", "b", "c"].map(|call| format!("{call}!: {stopped}")));
}

#[test]
fn post_loop_policies_decide_before_follow_up_is_polled() {
    let notes = Notes::default();
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        let seen = notes.clone();
        config.set_message_provider(Rc::new(Port(move |follow_up: bool| {
            note(&seen, if follow_up { "follow-up" } else { "steering" });
            ready(Vec::new())
        })));
        let (seen, again) = (notes.clone(), Cell::new(true));
        config.rules.post_loop.push(Rc::new(move |_: &PolicyContext<'_>| {
            note(&seen, "policy");
            let is_first = again.replace(false);
            Ok(if is_first { Verdict::Inject(vec!["check".into()]) } else { Verdict::Continue })
        }));
    });
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["steering", "policy", "steering", "policy", "follow-up"]);
    assert_eq!(stage.history()[1..], ["assistant: done", "user: check", "assistant: done"]);
}

/// Counts how often it ran in the session that it knows.
fn counting() -> Rc<dyn AgentTool> {
    tool(spec("count"), |call| {
        let before = call.state.get("n").and_then(|n| n.as_u64()).unwrap_or(0);
        call.state.set("n", (before + 1).into());
        ready(ToolOutcome::Completed(AgentToolResult::text(format!("{}", before + 1))))
    })
}

#[test]
fn runs_of_one_configuration_share_nothing() {
    let clock = Clock::default();
    // One call for each question, then an answer.
    let asked = model("m", |request, _| {
        let has_result = request.messages.len() > 1;
        let answer = if has_result { text("so") } else { calls(&[("a", "count", "{}")]) };
        futures::stream::iter(answer).boxed_local()
    });
    let config = config(&clock, asked, vec![counting()]);
    let run = |question: &str| {
        let run =
            agent_loop(vec![AgentMessage::user(question)], config.clone(), context(), CancelToken::new());
        lines(&clock.run(run.finish()).unwrap().messages)
    };
    assert_eq!(run("one"), "user: one | assistant: [a] | a: 1 | assistant: so");
    assert_eq!(run("two"), "user: two | assistant: [a] | a: 1 | assistant: so");
}

#[test]
fn a_run_that_continues_begins_with_the_history_and_ends_with_what_is_new() {
    let clock = Clock::default();
    let go_on = |history: Vec<AgentMessage>| -> Result<Vec<AgentEvent>, AgentError> {
        let asked = model("m", |request, _| {
            futures::stream::iter(text(&format!("after {}", request.messages.len()))).boxed_local()
        });
        let config = config(&clock, asked, Vec::new());
        let run = agent_loop_continue(history, config, context(), CancelToken::new())?;
        Ok(clock.run(run.collect::<Vec<_>>()).unwrap())
    };
    let events = go_on(vec!["one".into(), "two".into()]).unwrap();
    let Some(AgentEvent::AgentEnd { messages, .. }) = events.last() else {
        return assert!(events.is_empty(), "no end");
    };
    assert_eq!(lines(messages), "assistant: after 2");
    let refused = |history| go_on(history).unwrap_err().to_string();
    assert!(refused(Vec::new()).contains("empty message history"));
    assert!(
        refused(vec!["one".into(), messages[0].clone()]).contains("last message is an assistant message")
    );
}

#[test]
fn a_subscriber_may_be_removed_between_two_runs() {
    let mut stage = stage(Vec::new(), Vec::new(), |_| {});
    let heard = [Notes::default(), Notes::default()];
    let [gone, _kept] =
        heard.clone().map(|notes| stage.agent.subscribe(move |event| note(&notes, event.name())));
    stage.prompt("one").finish().check();
    stage.agent.unsubscribe(gone);
    stage.prompt("two").finish().check();
    let runs = heard.map(|notes| notes.borrow().iter().filter(|name| *name == "agent_start").count());
    assert_eq!(runs, [1, 2]);
    // Of an id that is gone already nobody hears.
    stage.agent.unsubscribe(gone);
}

#[test]
fn a_checkpoint_may_be_taken_in_every_hook() {
    let clock = Clock::default();
    let (stages, time) = (Notes::default(), clock.clone());
    let given = vec![calls(&[("a", "t", "{}")]), failure(ErrorKind::Auth)];
    let mut stage = Stage::new(clock.clone(), config(&clock, answers(given), vec![quick("t")]));
    let seen = stages.clone();
    stage.agent.configure(|config| {
        config.set_hooks(vec![Rc::new(Port(move |call: HookCall| {
            note(&seen, call.stage());
            let pause = time.pause(5);
            async move {
                pause.await;
                Ok(())
            }
        }))]);
    });
    stage.prompt("go");
    let mut kept = Vec::new();
    while !stage.settle().is_over() {
        let inside = stages.borrow().last().cloned().unwrap();
        kept.push((inside, stage.stream.as_mut().unwrap().checkpoint()));
        assert!(clock.advance());
    }
    stage.check();
    let wanted = [
        "before_inference",
        "after_inference",
        "before_tool_execution",
        "after_tool_execution",
        "before_inference",
        "after_inference",
        "on_error",
    ];
    assert_eq!(kept.iter().map(|(inside, _)| inside.as_str()).collect::<Vec<_>>(), wanted);
    for (inside, checkpoint) in &kept[..5] {
        let again = config(&clock, answers(Vec::new()), vec![quick("t")]);
        let mut later = Stage::new(clock.clone(), again.clone());
        later.agent = Agent::restore(again, checkpoint).unwrap();
        let was_asked = later.agent.messages().len() > 1;
        later.resume().finish();
        let history = later.history();
        let ends = (history[0].as_str(), history.last().unwrap().as_str());
        assert_eq!(ends, ("user: go", "assistant: done"), "{inside}");
        let results = history.iter().filter(|line| line.starts_with("a: ") || line.starts_with("a!: "));
        assert_eq!(results.count(), usize::from(was_asked), "{inside}: {history:?}");
    }
}

#[test]
fn decisions_in_any_order_leave_the_order_of_execution() {
    for gate in [ApprovalGate::Batch, ApprovalGate::Prefix] {
        let notes = Notes::default();
        let given = vec![calls(&[("a", "t", "{}"), ("b", "t", "{}"), ("c", "t", "{}")])];
        let mut stage = stage(given, vec![asking("t")], |config| {
            config.rules.gate = gate;
            config.rules.tool_execution = ToolExecutionPolicy::Sequential;
        });
        let seen = notes.clone();
        stage.agent.subscribe(move |event| {
            if let AgentEvent::ToolExecutionStart { call_id, .. } = event {
                note(&seen, call_id.as_str());
            }
        });
        stage.prompt("go").settle();
        for (decided, started) in [("c", 0), ("b", 0), ("a", 3)] {
            stage.agent.resolve_tool(decided, ToolDecision::Accept);
            stage.settle();
            assert_eq!(notes.borrow().len(), started, "{gate:?}, after {decided}");
        }
        stage.finish().check();
        assert_eq!(*notes.borrow(), ["a", "b", "c"]);
    }
}
