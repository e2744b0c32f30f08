//! The end of an agent inside a call that has its result before the agent has gone on from its checkpoint: its tool is gone,
//! nobody wants the call any more, or a rule forbids it now. Nothing of it starts. What was open is closed, here and in the
//! agents inside it, so that whoever heard it begin hears its end.

use std::rc::Rc;

use crate::data::json::{RawJson, ToJson, Value};
use crate::host::config::{Caller, DEEPEST_NESTING, ModelName, Rules};
use crate::host::tool::{ChildEvent, Nesting};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::AgentMessage;

use super::batch::{Batch, CallStatus, Ending};
use super::checkpoint::child::{QuestionsInside, SleptRun, read_child};
use super::children::take_event;
use super::output::Output;
use super::phase::Phase;
use super::resume::begin_with;
use super::state::LoopState;
use super::step::Step;

impl Step<'_> {
    /// Ends the agent in the checkpoint of a call that has its result now, if there is one that has not gone on.
    pub(super) fn close_waiting_child(&mut self, batch: &mut Batch, place: usize) {
        if !self.state.children.is_empty() {
            self.close_child(batch, place);
        }
    }

    #[cold]
    fn close_child(&mut self, batch: &mut Batch, place: usize) {
        let reason = match &batch.ending {
            Ending::Stopped(error) => error.message.as_str(),
            _ => "not wanted any more",
        };
        let Some(call) = batch.calls.get_mut(place) else { return };
        let call_id = call.block.call_id.as_str();
        let Some(checkpoint) = self.state.take_child(call_id) else { return };
        self.state.closed_children.push(call_id.to_owned());
        let child = call.child.get_or_insert_default();
        let keeps_questions = child.keeps_questions;
        for (path, event) in self.last_events(call_id, &checkpoint, reason) {
            let event = ChildEvent { path, event, keeps_questions, shares_budget: false };
            let (usage, events) = take_event(call_id, child, event);
            self.state.count_child(&usage, false);
            events.into_iter().for_each(|event| self.emit(event));
        }
        let is_inside = |path: &[String]| path.first().is_some_and(|first| first == call_id);
        self.state.child_questions.retain(|question| !is_inside(&question.path));
    }

    /// What the agent in a checkpoint would have told, had it gone on and been aborted at once, each with the path to whoever
    /// told it. Of what cannot be read, or had not begun, there is nothing to tell.
    fn last_events(&self, call_id: &str, checkpoint: &RawJson, reason: &str) -> Vec<(Vec<String>, RawJson)> {
        let depth = self.state.context.nesting.depth + 1;
        let is_too_deep = usize::try_from(depth).is_ok_and(|depth| depth > DEEPEST_NESTING);
        let read = if is_too_deep { None } else { self.read_waiting(checkpoint) };
        let Some(SleptRun { state: mut child, untold }) = read else { return Vec::new() };
        let run_id: Rc<str> = [&self.state.context.run_id, "/", call_id].concat().into();
        child.context.run_id = run_id.clone();
        child.context.nesting = Nesting { depth, ..self.state.context.nesting };
        let mut inside = QuestionsInside::default();
        if inside.add_inside(&child, &mut Vec::new()).is_ok() {
            child.child_questions = std::mem::take(&mut inside.open);
        }
        inside.open = [child.questions(), child.child_questions.clone()].concat();
        let untold = inside.known(untold);
        let rules = self.rules_of_nobody(&child);
        let mut out = Vec::new();
        Step { state: &mut child, rules: &rules, now: self.now, out: &mut out }.end_restored(reason);
        if let Some(Output::Event(resumed)) = out.first_mut() {
            begin_with(
                resumed,
                untold.iter().map(|event| (event.text_at("type"), event.number_at("turnIndex"))),
            );
        }
        let mut events: Vec<(Vec<String>, RawJson)> = out
            .into_iter()
            .filter_map(|output| match output {
                Output::Event(AgentEvent::SubagentEvent { path, event, .. }) => Some((path, event)),
                Output::Event(event) => Some((Vec::new(), event.to_json_with(&run_id))),
                _ => None,
            })
            .collect();
        let after = events.len().min(1);
        events.splice(after..after, untold.into_iter().map(|event| untold_event(event, &run_id)));
        events
    }

    fn read_waiting(&self, checkpoint: &RawJson) -> Option<SleptRun> {
        read_child(self.state.reads_child, checkpoint.to_value()).ok().flatten()
    }

    /// Rules for an agent that does nothing any more: its own are with whoever makes it, which nobody does. Its model has the
    /// name that its last answer says.
    fn rules_of_nobody(&self, child: &LoopState) -> Rules {
        let last = child.history.messages().iter().rev().find_map(|message| match message {
            AgentMessage::Assistant(message) => Some(message),
            _ => None,
        });
        let id = child.provider.model.clone().or_else(|| last.map(|last| last.model.as_str().into()));
        let name = ModelName {
            provider: last.map_or("", |last| &last.provider).into(),
            id: id.unwrap_or_default(),
            supports_tools: true,
            context_window: None,
            max_answer_bytes: 0,
            estimates_usage: self.rules.models.first().is_some_and(|name| name.estimates_usage),
            price: None,
            caller: Caller::recorded(None),
        };
        Rules::with_models(vec![name; child.turn.model.min(MOST_MODELS) + 1], self.rules.new_id.clone())
    }

    /// A restored run ends in place of going on.
    fn end_restored(&mut self, reason: &str) {
        let Some(elapsed) = self.state.timing.restored.take() else { return };
        self.state.timing.began = self.now.saturating_sub(elapsed);
        let event = self.run_resumed();
        self.emit(event);
        let error = ErrorInfo::new(ErrorKind::Aborted, reason);
        match &mut self.state.phase {
            // Its end was not told yet.
            Phase::Ended { reason, error } => {
                let (reason, error) = (*reason, error.take());
                self.close(reason, error);
            }
            Phase::Dispatching(batch) => {
                let runs = |status| matches!(status, CallStatus::BeforeHook(_) | CallStatus::Running(..));
                let is_elsewhere = |status| matches!(status, CallStatus::Elsewhere(_));
                batch.elsewhere = batch.calls.iter().filter(|call| is_elsewhere(call.status)).count();
                batch.running = batch.elsewhere + batch.calls.iter().filter(|call| runs(call.status)).count();
                self.interrupt_run(error);
            }
            _ => self.interrupt_run(error),
        }
    }
}

/// A checkpoint says which of its models a run has called last, and may say anything.
const MOST_MODELS: usize = 64;

/// An event as a checkpoint has it, with the path to whoever told it.
fn untold_event(event: Value, run_id: &str) -> (Vec<String>, RawJson) {
    match event {
        Value::Object(event) if event.get("type").and_then(Value::as_str) == Some("subagent_event") => {
            let event = Value::Object(event);
            let path = event.list_at("path").iter().filter_map(|id| id.as_str().map(str::to_owned)).collect();
            (path, event.get("event").map_or_else(RawJson::null, ToJson::to_raw))
        }
        Value::Object(mut event) => {
            event.insert("runId", Value::String(run_id.to_owned()));
            (Vec::new(), Value::Object(event).to_raw())
        }
        other => (Vec::new(), other.to_raw()),
    }
}
