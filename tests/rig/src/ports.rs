//! The scripted counterpart of a run: model, tools, approver, policies, transformers, keys. Each does
//! what the scenario says and records what it saw.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::resume_unwind;
use std::rc::Rc;

use futures::future::{LocalBoxFuture, select};
use futures::stream::{LocalBoxStream, StreamExt, unfold};
use serde_json::{Value, json};
use turnwheel::agent::Agent;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{Model, SteeringTime};
use turnwheel::context::{KeepLast, PruneToolResults, Reducers, SlidingWindow};
use turnwheel::driver::Inbox;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::CompactionReport;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::machine::{AgentCommand, Letter, Receipt};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, MessageStopReason, ToolCallBlock,
    ToolResultMessage, Usage,
};
use turnwheel::policy::{
    ContextTransformer, DispatchCall, DispatchVerdict, PolicyContext, PostLoopPolicy, PostTurn,
    PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy, Transform, Verdict,
};
use turnwheel::ports::{
    AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, KeySource, MessageProvider, StreamFn,
};
use turnwheel::price::Price;
use turnwheel::stream::{AssistantMessageEvent, ModelRequest};
use turnwheel::tape::Recorder;
use turnwheel::tool::{
    AgentTool, AgentToolResult, ApprovalNeed, Ask, ToolContext, ToolOutcome, ToolSpec, Transfer,
};

use crate::clock::Clock;
use crate::scenario::{
    self, Behavior, Decision, FailureKind, Form, Item, ModelCall, Scenario, Trigger, When,
};
use crate::trace::{self, Log};

/// How queued messages reach the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// They are posted.
    #[default]
    Inbox,
    /// A provider of the host is polled.
    Provider,
}

impl Route {
    /// Returns the natural route: a single run of the loop polls, as the recorded engine does; an
    /// agent gets messages posted.
    pub fn natural(scenario: &Scenario) -> Self {
        match scenario.driver {
            scenario::Driver::Loop if !scenario.is_posted() => Route::Provider,
            _ => Route::Inbox,
        }
    }
}

/// What the triggers act on.
#[derive(Clone)]
pub enum RunHandle {
    Run(Inbox, CancelToken),
    Agent(Agent),
}

/// The state that all scripted ports share.
pub struct World {
    pub clock: Clock,
    pub scenario: Rc<Scenario>,
    pub log: Rc<RefCell<Log>>,
    /// How many processes have ended in this world.
    pub lives: Cell<u32>,
    /// The answers that the person is about to give, and those that are given.
    pub planned: RefCell<BTreeSet<usize>>,
    pub answered: RefCell<BTreeSet<usize>>,
    /// The questions that the person has read.
    pub asked: RefCell<BTreeSet<String>>,
    /// What models have left to say, by their ids, and for sub-agents by the ids of their runs.
    pub scripts: RefCell<BTreeMap<String, VecDeque<ModelCall>>>,
    /// The models of the scenario: the first one and its fallbacks.
    pub models: RefCell<Vec<Model>>,
    pub handle: RefCell<Option<RunHandle>>,
    pub route: Route,
    /// How many messages the provider has cached.
    pub cached: Rc<Cell<usize>>,
    /// Writes a tape of everything that is played.
    pub recorder: Option<Recorder>,
    /// Steering and follow-ups for [`Route::Provider`].
    queues: [RefCell<VecDeque<AgentMessage>>; 2],
    fired: RefCell<BTreeSet<Trigger>>,
    calls: Cell<usize>,
    keys: Cell<usize>,
    prompts: Cell<usize>,
    transforms: Cell<usize>,
}

impl World {
    pub fn new(scenario: Rc<Scenario>, route: Route) -> Rc<Self> {
        World::recorded(scenario, route, None)
    }

