//! An agent in a checkpoint.

use crate::data::json::{FromJson, ObjectWriter, Value};
use crate::data::list::{ListWriter, read_all};
use crate::driver::OpenQuestions;
use crate::host::config::AgentLoopConfig;
use crate::host::ports::AgentRunContext;
use crate::host::state::SessionState;
use crate::machine::{AgentCommand, Input, Letter, LoopState, QuestionsInside, read_enveloped_child};
use crate::rules::budget::Ledger;
use crate::rules::checkpoint::{CheckpointEnvelopeV1, CheckpointError};
use crate::words::event::AgentEvent;
use crate::words::message::Usage;

use super::Agent;

/// How a restored run continues.
pub(super) enum Resume {
    /// It had not begun yet.
    Begin(Input),
    /// Its state, and the events that were not emitted yet.
    Run(Box<LoopState>, Vec<AgentEvent>),
}

impl Agent {
    /// Restores an agent from a checkpoint. What a checkpoint cannot contain (models, tools, rules) comes from `config`.
    /// If there was a run, [`Agent::continue_run`] continues it. A checkpoint of another engine is restored as a history.
    ///
    /// # Errors
    /// If messages or state cannot be read; the error names which.
    pub fn restore(
        config: AgentLoopConfig,
        checkpoint: &CheckpointEnvelopeV1,
    ) -> Result<Self, CheckpointError> {
        let agent = Agent::new(config, checkpoint.agent_messages()?);
        let Some(own) = checkpoint.checked_state()? else { return Ok(agent) };
        let unemitted = own.get("untold").map_or(Ok(Vec::new()), Vec::from_json);
        let read = unemitted.and_then(|unemitted| agent.read_checkpoint(own).map(|()| unemitted));
        let events = read.map_err(CheckpointError::InvalidPayload)?;
        if let Some(Resume::Run(state, unemitted)) = &mut *agent.0.resume.borrow_mut() {
            state.name_questions(&*agent.0.config.borrow().rules.new_id);
            state.reads_child = read_enveloped_child;
            let (own, inside) = (state.questions(), agent.questions_inside(state)?);
            *unemitted = inside.believable(&own, events);
            let questions = [own, inside.open.clone()].concat();
            state.child_questions = inside.open;
            agent.published().borrow_mut().questions = OpenQuestions::of(questions);
        }
        Ok(agent)
    }

    /// A checkpoint of the agent while none of its runs is active; `now` is in milliseconds since 1970. For an active run,
    /// use [`AgentStream::checkpoint`](crate::driver::AgentStream::checkpoint).
    pub fn checkpoint(&self, now: u64) -> CheckpointEnvelopeV1 {
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(now, &mut object);
        object.end();
        let resume = self.0.resume.borrow();
        let run_id = match &*resume {
            Some(Resume::Run(state, _)) => state.context().run_id.clone(),
            _ => "".into(),
        };
        CheckpointEnvelopeV1::of_state(&run_id, &self.messages(), &own)
    }

    /// The ids of the restored run that waits to be continued, to pass to [`Agent::continue_run`]; other ids work too.
    pub fn resumable(&self) -> Option<AgentRunContext> {
        match &*self.0.resume.borrow() {
            Some(Resume::Run(state, _)) => Some(state.context().clone()),
            _ => None,
        }
    }

    /// Writes the members of a checkpoint's state, while no run is active.
    pub fn write_checkpoint(&self, now: u64, out: &mut ObjectWriter<'_>) {
        let session = self.0.session.borrow();
        out.field("session", &session.snapshot()).field("changes", &session.changes());
        out.field("usage", &self.0.usage.get());
        self.0.spent.borrow().get().write_members(out);
        let published = self.published();
        let published = published.borrow();
        let mut mail = ListWriter::new(out.key("mail"));
        Letter::write_mail(&published.steering, "steer", &mut mail);
        Letter::write_mail(&published.follow_up, "follow_up", &mut mail);
        self.0.inbox.borrow().write_mail(&mut mail);
        mail.end();
        match &*self.0.resume.borrow() {
            None => {}
            Some(Resume::Begin(Input::Begin(prompts))) => drop(out.field("prompts", prompts)),
            Some(Resume::Begin(_)) => out.key("prompts").push_str("null"),
            Some(Resume::Run(state, unemitted)) => {
                state.write_checkpoint(now, &[], out.key("run"));
                let mut waiting = state.waiting_children().peekable();
                if waiting.peek().is_some() {
                    let mut children = ObjectWriter::new(out.key("children"));
                    for (call_id, child) in waiting {
                        children.field(call_id, child);
                    }
                    children.end();
                }
                out.field("untold", unemitted);
            }
        }
    }

    /// Reads the state of a checkpoint; [`Agent::continue_run`] then continues its run. The history is already that of the
    /// checkpoint. What only listeners see, open questions and events that were not emitted yet, is the caller's business.
    ///
    /// # Errors
    /// If something cannot be read; the text names it, and nothing has changed.
    pub fn read_checkpoint(&self, own: &Value) -> Result<(), String> {
        let map = |key: &str| own.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
        let session = SessionState::restored(map("session"), map("changes"));
        let mail = own.get("mail").map_or(Ok(Vec::new()), |list| read_all(list, AgentCommand::from_json))?;
        // Whoever wrote them, they approve nothing here: what is open is asked still.
        let mail = mail.into_iter().filter(AgentCommand::is_believable);
        let resume = match (own.get("run"), own.get("prompts")) {
            (Some(run), _) => {
                let state = LoopState::read_checkpoint(self.messages(), session.clone(), run);
                let state =
                    state.map_err(|why| ["the run of the checkpoint cannot be read: ", &why].concat())?;
                Some(Resume::Run(Box::new(state), Vec::new()))
            }
            (None, Some(prompts @ Value::Array(_))) => {
                Some(Resume::Begin(Input::Begin(Vec::from_json(prompts)?)))
            }
            (None, Some(_)) => Some(Resume::Begin(Input::Continue)),
            (None, None) => None,
        };
        let resume = match resume {
            Some(Resume::Run(mut state, unemitted)) => {
                state.read_children(own);
                Some(Resume::Run(state, unemitted))
            }
            other => other,
        };
        self.0.usage.set(own.get("usage").map_or(Ok(Usage::default()), Usage::from_json)?);
        self.0.spent.borrow().set(Ledger::read(own)?);
        *self.0.session.borrow_mut() = session;
        *self.0.resume.borrow_mut() = resume;
        mail.for_each(|command| self.0.inbox.borrow().post(command));
        Ok(())
    }
}

impl Agent {
    /// The questions of the sub-agents that go on with the run.
    fn questions_inside(&self, state: &LoopState) -> Result<QuestionsInside, CheckpointError> {
        let config = self.0.config.borrow().clone();
        let mut questions = QuestionsInside::default();
        for (call_id, checkpoint) in state.waiting_children() {
            let is_sub_agent = |tool: &str| {
                config.rules.tools.iter().any(|spec| *spec.schema.name == *tool && spec.is_sub_agent)
            };
            if state.begun_tool(call_id).is_some_and(is_sub_agent) && !state.keeps_questions(call_id) {
                questions.add(state.reads_child, checkpoint.to_value(), &mut vec![call_id.to_owned()])?;
            }
        }
        Ok(questions)
    }
}
