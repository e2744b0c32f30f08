//! Models reached over HTTP. This file contains what is the same on every platform; on native platforms, it
//! also offers the model itself: an [`HttpModel`] over a [`Transport`], which is the host's HTTP client.
//!
//! ```
//! use std::rc::Rc;
//! use futures::{StreamExt, executor::block_on, stream};
//! use turnwheel::cancel::CancelToken;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::driver::agent_loop;
//! use turnwheel::http::{HttpModel, HttpResponse};
//! use turnwheel::ports::AgentRunContext;
//! use turnwheel::wires::{HttpRequest, WireOptions, wire};
//! use turnwheel::scripted::Clock;
//!
//! // With an HTTP client: post `request.body` to `request.url`, and hand on what comes.
//! let transport = async |request: HttpRequest| {
//!     assert_eq!(request.url, "https://api.openai.com/v1/chat/completions");
//!     let said = br#"data: {"choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}"#;
//!     let body = stream::iter([Ok([said, &b"\n\ndata: [DONE]\n\n"[..]].concat())]).boxed_local();
//!     Ok::<_, String>(HttpResponse { status: 200, headers: Vec::new(), body })
//! };
//! let clock = Rc::new(Clock::default());
//! let wire = wire("openai-chat", WireOptions::default())?;
//! let model = HttpModel::new(wire, Rc::new(transport), clock.clone()).with_key("sk-test").model("gpt-5-mini");
//!
//! let who = AgentRunContext::new("run-1", "session-1");
//! let run = agent_loop(vec!["Hi".into()], AgentLoopConfig::new(model, clock), who, CancelToken::new());
//! assert_eq!(block_on(run.finish()).text, "Hello.");
//! # Ok::<(), String>(())
//! ```

use std::rc::Rc;

use crate::host::ports::AgentRunContext;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::price::Price;

mod model;
pub use model::{HttpModel, HttpResponse, Transport};

/// Anything shorter is not a secret but a word, such as `none` or `ollama`, and may be part of other words.
const SHORTEST_SECRET: usize = 8;

/// What a single call uses of the model. The key leaves it only in a header.
pub struct ModelCall {
    key: Option<Rc<str>>,
    price: Option<Price>,
}

impl ModelCall {
    /// Fills in what the request does not say yet: the model's own `key`, if the host gave none for this
    /// turn.
    pub fn new(
        request: &mut ModelRequest,
        context: &AgentRunContext,
        key: Option<&Rc<str>>,
        price: Option<Price>,
    ) -> Self {
        // A key read from a file often ends with a line break, which is not allowed in a header.
        let key = request.api_key.take().or_else(|| key.cloned());
        let key = key.map(|key| if key.trim().len() < key.len() { key.trim().into() } else { key });
        // An empty key counts as no key, because a server that needs none may refuse an empty one.
        let key = key.filter(|key: &Rc<str>| !key.is_empty());
        request.api_key.clone_from(&key);
        request.session_id = Some(context.session_id.clone());
        ModelCall { key, price }
    }

    /// Returns the event as the loop sees it.
    pub fn loop_event(&self, event: AssistantMessageEvent) -> AssistantMessageEvent {
        without_key(priced(event, self.price), self.key.as_deref())
    }
}

/// Adds the cost to a usage.
fn priced(mut event: AssistantMessageEvent, price: Option<Price>) -> AssistantMessageEvent {
    use AssistantMessageEvent as E;
    if let (E::Usage(usage) | E::Done { usage: Some(usage), .. }, Some(price)) = (&mut event, price) {
        usage.cost = Some(price.of(usage));
    }
    event
}

/// Removes the key from an error. Servers repeat the key that they refuse, and so does a host that cannot
/// send it.
fn without_key(event: AssistantMessageEvent, key: Option<&str>) -> AssistantMessageEvent {
    match (event, key) {
        (AssistantMessageEvent::Error(mut error), Some(key)) if key.len() >= SHORTEST_SECRET => {
            let mask = |text: &mut String| *text = crate::data::text::replace(text, key, "[key]");
            mask(&mut error.message);
            if let Some(provider) = &mut error.provider {
                provider.kind.iter_mut().chain(&mut provider.code).for_each(mask);
            }
            AssistantMessageEvent::Error(error)
        }
        (event, _) => event,
    }
}
