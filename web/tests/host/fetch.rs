//! Answers over `fetch`.

use futures::future::{Either, select};
use js_sys::Function;
use turnwheel::cancel::CancelToken;
use turnwheel::driver::agent_loop;
use turnwheel::error::ErrorKind;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::ports::Timer;
use turnwheel_web::{Clock, Fetch, new_context};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::scene::{at, chat, config, js, json, play};

/// A `fetch` that records its calls in `seen`, and answers with the chunks: strings are pieces of the body, `null` is
/// an error in mid-body, a missing end leaves it open.
fn server(status: u16, chunks: &str) -> (Fetch, JsValue) {
    let server: JsValue = js(&format!(
        r#"(() => {{
            const seen = {{ cancelled: null }};
            const fetch = async (url, {{ method, headers, body, signal, redirect }}) => {{
                const [key, type] = [headers.get("authorization"), headers.get("content-type")];
                Object.assign(seen, {{ url, method, key, type, redirect, signal, body: JSON.parse(new TextDecoder().decode(body)) }});
                const chunks = {chunks};
                const stream = new ReadableStream({{
                    async pull(controller) {{
                        await new Promise((wake) => setTimeout(wake));
                        if (chunks.length === 0) return new Promise(() => {{}});
                        const chunk = chunks.shift();
                        if (chunk === null) controller.error(new TypeError("the line went dead"));
                        else if (chunk === "END") controller.close();
                        else controller.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk);
                    }},
                    cancel(reason) {{ seen.cancelled = String(reason); }},
                }}, {{ highWaterMark: 0 }});
                return new Response(stream, {{ status: {status}, headers: {{ "retry-after": "7" }} }});
            }};
            return {{ seen, fetch }};
        }})()"#
    ));
    (Fetch::with(at(&server, "fetch").unchecked_into()), at(&server, "seen"))
}

