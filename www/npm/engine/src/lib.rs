//! The boundary to JavaScript: free functions over handles. No exported class, no `&mut self`,
//! and no borrow held while JavaScript runs, except inside the synchronous rules, which can
//! reach nothing but the inbox.
//!
//! JavaScript drives: it calls in with bytes, answers and mail, and reads one batch of what happened
//! (see `outbox`). It notifies its listeners, then calls `run_poll`, which continues to the next
//! effect. DESIGN.md says why.

#![allow(unsafe_code, reason = "what wasm-bindgen generates needs it; nothing here is written with it")]
#![allow(unreachable_pub, reason = "what is exported to JavaScript must be `pub`")]

mod bridge;
mod http;
mod outbox;
mod ports;
mod rules;
mod settings;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use wasm_bindgen::prelude::*;

use turnwheel::agent::{Agent, Receipt};
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::data::table::Table;
use turnwheel::driver::{AgentStream, Next, Published};
use turnwheel::error::{AgentError, ErrorKind};
use turnwheel::json::{FromJson, ObjectWriter, ToJson, Value};
use turnwheel::message::AgentMessage;
use turnwheel::ports::AgentRunContext;

use bridge::{Bridge, SlotId};
use outbox::{Outbox, Sent};
use rules::{Cached, Host};
use settings::Models;

/// Smaller and faster than std's allocator (DESIGN.md).
#[cfg(target_family = "wasm")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

/// The state of one wasm instance.
#[derive(Default)]
struct Instance {
    agents: Table<u32, Rc<AgentEntry>>,
    runs: Table<u32, Rc<RunEntry>>,
    handles: u32,
}

struct AgentEntry {
    agent: Agent,
    host: Host,
    cached: Cached,
    models: Models,
    /// The fate of posted messages by receipt number, until JavaScript has been told.
    settled: Rc<RefCell<Vec<(u32, Receipt)>>>,
}

struct RunEntry {
    agent: Rc<AgentEntry>,
    stream: RefCell<AgentStream>,
    /// The run's own published state: the agent may be reset while the run is ending.
    published: Rc<RefCell<Published>>,
    bridge: Rc<Bridge>,
    cancel: CancelToken,
    sent: RefCell<Sent>,
    waker: Waker,
    woken: Arc<RunWaker>,
}

thread_local! {
    static INSTANCE: RefCell<Instance> = RefCell::default();
    /// The buffer that JavaScript writes response bytes to.
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTBOX: RefCell<Outbox> = RefCell::default();
    static NOW: Cell<u64> = const { Cell::new(0) };
}