    pub fn recorded(scenario: Rc<Scenario>, route: Route, recorder: Option<Recorder>) -> Rc<Self> {
        let mut log = Log::default();
        log.shows_more = scenario.shows_more();
        Rc::new(World {
            recorder,
            clock: Clock::default(),
            scenario,
            log: Rc::new(RefCell::new(log)),
            lives: Cell::default(),
            planned: RefCell::default(),
            answered: RefCell::default(),
            asked: RefCell::default(),
            scripts: RefCell::default(),
            models: RefCell::default(),
            handle: RefCell::default(),
            route,
            cached: Rc::default(),
            queues: Default::default(),
            fired: RefCell::default(),
            calls: Cell::default(),
            keys: Cell::default(),
            prompts: Cell::default(),
            transforms: Cell::default(),
        })
    }

    /// Carries out what is due at a point of the run, once.
    pub fn fire(&self, trigger: &Trigger) {
        if !self.fired.borrow_mut().insert(trigger.clone()) {
            return;
        }
        for queued in self.scenario.steering.iter().filter(|queued| queued.at == *trigger) {
            match queued.when.as_deref().and_then(SteeringTime::of_word) {
                None => self.steer(&queued.text),
                Some(when) => self.steer_when(&queued.text, when),
            }
        }
        for queued in self.scenario.follow_up.iter().filter(|queued| queued.at == *trigger) {
            self.follow_up(&queued.text);
        }
        if self.scenario.abort.as_ref().is_some_and(|abort| abort.at == *trigger) {
            self.abort();
        }
    }

    /// Stops the run.
    pub fn abort(&self) {
        match &*self.handle.borrow() {
            Some(RunHandle::Run(_, cancel)) => cancel.cancel("the user stopped it"),
            Some(RunHandle::Agent(agent)) => agent.abort("the user stopped it"),
            None => {}
        }
    }

    /// Sets an alarm for everything that is due at a certain time.
    pub fn set_alarms(self: &Rc<Self>) {
        let queued = self.scenario.steering.iter().chain(&self.scenario.follow_up).map(|queued| &queued.at);
        let abort = self.scenario.abort.as_ref().map(|abort| &abort.at);
        for trigger in queued.chain(abort).cloned().collect::<BTreeSet<_>>() {
            if let Trigger::Ms(ms) = trigger {
                let world = self.clone();
                self.clock.at(ms, move || world.fire(&Trigger::Ms(ms)));
            }
        }
    }

    pub fn steer(&self, text: &str) {
        self.queue(text, 0, AgentCommand::Steer);
    }

    pub fn follow_up(&self, text: &str) {
        self.queue(text, 1, AgentCommand::FollowUp);
    }

    fn steer_when(&self, text: &str, when: SteeringTime) {
        let message = AgentMessage::user(text);
        match &*self.handle.borrow() {
            Some(RunHandle::Run(inbox, _)) => {
                let letter = Letter { when: Some(when), ..Letter::new(message, 0) };
                inbox.post(AgentCommand::Steer(letter));
            }
            Some(RunHandle::Agent(agent)) => {
                agent.post_steering(message, Some(when), self.receipt(text));
            }
            None => {}
        }
    }

    /// Writes down what became of a message.
    fn receipt(&self, text: &str) -> Box<dyn FnOnce(Receipt)> {
        let (log, text) = (self.log.clone(), text.to_owned());
        Box::new(move |receipt| {
            let entry = match receipt {
                Receipt::Delivered { turn_index } => json!({ "text": text, "turn_index": turn_index }),
                Receipt::Cleared => json!({ "text": text, "not_read": true }),
            };
            let mut log = log.borrow_mut();
            if log.shows_more {
                log.receipts.push(entry);
            }
        })
    }

    fn queue(&self, text: &str, queue: usize, command: fn(Letter) -> AgentCommand) {
        let message = AgentMessage::user(text);
        if self.route == Route::Provider {
            return self.queues[queue].borrow_mut().push_back(message);
        }
        match &*self.handle.borrow() {
            Some(RunHandle::Run(inbox, _)) => inbox.post(command(Letter::new(message, 0))),
            Some(RunHandle::Agent(agent)) if queue == 0 => {
                agent.post_steering(message, None, self.receipt(text));
            }
            Some(RunHandle::Agent(agent)) => agent.post_follow_up(message, self.receipt(text)),
            None => {}
        }
    }

