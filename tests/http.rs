//! The native model: what it sends, and how it handles every kind of response.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::future::{LocalBoxFuture, pending, ready};
use futures::stream::{self, LocalBoxStream, StreamExt};
use rig::clock::Clock;
use rig::host::{Stage, config};
use turnwheel::error::ErrorKind;
use turnwheel::event::RunStopReason;
use turnwheel::http::{HttpModel, HttpResponse, Transport};
use turnwheel::json::Value;
use turnwheel::ports::KeySource;
use turnwheel::price::Price;
use turnwheel::wires::{HttpRequest, WireOptions, wire};

type Body = LocalBoxStream<'static, Result<Vec<u8>, String>>;
type Answer = Result<HttpResponse, String>;

const ANSWER_STREAM: &str = r#"data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":null}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}

data: [DONE]

"#;

/// Answers one request after the other, and records them.
struct Script {
    asked: RefCell<Vec<HttpRequest>>,
    answers: RefCell<Vec<Answer>>,
}

impl Transport for Script {
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Answer> {
        self.asked.borrow_mut().push(request);
        let mut answers = self.answers.borrow_mut();
        let answer =
            if answers.is_empty() { Err("the script is at its end".to_owned()) } else { answers.remove(0) };
        Box::pin(ready(answer))
    }
}

impl Script {
    fn header(&self, of: usize, name: &str) -> Option<String> {
        let asked = self.asked.borrow();
        let found = asked.get(of)?.headers.iter().find(|(known, _)| known == name)?;
        Some(found.1.clone())
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: Body) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ok(HttpResponse { status, headers, body })
}

fn pieces<const N: usize>(pieces: [Result<&str, &str>; N]) -> Body {
    let pieces = pieces.map(|piece| piece.map(|text| text.as_bytes().to_vec()).map_err(str::to_owned));
    stream::iter(pieces).boxed_local()
}

fn ok_answer() -> Answer {
    response(200, &[], pieces([Ok(ANSWER_STREAM)]))
}

fn model(clock: &Clock, transport: Rc<dyn Transport>) -> HttpModel {
    let wire = wire("openai-chat", WireOptions::default()).unwrap();
    HttpModel::new(wire, transport, Rc::new(clock.clone()))
}

/// Runs one prompt against these answers.
fn run<const N: usize>(
    answers: [Answer; N],
    with: impl FnOnce(HttpModel) -> HttpModel,
) -> (Rc<Script>, Stage) {
    let clock = Clock::default();
    let script = Rc::new(Script { asked: RefCell::default(), answers: RefCell::new(answers.into()) });
    let model = with(model(&clock, script.clone())).model("gpt-5-mini");
    let mut stage = Stage::new(clock.clone(), config(&clock, model, Vec::new()));
    stage.prompt("Hi").finish();
    stage.check();
    (script, stage)
}

