//! The world of one run: what the host does and when, and the record of everything in order.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use rig::clock::Clock;
use turnwheel::agent::{Agent, SubscriptionId};
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::convert::{from_stakai, to_stakai};
use turnwheel::config::Model;
use turnwheel::driver::Inbox;
use turnwheel::json::{Map, ToJson, Value};
use turnwheel::machine::{AgentCommand, Letter};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, ToolResultCause, ToolResultMessage,
};

use super::super::approval::decision;
use super::super::{object, text_of};
use super::ports::ScriptedModel;
use super::view::View;

/// The message of the harness when it ends a run that waits for ever.
const BLOCKED: &str = "BLOCKED: token cancelled and cancel command sent by the harness";

/// The ids that every part of the engine must be given.
pub(super) const RUN_ID: &str = "11111111-2222-4333-8444-555555555555";
pub(super) const SESSION_ID: &str = "66666666-7777-4888-8999-aaaaaaaaaaaa";

pub(super) struct World {
    pub(super) input: Value,
    pub(super) clock: Clock,
    trace: RefCell<Vec<Value>>,
    view: RefCell<View>,
    counts: RefCell<BTreeMap<String, usize>>,
    fired: RefCell<Vec<bool>>,
    handles: RefCell<Option<RunHandles>>,
    /// The system prompt, unless it was taken out of the conversation.
    pub(super) system: RefCell<Option<Value>>,
    pub(super) metadata: RefCell<Value>,
    /// Calls that a command of the host has named.
    named: RefCell<Vec<String>>,
    pub(super) on_error_called: Cell<bool>,
    idle: Cell<usize>,
    /// Faults found along the way, such as a port that was given another run's id.
    pub(super) faults: RefCell<Vec<String>>,
}

/// How the host reaches the run.
pub(super) struct RunHandles {
    pub(super) agent: Agent,
    pub(super) inbox: Inbox,
    pub(super) cancel: CancelToken,
    pub(super) subscription: SubscriptionId,
}

impl World {
    pub(super) fn new(input: &Value) -> Rc<World> {
        let triggers = input.get("triggers").and_then(Value::as_array).map_or(0, <[Value]>::len);
        let metadata = match input.get("metadata") {
            Some(metadata @ Value::Object(_)) => metadata.clone(),
            _ => Map::new().into(),
        };
        Rc::new(World {
            input: input.clone(),
            clock: Clock::default(),
            trace: RefCell::default(),
            view: RefCell::default(),
            counts: RefCell::default(),
            fired: RefCell::new(vec![false; triggers]),
            handles: RefCell::default(),
            system: RefCell::default(),
            metadata: RefCell::new(metadata),
            named: RefCell::default(),
            on_error_called: Cell::new(false),
            idle: Cell::new(0),
            faults: RefCell::default(),
        })
    }

    pub(super) fn config(&self, key: &str) -> Option<&Value> {
        self.input.path(&["config", key])
    }

    pub(super) fn attach(&self, handles: RunHandles) {
        *self.handles.borrow_mut() = Some(handles);
    }

    /// The run is over: breaks the reference cycles.
    pub(super) fn release(&self) {
        self.handles.take();
        self.clock.clear();
    }

    pub(super) fn log(&self, entry: Value) {
        self.trace.borrow_mut().push(entry);
    }

    pub(super) fn take_trace(&self) -> Vec<Value> {
        self.trace.take()
    }

