//! Answers to the questions of an agent.

use crate::host::config::EarlyDecisions;
use crate::machine::AgentCommand;
use crate::rules::answer::Answer;
use crate::rules::approval::ToolDecision;
use crate::rules::authority::{Act, Origin};
use crate::words::question::QuestionKind;

use super::Agent;
use super::checkpoint::Resume;

impl Agent {
    /// Answers a question. Returns whether the question was open and had no answer yet. If not, the answer is refused:
    /// nothing happens, and the listeners of an active run are told ([`CommandRefused`]).
    ///
    /// [`CommandRefused`]: crate::event::AgentEvent::CommandRefused
    pub fn resolve(&self, id: &str, answer: impl Into<Answer>) -> bool {
        self.resolve_all(vec![(id.to_owned(), answer.into())])
    }

    /// Answers a question in the name of whoever asks: what a client may say is decided by the table in
    /// [`authority`](crate::authority). A question that the agent's approver is deciding is no client's.
    ///
    /// # Errors
    ///
    /// If it is a client that may not do this; nothing happens. Otherwise as [`Agent::resolve`].
    pub fn resolve_from(
        &self,
        origin: Origin<'_>,
        id: &str,
        answer: impl Into<Answer>,
    ) -> Result<bool, String> {
        let answer = answer.into();
        if self.is_approvers(id) {
            origin.may(Act::Approver)?;
        }
        if let Some(act) = Act::of(&answer) {
            origin.may(act)?;
        }
        Ok(self.resolve(id, answer))
    }

    /// Whether the agent's approver decides about a question. Those of agents inside stand in the list only if they are for
    /// people.
    fn is_approvers(&self, id: &str) -> bool {
        let published = self.published();
        let published = published.borrow();
        let mut questions = published.questions.iter();
        self.0.config.borrow().rules.has_approver
            && questions.any(|question| {
                question.id == id && question.kind == QuestionKind::Tool && question.path.is_empty()
            })
    }

    /// Answers the open question about a tool call, as [`Agent::resolve`] does: one of this agent, or else the only one about
    /// such a call in its sub-agents. If there is none yet, what happens depends
    /// on [`early_decisions`](crate::config::Rules::early_decisions).
    pub fn resolve_tool(&self, call_id: impl Into<String>, decision: ToolDecision) -> bool {
        self.resolve_tools(vec![(call_id.into(), decision)])
    }

    /// Answers the open questions about several tool calls: either all answers are accepted, or none.
    pub fn resolve_tools(&self, decisions: Vec<(String, ToolDecision)>) -> bool {
        let published = self.published();
        let question = |call_id: &str| published.borrow().questions.about(call_id).map(str::to_owned);
        let unknown = decisions.iter().map(|(call_id, _)| call_id).find(|id| question(id).is_none());
        let Some(unknown) = unknown else {
            let asked =
                |(call_id, decision): (String, _)| Some((question(&call_id)?, Answer::Decision(decision)));
            return self.resolve_all(decisions.into_iter().filter_map(asked).collect());
        };
        if published.borrow().questions.is_ambiguous(unknown) {
            let reason = ["several agents ask about a call ", unknown, ": answer by the id of the question"];
            return self.refuse(None, Some(unknown.clone()), reason.concat());
        }
        let parks = self.0.config.borrow().rules.early_decisions == EarlyDecisions::Park;
        if parks && self.has_run() {
            self.0.inbox.borrow().post(AgentCommand::ResolveTools(decisions));
            return true;
        }
        self.refuse(None, Some(unknown.clone()), ["nothing is asked about call ", unknown].concat())
    }

    /// Answers several questions by their ids, as [`Agent::resolve`] does: either all answers are accepted, or none.
    pub fn resolve_all(&self, answers: Vec<(String, Answer)>) -> bool {
        let published = self.published();
        let closed = answers.iter().find(|(id, _)| !published.borrow().questions.is_open(id));
        if let Some((id, _)) = closed {
            let reason = ["no open question has the id ", id].concat();
            return self.refuse(Some(id.clone()), None, reason);
        }
        let misfit = |(id, answer): &(String, Answer)| {
            let (kind, limit) = published.borrow().questions.subject_of(id)?;
            Some((id.clone(), answer.misfit(kind, limit)?))
        };
        if let Some((id, reason)) = answers.iter().find_map(misfit) {
            return self.refuse(Some(id), None, reason);
        }
        let ids: Vec<&str> = answers.iter().map(|(id, _)| id.as_str()).collect();
        let is_first = published.borrow_mut().questions.answer(&ids);
        // A second answer is posted too: the run refuses it, and the listeners hear of it.
        self.0.inbox.borrow().post(AgentCommand::Resolve(answers));
        is_first
    }

    /// Tells the listeners of an active run that a decision was refused, for this reason. Returns false.
    pub fn refuse(&self, id: Option<String>, call_id: Option<String>, reason: String) -> bool {
        if self.has_run() {
            self.0.inbox.borrow().post(AgentCommand::Refuse { id, call_id, reason });
        }
        false
    }

    /// Whether there is a run that decisions may be about: an active one, or one that waits to be continued.
    fn has_run(&self) -> bool {
        self.is_running() || matches!(&*self.0.resume.borrow(), Some(Resume::Run(..)))
    }
}
