//! The models and the tools of a family.

use std::rc::Rc;

use futures::stream::{LocalBoxStream, StreamExt, unfold};
use turnwheel::agent::subagent::SubAgent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model, SteeringRules, ToolExecutionPolicy};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::json::Value;
use turnwheel::message::{LlmMessage, MessageStopReason, Usage, text_of};
use turnwheel::ports::{AgentRunContext, StreamFn};
use turnwheel::price::Price;
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{
    AgentTool, AgentToolResult, ApprovalNeed, Ask, ToolContext, ToolOutcome, ToolSpec, external_tool, tool,
};

use super::Family;
use super::books::Progress;
use crate::host::{Port, spec};

/// The line of the last call that a budget allows.
const LAST_CALL: &str = "The budget of this run is used up.";

impl Family {
    /// The configuration of an agent so many levels inside.
    pub(super) fn config(self: &Rc<Self>, level: usize) -> AgentLoopConfig {
        let plan = &self.plan.levels[level];
        let improviser = Improviser { family: self.clone(), level };
        let mut config =
            AgentLoopConfig::new(Model::new("own", "m", Rc::new(improviser)), Rc::new(self.clock.clone()));
        config.set_tools(self.tools(level)).expect("the tools have names of their own");
        let rules = &mut config.rules;
        let family = self.clone();
        rules.new_id = Rc::new(move || family.new_id());
        rules.random = Rc::new(|| 7);
        rules.max_turns = Some(plan.max_turns);
        rules.budget = plan.budget;
        rules.stream_options = Rc::new(turnwheel::stream::StreamOptions {
            max_tokens: Some(plan.max_tokens),
            ..(*rules.stream_options).clone()
        });
        rules.retry = Rc::new(RetryConfig { initial_backoff_ms: 20, ..RetryConfig::default() });
        rules.gate = plan.gate;
        rules.approval.mode = plan.mode;
        rules.max_concurrent_tools = plan.most_at_once;
        rules.timeouts.tool = plan.tool_timeout;
        if plan.is_sequential {
            rules.tool_execution = ToolExecutionPolicy::Sequential;
        }
        rules.steering = SteeringRules {
            when: self.plan.steering,
            in_flight: self.plan.in_flight,
            delivery: self.plan.delivery,
            before_first_call: false,
        };
        if plan.has_approver {
            let family = self.clone();
            config.set_approver(Rc::new(Port(move |_| {
                let pause = family.pause(6);
                let accepts = family.dice.chance(80);
                async move {
                    pause.await;
                    Ok(if accepts { ToolDecision::Accept } else { ToolDecision::Reject { reason: None } })
                }
            })));
        }
        config
    }

    fn pause(&self, most: usize) -> crate::clock::Pause {
        self.clock.pause(10 * u64::try_from(self.dice.below(most)).unwrap_or(0))
    }

    fn tools(self: &Rc<Self>, level: usize) -> Vec<Rc<dyn AgentTool>> {
        let mut tools = vec![self.tool(spec("work"), false)];
        let pay = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec("pay") };
        tools.push(self.tool(pay, false));
        tools.push(self.tool(spec("ask"), true));
        // It may run again after the end of a process.
        tools.push(self.tool(ToolSpec { idempotent: true, ..spec("look") }, false));
        // Somebody else answers these.
        tools.push(external_tool(spec("place")));
        let sign =
            ToolSpec { requires_approval: ApprovalNeed::Always, timeout_ms: Some(150), ..spec("sign") };
        tools.push(external_tool(sign));
        if level < 2 {
            let family = self.clone();
            let agent = SubAgent::new("agent", "", move || family.config(level + 1));
            let keeps = self.plan.levels[level + 1].keeps_questions;
            tools.push(Rc::new(if keeps { agent.with_own_approvals() } else { agent }));
        }
        tools
    }

    fn tool(self: &Rc<Self>, spec: ToolSpec, asks: bool) -> Rc<dyn AgentTool> {
        let (family, is_idempotent) = (self.clone(), spec.idempotent);
        tool(spec, move |call| family.clone().run(call, is_idempotent, asks))
    }

    async fn run(self: Rc<Self>, call: ToolContext, is_idempotent: bool, asks: bool) -> ToolOutcome {
        self.watch.borrow_mut().run_tool(&call.run_id, &call.call_id, is_idempotent);
        let _running = Running::begin(&self);
        let dice = &self.dice;
        let (pause, outcome) = (self.pause(8), dice.below(12));
        if dice.chance(20) {
            call.updates.text("working");
        }
        pause.await;
        if asks {
            let answer = call.ask(Ask { message: "Which one?".to_owned(), schema: None, id: None }).await;
            if matches!(answer, Answer::Raise(_) | Answer::Decision(ToolDecision::Accept)) {
                self.fault(&format!("a tool gets {answer:?}"));
            }
        }
        match outcome {
            0 => ToolOutcome::Failed("broke".to_owned()),
            1 => ToolOutcome::Completed(AgentToolResult::error("no luck")),
            _ => ToolOutcome::Completed(AgentToolResult::text("done")),
        }
    }
}

