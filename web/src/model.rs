//! JavaScript functions as models.

use futures::stream::{self, LocalBoxStream, StreamExt};
use js_sys::{Error, Function, Promise, Reflect, Symbol};
use serde::Serialize;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::http::ModelCall;
use turnwheel::json::{FromJson, ObjectWriter, Value};
use turnwheel::ports::StreamFn;
use turnwheel::stream::{AssistantMessageEvent, ModelRequest};
use turnwheel::{AgentRunContext, CancelToken};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::AbortSignal;

use crate::{abort, call, thrown, value};

/// A model that a JavaScript function streams: `stream(request, { signal, runId })`, as `streamFn` of the npm package.
///
/// `request` has `model`, `systemPrompt`, `messages`, `tools`, `options`, and if there are any `apiKey` and `output`.
/// The function returns an iterable of events, asynchronous or not, or a promise of one: `{ type: "start" }`,
/// `{ type: "text_start", contentIndex: 0 }`, `{ type: "text_delta", contentIndex: 0, delta: "Hi" }`,
/// `{ type: "text_end", contentIndex: 0 }`, …, `{ type: "done", stopReason: "stop" }`. A delta is of whole characters: half
/// of a surrogate pair becomes U+FFFD. What the function throws ends the call as
/// an error with the `code`, `retryable` and `retryAfterMs` of what was thrown, if it has them.
pub struct JsModel(Function);

impl JsModel {
    /// Makes a model of a function; see the type.
    pub fn new(stream: Function) -> Self {
        JsModel(stream)
    }
}

impl StreamFn for JsModel {
    fn stream(
        &self,
        mut request: ModelRequest,
        context: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let call = ModelCall::new(&mut request, context, None, None);
        let (stream, run_id) = (self.0.clone(), context.run_id.clone());
        let answer = async move {
            match iterate(&stream, &request, &run_id, &cancel).await {
                Ok(events) => events.boxed_local(),
                Err(error) => stream::iter([failure(&error)]).boxed_local(),
            }
        };
        call.answer(Box::pin(stream::once(answer).flatten())).boxed_local()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Options<'a> {
    #[serde(with = "serde_wasm_bindgen::preserve")]
    signal: AbortSignal,
    run_id: &'a str,
}

/// Calls the function, and returns the events of what it returned.
async fn iterate(
    stream: &Function,
    request: &ModelRequest,
    run_id: &str,
    cancel: &CancelToken,
) -> Result<LocalBoxStream<'static, AssistantMessageEvent>, JsValue> {
    let options = call::object(&Options { signal: abort::signal_of(cancel)?, run_id })?;
    let iterable = call::call(stream, &JsValue::UNDEFINED, &request_object(request), &options).await?;
    let events = Events { iterator: iterator_of(&iterable)?, is_over: false };
    Ok(stream::unfold(events, async |mut events| Some((events.next().await?, events))).boxed_local())
}

fn request_object(request: &ModelRequest) -> JsValue {
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    object.field("model", &request.model).field("systemPrompt", &request.system_prompt);
    object.field("messages", &*request.messages).field("tools", &*request.tools);
    object.field("options", &*request.options);
    object.optional("apiKey", &request.api_key).optional("output", &request.output);
    object.end();
    value::plain(&Value::parse(&json).unwrap_or_default())
}

fn iterator_of(iterable: &JsValue) -> Result<JsValue, JsValue> {
    for symbol in [Symbol::async_iterator(), Symbol::iterator()] {
        if !iterable.is_object() {
            continue;
        }
        if let Some(begin) = Reflect::get(iterable, &symbol)?.dyn_ref::<Function>() {
            return begin.call0(iterable);
        }
    }
    Err(Error::new("the function of a model must give an iterable of events").into())
}

/// An answer that is being read. Dropped before its end, it is told so.
struct Events {
    iterator: JsValue,
    is_over: bool,
}

impl Events {
    async fn next(&mut self) -> Option<AssistantMessageEvent> {
        if self.is_over {
            return None;
        }
        match self.read().await {
            Ok(Some(event)) => Some(event),
            Ok(None) => {
                self.is_over = true;
                None
            }
            Err(error) => {
                self.is_over = true;
                Some(failure(&error))
            }
        }
    }

    async fn read(&self) -> Result<Option<AssistantMessageEvent>, JsValue> {
        let next: Function = Reflect::get(&self.iterator, &"next".into())?.dyn_into()?;
        let step = JsFuture::from(Promise::resolve(&next.call0(&self.iterator)?)).await?;
        if Reflect::get(&step, &"done".into())?.is_truthy() {
            return Ok(None);
        }
        let event = Reflect::get(&step, &"value".into())?;
        let error =
            if event.is_object() { Reflect::get(&event, &"error".into())? } else { JsValue::UNDEFINED };
        // JSON would leave nothing of an `Error`.
        if error.is_instance_of::<Error>() {
            return Ok(Some(failure(&error)));
        }
        Ok(Some(
            value::from_js(&event).unwrap_or_else(|text| {
                AssistantMessageEvent::Error(ErrorInfo::new(ErrorKind::Unknown, text))
            }),
        ))
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let end = Reflect::get(&self.iterator, &"return".into())
            .ok()
            .and_then(|end| end.dyn_into::<Function>().ok());
        if let Some(Ok(ended)) = end.map(|end| end.call0(&self.iterator)) {
            // Nobody waits for it, and a failure must not count as an unhandled rejection.
            drop(JsFuture::from(Promise::resolve(&ended)));
        }
    }
}

/// Returns the error that was thrown, as the event that ends a call.
fn failure(thrown: &JsValue) -> AssistantMessageEvent {
    let member = |name: &str| match thrown.is_object() {
        true => Reflect::get(thrown, &name.into()).unwrap_or(JsValue::UNDEFINED),
        false => JsValue::UNDEFINED,
    };
    let mut json = String::new();
    let mut event = ObjectWriter::new(&mut json);
    event.field("type", "error");
    let mut error = ObjectWriter::new(event.key("error"));
    error.field("message", &thrown::text_of(thrown)).optional("code", &member("code").as_string());
    error.optional("retryable", &member("retryable").as_bool());
    let delay = value::raw_of(&member("retryAfterMs")).ok().flatten();
    error.optional("retryAfterMs", &delay);
    error.end();
    event.end();
    let event = Value::parse(&json).map_err(|error| error.to_string());
    event
        .and_then(|event| AssistantMessageEvent::from_json(&event))
        .unwrap_or_else(|text| AssistantMessageEvent::Error(ErrorInfo::new(ErrorKind::Unknown, text)))
}
