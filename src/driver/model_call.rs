//! How a model is called: the key first, once per turn, then the stream.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, Stream, StreamExt};

use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, Model};
use crate::host::isolate::guard;
use crate::host::ports::{AgentRunContext, ModelAttempt, ModelLayer};
use crate::rules::secrets::Secrets;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};

use super::AgentStream;

/// The turn, the index of the model, and the key.
pub(super) type KeyOfTurn = Rc<RefCell<Option<(u32, usize, Option<Rc<str>>)>>>;

impl AgentStream {
    /// Gets the key, once per turn, and then starts the call.
    pub(super) fn infer(
        &self,
        config: &Rc<AgentLoopConfig>,
        model: usize,
        turn_index: u32,
        mut request: ModelRequest,
        cancel: &CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let place = model;
        let Some(model) = config.ports.models.get(place).cloned() else {
            return failed_stream(ErrorInfo::new(ErrorKind::Misuse, "there is no such model"));
        };
        let (context, cancel) = (self.context().clone(), cancel.clone());
        let (provider, number) = (model.provider.clone(), model.number);
        let layered = config.ports.layers.model.clone().map(|layer| (layer, self.state.attempt()));
        let call = move |mut request: ModelRequest, key: Option<Rc<str>>| {
            request.api_key = key;
            let stream = match layered {
                None => guard(|| Ok(model.stream_fn.stream(request, &context, cancel))),
                Some(layered) => call_in(layered, &model, (context, turn_index), request, cancel),
            };
            stream.unwrap_or_else(|text| failed_stream(ErrorInfo::new(ErrorKind::Unknown, text)))
        };
        let Some(keys) = config.ports.keys.clone() else { return call(request, None) };
        if let Some(key) = self.known_key(config, place, &provider, turn_index) {
            return call(request, key);
        }
        // A function that fails to give the key may speak of the one that it gave before.
        let before = self.key.borrow().as_ref().and_then(|(_, _, key)| key.clone());
        let (key_of_turn, run) = (self.key.clone(), self.handover.cancel.clone());
        let who = self.context().clone();
        request.api_key = None;
        let asked = async move {
            let key = match guard(|| Ok(keys.key_in(&who, number, &provider))) {
                Ok(future) => future.await,
                Err(text) => Err(text),
            };
            if run.is_cancelled() {
                // The key source has stopped the run, so no model may be called any more.
                return std::future::pending().await;
            }
            match key {
                Ok(key) => {
                    // Where there is none, the next attempt asks again.
                    if key.is_some() {
                        *key_of_turn.borrow_mut() = Some((turn_index, place, key.clone()));
                    }
                    call(request, key)
                }
                Err(text) => no_key(before.as_deref(), &text),
            }
        };
        Box::pin(KeyedStream::Opening(Box::pin(asked)))
    }

    /// The key that was given in this turn, if it is for this model too; some models have none.
    fn known_key(
        &self,
        config: &AgentLoopConfig,
        place: usize,
        provider: &str,
        turn_index: u32,
    ) -> Option<Option<Rc<str>>> {
        let (turn, asked, key) = self.key.borrow().clone()?;
        let is_by_model = config.ports.keys.as_ref().is_some_and(|keys| keys.is_by_model());
        let of_provider = || config.ports.models.get(asked).is_some_and(|other| *other.provider == *provider);
        let is_for_it = asked == place || (!is_by_model && of_provider());
        (turn == turn_index && is_for_it).then_some(key)
    }
}

/// The answer of a model whose key could not be had.
fn no_key(before: Option<&str>, text: &str) -> LocalBoxStream<'static, AssistantMessageEvent> {
    let text = Secrets::of_key(before).mask_words(text);
    let text = ["the key could not be had: ", &text].concat();
    failed_stream(ErrorInfo::new(ErrorKind::Auth, text))
}

/// Calls a model inside a layer.
#[cold]
fn call_in(
    (layer, attempt): (Rc<dyn ModelLayer>, u32),
    model: &Model,
    (context, turn_index): (AgentRunContext, u32),
    request: ModelRequest,
    cancel: CancelToken,
) -> Result<LocalBoxStream<'static, AssistantMessageEvent>, String> {
    let (inner, provider, model) = (context.clone(), model.provider.clone(), model.stream_fn.clone());
    let attempt = ModelAttempt { context, turn_index, attempt, provider, request, cancel };
    let next = move |request: ModelRequest, cancel: CancelToken| {
        // Nobody wants the answer any more.
        let is_wanted = !cancel.is_cancelled();
        if is_wanted { model.stream(request, &inner, cancel) } else { stream::pending().boxed_local() }
    };
    guard(|| Ok(layer.call(attempt, Box::new(next))))
}

/// A model call: the key first, then its events.
enum KeyedStream {
    Opening(LocalBoxFuture<'static, LocalBoxStream<'static, AssistantMessageEvent>>),
    Open(LocalBoxStream<'static, AssistantMessageEvent>),
}

impl Stream for KeyedStream {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        if let KeyedStream::Opening(asked) = &mut *self {
            match asked.as_mut().poll(cx) {
                Poll::Ready(stream) => *self = KeyedStream::Open(stream),
                Poll::Pending => return Poll::Pending,
            }
        }
        match &mut *self {
            KeyedStream::Open(stream) => stream.as_mut().poll_next(cx),
            KeyedStream::Opening(_) => Poll::Pending,
        }
    }
}

fn failed_stream(error: ErrorInfo) -> LocalBoxStream<'static, AssistantMessageEvent> {
    stream::iter([AssistantMessageEvent::Error(error)]).boxed_local()
}
