//! Agents: making, configuring, posting to them, and their state for checkpoints.

use std::rc::Rc;

use wasm_bindgen::prelude::*;

use turnwheel::agent::Agent;
use turnwheel::config::SteeringTime;
use turnwheel::json::{FromJson, ObjectWriter};
use turnwheel::machine::AgentCommand;
use turnwheel::message::AgentMessage;

use crate::bridge;
use crate::instance::{
    AgentEntry, INSTANCE, agent_entry, misuse, next_handle, parse, read_messages, run_entry, set_now, thrown,
};
use crate::rules::{Cached, Host};
use crate::settings::{self, Models};

/// Creates an agent. `settings` is a JSON object (see `settings.rs`), `messages` its history as JSON.
#[wasm_bindgen]
pub fn agent_new(settings: &str, messages: &str, host: Host) -> Result<u32, JsValue> {
    let messages = read_messages(messages)?;
    let (cached, models) = (Cached::default(), Rc::<Models>::default());
    let config = settings::config(&parse(settings)?, &host, &cached, &models);
    let agent = Agent::without_questions(config.map_err(|error| thrown(&error))?, messages);
    let entry =
        Rc::new(AgentEntry { agent, host, cached, models, known: Rc::default(), settled: Rc::default() });
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

/// Takes the history of an agent without a run back to its first messages, with those of `branch` (JSON) after them.
#[wasm_bindgen]
pub fn agent_rewind(handle: u32, length: u32, branch: &str) -> Result<(), JsValue> {
    let entry = agent_entry(handle)?;
    let branch = read_messages(branch)?;
    entry.cached.set(0);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    entry.agent.rewind(length, branch).map(drop).map_err(|error| thrown(&error))
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
        None => agent_entry(agent)?.agent.write_checkpoint(crate::instance::now(), &mut object),
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
    agent_entry(handle)?.agent.read_checkpoint(&parse(state)?).map_err(misuse)
}

/// Posts a message (JSON) to an agent; `when` is empty or says when a steering message acts. Returns the number of its
/// receipt.
#[wasm_bindgen]
pub fn post_message(agent: u32, follow_up: bool, message: &str, when: &str) -> Result<u32, JsValue> {
    let entry = agent_entry(agent)?;
    let message = AgentMessage::from_json(&parse(message)?).map_err(misuse)?;
    let (id, settled) = (next_handle(), entry.settled.clone());
    let settle = Box::new(move |delivery| settled.borrow_mut().push((id, delivery)));
    if follow_up {
        entry.agent.post_follow_up(message, settle);
    } else {
        entry.agent.post_steering(message, SteeringTime::of_word(when), settle);
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

/// Posts a command (JSON, as in a checkpoint) to an agent.
#[wasm_bindgen]
pub fn post_command(agent: u32, command: &str) -> Result<(), JsValue> {
    let entry = agent_entry(agent)?;
    entry.agent.post(AgentCommand::from_json(&parse(command)?).map_err(misuse)?);
    Ok(())
}
