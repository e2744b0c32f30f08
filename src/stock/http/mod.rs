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

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;

use futures::Stream;

use crate::data::text;
use crate::host::ports::AgentRunContext;
use crate::rules::secrets::Secrets;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::wires::{HttpRequest, Wire};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::price::Price;

mod answer;
mod model;
pub use answer::Answer;
pub use model::{HttpModel, HttpResponse, Transport};

/// What a single call uses of the model. The key leaves it only in a header.
pub struct ModelCall {
    key: Option<Rc<str>>,
    secrets: OnceCell<Rc<Secrets>>,
    price: Option<Price>,
}

/// The secrets of the request that a model sent last: most are those of the next one, too.
#[derive(Default)]
pub struct LastSecrets(RefCell<Option<Sent>>);

struct Sent {
    key: Option<Rc<str>>,
    url: String,
    headers: Vec<(String, String)>,
    secrets: Rc<Secrets>,
}

impl LastSecrets {
    fn of(&self, key: Option<&Rc<str>>, request: &HttpRequest) -> Rc<Secrets> {
        let mut last = self.0.borrow_mut();
        let is_same = |sent: &Sent| {
            sent.key.as_ref() == key && sent.url == request.url && sent.headers == request.headers
        };
        if let Some(sent) = last.as_ref().filter(|sent| is_same(sent)) {
            return sent.secrets.clone();
        }
        let mut secrets = Secrets::of_key(key.map(|key| &**key));
        secrets.add_request(&request.url, &request.headers);
        let secrets = Rc::new(secrets);
        *last = Some(Sent {
            key: key.cloned(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            secrets: secrets.clone(),
        });
        secrets
    }
}

impl ModelCall {
    /// Returns the error of a request that has no message, which every server refuses with words of its own.
    pub fn nothing_to_send(request: &ModelRequest) -> Option<ErrorInfo> {
        let text = "there is no message to send: the context transformers or `convert_to_llm` left none";
        request.messages.is_empty().then(|| ErrorInfo::new(ErrorKind::InvalidRequest, text))
    }

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
        ModelCall { key, secrets: OnceCell::new(), price }
    }

    /// Adds the secrets that stand in the headers and the address of the request to send. `last` are those of the
    /// same model's request before.
    #[must_use]
    pub fn sending(self, request: &HttpRequest, last: &LastSecrets) -> Self {
        let secrets = last.of(self.key.as_ref(), request).into();
        ModelCall { secrets, ..self }
    }

    /// The secrets of the call.
    pub fn secrets(&self) -> Rc<Secrets> {
        self.all_secrets().clone()
    }

    fn all_secrets(&self) -> &Rc<Secrets> {
        self.secrets.get_or_init(|| Rc::new(Secrets::of_key(self.key.as_deref())))
    }

    /// Returns the events as the loop sees them: priced, and without a secret of the call.
    ///
    /// In an answer, a secret is masked wherever it stands (texts, thinking, arguments, ids, signatures), also if it is
    /// split over pieces of a block. Until it is clear whether a piece ends with the beginning of a secret, that end is
    /// held back. In an error, it is masked in all texts.
    pub fn answer<S>(self, events: S) -> Answer<S>
    where
        S: Stream<Item = AssistantMessageEvent> + Unpin,
    {
        Answer::new(events, self)
    }
}

/// Returns the error that a response with a status other than 2xx means. What the server repeats of the secrets is
/// masked before anything of the body is read or cut.
pub fn refusal(
    wire: &dyn Wire,
    secrets: &Secrets,
    status: u16,
    header: &dyn Fn(&str) -> Option<String>,
    body: &[u8],
    now: u64,
) -> ErrorInfo {
    match secrets.masked(&text::lossy(body)) {
        Some(masked) => wire.error(status, header, masked.as_bytes(), now),
        None => wire.error(status, header, body, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_request_are_found_once_for_all_that_are_alike() {
        let request = |host: &str, token: &str| HttpRequest {
            url: format!("https://{host}/v1"),
            headers: vec![("x-token".to_owned(), token.to_owned())],
            body: Vec::new(),
            has_links: false,
            warnings: Vec::new(),
        };
        let last = LastSecrets::default();
        let key: Rc<str> = "no-real-key-1".into();
        let one = last.of(Some(&key), &request("a.test", "no-real-token-1"));
        assert!(Rc::ptr_eq(
            &one,
            &last.of(Some(&"no-real-key-1".into()), &request("a.test", "no-real-token-1"))
        ));

        let text = "no-real-key-1 no-real-key-2 no-real-token-1 no-real-token-2 no-real-word-1";
        let shown = |key: Option<&str>, request: &HttpRequest| {
            last.of(key.map(Into::into).as_ref(), request).masked(text).unwrap_or_default()
        };
        let renewed = shown(Some("no-real-key-2"), &request("a.test", "no-real-token-1"));
        assert_eq!(renewed, "no-real-key-1 [key] [key] no-real-token-2 no-real-word-1");
        let other = shown(Some("no-real-key-2"), &request("a.test", "no-real-token-2"));
        assert_eq!(other, "no-real-key-1 [key] no-real-token-1 [key] no-real-word-1");
        let elsewhere = shown(None, &request("me:no-real-word-1@a.test", "no-real-token-2"));
        assert_eq!(elsewhere, "no-real-key-1 no-real-key-2 no-real-token-1 [key] [key]");
    }
}