fn piece(text: &str) -> String {
    format!(r#"'data: {{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}\\n\\n'"#)
}

/// An answer of two pieces, the second one cut in the middle of a character.
fn hello() -> String {
    let end = r#"'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\\n\\ndata: [DONE]\\n\\n', "END""#;
    let split = r#"...(() => { const bytes = new TextEncoder().encode('data: {"choices":[{"index":0,"delta":{"content":"Grüße"}}]}\\n\\n'); const at = bytes.indexOf(0xc3) + 1; return [bytes.slice(0, at), bytes.slice(at)]; })()"#;
    format!("[{}, {split}, {end}]", piece("Hello, ")).replace("\\\\n", "\\n")
}

fn open() -> String {
    format!("[{}]", piece("Hello, ")).replace("\\\\n", "\\n")
}

#[test]
async fn an_answer_is_streamed_piece_by_piece() {
    let (fetch, seen) = server(200, &hello());
    let (events, result) = play(config(chat(fetch, "https://model.test/v1")), "Hi").await;
    let pieces = events.iter().filter_map(|event| match event {
        AgentEvent::MessageUpdate(delta) => Some(delta.text.as_str()),
        _ => None,
    });
    assert_eq!(pieces.collect::<Vec<_>>(), ["Hello, ", "Grüße"]);
    assert_eq!((result.text.as_str(), result.stop_reason), ("Hello, Grüße", RunStopReason::Completed));
    assert_eq!(at(&seen, "url"), "https://model.test/v1/chat/completions");
    assert_eq!(at(&seen, "method"), "POST");
    assert_eq!(at(&seen, "redirect"), "manual");
    assert_eq!(at(&seen, "key"), "Bearer sk-secret-of-the-test");
    assert_eq!(at(&seen, "type"), "application/json");
    assert_eq!(json(&at(&seen, "body.messages")), r#"[{"role":"user","content":"Hi"}]"#);
    Clock.sleep(100).await;
    assert_eq!(at(&seen, "signal.aborted"), false, "what is over is not aborted");
    assert!(at(&seen, "cancelled").is_null());
}

#[test]
async fn in_node_a_real_server_answers_the_real_fetch() {
    let process = js_sys::Reflect::get(&js_sys::global(), &"process".into()).unwrap();
    if process.is_undefined() {
        return; // In a browser the Leptos example does this.
    }
    let server: js_sys::Promise = js(&format!(
        r#"new Promise((resolve) => {{
            const server = process.getBuiltinModule("node:http").createServer(async (request, response) => {{
                if (request.url.startsWith("/moved")) return response.writeHead(307, {{ location: "/v1/chat/completions" }}).end();
                response.writeHead(200, {{ "content-type": "text/event-stream" }});
                response.on("close", () => globalThis.endOfTest?.(response.writableFinished ? "answered" : "left"));
                const isOpen = request.url.startsWith("/open");
                for (const chunk of {}.slice(0, isOpen ? 1 : -1)) response.write(chunk);
                if (!isOpen) response.end();
            }});
            server.listen(0, "127.0.0.1", () => resolve({{ port: server.address().port, close: () => server.close() }}));
        }})"#,
        hello()
    ));
    let server = wasm_bindgen_futures::JsFuture::from(server).await.unwrap();
    let port = at(&server, "port").as_f64().unwrap();
    let (_, result) = play(config(chat(Fetch::new(), &format!("http://127.0.0.1:{port}/v1"))), "Hi").await;
    assert_eq!(result.text, "Hello, Grüße");
    let (_, result) = play(config(chat(Fetch::new(), &format!("http://127.0.0.1:{port}/moved"))), "Hi").await;
    assert_eq!(
        result.error.unwrap().info().provider.as_ref().and_then(|provider| provider.status),
        Some(307)
    );

    // Its client goes away, and no rejection stays unhandled, which would end Node.
    let left: js_sys::Promise = js("new Promise((resolve) => { globalThis.endOfTest = resolve; })");
    let cancel = CancelToken::new();
    let model = chat(Fetch::new(), &format!("http://127.0.0.1:{port}/open"));
    let mut run = agent_loop(vec!["Hi".into()], config(model), new_context(), cancel.clone());
    while let Some(event) = run.next().await {
        if event.added_text().is_some() {
            let cancel = cancel.clone();
            gloo_timers::callback::Timeout::new(5, move || cancel.cancel("enough")).forget();
        }
    }
    assert_eq!(run.result().map(|result| result.stop_reason), Some(RunStopReason::Aborted));
    assert_eq!(wasm_bindgen_futures::JsFuture::from(left).await.unwrap(), "left");
    at(&server, "close").unchecked_into::<Function>().call0(&server).unwrap();
}

