//! What scenarios of format 2 have: agents inside agents, budgets, what holds for a turn, questions and who answers them,
//! hooks, layers, and a process that ends in the middle.

use std::pin::pin;
use std::rc::Rc;

use futures::StreamExt;
use futures::future::{Either, LocalBoxFuture, ready, select};
use serde_json::{Value, json};
use turnwheel::agent::Agent;
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::approval::ApprovalMode;
use turnwheel::budget::Budget;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model, SteeringTime, TurnOptions};
use turnwheel::driver::AgentStream;
use turnwheel::error::AgentError;
use turnwheel::event::AgentEvent;
use turnwheel::json::{FromJson, ToJson};
use turnwheel::machine::AgentCommand;
use turnwheel::message::{ContentBlock, Usage};
use turnwheel::ports::{
    AgentHook, AgentRunContext, HookCall, ModelAttempt, NextModel, NextTool, TurnCall, TurnChoice,
};
use turnwheel::question::QuestionKind;
use turnwheel::stream::StreamOptions;
use turnwheel::tool::{AgentTool, ToolContext};

use crate::play::tools;
use crate::ports::{RunHandle, Script, ScriptedApprover, ScriptedModel, World, raw};
use crate::scenario::{self, Answering, Trigger};
use crate::trace::{self, shown};

/// Sets what only format 2 has.
pub(crate) fn configure(world: &Rc<World>, config: &mut AgentLoopConfig) {
    let options = &world.scenario.options;
    let rules = &mut config.rules;
    rules.budget = options.budget.as_ref().map(budget);
    rules.stream_options = Rc::new(stream_options(&options.stream_options));
    rules.max_depth = options.max_depth.unwrap_or(rules.max_depth);
    rules.max_turns = options.max_turns.or(rules.max_turns);
    rules.timeouts.tool = options.tool_timeout_ms;
    if let Some(when) = options.steering_when.as_deref().and_then(SteeringTime::of_word) {
        rules.steering.when = when;
    }
    if !options.prepare_turn.is_empty() {
        let world = world.clone();
        config.set_turn_preparer(Rc::new(move |turn: TurnCall| ready(Ok(prepared(&world, &turn)))));
    }
    let life = world.lives.get();
    if options.hooks {
        config.set_hooks(vec![Rc::new(Hooks { world: world.clone(), life })]);
    }
    if options.layers {
        set_layers(world, config);
    }
}

fn budget(given: &Value) -> Budget {
    Budget::from_json(&raw(given).to_value()).expect("a scenario has a good budget")
}

fn stream_options(given: &Value) -> StreamOptions {
    if given.is_null() {
        return StreamOptions::default();
    }
    StreamOptions::from_json(&raw(given).to_value()).expect("a scenario has good options")
}

fn turn_options(world: &World, given: &scenario::TurnChoice) -> TurnOptions {
    TurnOptions {
        model: given.model.and_then(|number| world.models.borrow().get(number).cloned()),
        stream_options: given.stream_options.as_ref().map(stream_options),
        active_tools: given.active_tools.clone(),
        system_prompt: given.system_prompt.as_deref().map(Into::into),
        budget: given.budget.as_ref().map(budget),
    }
}

fn prepared(world: &World, turn: &TurnCall) -> TurnChoice {
    let at = usize::try_from(turn.turn_index).unwrap_or(usize::MAX);
    let Some(Some(given)) = world.scenario.options.prepare_turn.get(at) else { return TurnChoice::default() };
    let newest = |newest: usize| turn.messages[turn.messages.len().saturating_sub(newest)..].to_vec();
    TurnChoice { options: turn_options(world, given), messages: given.newest.map(newest) }
}

/// The run with the options that the scenario gives it.
pub(crate) fn with_run_options(
    world: &World,
    stream: AgentStream,
    given: Option<&scenario::TurnChoice>,
) -> Result<AgentStream, AgentError> {
    match given {
        None => Ok(stream),
        Some(given) => stream.with_options(turn_options(world, given)),
    }
}

/// A tool that runs an agent.
pub(crate) fn sub_agent(world: &Rc<World>, name: &str, given: &scenario::Child) -> Rc<dyn AgentTool> {
    let (world, given, model) = (world.clone(), Rc::new(given.clone()), Rc::<str>::from(name));
    let keeps_questions = given.own_approvals;
    let agent = SubAgent::new(name, "scripted", move || child_config(&world, &given, &model));
    Rc::new(if keeps_questions { agent.with_own_approvals() } else { agent })
}