/// Records that a run wants to be polled. A timer fires outside of any call from JavaScript; then
/// JavaScript is asked to poll in a microtask.
struct RunWaker {
    handle: u32,
    polling: AtomicBool,
    woken: AtomicBool,
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

fn set_now(now: f64) {
    // Milliseconds since 1970 are far below the integers that a float cannot represent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
    NOW.with(|cell| cell.set(now as u64));
}

fn thrown(error: &AgentError) -> JsValue {
    JsValue::from_str(&error.info().to_json())
}

fn misuse(text: impl Into<String>) -> JsValue {
    thrown(&AgentError::new(ErrorKind::Misuse, text))
}

/// Parses a value from JavaScript; its parts may each be nested to the limit themselves.
fn parse(text: &str) -> Result<Value, JsValue> {
    Value::parse_container(text).map_err(|error| misuse(error.to_string()))
}

fn read_messages(json: &str) -> Result<Vec<AgentMessage>, JsValue> {
    Vec::<AgentMessage>::from_json(&parse(json)?).map_err(|text| misuse(["messages: ", &text].concat()))
}

fn run_entry(handle: u32) -> Option<Rc<RunEntry>> {
    INSTANCE.with(|instance| instance.try_borrow().ok()?.runs.get(&handle).cloned())
}

fn agent_entry(handle: u32) -> Result<Rc<AgentEntry>, JsValue> {
    let found = INSTANCE.with(|instance| instance.borrow().agents.get(&handle).cloned());
    found.ok_or_else(|| misuse("the agent was disposed of"))
}

fn next_handle() -> u32 {
    INSTANCE.with(|instance| {
        let mut instance = instance.borrow_mut();
        instance.handles += 1;
        instance.handles
    })
}

/// Creates an agent. `settings` is a JSON object (see `settings.rs`), `messages` its history as JSON.
#[wasm_bindgen]
pub fn agent_new(settings: &str, messages: &str, host: Host) -> Result<u32, JsValue> {
    let messages = read_messages(messages)?;
    let (cached, models) = (Cached::default(), Models::default());
    let config = settings::config(&parse(settings)?, &host, &cached, &models);
    let agent = Agent::new(config.map_err(|error| thrown(&error))?, messages);
    let entry = Rc::new(AgentEntry { agent, host, cached, models, settled: Rc::default() });
    let handle = next_handle();
    INSTANCE.with(|instance| instance.borrow_mut().agents.insert(handle, entry));
    Ok(handle)
}

/// Changes an agent's settings. A run in progress uses them from its next turn on.
#[wasm_bindgen]
pub fn agent_configure(handle: u32, settings: &str) -> Result<(), JsValue> {
    let entry = agent_entry(handle)?;
    let config = settings::config(&parse(settings)?, &entry.host, &entry.cached, &entry.models);
    let config = config.map_err(|error| thrown(&error))?;
    entry.agent.reconfigure(config);
    Ok(())
}

/// Stops an agent's run and clears its history and queues.
#[wasm_bindgen]
pub fn agent_reset(handle: u32) -> Result<(), JsValue> {
    let entry = agent_entry(handle)?;
    entry.cached.set(0);
    entry.agent.reset();
    Ok(())
}

/// Drops an agent, with its run if it has one: nobody is left to hear how the run ends.
#[wasm_bindgen]
pub fn agent_drop(handle: u32) {
    let removed = INSTANCE.with(|instance| {
        let mut instance = instance.borrow_mut();
        let agent = instance.agents.remove(&handle)?;
        let mut ended = Vec::new();
        for (handle, run) in std::mem::take(&mut instance.runs) {
            if Rc::ptr_eq(&run.agent, &agent) {
                ended.push(run);
            } else {
                instance.runs.insert(handle, run);
            }
        }
        Some((agent, ended))
    });
    drop(removed);
}

/// Starts a run. If `prompts` is empty, it continues from the history.
#[wasm_bindgen]
pub fn run_new(agent: u32, prompts: &str, run_id: &str, session_id: &str, now: f64) -> Result<u32, JsValue> {
    set_now(now);
    let entry = agent_entry(agent)?;
    let context = AgentRunContext { run_id: run_id.into(), session_id: session_id.into() };
    let cancel = CancelToken::new();
    let history = entry.agent.messages();
    let stream = if prompts.is_empty() {
        entry.agent.continue_run(context, cancel.clone())
    } else {
        entry.agent.prompt(read_messages(prompts)?, context, cancel.clone())
    };
    let mut stream = stream.map_err(|error| thrown(&error))?;
    stream.take_offers();
    let handle = next_handle();
    let resumed = stream.state().is_restored();
    let sent = if resumed { Sent::of(&history) } else { Sent::default() };
    let woken = Arc::new(RunWaker { handle, polling: AtomicBool::new(false), woken: AtomicBool::new(false) });
    let run = RunEntry {
        published: entry.agent.published(),
        agent: entry,
        bridge: Rc::new(Bridge::new(history, stream.state().session().clone())),
        stream: RefCell::new(stream),
        cancel,
        sent: sent.into(),
        waker: woken.clone().into(),
        woken,
    };
    INSTANCE.with(|instance| instance.borrow_mut().runs.insert(handle, Rc::new(run)));
    Ok(handle)
}

/// Runs as far as possible without an answer from outside and without getting ahead of the
/// listeners; the caller must have delivered all earlier batches. The first `size` bytes of the
/// input belong to the response at `slot`.
///
/// Returns 0 if there is nothing to deliver, 1 if there is a batch in the outbox, and 2 if there is a
/// batch and the run continues as soon as it is delivered.
#[wasm_bindgen]
pub fn run_poll(handle: u32, slot: SlotId, size: usize, now: f64) -> u32 {
    set_now(now);
    let Some(run) = run_entry(handle) else { return 0 };
    if size > 0 {
        let bridge = BridgeGuard::of(run.clone());
        INPUT.with_borrow(|input| bridge.feed(slot, input.get(..size).unwrap_or_default()));
    }
    OUTBOX.with(|outbox| match outbox.try_borrow_mut() {
        Ok(mut outbox) => poll(&run, &mut outbox),
        Err(_) => 0,
    })
}

fn poll(run: &RunEntry, outbox: &mut Outbox) -> u32 {
    // Called from a rule of this very run. The waker has recorded it, which is enough.
    let Ok(mut stream) = run.stream.try_borrow_mut() else { return 0 };
    outbox.clear();
    let mut sent = run.sent.borrow_mut();
    run.woken.polling.store(true, Ordering::Relaxed);
    let next = bridge::with(&run.bridge, || {
        loop {
            run.woken.woken.store(false, Ordering::Relaxed);
            let mut cx = Context::from_waker(&run.waker);
            match stream.poll_output(&mut cx, outbox.is_empty()) {
                Poll::Ready(Next::Event(event)) => {
                    run.bridge.flush(outbox);
                    outbox.history(&mut sent, &run.bridge, &run.published.borrow());
                    outbox.event(&mut sent, &run.bridge, &event);
                }
                Poll::Ready(Next::Barrier) => break 2,
                Poll::Ready(Next::Offer) => {
                    run.bridge.flush(outbox);
                    outbox.history(&mut sent, &run.bridge, &run.published.borrow());
                    outbox.starts(&sent, &stream);
                    break 2;
                }
                Poll::Ready(Next::End) => break 0,
                Poll::Pending if run.woken.woken.load(Ordering::Relaxed) => {}
                Poll::Pending => break 1,
            }
        }
    });
    outbox.history(&mut sent, &run.bridge, &run.published.borrow());
    run.bridge.flush(outbox);
    run.woken.polling.store(false, Ordering::Relaxed);
    drop((sent, stream));
    for (id, delivery) in run.agent.settled.take() {
        outbox.receipt(id, delivery);
    }
    if next == 0 {
        outbox.end(run.stream.borrow().state().output());
    }
    outbox.publish();
    if outbox.is_empty() { 0 } else { next.max(1) }
}

/// Returns the address of the control block; see `outbox.rs`.
#[wasm_bindgen]
pub fn control() -> *const u32 {
    OUTBOX.with_borrow(Outbox::control)
}

/// Returns the address to write response bytes to, with room for `size` bytes.
#[wasm_bindgen]
pub fn input(size: usize) -> *const u8 {
    INPUT.with_borrow_mut(|input| {
        if size > input.len() {
            *input = vec![0; size];
        }
        input.as_ptr()
    })
}

/// Access to the bridge of a run, to leave something there. The consequences come with the next `run_poll`:
/// a listener that calls in during the delivery of a batch must not produce another batch. The caller
/// polls afterwards, so the waker does not ask for it.
struct BridgeGuard {
    run: Rc<RunEntry>,
    polling: bool,
}

impl BridgeGuard {
    #[inline(never)]
    fn of(run: Rc<RunEntry>) -> Self {
        let polling = run.woken.polling.swap(true, Ordering::Relaxed);
        BridgeGuard { run, polling }
    }
}

impl std::ops::Deref for BridgeGuard {
    type Target = Bridge;

