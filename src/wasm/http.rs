//! A model behind a wire: the request is made here, `fetch` and the reading of the body are JavaScript's, the bytes
//! are decoded here.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::stream::LocalBoxStream;

use crate::cancel::CancelToken;
use crate::json::{ObjectWriter, ToJson};
use crate::ports::{AgentRunContext, StreamFn};
use crate::price::Price;
use crate::provider::Wire;
use crate::stream::{AssistantMessageEvent, ModelRequest};

use super::desk;

/// See the module. The key never leaves this file but in a header.
pub(super) struct HttpModel {
    /// Which of the host's models: it has the `fetch` to use.
    pub(super) index: u32,
    pub(super) wire: Rc<RefCell<Box<dyn Wire>>>,
    pub(super) key: Option<Rc<str>>,
    pub(super) price: Option<Price>,
}

impl StreamFn for HttpModel {
    fn stream(
        &self,
        mut request: ModelRequest,
        context: &AgentRunContext,
        _cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        // A key from a file often has a line's end behind it, which no header takes.
        let key = request.api_key.or_else(|| self.key.clone());
        let key = key.map(|key| if key.trim().len() < key.len() { key.trim().into() } else { key });
        request.api_key = key.clone();
        request.session_id = Some(context.session_id.clone());
        let http = self.wire.borrow_mut().encode(&request);
        let mut effect = String::with_capacity(256);
        let mut object = ObjectWriter::new(&mut effect);
        object.fill(r#""kind":"http","url":"$""#, &[&http.url]).field("model", &self.index);
        let mut headers = ObjectWriter::new(object.key("headers"));
        for (name, value) in &http.headers {
            value.write_json(headers.key(name));
        }
        headers.end();
        object.end();
        let events = desk::ask_http(effect, self.wire.clone(), http.body);
        let price = self.price;
        events.map(move |event| priced(without_key(event, key.as_deref()), price)).boxed_local()
    }
}

/// Tells what was used with its cost.
fn priced(mut event: AssistantMessageEvent, price: Option<Price>) -> AssistantMessageEvent {
    use AssistantMessageEvent as E;
    if let (E::Usage(usage) | E::Done { usage: Some(usage), .. }, Some(price)) = (&mut event, price) {
        usage.cost = Some(price.of(usage));
    }
    event
}

/// What is shorter is no secret but a word, such as `none` or `ollama`, and other words hold it.
const SHORTEST_SECRET: usize = 8;

/// Servers repeat the key that they refuse, and a host that cannot send it names it: an error must not hand it on.
fn without_key(event: AssistantMessageEvent, key: Option<&str>) -> AssistantMessageEvent {
    match (event, key) {
        (AssistantMessageEvent::Error(mut error), Some(key)) if key.len() >= SHORTEST_SECRET => {
            let mask = |text: &mut String| *text = crate::text::replace(text, key, "[key]");
            mask(&mut error.message);
            if let Some(provider) = &mut error.provider {
                provider.kind.iter_mut().chain(&mut provider.code).for_each(mask);
            }
            AssistantMessageEvent::Error(error)
        }
        (event, _) => event,
    }
}