/// A tool, while it runs.
struct Running(Rc<Family>);

impl Running {
    fn begin(family: &Rc<Family>) -> Self {
        family.tools.set(family.tools.get() + 1);
        Running(family.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Those of a process that has ended count no more.
        self.0.tools.set(self.0.tools.get().saturating_sub(1));
    }
}

/// A model that makes up what it says.
struct Improviser {
    family: Rc<Family>,
    level: usize,
}

impl StreamFn for Improviser {
    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, E> {
        let family = self.family.clone();
        let is_last = request.system_prompt.contains(LAST_CALL);
        family.watch.borrow_mut().call_model(&context.run_id, letters_in(&request));
        let (answer, usage) = self.answer(&request, is_last);
        let now = family.clock.elapsed();
        family.watch.borrow_mut().trace(|| format!("({} calls a model at {now})", context.run_id));
        let progress = Progress::begin(&family, &context.run_id, usage, is_last);
        let events: Vec<E> = answer.into_iter().rev().collect();
        unfold((events, family, progress), |(mut events, family, mut progress)| async move {
            let event = events.pop()?;
            if family.dice.chance(40) {
                family.pause(4).await;
            }
            if matches!(event, E::Done { .. } | E::Error(_)) {
                progress.end(matches!(event, E::Error(_)));
            }
            Some((event, (events, family, progress)))
        })
        .boxed_local()
    }

    fn price(&self) -> Option<Price> {
        Price::read(&Value::parse(r#"{"input":1,"output":1}"#).expect("JSON"))
    }
}

impl Improviser {
    /// What is said, and what it uses.
    fn answer(&self, request: &ModelRequest, is_last: bool) -> (Vec<E>, Usage) {
        let dice = &self.family.dice;
        let mut events = vec![E::Start];
        // What the provider counts is its own affair: more or less than what is expected.
        let input = u64::try_from(request.messages.len() * (3 + dice.below(9))).unwrap_or(0);
        if dice.chance(6) {
            events.push(E::Error(ErrorInfo::new(ErrorKind::Overloaded, "busy")));
            return (events, Usage::default());
        }
        let calls = if is_last || dice.chance(25) { 0 } else { 1 + dice.below(5) / 2 };
        let mut index = 0;
        if calls == 0 || dice.chance(30) {
            events.push(E::TextStart { index });
            for _ in 0..1 + dice.below(2) {
                events.push(E::TextDelta { index, delta: "some words ".to_owned() });
            }
            events.push(E::TextEnd { index, signature: None });
            index += 1;
        }
        for _ in 0..calls {
            let name = self.tool_name();
            let call_id = (*dice.pick(&["a", "b", "c", ""])).to_owned();
            events.push(E::ToolCallStart { index, call_id, tool_name: name.to_owned() });
            let arguments = if name == "agent" { "{\"prompt\":\"Go on.\"}" } else { "{}" };
            events.push(E::ToolCallDelta { index, delta: arguments.to_owned() });
            events.push(E::ToolCallEnd { index, metadata: None });
            index += 1;
        }
        let output = 1 + u64::try_from(dice.below(20)).unwrap_or(0);
        let usage = Usage { input, output, total: input + output, ..Usage::default() };
        let stop_reason = if calls == 0 { MessageStopReason::Stop } else { MessageStopReason::ToolUse };
        events.push(E::Done { stop_reason, usage: Some(usage) });
        (events, usage)
    }

    fn tool_name(&self) -> &'static str {
        let dice = &self.family.dice;
        if self.level < 2 && dice.chance(if self.level == 0 { 60 } else { 40 }) {
            return "agent";
        }
        let names: [&'static str; 10] =
            ["work", "work", "work", "pay", "ask", "look", "look", "ghost", "place", "sign"];
        names[dice.below(names.len())]
    }
}

/// The letters in a request, in order.
fn letters_in(request: &ModelRequest) -> Vec<String> {
    let mut letters = Vec::new();
    for message in request.messages.iter() {
        if let LlmMessage::User(user) = message {
            let text = text_of(&user.content);
            letters.extend(text.split('\n').filter(|line| line.starts_with("letter ")).map(str::to_owned));
        }
    }
    letters
}