fn child_config(world: &Rc<World>, given: &Rc<scenario::Child>, name: &Rc<str>) -> AgentLoopConfig {
    let script = ScriptedModel { world: world.clone(), script: Script::OfChild(given.clone()) };
    let model = Model {
        provider: "scripted".into(),
        id: name.clone(),
        supports_tools: true,
        context_window: None,
        number: 0,
        stream_fn: Rc::new(script),
    };
    let mut config = AgentLoopConfig::new(model, Rc::new(world.clock.clone()));
    config.offer_tools(tools(world, &given.tools));
    let rules = &mut config.rules;
    rules.max_turns = None;
    rules.retry = crate::play::retry(world.scenario.options.retry.clone().unwrap_or_default());
    rules.approval.mode = approval_mode(given.approval_mode);
    rules.budget = given.budget.as_ref().map(budget);
    rules.stream_options = Rc::new(stream_options(&given.stream_options));
    if let Some(given) = &given.approval {
        config.set_approver(Rc::new(ScriptedApprover { world: world.clone(), given: given.clone() }));
    }
    config
}

pub(crate) fn approval_mode(given: Option<scenario::ApprovalMode>) -> ApprovalMode {
    match given {
        Some(scenario::ApprovalMode::Bypassed) => ApprovalMode::Bypassed,
        Some(scenario::ApprovalMode::Enabled) => ApprovalMode::Enabled,
        _ => ApprovalMode::Smart,
    }
}

// ---- questions

/// Lets the person answer what an event asks.
pub(crate) fn answer(world: &Rc<World>, event: &AgentEvent) {
    match event {
        AgentEvent::ToolApprovalRequested { id, call_id, .. } => plan(world, id, "tool", Some(call_id)),
        AgentEvent::QuestionAsked { question } => {
            plan(world, &question.id, question.kind.as_str(), question.call_id());
        }
        AgentEvent::RunResumed { pending_approvals, .. } => {
            for question in pending_approvals {
                plan(world, &question.id, question.kind.as_str(), question.call_id());
            }
        }
        _ => {}
    }
}

fn plan(world: &Rc<World>, id: &str, kind: &str, call: Option<&str>) {
    let fits = |given: &Answering| {
        given.kind == kind && given.call.as_deref().is_none_or(|wanted| Some(wanted) == call)
    };
    if !world.asked.borrow_mut().insert(id.to_owned()) {
        return;
    }
    let mut planned = world.planned.borrow_mut();
    let next = world.scenario.answers.iter().enumerate();
    let next = next.filter(|(at, _)| !planned.contains(at)).find(|(_, given)| fits(given));
    let Some((at, given)) = next else { return };
    planned.insert(at);
    let (acting, id, life) = (world.clone(), id.to_owned(), world.lives.get());
    let value = raw(&given.answer).to_value();
    let answer = Answer::from_json(&value).expect("a scenario has good answers");
    world.clock.at(world.clock.elapsed() + given.after_ms, move || {
        if acting.lives.get() != life {
            return;
        }
        acting.answered.borrow_mut().insert(at);
        match &*acting.handle.borrow() {
            Some(RunHandle::Run(inbox, _)) => inbox.post(AgentCommand::Resolve(vec![(id, answer)])),
            Some(RunHandle::Agent(agent)) => drop(agent.resolve(&id, answer)),
            None => {}
        }
    });
}

// ---- the end of a process

/// The next event, or nothing if the process ends before it comes.
pub(crate) async fn next_of_life(world: &World, stream: &mut AgentStream) -> Option<Option<AgentEvent>> {
    match world.scenario.sleep_ms {
        Some(ms) if world.lives.get() == 0 => {
            let end = world.clock.pause(ms.saturating_sub(world.clock.elapsed()));
            match select(pin!(stream.next()), end).await {
                Either::Left((event, _)) => Some(event),
                Either::Right(_) => None,
            }
        }
        _ => Some(stream.next().await),
    }
}

/// Puts the run into a checkpoint, and goes on with it elsewhere.
pub(crate) fn go_on(world: &Rc<World>, stream: &mut AgentStream, config: impl Fn() -> AgentLoopConfig) {
    let envelope = stream.checkpoint();
    world.lives.set(world.lives.get() + 1);
    // Nobody has answered what the old process has not heard.
    let answered = world.answered.borrow().clone();
    *world.planned.borrow_mut() = answered;
    world.asked.take();
    let cancel = CancelToken::new();
    let agent = Agent::restore(config(), &envelope).expect("its own checkpoint");
    let context = AgentRunContext::new("run-1", "session");
    *stream = agent.continue_run(context, cancel.clone()).expect("the run was active");
    *world.handle.borrow_mut() = Some(RunHandle::Run(stream.inbox(), cancel));
    world.fire(&Trigger::AfterSleep);
}

// ---- hooks and layers

struct Hooks {
    world: Rc<World>,
    life: u32,
}

