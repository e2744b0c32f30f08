//! Runs: starting, polling and stopping them, and where their batches and bytes lie.

#[cfg(feature = "server")]
use std::cell::Cell;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use wasm_bindgen::prelude::*;

use turnwheel::cancel::CancelToken;
#[cfg(feature = "server")]
use turnwheel::driver::AgentStream;
use turnwheel::driver::Next;
use turnwheel::json::ToJson;
use turnwheel::ports::AgentRunContext;

use super::answers::BridgeGuard;
use crate::bridge::{self, Bridge, SlotId};
use crate::instance::{
    INPUT, INSTANCE, OUTBOX, RunEntry, RunWaker, agent_entry, next_handle, parse, read_messages, run_entry,
    set_now, thrown,
};
use crate::outbox::{Outbox, Sent};
use crate::settings;

/// Starts a run. If `prompts` is empty, it continues from the history. `options` is empty or a JSON object: what holds for
/// this run (see `turn_options` in `settings.rs`) and its `metadata`. `around` is the run inside a tool of which this one is, or
/// 0: its budgets and the secrets that no tool shows are also those of this one.
#[wasm_bindgen]
pub fn run_new(
    agent: u32,
    prompts: &str,
    run_id: &str,
    session_id: &str,
    options: &str,
    around: u32,
    now: f64,
) -> Result<u32, JsValue> {
    set_now(now);
    let entry = agent_entry(agent)?;
    let mut context = AgentRunContext::new(run_id, session_id);
    let mut own = None;
    if !options.is_empty() {
        let options = parse(options)?;
        context.metadata = options.get("metadata").map(ToJson::to_raw);
        own = Some(settings::turn_options(&options, &entry.models).map_err(|error| thrown(&error))?);
    }
    let cancel = CancelToken::new();
    let history = entry.agent.messages();
    let stream = if prompts.is_empty() {
        entry.agent.continue_run(context, cancel.clone())
    } else {
        entry.agent.prompt(read_messages(prompts)?, context, cancel.clone())
    };
    let mut stream = stream.map_err(|error| thrown(&error))?;
    if let Some(own) = own {
        stream = stream.with_options(own).map_err(|error| thrown(&error))?;
    }
    let mut known = entry.known.clone();
    if let Some(around) = run_entry(around) {
        known = around.bridge.known.clone();
        if let Ok(around) = around.stream.try_borrow() {
            stream = stream.with_accounts(around.accounts());
        }
    }
    stream.take_offers();
    let handle = next_handle();
    let resumed = stream.state().is_restored();
    let sent = if resumed { Sent::of(&history) } else { Sent::default() };
    let woken = Arc::new(RunWaker { handle, polling: AtomicBool::new(false), woken: AtomicBool::new(false) });
    let run = RunEntry {
        published: entry.agent.published(),
        bridge: Rc::new(Bridge::new(history, known, entry.models.clone())),
        agent: entry,
        stream: RefCell::new(stream),
        cancel,
        sent: sent.into(),
        waker: woken.clone().into(),
        woken,
        #[cfg(feature = "server")]
        is_replaying: Cell::default(),
        #[cfg(feature = "server")]
        time: Cell::default(),
    };
    INSTANCE.with(|instance| instance.borrow_mut().runs.insert(handle, Rc::new(run)));
    Ok(handle)
}

/// Runs as far as possible without an answer from outside and without getting ahead of the
/// listeners; the caller must have delivered all earlier batches. The first `size` bytes of the
/// input belong to the response at `slot`; there are none if it is 0.
///
/// Returns 0 if there is nothing to deliver, 1 if there is a batch in the outbox, and 2 if there is a
/// batch and the run continues as soon as it is delivered.
#[wasm_bindgen]
pub fn run_poll(handle: u32, slot: SlotId, size: usize, now: f64) -> u32 {
    set_now(now);
    let Some(run) = run_entry(handle) else { return 0 };
    if slot > 0 {
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
    #[cfg(feature = "server")]
    run.is_replaying.set(stream.is_replaying());
    let next = bridge::with(&run.bridge, || {
        loop {
            run.woken.woken.store(false, Ordering::Relaxed);
            let mut cx = Context::from_waker(&run.waker);
            match stream.poll_output(&mut cx, outbox.is_empty()) {
                Poll::Ready(Next::Event(event)) => {
                    #[cfg(feature = "server")]
                    tell_time(run, &stream, outbox);
                    run.bridge.flush(outbox);
                    outbox.history(&mut sent, &run.bridge, &run.published.borrow());
                    outbox.event(&mut sent, &run.bridge, &event);
                }
                Poll::Ready(Next::Barrier) => {
                    // A history that was replaced is all there may be to deliver.
                    outbox.history(&mut sent, &run.bridge, &run.published.borrow());
                    if !outbox.is_empty() {
                        break 2;
                    }
                }
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

/// Says what time it is by the journal of a durable run, if that has gone on.
#[cfg(feature = "server")]
fn tell_time(run: &RunEntry, stream: &AgentStream, outbox: &mut Outbox) {
    if let Some(now) = stream.journal_now()
        && run.time.replace(now) != now
    {
        outbox.time(now);
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

/// Stops a run for a reason. The consequences come with the next `run_poll`.
#[wasm_bindgen]
pub fn run_abort(handle: u32, reason: &str) {
    if let Some(run) = run_entry(handle) {
        run.cancel.cancel(reason);
    }
}

/// Drops a run that nobody will poll any more.
#[wasm_bindgen]
pub fn run_drop(handle: u32) {
    let removed = INSTANCE.with(|instance| instance.borrow_mut().runs.remove(&handle));
    drop(removed);
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