    /// Writes down what no machine knows: what the host did around the runs.
    pub fn note(&self, note: &Value) {
        if let Some(recorder) = &self.recorder {
            recorder.note(&note.to_string());
        }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.elapsed() / 10 * 10
    }

    /// Returns the dynamic system prompt for the next evaluation.
    pub fn next_prompt(&self) -> String {
        let prompts = &self.scenario.options.dynamic_system_prompts;
        let prompt = prompts.get(self.prompts.get()).or(prompts.last());
        self.prompts.set(self.prompts.get() + 1);
        prompt.cloned().unwrap_or_default()
    }
}

fn crash(text: &str) -> ! {
    resume_unwind(Box::new(text.to_owned()))
}

pub fn raw(value: &Value) -> RawJson {
    RawJson::parse(&value.to_string()).expect("serde_json writes JSON")
}

/// Converts a message of a scenario to the engine's form.
pub fn message(given: &scenario::Message, tool_names: &mut Vec<(String, String)>) -> AgentMessage {
    match given.role.as_str() {
        "assistant" => {
            let mut content = Vec::new();
            if !given.text.is_empty() {
                content.push(ContentBlock::text(given.text.as_str()));
            }
            for call in &given.tool_calls {
                tool_names.push((call.id.clone(), call.name.clone()));
                content.push(ContentBlock::ToolCall(ToolCallBlock {
                    call_id: call.id.clone(),
                    tool_name: call.name.clone(),
                    arguments: raw(call.arguments.as_ref().unwrap_or(&json!({}))),
                    metadata: None,
                }));
            }
            let calls = !given.tool_calls.is_empty();
            AssistantMessage {
                content,
                provider: "scripted".to_owned(),
                model: "primary".to_owned(),
                usage: Usage::default(),
                stop_reason: if calls { MessageStopReason::ToolUse } else { MessageStopReason::Stop },
                error: None,
                timestamp: 1,
                id: None,
                foreign: None,
            }
            .into()
        }
        "tool_result" => {
            let name = tool_names.iter().rev().find(|(id, _)| *id == given.tool_call_id);
            ToolResultMessage {
                call_id: given.tool_call_id.clone(),
                tool_name: name.map(|(_, name)| name.clone()).unwrap_or_default(),
                content: vec![ContentBlock::text(given.text.as_str())],
                details: None,
                is_error: given.is_error,
                cause: None,
                timestamp: 1,
                foreign: None,
            }
            .into()
        }
        "custom" => AgentMessage::Custom(Rc::new(CustomMessage {
            kind: "scenario".to_owned(),
            data: RawJson::string(&given.text),
            timestamp: 1,
        })),
        _ => AgentMessage::user(given.text.as_str()),
    }
}

pub struct ScriptedModel {
    pub world: Rc<World>,
    pub script: Script,
}

/// Where a model takes its answers from.
pub enum Script {
    /// From one list, under the name of the model.
    Own(String, Vec<ModelCall>),
    /// From the list of the run that asks.
    OfChild(Rc<scenario::Child>),
}

impl ScriptedModel {
    fn next(&self, run_id: &str) -> Option<ModelCall> {
        let (name, script) = match &self.script {
            Script::Own(name, calls) => (name.as_str(), calls),
            Script::OfChild(child) => {
                let call_id = run_id.rsplit('/').next().unwrap_or_default();
                (run_id, child.by_call.get(call_id).unwrap_or(&child.model))
            }
        };
        let mut scripts = self.world.scripts.borrow_mut();
        let left = scripts.entry(name.to_owned()).or_insert_with(|| script.iter().cloned().collect());
        left.pop_front()
    }
}

