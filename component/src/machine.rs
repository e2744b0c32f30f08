//! An agent that is driven by messages: a step takes the host's inputs and returns what the agent puts out.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use turnwheel::answer::Answer;
use turnwheel::config::{SteeringTime, TurnOptions};
use turnwheel::driver::Next;
use turnwheel::json::{FromJson, ToJson, Value, write_list};
use turnwheel::machine::AgentCommand;
use turnwheel::ports::AgentRunContext;
use turnwheel::{Agent, AgentMessage, AgentStream, CancelToken, CheckpointEnvelopeV1};

use crate::config::config;
use crate::desk::{Desk, object, output, start};
use crate::input::said;
use crate::rollback::Saved;
use crate::rules::read_messages;

/// An agent and its run, if one is active.
#[derive(Default)]
pub(crate) struct Machine {
    desk: Rc<Desk>,
    agent: Option<Agent>,
    run: Option<Run>,
    /// Steps that are not made yet: the first waits for the host's answer to a rule, the others for the first.
    steps: VecDeque<Value>,
    /// The id of the question about a rule.
    question: Option<u64>,
}

struct Run {
    stream: AgentStream,
    cancel: CancelToken,
}

/// Whether the run wants to be polled again at once.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Machine {
    /// Makes a step: reads `{ now, seed?, inputs }`, and returns `{ outputs, again? }`. With `again`, the host handles the
    /// outputs, and makes a step without inputs.
    pub(crate) fn step(&mut self, text: &str) -> String {
        match Value::parse(text) {
            Err(error) => self.desk.put(refused(&["the step is no JSON: ", &error.to_string()].concat())),
            Ok(step) => {
                let step = self.without_answer(step);
                self.steps.push_back(step);
            }
        }
        let mut again = false;
        while self.question.is_none() && !again && !self.steps.is_empty() {
            again = self.make();
        }
        let outputs = self.desk.take_outputs();
        object(|out| {
            out.key("outputs").push_str(&["[", &outputs.join(","), "]"].concat());
            out.optional(
                "again",
                &(again || (self.question.is_none() && !self.steps.is_empty())).then_some(true),
            );
        })
    }

    /// Takes the answer to the question about a rule out of the inputs. What comes with it is for a later step.
    fn without_answer(&mut self, mut step: Value) -> Value {
        let Some(id) = self.question else { return step };
        let Some(Value::Array(inputs)) = step.get_mut("inputs") else { return step };
        let is_answer = |input: &Value| {
            input.number_at("id") == Some(id) && matches!(input.text_at("type"), Some("answered" | "failed"))
        };
        if let Some(place) = inputs.iter().position(is_answer) {
            let answer = inputs.remove(place);
            self.question = None;
            self.desk.answer(match answer.text_at("type") {
                Some("failed") => Err(answer.owned_at("message").unwrap_or_default()),
                _ => Ok(answer.get("value").cloned().unwrap_or_default()),
            });
        }
        step
    }

    /// Makes the first of the steps. If a rule must ask the host, the step is undone.
    fn make(&mut self) -> bool {
        let Some(step) = self.steps.front().cloned() else { return false };
        let sets_up = |input: &Value| input.get("config").is_some();
        let may_ask = self.desk.has_rules() || step.list_at("inputs").iter().any(sets_up);
        let saved = may_ask.then(Saved::take).flatten();
        let again = self.run_step(&step);
        match (self.desk.take_question(), saved) {
            (Some(question), Some(saved)) => {
                // Not dropped: it is of the time before, and the memory is as it was then.
                let question = saved.undo(question);
                let id = self.desk.next_id();
                self.question = Some(id);
                self.desk.put(start(id, &question));
                return false;
            }
            (Some(_), None) => self.desk.put(refused("there is no memory left to ask a rule of the host")),
            (None, _) => {}
        }
        self.desk.forget_answers();
        drop(self.steps.pop_front());
        again
    }

    fn run_step(&mut self, step: &Value) -> bool {
        self.desk
            .begin(step.number_at("now").unwrap_or_default(), step.number_at("seed").unwrap_or_default());
        let had_run = self.run.is_some();
        for input in step.list_at("inputs") {
            if let Err(text) = self.take(input) {
                self.desk.put(refused(&text));
            }
        }
        // A run begins in the step after, so that the host can say something before.
        if self.run.is_some() && !had_run { true } else { self.poll() }
    }

    fn take(&mut self, input: &Value) -> Result<(), String> {
        let kind = input.text_at("type").unwrap_or_default();
        if let Some(id) = input.number_at("id").filter(|_| kind != "resolve") {
            return self.take_answer(id, kind, input);
        }
        match kind {
            "create" | "restore" | "configure" => self.set_up(kind, input),
            "prompt" | "proceed" => self.begin(kind, input),
            "checkpoint" => self.checkpoint(),
            _ => self.command(kind, input),
        }
    }

    /// What the host says about an effect.
    fn take_answer(&self, id: u64, kind: &str, input: &Value) -> Result<(), String> {
        if let Some(call) = self.desk.call(id) {
            for (key, value) in input.members_at("state") {
                match value {
                    Value::Null => call.state.delete(key),
                    value => call.state.set(key, value.clone()),
                }
            }
            if kind == "progress" {
                call.updates.send(input.get("value").map_or_else(|| Value::Null.to_raw(), ToJson::to_raw));
                return Ok(());
            }
        }
        let said = said(kind, input)?;
        self.desk.say(id, said);
        Ok(())
    }

    fn set_up(&mut self, kind: &str, input: &Value) -> Result<(), String> {
        let config = config(input.get("config").unwrap_or(&Value::Null), &self.desk)?;
        if kind == "configure" {
            self.agent()?.reconfigure(config);
            return Ok(());
        }
        if self.agent.is_some() {
            return Err("there is an agent already; make another instance for another agent".to_owned());
        }
        self.agent = Some(match input.get("checkpoint") {
            Some(given) if kind == "restore" => {
                let read = CheckpointEnvelopeV1::from_value(given.clone());
                let agent = read.and_then(|checkpoint| Agent::restore(config, &checkpoint));
                agent.map_err(|error| error.to_string())?
            }
            _ if kind == "restore" => return Err("`restore` needs a `checkpoint`".to_owned()),
            _ => Agent::new(config, input.get("history").map_or_else(|| Ok(Vec::new()), read_messages)?),
        });
        Ok(())
    }

    fn agent(&self) -> Result<&Agent, String> {
        self.agent
            .as_ref()
            .ok_or_else(|| "there is no agent yet; the first input is `create` or `restore`".to_owned())
    }

    fn begin(&mut self, kind: &str, input: &Value) -> Result<(), String> {
        let agent = self.agent()?;
        let context = match input.get("runId") {
            None => agent.resumable().ok_or("a run needs a text `runId`")?,
            Some(_) => AgentRunContext::from_json(input)?,
        };
        let cancel = CancelToken::new();
        let stream = match kind {
            "prompt" => agent.prompt(prompts(input)?, context, cancel.clone()),
            _ => agent.continue_run(context, cancel.clone()),
        };
        let stream = stream.map_err(|error| error.to_string())?;
        let stream = match input.get("options") {
            None => stream,
            Some(options) => {
                stream.with_options(TurnOptions::from_json(options)?).map_err(|error| error.to_string())?
            }
        };
        self.run = Some(Run { stream, cancel });
        Ok(())
    }

    fn command(&mut self, kind: &str, input: &Value) -> Result<(), String> {
        let agent = self.agent()?;
        let reason = || input.text_at("reason").unwrap_or("the host stopped it");
        match kind {
            "steer" => {
                let when = input.text_at("when").map(|word| {
                    SteeringTime::of_word(word).ok_or_else(|| ["`when` is no time: `", word, "`"].concat())
                });
                agent.post_steering(message(input)?, when.transpose()?, Box::new(|_| {}));
            }
            "followUp" => agent.post_follow_up(message(input)?, Box::new(|_| {})),
            "resolve" => {
                let id = input.text_at("id").ok_or("`resolve` needs the `id` of a question")?;
                let answer = Answer::from_json(input.get("answer").unwrap_or(&Value::Null))?;
                agent.resolve(id, answer);
            }
            "abort" => self.run.iter().for_each(|run| run.cancel.cancel(reason())),
            "cancel" => agent.post(AgentCommand::Cancel(reason().into())),
            "clearQueues" => agent.clear_queues(),
            "reset" => agent.reset(),
            "messages" => self.desk.put(listed("messages", &agent.messages())),
            "questions" => self.desk.put(listed("questions", &agent.pending_questions())),
            other => return Err(["there is no input `", other, "`"].concat()),
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<(), String> {
        let checkpoint = match &mut self.run {
            Some(run) => run.stream.checkpoint(),
            None => self.agent()?.checkpoint(self.desk.now()),
        };
        self.desk.put(output("checkpoint", "checkpoint", &checkpoint));
        Ok(())
    }

    /// Runs as far as possible without the host, and without getting ahead of the listeners: they may answer an event before
    /// the next effect starts. Returns whether it goes on when they have received it.
    fn poll(&mut self) -> bool {
        let Some(run) = &mut self.run else { return false };
        let woken = Arc::<Woken>::default();
        let waker = Waker::from(woken.clone());
        let mut is_delivered = true;
        while !self.desk.is_asking() {
            woken.0.store(false, Ordering::Relaxed);
            match run.stream.poll_output(&mut Context::from_waker(&waker), is_delivered) {
                Poll::Ready(Next::Event(event)) => {
                    is_delivered = false;
                    let run_id = run.stream.context().run_id.clone();
                    self.desk.put(output("event", "event", &Told { event: event.to_json(), run_id }));
                }
                Poll::Ready(Next::Barrier) => return true,
                Poll::Ready(Next::Offer) => {}
                Poll::Ready(Next::End) => {
                    if let Some(result) = run.stream.result() {
                        self.desk.put(output("ended", "result", result));
                    }
                    self.run = None;
                    return false;
                }
                Poll::Pending if woken.0.load(Ordering::Relaxed) => {}
                Poll::Pending => return false,
            }
        }
        false
    }
}

/// An event with the id of its run, as the npm package emits it.
struct Told {
    event: String,
    run_id: Rc<str>,
}

impl ToJson for Told {
    fn write_json(&self, out: &mut String) {
        out.push_str(self.event.strip_suffix('}').unwrap_or_default());
        out.push_str(",\"runId\":");
        self.run_id.write_json(out);
        out.push('}');
    }
}

fn refused(text: &str) -> String {
    output("refused", "message", text)
}

fn listed<T: ToJson>(kind: &str, items: &[T]) -> String {
    object(|out| {
        out.field("type", kind);
        write_list(items, out.key(kind));
    })
}

/// Reads the messages of a prompt: `messages`, or one `text`.
fn prompts(input: &Value) -> Result<Vec<AgentMessage>, String> {
    match input.get("messages") {
        Some(list) => read_messages(list),
        None => message(input).map(|message| vec![message]),
    }
}

/// Reads a `message`, or a `text` of the user.
fn message(input: &Value) -> Result<AgentMessage, String> {
    match (input.get("message"), input.text_at("text")) {
        (Some(message), _) => AgentMessage::from_json(message),
        (None, Some(text)) => Ok(AgentMessage::user(text)),
        (None, None) => Err("a text or a message is needed".to_owned()),
    }
}
