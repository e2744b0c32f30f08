//! What was seen of a family, and whether it may be so.

use std::collections::{BTreeMap, BTreeSet};

use turnwheel::agent::Agent;
use turnwheel::config::SteeringTime;
use turnwheel::driver::AgentStream;
use turnwheel::event::{AgentEvent, BudgetState, DecisionSource};
use turnwheel::json::{FromJson, RawJson};
use turnwheel::message::{AgentMessage, ToolResultCause, text_of};
use turnwheel::question::{Question, QuestionKind};

use super::Played;
use crate::grammar::Grammar;

#[derive(Default)]
pub(super) struct Watch {
    pub(super) faults: Vec<String>,
    seen: BTreeMap<&'static str, u64>,
    is_traced: bool,
    trace: Vec<String>,
    /// The runs by their paths; the outermost has none.
    runs: BTreeMap<String, Grammar>,
    /// The calls that have their results, each with the path to it.
    ended: BTreeSet<String>,
    questions: BTreeMap<String, Asked>,
    /// How often each call of a tool has begun.
    begun: BTreeMap<String, u32>,
    /// When each message acts, in the order sent.
    pub(super) letters: Vec<SteeringTime>,
    read: BTreeSet<String>,
    /// What was open when the process ended.
    slept_with: Vec<String>,
    is_over: bool,
    /// When this life began, and the time of the last event.
    born: u64,
    last: u64,
}

struct Asked {
    kind: QuestionKind,
    path: Vec<String>,
    is_open: bool,
    answer: Option<bool>,
    /// Whether it was told by an event, and not only in the list of a run that goes on.
    is_told: bool,
    /// Whether somebody answered before the process ended: then that answer counts, or one that is given now.
    is_answered_before: bool,
    /// Whether it was closed when the process ended, and nobody may have been told yet.
    is_closing: bool,
}

/// The name of an event, with the question or the call that it is about.
fn line(event: &AgentEvent) -> String {
    let about = match event {
        AgentEvent::ToolApprovalRequested { id, .. }
        | AgentEvent::ToolApprovalResolved { id, .. }
        | AgentEvent::QuestionResolved { id, .. } => id.clone(),
        AgentEvent::QuestionAsked { question } => question.id.clone(),
        AgentEvent::RunResumed { pending_approvals, .. } => {
            pending_approvals.iter().map(|question| question.id.as_str()).collect::<Vec<_>>().join(",")
        }
        AgentEvent::ToolExecutionStart { call_id, .. } => call_id.clone(),
        AgentEvent::ToolExecutionEnd { result, .. } => {
            format!("{} {:?} {}", result.call_id, result.cause, text_of(&result.content))
        }
        AgentEvent::ToolCallsProposed { calls, .. } => calls
            .iter()
            .map(|call| format!("{}:{}", call.call_id, call.tool_name))
            .collect::<Vec<_>>()
            .join(" "),
        _ => return event.name().to_owned(),
    };
    format!("{} {about}", event.name())
}

impl Asked {
    fn new(kind: QuestionKind, path: &[String]) -> Self {
        Asked {
            kind,
            path: path.to_vec(),
            is_open: true,
            answer: None,
            is_told: false,
            is_answered_before: false,
            is_closing: false,
        }
    }
}

impl Watch {
    pub(super) fn new(is_traced: bool) -> Self {
        Watch { is_traced, ..Watch::default() }
    }

    pub(super) fn trace(&mut self, line: impl FnOnce() -> String) {
        if self.is_traced {
            self.trace.push(line());
        }
    }

    pub(super) fn begin_life(&mut self, now: u64) {
        self.count("lives");
        (self.born, self.last) = (now, now);
    }

    /// A watch over another run of the same agent.
    pub(super) fn next_run(&mut self) -> Watch {
        self.trace(|| "(another run)".to_owned());
        Watch::new(self.is_traced)
    }

    /// What both have seen.
    pub(super) fn and(mut self, second: Watch) -> Watch {
        let Played { faults, seen, trace, .. } = second.finish();
        self.faults.extend(faults);
        self.trace.extend(trace);
        seen.into_iter().for_each(|(what, times)| *self.seen.entry(what).or_default() += times);
        self
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.seen.entry(what).or_default() += 1;
    }

