//! The agents in a checkpoint, and what they ask.

use crate::data::json::{FromJson, Value};
use crate::data::list::read_all;
use crate::host::config::DEEPEST_NESTING;
use crate::host::state::SessionState;
use crate::machine::state::LoopState;
use crate::rules::checkpoint::{CheckpointEnvelopeV1, CheckpointError};
use crate::words::event::AgentEvent;
use crate::words::message::AgentMessage;
use crate::words::question::Question;

/// What a checkpoint says of an agent inside a call: its history, and the state of its run.
pub(crate) struct Slept {
    messages: Vec<AgentMessage>,
    own: Value,
}

/// Reads the checkpoint of an agent inside a call. `None` if it has no state of this engine. Which one is used is the host's
/// choice, so that a host that reads envelopes itself has nothing of them in its binary.
pub(crate) type ReadChild = fn(Value) -> Result<Option<Slept>, CheckpointError>;

/// Reads one that the host has taken out of its envelope: its messages as the engine has them, and the state.
pub(crate) fn plain(checkpoint: Value) -> Result<Option<Slept>, CheckpointError> {
    let Some(own) = checkpoint.get("state") else { return Ok(None) };
    let messages = read_all(checkpoint.get("messages").unwrap_or(&Value::Null), AgentMessage::from_json);
    let messages = messages.map_err(CheckpointError::InvalidPayload)?;
    Ok(Some(Slept { messages, own: own.clone() }))
}

/// Reads one in its envelope.
pub(crate) fn enveloped(checkpoint: Value) -> Result<Option<Slept>, CheckpointError> {
    let envelope = CheckpointEnvelopeV1::from_value(checkpoint)?;
    let Some(own) = envelope.checked_state()? else { return Ok(None) };
    Ok(Some(Slept { messages: envelope.agent_messages()?, own: own.clone() }))
}

/// Reads either, where any host may have written it.
pub(crate) fn any(checkpoint: Value) -> Result<Option<Slept>, CheckpointError> {
    if checkpoint.get("state").is_some() { plain(checkpoint) } else { enveloped(checkpoint) }
}

/// The run of an agent inside a call, and the events that nobody was told, as they were written.
pub(in crate::machine) struct SleptRun {
    pub(in crate::machine) state: LoopState,
    pub(in crate::machine) untold: Vec<Value>,
}

/// Reads the run of an agent inside a call from its checkpoint. `None` if it had not begun, or is over.
///
/// # Errors
/// If something cannot be read; the error names it.
pub(in crate::machine) fn read_child(
    read: ReadChild,
    checkpoint: Value,
) -> Result<Option<SleptRun>, CheckpointError> {
    let Some(Slept { messages, own }) = read(checkpoint)? else { return Ok(None) };
    let Some(run) = own.get("run") else { return Ok(None) };
    let map = |key: &str| own.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    let session = SessionState::restored(map("session"), map("changes"));
    let state = LoopState::read_checkpoint(messages, session, run);
    let mut state = state.map_err(CheckpointError::InvalidPayload)?;
    state.reads_child = read;
    state.read_children(&own);
    Ok(Some(SleptRun { state, untold: own.list_at("untold").to_vec() }))
}

/// What is known of the questions of the agents in a checkpoint.
#[derive(Default)]
pub(crate) struct QuestionsInside {
    /// Those that are open.
    pub(crate) open: Vec<Question>,
    /// The ids of those that are closed, of which nobody was told that they are.
    pub(crate) closing: Vec<String>,
}

impl QuestionsInside {
    /// Adds those of the agent in a checkpoint, and of those inside it. `path` leads to it.
    ///
    /// # Errors
    /// If something cannot be read; the error names it.
    pub(crate) fn add(
        &mut self,
        read: ReadChild,
        checkpoint: Value,
        path: &mut Vec<String>,
    ) -> Result<(), CheckpointError> {
        if path.len() > DEEPEST_NESTING {
            return Err(CheckpointError::InvalidPayload("its sub-agents are nested too deep".to_owned()));
        }
        let Some(SleptRun { state, untold }) = read_child(read, checkpoint)? else { return Ok(()) };
        self.closing.extend(untold.iter().filter_map(closed_id));
        let own = state.questions().into_iter();
        self.open.extend(own.map(|question| Question { path: path.clone(), ..question }));
        self.add_inside(&state, path)
    }

    /// Adds those of the agents inside the calls of a run that have not gone on yet.
    pub(in crate::machine) fn add_inside(
        &mut self,
        state: &LoopState,
        path: &mut Vec<String>,
    ) -> Result<(), CheckpointError> {
        for (call_id, checkpoint) in state.waiting_children() {
            if state.keeps_questions(call_id) {
                continue;
            }
            path.push(call_id.to_owned());
            self.add(state.reads_child, checkpoint.to_value(), path)?;
            path.pop();
        }
        Ok(())
    }

    /// The events as they were written, without those that ask what is neither open nor about to be closed: what a tool asked is
    /// gone with its process.
    pub(in crate::machine) fn known(&self, mut untold: Vec<Value>) -> Vec<Value> {
        let closed: Vec<String> = untold.iter().filter_map(closed_id).collect();
        untold.retain(|event| match (event.text_at("type"), event.text_at("id")) {
            (Some("tool_approval_requested" | "question_asked"), Some(id)) => {
                self.open.iter().any(|question| question.id == id)
                    || closed.iter().chain(&self.closing).any(|closed| closed == id)
            }
            _ => true,
        });
        untold
    }

    /// The events of a checkpoint that were not emitted yet, without those that would show an open question otherwise than it
    /// is, or as closed. `own` are the open questions of the run itself.
    pub(crate) fn believable(&self, own: &[Question], unemitted: Vec<AgentEvent>) -> Vec<AgentEvent> {
        let find = |id: &str| own.iter().chain(&self.open).find(|question| question.id == id);
        let is_closed = |asked: &str| {
            let mut closed = unemitted.iter().filter_map(closed_question);
            closed.any(|id| id == asked) || self.closing.iter().any(|id| id == asked)
        };
        let is_believable = |event: &AgentEvent| match event {
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, .. } => match find(id) {
                Some(Question { call: Some(call), .. }) => {
                    call.call_id == *call_id && call.tool_name == *tool_name && call.arguments == *arguments
                }
                _ => is_closed(id),
            },
            AgentEvent::QuestionAsked { question } => match find(&question.id) {
                Some(open) => open == question.as_ref(),
                None => is_closed(&question.id),
            },
            event => closed_question(event).is_none_or(|id| find(id).is_none()),
        };
        let kept: Vec<bool> = unemitted.iter().map(is_believable).collect();
        unemitted.into_iter().zip(kept).filter_map(|(event, kept)| kept.then_some(event)).collect()
    }
}

/// The id of the question that is closed by an event.
fn closed_question(event: &AgentEvent) -> Option<&str> {
    match event {
        AgentEvent::ToolApprovalResolved { id, .. } | AgentEvent::QuestionResolved { id, .. } => Some(id),
        _ => None,
    }
}

/// The same of an event as it was written.
fn closed_id(event: &Value) -> Option<String> {
    let closes = matches!(event.text_at("type"), Some("tool_approval_resolved" | "question_resolved"));
    if closes { event.owned_at("id") } else { None }
}
