//! A model behind a wire. The request is built here, JavaScript calls `fetch` and reads the body, and
//! the bytes are decoded here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::stream::{self, LocalBoxStream, StreamExt};

use turnwheel::cancel::CancelToken;
use turnwheel::data::room::has_room;
use turnwheel::http::{LastSecrets, ModelCall};
use turnwheel::json::{ObjectWriter, ToJson};
use turnwheel::ports::{AgentRunContext, StreamFn};
use turnwheel::price::Price;
use turnwheel::stream::{AssistantMessageEvent, Excess, ModelRequest, NativeOutput};
use turnwheel::wires::Wire;

use crate::bridge;
use crate::protocol::EffectKind;

/// See the module. The key leaves this file and `turnwheel::http` only in a header.
pub(super) struct FetchModel {
    /// The index of the model among the host's, which determines the `fetch` to use.
    pub(super) index: u32,
    pub(super) wire: Rc<RefCell<Box<dyn Wire>>>,
    pub(super) key: Option<Rc<str>>,
    pub(super) price: Option<Price>,
    /// The length of the last request, which the next one is not much longer than.
    pub(super) last: Cell<usize>,
    /// Those of the last request.
    pub(super) secrets: LastSecrets,
}

impl StreamFn for FetchModel {
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

    #[cfg(feature = "server")]
    fn tapped(&self, tap: &Rc<dyn turnwheel::wires::Tap>) -> Option<Rc<dyn StreamFn>> {
        let wire: Box<dyn Wire> = Box::new(turnwheel::wires::TappedWire::new(self.wire.clone(), tap.clone()));
        Some(Rc::new(FetchModel {
            index: self.index,
            wire: Rc::new(RefCell::new(wire)),
            key: self.key.clone(),
            price: self.price,
            last: self.last.clone(),
            secrets: LastSecrets::default(),
        }))
    }

    fn stream(
        &self,
        mut request: ModelRequest,
        context: &AgentRunContext,
        _cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        if let Some(error) = ModelCall::nothing_to_send(&request) {
            return stream::iter([AssistantMessageEvent::Error(error)]).boxed_local();
        }
        let call = ModelCall::new(&mut request, context, self.key.as_ref(), self.price);
        // What is kept of the new messages, and the body, which grows by doubling.
        if !has_room(self.last.get().saturating_mul(2)) {
            return stream::iter([AssistantMessageEvent::Error(Excess::Memory.error())]).boxed_local();
        }
        let http = self.wire.borrow_mut().encode(&request);
        let call = call.sending(&http, &self.secrets);
        self.last.set(http.body.len());
        let mut effect = String::with_capacity(256);
        let mut object = ObjectWriter::new(&mut effect);
        object
            .fill(r#""kind":"$","url":"$""#, &[EffectKind::Http.as_str(), &http.url])
            .field("model", &self.index);
        let mut headers = ObjectWriter::new(object.key("headers"));
        for (name, value) in &http.headers {
            value.write_json(headers.key(name));
        }
        headers.end();
        if http.has_links {
            object.field("hasLinks", &true);
        }
        if !http.warnings.is_empty() {
            object.field("warnings", &http.warnings);
        }
        object.end();
        bridge::ask_http(effect, self.wire.clone(), http.body, call)
    }
}