    fn ensure(&mut self, holds: bool, fault: impl FnOnce() -> String) {
        if !holds {
            self.faults.push(fault());
        }
    }

    /// Takes an event of the outermost run.
    pub(super) fn take(&mut self, event: &AgentEvent) {
        self.runs.entry(String::new()).or_default().take(event);
        if let Some(at) = event.at().filter(|at| *at >= self.born) {
            let last = std::mem::replace(&mut self.last, at);
            self.ensure(at >= last, || format!("{} at {at}, after {last}", event.name()));
        }
        match event {
            AgentEvent::SubagentEvent { call_id, path, event } => self.take_inside(call_id, path, event),
            event => {
                self.trace(|| line(event));
                self.count(event.name());
            }
        }
        match event {
            AgentEvent::ToolApprovalRequested { id, path, .. } => self.asked(id, QuestionKind::Tool, path),
            AgentEvent::QuestionAsked { question } => self.asked(&question.id, question.kind, &question.path),
            AgentEvent::ToolApprovalResolved { id, approved, by, .. } => self.resolved(id, *approved, *by),
            AgentEvent::QuestionResolved { id, accepted, by, .. } => self.resolved(id, *accepted, *by),
            AgentEvent::RunResumed { pending_approvals, .. } => self.resumed(pending_approvals),
            AgentEvent::ToolExecutionEnd { result, .. } => {
                self.end_call(result.call_id.clone());
                if result.cause == Some(ToolResultCause::Steering) {
                    self.count("steered");
                    let waits = |letter: &usize| !self.read.contains(&format!("letter {letter}"));
                    let mut waiting = (0..self.letters.len()).filter(waits);
                    let acts = waiting.any(|letter| self.letters[letter] != SteeringTime::AfterBatch);
                    self.ensure(acts, || {
                        "a call is cancelled by messages that wait for the batch".to_owned()
                    });
                }
                if result.cause == Some(ToolResultCause::Budget) {
                    self.count("no call left");
                }
            }
            AgentEvent::Budget { state, .. } => self.count(match state {
                BudgetState::Warn => "warned",
                BudgetState::Exceeded => "exceeded",
                BudgetState::Raised => "raised",
            }),
            AgentEvent::AgentEnd { .. } => self.is_over = true,
            _ => {}
        }
    }

    fn take_inside(&mut self, call_id: &str, path: &[String], event: &RawJson) {
        let place = path.join("/");
        let event = match AgentEvent::from_json(&event.to_value()) {
            Ok(event) => event,
            Err(text) => return self.faults.push(format!("an event of {place}: {text}")),
        };
        self.trace(|| format!("{place} {}", line(&event)));
        self.count("inside");
        self.ensure(path.first().is_some_and(|first| first == call_id), || format!("{call_id} in {place}"));
        for end in 1..=path.len() {
            let around = path[..end].join("/");
            let is_over = self.ended.contains(&around);
            self.ensure(!is_over, || format!("{} of {place} after the result of {around}", event.name()));
        }
        if path.len() == 2 {
            self.count("two deep");
        }
        match &event {
            AgentEvent::ToolExecutionEnd { result, .. } => {
                self.end_call(format!("{place}/{}", result.call_id))
            }
            AgentEvent::AgentStart { .. }
                if self.runs.values().filter(|run| run.is_running()).count() > 1 =>
            {
                self.count("at once");
            }
            _ => {}
        }
        self.runs.entry(place).or_default().take(&event);
    }

    fn end_call(&mut self, call: String) {
        for asked in self.questions.values_mut() {
            let inside = asked.path.join("/");
            let is_inside = inside == call || inside.starts_with(&format!("{call}/"));
            asked.is_open &= !is_inside;
            asked.is_closing &= !is_inside;
        }
        let inside = format!("{call}/");
        let is_inside = |place: &str| place == call || place.starts_with(&inside);
        let mut runs = self.runs.iter().filter(|(_, run)| run.is_running());
        if let Some((place, _)) = runs.find(|(place, _)| is_inside(place)) {
            self.faults.push(format!("{place} runs after the result of {call}"));
        }
        self.ended.insert(call);
    }

