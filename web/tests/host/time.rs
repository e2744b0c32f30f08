//! Clock, ids, tasks and signals of the host.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use futures::future::{Either, select};
use turnwheel::cancel::CancelToken;
use turnwheel::driver::agent_loop;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::ports::Timer;
use turnwheel::scripted;
use turnwheel_web::{Clock, cancel_by, new_context, random, signal_of, spawn, uuid};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::scene::{at, config, js};

#[test]
async fn a_sleep_takes_its_time() {
    let before = Clock.now();
    Clock.sleep(30).await;
    let passed = Clock.now() - before;
    assert!((30..5_000).contains(&passed), "{passed}");
    Clock.sleep(0).await;
    let never = Clock.sleep(u64::MAX);
    assert!(
        matches!(select(never, Clock.sleep(5)).await, Either::Right(_)),
        "a long delay does not fire at once"
    );
}

#[test]
async fn ids_are_uuids_and_differ() {
    let is_uuid = |id: &str| {
        let parts: Vec<usize> = id.split('-').map(str::len).collect();
        let mut digits = id.chars();
        parts == [8, 4, 4, 4, 12]
            && digits.nth(14) == Some('4')
            && matches!(digits.nth(4), Some('8' | '9' | 'a' | 'b'))
    };
    let ids: BTreeSet<String> = (0..100).map(|_| uuid()).collect();
    assert!(ids.len() == 100 && ids.iter().all(|id| is_uuid(id)), "{ids:?}");
    // As on a page that was served over plain HTTP.
    js::<JsValue>("Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true })");
    let ids: BTreeSet<String> = (0..100).map(|_| uuid()).collect();
    js::<JsValue>("delete crypto.randomUUID");
    assert!(ids.len() == 100 && ids.iter().all(|id| is_uuid(id)), "{ids:?}");
    assert!((0..100).map(|_| random()).collect::<BTreeSet<u32>>().len() > 90);
}

#[test]
async fn a_spawned_run_tells_its_events_in_order_and_ends_with_its_result() {
    let run = agent_loop(
        vec!["Hi".into()],
        config(scripted::model([scripted::text("Hello")])),
        new_context(),
        CancelToken::new(),
    );
    let names = Rc::new(RefCell::new(Vec::new()));
    let heard = names.clone();
    let result = spawn(run, move |event| heard.borrow_mut().push(event.name())).await;
    assert_eq!((result.text.as_str(), result.stop_reason), ("Hello", RunStopReason::Completed));
    let expected = [
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
    ];
    assert_eq!(*names.borrow(), expected);
}

#[test]
async fn a_spawned_run_goes_on_without_its_result_and_stops_with_its_token() {
    let cancel = CancelToken::new();
    let run = agent_loop(
        vec!["Hi".into()],
        config(scripted::model([scripted::text("Hello")])),
        new_context(),
        cancel.clone(),
    );
    let ended = Rc::new(RefCell::new(None));
    let seen = ended.clone();
    drop(spawn(run, move |event| match event {
        AgentEvent::MessageStart { .. } => cancel.cancel("enough"),
        AgentEvent::AgentEnd { stop_reason, .. } => *seen.borrow_mut() = Some(stop_reason),
        _ => {}
    }));
    Clock.sleep(10).await;
    assert_eq!(*ended.borrow(), Some(RunStopReason::Aborted));
}

#[test]
async fn signals_and_tokens_follow_each_other() {
    let token = CancelToken::new();
    let signal = signal_of(&token).unwrap();
    assert!(!signal.aborted());
    token.cancel("the reason");
    assert!(signal.aborted());
    assert_eq!(at(&signal.reason(), "message"), "the reason");
    assert!(signal_of(&token).unwrap().aborted(), "also if it was cancelled before");

    let controller: web_sys::AbortController = js("new AbortController()");
    let token = cancel_by(&controller.signal());
    assert!(!token.is_cancelled());
    controller.abort_with_reason(&"the user left".into());
    assert_eq!(token.reason().as_deref(), Some("the user left"));
    assert_eq!(cancel_by(&controller.signal()).reason().as_deref(), Some("the user left"));
}
