//! The agents that run inside the calls of a batch: what they use, and what they ask.

use crate::data::json::{FromJson, Map, RawJson, ToJson, Value};
use crate::host::tool::ChildEvent;
use crate::rules::budget::Amounts;
use crate::words::event::{AgentEvent, DecisionSource};
use crate::words::message::Usage;
use crate::words::question::{Question, QuestionKind};

use super::batch::{Batch, CallStatus};
use super::phase::Phase;
use super::state::LoopState;
use super::step::Step;

/// What is known of the agent that runs inside a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ChildState {
    /// What of its usage this run has counted.
    pub(crate) counted: Usage,
    /// The open questions of it and of those inside it: the path of each, and its id.
    pub(crate) questions: Vec<(Vec<String>, String)>,
    /// Whether what is asked inside is not asked here.
    pub(crate) keeps_questions: bool,
}

/// The events of a sub-agent that say something to the run around it.
const TELLING: [&str; 7] = [
    "message_end",
    "agent_end",
    "tool_approval_requested",
    "tool_approval_resolved",
    "question_asked",
    "question_resolved",
    "run_resumed",
];

impl Step<'_> {
    #[cold]
    pub(super) fn child_event(&mut self, batch: &mut Batch, place: usize, child: ChildEvent) {
        let Some(call) = batch.calls.get_mut(place) else { return };
        if !self.state.children.is_empty() {
            // It has gone on from its checkpoint.
            self.state.take_child(&call.block.call_id);
        }
        let state = call.child.get_or_insert_default();
        let shares_budget = child.shares_budget;
        let (usage, events) = take_event(&call.block.call_id, state, child);
        self.state.count_child(&usage, shares_budget);
        let asks = matches!(
            events.last(),
            Some(AgentEvent::ToolApprovalRequested { .. } | AgentEvent::QuestionAsked { .. })
        );
        events.into_iter().for_each(|event| self.emit(event));
        self.watch_time(batch, place);
        if asks && batch.waits_for_people() {
            self.steer_if_any(batch);
        }
    }
}

impl LoopState {
    /// A sub-agent that shares the budgets of this run has counted there itself what it used.
    pub(super) fn count_child(&mut self, usage: &Usage, shares_budget: bool) {
        self.tally.usage.add(usage);
        self.tally.children.add(usage);
        if !shares_budget {
            let spent = Amounts::of(usage);
            self.spending.books.borrow_mut().spent.add(&spent);
            self.spending.around.0.iter().for_each(|account| account.spend(&spent));
        }
    }

    /// Takes an event of an agent inside a call that has its result already, and is about to be dropped. Returns what the
    /// listeners are told.
    pub fn take_late_event(&mut self, call_id: &str, child: ChildEvent) -> Vec<AgentEvent> {
        let call = match &mut self.phase {
            Phase::Dispatching(batch) => batch
                .place_of(call_id)
                .and_then(|place| batch.calls.get_mut(place))
                .map(|call| &mut call.child),
            _ => None,
        };
        let id = call_id.to_owned();
        let known = if let Some(known) = &call { (*known).clone() } else { self.ended_children.remove(&id) };
        let mut state = known.unwrap_or_default();
        let shares_budget = child.shares_budget;
        let (usage, events) = take_event(call_id, &mut state, child);
        match call {
            Some(known) => *known = Some(state),
            None => drop(self.ended_children.insert(id, state)),
        }
        self.count_child(&usage, shares_budget);
        // Its end was told from its checkpoint.
        if self.closed_children.iter().any(|closed| closed == call_id) { Vec::new() } else { events }
    }

    /// The checkpoints of the sub-agents that have not gone on yet, by the ids of their calls.
    pub(crate) fn waiting_children(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        let is_open = |call_id: &str| match &self.phase {
            Phase::Dispatching(batch) => batch.place_of(call_id).is_some_and(|place| batch.is_open(place)),
            _ => false,
        };
        self.children
            .iter()
            .filter(move |(call_id, _)| is_open(call_id))
            .map(|(id, child)| (id.as_str(), child))
    }