/// One action of a scripted model.
enum Step {
    Say(AssistantMessageEvent),
    Fire(Trigger),
    Wait(u64),
}

impl StreamFn for ScriptedModel {
    fn stream(
        &self,
        request: ModelRequest,
        context: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let world = self.world.clone();
        let n = world.calls.get() + 1;
        world.calls.set(n);
        let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        let mut seen = json!({
            "n": n,
            "t": world.now(),
            "model": *request.model,
            "system_prompt": *request.system_prompt,
            "messages": trace::request_messages(&request.messages),
            "tools": tools,
        });
        if let Some(key) = &request.api_key {
            // No tape has keys. This one opens nothing.
            world.note(&json!({ "key": **key }));
            seen["api_key"] = (**key).into();
        }
        if world.scenario.shows_more() {
            let path: Vec<&str> = context.run_id.split('/').skip(1).collect();
            if !path.is_empty() {
                seen["path"] = path.into();
            }
            let options = trace::value_of(&request.options.to_raw());
            if options.as_object().is_some_and(|options| !options.is_empty()) {
                seen["options"] = options;
            }
        }
        world.log.borrow_mut().model_calls.push(seen);
        let steps = steps(n, self.next(&context.run_id));
        unfold((steps, world, cancel), |(mut steps, world, cancel)| async move {
            loop {
                match steps.pop_front()? {
                    Step::Say(event) => return Some((event, (steps, world, cancel))),
                    Step::Fire(trigger) => world.fire(&trigger),
                    Step::Wait(ms) => {
                        select(world.clock.pause(ms), Box::pin(cancel.cancelled())).await;
                    }
                }
            }
        })
        .boxed_local()
    }

    fn price(&self) -> Option<Price> {
        let price = self.world.scenario.options.price.as_ref()?;
        Price::read(&raw(price).to_value())
    }

    fn estimates_usage(&self) -> bool {
        self.world.scenario.options.estimates
    }
}

fn steps(n: usize, call: Option<ModelCall>) -> VecDeque<Step> {
    use AssistantMessageEvent as E;
    let mut steps = VecDeque::new();
    let Some(call) = call else {
        let error = ErrorInfo::new(ErrorKind::Unknown, "script exhausted");
        steps.push_back(Step::Say(E::Error(error)));
        return steps;
    };
    steps.push_back(Step::Say(E::Start));
    let mut index = 0;
    let items = call.events.len();
    for (before_item, item) in call.events.into_iter().enumerate() {
        steps.push_back(Step::Fire(Trigger::ModelCall { n, before_item }));
        let mut say = |event| steps.push_back(Step::Say(event));
        match item {
            Item::DelayMs(ms) => {
                steps.push_back(Step::Wait(ms));
                continue;
            }
            Item::Text(pieces) => {
                say(E::TextStart { index });
                for piece in pieces.list() {
                    say(E::TextDelta { index, delta: piece.clone() });
                }
                say(E::TextEnd { index, signature: None });
            }
            Item::Thinking(pieces) => {
                say(E::ThinkingStart { index });
                for piece in pieces.list() {
                    say(E::ThinkingDelta { index, delta: piece.clone() });
                }
                say(E::ThinkingEnd { index, signature: None, redacted: false });
            }
            Item::Raw(data) => say(E::Raw { index, data: raw(&data) }),
            Item::ToolCall(given) => {
                say(E::ToolCallStart { index, call_id: given.id, tool_name: given.name });
                let whole = given.arguments.map(|arguments| vec![arguments.to_string()]);
                for piece in given.arguments_chunks.or(whole).unwrap_or_default() {
                    say(E::ToolCallDelta { index, delta: piece });
                }
                if given.incomplete {
                    index += 1;
                    continue;
                }
                say(E::ToolCallEnd { index, metadata: None });
            }
        }
        index += 1;
    }
    steps.push_back(Step::Fire(Trigger::ModelCall { n, before_item: items }));
    if let Some(failure) = call.error {
        steps.push_back(Step::Say(E::Error(ErrorInfo::new(kind(failure.kind), failure.message))));
    } else if !call.no_terminal {
        let stop_reason = call.stop.as_deref().and_then(MessageStopReason::from_word);
        steps.push_back(Step::Say(E::Done {
            stop_reason: stop_reason.unwrap_or(MessageStopReason::Stop),
            usage: call.usage.map(tokens),
        }));
    }
    steps
}

