//! The grammar of a run, as a checker that every trace of every test goes through.
//!
//! ```text
//! run     = (agent_start | run_resumed) turn* agent_end
//! turn    = turn_start message? tools turn_end
//! message = message_start (message_update | message_reset)* message_end
//! tools   = each call exactly once: tool_execution_start? tool_execution_update* tool_execution_end
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::rc::Rc;

use turnwheel::event::{AgentEvent, RunStopReason, TurnEndReason};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, ToolResultMessage, Usage,
};

/// Records a fault if a condition does not hold.
macro_rules! ensure {
    ($grammar:expr, $holds:expr, $fault:expr $(,)?) => {
        if !$holds {
            let fault = $fault;
            $grammar.faults.push(fault);
        }
    };
}

/// Checks one run after the other.
#[derive(Default)]
pub struct Grammar {
    /// The faults found.
    pub faults: Vec<String>,
    run: bool,
    runs: usize,
    turn: Option<Turn>,
    turn_index: u32,
    /// Set after a turn that no other turn may follow.
    last_turn: Option<TurnEndReason>,
    usage: Usage,
    /// The ids of all questions that were ever asked.
    questions: BTreeSet<String>,
    /// The open questions that are not about calls of the run itself, each with the call inside which it was asked.
    open: BTreeMap<String, Option<String>>,
    /// Those that were closed when the process ended, of which nobody may have been told yet.
    closing: BTreeSet<String>,
}

#[derive(Default)]
struct Turn {
    message: Message,
    /// The text since the last reset, by block.
    shown: BTreeMap<u32, String>,
    /// The calls of the message, in order.
    calls: Vec<String>,
    lanes: BTreeMap<String, Lane>,
    /// Whether the turn comes from a checkpoint.
    restored: bool,
}

#[derive(Default, PartialEq)]
enum Message {
    #[default]
    None,
    Open,
    Ended(Rc<AssistantMessage>),
}

#[derive(Default)]
struct Lane {
    asked: u32,
    resolved: u32,
    /// The id of the question that is open.
    question: Option<String>,
    /// Whether the call comes from a checkpoint: it may be asked about again.
    restored: bool,
    starts: u32,
    end: Option<Rc<ToolResultMessage>>,
}

