//! The state of one wasm instance: its agents and runs by their handles, and what is shared by all exports.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use wasm_bindgen::prelude::*;

use turnwheel::agent::{Agent, Receipt};
use turnwheel::cancel::CancelToken;
use turnwheel::data::table::Table;
use turnwheel::driver::{AgentStream, Published};
use turnwheel::error::{AgentError, ErrorKind};
use turnwheel::json::{FromJson, ToJson, Value};
use turnwheel::message::AgentMessage;

use crate::bridge::Bridge;
use crate::known::Known;
use crate::outbox::{Outbox, Sent};
use crate::rules::{Cached, Host};
use crate::settings::Models;

/// The state of one wasm instance.
#[derive(Default)]
pub(crate) struct Instance {
    pub(crate) agents: Table<u32, Rc<AgentEntry>>,
    pub(crate) runs: Table<u32, Rc<RunEntry>>,
    pub(crate) handles: u32,
}

pub(crate) struct AgentEntry {
    pub(crate) agent: Agent,
    pub(crate) host: Host,
    pub(crate) cached: Cached,
    pub(crate) models: Rc<Models>,
    pub(crate) known: Rc<Known>,
    /// The fate of posted messages by receipt number, until JavaScript has been told.
    pub(crate) settled: Rc<RefCell<Vec<(u32, Receipt)>>>,
}

pub(crate) struct RunEntry {
    pub(crate) agent: Rc<AgentEntry>,
    pub(crate) stream: RefCell<AgentStream>,
    /// The run's own published state: the agent may be reset while the run is ending.
    pub(crate) published: Rc<RefCell<Published>>,
    pub(crate) bridge: Rc<Bridge>,
    pub(crate) cancel: CancelToken,
    pub(crate) sent: RefCell<Sent>,
    pub(crate) waker: Waker,
    pub(crate) woken: Arc<RunWaker>,
    /// Whether what the last poll told of is repeated from a journal.
    #[cfg(feature = "server")]
    pub(crate) is_replaying: Cell<bool>,
    /// The time of a journal that JavaScript was told last.
    #[cfg(feature = "server")]
    pub(crate) time: Cell<u64>,
}

thread_local! {
    pub(crate) static INSTANCE: RefCell<Instance> = RefCell::default();
    /// The buffer that JavaScript writes response bytes to.
    pub(crate) static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    pub(crate) static OUTBOX: RefCell<Outbox> = RefCell::default();
    pub(crate) static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Records that a run wants to be polled. A timer fires outside of any call from JavaScript; then
/// JavaScript is asked to poll in a microtask.
pub(crate) struct RunWaker {
    pub(crate) handle: u32,
    pub(crate) polling: AtomicBool,
    pub(crate) woken: AtomicBool,
}

impl Wake for RunWaker {
    fn wake(self: Arc<Self>) {
        let first = !self.woken.swap(true, Ordering::Relaxed);
        if first && !self.polling.load(Ordering::Relaxed) {
            // The host only schedules the poll: it calls back when this stack is empty.
            if let Some(run) = run_entry(self.handle) {
                run.agent.host.wake(self.handle);
            }
        }
    }
}

pub(crate) fn now() -> u64 {
    NOW.with(Cell::get)
}

pub(crate) fn set_now(now: f64) {
    // Milliseconds since 1970 are far below the integers that a float cannot represent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    NOW.with(|cell| cell.set(now as u64));
}

pub(crate) fn thrown(error: &AgentError) -> JsValue {
    JsValue::from_str(&error.info().to_json())
}

pub(crate) fn misuse(text: impl Into<String>) -> JsValue {
    thrown(&AgentError::new(ErrorKind::Misuse, text))
}

/// Parses a value from JavaScript; its parts may each be nested to the limit themselves.
pub(crate) fn parse(text: &str) -> Result<Value, JsValue> {
    Value::parse_container(text).map_err(|error| misuse(error.to_string()))
}

pub(crate) fn read_messages(json: &str) -> Result<Vec<AgentMessage>, JsValue> {
    Vec::<AgentMessage>::from_json(&parse(json)?).map_err(|text| misuse(["messages: ", &text].concat()))
}

pub(crate) fn run_entry(handle: u32) -> Option<Rc<RunEntry>> {
    INSTANCE.with(|instance| instance.try_borrow().ok()?.runs.get(&handle).cloned())
}

pub(crate) fn agent_entry(handle: u32) -> Result<Rc<AgentEntry>, JsValue> {
    let found = INSTANCE.with(|instance| instance.borrow().agents.get(&handle).cloned());
    found.ok_or_else(|| misuse("the agent was disposed of"))
}

pub(crate) fn next_handle() -> u32 {
    INSTANCE.with(|instance| {
        let mut instance = instance.borrow_mut();
        instance.handles += 1;
        instance.handles
    })
}