fn kind(kind: FailureKind) -> ErrorKind {
    match kind {
        FailureKind::Throttled => ErrorKind::Throttled,
        FailureKind::Network => ErrorKind::Network,
        FailureKind::Overflow => ErrorKind::ContextOverflow,
        FailureKind::Auth => ErrorKind::Auth,
        FailureKind::ContentFiltered => ErrorKind::ContentFiltered,
        FailureKind::Aborted => ErrorKind::Aborted,
        FailureKind::None | FailureKind::Stream => ErrorKind::Unknown,
    }
}

fn tokens(given: scenario::Usage) -> Usage {
    Usage {
        input: given.input,
        output: given.output,
        cache_read: given.cache_read,
        cache_write: given.cache_write,
        ..Usage::default()
    }
    .totalled()
}

pub struct ScriptedTool {
    world: Rc<World>,
    spec: ToolSpec,
    given: Rc<scenario::Tool>,
}

impl ScriptedTool {
    pub fn new(world: &Rc<World>, given: &scenario::Tool, priority: i32) -> Self {
        let schema = given.schema.clone().unwrap_or_else(|| json!({ "type": "object" }));
        let mut spec = ToolSpec::new(&given.name, "scripted", raw(&schema));
        if given.requires_approval {
            spec.requires_approval = ApprovalNeed::Always;
        }
        spec.priority = priority;
        spec.timeout_ms = given.timeout_ms;
        spec.idempotent = given.idempotent;
        ScriptedTool { world: world.clone(), spec, given: Rc::new(given.clone()) }
    }
}

impl AgentTool for ScriptedTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let (world, given) = (self.world.clone(), self.given.clone());
        Box::pin(async move {
            let id = context.call_id.as_ref().to_owned();
            let arguments = trace::sorted(&trace::value_of(&context.arguments));
            let execution = json!({ "id": id, "name": given.name, "arguments": arguments, "t": world.now() });
            world.log.borrow_mut().executions.push(execution);
            world.fire(&Trigger::Tool { id: id.clone(), when: When::Start });
            let behavior = given.by_call.get(&id).unwrap_or(&given.behavior);
            let result = behave(&world, behavior, &context, &arguments).await;
            world.fire(&Trigger::Tool { id, when: When::End });
            ToolOutcome::Completed(result)
        })
    }
}

async fn behave(
    world: &World,
    behavior: &Behavior,
    context: &ToolContext,
    arguments: &Value,
) -> AgentToolResult {
    for (at, update) in behavior.updates.iter().enumerate() {
        if at > 0 && behavior.update_gap_ms > 0 {
            world.clock.pause(behavior.update_gap_ms).await;
        }
        context.updates.text(update);
    }
    if behavior.delay_ms > 0 {
        world.clock.pause(behavior.delay_ms).await;
    }
    for (key, value) in &behavior.set_state {
        context.state.set(key, raw(value).to_value());
    }
    if let Some(message) = &behavior.ask {
        let answer = context.ask(Ask { message: message.clone(), schema: None, id: None }).await;
        return AgentToolResult::text(answer.to_json());
    }
    if behavior.forever {
        std::future::pending::<()>().await;
    }
    if behavior.until_cancelled {
        context.cancel.cancelled().await;
        return AgentToolResult::error("cancelled");
    }
    if let Some(text) = &behavior.panic {
        crash(text);
    }
    if let Some(to) = &behavior.transfer_to {
        let transfer = Some(Transfer { to: to.clone(), reason: None });
        return AgentToolResult { transfer, ..AgentToolResult::default() };
    }
    if let Some(text) = &behavior.error {
        return AgentToolResult::error(text.as_str());
    }
    if behavior.echo {
        return AgentToolResult::text(arguments.to_string());
    }
    AgentToolResult::text(behavior.result.as_deref().unwrap_or("ok"))
}

