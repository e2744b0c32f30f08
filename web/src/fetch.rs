//! Requests over `fetch`, and answers as streams of bytes.

use futures::future::{Either, LocalBoxFuture, select};
use futures::stream::{self, LocalBoxStream, StreamExt};
use gloo_timers::future::TimeoutFuture;
use js_sys::{Function, Promise, Reflect, Uint8Array};
use turnwheel::http::{HttpResponse, Transport};
use turnwheel::wires::HttpRequest;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    AbortController, Headers, ReadableStreamDefaultReader, RequestInit, RequestRedirect, Response,
};

use crate::thrown;

#[wasm_bindgen]
extern "C" {
    /// Whatever `fetch` the global scope has: that of a window, a worker, a service worker, Node.
    #[wasm_bindgen(catch, js_name = fetch)]
    fn global_fetch(url: &str, init: &RequestInit) -> Result<JsValue, JsValue>;
}

/// The [`Transport`] over `fetch`.
///
/// When an answer is no longer wanted (the run was cancelled, a time limit passed, the run was dropped), its request is
/// aborted and its body cancelled. Redirects are not followed, because the key is in a header.
#[derive(Clone, Debug, Default)]
pub struct Fetch(Option<Function>);

impl Fetch {
    /// The `fetch` of the global scope.
    pub fn new() -> Self {
        Fetch::default()
    }

    /// Another function of the same shape, such as the `fetch` of a service binding (already bound to it), or one that
    /// adds headers.
    pub fn with(fetch: Function) -> Self {
        Fetch(Some(fetch))
    }
}

impl Transport for Fetch {
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, String>> {
        let fetch = self.0.clone();
        Box::pin(async move {
            let url = request.url.clone();
            exchange(fetch, request).await.map_err(|thrown| failure(&thrown, &url))
        })
    }
}

async fn exchange(fetch: Option<Function>, request: HttpRequest) -> Result<HttpResponse, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in &request.headers {
        headers.append(name, value)?;
    }
    let mut exchange =
        Exchange { controller: AbortController::new()?, reader: None, is_reading: false, is_over: false };
    let init = RequestInit::new();
    init.set_method("POST");
    init.set_headers(&headers);
    init.set_body(&Uint8Array::from(request.body.as_slice()));
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&exchange.controller.signal()));
    let answer = match fetch {
        Some(fetch) => fetch.call2(&JsValue::UNDEFINED, &request.url.as_str().into(), &init)?,
        None => global_fetch(&request.url, &init)?,
    };
    let response: Response = JsFuture::from(Promise::resolve(&answer)).await?.unchecked_into();
    if response.type_() == web_sys::ResponseType::Opaqueredirect {
        return Ok(redirect(None));
    }
    // A `fetch` of the host's own may have followed a redirect although it was told not to.
    if response.redirected() && !origin(&response.url()).eq_ignore_ascii_case(origin(&request.url)) {
        return Ok(redirect(Some(response.url())));
    }
    let (status, headers) = (response.status(), headers_of(&response)?);
    exchange.reader = response.body().map(|body| body.get_reader().unchecked_into());
    Ok(HttpResponse { status, headers, body: exchange.body() })
}

/// Stands for a redirect of which the host says no more; the model makes it an error that is not tried again. In a page,
/// not even the address is known.
fn redirect(location: Option<String>) -> HttpResponse {
    let headers = location.into_iter().map(|location| ("location".to_owned(), location)).collect();
    HttpResponse { status: 307, headers, body: stream::empty().boxed_local() }
}

/// Returns the scheme, the host and the port of an address.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#']));
    end.and_then(|end| url.get(..host + end)).unwrap_or(url)
}

/// How long a body may still take to end after the answer was complete, in milliseconds. Ended, its connection can be
/// used again; aborted, it is lost, and the server's log speaks of a client that went away.
const LAST_READ_MS: u32 = 50;

/// A request and its answer. Dropped before it is over, it is aborted.
struct Exchange {
    controller: AbortController,
    reader: Option<ReadableStreamDefaultReader>,
    /// Whether a piece of the body is being waited for.
    is_reading: bool,
    /// Whether the body has ended, or failed.
    is_over: bool,
}

impl Exchange {
    fn body(self) -> LocalBoxStream<'static, Result<Vec<u8>, String>> {
        let pieces = stream::unfold(self, async |mut exchange| {
            let piece = exchange.read().await?;
            Some((piece.map_err(|thrown| thrown::text_with_cause(&thrown)), exchange))
        });
        pieces.boxed_local()
    }

    /// Returns the next piece of the body; nothing at its end, and after an error.
    async fn read(&mut self) -> Option<Result<Vec<u8>, JsValue>> {
        let reader = self.reader.clone().filter(|_| !self.is_over);
        self.is_reading = true;
        let piece = match reader {
            Some(reader) => next(&reader).await.transpose(),
            None => None,
        };
        self.is_reading = false;
        self.is_over = !matches!(piece, Some(Ok(_)));
        piece
    }
}

async fn next(reader: &ReadableStreamDefaultReader) -> Result<Option<Vec<u8>>, JsValue> {
    let read = JsFuture::from(reader.read()).await?;
    if Reflect::get(&read, &"done".into())?.is_truthy() {
        return Ok(None);
    }
    match Reflect::get(&read, &"value".into())?.dyn_into::<Uint8Array>() {
        Ok(bytes) => Ok(Some(bytes.to_vec())),
        Err(other) => {
            let got = thrown::kind_of(&other);
            Err(format!("the body must give bytes, as Uint8Array; `fetch` gave {got}").into())
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let (controller, reader) = (self.controller.clone(), self.reader.take());
        match reader {
            _ if self.is_over => {}
            // Between two pieces: either the answer is complete, and its body about to end, or the run was stopped.
            Some(reader) if !self.is_reading => spawn_local(async move {
                let last = Box::pin(next(&reader));
                let end = select(last, TimeoutFuture::new(LAST_READ_MS)).await;
                if !matches!(end, Either::Left((Ok(None), _))) {
                    abort(&controller, Some(&reader));
                }
            }),
            reader => abort(&controller, reader.as_ref()),
        }
    }
}

fn abort(controller: &AbortController, reader: Option<&ReadableStreamDefaultReader>) {
    controller.abort();
    if let Some(reader) = reader {
        // A `fetch` of the host's own may not have passed the signal on to the body. Nobody waits for the end, and a
        // failure must not count as an unhandled rejection.
        drop(JsFuture::from(reader.cancel()));
    }
}

fn headers_of(response: &Response) -> Result<Vec<(String, String)>, JsValue> {
    let mut headers = Vec::new();
    for entry in response.headers().entries() {
        let entry: js_sys::Array = entry?.unchecked_into();
        headers.extend(entry.get(0).as_string().zip(entry.get(1).as_string()));
    }
    Ok(headers)
}

/// Says why no response came. In a browser a dead network and a refusal by CORS look the same, so both are named.
fn failure(thrown: &JsValue, url: &str) -> String {
    let text = thrown::text_with_cause(thrown);
    match page_origin() {
        Some(page) if !url.starts_with(&page) => format!(
            "{text}. Either nothing is reachable there, or the server refuses calls from {page} (CORS); \
             if so, put a proxy of yours in between"
        ),
        _ => text,
    }
}

/// Returns the origin of the page or worker; nothing in Node and other servers.
fn page_origin() -> Option<String> {
    let location = Reflect::get(&js_sys::global(), &"location".into()).ok()?;
    let origin = Reflect::get(&location, &"origin".into()).ok()?.as_string()?;
    (origin != "null").then_some(origin)
}