    /// Whether what the agent inside a call asks is not asked here.
    pub(crate) fn keeps_questions(&self, call_id: &str) -> bool {
        let Phase::Dispatching(batch) = &self.phase else { return false };
        let call = batch.place_of(call_id).and_then(|place| batch.calls.get(place));
        call.and_then(|call| call.child.as_ref()).is_some_and(|child| child.keeps_questions)
    }

    /// Whether sub-agents that have not gone on yet have open questions.
    pub(crate) fn has_child_questions(&self) -> bool {
        !self.child_questions.is_empty()
    }

    /// Reads the checkpoints of sub-agents from the state of a checkpoint.
    pub(crate) fn read_children(&mut self, own: &Value) {
        let children = own.get("children").and_then(Value::as_object);
        self.children = children
            .into_iter()
            .flat_map(Map::iter)
            .map(|(id, child)| (id.to_owned(), child.to_raw()))
            .collect();
    }

    /// The name of the tool of a call that has begun, in this process or in an earlier one and not again.
    pub(crate) fn begun_tool(&self, call_id: &str) -> Option<&str> {
        let Phase::Dispatching(batch) = &self.phase else { return None };
        let call = batch.calls.get(batch.place_of(call_id)?)?;
        let has_begun = call.announced || matches!(call.status, CallStatus::Running(..));
        has_begun.then_some(call.block.tool_name.as_str())
    }

    /// The checkpoint from which the agent inside a call goes on.
    pub(crate) fn checkpoint_of_child(&self, call_id: &str) -> Option<RawJson> {
        self.children.get(&call_id.to_owned()).cloned()
    }

    /// Takes the checkpoint of an agent inside a call: it has gone on, or does not any more.
    pub(super) fn take_child(&mut self, call_id: &str) -> Option<RawJson> {
        self.children.remove(&call_id.to_owned())
    }
}

/// Returns what the run counts anew, and what its listeners are told.
#[cold]
pub(super) fn take_event(
    call_id: &str,
    state: &mut ChildState,
    child: ChildEvent,
) -> (Usage, Vec<AgentEvent>) {
    let ChildEvent { path: inner, event, keeps_questions, .. } = child;
    let is_direct = inner.is_empty();
    let path = |inner: Vec<String>| [vec![call_id.to_owned()], inner].concat();
    let told = Told::of(&event);
    let usage = match &told {
        Told::Message(usage) => *usage,
        // What no message had: attempts that failed, summaries.
        Told::End(usage) if is_direct => usage.beyond(&state.counted),
        _ => Usage::default(),
    };
    state.counted.add(&usage);
    state.keeps_questions = keeps_questions;
    let mut question = None;
    let mut is_about_others = false;
    // Questions rise step by step: each agent says which it shares with the one around it.
    match told {
        _ if !is_direct => {}
        Told::Asked(mut asked) => {
            if let Some((id, of, is_open)) = question_in(&mut asked) {
                is_about_others = !of.is_empty();
                *of = path(std::mem::take(of));
                state.questions.retain(|(_, open)| open != id);
                if is_open && !keeps_questions {
                    state.questions.push((of.clone(), id.clone()));
                }
            }
            question = Some(*asked).filter(|_| !keeps_questions);
        }
        Told::Resumed(_) if keeps_questions => {}
        Told::Resumed(open) => {
            state.questions = open.into_iter().map(|question| (path(question.path), question.id)).collect();
        }
        // Nothing inside an agent that has ended is open.
        Told::End(_) => state.questions.clear(),
        _ => {}
    }
    // An event about a question of an agent inside it follows the event of that agent.
    let shown = (!is_about_others).then(|| AgentEvent::SubagentEvent {
        call_id: call_id.to_owned(),
        path: path(inner),
        event,
    });
    (usage, shown.into_iter().chain(question).collect())
}

/// What an event of a sub-agent says to the run around it.
enum Told {
    Nothing,
    Message(Usage),
    End(Usage),
    Asked(Box<AgentEvent>),
    Resumed(Vec<Question>),
}