pub struct ScriptedApprover {
    pub world: Rc<World>,
    pub given: scenario::Approval,
}

impl Approver for ScriptedApprover {
    fn decide(
        &self,
        request: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        self.world.log.borrow_mut().approvals.push(json!({
            "id": request.call_id,
            "name": request.tool_name,
            "arguments": trace::value_of(&request.arguments),
            "requires_approval": request.requires_approval,
        }));
        self.world.fire(&Trigger::Approval(request.call_id.clone()));
        let mut decision = self.given.by_call.get(&request.call_id).unwrap_or(&self.given.default).clone();
        if let Decision::PanicSync(text) = &decision {
            crash(text);
        }
        let clock = self.world.clock.clone();
        Box::pin(async move {
            while let Decision::After { ms, then } = decision {
                clock.pause(ms).await;
                decision = *then;
            }
            match decision {
                Decision::Approve | Decision::After { .. } => Ok(ToolDecision::Accept),
                Decision::Reject => Ok(ToolDecision::Reject { reason: None }),
                Decision::ApproveWith(arguments) => Ok(ToolDecision::AcceptWith(raw(&arguments))),
                Decision::Panic(text) | Decision::PanicSync(text) => crash(&text),
                Decision::Forever => std::future::pending().await,
            }
        })
    }
}

pub struct ScriptedPolicy {
    world: Rc<World>,
    given: scenario::Policy,
    evaluations: Cell<u64>,
}

impl ScriptedPolicy {
    pub fn new(world: &Rc<World>, given: &scenario::Policy) -> Rc<Self> {
        Rc::new(ScriptedPolicy { world: world.clone(), given: given.clone(), evaluations: Cell::new(0) })
    }

    fn log(&self, mut seen: Value, slot: &str) {
        seen["policy"] = self.given.name.clone().into();
        seen["slot"] = slot.into();
        self.world.log.borrow_mut().policy_log.push(seen);
    }

    /// Returns the verdict if one is due at this evaluation; otherwise the policy continues.
    fn due(&self) -> Option<&scenario::Verdict> {
        let n = self.evaluations.get() + 1;
        self.evaluations.set(n);
        let due = self.given.on_calls.is_empty() || self.given.on_calls.contains(&n);
        due.then_some(&self.given.verdict)
    }

    fn between_turns(&self) -> Verdict {
        match self.due() {
            Some(scenario::Verdict::Stop(reason)) => Verdict::Stop(reason.clone()),
            Some(scenario::Verdict::Inject(texts)) => {
                Verdict::Inject(texts.iter().map(|text| AgentMessage::user(text.as_str())).collect())
            }
            Some(scenario::Verdict::Panic(text)) => crash(text),
            _ => Verdict::Continue,
        }
    }
}

fn seen(context: &PolicyContext<'_>) -> Value {
    json!({
        "turn_index": context.turn_index,
        "message_count": context.message_count,
        "usage_total": context.usage.total,
        "new_messages": trace::messages(context.new_messages),
    })
}

impl PreTurnPolicy for ScriptedPolicy {
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String> {
        self.log(seen(context), "pre_turn");
        Ok(self.between_turns())
    }
}

impl PostLoopPolicy for ScriptedPolicy {
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String> {
        self.log(seen(context), "post_loop");
        Ok(self.between_turns())
    }
}

