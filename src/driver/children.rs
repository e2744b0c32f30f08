//! The agents that run inside the tools of a run.

use crate::host::tool::{ChildEvent, Progress};
use crate::journal::Entering;
use crate::machine::{EffectId, Input, Output, Reply};
use crate::rules::answer::Answer;
use crate::rules::budget::Accounts;
use crate::words::event::AgentEvent;
use crate::words::question::Question;

use super::{AgentStream, Beginning};

impl AgentStream {
    /// Lets the run use the budgets of the run around it.
    #[must_use]
    pub fn with_accounts(mut self, accounts: Accounts) -> Self {
        self.state.set_accounts(accounts);
        self
    }

    /// The budgets that an agent inside a call uses too.
    pub fn accounts(&self) -> Accounts {
        self.state.shared_accounts.clone()
    }

    /// Ends the run at once: everything open is closed, and the listeners and `tell` are told. Does nothing once the run is
    /// over.
    pub fn stop(&mut self, reason: &str, tell: &mut dyn FnMut(&AgentEvent)) {
        if self.result.is_some() {
            return;
        }
        match self.begin.take() {
            None => {}
            // The run began before its checkpoint.
            Some(begin @ Beginning::Resume(_)) => self.begin(begin),
            Some(Beginning::Start(_)) => {
                // The run never began, so there is nothing to emit.
                self.handover.hand_over(&mut self.state);
                return (self.handover.ended)();
            }
        }
        #[cfg(feature = "durable")]
        self.take_back_unstored();
        self.close_children(reason);
        self.handle_progress();
        // In the second step only the policies after the turn and the error hooks can be left, and nobody waits for them.
        for _ in 0..2 {
            self.step(Input::Abort(reason.into()));
        }
        while let Some(output) = self.outputs.pop() {
            match output {
                Output::Event(event) => {
                    self.emit(&event);
                    tell(&event);
                }
                Output::Receipt(id, receipt) => (self.handover.receipts)(id, receipt),
                Output::Cancel(id) => self.drop_effect(id),
                Output::Start { .. } | Output::Answer { .. } | Output::Flush => {}
            }
        }
    }

    /// Whether an agent inside a tool, or inside that agent, has an open question with this id.
    pub(crate) fn has_question_inside(&self, id: &str) -> bool {
        self.round.tasks.children().iter().any(|(_, child)| child.has_question(id))
    }

    /// Ends the agents inside the tools before the tools are told that nobody wants them any more.
    #[cold]
    pub(super) fn close_children(&self, reason: &str) {
        for (_, child) in self.round.tasks.children() {
            child.close(reason);
        }
    }

    /// Takes an event of an agent inside a call that has its result already. Returns what the listeners are told.
    pub fn take_late_event(&mut self, call_id: &str, event: ChildEvent) -> Vec<AgentEvent> {
        self.take_late(call_id, event, None)
    }

    fn take_late(&mut self, call_id: &str, event: ChildEvent, dropped: Option<EffectId>) -> Vec<AgentEvent> {
        self.seam.enters(&self.state, self.now, &Entering::Late { call_id, event: &event, dropped });
        let events = self.state.take_late_event(call_id, event);
        self.outputs.correct_end(&self.state);
        events
    }

    /// What an agent inside a call had told before the call got its result is told before the end of the call, though it is
    /// read only now.
    pub(super) fn tells_late(&mut self, id: EffectId, reply: Reply) -> Option<Reply> {
        match reply {
            Reply::Progress(Progress::Event(event)) if self.outputs.is_cancelled(id) => {
                let call_id = self.round.tasks.call_of(id)?;
                let events = self.take_late(&call_id, event, Some(id));
                self.outputs.tell_before_cancel(id, events);
                None
            }
            reply => Some(reply),
        }
    }

    /// Drops an effect. If an agent runs inside it, that ends first, and what it had told is told.
    pub(super) fn drop_effect(&mut self, id: EffectId) {
        // A host that ends the agent itself does so when it hears of the cancellation: after what is told here.
        self.outputs.put_back(Output::Cancel(id));
        if self.tells_rest(id) {
            return;
        }
        self.outputs.pop();
        self.round.remove(id);
        self.give_up(id);
    }

    /// Ends the agent inside a call, and puts what it tells before the end of the call. Returns whether there is any of it.
    fn tells_rest(&mut self, id: EffectId) -> bool {
        let Some(call_id) = self.round.tasks.call_of(id) else { return false };
        let mut events = Vec::new();
        for progress in self.round.tasks.rest_of(id, "not wanted any more") {
            if let Progress::Event(event) = progress {
                events.extend(self.take_late(&call_id, event, Some(id)));
            }
        }
        let is_any = !events.is_empty();
        self.outputs.tell_before_cancel(id, events);
        is_any
    }

    /// Ends the agents inside calls that have their results already, before a checkpoint is taken that knows of the results:
    /// nobody would tell of their ends then.
    pub(super) fn end_cancelled_children(&mut self) {
        for id in self.outputs.cancelled() {
            self.tells_rest(id);
        }
    }

    /// Nobody is left to answer questions of the agents inside the tools.
    #[cold]
    pub(super) fn desert_children(&self) {
        self.round.tasks.children().into_iter().for_each(|(_, child)| child.desert());
    }

    /// Gives the answers to questions of sub-agents to them, and returns the others, if there are any.
    #[cold]
    pub(super) fn answer_children(
        &mut self,
        mut answers: Vec<(String, Answer)>,
    ) -> Option<Vec<(String, Answer)>> {
        let had_answers = !answers.is_empty();
        for (_, child) in self.round.tasks.children() {
            let (inside, others): (Vec<_>, Vec<_>) =
                answers.into_iter().partition(|(id, _)| child.has_question(id));
            if !inside.is_empty() {
                child.answer(inside);
            }
            answers = others;
        }
        // Questions of a checkpoint whose agent has not gone on yet.
        let is_waiting = |id: &str| self.state.child_questions.iter().any(|question| question.id == id);
        let (early, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(|(id, _)| is_waiting(id));
        if !early.is_empty() {
            self.early_answers.push(early);
        }
        (!others.is_empty() || !had_answers).then_some(others)
    }

    /// An agent inside a call goes on: it gets the answers that came before.
    #[cold]
    pub(super) fn answer_early(&mut self, id: EffectId) {
        let Some(child) = self.round.tasks.child(id) else { return };
        let call_id = child.call_id();
        let is_inside = |question: &Question| question.path.first().is_some_and(|first| first == call_id);
        let open = &self.state.child_questions;
        let is_about = |id: &str| open.iter().any(|question| question.id == id && is_inside(question));
        for answers in &mut self.early_answers {
            let inside = answers.extract_if(.., |(id, _)| is_about(id)).collect::<Vec<_>>();
            if !inside.is_empty() {
                child.answer(inside);
            }
        }
        self.early_answers.retain(|answers| !answers.is_empty());
        self.state.child_questions.retain(|question| !is_inside(question));
    }
}
