//! The run of an agent inside a call: what the loop around it must know of it.

use crate::data::json::RawJson;
use crate::rules::answer::Answer;

/// An event of an agent that runs inside a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildEvent {
    /// The calls inside this one that led to the agent that emitted it; empty for the agent inside this call itself.
    pub path: Vec<String>,
    /// The event, as JSON.
    pub event: RawJson,
    /// Whether the questions of that agent are its own business: then they are not the parent's questions too.
    pub keeps_questions: bool,
    /// Whether that agent counts what it uses in the budgets of the run around it itself.
    pub shares_budget: bool,
}

/// The run of an agent inside a call.
pub trait ChildRun {
    /// The id of the call.
    fn call_id(&self) -> &str;

    /// Its checkpoint, as JSON, while it runs.
    fn checkpoint(&self) -> Option<RawJson>;

    /// Whether one of its open questions, or of those inside it, has this id.
    fn has_question(&self, id: &str) -> bool;

    /// Answers questions of it, or of those inside it, by their ids.
    fn answer(&self, answers: Vec<(String, Answer)>);

    /// Nobody is left to answer its questions.
    fn desert(&self);

    /// Ends it at once. Everything that is open in it is closed, and reported as progress of the call.
    fn close(&self, reason: &str);
}

/// How deep a run is inside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nesting {
    /// How many calls of sub-agents led to the run; 0 for one that nobody called.
    pub depth: u32,
    /// How many may; the outermost run says so.
    pub limit: u32,
}

impl Nesting {
    /// The nesting of a run inside this one, unless it would be too deep.
    pub fn deeper(self) -> Option<Self> {
        (self.depth < self.limit).then_some(Nesting { depth: self.depth + 1, ..self })
    }
}