impl PostTurnPolicy for ScriptedPolicy {
    fn evaluate(&self, turn: &PostTurn<'_>) -> Result<Verdict, String> {
        let mut entry = seen(&turn.context);
        entry["text"] = turn.message.text().into();
        entry["stop_reason"] = turn.message.stop_reason.as_str().into();
        entry["tool_result_count"] = turn.tool_results.len().into();
        entry["context_count"] = turn.messages.len().into();
        self.log(entry, "post_turn");
        let replaced = |text: &str, keep_calls: bool| {
            let calls = turn.message.tool_calls().filter(|_| keep_calls).cloned();
            let text = std::iter::once(ContentBlock::text(text));
            let content = text.chain(calls.map(ContentBlock::ToolCall)).collect();
            Verdict::Inject(vec![AssistantMessage { content, ..(**turn.message).clone() }.into()])
        };
        Ok(match &self.given.verdict {
            scenario::Verdict::ReplaceText(text) => match self.due() {
                Some(_) => replaced(text, true),
                None => Verdict::Continue,
            },
            scenario::Verdict::ReplaceDroppingCalls(text) => match self.due() {
                Some(_) => replaced(text, false),
                None => Verdict::Continue,
            },
            _ => self.between_turns(),
        })
    }
}

impl PreDispatchPolicy for ScriptedPolicy {
    fn evaluate(&self, call: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String> {
        if !self.given.tools.is_empty() && !self.given.tools.iter().any(|tool| tool == call.tool_name) {
            return Ok(DispatchVerdict::Continue);
        }
        let arguments = trace::value_of(&call.arguments);
        self.log(
            json!({ "tool": call.tool_name, "id": call.call_id, "arguments": arguments }),
            "pre_dispatch",
        );
        let mut set = |more: &Value| {
            let mut arguments = arguments.clone();
            if let (Some(arguments), Some(more)) = (arguments.as_object_mut(), more.as_object()) {
                arguments.extend(more.clone());
            }
            call.arguments = raw(&arguments);
        };
        Ok(match self.due() {
            Some(scenario::Verdict::Stop(reason)) => DispatchVerdict::Stop(reason.clone()),
            Some(scenario::Verdict::Skip(text)) => DispatchVerdict::Skip(text.clone()),
            Some(scenario::Verdict::Inject(texts)) => {
                let messages = texts.iter().map(|text| AgentMessage::user(text.as_str()));
                DispatchVerdict::Inject(messages.collect())
            }
            Some(scenario::Verdict::SetArguments(more)) => {
                set(more);
                DispatchVerdict::Continue
            }
            Some(scenario::Verdict::SetArgumentsThenPanic(more)) => {
                set(more);
                crash("half-way")
            }
            Some(scenario::Verdict::Panic(text)) => crash(text),
            _ => DispatchVerdict::Continue,
        })
    }
}

/// The transformer of a scenario, synchronous or not.
pub struct ScriptedTransform {
    world: Rc<World>,
    given: scenario::Transform,
    reducers: Option<Reducers>,
}

impl ScriptedTransform {
    pub fn new(world: &Rc<World>, given: &scenario::Transform) -> Self {
        let reducers = match given {
            scenario::Transform::Reduce(list) => Some(Reducers::new(list.iter().map(reducer).collect())),
            _ => None,
        };
        ScriptedTransform { world: world.clone(), given: given.clone(), reducers }
    }

    fn apply(&self, messages: &[AgentMessage], overflow: bool, kind: &str) -> Transform {
        let transform = self.transformed(messages, overflow);
        let after = match &transform {
            Transform::Unchanged => messages.len(),
            Transform::View(view) => view.len(),
            Transform::Reduced { view, .. } => view.len(),
            Transform::Replace { messages, .. } => messages.len(),
        };
        let entry = json!({ "kind": kind, "overflow": overflow, "before": messages.len(), "after": after });
        self.world.log.borrow_mut().transforms.push(entry);
        transform
    }

