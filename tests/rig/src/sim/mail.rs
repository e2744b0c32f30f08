//! What comes from outside: replies of effects, answers, decisions, letters.

use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::budget::Amounts;
use turnwheel::config::SteeringTime;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::machine::{AgentCommand, EffectId, Input, Letter, Queue, Reply};
use turnwheel::message::AgentMessage;
use turnwheel::ports::TurnChoice;
use turnwheel::question::QuestionKind;
use turnwheel::stream::AssistantMessageEvent as E;

use super::random::{compaction, decision, outcome, raw, transform};
use super::{Running, Sim};

impl Sim {
    /// Lets one of the running effects reply. Returns whether there was one.
    pub(super) fn reply(&mut self) -> bool {
        if self.running.is_empty() {
            return false;
        }
        let mut at = self.dice.below(self.running.len());
        if matches!(self.running.values().nth(at), Some(Running::Sleep(_))) && self.dice.chance(85) {
            // Timers are slow: other effects usually reply first.
            let busy = self.running.values().position(|running| !matches!(running, Running::Sleep(_)));
            at = busy.unwrap_or(at);
        }
        let Some((id, mut running)) =
            self.running.keys().nth(at).copied().and_then(|id| self.running.remove_entry(&id))
        else {
            return false;
        };
        let dice = self.dice.clone();
        let (reply, more) = match &mut running {
            Running::Choose => {
                let dice = dice.aside();
                let messages = dice.chance(20).then(|| self.state.messages().to_vec());
                let choice = TurnChoice { messages, ..TurnChoice::default() };
                (
                    Reply::Chosen(if dice.chance(3) { Err("no".to_owned()) } else { Ok(Box::new(choice)) }),
                    false,
                )
            }
            Running::Prepare { overflow } => {
                (Reply::Prepared(transform(&dice, self.state.messages(), *overflow)), false)
            }
            Running::Infer(script) => script.next(&dice),
            Running::Hook => {
                let failed = dice.chance(3);
                let error = ErrorInfo::new(ErrorKind::Hook, "the hook failed");
                (Reply::Hook(if failed { Err(error) } else { Ok(()) }), false)
            }
            Running::Approve(call_id) => {
                let decided = if dice.chance(8) { Err("no".to_owned()) } else { Ok(decision(&dice)) };
                if let Ok(ToolDecision::AcceptWith(_)) = decided {
                    self.changed.insert(call_id.clone());
                }
                (Reply::Approved(decided), false)
            }
            Running::Execute(working) if dice.chance(20) => (Reply::Progress(working.progress(&dice)), true),
            // It waits for a person, or the agent inside it does.
            Running::Execute(working) if working.waits() && dice.aside().chance(95) => {
                let child = working.close_question();
                self.running.insert(id, running);
                match child {
                    Some(event) => self.step(Input::Reply(id, Reply::Progress(event))),
                    None => self.answer_a_tool(),
                }
                return true;
            }
            Running::Execute(_) => (Reply::Executed(outcome(&dice)), false),
            Running::Poll(queue) => (Reply::Polled(self.polled(*queue)), false),
            Running::Compact => (Reply::Compacted(compaction(&dice, self.state.messages())), false),
            Running::Sleep(until) => {
                self.now = self.now.max(*until);
                (Reply::Slept, false)
            }
        };
        if more {
            self.running.insert(id, running);
        }
        self.now += u64::try_from(dice.below(3)).unwrap_or(0) * 10;
        self.step(Input::Reply(id, reply));
        true
    }

    fn polled(&self, queue: Queue) -> Vec<AgentMessage> {
        let likely = match queue {
            Queue::Steering => 12,
            Queue::Posted => 0,
            Queue::FollowUp => 25,
        };
        if self.dice.chance(likely) { vec![AgentMessage::user("polled")] } else { Vec::new() }
    }

