//! A model, and its name.

use std::fmt;
use std::rc::Rc;

use futures::stream::{self, LocalBoxStream, StreamExt};

use crate::host::cancel::CancelToken;
use crate::host::ports::{AgentRunContext, StreamFn};
use crate::rules::stream::{AssistantMessageEvent, ModelRequest, NativeOutput};
use crate::words::price::Price;

/// A model and how to call it.
#[derive(Clone)]
pub struct Model {
    /// The name of the provider, such as `openai`.
    pub provider: Rc<str>,
    /// The model's id, as the provider names it.
    pub id: Rc<str>,
    /// Whether the model is offered tools.
    pub supports_tools: bool,
    /// How many tokens the model takes. If this is known, room is made before a request would be longer.
    pub context_window: Option<u64>,
    /// The number by which the host knows the model; see [`KeySource::key_of`](crate::ports::KeySource::key_of).
    pub number: u32,
    /// Makes the calls.
    pub stream_fn: Rc<dyn StreamFn>,
}

impl Model {
    /// Creates a model that is offered tools.
    pub fn new(provider: &str, id: &str, stream_fn: Rc<dyn StreamFn>) -> Self {
        Model {
            provider: provider.into(),
            id: id.into(),
            supports_tools: true,
            context_window: None,
            number: 0,
            stream_fn,
        }
    }
}

/// A model as rules and messages refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelName {
    /// The name of the provider.
    pub provider: Rc<str>,
    /// The model's id.
    pub id: Rc<str>,
    /// Whether the model is offered tools.
    pub supports_tools: bool,
    /// How many tokens the model takes, if that is known.
    pub context_window: Option<u64>,
    /// See [`StreamFn::max_answer_bytes`].
    pub max_answer_bytes: usize,
    /// See [`StreamFn::estimates_usage`].
    pub estimates_usage: bool,
    /// See [`StreamFn::price`].
    pub price: Option<Price>,
    /// What makes the calls; asked for [`StreamFn::native_output`] when an answer has a schema.
    pub caller: Caller,
}

/// What makes the calls of a model. Two are equal if they are the same object.
#[derive(Clone)]
pub struct Caller(Rc<dyn StreamFn>);

impl Caller {
    /// What is known of whatever made the calls of a run that is lived again, where nothing makes any.
    pub(crate) fn recorded(native: Option<NativeOutput>) -> Self {
        Caller(Rc::new(Recorded(native)))
    }
}

struct Recorded(Option<NativeOutput>);

impl StreamFn for Recorded {
    fn stream(
        &self,
        _request: ModelRequest,
        _context: &AgentRunContext,
        _cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        stream::empty().boxed_local()
    }

    fn native_output(&self, _model: &str) -> Option<NativeOutput> {
        self.0
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Caller")
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Caller {}

impl ModelName {
    pub(super) fn of(model: &Model) -> Self {
        ModelName {
            provider: model.provider.clone(),
            id: model.id.clone(),
            supports_tools: model.supports_tools,
            context_window: model.context_window,
            max_answer_bytes: model.stream_fn.max_answer_bytes(),
            estimates_usage: model.stream_fn.estimates_usage(),
            price: model.stream_fn.price(),
            caller: Caller(model.stream_fn.clone()),
        }
    }

    /// See [`StreamFn::native_output`].
    pub fn native_output(&self) -> Option<NativeOutput> {
        self.caller.0.native_output(&self.id)
    }
}
