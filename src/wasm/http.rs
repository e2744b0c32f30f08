//! A model behind a wire: the request is made here, `fetch` and the reading of the body are JavaScript's, the bytes
//! are decoded here.

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::stream::LocalBoxStream;

use crate::cancel::CancelToken;
use crate::json::{ObjectWriter, ToJson};
use crate::ports::{AgentRunContext, StreamFn};
use crate::provider::Wire;
use crate::stream::{AssistantMessageEvent, ModelRequest};

use super::desk;

/// See the module. The key never leaves this file but in a header.
pub(super) struct HttpModel {
    /// Which of the host's models: it has the `fetch` to use.
    pub(super) index: u32,
    pub(super) wire: Rc<RefCell<Box<dyn Wire>>>,
    pub(super) key: Option<Rc<str>>,
}

impl StreamFn for HttpModel {
    fn stream(
        &self,
        mut request: ModelRequest,
        _context: &AgentRunContext,
        _cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        request.api_key = request.api_key.or_else(|| self.key.clone());
        let key = request.api_key.clone();
        let http = self.wire.borrow_mut().encode(&request);
        let mut effect = String::new();
        let mut object = ObjectWriter::new(&mut effect);
        object.field("kind", "http").field("model", &self.index).field("url", &http.url);
        let mut headers = ObjectWriter::new(object.key("headers"));
        for (name, value) in &http.headers {
            value.write_json(headers.key(name));
        }
        headers.end();
        object.end();
        let events = desk::ask_http(effect, self.wire.clone(), http.body);
        events.map(move |event| without_key(event, key.as_deref())).boxed_local()
    }
}

/// What is shorter is no secret but a word, such as `none` or `ollama`, and other words hold it.
const SHORTEST_SECRET: usize = 8;

/// Servers repeat the key that they refuse, and a host that cannot send it names it: an error must not hand it on.
fn without_key(event: AssistantMessageEvent, key: Option<&str>) -> AssistantMessageEvent {
    match (event, key) {
        (AssistantMessageEvent::Error(mut error), Some(key)) if key.len() >= SHORTEST_SECRET => {
            error.message = crate::text::replace(&error.message, key, "[key]");
            AssistantMessageEvent::Error(error)
        }
        (event, _) => event,
    }
}