    pub(super) fn view(&self) -> std::cell::RefMut<'_, View> {
        self.view.borrow_mut()
    }

    /// Returns the next number of a series, from 1.
    pub(super) fn count(&self, series: &str) -> usize {
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry(series.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(super) fn check_ids(&self, run_id: &str, session_id: &str) {
        if (run_id, session_id) != (RUN_ID, SESSION_ID) {
            self.faults.borrow_mut().push(format!("a port was told of run {run_id} of session {session_id}"));
        }
    }

    /// A point was reached at which the host may act, once for each trigger.
    pub(super) fn fire_triggers(&self, point: &str) {
        let triggers = self.input.get("triggers").and_then(Value::as_array).unwrap_or_default();
        for (at, trigger) in triggers.iter().enumerate() {
            let is_due = trigger.get("at").and_then(Value::as_str) == Some(point);
            let fired =
                self.fired.borrow_mut().get_mut(at).map(|fired| std::mem::replace(fired, is_due || *fired));
            if is_due && fired == Some(false) {
                self.act(trigger.get("do").and_then(Value::as_array).unwrap_or_default());
            }
        }
    }

    /// Called when the engine can only wait. Returns whether the host did something.
    pub(super) fn run_idle_actions(&self) -> bool {
        let lists = self.input.get("on_idle").and_then(Value::as_array).unwrap_or_default();
        let list = lists.get(self.idle.get()).and_then(Value::as_array);
        self.idle.set(self.idle.get() + 1);
        if let Some(actions) = list {
            self.act(actions);
        }
        list.is_some()
    }

    /// Ends a run that waits for ever. Returns whether it had a reason to wait: a question
    /// that nobody ever answered.
    pub(super) fn unblock(&self) -> bool {
        self.log(object([("host", BLOCKED.into())]));
        let handles = self.handles.borrow();
        let Some(handles) = handles.as_ref() else { return false };
        let open = handles.agent.pending_approvals();
        let named = self.named.borrow();
        let had_reason = !open.is_empty() && open.iter().all(|call| !named.contains(&call.call_id));
        handles.cancel.cancel("the harness");
        handles.inbox.post(AgentCommand::Cancel("the harness".into()));
        had_reason
    }

    fn act(&self, actions: &[Value]) {
        for action in actions {
            self.log(object([("host", action.clone())]));
            if let Err(fault) = self.act_once(action) {
                self.faults.borrow_mut().push(fault);
            }
        }
    }

    fn act_once(&self, action: &Value) -> Result<(), String> {
        let handles = self.handles.borrow();
        let handles = handles.as_ref().ok_or("the host acts before there is a run")?;
        if action.get("cancel_token").is_some() {
            handles.cancel.cancel("the host");
        } else if action.get("close_commands").is_some() {
            handles.inbox.close();
        } else if action.get("drop_events").is_some() {
            handles.agent.unsubscribe(handles.subscription);
        } else {
            let command =
                action.get("command").ok_or_else(|| format!("unknown action {}", action.to_json()))?;
            return self.command(handles, command);
        }
        Ok(())
    }

    fn command(&self, handles: &RunHandles, command: &Value) -> Result<(), String> {
        let letter = |text: &str| Letter::new(AgentMessage::user(text), 0);
        if command.as_str() == Some("cancel") {
            handles.inbox.post(AgentCommand::Cancel("the host".into()));
        } else if let Some(text) = command.get("steering").and_then(Value::as_str) {
            handles.inbox.post(AgentCommand::Steer(letter(text)));
        } else if let Some(text) = command.get("follow_up").and_then(Value::as_str) {
            handles.inbox.post(AgentCommand::FollowUp(letter(text)));
        } else if let Some(model) = command.get("switch_model") {
            let id = model.as_str().or_else(|| model.get("id").and_then(Value::as_str));
            let id = id.ok_or_else(|| format!("no model in {}", command.to_json()))?;
            handles.agent.configure(|config| {
                let stream_fn = config.ports.models.first().map(|model| model.stream_fn.clone());
                config.set_models(stream_fn.into_iter().map(|f| Model::new("scripted", id, f)).collect());
            });
        } else if let Some(one) = command.get("resolve_tool") {
            let call_id = text_of(one, "id")?.to_owned();
            self.named.borrow_mut().push(call_id.clone());
            let decision = decision(one.get("decision").ok_or("no `decision`")?)?;
            handles.inbox.post(AgentCommand::ResolveTool { call_id, decision });
        } else if let Some(many) = command.get("resolve_tools").and_then(Value::as_object) {
            let mut decisions = Vec::new();
            for (id, given) in many.iter() {
                self.named.borrow_mut().push(id.to_owned());
                decisions.push((id.to_owned(), decision(given)?));
            }
            handles.inbox.post(AgentCommand::ResolveTools(decisions));
        } else {
            return Err(format!("unknown command {}", command.to_json()));
        }
        Ok(())
    }

    /// Returns the conversation as the peer shows it, without empty answers.
    pub(super) fn history(&self) -> Vec<Value> {
        let handles = self.handles.borrow();
        let messages = handles.as_ref().map(|handles| handles.agent.messages()).unwrap_or_default();
        self.with_system(stakai(&messages))
    }

    pub(super) fn with_system(&self, messages: Vec<Value>) -> Vec<Value> {
        self.system.borrow().iter().cloned().chain(messages).collect()
    }

    pub(super) fn model(self: &Rc<World>) -> Model {
        let id = self.config("model").and_then(Value::as_str).unwrap_or("m1");
        Model::new("scripted", id, Rc::new(ScriptedModel(self.clone())))
    }
}

pub(super) fn roles(messages: &[Value]) -> Value {
    Value::Array(messages.iter().map(|message| message.get("role").cloned().unwrap_or_default()).collect())
}

/// Returns messages in the peer's form, without what the engine keeps in addition.
pub(super) fn stakai(messages: &[AgentMessage]) -> Vec<Value> {
    let kept = messages.iter().filter(|message| has_content(message)).map(as_written_by_peer);
    let mut messages = to_stakai(&kept.collect::<Vec<_>>());
    for message in &mut messages {
        let Value::Object(fields) = message else { continue };
        if let Some(Value::Object(mut options)) = fields.remove("provider_options") {
            options.remove("turnwheel");
            if !options.is_empty() {
                fields.insert("provider_options", options.into());
            }
        }
    }
    messages
}

pub(super) fn agent_messages(messages: &[Value]) -> Result<Vec<AgentMessage>, String> {
    from_stakai(messages)
}

pub(super) fn sent(messages: &[LlmMessage]) -> Vec<AgentMessage> {
    messages.iter().cloned().map(AgentMessage::from).collect()
}

fn has_content(message: &AgentMessage) -> bool {
    let AgentMessage::Assistant(answer) = message else { return true };
    let AssistantMessage { content, .. } = answer.as_ref();
    content.iter().any(|block| match block {
        ContentBlock::Text(text) => !text.text.is_empty(),
        block => !matches!(block, ContentBlock::Thinking(_)),
    })
}

/// The peer writes JSON for a skipped call; here every result is a text.
fn as_written_by_peer(message: &AgentMessage) -> AgentMessage {
    match message {
        AgentMessage::ToolResult(result)
            if matches!(result.cause, Some(ToolResultCause::Steering | ToolResultCause::Skipped)) =>
        {
            let foreign = Value::parse("{\"json\":true}").ok().map(|foreign| foreign.to_raw());
            ToolResultMessage { foreign, ..result.as_ref().clone() }.into()
        }
        message => message.clone(),
    }
}