impl Grammar {
    /// Takes the next event.
    pub fn take(&mut self, event: &AgentEvent) {
        let name = event.name();
        ensure!(
            self,
            self.run || matches!(event, AgentEvent::AgentStart { .. }),
            format!("{name} outside a run")
        );
        match event {
            AgentEvent::AgentStart { .. } => {
                ensure!(self, !self.run, "a run in a run".to_owned());
                let (faults, questions) = (take(&mut self.faults), take(&mut self.questions));
                *self = Grammar { faults, questions, run: true, runs: self.runs + 1, ..Grammar::default() };
            }
            // A resumed run continues where it was: everything after it joins what came before.
            AgentEvent::RunResumed { turn_index, pending_approvals, .. } => {
                // What a tool asked is gone with it; an agent inside a call has its questions still.
                let is_open = |id: &String| pending_approvals.iter().any(|question| question.id == *id);
                self.closing.extend(self.open.keys().filter(|id| !is_open(id)).cloned());
                self.open.retain(|id, _| is_open(id));
                // Of those of agents inside calls, listeners may know from this list alone.
                for question in pending_approvals {
                    if let Some(call_id) = question.path.first() {
                        self.open.entry(question.id.clone()).or_insert_with(|| Some(call_id.clone()));
                    }
                }
                ensure!(self, *turn_index == self.turn_index, format!("resumed in turn {turn_index}"));
                if let Some(turn) = &mut self.turn {
                    turn.restored = true;
                    turn.lanes.values_mut().for_each(|lane| lane.restored = true);
                }
            }
            AgentEvent::AgentEnd { messages, stop_reason, usage, turns, error, .. } => {
                ensure!(self, self.turn.is_none(), "the run ends in a turn".to_owned());
                let failed = matches!(stop_reason, RunStopReason::Error | RunStopReason::Aborted);
                ensure!(self, failed == error.is_some(), format!("{stop_reason:?} with error {error:?}"));
                ensure!(self, *turns <= self.turn_index, {
                    format!("{turns} turns told, {} seen", self.turn_index)
                });
                ensure!(self, *usage == self.usage || usage.total >= self.usage.total, {
                    format!("usage told {usage:?}, seen {:?}", self.usage)
                });
                self.faults.extend(faults_of_new_messages(messages));
                self.run = false;
            }
            AgentEvent::TurnStart { turn_index, .. } => {
                ensure!(self, self.turn.is_none(), "a turn in a turn".to_owned());
                ensure!(self, *turn_index == self.turn_index, {
                    format!("turn {turn_index} where {} comes next", self.turn_index)
                });
                let last = self.last_turn;
                ensure!(self, last.is_none(), format!("a turn after one that ended by {last:?}"));
                self.turn = Some(Turn::default());
            }
            AgentEvent::TurnEnd { turn_index, message, tool_results, reason, .. } => {
                ensure!(self, *turn_index == self.turn_index, format!("turn_end of turn {turn_index}"));
                self.end_turn(message.as_ref(), tool_results, *reason);
            }
            AgentEvent::MessageStart { .. } => {
                let fresh = self.turn.as_ref().is_some_and(|turn| turn.message == Message::None);
                ensure!(self, fresh, "message_start".to_owned());
                if let Some(turn) = &mut self.turn {
                    turn.message = Message::Open;
                }
            }
            AgentEvent::MessageUpdate(delta) => {
                ensure!(self, self.message_is_open(), "message_update outside a message".to_owned());
                ensure!(self, !delta.text.is_empty(), "an empty message_update".to_owned());
                if let Some(turn) = &mut self.turn {
                    turn.shown.entry(delta.content_index).or_default().push_str(&delta.text);
                }
            }
            AgentEvent::MessageReset { .. } => {
                ensure!(self, self.message_is_open(), "message_reset outside a message".to_owned());
                if let Some(turn) = &mut self.turn {
                    turn.shown.clear();
                }
            }
            AgentEvent::MessageEnd { message, .. } => self.end_message(message),
            AgentEvent::ToolCallsProposed { calls } => {
                let calls: Vec<String> = calls.iter().map(|call| call.call_id.clone()).collect();
                let same = self.turn.as_ref().is_some_and(|turn| turn.calls == calls);
                ensure!(self, same, format!("tool_calls_proposed {calls:?}"));
            }
            // A question of an agent inside a call.
            AgentEvent::ToolApprovalRequested { id, path, .. } if !path.is_empty() => {
                self.ask_inside(id, path);
            }
            AgentEvent::ToolApprovalResolved { id, path, .. }
            | AgentEvent::QuestionResolved { id, path, .. }
                if !path.is_empty() =>
            {
                let was_open = self.open.remove(id).is_some() || self.closing.remove(id);
                ensure!(self, was_open, format!("question {id} is closed and was not open"));
            }
            AgentEvent::QuestionAsked { question } => {
                let is_turn = self.turn.is_some();
                ensure!(self, is_turn, format!("question {} outside a turn", question.id));
                let of = question.path.first().map(String::as_str).or(question.call_id());
                if let Some(call_id) = of {
                    self.ask_inside(&question.id, &[call_id.to_owned()]);
                    if question.path.is_empty() {
                        self.open.insert(question.id.clone(), None);
                    }
                } else {
                    let is_new = self.questions.insert(question.id.clone());
                    ensure!(self, is_new, format!("two questions have the id {}", question.id));
                    self.open.insert(question.id.clone(), None);
                }
            }
            AgentEvent::QuestionResolved { id, .. } => {
                let was_open = self.open.remove(id).is_some() || self.closing.remove(id);
                ensure!(self, was_open, format!("question {id} is closed and was not open"));
            }
            AgentEvent::ToolApprovalRequested { id, call_id, .. } => {
                let is_new = self.questions.insert(id.clone());
                ensure!(self, is_new, format!("two questions have the id {id}"));
                let fresh = self.lane(call_id, |lane| {
                    lane.asked += 1;
                    let first = lane.restored || (lane.asked == 1 && lane.starts == 0);
                    let was_closed = lane.question.replace(id.clone()).is_none();
                    first && was_closed && lane.asked == lane.resolved + 1 && lane.end.is_none()
                });
                ensure!(self, fresh, format!("tool_approval_requested {call_id}"));
            }
            AgentEvent::ToolApprovalResolved { id, call_id, .. } => {
                let open = self.lane(call_id, |lane| {
                    lane.resolved += 1;
                    lane.question.take().as_ref() == Some(id)
                        && lane.asked == lane.resolved
                        && (lane.starts == 0 || lane.restored)
                });
                ensure!(self, open, format!("tool_approval_resolved {call_id}"));
            }
            AgentEvent::ToolExecutionStart { call_id, .. } => {
                let fresh = self.lane(call_id, |lane| {
                    lane.starts += 1;
                    lane.starts == 1 && lane.end.is_none() && lane.asked == lane.resolved
                });
                ensure!(self, fresh, format!("tool_execution_start {call_id}"));
            }
            AgentEvent::ToolExecutionUpdate { call_id, .. } => {
                let open = self.lane(call_id, |lane| lane.starts == 1 && lane.end.is_none());
                ensure!(self, open, format!("tool_execution_update {call_id}"));
            }
            AgentEvent::ToolExecutionEnd { result, .. } => {
                let call_id = result.call_id.as_str();
                // What an agent inside it has asked is closed with it; its own tool's questions are closed before.
                self.open.retain(|_, of| of.as_deref() != Some(call_id));
                let open = self.lane(call_id, |lane| {
                    lane.end.replace(result.clone()).is_none() && lane.asked == lane.resolved
                });
                ensure!(self, open, format!("tool_execution_end {call_id}"));
            }
            _ => {}
        }
    }

