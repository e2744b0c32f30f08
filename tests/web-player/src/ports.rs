//! What the loop awaits, as JavaScript functions: keys, queues, a transformer.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use js_sys::{Function, Promise};
use turnwheel::cancel::CancelToken;
use turnwheel::json::Value;
use turnwheel::message::AgentMessage;
use turnwheel::policy::Transform;
use turnwheel::ports::{AsyncContextTransformer, KeySource, MessageProvider};
use turnwheel_web::{signal_of, to_js};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

use crate::options::Cached;
use crate::{ask, read, rules, thrown};

/// `getApiKey`.
pub(crate) struct Keys(pub(crate) Function);

impl KeySource for Keys {
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        let key = ask(&self.0, &[&provider.into()]);
        Box::pin(async { Ok(key?.as_str().map(Rc::from)) })
    }
}

/// `getSteeringMessages` and `getFollowUpMessages`, which give texts.
pub(crate) struct Queues {
    pub(crate) steering: Function,
    pub(crate) follow_up: Function,
}

fn poll(queue: &Function) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
    let texts = ask(queue, &[]).unwrap_or_default();
    let texts = texts.as_array().unwrap_or_default().iter().filter_map(Value::as_str);
    let messages: Vec<AgentMessage> = texts.map(AgentMessage::user).collect();
    Box::pin(async { messages })
}

impl MessageProvider for Queues {
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        poll(&self.steering)
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        poll(&self.follow_up)
    }
}

/// `asyncTransformContext`.
pub(crate) struct Transformer {
    pub(crate) transform: Function,
    pub(crate) cached: Cached,
}

impl AsyncContextTransformer for Transformer {
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow_signal: bool,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        let (transform, cached) = (self.transform.clone(), self.cached.get());
        Box::pin(async move {
            let info = rules::cache_info(cached);
            let asked = async {
                let signal = signal_of(&cancel)?;
                let answer = transform.call4(
                    &JsValue::UNDEFINED,
                    &to_js(&messages),
                    &overflow_signal.into(),
                    &signal,
                    &info,
                )?;
                JsFuture::from(Promise::resolve(&answer)).await
            };
            let answer = asked.await.map_err(|error| thrown(&error))?;
            rules::read_transform(&read(&answer)?)
        })
    }
}