impl Told {
    fn of(event: &RawJson) -> Told {
        let Some(kind) = kind_of(event.as_str()) else { return Told::Nothing };
        let event = event.to_value();
        let usage =
            |at: Option<&Value>| at.and_then(|usage| Usage::from_json(usage).ok()).unwrap_or_default();
        match kind {
            "message_end" => {
                Told::Message(usage(event.get("message").and_then(|message| message.get("usage"))))
            }
            "agent_end" => Told::End(usage(event.get("usage"))),
            "run_resumed" => {
                let open = |key: &str| event.get(key).and_then(|list| Vec::from_json(list).ok());
                let lists = ["pendingApprovals", "pendingQuestions"].into_iter().filter_map(open);
                Told::Resumed(lists.flatten().collect())
            }
            _ => question_event(&event).map_or(Told::Nothing, |event| Told::Asked(Box::new(event))),
        }
    }
}

/// Returns the type of an event, if the run around it must know of it. Most of the events are pieces of answers, which are
/// not read here.
fn kind_of(event: &str) -> Option<&'static str> {
    let kind = event.strip_prefix("{\"type\":\"")?;
    TELLING.into_iter().find(|telling| kind.strip_prefix(*telling).is_some_and(|rest| rest.starts_with('"')))
}

/// Returns the question that an event is about: its id, its path, and whether it is open.
fn question_in(event: &mut AgentEvent) -> Option<(&String, &mut Vec<String>, bool)> {
    match event {
        AgentEvent::ToolApprovalRequested { id, path, .. } => Some((id, path, true)),
        AgentEvent::QuestionAsked { question } => {
            let Question { id, path, .. } = question.as_mut();
            Some((id, path, true))
        }
        AgentEvent::ToolApprovalResolved { id, path, .. } | AgentEvent::QuestionResolved { id, path, .. } => {
            Some((id, path, false))
        }
        _ => None,
    }
}

/// Reads an event about a question.
fn question_event(event: &Value) -> Option<AgentEvent> {
    if event.text_at("type") == Some("question_asked") {
        let question = Question::from_json(event).ok()?;
        return Some(AgentEvent::QuestionAsked { question: Box::new(question) });
    }
    if event.text_at("type") == Some("question_resolved") {
        return resolved_event(event);
    }
    let (id, call_id) = (event.owned_at("id")?, event.owned_at("callId")?);
    let tool_name = event.owned_at("toolName").unwrap_or_default();
    let path =
        event.list_at("path").iter().filter_map(|call_id| call_id.as_str().map(str::to_owned)).collect();
    if event.text_at("type") == Some("tool_approval_requested") {
        let arguments = event.get("arguments").map_or_else(RawJson::empty_object, ToJson::to_raw);
        let asked_at = event.number_at("askedAt").unwrap_or_default();
        return Some(AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, asked_at, path });
    }
    let by = event.text_at("by").and_then(DecisionSource::from_word)?;
    let approved = event.flag_at("approved").unwrap_or_default();
    Some(AgentEvent::ToolApprovalResolved { id, call_id, tool_name, approved, by, path })
}

fn resolved_event(event: &Value) -> Option<AgentEvent> {
    let path = event.list_at("path").iter().filter_map(|call_id| call_id.as_str().map(str::to_owned));
    Some(AgentEvent::QuestionResolved {
        id: event.owned_at("id")?,
        kind: QuestionKind::from_word(event.text_at("kind")?)?,
        call_id: event.owned_at("callId"),
        accepted: event.flag_at("accepted").unwrap_or_default(),
        by: DecisionSource::from_word(event.text_at("by")?)?,
        path: path.collect(),
    })
}

/// Returns what the agent in a checkpoint had said last.
pub(super) fn last_words(checkpoint: &RawJson) -> String {
    let checkpoint = checkpoint.to_value();
    let said = |message: &Value| {
        let content = message.get("content").filter(|_| message.text_at("role") == Some("assistant"))?;
        let text = match content {
            Value::String(text) => text.clone(),
            parts => {
                parts.as_array()?.iter().filter_map(|part| part.text_at("text")).collect::<Vec<_>>().concat()
            }
        };
        Some(text).filter(|text| !text.trim().is_empty())
    };
    checkpoint.list_at("messages").iter().rev().find_map(said).unwrap_or_default()
}