#[test]
async fn a_refusal_is_an_error_with_the_servers_words() {
    let (fetch, _) = server(404, r#"['{"error":{"message":"no model gpt-test","type":"invalid"}}', "END"]"#);
    let (_, result) = play(config(chat(fetch, "")), "Hi").await;
    let error = result.error.unwrap();
    assert_eq!(error.info().provider.as_ref().and_then(|provider| provider.status), Some(404));
    assert!(error.to_string().contains("no model gpt-test"), "{error}");
}

#[test]
async fn a_throttled_request_says_how_long_to_wait() {
    let (fetch, _) = server(429, r#"['{"error":{"message":"slower"}}', "END"]"#);
    let (_, result) = play(config(chat(fetch, "")), "Hi").await;
    let error = result.error.unwrap();
    assert_eq!((error.info().code, error.info().retry_after_ms), (ErrorKind::Throttled, Some(7_000)));
}

#[test]
async fn a_dead_network_is_a_network_error() {
    // Nothing listens there, and browsers refuse the port.
    let (_, result) = play(config(chat(Fetch::new(), "http://127.0.0.1:9")), "Hi").await;
    let error = result.error.unwrap();
    assert_eq!(error.info().code, ErrorKind::Network);
    assert!(error.to_string().starts_with("no answer came: "), "{error}");
}

#[test]
async fn what_fetch_throws_is_said_with_its_cause() {
    let fetch = js(r#"() => { throw new TypeError("fetch failed", { cause: new Error("ENOTFOUND") }); }"#);
    let (_, result) = play(config(chat(Fetch::with(fetch), "")), "Hi").await;
    assert!(result.error.unwrap().to_string().contains("fetch failed (ENOTFOUND)"));
}

#[test]
async fn a_key_that_no_header_can_hold_is_an_error_without_the_key() {
    let (fetch, _) = server(200, &hello());
    let mut config = config(chat(fetch, ""));
    config.rules.stream_options = std::rc::Rc::new(turnwheel::stream::StreamOptions {
        headers: vec![("x-name".to_owned(), "a\nb".to_owned())],
        ..Default::default()
    });
    let (_, result) = play(config, "Hi").await;
    assert_eq!(result.stop_reason, RunStopReason::Error);
    assert!(!result.error.unwrap().to_string().contains("sk-secret"));
}

#[test]
async fn a_redirect_is_an_error_whatever_the_host_tells_of_it() {
    let responses = [
        r#"new Response("moved", { status: 308, headers: { location: "https://thief.test/v1" } })"#,
        r#"Object.defineProperty(new Response(null, { status: 200 }), "type", { value: "opaqueredirect" })"#,
        r#"Object.defineProperties(new Response("hi"), { redirected: { value: true }, url: { value: "https://thief.test/v1?k=1" } })"#,
    ];
    for (at, response) in responses.iter().enumerate() {
        let fetch = js(&format!("() => {response}"));
        let (_, result) = play(config(chat(Fetch::with(fetch), "")), "Hi").await;
        let info = result.error.unwrap().info().clone();
        assert_eq!((info.code, info.retryable), (turnwheel::error::ErrorKind::InvalidRequest, false));
        assert_eq!(info.message.contains("to https://thief.test/v1;"), at != 1, "{}", info.message);
    }
}

#[test]
async fn a_body_that_breaks_off_is_an_error_after_its_pieces() {
    let chunks = format!("[{}, null]", piece("Hello, ")).replace("\\\\n", "\\n");
    let (fetch, _) = server(200, &chunks);
    let (_, result) = play(config(chat(fetch, "")), "Hi").await;
    let error = result.error.unwrap();
    assert_eq!((error.info().code, result.stop_reason), (ErrorKind::Network, RunStopReason::Error));
    assert_eq!(error.to_string(), "the answer was cut: the line went dead");
}

#[test]
async fn a_body_that_gives_no_bytes_is_an_error() {
    let (fetch, _) = server(200, "[{ text: 1 }]");
    let (_, result) = play(config(chat(fetch, "")), "Hi").await;
    assert!(result.error.unwrap().to_string().contains("must give bytes"));
}

#[test]
async fn a_cancelled_run_aborts_its_request_and_cancels_the_body() {
    let (fetch, seen) = server(200, &open());
    let cancel = CancelToken::new();
    let mut run = agent_loop(vec!["Hi".into()], config(chat(fetch, "")), new_context(), cancel.clone());
    while let Some(event) = run.next().await {
        if matches!(event, AgentEvent::MessageUpdate(_)) {
            assert_eq!(at(&seen, "signal.aborted"), false);
            cancel.cancel("enough");
        }
    }
    assert_eq!(run.result().map(|result| result.stop_reason), Some(RunStopReason::Aborted));
    Clock.sleep(100).await;
    assert_eq!(at(&seen, "signal.aborted"), true);
    assert!(!at(&seen, "cancelled").is_null(), "the body was cancelled");
}

#[test]
async fn a_dropped_run_aborts_its_request() {
    let fetch: Function = js(
        "Object.assign((url, { signal }) => { globalThis.signalOfTest = signal; return new Promise(() => {}); })",
    );
    let mut run = agent_loop(
        vec!["Hi".into()],
        config(chat(Fetch::with(fetch), "")),
        new_context(),
        CancelToken::new(),
    );
    let timer = gloo_timers::future::TimeoutFuture::new(5);
    let waited = select(Box::pin(async { while run.next().await.is_some() {} }), timer).await;
    assert!(matches!(waited, Either::Right(_)), "it waits for the response");
    drop(waited);
    let signal: JsValue = js("globalThis.signalOfTest");
    assert_eq!(at(&signal, "aborted"), false);
    drop(run);
    assert_eq!(at(&signal, "aborted"), true);
}