    /// Whether a run has begun and not ended.
    pub fn is_running(&self) -> bool {
        self.run
    }

    /// Finishes: no more events come. `history` is the agent's.
    pub fn finish(mut self, history: &[AgentMessage]) -> Vec<String> {
        let open = self.run;
        ensure!(self, !open, "a run that never ends".to_owned());
        let none = self.runs == 0;
        ensure!(self, !none, "no run".to_owned());
        self.faults.extend(faults_of_history(history));
        self.faults
    }

    /// A running call, or an agent inside it, asks a person.
    fn ask_inside(&mut self, id: &str, path: &[String]) {
        let is_new = self.questions.insert(id.to_owned());
        ensure!(self, is_new, format!("two questions have the id {id}"));
        let Some(call_id) = path.first() else { return };
        let runs = self.lane(call_id, |lane| (lane.starts == 1 || lane.restored) && lane.end.is_none());
        ensure!(self, runs, format!("question {id} of {call_id}, which does not run"));
        self.open.insert(id.to_owned(), Some(call_id.clone()));
    }

    fn message_is_open(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.message == Message::Open)
    }

    fn lane(&mut self, call_id: &str, look: impl FnOnce(&mut Lane) -> bool) -> bool {
        let Some(turn) = &mut self.turn else { return false };
        if !turn.calls.iter().any(|id| id == call_id) {
            return false;
        }
        let restored = turn.restored;
        look(turn.lanes.entry(call_id.to_owned()).or_insert_with(|| Lane { restored, ..Lane::default() }))
    }

    fn end_message(&mut self, message: &Rc<AssistantMessage>) {
        ensure!(self, self.message_is_open(), "message_end without a start".to_owned());
        self.usage.add(&message.usage);
        let cut = matches!(message.stop_reason, MessageStopReason::Error | MessageStopReason::Aborted);
        ensure!(self, cut == message.error.is_some(), {
            format!("a message that stopped by {:?} with error {:?}", message.stop_reason, message.error)
        });
        let Some(turn) = &mut self.turn else { return };
        let mut faults = Vec::new();
        for (index, block) in message.content.iter().enumerate() {
            let shown = u32::try_from(index).ok().and_then(|index| turn.shown.get(&index));
            let shown = shown.map_or("", String::as_str);
            let reported = match block {
                ContentBlock::Text(block) => block.text.as_str(),
                ContentBlock::Thinking(block) => block.thinking.as_str(),
                _ => continue,
            };
            // A message that was cut off may have lost a call in the middle.
            if !message.is_cut() && shown != reported {
                faults.push(format!("block {index} was shown as {shown:?} and is {reported:?}"));
            }
        }
        turn.calls = message.tool_calls().map(|call| call.call_id.clone()).collect();
        turn.message = Message::Ended(message.clone());
        self.faults.extend(faults);
    }

    fn end_turn(
        &mut self,
        message: Option<&Rc<AssistantMessage>>,
        results: &[Rc<ToolResultMessage>],
        reason: TurnEndReason,
    ) {
        let Some(turn) = self.turn.take() else {
            return self.faults.push("turn_end without a start".to_owned());
        };
        let open: Vec<&String> = self.open.keys().collect();
        ensure!(self, open.is_empty(), format!("questions are open at the end of a turn: {open:?}"));
        let shown = match (&turn.message, message) {
            (Message::None, None) => reason == TurnEndReason::Complete && results.is_empty(),
            (Message::Ended(shown), Some(reported)) => {
                shown.tool_calls().map(|c| &c.call_id).eq(reported.tool_calls().map(|c| &c.call_id))
            }
            _ => false,
        };
        ensure!(self, shown, format!("turn_end({reason:?}) with message {message:?}"));
        let order: Vec<&str> = results.iter().map(|result| result.call_id.as_str()).collect();
        ensure!(self, turn.calls == order, format!("calls {:?}, results {order:?}", turn.calls));
        for id in &turn.calls {
            let lane = turn.lanes.get(id);
            let ended = lane.and_then(|lane| lane.end.as_ref());
            let reported = results.iter().find(|result| result.call_id == *id);
            ensure!(self, ended.is_some() && ended == reported, {
                format!("call {id} ended with {ended:?}, told {reported:?}")
            });
            ensure!(self, lane.is_none_or(|lane| lane.asked == lane.resolved), {
                format!("call {id} asked and not resolved")
            });
        }
        let cut = message.is_some_and(|m| m.stop_reason == MessageStopReason::Aborted);
        ensure!(self, cut == (reason == TurnEndReason::Aborted), {
            format!("turn_end({reason:?}) of {message:?}")
        });
        let calls = !turn.calls.is_empty();
        let fits = match reason {
            TurnEndReason::Complete => !calls,
            TurnEndReason::SteeringInterrupt => {
                calls || message.is_some_and(|m| m.stop_reason == MessageStopReason::Interrupted)
            }
            TurnEndReason::ToolsExecuted | TurnEndReason::Transfer => calls,
            TurnEndReason::Error | TurnEndReason::Aborted => true,
        };
        ensure!(self, fits, format!("turn_end({reason:?}) with calls {:?}", turn.calls));
        let last = matches!(reason, TurnEndReason::Error | TurnEndReason::Aborted | TurnEndReason::Transfer);
        self.last_turn = (last || message.is_none()).then_some(reason);
        self.turn_index += u32::from(message.is_some());
    }
}