impl AgentHook for Hooks {
    fn call(&self, _: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        let entry = match &call {
            HookCall::BeforeInference { turn_index, attempt, model, messages } => json!({
                "hook": "before_inference", "turn": turn_index, "attempt": attempt, "model": **model,
                "messages": messages.len(),
            }),
            HookCall::AfterInference { turn_index, attempt, model, message } => json!({
                "hook": "after_inference", "turn": turn_index, "attempt": attempt, "model": **model,
                "text": message.text(), "stop_reason": message.stop_reason.as_str(),
            }),
            HookCall::BeforeToolExecution { call } => {
                json!({ "hook": "before_tool", "id": call.call_id, "arguments": trace::value_of(&call.arguments) })
            }
            HookCall::AfterToolExecution { call, result } => json!({
                "hook": "after_tool", "id": call.call_id, "text": result.text(), "is_error": result.is_error,
                "cause": result.cause.map(|cause| cause.as_str()),
            }),
            HookCall::OnError { error } => json!({ "hook": "on_error", "code": error.code.as_str() }),
        };
        if self.life == self.world.lives.get() {
            self.world.log.borrow_mut().hooks.push(entry);
        }
        Box::pin(ready(Ok(())))
    }
}

/// The calls that lead to an agent, from the id of its run.
fn path(run_id: &str) -> Vec<&str> {
    run_id.split('/').skip(1).collect()
}

fn set_layers(world: &Rc<World>, config: &mut AgentLoopConfig) {
    let around = |world: &Rc<World>, entry: Value| world.log.borrow_mut().around.push(entry);
    let outer = world.clone();
    config.ports.layers.tool = Some(Rc::new(move |call: ToolContext, next: NextTool| {
        let about = |edge: &str| json!({ "tool": *call.call_id, "path": path(&call.run_id), "edge": edge });
        around(&outer, about("in"));
        let (world, out) = (outer.clone(), about("out"));
        let outcome = next(call);
        async move {
            let outcome = outcome.await;
            around(&world, out);
            outcome
        }
    }));
    let outer = world.clone();
    config.ports.layers.model = Some(Rc::new(move |attempt: ModelAttempt, next: NextModel| {
        around(
            &outer,
            json!({
                "model": *attempt.request.model, "path": path(&attempt.context.run_id), "turn": attempt.turn_index,
                "attempt": attempt.attempt, "messages": attempt.request.messages.len(),
            }),
        );
        next(attempt.request, attempt.cancel).boxed_local()
    }));
}

// ---- what a trace of format 2 shows of an event beyond the others

/// Adds it.
pub(crate) fn show_more(event: &AgentEvent, entry: &mut serde_json::Map<String, Value>) {
    let mut add = |key: &str, value: Value| drop(entry.insert(key.to_owned(), value));
    match event {
        AgentEvent::AgentEnd { stop_reason, usage, own_usage, turns, error, .. } => {
            add("stop_reason", stop_reason.as_str().into());
            add("turns", (*turns).into());
            add("usage", used(usage));
            if let Some(own) = own_usage {
                add("own_usage", used(own));
            }
            if let Some(error) = error {
                add("error", error.code.as_str().into());
            }
        }
        AgentEvent::RunResumed { turn_index, pending_approvals, running_tools, .. } => {
            add("turn_index", (*turn_index).into());
            let tools = pending_approvals.iter().filter(|asked| asked.kind == QuestionKind::Tool);
            let asked: Vec<&str> = tools.filter_map(|asked| asked.call_id()).collect();
            add("pending", asked.into());
            let running: Vec<&str> = running_tools.iter().map(|call| call.call_id.as_str()).collect();
            add("running", running.into());
        }
        AgentEvent::MessageEnd { message, .. } => {
            add("usage", used(&message.usage));
            if message.content.iter().any(|block| matches!(block, ContentBlock::Raw(_))) {
                add("has_raw", true.into());
            }
        }
        AgentEvent::ToolExecutionEnd { result, .. } => {
            if let Some(cause) = result.cause {
                add("cause", cause.as_str().into());
            }
        }
        AgentEvent::ToolApprovalRequested { path, .. } => add("path", path.clone().into()),
        AgentEvent::ToolApprovalResolved { path, by, .. } => {
            add("path", path.clone().into());
            add("by", by.as_str().into());
        }
        AgentEvent::QuestionAsked { question } => {
            if let Some(limit) = &question.limit {
                add("budget", trace::value_of(&limit.to_raw()));
            }
        }
        AgentEvent::SubagentEvent { event, .. } => {
            if let Ok(inner) = AgentEvent::from_json(&event.to_value())
                && let Some(mut inside) = shown(&inner)
            {
                show_more(&inner, &mut inside);
                add("inner", inside.into());
            }
        }
        _ => {}
    }
}

fn used(usage: &Usage) -> Value {
    let mut shown = json!({ "input": usage.input, "output": usage.output, "total": usage.total });
    if usage.estimated {
        shown["estimated"] = true.into();
    }
    shown
}
