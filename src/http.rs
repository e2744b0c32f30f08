//! A model behind a wire. What is the same wherever the request leaves from stands here; natively, the model itself:
//! an [`HttpModel`] over a [`Transport`], which is the host's HTTP client.
//!
//! ```
//! use std::rc::Rc;
//! use futures::{StreamExt, executor::block_on, stream};
//! use turnwheel::cancel::CancelToken;
//! use turnwheel::config::AgentLoopConfig;
//! use turnwheel::driver::agent_loop;
//! use turnwheel::http::{HttpModel, HttpResponse};
//! use turnwheel::ports::AgentRunContext;
//! use turnwheel::provider::{HttpRequest, WireOptions, wire};
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

use crate::ports::AgentRunContext;
use crate::price::Price;
use crate::stream::{AssistantMessageEvent, ModelRequest};

#[cfg(not(target_os = "unknown"))]
mod model;
#[cfg(not(target_os = "unknown"))]
pub use model::{HttpModel, HttpResponse, Transport};

/// What is shorter is no secret but a word, such as `none` or `ollama`, and other words hold it.
const SHORTEST_SECRET: usize = 8;

/// One call's part of what belongs to the model. The key never leaves it but in a header.
pub(crate) struct Call {
    key: Option<Rc<str>>,
    price: Option<Price>,
}

impl Call {
    /// Puts into the request what it does not say yet: the model's own `key`, where the host gave none for this turn.
    pub(crate) fn new(
        request: &mut ModelRequest,
        context: &AgentRunContext,
        key: Option<&Rc<str>>,
        price: Option<Price>,
    ) -> Self {
        // A key from a file often has a line's end behind it, which no header takes.
        let key = request.api_key.take().or_else(|| key.cloned());
        let key = key.map(|key| if key.trim().len() < key.len() { key.trim().into() } else { key });
        // One that was not set anywhere is none: a server without keys may refuse an empty one.
        let key = key.filter(|key: &Rc<str>| !key.is_empty());
        request.api_key.clone_from(&key);
        request.session_id = Some(context.session_id.clone());
        Call { key, price }
    }

    /// What the loop gets to see of an event.
    pub(crate) fn told(&self, event: AssistantMessageEvent) -> AssistantMessageEvent {
        without_key(priced(event, self.price), self.key.as_deref())
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
