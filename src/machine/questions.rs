//! Questions: those of running tools, and which answer is to which question.

use crate::host::isolate::guard;
use crate::host::tool::{AgentToolResult, Asking};
use crate::rules::answer::Answer;
use crate::rules::approval::ToolDecision;
use crate::words::event::{AgentEvent, BudgetKind, DecisionSource};
use crate::words::message::ToolResultCause;
use crate::words::question::{Question, QuestionKind};

use super::batch::{Batch, BatchCall, CallStatus};
use super::output::{Effect, Output};
use super::phase::Phase;
use super::step::Step;

/// A question of a running tool, or the one for the result of a call, that has no answer yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenAsk {
    /// Its number among those of the call.
    number: u64,
    pub(crate) question: Box<Question>,
}

/// What a question is about that an answer names.
enum Asker {
    /// A call that waits for a decision.
    Call(String),
    /// The call at this place: its tool asks, or its result comes from elsewhere.
    Tool(usize, QuestionKind),
    /// The budget.
    Budget,
}

impl OpenAsk {
    /// The question for the result of a call.
    #[cold]
    pub(crate) fn elsewhere(call: &BatchCall, id: String, asked_at: u64) -> Self {
        let call = Some(call.effective().into_owned());
        let question = Question { call, ..Question::new(QuestionKind::ToolCall, id, asked_at) };
        OpenAsk { number: 0, question: Box::new(question) }
    }
}

/// Makes an id one that no other question of the batch has.
fn free_id(batch: &Batch, mut id: String) -> String {
    let is_taken = |id: &str| {
        batch.questions.contains(id)
            || batch.calls.iter().flat_map(|call| &call.asks).any(|open| open.question.id == id)
    };
    while id.is_empty() || is_taken(&id) {
        id.push('+');
    }
    id
}

