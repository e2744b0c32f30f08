//! The native model, which sends requests and receives answers through a [`Transport`].

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, Stream, StreamExt};

use crate::host::cancel::CancelToken;
use crate::host::config::Model;
use crate::host::ports::{AgentRunContext, StreamFn, Timer};
use crate::rules::secrets::Secrets;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest, NativeOutput};
use crate::wires::{Decoder, HttpRequest, Tap, TappedWire, Wire};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::price::Price;

use super::{LastSecrets, ModelCall, refusal};

/// The maximum number of bytes read from an error response.
const ERROR_BYTES: usize = 1 << 18;

/// The start of a response. Its body is still to come.
pub struct HttpResponse {
    /// The status. 200 to 299 begin an answer, anything else is an error.
    pub status: u16,
    /// The headers, in any order and any case.
    pub headers: Vec<(String, String)>,
    /// The body in chunks, cut anywhere. An error ends it and says why. Dropped when no more is needed.
    pub body: LocalBoxStream<'static, Result<Vec<u8>, String>>,
}

/// Sends requests. An implementation must neither retry nor follow redirects, because the request holds the prompt and
/// the key: it hands on the response with its status of 300 to 308 and its `location`, of which the model makes an error
/// that names the address and is not tried again.
pub trait Transport {
    /// Posts the request and waits for the start of the response. The future is dropped when it is no
    /// longer needed. An error means that no response arrived (network, name resolution, certificate), and
    /// says why.
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, String>>;

    /// The same, with an error that says more: one in the phase `connect` means that no byte of the request can have reached a
    /// server, so that nothing was used. This is what is called; by default, no response is an error of the kind
    /// [`ErrorKind::Network`].
    fn exchange(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, ErrorInfo>> {
        let answer = self.send(request);
        Box::pin(async {
            answer.await.map_err(|text| ErrorInfo::new(ErrorKind::Network, format!("no answer came: {text}")))
        })
    }
}

/// Any asynchronous closure of this shape is a transport.
impl<F, T> Transport for F
where
    F: Fn(HttpRequest) -> T,
    T: Future<Output = Result<HttpResponse, String>> + 'static,
{
    fn send(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpResponse, String>> {
        Box::pin(self(request))
    }
}

/// A model reached over HTTP; the module has an example. Time limits and retries belong to the run, see
/// [`Timeouts`](crate::host::config::Timeouts).
pub struct HttpModel {
    wire: Rc<RefCell<Box<dyn Wire>>>,
    transport: Rc<dyn Transport>,
    timer: Rc<dyn Timer>,
    key: Option<Rc<str>>,
    price: Option<Price>,
    last: LastSecrets,
}

impl HttpModel {
    /// Creates a model on this wire; see [`wire`](crate::wires::wire). The timer is needed for headers
    /// that contain a date.
    pub fn new(wire: Box<dyn Wire>, transport: Rc<dyn Transport>, timer: Rc<dyn Timer>) -> Self {
        HttpModel {
            wire: Rc::new(RefCell::new(wire)),
            transport,
            timer,
            key: None,
            price: None,
            last: LastSecrets::default(),
        }
    }

    /// Sets the API key. A key from a [`KeySource`](crate::host::ports::KeySource) takes precedence.
    #[must_use]
    pub fn with_key(self, key: &str) -> Self {
        HttpModel { key: Some(key.into()), ..self }
    }

    /// Sets the price of tokens, for the `cost` of a usage.
    #[must_use]
    pub fn with_price(self, price: Price) -> Self {
        HttpModel { price: Some(price), ..self }
    }

    /// Returns the model with this id, under the wire's provider name.
    pub fn model(self, id: &str) -> Model {
        let provider = self.wire.borrow().provider().to_owned();
        Model::new(&provider, id, Rc::new(self))
    }
}

impl StreamFn for HttpModel {
    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        self.wire.borrow().native_output(model)
    }

    fn estimates_usage(&self) -> bool {
        true
    }

    fn price(&self) -> Option<Price> {
        self.price
    }

    fn max_answer_bytes(&self) -> usize {
        self.wire.borrow().limits().answer
    }

    fn tapped(&self, tap: &Rc<dyn Tap>) -> Option<Rc<dyn StreamFn>> {
        let wire: Box<dyn Wire> = Box::new(TappedWire::new(self.wire.clone(), tap.clone()));
        Some(Rc::new(HttpModel {
            wire: Rc::new(RefCell::new(wire)),
            transport: self.transport.clone(),
            timer: self.timer.clone(),
            key: self.key.clone(),
            price: self.price,
            last: LastSecrets::default(),
        }))
    }

    fn stream(
        &self,
        mut request: ModelRequest,
        context: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        if let Some(error) = ModelCall::nothing_to_send(&request) {
            return stream::iter([AssistantMessageEvent::Error(error)]).boxed_local();
        }
        let call = ModelCall::new(&mut request, context, self.key.as_ref(), self.price);
        let http = self.wire.borrow_mut().encode(&request);
        let call = call.sending(&http, &self.last);
        let answer = self.transport.exchange(http);
        let events = response_events(answer, self.wire.clone(), self.timer.clone(), call.secrets());
        call.answer(Box::pin(stream::once(events).flatten())).boxed_local()
    }
}

type Events = LocalBoxStream<'static, AssistantMessageEvent>;

async fn response_events(
    answer: LocalBoxFuture<'static, Result<HttpResponse, ErrorInfo>>,
    wire: Rc<RefCell<Box<dyn Wire>>>,
    timer: Rc<dyn Timer>,
    secrets: Rc<Secrets>,
) -> Events {
    let error = match answer.await {
        Ok(HttpResponse { status: 200..=299, body, .. }) => {
            let decoder = wire.borrow().decoder();
            return decoded(body, decoder).boxed_local();
        }
        Ok(HttpResponse { status, headers, body }) => {
            let header = |name: &str| {
                let found = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.clone())
            };
            let body = collect_body(body).await;
            let now = timer.now();
            refusal(wire.borrow().as_ref(), &secrets, status, &header, &body, now)
        }
        Err(error) => error,
    };
    stream::iter([AssistantMessageEvent::Error(error)]).boxed_local()
}

/// Returns the body of an error response, as far as it arrived. If it breaks off, the status says enough.
async fn collect_body(mut body: LocalBoxStream<'static, Result<Vec<u8>, String>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < ERROR_BYTES
        && let Some(Ok(piece)) = body.next().await
    {
        bytes.extend_from_slice(&piece);
    }
    bytes.truncate(ERROR_BYTES);
    bytes
}

fn decoded(
    body: LocalBoxStream<'static, Result<Vec<u8>, String>>,
    decoder: Box<dyn Decoder>,
) -> impl Stream<Item = AssistantMessageEvent> {
    let read = stream::unfold(Some((body, decoder)), async |state| {
        let (mut body, mut decoder) = state?;
        let mut events = Vec::new();
        let piece = body.next().await;
        let is_end = !matches!(piece, Some(Ok(_)));
        match piece {
            Some(Ok(bytes)) => {
                decoder.feed(&bytes, &mut events);
                if events.is_empty() {
                    // Comments and incomplete events are signs of life too.
                    events.push(AssistantMessageEvent::Ping);
                }
            }
            Some(Err(text)) => {
                let error = ErrorInfo::new(ErrorKind::Network, format!("the answer was cut: {text}"));
                events.push(AssistantMessageEvent::Error(error));
            }
            None => decoder.finish(&mut events),
        }
        let rest = (!is_end && !decoder.is_done()).then_some((body, decoder));
        Some((stream::iter(events), rest))
    });
    read.flatten()
}
