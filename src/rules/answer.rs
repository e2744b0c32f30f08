//! Answers to questions of every kind.

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value};
use crate::rules::approval::{ToolDecision, read_decision, read_output};
use crate::rules::budget::Amounts;
use crate::words::event::BudgetKind;
use crate::words::message::ContentBlock;
use crate::words::question::QuestionKind;

/// What a person answers to a question. A rejection answers a question of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To a question about a tool call.
    Decision(ToolDecision),
    /// To a question about a budget: so much more may be used.
    Raise(Amounts),
    /// To a question of a tool: what it wanted to know, or null if it asked for no more than a yes.
    Accept(RawJson),
    /// To a question of a tool: no.
    Decline,
    /// To a question of a tool: neither yes nor no.
    Cancel,
    /// To a call of a tool that has no implementation here: its result.
    Output {
        /// Text, image and file blocks.
        content: Vec<ContentBlock>,
        /// Data for the UI; never sent to the model.
        details: Option<RawJson>,
        /// Whether the call failed.
        is_error: bool,
    },
}

impl Answer {
    /// The result of a call, as a text.
    pub fn output(text: impl Into<String>) -> Self {
        Answer::Output { content: vec![ContentBlock::text(text)], details: None, is_error: false }
    }

    /// The result of a call that failed, as a text for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Answer::Output { content: vec![ContentBlock::text(text)], details: None, is_error: true }
    }

    /// Whether it allows or tells something.
    pub fn is_positive(&self) -> bool {
        match self {
            Answer::Decision(decision) => !matches!(decision, ToolDecision::Reject { .. }),
            Answer::Raise(_) | Answer::Accept(_) => true,
            Answer::Decline | Answer::Cancel => false,
            Answer::Output { is_error, .. } => !is_error,
        }
    }

    /// Returns why it answers no question of this kind, if so; for a budget, about this limit.
    pub(crate) fn misfit(&self, kind: QuestionKind, limit: Option<BudgetKind>) -> Option<String> {
        if let (Answer::Raise(amounts), QuestionKind::Budget, Some(limit)) = (self, kind, limit)
            && amounts.part(limit) == 0
        {
            // It would be asked again at once, and again.
            return Some(
                ["the question is about `", limit.as_str(), "`, which this raises by nothing"].concat(),
            );
        }
        let fits = match self {
            Answer::Decision(ToolDecision::Reject { .. }) => true,
            Answer::Decision(_) => kind == QuestionKind::Tool,
            Answer::Raise(_) => kind == QuestionKind::Budget,
            Answer::Accept(_) | Answer::Decline | Answer::Cancel => kind == QuestionKind::Elicitation,
            Answer::Output { .. } => kind == QuestionKind::ToolCall,
        };
        (!fits).then(|| ["no answer to a question of the kind `", kind.as_str(), "`"].concat())
    }
}

impl From<ToolDecision> for Answer {
    fn from(decision: ToolDecision) -> Self {
        Answer::Decision(decision)
    }
}

impl ToJson for Answer {
    fn write_json(&self, out: &mut String) {
        if let Answer::Decision(decision) = self {
            return decision.write_json(out);
        }
        let mut object = ObjectWriter::new(out);
        match self {
            Answer::Decision(_) => {}
            Answer::Raise(amounts) => drop(object.field("raise", amounts)),
            Answer::Accept(content) => drop(object.field("action", "accept").field("content", content)),
            Answer::Decline => drop(object.field("action", "decline")),
            Answer::Cancel => drop(object.field("action", "cancel")),
            Answer::Output { content, details, is_error } => {
                let mut output = ObjectWriter::new(object.key("output"));
                output.field("content", content).optional("details", details);
                output.end();
                object.field("isError", is_error);
            }
        }
        object.end();
    }
}

impl FromJson for Answer {
    fn from_json(value: &Value) -> Result<Self, String> {
        if let Some(raise) = value.get("raise") {
            return Amounts::from_json(raise).map(Answer::Raise);
        }
        if let Some(output) = value.get("output") {
            let (content, details, is_error) = read_output(output, value.flag_at("isError"))?;
            return Ok(Answer::Output { content, details, is_error });
        }
        Ok(match value.text_at("action") {
            Some("accept") => Answer::Accept(value.get("content").map_or_else(RawJson::null, ToJson::to_raw)),
            Some("decline") => Answer::Decline,
            Some("cancel") => Answer::Cancel,
            _ => Answer::Decision(read_decision(value)?),
        })
    }
}
