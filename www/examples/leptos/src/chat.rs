//! The agent behind the page, and what the page shows of it.

use std::rc::Rc;

use leptos::prelude::*;
use turnwheel::approval::ToolDecision;
use turnwheel::wires::{WireOptions, wire};
use turnwheel::{Agent, AgentEvent, AgentRunContext, CancelToken, HttpModel};
use turnwheel_web::{Clock, Fetch, config, spawn, uuid};

use crate::tools;

/// A conversation. Copies are handles to the same one.
#[derive(Clone, Copy)]
pub struct Chat {
    agent: StoredValue<Agent, LocalStorage>,
    session: StoredValue<String>,
    /// The line that the answer is written to, once it has begun.
    answer: StoredValue<Option<Line>>,
    next_line: StoredValue<usize>,
    pub lines: RwSignal<Vec<Line>>,
    /// The calls that wait for a decision.
    pub questions: RwSignal<Vec<Question>>,
    pub is_running: RwSignal<bool>,
    pub status: RwSignal<String>,
}

/// A line of the conversation. Its text may still be growing.
#[derive(Clone, Copy)]
pub struct Line {
    pub id: usize,
    pub class: &'static str,
    pub text: RwSignal<String>,
}

#[derive(Clone)]
pub struct Question {
    pub id: String,
    pub tool_name: String,
    pub arguments: String,
}

impl Chat {
    /// Makes an agent for the server and the model that the page's address names:
    /// `?server=http://127.0.0.1:11434/v1&model=qwen3`.
    pub fn new() -> Result<Self, String> {
        let base_url = parameter("server").unwrap_or_else(|| "/v1".to_owned());
        let id = parameter("model").unwrap_or_else(|| "gpt-5-mini".to_owned());
        let wire = wire("openai-chat", WireOptions { base_url, ..WireOptions::default() })?;
        let model = HttpModel::new(wire, Rc::new(Fetch::new()), Rc::new(Clock)).model(&id);
        let mut config = config(model);
        config.rules.system_prompt = "Answer in few words.".into();
        let tools = tools::all().map_err(|error| error.to_string())?;
        config.set_tools(tools).map_err(|error| error.to_string())?;
        Ok(Chat {
            agent: StoredValue::new_local(Agent::new(config, Vec::new())),
            session: StoredValue::new(uuid()),
            answer: StoredValue::default(),
            next_line: StoredValue::default(),
            lines: RwSignal::default(),
            questions: RwSignal::default(),
            is_running: RwSignal::default(),
            status: RwSignal::default(),
        })
    }

    /// Starts a run with what the user wrote.
    pub fn send(self, text: &str) {
        let _ = self.add("you", text);
        self.status.set(String::new());
        let context = AgentRunContext::new(&uuid(), &self.session.get_value());
        let run = self.agent.with_value(|agent| agent.prompt(vec![text.into()], context, CancelToken::new()));
        match run {
            Ok(run) => {
                self.is_running.set(true);
                spawn(run, move |event| self.show(&event));
            }
            Err(error) => self.status.set(error.to_string()),
        }
    }

    pub fn stop(self) {
        self.agent.with_value(|agent| agent.abort("the user stopped it"));
    }

    /// Answers a question: the call runs, or the model is told that the user refused.
    pub fn decide(self, id: &str, is_allowed: bool) {
        let refusal = ToolDecision::Reject { reason: Some("the user refused".to_owned()) };
        let decision = if is_allowed { ToolDecision::Accept } else { refusal };
        self.agent.with_value(|agent| agent.resolve(id, decision));
    }

    fn show(self, event: &AgentEvent) {
        if let Some(text) = event.added_text() {
            self.write(text);
        }
        match event {
            AgentEvent::MessageEnd { .. } => self.answer.set_value(None),
            // The attempt failed, and another one follows: what it said does not count.
            AgentEvent::MessageReset { .. } => {
                let void = self.answer.get_value().map(|line| line.id);
                self.lines.update(|lines| lines.retain(|line| Some(line.id) != void));
                self.answer.set_value(None);
            }
            AgentEvent::ToolApprovalRequested { id, tool_name, arguments, .. } => {
                let (id, tool_name) = (id.clone(), tool_name.clone());
                let arguments = arguments.as_str().to_owned();
                self.questions.update(|list| list.push(Question { id, tool_name, arguments }));
            }
            AgentEvent::ToolApprovalResolved { id, .. } => {
                self.questions.update(|list| list.retain(|question| question.id != *id));
            }
            AgentEvent::ToolExecutionEnd { result, .. } => {
                let _ = self.add("tool", &format!("{}: {}", result.tool_name, result.text()));
            }
            AgentEvent::AgentEnd { stop_reason, usage, error, .. } => {
                self.is_running.set(false);
                self.questions.set(Vec::new());
                let end = error.as_ref().map_or(stop_reason.as_str(), |error| error.message.as_str());
                self.status.set(format!("{end}, {} tokens", usage.total));
            }
            _ => {}
        }
    }

    /// Writes on in the line of the answer.
    fn write(self, text: &str) {
        match self.answer.get_value() {
            Some(line) => line.text.update(|all| all.push_str(text)),
            None => self.answer.set_value(Some(self.add("answer", text))),
        }
    }

    fn add(self, class: &'static str, text: &str) -> Line {
        let id = self.next_line.get_value();
        self.next_line.set_value(id + 1);
        let line = Line { id, class, text: RwSignal::new(text.to_owned()) };
        self.lines.update(|lines| lines.push(line));
        line
    }
}

/// Returns a parameter of the page's address.
fn parameter(name: &str) -> Option<String> {
    let search = window().location().search().ok()?;
    web_sys::UrlSearchParams::new_with_str(&search).ok()?.get(name)
}
