//! Ends in error, and the hooks that hear of them.

use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, answers, calls, config, model, quick, stage};
use turnwheel::message::AgentMessage;
use turnwheel::ports::HookCall;

use super::kit::{Notes, crash};

#[test]
fn every_error_end_is_announced_and_told_to_the_error_hook() {
    type Change = fn(&mut turnwheel::config::AgentLoopConfig);
    let broken: [(&str, Change); 5] = [
        ("the context transformer failed: crash", |config| {
            config.rules.transformers.push(Rc::new(|_: &[AgentMessage], _: bool| crash()));
        }),
        ("convert_to_llm failed: crash", |config| {
            config.rules.convert_to_llm = Some(Rc::new(|_, _| crash()))
        }),
        ("the dynamic system prompt failed: crash", |config| {
            config.rules.dynamic_system_prompt = Some(Rc::new(|_| crash()));
        }),
        ("the key could not be had: crash", |config| {
            config.ports.keys = Some(Rc::new(Port(|_: &str| -> std::future::Ready<_> { crash() })));
        }),
        ("crash", |config| config.set_models(vec![model("m", |_, _| crash())])),
    ];
    for (end, change) in broken {
        let errors = Notes::default();
        let notes = errors.clone();
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            change(config);
            config.set_hooks(vec![Rc::new(Port(move |call| {
                if let HookCall::OnError { error } = call {
                    notes.borrow_mut().push(error.message);
                }
                ready(Ok(()))
            }))]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.lines().last().unwrap(), &format!("run ends error: {end}"));
        assert_eq!(*errors.borrow(), [end]);
    }
}

#[test]
fn a_failing_hook_ends_the_run_announced_like_any_other_end() {
    for stage_name in ["before_inference", "after_inference", "before_tool_execution", "after_tool_execution"]
    {
        for panics in [true, false] {
            let mut stage =
                stage(vec![calls(&[("a", "t", "{}"), ("b", "t", "{}")])], vec![quick("t")], |config| {
                    config.set_hooks(vec![Rc::new(Port(move |call: HookCall| {
                        let due = call.stage() == stage_name;
                        async move {
                            match (due, panics) {
                                (true, true) => crash(),
                                (true, false) => Err("crash".to_owned()),
                                _ => Ok(()),
                            }
                        }
                    }))]);
                });
            stage.prompt("go").finish().check();
            assert_eq!(stage.lines().last().unwrap(), "run ends error: a hook failed: crash", "{stage_name}");
        }
    }
}

#[test]
fn hooks_are_told_in_the_order_of_their_registration_one_after_the_other() {
    let notes = Notes::default();
    let clock = Clock::default();
    let mut config = config(&clock, answers(vec![calls(&[("a", "t", "{}")])]), vec![quick("t")]);
    let hook = |name: &'static str| {
        let (notes, clock) = (notes.clone(), clock.clone());
        Port(move |call: HookCall| {
            let (notes, pause) = (notes.clone(), clock.pause(5));
            async move {
                pause.await;
                notes.borrow_mut().push(format!("{name} {}", call.stage()));
                Ok(())
            }
        })
    };
    config.set_hooks(vec![Rc::new(hook("one")), Rc::new(hook("two"))]);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    let stages = [
        "before_inference",
        "after_inference",
        "before_tool_execution",
        "after_tool_execution",
        "before_inference",
        "after_inference",
    ];
    let both: Vec<String> =
        stages.iter().flat_map(|stage| ["one", "two"].map(|name| format!("{name} {stage}"))).collect();
    assert_eq!(*notes.borrow(), both);
}
