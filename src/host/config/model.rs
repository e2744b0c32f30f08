//! A model, and its name.

use std::fmt;
use std::rc::Rc;

use crate::host::ports::StreamFn;
use crate::rules::stream::NativeOutput;
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
    pub(crate) fn new(caller: Rc<dyn StreamFn>) -> Self {
        Caller(caller)
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
