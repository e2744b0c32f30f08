//! The open questions of a run, as its listeners know them.

use crate::data::id_map::IdMap;
use crate::data::table::Table;
use crate::words::event::AgentEvent;
use crate::words::message::ToolCallBlock;
use crate::words::question::Question;

/// The open questions that the listeners were told of. A question is looked up by its id or its call in the same time,
/// however many wait.
#[derive(Clone, Debug, Default)]
pub struct OpenQuestions {
    /// In the order asked, each with whether an answer was posted.
    open: Table<u64, (Question, bool)>,
    /// The number of each question and of the last question about each call.
    by_id: IdMap<String, u64>,
    by_call: IdMap<String, u64>,
    asked: u64,
}

impl OpenQuestions {
    /// Takes an event that the listeners are told.
    pub(super) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, asked_at } => {
                let call = ToolCallBlock {
                    call_id: call_id.clone(),
                    tool_name: tool_name.clone(),
                    arguments: arguments.clone(),
                    metadata: None,
                };
                self.add(Question::about(call, id.clone(), *asked_at));
            }
            AgentEvent::ToolApprovalResolved { id, .. } => {
                if let Some(number) = self.by_id.get(id) {
                    self.open.remove(number);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn add(&mut self, question: Question) {
        let known = self.by_id.get(&question.id).copied().filter(|number| self.open.contains_key(number));
        let number = known.unwrap_or(self.asked + 1);
        self.asked = self.asked.max(number);
        self.by_id.insert(question.id.clone(), number);
        if let Some(call_id) = question.call_id() {
            self.by_call.insert(call_id.to_owned(), number);
        }
        let is_answered = known.is_some_and(|number| self.open.get(&number).is_some_and(|open| open.1));
        self.open.insert(number, (question, is_answered));
    }

    /// Returns the questions in the order in which they were asked.
    pub fn iter(&self) -> impl Iterator<Item = &Question> {
        self.open.iter().map(|(_, (question, _))| question)
    }

    /// Returns the id of the open question about a call.
    pub(crate) fn about(&self, call_id: &str) -> Option<&str> {
        let (question, _) = self.open.get(self.by_call.get(call_id)?)?;
        Some(&question.id)
    }

    /// Whether a question is open, answered or not.
    pub(crate) fn is_open(&self, id: &str) -> bool {
        self.by_id.get(id).is_some_and(|number| self.open.contains_key(number))
    }

    /// Notes that answers to these open questions are posted together. Returns whether each is the first one; otherwise
    /// none of them counts.
    pub(crate) fn answer<'a>(&mut self, ids: impl Iterator<Item = &'a str>) -> bool {
        let mut numbers: Table<u64, ()> = Table::new();
        for number in ids.filter_map(|id| self.by_id.get(id)) {
            if numbers.contains_key(number)
                || self.open.get(number).is_none_or(|(_, is_answered)| *is_answered)
            {
                return false;
            }
            numbers.insert(*number, ());
        }
        for (number, ()) in numbers.iter() {
            if let Some((_, is_answered)) = self.open.get_mut(number) {
                *is_answered = true;
            }
        }
        !numbers.is_empty()
    }
}