    fn asked(&mut self, id: &str, kind: QuestionKind, path: &[String]) {
        self.count("asked");
        self.count(match (kind, path.is_empty()) {
            (QuestionKind::Tool, true) => "asked about a call",
            (QuestionKind::Budget, true) => "asked for more",
            (QuestionKind::ToolCall, true) => "asked for a result",
            (QuestionKind::ToolCall, false) => "asked for a result inside",
            (_, true) => "asked by a tool",
            (QuestionKind::Tool, false) => "asked about a call inside",
            (QuestionKind::Budget, false) => "asked for more inside",
            (_, false) => "asked by a tool inside",
        });
        let asked = self.questions.entry(id.to_owned()).or_insert_with(|| Asked::new(kind, path));
        let was_told = std::mem::replace(&mut asked.is_told, true);
        asked.is_open = true;
        let is_same = (asked.kind, asked.path.as_slice()) == (kind, path);
        self.ensure(!was_told, || format!("{id} is asked twice"));
        self.ensure(is_same, || format!("{id} becomes another question"));
    }

    fn resolved(&mut self, id: &str, is_positive: bool, by: DecisionSource) {
        let Some(asked) = self.questions.get_mut(id) else {
            // A rule decides without asking.
            return self.ensure(by == DecisionSource::Rule, || format!("{id} is closed and was never asked"));
        };
        let was_open = std::mem::take(&mut asked.is_open) | std::mem::take(&mut asked.is_closing);
        let answer = asked.answer;
        let is_free = asked.is_answered_before;
        self.ensure(was_open, || format!("{id} is closed twice"));
        if by == DecisionSource::Command {
            self.count("answered");
            self.ensure(is_free || answer == Some(is_positive), || {
                format!("{id} is closed with {is_positive}, and the answer was {answer:?}")
            });
        }
    }

    fn resumed(&mut self, open: &[Question]) {
        for id in std::mem::take(&mut self.slept_with) {
            if open.iter().any(|question| question.id == id) {
                self.count("outlived a process");
            }
        }
        for (id, asked) in &mut self.questions {
            // What was answered is closed, though nobody was told yet; what a tool asked is gone with it.
            asked.is_answered_before |= asked.answer.is_some();
            asked.answer = None;
            asked.is_closing |= std::mem::take(&mut asked.is_open);
            let still = open.iter().find(|question| question.id == *id);
            if let Some(question) = still {
                asked.is_open = true;
                asked.is_closing = false;
                if (question.kind, &question.path) != (asked.kind, &asked.path) {
                    self.faults.push(format!("the question {id} has become another: {question:?}"));
                }
            }
        }
        for question in open {
            let Question { id, kind, path, .. } = question;
            self.questions.entry(id.clone()).or_insert_with(|| Asked::new(*kind, path));
        }
    }

    pub(super) fn open_questions(&self) -> Vec<String> {
        let open = self.questions.iter().filter(|(_, asked)| asked.is_open);
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Whether a question is open, and nobody has answered it.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.questions.get(id).is_some_and(|asked| asked.is_open && asked.answer.is_none())
    }

    /// Whether somebody has answered it in an earlier life.
    pub(super) fn is_answered_before(&self, id: &str) -> bool {
        self.questions.get(id).is_some_and(|asked| asked.is_answered_before)
    }

    /// Somebody has answered; the agent said whether it counts.
    pub(super) fn answer(&mut self, id: &str, is_positive: bool, counts: bool, was_open: bool) {
        self.ensure(counts == was_open || self.is_answered_before(id), || {
            format!("an answer to {id} counts: {counts}, and it was open: {was_open}")
        });
        if let Some(asked) = self.questions.get_mut(id).filter(|_| counts) {
            asked.answer = Some(is_positive);
        }
    }

    /// A message is sent.
    pub(super) fn send(&mut self, when: SteeringTime) {
        self.count("sent a message");
        self.letters.push(when);
    }

