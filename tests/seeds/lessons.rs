//! The loop lessons, and the dispatch system.

use std::cell::{Cell, RefCell};
use std::future::{pending, ready};
use std::rc::Rc;

use futures::FutureExt;
use rig::clock::Clock;
use rig::host::{
    Port, Stage, answers, brief, calls, config, deaf, failure, quick, slow, spec, stage, text, tool,
};
use turnwheel::approval::{ApprovalMode, ToolDecision};
use turnwheel::config::{CacheHints, ToolExecutionPolicy};
use turnwheel::error::ErrorKind;
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, AssistantMessage, ContentBlock, MessageStopReason};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::stream::AssistantMessageEvent as E;
use turnwheel::tool::{AgentToolResult, ApprovalNeed, ToolOutcome};

use super::kit::{Notes, note, noting, noting_tool, shortens, two_calls};

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
    let given = vec![calls(&[("a", "t", "{}"), ("b", "ghost", "{}"), ("c", "t", "{}"), ("d", "t", "{}")])];
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
    assert_eq!((stage.count("turn_start"), stage.count("turn_end"), stage.count("message_start")), (1, 1, 1));
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
    let mut stage = stage(vec![failure(ErrorKind::ContextOverflow), text("fits")], Vec::new(), |config| {
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
            Ok(if once.replace(false) { Verdict::Inject(vec!["check it".into()]) } else { Verdict::Continue })
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
    let given =
        vec![failure(ErrorKind::Throttled), failure(ErrorKind::ContextOverflow), calls(&[("a", "t", "{}")])];
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
    let at_once = |_: turnwheel::ports::ApprovalRequest| -> std::future::Ready<Result<ToolDecision, String>> {
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
    assert_eq!(guarded(Rc::new(Port(at_once))), "a!: tool call `t` was rejected: the approver failed: no ui");
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
