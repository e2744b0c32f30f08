//! The open questions of a run, as its listeners know them.

use crate::data::json::RawJson;
use crate::words::event::{AgentEvent, BudgetKind};
use crate::words::message::ToolCallBlock;
use crate::words::question::{Question, QuestionKind};

/// The open questions that the listeners were told of, in the order asked, each with whether an answer was posted. There
/// are never more than calls in one answer.
#[derive(Clone, Debug, Default)]
pub struct OpenQuestions(Vec<(Question, bool)>);

/// Takes an event that the listeners are told.
pub(crate) type TrackQuestions = fn(&mut OpenQuestions, &AgentEvent);

impl OpenQuestions {
    /// See [`TrackQuestions`].
    pub(crate) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, asked_at, path } => {
                let call = ToolCallBlock {
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    arguments: arguments.clone(),
                    metadata: None,
                };
                if !self.is_open(id) {
                    let question =
                        Question { path: path.clone(), ..Question::about(call, id.clone(), *asked_at) };
                    self.0.push((question, false));
                }
            }
            AgentEvent::QuestionAsked { question } if !self.is_open(&question.id) => {
                self.0.push((question.as_ref().clone(), false));
            }
            AgentEvent::ToolApprovalResolved { id, .. } | AgentEvent::QuestionResolved { id, .. } => {
                self.0.retain(|(question, _)| question.id != *id);
            }
            // So also where an agent inside it had not gone on from a checkpoint when nobody wanted it any more.
            AgentEvent::SubagentEvent { path, event, .. } if !self.0.is_empty() && is_end_of_call(event) => {
                let event = event.to_value();
                let Some(call_id) = event.text_at("callId") else { return };
                self.0.retain(|(question, _)| {
                    let inside = question.path.strip_prefix(path.as_slice());
                    inside.and_then(<[String]>::first).is_none_or(|first| first != call_id)
                });
            }
            // Nothing inside a call that has its result is open.
            AgentEvent::ToolExecutionEnd { result, .. } => {
                self.0.retain(|(question, _)| question.path.first() != Some(&result.call_id));
            }
            _ => {}
        }
    }

    /// The questions of a checkpoint.
    pub(crate) fn of(questions: Vec<Question>) -> Self {
        OpenQuestions(questions.into_iter().map(|question| (question, false)).collect())
    }

    /// Returns the questions in the order in which they were asked.
    pub fn iter(&self) -> impl Iterator<Item = &Question> + Clone {
        self.0.iter().map(|(question, _)| question)
    }

    /// Returns the id of the open question whether a call may run: of the agent itself, or the only one inside it.
    pub(crate) fn about(&self, call_id: &str) -> Option<&str> {
        let mut asked = self.iter().filter(|question| is_about(question, call_id));
        if let Some(own) = asked.clone().find(|question| question.path.is_empty()) {
            return Some(&own.id);
        }
        let only = asked.next()?;
        asked.next().is_none().then_some(&only.id)
    }

    /// Whether several agents ask about calls with this id, none of them the agent itself.
    pub(crate) fn is_ambiguous(&self, call_id: &str) -> bool {
        self.about(call_id).is_none() && self.iter().any(|question| is_about(question, call_id))
    }

    /// What an open question is about; with the limit, if that is one of a budget.
    pub(crate) fn subject_of(&self, id: &str) -> Option<(QuestionKind, Option<BudgetKind>)> {
        let question = self.iter().find(|question| question.id == id)?;
        Some((question.kind, question.limit.map(|limit| limit.kind)))
    }

    /// Whether a question is open, answered or not.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.iter().any(|question| question.id == id)
    }

    /// Notes that answers to these open questions are posted together. Returns whether each is the first one; otherwise
    /// none of them counts.
    pub(crate) fn answer(&mut self, ids: &[&str]) -> bool {
        let is_new = |id: &&str| self.0.iter().any(|(question, answered)| question.id == **id && !answered);
        let is_once = |id: &&str| ids.iter().filter(|other| *other == id).count() == 1;
        let counts = !ids.is_empty() && ids.iter().all(|id| is_new(id) && is_once(id));
        for (question, answered) in &mut self.0 {
            *answered |= counts && ids.contains(&question.id.as_str());
        }
        counts
    }
}

fn is_end_of_call(event: &RawJson) -> bool {
    event.as_str().starts_with("{\"type\":\"tool_execution_end\"")
}

fn is_about(question: &Question, call_id: &str) -> bool {
    question.kind == QuestionKind::Tool && question.call_id() == Some(call_id)
}