    /// A model is called.
    pub(super) fn call_model(&mut self, run_id: &str, letters: Vec<String>) {
        let is_root = run_id == "r";
        self.ensure(is_root || letters.is_empty(), || format!("{letters:?} in {run_id}"));
        let numbers: Vec<usize> =
            letters.iter().filter_map(|letter| letter.rsplit(' ').next()?.parse().ok()).collect();
        let once: BTreeSet<usize> = numbers.iter().copied().collect();
        self.ensure(once.len() == numbers.len(), || format!("a message stands twice: {letters:?}"));
        self.read.extend(letters);
    }

    /// A tool begins.
    pub(super) fn run_tool(&mut self, run_id: &str, call_id: &str, is_idempotent: bool) {
        let times = self.begun.entry(format!("{run_id}/{call_id}")).or_default();
        *times += 1;
        let runs_twice = *times > 1;
        if runs_twice {
            self.count("again");
        }
        self.ensure(!runs_twice || is_idempotent, || format!("call {run_id}/{call_id} runs twice"));
    }

    /// The process ends.
    pub(super) fn sleep(&mut self, agent: &Agent, in_tool: bool, in_answer: bool) {
        self.trace(|| "(sleeps)".to_owned());
        let pending = agent.pending_questions();
        let inside = self.runs.iter().filter(|(place, run)| !place.is_empty() && run.is_running()).count();
        let happens = [
            ("killed", true),
            ("killed in a tool", in_tool),
            ("killed in an answer", in_answer),
            ("killed with a child", inside > 0),
            ("killed with children", inside > 1),
            ("killed with a question", !pending.is_empty()),
        ];
        happens.into_iter().filter(|(_, is_so)| *is_so).for_each(|(what, _)| self.count(what));
        let known: BTreeSet<&str> = pending.iter().map(|question| question.id.as_str()).collect();
        let open: Vec<(String, QuestionKind)> = self
            .questions
            .iter()
            .filter(|(_, asked)| asked.is_open)
            .map(|(id, asked)| (id.clone(), asked.kind))
            .collect();
        let told: BTreeSet<&str> = open.iter().map(|(id, _)| id.as_str()).collect();
        let fault = (known != told).then(|| format!("pending are {known:?}, told were {told:?}"));
        self.faults.extend(fault);
        // What a tool asks ends with its process.
        let outlives = |kind: QuestionKind| kind != QuestionKind::Elicitation;
        self.slept_with = open.into_iter().filter(|(_, kind)| outlives(*kind)).map(|(id, _)| id).collect();
    }

    /// The run is over.
    pub(super) fn end_life(&mut self, agent: &Agent, run: &AgentStream) {
        let pending = agent.pending_questions();
        self.ensure(pending.is_empty(), || format!("asked after the end: {pending:?}"));
        self.ensure(run.result().is_some(), || "the run ends in silence".to_owned());
        // Those of tools were gone with their process.
        let is_lost = |asked: &&Asked| asked.is_closing && asked.kind == QuestionKind::Budget;
        let lost = self.questions.values().filter(is_lost).count();
        self.ensure(lost == 0, || format!("{lost} questions are lost"));
        let history = agent.messages();
        for number in 0..self.letters.len() {
            let text = format!("letter {number}");
            let is_it = |message: &&AgentMessage| matches!(message, AgentMessage::User(user) if text_of(&user.content) == text);
            let times = history.iter().filter(is_it).count();
            let waits = agent.has_waiting();
            self.ensure(times == 1 || (times == 0 && waits), || format!("{text} stands {times} times"));
        }
        let root = self.runs.remove("").unwrap_or_default();
        self.faults.append(&mut root.finish(&history));
    }

    pub(super) fn finish(mut self) -> Played {
        for (place, run) in std::mem::take(&mut self.runs) {
            let faults = run.finish(&[]);
            self.faults.extend(faults.into_iter().map(|fault| format!("{place}: {fault}")));
        }
        Played { faults: self.faults, seen: self.seen, trace: self.trace, events: 0 }
    }
}