    fn transformed(&self, messages: &[AgentMessage], overflow: bool) -> Transform {
        match &self.given {
            scenario::Transform::Noop => Transform::Unchanged,
            scenario::Transform::KeepLast { n, only_on_overflow, form } => {
                if (*form == Form::Report && messages.len() <= *n) || (*only_on_overflow && !overflow) {
                    return Transform::Unchanged;
                }
                let dropped = messages.len().saturating_sub(*n);
                let left = messages[dropped..].to_vec();
                match form {
                    Form::View => return Transform::View(left),
                    Form::Messages => return Transform::Replace { messages: left, report: None },
                    Form::Report => {}
                }
                let report = CompactionReport {
                    text: format!("{dropped} messages dropped"),
                    dropped_count: u64::try_from(dropped).unwrap_or_default(),
                    ..CompactionReport::default()
                };
                Transform::Replace { messages: messages[dropped..].to_vec(), report: Some(report) }
            }
            scenario::Transform::Prepend(text) => {
                let there = messages.first().is_some_and(
                    |first| matches!(first, AgentMessage::User(user) if user.content == [ContentBlock::text(text.as_str())]),
                );
                if there {
                    return Transform::Unchanged;
                }
                let first = std::iter::once(AgentMessage::user(text.as_str()));
                Transform::Replace { messages: first.chain(messages.iter().cloned()).collect(), report: None }
            }
            scenario::Transform::Reduce(_) => {
                self.reducers.as_ref().map_or(Transform::Unchanged, |reducers| {
                    reducers.transform(messages, overflow).expect("reducers do not fail")
                })
            }
            scenario::Transform::SlidingWindow { normal_budget, overflow_budget, anchor } => {
                let window = SlidingWindow {
                    normal_budget: *normal_budget,
                    overflow_budget: *overflow_budget,
                    anchor: *anchor,
                };
                let Some(windowed) = window.apply(messages, overflow, self.world.cached.get()) else {
                    return Transform::Unchanged;
                };
                let report = CompactionReport {
                    text: format!("{} messages dropped", windowed.dropped_count),
                    dropped_count: u64::try_from(windowed.dropped_count).unwrap_or_default(),
                    tokens_before: windowed.tokens_before,
                    tokens_after: windowed.tokens_after,
                    overflow,
                };
                Transform::Replace { messages: windowed.messages, report: Some(report) }
            }
        }
    }
}

fn reducer(given: &scenario::Reducer) -> Rc<dyn ContextTransformer> {
    match given {
        scenario::Reducer::PruneToolResults(keep_last) => Rc::new(PruneToolResults { keep_last: *keep_last }),
        scenario::Reducer::KeepLast(messages) => Rc::new(KeepLast { messages: *messages }),
        scenario::Reducer::SlidingWindow { tokens, overflow_tokens, anchor } => Rc::new(SlidingWindow {
            normal_budget: *tokens,
            overflow_budget: *overflow_tokens,
            anchor: *anchor,
        }),
    }
}

impl ContextTransformer for ScriptedTransform {
    fn transform(&self, messages: &[AgentMessage], overflow: bool) -> Result<Transform, String> {
        let n = self.world.transforms.get() + 1;
        self.world.transforms.set(n);
        self.world.fire(&Trigger::Transform(n));
        Ok(self.apply(messages, overflow, "sync"))
    }
}

impl AsyncContextTransformer for ScriptedTransform {
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow: bool,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        let transform = self.apply(&messages, overflow, "async");
        Box::pin(async { Ok(transform) })
    }
}

impl KeySource for World {
    fn key(&self, _: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        let keys = &self.scenario.options.api_keys;
        let key = keys.get(self.keys.get()).or(keys.last()).map(|key| Rc::from(key.as_str()));
        self.keys.set(self.keys.get() + 1);
        Box::pin(async { Ok(key) })
    }
}

impl MessageProvider for World {
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        let messages = self.queues[0].borrow_mut().drain(..).collect();
        Box::pin(async { messages })
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        let messages = self.queues[1].borrow_mut().drain(..).collect();
        Box::pin(async { messages })
    }
}
