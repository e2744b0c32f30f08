//! Durable runs: each step of the driver is an effect, and `host.step` answers it with the record. The host asks for the work of a
//! step; the engine does the work, and sends the record to JavaScript, which gives it to the host.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::future::LocalBoxFuture;
use wasm_bindgen::prelude::*;

use turnwheel::approval::ToolDecision;
use turnwheel::data::table::Table;
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::ports::{ApprovalRequest, Step, StepEffect, Steps};
use turnwheel::question::QuestionKind;

use crate::bridge;
use crate::exports::answers::BridgeGuard;
use crate::instance::{next_handle, run_entry};
use crate::ports::{ask, effect, write_request};
use crate::protocol::EffectKind;

thread_local! {
    /// The steps that the hosts have not answered, by the numbers that their effects have.
    static OPEN: RefCell<Table<u32, Rc<OpenStep>>> = RefCell::default();
}

/// `host.step`, `host.wait` and `host.sleep`.
pub(super) struct JsSteps {
    waits: bool,
    sleeps: bool,
    is_ordered: bool,
    max_bytes: Option<usize>,
}

impl JsSteps {
    /// Reads `{ waits, sleeps, ordered?, maxBytes? }`.
    pub(super) fn of(value: &Value) -> Self {
        let flag = |key: &str| value.flag_at(key) == Some(true);
        JsSteps {
            waits: flag("waits"),
            sleeps: flag("sleeps"),
            is_ordered: flag("ordered"),
            max_bytes: value.number_at("maxBytes").and_then(|bytes| usize::try_from(bytes).ok()),
        }
    }
}

