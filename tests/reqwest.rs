//! The HTTP client of the feature `reqwest`, against a server on this machine that is written byte by byte.

#![cfg(feature = "reqwest")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a panic here is a test that fails")]

use std::io::{ErrorKind as IoErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use futures::StreamExt;
use futures::executor::block_on;
use turnwheel::error::{AgentError, ErrorInfo, ErrorKind};
use turnwheel::reqwest::Client;
use turnwheel::retry::RetryConfig;
use turnwheel::wires::{WireOptions, wire};
use turnwheel::{AgentLoopConfig, AgentRunContext, AgentStream, CancelToken, agent_loop};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

fn piece(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// A server that plays `answer` on each connection, after it has read the request. Returns its address, and the requests.
fn serve(answer: impl Fn(&mut TcpStream) + Send + 'static) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let (seen, requests) = channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let request = read_request(&mut connection);
            if seen.send(request).is_err() {
                return;
            }
            answer(&mut connection);
        }
    });
    (address, requests)
}

/// Reads the head of a request, and a body as long as it says.
fn read_request(connection: &mut TcpStream) -> String {
    let (mut request, mut buffer) = (String::new(), [0; 4096]);
    loop {
        let count = connection.read(&mut buffer).unwrap_or(0);
        request.push_str(&String::from_utf8_lossy(buffer.get(..count).unwrap_or_default()));
        let Some((head, body)) = request.split_once("\r\n\r\n") else {
            assert!(count > 0, "the request was cut");
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return request;
        }
    }
}

fn write(connection: &mut TcpStream, text: &str) {
    connection.write_all(text.as_bytes()).unwrap();
}

fn run_with(client: &Client, base_url: &str, key: Option<&str>, cancel: CancelToken) -> AgentStream {
    let options = WireOptions { base_url: base_url.to_owned(), ..WireOptions::default() };
    let model = client.over(wire("openai-chat", options).unwrap());
    let model = match key {
        Some(key) => model.with_key(key),
        None => model,
    };
    let mut config = AgentLoopConfig::new(model.model("any"), client.timer());
    config.rules.retry = Rc::new(RetryConfig { max_attempts: 1, ..RetryConfig::default() });
    agent_loop(vec!["Hi".into()], config, AgentRunContext::random(), cancel)
}

fn run(base_url: &str) -> AgentStream {
    run_with(&Client::new().unwrap(), base_url, Some("sk-no-real-key"), CancelToken::new())
}

/// The error of a run on the executor of `futures`, which knows nothing of tokio.
fn error_of(base_url: &str) -> ErrorInfo {
    let error: AgentError = block_on(run(base_url).finish()).error.unwrap();
    error.info().clone()
}