    fn deref(&self) -> &Bridge {
        &self.run.bridge
    }
}

impl Drop for BridgeGuard {
    fn drop(&mut self) {
        self.run.woken.polling.store(self.polling, Ordering::Relaxed);
    }
}

fn bridge_of(handle: u32) -> Option<BridgeGuard> {
    run_entry(handle).map(BridgeGuard::of)
}

/// A response has ended.
#[wasm_bindgen]
pub fn feed_end(handle: u32, slot: SlotId) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.feed_end(slot);
    }
}

/// A response has a status other than 200. `headers` is a JSON object with lower-case names.
#[wasm_bindgen]
pub fn feed_refusal(handle: u32, slot: SlotId, status: u16, headers: &str, body: &[u8], now: f64) {
    set_now(now);
    let headers = Value::parse(headers).unwrap_or_default();
    if let Some(bridge) = bridge_of(handle) {
        bridge.refuse(slot, status, &headers, body);
    }
}

/// The host's stream yielded an event (JSON), or ended (JSON `null`).
#[wasm_bindgen]
pub fn stream_event(handle: u32, slot: SlotId, event: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.stream_event(slot, event);
    }
}

/// The host's stream yielded a piece of text (kind 1), thinking (2) or tool arguments (3).
#[wasm_bindgen]
pub fn stream_delta(handle: u32, slot: SlotId, kind: u32, index: u32, delta: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.stream_delta(slot, kind, index, delta);
    }
}

/// Answers an effect, with a text or JSON; `ports.rs` says what each effect expects.
#[wasm_bindgen]
pub fn resolve(handle: u32, slot: SlotId, answer: String, is_text: bool) {
    let answer = if is_text { Ok(Value::String(answer)) } else { Value::parse(&answer) };
    if let Some(bridge) = bridge_of(handle) {
        bridge.resolve(slot, answer.map_err(|error| error.to_string()));
    }
}

/// Fails an effect, with the reason.
#[wasm_bindgen]
pub fn reject(handle: u32, slot: SlotId, reason: String) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.resolve(slot, Err(reason));
    }
}

/// A tool reports progress, as JSON.
#[wasm_bindgen]
pub fn update(handle: u32, slot: SlotId, update: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.update(slot, update);
    }
}

/// A tool changes the session state. `value` is JSON; if it is empty, the key is deleted.
#[wasm_bindgen]
pub fn set_state(handle: u32, slot: SlotId, key: &str, value: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.set_state(slot, key, value);
    }
}

/// An agent inside a tool emits an event, as JSON.
#[wasm_bindgen]
pub fn subagent_event(handle: u32, slot: SlotId, event: &str) {
    if let Some(bridge) = bridge_of(handle) {
        bridge.subagent_event(slot, event);
    }
}