impl Steps for JsSteps {
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>> {
        let number = next_handle();
        let json = effect(EffectKind::Step, |object| {
            object.field("number", &number).field("name", step.name());
            let out = object.key("effect");
            match step.effect() {
                // JavaScript has the messages.
                StepEffect::Model { request } => {
                    out.push_str(r#"{"kind":"model","model":"#);
                    request.model.write_json(out);
                    out.push_str(r#","request":"#);
                    write_request(request, out);
                    out.push('}');
                }
                other => other.write_json(out),
            }
        });
        let open = Rc::new(OpenStep {
            step,
            work: RefCell::default(),
            told: RefCell::default(),
            stored: RefCell::default(),
            waker: RefCell::default(),
        });
        OPEN.with_borrow_mut(|steps| drop(steps.insert(number, open.clone())));
        tell(json);
        Box::pin(Stored { number, open })
    }

    fn wait(
        &self,
        name: &str,
        kind: QuestionKind,
        request: &ApprovalRequest,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let json = effect(EffectKind::Wait, |object| {
            object.field("name", name).field("about", kind.as_str()).field("id", &request.id);
            object.field("callId", &request.call_id).field("toolName", &request.tool_name);
            object.field("arguments", &request.arguments);
            object.field("requiresApproval", &request.requires_approval);
        });
        ask(json, ToolDecision::from_json)
    }

    fn waits(&self) -> bool {
        self.waits
    }

    fn sleep(&self, name: &str, ms: u64) -> Option<LocalBoxFuture<'static, ()>> {
        if !self.sleeps {
            return None;
        }
        let json = effect(EffectKind::BackOff, |object| {
            object.field("name", name).field("ms", &ms);
        });
        let slept = ask(json, |_| Ok(()));
        Some(Box::pin(async { drop(slept.await) }))
    }

    fn max_bytes(&self) -> Option<usize> {
        self.max_bytes
    }

    fn is_ordered(&self) -> bool {
        self.is_ordered
    }

    fn abort_entered(&self, reason: &str) {
        tell(effect(EffectKind::Abort, |object| {
            object.field("reason", reason);
        }));
    }

    fn state_entered(&self, key: &str, value: Option<&Value>) {
        tell(effect(EffectKind::State, |object| {
            object.field("key", key);
            if let Some(value) = value {
                object.field("value", value);
            }
        }));
    }
}

/// A step that the host has not answered.
struct OpenStep {
    step: Step,
    /// The work, from when the host asks for it until its record is told.
    work: RefCell<Option<LocalBoxFuture<'static, RawJson>>>,
    /// The record, once it is told.
    told: RefCell<Option<RawJson>>,
    /// What the host has given back.
    stored: RefCell<Option<Result<RawJson, String>>>,
    waker: RefCell<Option<Waker>>,
}

impl OpenStep {
    fn wake(&self) {
        let waker = self.waker.borrow().clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Tells JavaScript something that it does not answer at a slot.
fn tell(what: String) {
    if let Some(bridge) = bridge::current() {
        bridge.tell(what);
    }
}

/// What the host gives back for a step. Meanwhile the work is done that the host asks for.
struct Stored {
    number: u32,
    open: Rc<OpenStep>,
}

impl Future for Stored {
    type Output = Result<RawJson, String>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        *self.open.waker.borrow_mut() = Some(cx.waker().clone());
        let work = self.open.work.take();
        if let Some(mut work) = work {
            match work.as_mut().poll(cx) {
                Poll::Ready(record) => {
                    tell(effect(EffectKind::Record, |object| {
                        object.field("number", &self.number).field("record", &record);
                    }));
                    *self.open.told.borrow_mut() = Some(record);
                }
                Poll::Pending => *self.open.work.borrow_mut() = Some(work),
            }
        }
        self.open.stored.take().map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        OPEN.with_borrow_mut(|steps| drop(steps.remove(&self.number)));
    }
}

/// A new run is inside a call of a durable one, and so part of its journal: the run around it, and the slot of the call.
#[wasm_bindgen]
pub fn run_inside(handle: u32, around: u32, slot: u32) {
    let (Some(run), Some(around)) = (run_entry(handle), run_entry(around)) else { return };
    if let Ok(mut stream) = run.stream.try_borrow_mut() {
        stream.enter_journal(around.bridge.durable_of(slot).as_ref());
    }
}

/// The host asks for the work of a step, and counts from 1 how often it has done so; `attempt` is 0 if it does not count. The record
/// is told with a later `run_poll` of the outermost run. `handle` is that run if the caller polls it next; with 0 this wakes it.
#[wasm_bindgen]
pub fn step_work(handle: u32, number: u32, attempt: u32) {
    let _guard = run_entry(handle).map(BridgeGuard::of);
    let open = OPEN.with_borrow(|steps| steps.get(&number).cloned());
    let Some(open) = open else { return };
    let work = if attempt > 0 { open.step.work_as(attempt) } else { open.step.work() };
    *open.work.borrow_mut() = Some(work);
    open.wake();
}

/// The host has stored the record of a step, and gives it back as JSON; an empty text is the record that was told. The caller polls
/// the outermost run, `handle`, afterwards.
#[wasm_bindgen]
pub fn step_stored(handle: u32, number: u32, record: &str) {
    let _guard = run_entry(handle).map(BridgeGuard::of);
    let open = OPEN.with_borrow(|steps| steps.get(&number).cloned());
    let Some(open) = open else { return };
    let told = open.told.borrow().clone().filter(|_| record.is_empty());
    let stored = told.map_or_else(|| RawJson::parse(record).map_err(|error| error.to_string()), Ok);
    *open.stored.borrow_mut() = Some(stored);
    open.wake();
}

/// Whether a run only repeats what is stored: now, or in what its last `run_poll` told of, as long as that is being delivered.
#[wasm_bindgen]
pub fn run_is_replaying(handle: u32, is_delivering: bool) -> bool {
    let Some(run) = run_entry(handle) else { return false };
    if is_delivering {
        return run.is_replaying.get();
    }
    run.stream.try_borrow().is_ok_and(|stream| stream.is_replaying())
}

/// Nobody will replay a durable run, so it ends without its journal.
#[wasm_bindgen]
pub fn run_give_up(handle: u32) {
    if let Some(run) = run_entry(handle)
        && let Ok(mut stream) = run.stream.try_borrow_mut()
    {
        stream.give_up_journal();
    }
}

/// Returns the error of a run that has ended without an `agent_end`, as JSON: it could not go on in this process. Otherwise an
/// empty text.
#[wasm_bindgen]
pub fn run_failure(handle: u32) -> String {
    let Some(run) = run_entry(handle) else { return String::new() };
    let Ok(stream) = run.stream.try_borrow() else { return String::new() };
    let error = stream.result().and_then(|result| result.error.as_ref());
    error.map(|error| error.info().to_json()).unwrap_or_default()
}
