//! The bridge of a run: effects are left here for JavaScript, and their answers come in here. Each effect
//! has a slot, and a future waits at that slot.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::stream::LocalBoxStream;
use futures::{Stream, StreamExt};

use turnwheel::data::table::Table;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::http::{ModelCall, refusal};
use turnwheel::json::{FromJson, RawJson, Value};
use turnwheel::message::AgentMessage;
use turnwheel::secrets::Secrets;
use turnwheel::stream::{AssistantMessageEvent, Excess};
use turnwheel::tool::{Ask, ChildEvent, Updates};
use turnwheel::wires::{Decoder, Wire};

use crate::call::Call;
use crate::known::Known;
use crate::outbox::Outbox;
use crate::protocol::DeltaKind;
use crate::room;
use crate::settings::Models;

/// Identifies a slot. Never reused within a run.
pub(super) type SlotId = u32;

/// The bridge of one run to JavaScript; see the module.
pub(super) struct Bridge {
    slots: RefCell<Table<SlotId, Slot>>,
    next: Cell<SlotId>,
    /// What JavaScript must be told, in order.
    outgoing: RefCell<Vec<Outgoing>>,
    /// Whether what is asked now is asked for a summary.
    sums: Cell<bool>,
    /// What tools must not show.
    pub(super) known: Rc<Known>,
    models: Rc<Models>,
    /// The history as JavaScript knows it.
    pub(super) mirror: RefCell<Vec<AgentMessage>>,
}

enum Outgoing {
    Effect(SlotId, HostEffect),
    Cancel(SlotId),
}

/// A task for JavaScript.
pub(super) enum HostEffect {
    /// A JSON object with a `kind`.
    Json(String),
    /// An HTTP request as JSON. JavaScript does not parse it again if it is the same as the last one.
    Http(String),
    /// A tool's name and the call's id. JavaScript has the arguments already, from their validation.
    Tool(Rc<str>, Rc<str>),
}