/// Lists the faults of a history: every call must have exactly one result, right
/// after its message, in order.
pub fn faults_of_history(history: &[AgentMessage]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut messages = history.iter().peekable();
    let mut ids = std::collections::BTreeSet::new();
    while let Some(message) = messages.next() {
        match message {
            AgentMessage::ToolResult(result) => {
                faults.push(format!("a result of nothing: {}", result.call_id))
            }
            AgentMessage::Assistant(message) => {
                for call in message.tool_calls() {
                    if !ids.insert(call.call_id.clone()) {
                        faults.push(format!("two calls have the id {}", call.call_id));
                    }
                    if !call.arguments.is_object() {
                        faults.push(format!("call {} is stored with {:?}", call.call_id, call.arguments));
                    }
                    let next = messages.next_if(|next| {
                        matches!(next, AgentMessage::ToolResult(result) if result.call_id == call.call_id)
                    });
                    if next.is_none() {
                        faults.push(format!("call {} has no result in its place", call.call_id));
                    }
                }
            }
            AgentMessage::User(_) | AgentMessage::Custom(_) => {}
        }
    }
    faults
}

/// The new messages of a run must be complete too; they may begin with results of calls from before it.
fn faults_of_new_messages(messages: &[AgentMessage]) -> Vec<String> {
    let results = messages.iter().take_while(|m| matches!(m, AgentMessage::ToolResult(_))).count();
    faults_of_history(messages.get(results..).unwrap_or_default())
}