/// Reports how many of the calls offered by the last batch were announced; see `outbox::kind::STARTS`.
#[wasm_bindgen]
pub fn run_started(handle: u32, count: usize) {
    if let Some(run) = run_entry(handle)
        && let Ok(mut stream) = run.stream.try_borrow_mut()
    {
        stream.announced(count);
    }
}

/// Takes the body of a request to send. Later calls return nothing.
#[wasm_bindgen]
pub fn take_body(handle: u32, slot: SlotId) -> Vec<u8> {
    run_entry(handle).map(|run| run.bridge.take_body(slot)).unwrap_or_default()
}

/// Stops a run for a reason. The consequences come with the next `run_poll`.
#[wasm_bindgen]
pub fn run_abort(handle: u32, reason: &str) {
    if let Some(run) = run_entry(handle) {
        run.cancel.cancel(reason);
    }
}

/// Returns the state of an agent for a checkpoint, as JSON: without the history, except for the messages
/// JavaScript does not have yet (`appended`). `run` is the handle of its run, or 0. `is_end_emitted` says
/// whether the end of the run was announced.
///
/// Fails when called from inside a rule.
#[wasm_bindgen]
pub fn checkpoint(agent: u32, run: u32, is_end_emitted: bool, now: f64) -> Result<String, JsValue> {
    set_now(now);
    let mut state = String::new();
    let mut object = ObjectWriter::new(&mut state);
    match run_entry(run) {
        None => agent_entry(agent)?.agent.write_checkpoint(crate::now(), &mut object),
        Some(run) => {
            let Ok(mut stream) = run.stream.try_borrow_mut() else {
                return Err(misuse(
                    "no checkpoint can be taken inside a policy or transformer; take it in a listener",
                ));
            };
            bridge::with(&run.bridge, || stream.write_checkpoint(is_end_emitted, &mut object));
            // Results of finished tools, which the next batch will contain.
            let known = run.bridge.mirror.borrow().len();
            object.field("appended", stream.state().messages().get(known..).unwrap_or_default());
        }
    }
    object.end();
    Ok(state)
}

/// Restores the state of a checkpoint in a new agent, which already has the checkpoint's history.
#[wasm_bindgen]
pub fn agent_restore(handle: u32, state: &str) -> Result<(), JsValue> {
    agent_entry(handle)?.agent.read_checkpoint(&parse(state)?, Vec::new()).map_err(misuse)
}

/// Drops a run that nobody will poll any more.
#[wasm_bindgen]
pub fn run_drop(handle: u32) {
    let removed = INSTANCE.with(|instance| instance.borrow_mut().runs.remove(&handle));
    drop(removed);
}

/// Posts a message (JSON) to an agent. Returns the number of its receipt.
#[wasm_bindgen]
pub fn post_message(agent: u32, follow_up: bool, message: &str) -> Result<u32, JsValue> {
    let entry = agent_entry(agent)?;
    let message = AgentMessage::from_json(&parse(message)?).map_err(misuse)?;
    let (id, settled) = (next_handle(), entry.settled.clone());
    let settle = Box::new(move |delivery| settled.borrow_mut().push((id, delivery)));
    if follow_up {
        entry.agent.post_follow_up(message, settle);
    } else {
        entry.agent.post_steering(message, settle);
    }
    Ok(id)
}

/// Returns whether messages wait for an agent's next run.
#[wasm_bindgen]
pub fn has_waiting(agent: u32) -> bool {
    agent_entry(agent).is_ok_and(|entry| entry.agent.has_waiting())
}

/// Clears an agent's queues.
#[wasm_bindgen]
pub fn clear_queues(agent: u32) -> Result<(), JsValue> {
    agent_entry(agent)?.agent.clear_queues();
    Ok(())
}

/// Posts decisions to an agent: a JSON object from call id to decision. With `all`, either all of
/// them take effect or none.
#[wasm_bindgen]
pub fn post_decisions(agent: u32, decisions: &str, all: bool) -> Result<(), JsValue> {
    let entry = agent_entry(agent)?;
    let decisions = parse(decisions)?;
    let Value::Object(decisions) = decisions else { return Err(misuse("decisions must be an object")) };
    let mut read = Vec::with_capacity(decisions.len());
    for (call_id, decision) in decisions {
        let decision = ToolDecision::from_json(&decision)
            .map_err(|text| misuse(["the decision about `", &call_id, "`: ", &text].concat()))?;
        read.push((call_id, decision));
    }
    if all {
        entry.agent.resolve_tools(read);
    } else {
        read.into_iter().for_each(|(call_id, decision)| entry.agent.resolve_tool(call_id, decision));
    }
    Ok(())
}