impl HostEffect {
    /// Whether it is a hook that hears what has happened: it is called whatever has become of the run since.
    fn tells_of_an_end(&self) -> bool {
        matches!(self, HostEffect::Json(text) if text.starts_with(r#"{"kind":"hook","stage":"after"#))
    }
}

struct Slot {
    kind: SlotKind,
    waker: Option<Waker>,
}

enum SlotKind {
    Once { answer: Option<Result<Value, String>>, call: Option<Call> },
    Stream(Incoming),
}

/// A model's answer that is coming in.
#[derive(Default)]
struct Incoming {
    events: VecDeque<AssistantMessageEvent>,
    ended: bool,
    http: Option<HttpAnswer>,
    /// What must stand in nothing that the host threw.
    secrets: Rc<Secrets>,
}

impl Incoming {
    /// The answer ends here: what has come and was not looked at is dropped.
    fn out_of_memory(&mut self) {
        *self = Incoming { ended: true, ..Incoming::default() };
        self.events.push_back(AssistantMessageEvent::Error(Excess::Memory.error()));
    }
}

struct HttpAnswer {
    wire: Rc<RefCell<Box<dyn Wire>>>,
    decoder: Box<dyn Decoder>,
    body: Option<Vec<u8>>,
}

thread_local! {
    /// The bridge of the run that is being polled.
    static CURRENT: RefCell<Option<Rc<Bridge>>> = const { RefCell::new(None) };
    static SCRATCH: RefCell<Vec<AssistantMessageEvent>> = const { RefCell::new(Vec::new()) };
}

/// Runs `work` while ports leave their effects at this bridge.
pub(super) fn with<T>(bridge: &Rc<Bridge>, work: impl FnOnce() -> T) -> T {
    let before = CURRENT.with(|current| current.replace(Some(bridge.clone())));
    let result = work();
    CURRENT.with(|current| current.replace(before));
    result
}

/// Returns the bridge of the run that is being polled.
pub(super) fn current() -> Option<Rc<Bridge>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Runs `work`, which asks for a summary.
pub(super) fn summing<T>(work: impl FnOnce() -> T) -> T {
    let bridge = current();
    let set = |sums: bool| bridge.iter().for_each(|bridge| bridge.sums.set(sums));
    set(true);
    let result = work();
    set(false);
    result
}

/// Leaves an effect and waits for its answer.
pub(super) fn ask(effect: HostEffect, call: Option<Call>) -> PendingAnswer {
    let bridge = current();
    let slot = bridge.as_ref().map(|bridge| bridge.add_slot(SlotKind::Once { answer: None, call }, effect));
    PendingAnswer { bridge, slot: slot.unwrap_or(0), done: false }
}

/// Leaves an effect that is answered with a stream of events.
pub(super) fn ask_stream(effect: String, call: ModelCall) -> EventStream {
    events(HostEffect::Json(effect), Incoming::default(), call)
}

/// Leaves an HTTP request. The wire decodes the bytes of the response.
pub(super) fn ask_http(
    effect: String,
    wire: Rc<RefCell<Box<dyn Wire>>>,
    body: Vec<u8>,
    call: ModelCall,
) -> EventStream {
    let decoder = wire.borrow().decoder();
    let http = Some(HttpAnswer { wire, decoder, body: Some(body) });
    events(HostEffect::Http(effect), Incoming { http, ..Incoming::default() }, call)
}

/// What the loop sees of an answer.
type EventStream = LocalBoxStream<'static, AssistantMessageEvent>;

fn events(effect: HostEffect, mut incoming: Incoming, call: ModelCall) -> EventStream {
    let bridge = current();
    incoming.secrets = call.secrets();
    if let Some(bridge) = &bridge {
        bridge.known.add_sent(&incoming.secrets);
    }
    let slot = bridge.as_ref().map(|bridge| bridge.add_slot(SlotKind::Stream(incoming), effect));
    call.answer(PendingEvents { bridge, slot: slot.unwrap_or(0), done: false }).boxed_local()
}

impl Bridge {
    pub(super) fn new(history: Vec<AgentMessage>, known: Rc<Known>, models: Rc<Models>) -> Self {
        Bridge {
            sums: Cell::default(),
            known,
            models,
            slots: RefCell::default(),
            next: Cell::new(1),
            outgoing: RefCell::default(),
            mirror: RefCell::new(history),
        }
    }

    fn add_slot(&self, kind: SlotKind, mut effect: HostEffect) -> SlotId {
        if let (true, HostEffect::Json(text) | HostEffect::Http(text)) = (self.sums.get(), &mut effect) {
            text.pop();
            text.push_str(",\"summary\":true}");
        }
        let slot = self.next.get();
        self.next.set(slot + 1);
        self.slots.borrow_mut().insert(slot, Slot { kind, waker: None });
        self.outgoing.borrow_mut().push(Outgoing::Effect(slot, effect));
        slot
    }

    /// Moves what was left into the batch. An effect that was dropped before it got here is left out.
    pub(super) fn flush(&self, outbox: &mut Outbox) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.is_empty() {
            return;
        }
        for item in outgoing.iter() {
            match item {
                Outgoing::Effect(slot, effect) => outbox.effect(*slot, effect),
                Outgoing::Cancel(slot) => outbox.cancel(*slot),
            }
        }
        outgoing.clear();
    }

    fn drop_slot(&self, slot: SlotId) {
        if self.slots.borrow_mut().remove(&slot).is_none() {
            return;
        }
        let mut outgoing = self.outgoing.borrow_mut();
        let unsent = outgoing.iter().position(
            |item| matches!(item, Outgoing::Effect(id, effect) if *id == slot && !effect.tells_of_an_end()),
        );
        match unsent {
            Some(at) => drop(outgoing.remove(at)),
            None => outgoing.push(Outgoing::Cancel(slot)),
        }
    }

    /// Takes what came in at a slot and wakes its future. Does nothing if the slot is gone.
    fn receive(&self, slot: SlotId, take: impl FnOnce(&mut SlotKind)) {
        let waker = match self.slots.borrow_mut().get_mut(&slot) {
            Some(slot) => {
                take(&mut slot.kind);
                slot.waker.take()
            }
            None => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn receive_stream(&self, slot: SlotId, take: impl FnOnce(&mut Incoming)) {
        self.receive(slot, |kind| {
            if let SlotKind::Stream(incoming) = kind {
                take(incoming);
            }
        });
    }

    pub(super) fn resolve(&self, slot: SlotId, result: Result<Value, String>) {
        self.receive(slot, |kind| match kind {
            SlotKind::Once { answer, .. } => *answer = Some(result),
            SlotKind::Stream(incoming) => {
                let text = result.err().unwrap_or_else(|| "the stream was answered at once".to_owned());
                let info = Value::parse(&text).ok().and_then(|value| ErrorInfo::from_json(&value).ok());
                let info = info.unwrap_or_else(|| ErrorInfo::new(ErrorKind::Unknown, text));
                incoming.events.push_back(AssistantMessageEvent::Error(info));
                incoming.ended = true;
            }
        });
    }

    pub(super) fn update(&self, slot: SlotId, mut update: String) {
        if let Some(updates) = self.updates(slot) {
            self.known.mask(&self.models, &mut update);
            updates.send(RawJson::parse(&update).unwrap_or_else(|_| RawJson::string(&update)));
        }
    }

    /// Masks the secrets of the agent in what a tool says.
    pub(super) fn mask_result(&self, slot: SlotId, result: &mut String) {
        if self.updates(slot).is_some() {
            self.known.mask(&self.models, result);
        }
    }

    /// Masks the secrets of the agent in what a rule of the host throws.
    pub(super) fn mask_rule(&self, text: &mut String) {
        self.known.mask(&self.models, text);
    }

    /// Masks the secrets of the agent in what a function of the host throws. What a model call throws is masked on its way.
    pub(super) fn mask_failure(&self, slot: SlotId, reason: &mut String) {
        if let Some(Slot { kind: SlotKind::Once { .. }, .. }) = self.slots.borrow().get(&slot) {
            self.known.mask(&self.models, reason);
        }
    }

    /// A tool asks a person. The host gives the answer to the tool itself.
    pub(super) fn ask(&self, slot: SlotId, ask: Ask) {
        if let Some(updates) = self.updates(slot) {
            updates.post_ask(ask);
        }
    }

    pub(super) fn subagent_event(&self, slot: SlotId, event: ChildEvent) {
        if let Some(updates) = self.updates(slot) {
            updates.event(event);
        }
    }

    fn updates(&self, slot: SlotId) -> Option<Updates> {
        self.of_call(slot, |call| call.updates.clone())
    }

    /// Where an agent inside a call takes its steps.
    #[cfg(feature = "server")]
    pub(super) fn durable_of(&self, slot: SlotId) -> Option<Rc<dyn std::any::Any>> {
        self.of_call(slot, |call| call.durable.clone()).flatten()
    }

    fn of_call<T>(&self, slot: SlotId, read: impl FnOnce(&Call) -> T) -> Option<T> {
        match self.slots.borrow().get(&slot) {
            Some(Slot { kind: SlotKind::Once { call: Some(call), .. }, .. }) => Some(read(call)),
            _ => None,
        }
    }

    /// Tells JavaScript something that it does not answer.
    #[cfg(feature = "server")]
    pub(super) fn tell(&self, what: String) {
        self.outgoing.borrow_mut().push(Outgoing::Effect(0, HostEffect::Json(what)));
    }

    /// Changes the session state for a tool; without a value the key is deleted. Does nothing
    /// once the call has ended.
    pub(super) fn set_state(&self, slot: SlotId, key: &str, value: &str) {
        let Some(state) = self.of_call(slot, |call| call.state.clone()) else { return };
        match Value::parse(value) {
            Ok(value) => state.set(key, value),
            Err(_) => state.delete(key),
        }
    }

    pub(super) fn feed(&self, slot: SlotId, bytes: &[u8]) {
        if !room::is_left(bytes.len()) {
            return self.receive_stream(slot, Incoming::out_of_memory);
        }
        let mut events = SCRATCH.with(|scratch| std::mem::take(&mut *scratch.borrow_mut()));
        self.receive_stream(slot, |incoming| {
            if let Some(http) = &mut incoming.http {
                http.decoder.feed(bytes, &mut events);
                if events.is_empty() {
                    // Comments and incomplete events are signs of life too.
                    events.push(AssistantMessageEvent::Ping);
                }
            }
            events.drain(..).for_each(|event| incoming.events.push_back(event));
        });
        SCRATCH.with(|scratch| *scratch.borrow_mut() = events);
    }

    pub(super) fn feed_end(&self, slot: SlotId) {
        self.receive_stream(slot, |incoming| {
            let mut events = Vec::new();
            if let Some(http) = &mut incoming.http {
                http.decoder.finish(&mut events);
            }
            events.into_iter().for_each(|event| incoming.events.push_back(event));
            incoming.ended = true;
        });
    }

    pub(super) fn refuse(&self, slot: SlotId, status: u16, headers: &Value, body: &[u8]) {
        self.receive_stream(slot, |incoming| {
            if let Some(http) = &incoming.http {
                let header = |name: &str| headers.get(name).and_then(Value::as_str).map(str::to_owned);
                let (wire, now) = (http.wire.borrow(), crate::instance::now());
                let error = refusal(wire.as_ref(), &incoming.secrets, status, &header, body, now);
                drop(wire);
                incoming.events.push_back(AssistantMessageEvent::Error(error));
            }
            incoming.ended = true;
        });
    }

    pub(super) fn stream_event(&self, slot: SlotId, event: &str) {
        self.receive_stream(slot, |incoming| match Value::parse(event) {
            Ok(Value::Null) => incoming.ended = true,
            read => {
                let read = read.map_err(|error| error.to_string());
                let event = read.and_then(|value| AssistantMessageEvent::from_json(&value));
                incoming.events.push_back(event.unwrap_or_else(|text| {
                    let text = ["the model's streamFn yielded a bad event: ", &text].concat();
                    AssistantMessageEvent::Error(ErrorInfo::new(ErrorKind::Unknown, text))
                }));
            }
        });
    }

    pub(super) fn stream_delta(&self, slot: SlotId, kind: u32, index: u32, delta: String) {
        if !room::is_left(delta.len()) {
            return self.receive_stream(slot, Incoming::out_of_memory);
        }
        self.receive_stream(slot, |incoming| {
            incoming.events.push_back(match kind {
                DeltaKind::TEXT => AssistantMessageEvent::TextDelta { index, delta },
                DeltaKind::THINKING => AssistantMessageEvent::ThinkingDelta { index, delta },
                DeltaKind::TOOL_CALL => AssistantMessageEvent::ToolCallDelta { index, delta },
                _ => return,
            });
        });
    }

    /// Masks a text of an error that the host threw. What is thrown instead of a key may speak of one that nobody knows.
    pub(super) fn masked(&self, text: String, is_key: bool) -> String {
        if is_key { Secrets::default().mask_words(&text) } else { self.known.masked(&self.models, text) }
    }

    pub(super) fn take_body(&self, slot: SlotId) -> Vec<u8> {
        match self.slots.borrow_mut().get_mut(&slot) {
            Some(Slot { kind: SlotKind::Stream(Incoming { http: Some(http), .. }), .. }) => {
                http.body.take().unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

/// The future answer of an effect.
pub(super) struct PendingAnswer {
    bridge: Option<Rc<Bridge>>,
    slot: SlotId,
    done: bool,
}

impl Future for PendingAnswer {
    type Output = Result<Value, String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(bridge) = self.bridge.clone() else {
            return Poll::Ready(Err("nobody is there to answer".to_owned()));
        };
        let mut slots = bridge.slots.borrow_mut();
        let Some(slot) = slots.get_mut(&self.slot) else { return Poll::Pending };
        let SlotKind::Once { answer, .. } = &mut slot.kind else { return Poll::Pending };
        match answer.take() {
            Some(answer) => {
                slots.remove(&self.slot);
                self.done = true;
                drop(slots);
                Poll::Ready(answer)
            }
            None => {
                slot.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let (false, Some(bridge)) = (self.done, &self.bridge) {
            bridge.drop_slot(self.slot);
        }
    }
}

/// The events of a model call.
struct PendingEvents {
    bridge: Option<Rc<Bridge>>,
    slot: SlotId,
    done: bool,
}

impl Stream for PendingEvents {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        let Some(bridge) = &self.bridge else { return Poll::Ready(None) };
        let mut slots = bridge.slots.borrow_mut();
        let Some(slot) = slots.get_mut(&self.slot) else { return Poll::Ready(None) };
        let SlotKind::Stream(incoming) = &mut slot.kind else { return Poll::Ready(None) };
        if let Some(event) = incoming.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if incoming.ended {
            slots.remove(&self.slot);
            drop(slots);
            self.done = true;
            return Poll::Ready(None);
        }
        if slot.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            slot.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl Drop for PendingEvents {
    fn drop(&mut self) {
        if let (false, Some(bridge)) = (self.done, &self.bridge) {
            bridge.drop_slot(self.slot);
        }
    }
}