#[test]
fn a_request_says_the_key_and_the_conversation_and_its_answer_is_priced() {
    let price = Price::read(&Value::parse(r#"{"input":1,"output":3}"#).unwrap()).unwrap();
    let (script, stage) = run([ok_answer()], |model| model.with_key("sk-of-a-file\n").with_price(price));

    let result = stage.result();
    assert_eq!((result.text.as_str(), result.stop_reason), ("Hello.", RunStopReason::Completed));
    assert_eq!(result.usage.cost, Some(16_000_000), "millionths of a millionth: 10 tokens at 1, 2 at 3");
    assert_eq!(script.header(0, "authorization").as_deref(), Some("Bearer sk-of-a-file"));
    let asked = script.asked.borrow();
    let [request] = asked.as_slice() else { panic!("one request") };
    assert_eq!(request.url, "https://api.openai.com/v1/chat/completions");
    let body = String::from_utf8_lossy(&request.body);
    assert!(body.contains(r#""model":"gpt-5-mini""#) && body.contains(r#""prompt_cache_key":""#), "{body}");
}

#[test]
fn the_key_of_a_source_goes_before_the_models_own() {
    struct Vault;
    impl KeySource for Vault {
        fn key(&self, _: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
            Box::pin(ready(Ok(Some("sk-of-the-vault".into()))))
        }
    }
    let clock = Clock::default();
    let script = Rc::new(Script { asked: RefCell::default(), answers: RefCell::new(vec![ok_answer()]) });
    let mut config =
        config(&clock, model(&clock, script.clone()).with_key("sk-own").model("gpt-5-mini"), Vec::new());
    config.ports.keys = Some(Rc::new(Vault));
    Stage::new(clock, config).prompt("Hi").finish();
    assert_eq!(script.header(0, "authorization").as_deref(), Some("Bearer sk-of-the-vault"));
}

#[test]
fn an_error_answer_is_read_with_its_headers_and_tried_again_when_they_say() {
    let refused = response(
        429,
        &[("Retry-After", "7")],
        pieces([Ok(r#"{"error":{"message":"slow "#), Ok(r#"down"}}"#)]),
    );
    let (script, stage) = run([refused, ok_answer()], |model| model);
    assert_eq!((stage.result().text.as_str(), script.asked.borrow().len()), ("Hello.", 2));
    assert!((7_000..9_000).contains(&stage.clock.elapsed()), "{}", stage.clock.elapsed());
}

#[test]
fn no_error_repeats_the_key() {
    let body =
        r#"{"error":{"message":"Incorrect key: sk-secret-1","type":"no sk-secret-1","code":"sk-secret-1"}}"#;
    let refused = [response(401, &[], pieces([Ok(body)]))];
    let unsent = [(); 9].map(|()| Err("cannot send sk-secret-1".to_owned()));
    let with_key = |model: HttpModel| model.with_key("sk-secret-1");
    for (_, stage) in [run(refused, with_key), run(unsent, with_key)] {
        let error = stage.result().error.unwrap();
        assert!(error.to_string().contains("[key]"), "{error}");
        assert!(!format!("{error:?} {:?}", stage.events).contains("sk-secret-1"));
    }
}

#[test]
fn an_error_answer_that_never_ends_is_read_no_further_than_its_words() {
    let endless = || stream::repeat_with(|| Ok(b"x".repeat(10_000))).boxed_local();
    let (_, stage) = run([(); 9].map(|()| response(500, &[], endless())), |model| model);
    assert_eq!(stage.result().error.unwrap().code(), ErrorKind::Server);
    let cut =
        || pieces([Ok(r#"{"error":{"code":"insufficient_quota","message":"m"}}"#), Err("cut"), Ok("x")]);
    let (_, stage) = run([response(500, &[], cut())], |model| model);
    assert_eq!(stage.result().error.unwrap().code(), ErrorKind::Throttled);
}

#[test]
fn an_answer_that_is_cut_or_never_came_is_the_network_and_asked_for_again() {
    let cut = response(
        200,
        &[],
        pieces([Ok("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n"), Err("reset")]),
    );
    for first in [cut, Err("no such host".to_owned())] {
        let (script, stage) = run([first, ok_answer()], |model| model);
        assert_eq!((stage.result().text.as_str(), script.asked.borrow().len()), ("Hello.", 2));
    }
    // No retry helps: the error of the last attempt is reported.
    let (_, stage) = run([], |model| model);
    let error = stage.result().error.unwrap();
    assert_eq!(error.info().code, ErrorKind::Network);
    assert!(error.to_string().contains("no answer came: the script is at its end"), "{error}");
}

/// A body that records when it is dropped.
struct Held(Rc<Cell<bool>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

fn held(first: &'static str, dropped: &Rc<Cell<bool>>) -> Answer {
    let held = Held(dropped.clone());
    let rest = stream::once(async move {
        pending::<()>().await;
        drop(held);
        Ok(Vec::new())
    });
    response(200, &[], stream::iter([Ok(first.as_bytes().to_vec())]).chain(rest).boxed_local())
}

#[test]
fn what_follows_the_end_of_an_answer_is_not_waited_for() {
    let dropped = Rc::new(Cell::new(false));
    let (_, stage) = run([held(ANSWER_STREAM, &dropped)], |model| model);
    assert_eq!(stage.result().text, "Hello.");
    assert!(dropped.get(), "nobody reads it any more");
}

#[test]
fn an_abort_lets_go_of_the_answer() {
    let clock = Clock::default();
    let dropped = Rc::new(Cell::new(false));
    let answer = held("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n", &dropped);
    let script = Rc::new(Script { asked: RefCell::default(), answers: RefCell::new(vec![answer]) });
    let mut stage =
        Stage::new(clock.clone(), config(&clock, model(&clock, script).model("gpt-5-mini"), Vec::new()));
    stage.prompt("Hi").until("message_update");
    assert!(!dropped.get());
    stage.cancel.cancel("enough");
    stage.finish();
    assert_eq!((stage.result().text.as_str(), stage.result().stop_reason), ("Hel", RunStopReason::Aborted));
    assert!(dropped.get());
}

#[test]
fn a_comment_is_a_sign_of_life() {
    let clock = Clock::default();
    let waits = clock.clone();
    let comments = stream::iter(0..5).then(move |_| {
        let pause = waits.pause(800);
        async move {
            pause.await;
            Ok(b": still there\n\n".to_vec())
        }
    });
    let body = comments.chain(pieces([Ok(ANSWER_STREAM)])).boxed_local();
    let script =
        Rc::new(Script { asked: RefCell::default(), answers: RefCell::new(vec![response(200, &[], body)]) });
    let mut config = config(&clock, model(&clock, script.clone()).model("gpt-5-mini"), Vec::new());
    config.rules.timeouts.chunk = Some(1_000);
    let mut stage = Stage::new(clock, config);
    stage.prompt("Hi").finish();
    assert_eq!((stage.result().text.as_str(), script.asked.borrow().len()), ("Hello.", 1));
}
