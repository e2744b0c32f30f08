//! The next model, and the key of each.

use std::cell::Cell;
use std::future::ready;
use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{Port, Stage, calls, config, failure, native_model, quick, stage, text};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::message::AgentMessage;
use turnwheel::retry::RetryConfig;

use super::kit::{Notes, noting, patient, refused_in_the_middle, with_error};

#[test]
fn every_model_has_its_own_retries_and_the_key_is_asked_once_a_turn_and_provider() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let first = vec![failure(ErrorKind::Network), failure(ErrorKind::Network), failure(ErrorKind::Network)];
    let second = vec![failure(ErrorKind::Throttled), calls(&[("a", "t", "{}")])];
    let mut config = config(&clock, noting("m", &notes, Vec::new()), vec![quick("t")]);
    config.set_models(vec![noting("m", &notes, first), noting("n", &notes, second)]);
    let asked = Notes::default();
    let keys = asked.clone();
    config.ports.keys = Some(Rc::new(Port(move |provider: &str| {
        keys.borrow_mut().push(provider.to_owned());
        ready(Ok(Some(format!("key {}", keys.borrow().len()).into())))
    })));
    patient(&mut config);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(
        *notes.borrow(),
        [
            "m with key 1: user: go",
            "m with key 1: user: go",
            "m with key 1: user: go",
            "n with key 2: user: go",
            "n with key 2: user: go",
            "m with key 3: user: go | assistant: [a] | a: t is done",
        ]
    );
    assert_eq!(*asked.borrow(), ["provider-of-m", "provider-of-n", "provider-of-m"]);
    let answer = stage.answer(1);
    assert_eq!((answer.model.as_str(), answer.provider.as_str()), ("n", "provider-of-n"));
}

#[test]
fn models_of_one_provider_share_its_key() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let first = vec![failure(ErrorKind::Network), failure(ErrorKind::Network), failure(ErrorKind::Network)];
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    let mut second = noting("n", &notes, vec![text("hi")]);
    second.provider = "provider-of-m".into();
    config.set_models(vec![noting("m", &notes, first), second]);
    let asked = Rc::new(Cell::new(0));
    let times = asked.clone();
    config.ports.keys = Some(Rc::new(Port(move |_: &str| {
        times.set(times.get() + 1);
        ready(Ok(Some("key".into())))
    })));
    patient(&mut config);
    Stage::new(clock, config).prompt("go").finish().check();
    assert_eq!(notes.borrow().last().map(String::as_str), Some("n with key: user: go"));
    assert_eq!(asked.get(), 1);
}

#[test]
fn a_permanent_error_does_not_fall_back() {
    let (notes, clock) = (Notes::default(), Clock::default());
    let mut config = config(&clock, noting("m", &notes, Vec::new()), Vec::new());
    let first = noting("m", &notes, vec![failure(ErrorKind::Auth)]);
    config.set_models(vec![first, noting("n", &notes, Vec::new())]);
    let mut stage = Stage::new(clock, config);
    stage.prompt("go").finish().check();
    assert_eq!(*notes.borrow(), ["m: user: go"]);
}

#[test]
fn a_key_that_cannot_be_had_is_an_auth_error() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config.ports.keys = Some(Rc::new(Port(|_: &str| ready(Err("the vault is shut".to_owned())))));
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.lines().last().unwrap(), "run ends error: the key could not be had: the vault is shut");
}

#[test]
fn whatever_was_tried_again_is_asked_of_the_next_model_too() {
    let unknown_error = || with_error(ErrorInfo::new(ErrorKind::Unknown, "odd"));
    let strategies: [Rc<dyn turnwheel::retry::RetryStrategy>; 2] = [
        Rc::new(RetryConfig { retry_unknown: true, max_attempts: 2, ..RetryConfig::default() }),
        Rc::new(EveryError),
    ];
    for retry in strategies {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            config.rules.retry = retry;
            let first = native_model("m", vec![unknown_error(), unknown_error()]);
            config.set_models(vec![first, native_model("spare", vec![text("here")])]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history().last().unwrap(), "assistant: here");
    }
}

#[test]
fn an_error_that_nobody_tried_again_is_not_asked_of_the_next_model() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        let first = native_model("m", vec![failure(ErrorKind::Network), failure(ErrorKind::Auth)]);
        config.set_models(vec![first, native_model("spare", vec![text("here")])]);
    });
    stage.prompt("go").finish().check();
    assert_eq!(stage.count("model_fallback"), 0);
}

#[test]
fn what_another_server_may_do_is_asked_of_the_next_model_without_asking_this_one_again() {
    for kind in [ErrorKind::Server, ErrorKind::Throttled, ErrorKind::Overloaded] {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            let gone = ErrorInfo { retryable: false, ..ErrorInfo::new(kind, "the quota is spent") };
            let first = native_model("m", vec![with_error(gone)]);
            config.set_models(vec![first, native_model("spare", vec![text("here")])]);
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history().last().unwrap(), "assistant: here");
        assert_eq!((stage.count("retry_attempt"), stage.count("model_fallback")), (0, 1));
    }
}

#[test]
fn a_conversation_that_nothing_makes_short_enough_is_told_to_the_next_model() {
    for engine in [None, Some(false)] {
        let mut stage = stage(Vec::new(), Vec::new(), |config| {
            let first = native_model("small", vec![refused_in_the_middle()]);
            let second = native_model("medium", vec![failure(ErrorKind::ContextOverflow)]);
            config.set_models(vec![first, second, native_model("large", vec![text("here")])]);
            config.ports.compaction = engine.map(|_| {
                Rc::new(Port(|_| ready(Err("no".to_owned())))) as Rc<dyn turnwheel::ports::CompactionEngine>
            });
        });
        stage.prompt("go").finish().check();
        assert_eq!(stage.history(), ["user: go", "assistant: here"]);
        assert_eq!((stage.count("message_reset"), stage.count("model_fallback")), (1, 2));
        let messages = stage.agent.messages();
        assert!(matches!(&messages[1], AgentMessage::Assistant(answer) if &*answer.model == "large"));
    }
}

/// Retries every error.
struct EveryError;

impl turnwheel::retry::RetryStrategy for EveryError {
    fn delay(&self, _: &ErrorInfo, attempt: u32, _: u32) -> turnwheel::retry::RetryVerdict {
        use turnwheel::retry::RetryVerdict as V;
        if attempt < 2 { V::Wait(5) } else { V::Stop }
    }
}
