//! Calls of tools without an implementation: an engine that waits for decisions waits for their results, too.

use std::rc::Rc;

use futures::future::FutureExt;

use crate::driver::AgentStream;
use crate::host::ports::ApprovalRequest;
use crate::journal::steps::RunSlot;
use crate::machine::{AgentCommand, EffectId, Reply};
use crate::rules::answer::Answer;
use crate::rules::approval::ToolDecision;
use crate::words::question::QuestionKind;

impl AgentStream {
    /// The run rests: the engine waits for the result of each call that is answered elsewhere, until its question is closed.
    pub(super) fn wait_for_results(&mut self, slot: &Rc<RunSlot>) {
        let journal = &slot.journal;
        if !journal.engine.waits() {
            return;
        }
        let mut results = slot.results.take();
        let questions = self.state.questions();
        results.retain(|(effect, id)| {
            let is_open = questions.iter().any(|question| question.id == *id);
            if !is_open {
                journal.stop_waiting(slot, *effect);
            }
            is_open
        });
        for question in &questions {
            let is_known = results.iter().any(|(_, known)| *known == question.id);
            let call =
                question.call.as_ref().filter(|_| question.kind == QuestionKind::ToolCall && !is_known);
            let Some(call) = call else { continue };
            // It is no effect of the machine, so its number is one that none of those has.
            let effect = results.last().map_or(EffectId::MAX, |(last, _)| last - 1);
            results.push((effect, question.id.clone()));
            let name = slot.names.borrow_mut().of_call("answer/", &self.state, &call.call_id);
            let request = ApprovalRequest {
                id: question.id.clone(),
                call_id: call.call_id.clone(),
                tool_name: call.tool_name.clone(),
                arguments: call.arguments.clone(),
                requires_approval: false,
            };
            let result = journal.engine.wait(&name, question.kind, &request);
            journal.wait_for(slot, effect, name, 0, result.map(Reply::Approved).boxed_local());
        }
        *slot.results.borrow_mut() = results;
    }
}

/// The id of the question that the engine waited for under this number, if it is no effect.
pub(super) fn question_of(slot: &RunSlot, effect: EffectId) -> Option<String> {
    let mut results = slot.results.borrow_mut();
    let place = results.iter().position(|(known, _)| *known == effect)?;
    Some(results.remove(place).1)
}

/// The command that answers a question with what the engine has waited for.
pub(super) fn command_of(question: String, reply: Reply) -> AgentCommand {
    let answer = match reply {
        Reply::Approved(Ok(ToolDecision::Result { content, details, is_error })) => {
            Answer::Output { content, details, is_error }
        }
        Reply::Approved(Ok(decision)) if !decision.is_approval() => decision.into(),
        Reply::Approved(decision) => ToolDecision::Reject { reason: decision.err() }.into(),
        _ => ToolDecision::Reject { reason: None }.into(),
    };
    AgentCommand::Resolve(vec![(question, answer)])
}
