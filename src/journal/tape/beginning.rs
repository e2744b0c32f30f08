//! How a run begins, as JSON: its state before its first input.

use crate::data::json::{FromJson, Map, ObjectWriter, ToJson, Value};
use crate::data::list::{ListWriter, read_all};
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::host::tool::Nesting;
use crate::journal::Beginning;
use crate::machine::{History, Letter, LoopState, read_any_child};
use crate::rules::budget::{Accounts, Ledger};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, Usage};
use crate::words::question::Question;

use super::messages::{read_known, read_shown, write_known, write_shown};
use super::optional;

/// A run as a tape has it before its first input.
pub(super) struct RunStart {
    pub(super) state: LoopState,
    /// The events that its checkpoint had not emitted yet.
    pub(super) unemitted: Option<Vec<AgentEvent>>,
    pub(super) used: Usage,
    pub(super) spent: Ledger,
}

/// Writes the members of a run. `known` are the messages that the run before it has left, if that is on the tape too.
pub(super) fn write_run(
    state: &LoopState,
    beginning: &Beginning<'_>,
    known: Option<&[AgentMessage]>,
    out: &mut ObjectWriter<'_>,
) {
    out.field("run", &state.context);
    let Nesting { depth, limit } = state.context.nesting;
    if depth > 0 {
        out.field("depth", &depth).field("limit", &limit);
    }
    write_known(known.unwrap_or_default(), state.messages(), out.key("history"));
    write_knowledge(&state.history, known.is_some(), out);
    out.field("session", &state.session.snapshot()).field("changes", &state.session.changes());
    out.field("used", &beginning.used);
    beginning.spent.write_members(out);
    if !state.spending.around.0.is_empty() {
        out.field("around", &state.spending.around);
    }
    match beginning.unemitted {
        None => {
            out.optional("options", &state.options);
            out.field("steering", &state.queues.steering).field("followUp", &state.queues.follow_up);
        }
        Some(unemitted) => {
            state.write_checkpoint(0, &[], out.key("checkpoint"));
            let mut children = ObjectWriter::new(out.key("children"));
            state.children.iter().for_each(|(call_id, child)| {
                children.field(call_id, child);
            });
            children.end();
            out.field("childQuestions", &state.child_questions);
            let mut list = ListWriter::new(out.key("untold"));
            unemitted.iter().for_each(|event| event.write_json(list.item()));
            list.end();
        }
    }
}

/// Reads what [`write_run`] has written. `known` is the history of the run before it.
///
/// # Errors
/// Names what cannot be read.
pub(super) fn read_run(
    line: &Value,
    known: Option<Box<History>>,
    before: &[AgentMessage],
) -> Result<RunStart, String> {
    let mut context = AgentRunContext::from_json(line.get("run").unwrap_or(&Value::Null))?;
    let number = |key: &str| line.number_at(key).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
    context.nesting = Nesting { depth: number("depth"), limit: number("limit") };
    let messages = read_known(before, line.get("history").unwrap_or(&Value::Null))?;
    let map = |key: &str| line.get(key).and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    let session = SessionState::restored(map("session"), map("changes"));
    let unemitted = line.get("untold").map(|list| read_all(list, AgentEvent::from_json)).transpose()?;
    let mut state = match line.get("checkpoint") {
        Some(run) => {
            let mut state = LoopState::read_checkpoint(messages, session, run)?;
            state.context = AgentRunContext { turn_index: state.turn_index(), ..context };
            state.reads_child = read_any_child;
            state.read_children(line);
            state.child_questions = optional::<Vec<Question>>(line, "childQuestions")?;
            state
        }
        None => {
            let history = read_knowledge(line, known, messages)?;
            let letters =
                |key: &str| line.get(key).map_or(Ok(Vec::new()), |list| read_all(list, Letter::from_json));
            let mut state = LoopState::with_history(context, history, session)
                .with_queues(letters("steering")?, letters("followUp")?);
            state.options = line.get("options").map(ToJson::to_raw);
            state
        }
    };
    let spent = Ledger::read(line)?;
    state.spending.earlier = spent;
    if let Some(around) = line.get("around") {
        state.spending.around = Accounts::from_json(around)?;
    }
    Ok(RunStart { state, unemitted, used: optional(line, "used")?, spent })
}

/// Writes what the machine knows about the messages: the same as at the end of the run before it, or all of it.
fn write_knowledge(history: &History, is_continued: bool, out: &mut ObjectWriter<'_>) {
    if !history.is_known() {
        return;
    }
    if is_continued {
        out.field("known", &true);
        return;
    }
    out.field("stale", &u64::try_from(history.stale()).unwrap_or(u64::MAX));
    let mut list = ListWriter::new(out.key("shown"));
    for (message, shown) in history.conversions() {
        match shown {
            Some(shown) => write_shown(message, shown, list.item()),
            None => list.item().push_str("\"unknown\""),
        }
    }
    list.end();
}

fn read_knowledge(
    line: &Value,
    known: Option<Box<History>>,
    messages: Vec<AgentMessage>,
) -> Result<History, String> {
    if line.flag_at("known") == Some(true) {
        return Ok(History::reuse(known, messages));
    }
    let Some(shown) = line.get("shown").and_then(Value::as_array) else {
        return Ok(History::reuse(None, messages));
    };
    let conversions = messages.iter().zip(shown).map(|(message, shown)| match shown {
        Value::String(_) => Ok(None),
        shown => read_shown(message, shown).map(Some),
    });
    let conversions = conversions.collect::<Result<Vec<_>, _>>()?;
    let stale = line.number_at("stale").and_then(|n| usize::try_from(n).ok()).unwrap_or_default();
    Ok(History::with_knowledge(messages, conversions, stale))
}
