//! A transport and a clock that are ready to use, with the feature `reqwest`: [`Client`].
//!
//! It runs on any executor, also on one that knows nothing of tokio: reqwest's tasks and timers have a thread of their own, one
//! for the whole process, which is started with the first client. Requests go over HTTP/1.1, with TLS by rustls and the
//! certificates of the system, and through the proxy that `HTTPS_PROXY` names.

mod failure;
mod within;

use std::error::Error;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::reqwest::{ClientBuilder, RequestBuilder, Response, redirect, retry};
use futures::future::LocalBoxFuture;
use futures::stream::{self, StreamExt};
use tokio::runtime::Handle;

use crate::host::ports::Timer;
use crate::wires::{HttpRequest, Wire};
use crate::words::error::{AgentError, ErrorInfo, ErrorKind};

use super::http::{HttpModel, HttpResponse, Transport};

use failure::{cut, unanswered};
use within::{Within, background};

/// How long a connection may take to be made, in milliseconds. What comes after it has the limits of the run:
/// [`Timeouts`](crate::config::Timeouts).
pub const CONNECT_MS: u64 = 30_000;

/// An HTTP client for models, and the clock of the system. A clone shares its connections.
///
/// ```no_run
/// use turnwheel::wires::{WireOptions, wire};
/// use turnwheel::{AgentLoopConfig, reqwest::Client};
///
/// let client = Client::new()?;
/// let wire = wire("anthropic", WireOptions::default())?;
/// let key = std::env::var("ANTHROPIC_API_KEY")?;
/// let model = client.over(wire).with_key(&key).model("claude-sonnet-5");
/// let config = AgentLoopConfig::new(model, client.timer());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// - A redirect is not followed, because the request holds the prompt and the key: it becomes an error that names the address.
/// - Nothing is sent twice. What may be repeated is repeated by the run, as the [`retry`](crate::retry) rules say.
/// - An answer that nobody needs any more (the run was aborted or dropped, a time limit passed) closes its connection.
/// - An error names the host, never the address with its query. Without a response it is `network`, in the phase `connect` if no
///   byte can have reached a server; an address or a header that cannot be sent is `misuse`.
#[derive(Clone)]
pub struct Client {
    http: ::reqwest::Client,
    runtime: Handle,
}

impl Client {
    /// Creates a client.
    ///
    /// # Errors
    /// If the system gives no thread, or has no certificates that can be read.
    pub fn new() -> Result<Self, AgentError> {
        Client::with(::reqwest::Client::builder().connect_timeout(Duration::from_millis(CONNECT_MS)))
    }

    /// Creates a client with settings of one's own: proxies, certificates, headers, time limits. That redirects are not followed
    /// and nothing is repeated is set here.
    ///
    /// # Errors
    /// As for [`Client::new`], and if the settings do not fit together.
    pub fn with(settings: ClientBuilder) -> Result<Self, AgentError> {
        let runtime = background().map_err(|text| AgentError::new(ErrorKind::Internal, text))?;
        let settings = settings.redirect(redirect::Policy::none()).retry(retry::never()).referer(false);
        let http = settings.build().map_err(|error| {
            let text = ["the HTTP client cannot be made: ", &failure::text_of(&error)].concat();
            AgentError::new(ErrorKind::Misuse, text).because(error)
        })?;
        Ok(Client { http, runtime })
    }

    /// A model on this wire, see [`wire`](crate::wires::wire), over this client and with its clock.
    pub fn over(&self, wire: Box<dyn Wire>) -> HttpModel {
        HttpModel::new(wire, Rc::new(self.clone()), self.timer())
    }

    /// The clock, for [`AgentLoopConfig::new`](crate::AgentLoopConfig::new).
    pub fn timer(&self) -> Rc<dyn Timer> {
        Rc::new(self.clone())
    }

    fn post(&self, request: HttpRequest) -> RequestBuilder {
        let post = self.http.post(&request.url);
        let post = request.headers.iter().fold(post, |post, (name, value)| post.header(name, value));
        post.body(request.body)
    }
}

impl Timer for Client {
    fn now(&self) -> u64 {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        let _context = self.runtime.enter();
        Box::pin(tokio::time::sleep(Duration::from_millis(ms)))
    }
}

impl Transport for Client {
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, String>> {
        let answer = self.exchange(request);
        Box::pin(async { answer.await.map_err(|error| error.message) })
    }

    fn exchange(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, ErrorInfo>> {
        let (url, runtime) = (request.url.clone(), self.runtime.clone());
        let answer = self.post(request).send();
        let exchange = async move {
            let response = answer.await.map_err(|error| unanswered(&error, &url))?;
            Ok(answer_of(response, runtime))
        };
        Box::pin(Within::new(self.runtime.clone(), Box::pin(exchange)))
    }
}

/// The response as the model reads it.
fn answer_of(response: Response, runtime: Handle) -> HttpResponse {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value.as_bytes())));
    let (status, headers) = (response.status().as_u16(), headers.collect());
    let pieces = stream::unfold(Some(response), async |response| {
        let mut response = response?;
        match response.chunk().await {
            Ok(piece) => piece.map(|bytes| (Ok(bytes.to_vec()), Some(response))),
            Err(error) => Some((Err(cut(&error)), None)),
        }
    });
    HttpResponse { status, headers, body: Within::new(runtime, Box::pin(pieces)).boxed_local() }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// The causes of an error, from the outermost to the innermost.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}