#[test]
fn an_answer_streams_piece_by_piece() {
    let (goes, go) = channel::<()>();
    let (address, requests) = serve(move |connection| {
        write(connection, &[HEAD, &piece("one ")].concat());
        // The rest only after the first piece was read.
        go.recv().unwrap();
        write(connection, &[&piece("two"), END].concat());
    });
    let mut run = run(&address);
    let text = block_on(async {
        let mut texts = Vec::new();
        while let Some(event) = run.next().await {
            if let Some(text) = event.added_text() {
                texts.push(text.to_owned());
                let _ = goes.send(());
            }
        }
        texts
    });
    assert_eq!(text, ["one ", "two"]);
    let request = requests.recv().unwrap();
    assert!(request.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer sk-no-real-key\r\n"), "{request}");
    assert!(request.contains(r#""content":"Hi""#), "{request}");
}

#[test]
fn an_abort_closes_the_connection() {
    let (closes, closed) = channel();
    let (address, _requests) = serve(move |connection| {
        write(connection, &[HEAD, &piece("one")].concat());
        let end = connection.read(&mut [0; 16]).map_err(|error| error.kind());
        closes.send(matches!(end, Ok(0) | Err(IoErrorKind::ConnectionReset))).unwrap();
    });
    let cancel = CancelToken::new();
    let mut run = run_with(&Client::new().unwrap(), &address, None, cancel.clone());
    block_on(async {
        while let Some(event) = run.next().await {
            if event.added_text().is_some() {
                cancel.cancel("enough");
            }
        }
    });
    assert!(closed.recv().unwrap());
    assert_eq!(run.result().unwrap().error.as_ref().unwrap().code(), ErrorKind::Aborted);
}

#[test]
fn a_run_that_is_dropped_closes_the_connection_before_an_answer_came() {
    let (closes, closed) = channel();
    let (address, requests) = serve(move |connection| {
        closes.send(connection.read(&mut [0; 16]).unwrap_or(0)).unwrap();
    });
    let mut run = run(&address);
    let is_there = thread::spawn(move || requests.recv().map(|_| ()));
    block_on(async {
        // Polled until the request has arrived.
        while !is_there.is_finished() {
            let _ = futures::poll!(StreamExt::next(&mut run));
            thread::yield_now();
        }
    });
    drop(run);
    assert_eq!(closed.recv().unwrap(), 0);
}

#[test]
fn a_refused_connection_never_left() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = error_of(&format!("http://{address}/v1?key=secret"));
    assert_eq!(
        (error.code, error.phase.as_deref(), error.retryable),
        (ErrorKind::Network, Some("connect"), true)
    );
    assert!(error.message.starts_with(&format!("no answer from {address}: ")), "{error:?}");
    assert!(
        error.message.contains("efused") && error.message.ends_with(". Is the server running?"),
        "{error:?}"
    );
    assert!(!error.message.contains("secret"), "{error:?}");
}

#[test]
fn a_name_that_is_none_never_left() {
    let error = error_of("http://no-such-host.invalid/v1");
    assert_eq!((error.code, error.phase.as_deref()), (ErrorKind::Network, Some("connect")));
    assert!(error.message.starts_with("no answer from no-such-host.invalid: "), "{error:?}");
}

#[test]
fn a_connection_that_ends_without_an_answer_may_have_been_heard() {
    let (address, _requests) = serve(|_| {});
    let error = error_of(&address);
    assert_eq!(
        (error.code, error.phase.as_deref(), error.retryable),
        (ErrorKind::Network, Some("model"), true)
    );
    assert!(error.message.starts_with("no answer from 127.0.0.1:"), "{error:?}");
}

#[test]
fn an_answer_that_is_cut_says_so() {
    let head = HEAD.replace("\r\n\r\n", "\r\ncontent-length: 9999\r\n\r\n");
    let (address, _requests) = serve(move |connection| write(connection, &[&head, &*piece("one")].concat()));
    let error = error_of(&address);
    assert_eq!(
        (error.code, error.phase.as_deref(), error.retryable),
        (ErrorKind::Network, Some("model"), true)
    );
    assert!(error.message.starts_with("the answer was cut: "), "{error:?}");
}

#[test]
fn without_a_key_none_is_sent_and_the_server_says_what_it_wants() {
    let body = r#"{"error":{"message":"You didn't provide an API key."}}"#;
    let answer = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (address, requests) = serve(move |connection| write(connection, &answer));
    let run = run_with(&Client::new().unwrap(), &address, None, CancelToken::new());
    let error = block_on(run.finish()).error.unwrap();
    assert_eq!(error.code(), ErrorKind::Auth);
    assert!(error.to_string().contains("You didn't provide an API key."), "{error:?}");
    assert!(!requests.recv().unwrap().contains("authorization"));
}

#[test]
fn a_redirect_is_not_followed() {
    let (elsewhere, others) = serve(|_| {});
    let answer = format!("HTTP/1.1 307 Elsewhere\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    let (address, _requests) = serve(move |connection| write(connection, &answer));
    let error = error_of(&address);
    assert_eq!(error.code, ErrorKind::InvalidRequest);
    assert!(error.message.starts_with(&format!("the server redirects (307) to {elsewhere}")), "{error:?}");
    assert!(others.try_recv().is_err());
}

#[test]
fn an_address_that_is_none_is_misuse() {
    let error = error_of("not an address");
    assert_eq!(
        (error.code, error.phase.as_deref(), error.retryable),
        (ErrorKind::Misuse, Some("connect"), false)
    );
}

#[test]
fn one_client_serves_executors_that_come_and_go() {
    let (address, _requests) = serve(|connection| {
        write(connection, &[HEAD, &piece("Hello."), END].concat());
    });
    let client = Client::new().unwrap();
    let ask = || run_with(&client, &address, None, CancelToken::new()).finish();
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(ask()).text, "Hello.");
    }
    assert_eq!(block_on(ask()).text, "Hello.");
}

#[test]
fn the_clock_is_that_of_the_system() {
    let timer = Client::new().unwrap().timer();
    assert!(timer.now() > 1_600_000_000_000);
    block_on(timer.sleep(1));
}