    /// A late reply to a cancelled effect must change nothing.
    pub(super) fn late_reply(&mut self) {
        let id = *self.dice.pick(&self.cancelled);
        let reply = match self.dice.below(6) {
            0 => Reply::Executed(outcome(&self.dice)),
            1 => Reply::Stream(E::TextDelta { index: 0, delta: "late".to_owned() }),
            2 => Reply::Approved(Ok(ToolDecision::Accept)),
            3 => Reply::Slept,
            4 => Reply::StreamEnded,
            _ => Reply::Polled(vec![AgentMessage::user("late")]),
        };
        let mut out = Vec::new();
        self.state.step(&self.rules, self.now, Input::Reply(id, reply), &mut out);
        if !out.is_empty() {
            self.faults.push(format!("a late reply to effect {id} changed something: {out:?}"));
        }
    }

    pub(super) fn post_command(&mut self) {
        match self.dice.below(12) {
            0..=4 => self.steer(true),
            5 | 6 => self.steer(false),
            7 => {
                self.cleared = true;
                self.step(Input::Command(AgentCommand::ClearQueues));
            }
            8 => self.step(Input::Command(AgentCommand::SwitchModel)),
            9 => {
                let call_id = (*self.dice.pick(&["a", "b", "a#2", "call_1"])).to_owned();
                let decision = self.decision(&call_id);
                self.step(Input::Command(AgentCommand::ResolveTool { call_id, decision }));
            }
            10 if self.dice.chance(60) => self.answer_some(),
            10 => {
                let ids = ["a", "b", "c"].map(str::to_owned);
                let mut decisions = Vec::new();
                for id in ids {
                    let decision = self.decision(&id);
                    decisions.push((id, decision));
                }
                self.step(Input::Command(AgentCommand::ResolveTools(decisions)));
            }
            _ => {
                let empty = Letter::new(AgentMessage::user(" "), self.receipt());
                self.step(Input::Command(AgentCommand::Steer(empty)));
            }
        }
    }

    /// Answers questions by their ids: open ones, closed ones, and some that never were.
    fn answer_some(&mut self) {
        let mut ids: Vec<String> = self.state.questions().into_iter().map(|question| question.id).collect();
        if self.dice.chance(50) {
            ids.extend(self.asked.keys().next().cloned());
        }
        if self.dice.chance(10) {
            ids.push("never".to_owned());
        }
        // Some answer a second time.
        if self.dice.aside().chance(30) {
            ids.extend(self.elsewhere.iter().next_back().cloned());
        }
        let mut answers = Vec::new();
        for id in ids {
            let answer = self.answer_to(&id);
            answers.push((id, answer));
        }
        self.step(Input::Command(AgentCommand::Resolve(answers)));
    }

    /// An answer to a question; usually one that it may have.
    fn answer_to(&mut self, id: &str) -> Answer {
        let kind =
            self.state.questions().iter().find(|question| question.id == id).map(|question| question.kind);
        let aside = self.dice.aside();
        let kinds =
            [QuestionKind::Tool, QuestionKind::Budget, QuestionKind::Elicitation, QuestionKind::ToolCall];
        let kind = kind.filter(|_| aside.chance(95)).unwrap_or_else(|| *aside.pick(&kinds));
        let more = |most| u64::try_from(aside.below(most)).unwrap_or(0);
        match kind {
            QuestionKind::Budget if aside.chance(60) => Answer::Raise(Amounts {
                tokens: more(60),
                tool_calls: more(3),
                turns: more(3),
                ms: more(2_000),
                ..Amounts::default()
            }),
            QuestionKind::Elicitation if aside.chance(70) => Answer::Accept(raw("{\"n\":1}")),
            QuestionKind::ToolCall => match aside.below(6) {
                0 => Answer::Decision(ToolDecision::Reject { reason: None }),
                1 => Answer::error("no luck"),
                _ => Answer::output("there"),
            },
            QuestionKind::Budget | QuestionKind::Elicitation => {
                [Answer::Decline, Answer::Cancel, Answer::Decision(ToolDecision::Reject { reason: None })]
                    .get(aside.below(3))
                    .cloned()
                    .unwrap_or(Answer::Cancel)
            }
            _ => {
                let call_id = self.asked.get(id).map(|asked| asked.0.clone()).unwrap_or_default();
                self.decision(&call_id).into()
            }
        }
    }

