//! The policies of the slots around a model call, and what they decide together.

use std::rc::Rc;

use crate::host::isolate::guard;
use crate::rules::policy::{PolicyContext, PostTurn, Verdict};
use crate::words::event::{AgentEvent, RunStopReason, TurnEndReason};
use crate::words::message::{AgentMessage, AssistantMessage, ContentBlock, ToolCallBlock, ToolResultMessage};

use super::output::Output;
use super::phase::Phase;
use super::step::Step;

/// Asks the next policy of a slot.
type NextVerdict<'a> = dyn FnMut(&PolicyContext<'_>) -> Option<Result<Verdict, String>> + 'a;

/// What the policies of a slot decided together.
#[derive(Default)]
pub(super) struct Decided {
    pub(super) stop: bool,
    pub(super) injected: Vec<AgentMessage>,
}

impl Step<'_> {
    pub(super) fn is_out_of_turns(&self) -> bool {
        self.rules.max_turns.is_some_and(|max| self.state.tally.turns >= max)
    }

    pub(super) fn pre_turn(&mut self) {
        if self.is_out_of_turns() {
            return self.stop_before_call(RunStopReason::MaxTurns);
        }
        self.append_urgent();
        if !self.has_room() {
            return;
        }
        let has_emitted = self.out.iter().any(|output| matches!(output, Output::Event(_)));
        if has_emitted && !self.rules.pre_turn.is_empty() {
            return self.flush(Phase::Preparing { effect: 0, overflow: false });
        }
        self.decide_turn();
    }

    /// Policies decide about a phase when the listeners have received all events before: a listener may post what they
    /// look at.
    pub(super) fn flush(&mut self, then: Phase) {
        self.out.push(Output::Flush);
        self.state.phase = Phase::Flushing { then: Box::new(then) };
    }

    pub(super) fn flushed(&mut self) {
        match std::mem::take(&mut self.state.phase) {
            Phase::Flushing { then } => match *then {
                Phase::Dispatching(batch) if batch.is_unseen => self.clear_batch(batch),
                Phase::Dispatching(batch) => self.finish_batch(*batch),
                _ => self.decide_turn(),
            },
            // It was interrupted meanwhile.
            phase => self.state.phase = phase,
        }
    }

    fn decide_turn(&mut self) {
        let mut policies = self.rules.pre_turn.iter();
        let decided = self.decide(policies.len(), &mut |context| Some(policies.next()?.evaluate(context)));
        self.state.turn.fresh_from = None;
        if decided.stop {
            return self.stop_before_call(RunStopReason::PolicyStop);
        }
        for message in decided.injected {
            self.append_in_view(message);
        }
        self.call_model();
    }

    pub(super) fn stop_before_call(&mut self, reason: RunStopReason) {
        self.state.turn.open = false;
        self.emit(AgentEvent::TurnEnd {
            turn_index: self.state.tally.turn_index,
            message: None,
            tool_results: Vec::new(),
            reason: TurnEndReason::Complete,
            at: self.now,
        });
        self.end_run(reason, None);
    }

    /// Evaluates the policies. Returns what they decided, and the message, which they may have replaced.
    pub(super) fn post_turn(
        &mut self,
        message: &Rc<AssistantMessage>,
        place: usize,
        results: &[Rc<ToolResultMessage>],
    ) -> (Decided, Rc<AssistantMessage>) {
        let mut message = message.clone();
        self.state.turn.fresh_from = None;
        let mut policies = self.rules.post_turn.iter();
        let mut decided = self.decide(policies.len(), &mut |context| {
            Some(policies.next()?.evaluate(&PostTurn {
                context: *context,
                message: &message,
                tool_results: results,
                messages: self.state.history.messages(),
            }))
        });
        let mut injected = Vec::new();
        for candidate in std::mem::take(&mut decided.injected) {
            match candidate {
                AgentMessage::Assistant(replacement) => {
                    if let Some(replacement) = with_calls_of(&message, &replacement) {
                        message = Rc::new(replacement);
                        self.amend(place, &message);
                    }
                }
                other => injected.push(other),
            }
        }
        decided.injected = injected;
        (decided, message)
    }

    /// Replaces the answer in the history.
    pub(super) fn amend(&mut self, place: usize, message: &Rc<AssistantMessage>) {
        let old = self.state.history.messages().get(place).cloned();
        self.state.history.amend(place, AgentMessage::Assistant(message.clone()));
        let slot =
            old.and_then(|old| self.state.appended.messages.iter_mut().rev().find(|m| m.is_same(&old)));
        if let Some(slot) = slot {
            *slot = AgentMessage::Assistant(message.clone());
        }
    }

    /// Evaluates the given number of policies of a slot in order; `next` evaluates one. The first `Stop`
    /// wins and discards the injections before it.
    pub(super) fn decide(&self, policies: usize, next: &mut NextVerdict<'_>) -> Decided {
        let mut decided = Decided::default();
        if policies == 0 {
            return decided;
        }
        let state = self.state.session.snapshot();
        let context = self.policy_context(&state);
        for _ in 0..policies {
            match guard(|| next(&context).unwrap_or(Ok(Verdict::Continue))) {
                Ok(Verdict::Continue) | Err(_) => {}
                Ok(Verdict::Inject(mut messages)) => decided.injected.append(&mut messages),
                Ok(Verdict::Stop(_)) => return Decided { stop: true, injected: Vec::new() },
            }
        }
        decided
    }

    fn policy_context<'c>(&'c self, state: &'c crate::data::json::Map) -> PolicyContext<'c> {
        // After the call it is the history that counts.
        let view = self.state.turn.view.as_deref().filter(|_| self.state.turn.fresh_from.is_some());
        let view = view.unwrap_or(self.state.history.messages());
        PolicyContext {
            run_id: &self.state.context.run_id,
            session_id: &self.state.context.session_id,
            turn_index: self.state.tally.turn_index,
            metadata: self.state.context.metadata.as_ref(),
            usage: &self.state.tally.usage,
            message_count: view.len(),
            new_messages: self.fresh_messages(),
            overflow_signal: !self.state.is_turn_new(),
            state,
        }
    }

    /// Returns the messages appended since the last turn.
    fn fresh_messages(&self) -> &[AgentMessage] {
        let from = self.state.turn.fresh_from.unwrap_or(self.state.appended.messages.len());
        self.state.appended.messages.get(from..).unwrap_or_default()
    }
}

/// Returns a replacement with the calls and the id of the message that it replaces, if it has the same calls.
/// Arguments may differ in whitespace: the model's own text stays.
fn with_calls_of(message: &AssistantMessage, replacement: &AssistantMessage) -> Option<AssistantMessage> {
    let mut calls = message.tool_calls();
    let mut content = replacement.content.clone();
    for block in &mut content {
        let ContentBlock::ToolCall(call) = block else { continue };
        *call = calls.next().filter(|own| is_same_call(own, call))?.clone();
    }
    let id = message.id.clone();
    calls.next().is_none().then(|| AssistantMessage { content, id, ..replacement.clone() })
}

fn is_same_call(own: &ToolCallBlock, other: &ToolCallBlock) -> bool {
    own.call_id == other.call_id
        && own.tool_name == other.tool_name
        && (own.arguments == other.arguments || own.arguments.to_value() == other.arguments.to_value())
}