impl Step<'_> {
    /// A running tool asks a person.
    #[cold]
    pub(super) fn ask_person(&mut self, batch: &mut Batch, place: usize, asking: Asking) {
        let Asking { number, ask } = asking;
        let id = free_id(batch, ask.id.unwrap_or_else(|| self.new_id()));
        let Some(call) = batch.calls.get_mut(place) else { return };
        let question = Box::new(Question {
            call: Some(call.effective().into_owned()),
            message: Some(ask.message),
            schema: ask.schema,
            ..Question::new(QuestionKind::Elicitation, id, self.now)
        });
        call.asks.push(OpenAsk { number, question: question.clone() });
        self.emit(AgentEvent::QuestionAsked { question });
        self.watch_time(batch, place);
        if batch.waits_for_people() {
            self.steer_if_any(batch);
        }
    }

    /// A call of a tool begins that has no implementation here: the answer to a question is its result.
    #[cold]
    pub(super) fn ask_elsewhere(&mut self, batch: &mut Batch, place: usize, announce: Option<AgentEvent>) {
        announce.into_iter().for_each(|event| self.emit(event));
        let id = free_id(batch, self.new_id());
        let Some(call) = batch.calls.get_mut(place) else { return };
        call.executed = true;
        let open = OpenAsk::elsewhere(call, id, self.now);
        let question = open.question.clone();
        call.asks.push(open);
        self.begin_elsewhere(batch, place);
        self.emit(AgentEvent::QuestionAsked { question });
    }

    /// A call waits for its result from elsewhere, and no longer than its tool says.
    #[cold]
    pub(super) fn begin_elsewhere(&mut self, batch: &mut Batch, place: usize) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let limit = self.rules.tools.get(call.tool).and_then(|spec| spec.timeout_ms);
        let timer = limit.map(|ms| self.start(Effect::Sleep { ms }));
        call.status = CallStatus::Elsewhere(timer);
        batch.elsewhere += 1;
        if let Some(timer) = timer {
            batch.effects.insert(timer, place);
        }
    }

    /// The result of a call has come from elsewhere, or somebody said that there will be none.
    fn answer_elsewhere(&mut self, batch: &mut Batch, place: usize, answer: Answer) {
        match answer {
            Answer::Output { content, details, is_error } => {
                let result = AgentToolResult { content, details, is_error, transfer: None };
                self.answered_by_tool(batch, place, result);
            }
            Answer::Decision(ToolDecision::Reject { reason: Some(reason) }) => {
                self.settle(batch, place, ToolResultCause::Rejected, &reason);
            }
            // Without a reason, or because nobody is left to answer.
            _ => self.settle(batch, place, ToolResultCause::Rejected, ""),
        }
        self.completed(batch);
    }

    /// An id from the host.
    pub(super) fn new_id(&self) -> String {
        guard(|| Ok((self.rules.new_id)())).unwrap_or_default()
    }

    /// The time limit of a call stands still while it waits for a person.
    #[cold]
    pub(super) fn watch_time(&mut self, batch: &mut Batch, place: usize) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let CallStatus::Running(effect, timer) = call.status else { return };
        match (call.asks_people(), timer) {
            (true, Some(timer)) => {
                call.time_left = Some(call.times_out.saturating_sub(self.now));
                call.status = CallStatus::Running(effect, None);
                batch.effects.remove(&timer);
                self.cancel(timer);
            }
            (false, None) => {
                let Some(ms) = call.time_left.take() else { return };
                call.times_out = self.now.saturating_add(ms);
                let timer = self.start(Effect::Sleep { ms });
                call.status = CallStatus::Running(effect, Some(timer));
                batch.effects.insert(timer, place);
            }
            _ => {}
        }
    }

    /// A call is over, or nobody is there to answer: its tool gets no answers any more.
    #[cold]
    pub(super) fn close_asks(&mut self, asks: Vec<OpenAsk>) {
        for OpenAsk { question, .. } in asks {
            self.resolved(&question, false, DecisionSource::Abort);
        }
    }

    /// Tells the listeners that a question is closed that is not about a call.
    pub(super) fn resolved(&mut self, question: &Question, accepted: bool, by: DecisionSource) {
        self.emit(AgentEvent::QuestionResolved {
            id: question.id.clone(),
            kind: question.kind,
            call_id: question.call_id().map(str::to_owned),
            accepted,
            by,
            path: Vec::new(),
        });
    }

    /// Answers questions by their ids: all of them or none.
    pub(super) fn answer_questions(&mut self, answers: Vec<(String, Answer)>) {
        let (mut decisions, mut others) = (Vec::new(), Vec::new());
        for (id, answer) in answers {
            let (asker, kind) = match self.asker(&id) {
                Some(asker @ Asker::Call(_)) => (asker, QuestionKind::Tool),
                Some(asker @ Asker::Tool(_, kind)) => (asker, kind),
                Some(Asker::Budget) => (Asker::Budget, QuestionKind::Budget),
                None => {
                    let reason = ["no open question has the id ", &id].concat();
                    return self.emit(AgentEvent::CommandRefused { id: Some(id), call_id: None, reason });
                }
            };
            if let Some(reason) = answer.misfit(kind, self.limit_asked()) {
                return self.emit(AgentEvent::CommandRefused { id: Some(id), call_id: None, reason });
            }
            match (asker, answer) {
                (Asker::Call(call_id), Answer::Decision(decision)) => decisions.push((call_id, decision)),
                (asker, answer) => others.push((asker, id, answer)),
            }
        }
        if !decisions.is_empty() || others.is_empty() {
            self.resolve_by_command(decisions);
        }
        for (asker, id, answer) in others {
            match asker {
                Asker::Tool(place, _) => self.answer_tool(place, &id, answer),
                Asker::Budget => self.answer_budget(answer),
                Asker::Call(_) => {}
            }
        }
    }

    /// The limit of the budget that a person is asked about.
    fn limit_asked(&self) -> Option<BudgetKind> {
        let Phase::Questioned(question) = &self.state.phase else { return None };
        Some(question.limit?.kind)
    }

    fn asker(&self, id: &str) -> Option<Asker> {
        match &self.state.phase {
            Phase::Dispatching(batch) => {
                let asked = batch.call_asked(id).map(|call| Asker::Call(call.block.call_id.clone()));
                let is_its = |open: &OpenAsk| open.question.id == id;
                asked.or_else(|| {
                    let mut places = batch.calls.iter().enumerate();
                    places.find_map(|(place, call)| {
                        let open = call.asks.iter().find(|open| is_its(open))?;
                        Some(Asker::Tool(place, open.question.kind))
                    })
                })
            }
            Phase::Questioned(question) if question.id == id => Some(Asker::Budget),
            _ => None,
        }
    }

    #[cold]
    fn answer_tool(&mut self, place: usize, id: &str, answer: Answer) {
        let Some(mut batch) = self.take_batch() else { return };
        self.give_answer(&mut batch, place, id, answer, DecisionSource::Command);
        self.advance(batch);
    }

    fn give_answer(&mut self, batch: &mut Batch, place: usize, id: &str, answer: Answer, by: DecisionSource) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        let status = call.status;
        let Some(at) = call.asks.iter().position(|open| open.question.id == id) else { return };
        let OpenAsk { number, question } = call.asks.remove(at);
        self.resolved(&question, answer.is_positive(), by);
        if let CallStatus::Elsewhere(_) = status {
            return self.answer_elsewhere(batch, place, answer);
        }
        let CallStatus::Running(effect, _) = status else { return };
        let answer = if matches!(answer, Answer::Decision(_)) { Answer::Decline } else { answer };
        self.out.push(Output::Answer { id: effect, number, answer });
        self.watch_time(batch, place);
    }

    /// Nobody is there to answer the questions of tools.
    #[cold]
    pub(super) fn cancel_asks(&mut self) {
        let Some(mut batch) = self.take_batch() else { return };
        for place in 0..batch.calls.len() {
            let asks = batch.calls.get(place).map(|call| &call.asks);
            let ids: Vec<String> = asks.into_iter().flatten().map(|open| open.question.id.clone()).collect();
            for id in ids {
                self.give_answer(&mut batch, place, &id, Answer::Cancel, DecisionSource::Abort);
            }
        }
        self.advance(batch);
    }
}