    /// Answers one of the questions that tools have asked.
    fn answer_a_tool(&mut self) {
        let questions = self.state.questions();
        let asked = questions.iter().find(|question| question.kind == QuestionKind::Elicitation);
        let Some(question) = asked else {
            return self.faults.push("a tool waits, and nothing is asked".to_owned());
        };
        let answer = self.answer_to(&question.id);
        self.step(Input::Command(AgentCommand::Resolve(vec![(question.id.clone(), answer)])));
    }

    /// A tool gets an answer to a question that it has asked.
    pub(super) fn take_answer(&mut self, id: EffectId, number: u64, answer: &Answer) {
        let Some(Running::Execute(working)) = self.running.get_mut(&id) else {
            return self.faults.push(format!("an answer to a tool that does not run: {answer:?}"));
        };
        if !working.open.remove(&number) {
            self.faults.push(format!("an answer to question {number}, which is not open: {answer:?}"));
        }
        if matches!(answer, Answer::Decision(_) | Answer::Raise(_)) {
            self.faults.push(format!("no answer for a tool: {answer:?}"));
        }
    }

    fn decision(&mut self, call_id: &str) -> ToolDecision {
        let decision = decision(&self.dice);
        if let ToolDecision::AcceptWith(_) = decision {
            self.changed.insert(call_id.to_owned());
        }
        decision
    }

    fn receipt(&mut self) -> u64 {
        let receipt = u64::try_from(self.receipts.len() + self.orphans.len()).unwrap_or(0) + 1;
        self.receipts.insert(receipt, None);
        receipt
    }

    pub(super) fn steer(&mut self, now: bool) {
        let receipt = self.receipt();
        let message = AgentMessage::user(format!("letter {receipt}"));
        let when = self.dice.chance(50).then(|| *self.dice.pick(&SteeringTime::ALL));
        let letter = Letter { message, receipt, when };
        let command = if now { AgentCommand::Steer(letter) } else { AgentCommand::FollowUp(letter) };
        self.step(Input::Command(command));
    }

    /// Nothing is running, so a decision must be pending; makes one.
    pub(super) fn decide_or_stick(&mut self) {
        let questions = self.state.questions();
        if let Some(question) = questions.iter().find(|question| question.kind == QuestionKind::Budget) {
            let answer = self.answer_to(&question.id);
            return self.step(Input::Command(AgentCommand::Resolve(vec![(question.id.clone(), answer)])));
        }
        let calls = questions.iter().find(|question| question.kind == QuestionKind::ToolCall);
        if let Some(question) = calls.filter(|_| self.dice.aside().chance(60)) {
            let answer = self.answer_to(&question.id);
            return self.step(Input::Command(AgentCommand::Resolve(vec![(question.id.clone(), answer)])));
        }
        let pending = self.state.pending_approvals();
        match pending.get(self.dice.below(pending.len())) {
            Some(call) => {
                let call_id = call.call_id.clone();
                let decision = self.decision(&call_id);
                if self.dice.chance(50) {
                    let questions = self.state.questions();
                    let question = questions.iter().find(|question| question.call_id() == Some(&call_id));
                    let id = question.map_or_else(String::new, |question| question.id.clone());
                    return self.step(Input::Command(AgentCommand::Resolve(vec![(id, decision.into())])));
                }
                self.step(Input::Command(AgentCommand::ResolveTool { call_id, decision }));
            }
            // Some other time.
            None if calls.is_some() => self.now += 10,
            None => {
                self.faults.push("nothing runs, nobody is waited for, and it is not the end".to_owned());
                self.abort();
            }
        }
    }
}
