//! What JavaScript has been sent of a run.

use std::rc::Rc;

use turnwheel::data::id_map::IdMap;
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, AssistantMessage, ToolResultMessage};

/// What JavaScript knows of a run, besides the history that the bridge mirrors.
#[derive(Default)]
pub(crate) struct Sent {
    pub(super) epoch: u64,
    /// The last answer in the history.
    answer: Option<Rc<AssistantMessage>>,
    /// Its calls, in this turn.
    pub(super) calls: IdMap<String, Known>,
    /// The call that the streaming block belongs to.
    pub(super) call: Option<(u32, Rc<str>)>,
}

/// What JavaScript knows of a call: first its arguments, then its result.
pub(super) enum Known {
    Arguments(RawJson),
    Result(Rc<ToolResultMessage>),
}

impl Sent {
    /// What JavaScript knows of the history that a run resumes from: the last answer
    /// and the results after it.
    pub(crate) fn of(history: &[AgentMessage]) -> Self {
        let mut sent = Sent::default();
        let last = history.iter().rposition(|message| matches!(message, AgentMessage::Assistant(_)));
        history.get(last.unwrap_or(history.len())..).unwrap_or_default().iter().for_each(|m| sent.note(m));
        sent
    }

    pub(super) fn has_answer(&self, answer: &Rc<AssistantMessage>) -> bool {
        self.answer.as_ref().is_some_and(|last| Rc::ptr_eq(last, answer))
    }

    /// Returns the id of the call that starts, if its arguments are the model's own.
    pub(super) fn own_call<'a>(&self, event: &'a AgentEvent) -> Option<&'a str> {
        let AgentEvent::ToolExecutionStart { call_id, arguments, .. } = event else { return None };
        let known = self.calls.get(call_id);
        matches!(known, Some(Known::Arguments(own)) if own.is_same(arguments)).then_some(call_id)
    }

    pub(super) fn has_result(&self, result: &Rc<ToolResultMessage>) -> bool {
        matches!(self.calls.get(&result.call_id), Some(Known::Result(sent)) if Rc::ptr_eq(sent, result))
    }

    pub(super) fn keep_result(&mut self, result: &Rc<ToolResultMessage>) {
        let known = Known::Result(result.clone());
        match self.calls.get_mut(&result.call_id) {
            Some(call) => *call = known,
            None => drop(self.calls.insert(result.call_id.clone(), known)),
        }
    }

    pub(super) fn note(&mut self, message: &AgentMessage) {
        match message {
            AgentMessage::Assistant(answer) => {
                self.answer = Some(answer.clone());
                self.calls.clear();
                for call in answer.tool_calls() {
                    self.calls.insert(call.call_id.clone(), Known::Arguments(call.arguments.clone()));
                }
            }
            AgentMessage::ToolResult(result) => {
                self.keep_result(result);
            }
            AgentMessage::User(_) | AgentMessage::Custom(_) => {}
        }
    }
}
