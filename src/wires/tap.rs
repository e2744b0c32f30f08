//! Who wants to see the bytes of answers, on their way to the decoder.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rules::secrets::Secrets;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest, NativeOutput};
use crate::words::error::ErrorInfo;

use super::{Decoder, Dialect, HttpRequest, Limits, Remarks, Wire};

/// The longest answer that is kept, in bytes.
const LONGEST: usize = 8 << 20;

/// How many calls with different headers are remembered.
const CALLS: usize = 8;

/// Sees the bytes of answers.
pub trait Tap {
    /// The time, in milliseconds since 1970.
    fn now(&self) -> u64;
    /// A call begins. Returns who is told of its bytes, once, when it is over.
    fn call(&self) -> Box<dyn FnOnce(Heard)>;
}

/// The bytes of one answer.
pub struct Heard {
    /// What decodes them.
    pub dialect: Dialect,
    /// When the call began, in milliseconds since 1970.
    pub began: u64,
    /// The reads, each with its time.
    pub reads: Vec<(u64, Vec<u8>)>,
    /// The number of bytes, also of those that are not kept because there are too many.
    pub size: usize,
    /// Whether the body came to its end, or as far as anybody reads.
    pub has_ended: bool,
    /// The status and the headers of an answer that is an error; its body is the only read.
    pub refusal: Option<(u16, Vec<(String, String)>)>,
    /// The secrets of the last calls.
    pub secrets: Vec<Rc<Secrets>>,
}

impl Heard {
    /// Whether there were more bytes than are kept.
    pub fn is_too_long(&self) -> bool {
        self.size > LONGEST
    }
}

/// A wire whose bytes somebody sees.
pub struct TappedWire {
    /// It keeps what it has encoded, so whoever calls without a tap uses the same one.
    inner: Rc<RefCell<Box<dyn Wire>>>,
    provider: String,
    tap: Rc<dyn Tap>,
    secrets: Vec<Rc<Secrets>>,
    /// The address and the headers of the last request.
    last: Option<(String, Vec<(String, String)>)>,
}

impl TappedWire {
    /// The same wire, whose bytes are seen.
    pub fn new(inner: Rc<RefCell<Box<dyn Wire>>>, tap: Rc<dyn Tap>) -> Self {
        let provider = inner.borrow().provider().to_owned();
        TappedWire { inner, provider, tap, secrets: Vec::new(), last: None }
    }
}

impl Wire for TappedWire {
    fn provider(&self) -> &str {
        &self.provider
    }

    fn encode(&mut self, request: &ModelRequest) -> HttpRequest {
        let http = self.inner.borrow_mut().encode(request);
        let is_known =
            self.last.as_ref().is_some_and(|(url, headers)| *url == http.url && *headers == http.headers);
        if !is_known {
            let mut secrets = Secrets::of_key(request.api_key.as_deref());
            secrets.add_request(&http.url, &http.headers);
            if self.secrets.len() >= CALLS {
                self.secrets.remove(0);
            }
            self.secrets.push(Rc::new(secrets));
            self.last = Some((http.url.clone(), http.headers.clone()));
        }
        http
    }

    fn native_output(&self, model: &str) -> Option<NativeOutput> {
        self.inner.borrow().native_output(model)
    }

    fn dialect(&self) -> Dialect {
        self.inner.borrow().dialect()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(TappedDecoder {
            inner: self.inner.borrow().decoder(),
            tap: self.tap.clone(),
            tell: Some(self.tap.call()),
            heard: Some(self.heard()),
        })
    }

    fn limits(&self) -> Limits {
        self.inner.borrow().limits()
    }

    fn error(
        &self,
        status: u16,
        header: &dyn Fn(&str) -> Option<String>,
        body: &[u8],
        now: u64,
    ) -> ErrorInfo {
        // What is looked at is what the error depends on.
        let seen = RefCell::new(Vec::new());
        let look = |name: &str| {
            let value = header(name)?;
            seen.borrow_mut().push((name.to_owned(), value.clone()));
            Some(value)
        };
        let error = self.inner.borrow().error(status, &look, body, now);
        let mut heard = self.heard();
        heard.refusal = Some((status, seen.take()));
        heard.size = body.len();
        heard.has_ended = true;
        if !heard.is_too_long() {
            heard.reads.push((now, body.to_vec()));
        }
        (self.tap.call())(heard);
        error
    }
}

impl TappedWire {
    fn heard(&self) -> Heard {
        Heard {
            dialect: self.inner.borrow().dialect(),
            began: self.tap.now(),
            reads: Vec::new(),
            size: 0,
            has_ended: false,
            refusal: None,
            secrets: self.secrets.clone(),
        }
    }
}

/// A decoder whose bytes somebody sees.
struct TappedDecoder {
    inner: Box<dyn Decoder>,
    tap: Rc<dyn Tap>,
    tell: Option<Box<dyn FnOnce(Heard)>>,
    heard: Option<Heard>,
}

impl TappedDecoder {
    /// The answer is over.
    fn close(&mut self, has_ended: bool) {
        if let (Some(tell), Some(mut heard)) = (self.tell.take(), self.heard.take()) {
            heard.has_ended = has_ended;
            // A call that was refused, or never answered, has no bytes here.
            if heard.size > 0 {
                tell(heard);
            }
        }
    }
}

impl Decoder for TappedDecoder {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<AssistantMessageEvent>) {
        if let Some(heard) = &mut self.heard {
            heard.size = heard.size.saturating_add(bytes.len());
            if heard.is_too_long() {
                heard.reads = Vec::new();
            } else {
                heard.reads.push((self.tap.now(), bytes.to_vec()));
            }
        }
        self.inner.feed(bytes, out);
        if self.inner.is_done() {
            self.close(true);
        }
    }

    fn finish(&mut self, out: &mut Vec<AssistantMessageEvent>) {
        self.close(true);
        self.inner.finish(out);
    }

    fn is_done(&self) -> bool {
        self.inner.is_done()
    }

    fn remarks(&self) -> Remarks {
        self.inner.remarks()
    }
}

impl Drop for TappedDecoder {
    fn drop(&mut self) {
        self.close(false);
    }
}
