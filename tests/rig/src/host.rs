//! Ports made of closures, and a stage on which a run is watched step by step.

use std::cell::RefCell;
use std::future::{Future, pending, ready};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, Stream, StreamExt};
use turnwheel::agent::Agent;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::driver::{AgentLoopResult, AgentStream};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, AssistantMessage, MessageStopReason};
use turnwheel::policy::Transform;
use turnwheel::ports::{
    AgentHook, AgentRunContext, ApprovalRequest, Approver, AsyncContextTransformer, Compaction,
    CompactionCall, CompactionEngine, HookCall, HookStages, KeySource, MessageProvider, StreamFn,
};
use turnwheel::stream::{AssistantMessageEvent, ModelRequest, NativeOutput};
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome, ToolSpec};

use crate::clock::Clock;
use crate::grammar::Grammar;

pub use turnwheel::scripted::{ScriptedAnswer, text};

type Asked = dyn Fn(ModelRequest, CancelToken) -> LocalBoxStream<'static, AssistantMessageEvent>;

/// A model that answers with a closure.
pub struct FnModel {
    ask: Box<Asked>,
    native_output: Option<NativeOutput>,
}

impl StreamFn for FnModel {
    fn stream(
        &self,
        request: ModelRequest,
        _: &AgentRunContext,
        cancel: CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        (self.ask)(request, cancel)
    }

    fn native_output(&self, _: &str) -> Option<NativeOutput> {
        self.native_output
    }
}

/// Makes a model that answers with a closure.
pub fn model(
    id: &str,
    ask: impl Fn(ModelRequest, CancelToken) -> LocalBoxStream<'static, AssistantMessageEvent> + 'static,
) -> Model {
    Model {
        provider: format!("provider-of-{id}").into(),
        id: id.into(),
        supports_tools: true,
        context_window: None,
        number: 0,
        stream_fn: Rc::new(FnModel { ask: Box::new(ask), native_output: None }),
    }
}

/// Makes a model that answers with a closure, and supports structured output in this way.
pub fn asking_model(
    id: &str,
    native_output: Option<NativeOutput>,
    ask: impl Fn(ModelRequest, CancelToken) -> LocalBoxStream<'static, AssistantMessageEvent> + 'static,
) -> Model {
    Model::new("asking", id, Rc::new(FnModel { ask: Box::new(ask), native_output }))
}

/// Makes a model that supports structured output itself.
pub fn native_model(id: &str, answers: Vec<ScriptedAnswer>) -> Model {
    let answers = RefCell::new(std::collections::VecDeque::from(answers));
    let ask = move |_: ModelRequest, _: CancelToken| {
        stream::iter(answers.borrow_mut().pop_front().unwrap_or_else(|| text("done"))).boxed_local()
    };
    let native_output = Some(NativeOutput { with_tools: true, any_root: true });
    Model::new("native", id, Rc::new(FnModel { ask: Box::new(ask), native_output }))
}

/// Makes a model that gives these answers in order, and then "done" for ever.
pub fn answers(answers: Vec<ScriptedAnswer>) -> Model {
    let answers = RefCell::new(std::collections::VecDeque::from(answers));
    model("m", move |_, _| {
        let answer = answers.borrow_mut().pop_front().unwrap_or_else(|| text("done"));
        stream::iter(answer).boxed_local()
    })
}

/// Makes an answer with these calls: id, tool, arguments.
pub fn calls(calls: &[(&str, &str, &str)]) -> ScriptedAnswer {
    use AssistantMessageEvent as E;
    let mut answer = vec![E::Start];
    for (index, (call_id, tool_name, arguments)) in (0..).zip(calls) {
        answer.push(E::ToolCallStart {
            index,
            call_id: (*call_id).to_owned(),
            tool_name: (*tool_name).to_owned(),
        });
        answer.push(E::ToolCallDelta { index, delta: (*arguments).to_owned() });
        answer.push(E::ToolCallEnd { index, metadata: None });
    }
    answer.push(E::Done { stop_reason: MessageStopReason::ToolUse, usage: None });
    answer
}

type Run = dyn Fn(ToolContext) -> LocalBoxFuture<'static, ToolOutcome>;

/// A tool that runs a closure.
pub struct FnTool {
    spec: ToolSpec,
    run: Box<Run>,
}

impl AgentTool for FnTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        (self.run)(context)
    }
}

/// Returns a tool's specification, with any object as its arguments.
pub fn spec(name: &str) -> ToolSpec {
    ToolSpec::new(name, "", RawJson::parse("{\"type\":\"object\"}").expect("JSON"))
}

/// Makes a tool that runs a closure.
pub fn tool<F: Future<Output = ToolOutcome> + 'static>(
    spec: ToolSpec,
    run: impl Fn(ToolContext) -> F + 'static,
) -> Rc<dyn AgentTool> {
    Rc::new(FnTool { spec, run: Box::new(move |context| Box::pin(run(context))) })
}

/// Makes a tool that answers at once.
pub fn quick(name: &str) -> Rc<dyn AgentTool> {
    let answer = format!("{name} is done");
    tool(spec(name), move |_| ready(ToolOutcome::Completed(AgentToolResult::text(answer.as_str()))))
}

/// Makes a tool that answers after `ms`.
pub fn slow(name: &str, clock: &Clock, ms: u64) -> Rc<dyn AgentTool> {
    let (answer, clock) = (format!("{name} is done"), clock.clone());
    tool(spec(name), move |_| {
        let (pause, answer) = (clock.pause(ms), answer.clone());
        async move {
            pause.await;
            ToolOutcome::Completed(AgentToolResult::text(answer))
        }
    })
}

/// Makes a tool that a person is asked about, and that then answers at once.
pub fn asking(name: &str) -> Rc<dyn AgentTool> {
    let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec(name) };
    tool(spec, |context: ToolContext| {
        let text = format!("ran with {}", context.arguments.as_str());
        ready(ToolOutcome::Completed(AgentToolResult::text(text)))
    })
}

/// Makes a tool that never answers.
pub fn deaf(name: &str) -> Rc<dyn AgentTool> {
    tool(spec(name), |_| pending())
}

/// All other kinds of ports, each made of one closure.
pub struct Port<F>(pub F);

impl<F, T> Approver for Port<F>
where
    F: Fn(ApprovalRequest) -> T,
    T: Future<Output = Result<ToolDecision, String>> + 'static,
{
    fn decide(
        &self,
        request: ApprovalRequest,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        Box::pin((self.0)(request))
    }
}

impl<F, T> AgentHook for Port<F>
where
    F: Fn(HookCall) -> T,
    T: Future<Output = Result<(), String>> + 'static,
{
    fn call(&self, _: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin((self.0)(call))
    }
}

/// A hook for certain stages only.
pub struct StagedHook<F>(pub HookStages, pub F);

impl<F, T> AgentHook for StagedHook<F>
where
    F: Fn(HookCall) -> T,
    T: Future<Output = Result<(), String>> + 'static,
{
    fn stages(&self) -> HookStages {
        self.0
    }

    fn call(&self, _: &AgentRunContext, call: HookCall) -> LocalBoxFuture<'static, Result<(), String>> {
        Box::pin((self.1)(call))
    }
}

impl<F, T> KeySource for Port<F>
where
    F: Fn(&str) -> T,
    T: Future<Output = Result<Option<Rc<str>>, String>> + 'static,
{
    fn key(&self, provider: &str) -> LocalBoxFuture<'static, Result<Option<Rc<str>>, String>> {
        Box::pin((self.0)(provider))
    }
}

impl<F, T> AsyncContextTransformer for Port<F>
where
    F: Fn(Rc<[AgentMessage]>, bool) -> T,
    T: Future<Output = Result<Transform, String>> + 'static,
{
    fn transform(
        &self,
        messages: Rc<[AgentMessage]>,
        overflow_signal: bool,
        _: CancelToken,
    ) -> LocalBoxFuture<'static, Result<Transform, String>> {
        Box::pin((self.0)(messages, overflow_signal))
    }
}

impl<F, T> CompactionEngine for Port<F>
where
    F: Fn(Rc<[AgentMessage]>) -> T,
    T: Future<Output = Result<Compaction, String>> + 'static,
{
    fn compact(
        &self,
        _: &AgentRunContext,
        call: CompactionCall,
    ) -> LocalBoxFuture<'static, Result<Compaction, String>> {
        Box::pin((self.0)(call.messages))
    }
}

/// A provider whose two queues are a closure; the flag is set when follow-ups are requested.
impl<F, T> MessageProvider for Port<F>
where
    F: Fn(bool) -> T,
    T: Future<Output = Vec<AgentMessage>> + 'static,
{
    fn poll_steering(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        Box::pin((self.0)(false))
    }

    fn poll_follow_up(&self) -> LocalBoxFuture<'static, Vec<AgentMessage>> {
        Box::pin((self.0)(true))
    }
}

/// Makes a configuration with tools.
pub fn config(clock: &Clock, model: Model, tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(model, Rc::new(clock.clone()));
    config.set_tools(tools).expect("the tools have names of their own");
    config
}

/// Returns the ids of a run.
pub fn context() -> AgentRunContext {
    AgentRunContext::new("run", "session")
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Watches a run, which only continues when it is told to.
pub struct Stage {
    pub clock: Clock,
    pub agent: Agent,
    pub stream: Option<AgentStream>,
    pub cancel: CancelToken,
    /// The events so far.
    pub events: Vec<AgentEvent>,
    grammar: Grammar,
    flag: Arc<Flag>,
}

impl Stage {
    /// Creates an agent with a clock, and no run.
    pub fn new(clock: Clock, config: AgentLoopConfig) -> Self {
        Stage::over(clock, config, Vec::new())
    }

    /// The same, with a history.
    pub fn over(clock: Clock, config: AgentLoopConfig, history: Vec<AgentMessage>) -> Self {
        Stage {
            clock,
            agent: Agent::new(config, history),
            stream: None,
            cancel: CancelToken::new(),
            events: Vec::new(),
            grammar: Grammar::default(),
            flag: Arc::new(Flag(AtomicBool::new(true))),
        }
    }

    /// Starts a run.
    pub fn prompt(&mut self, text: &str) -> &mut Self {
        self.cancel = CancelToken::new();
        let stream = self.agent.prompt(vec![AgentMessage::user(text)], context(), self.cancel.clone());
        self.stream = Some(stream.expect("nothing runs"));
        self.flag.0.store(true, Ordering::Relaxed);
        self
    }

    /// Continues from the history.
    pub fn resume(&mut self) -> &mut Self {
        self.cancel = CancelToken::new();
        self.stream = Some(self.agent.continue_run(context(), self.cancel.clone()).expect("it can go on"));
        self.flag.0.store(true, Ordering::Relaxed);
        self
    }

    /// Lets everything happen that can happen without time passing.
    pub fn settle(&mut self) -> &mut Self {
        while self.poll_once().is_some() {}
        self
    }

    /// Takes the next event, if there is one without time passing.
    pub fn poll_once(&mut self) -> Option<AgentEvent> {
        let stream = self.stream.as_mut()?;
        let waker = Waker::from(self.flag.clone());
        let mut cx = Context::from_waker(&waker);
        loop {
            self.flag.0.store(false, Ordering::Relaxed);
            match pin!(&mut *stream).poll_next(&mut cx) {
                Poll::Ready(Some(event)) => {
                    self.grammar.take(&event);
                    self.events.push(event.clone());
                    return Some(event);
                }
                Poll::Ready(None) => return None,
                Poll::Pending if self.flag.0.load(Ordering::Relaxed) => {}
                Poll::Pending => return None,
            }
        }
    }

    /// Continues until an event of this kind has come.
    pub fn until(&mut self, name: &str) -> &mut Self {
        loop {
            match self.poll_once() {
                Some(event) if event.name() == name => return self,
                Some(_) => {}
                None => assert!(self.clock.advance(), "no {name} in {:?}", self.names()),
            }
        }
    }

    /// Takes the run to its end; time passes where it must.
    pub fn finish(&mut self) -> &mut Self {
        loop {
            self.settle();
            if self.is_over() {
                return self;
            }
            assert!(self.clock.advance(), "it hangs after {:?}", self.names());
        }
    }

    /// Returns whether the end was reported.
    pub fn is_over(&self) -> bool {
        self.stream.as_ref().is_none_or(|stream| stream.result().is_some())
    }

    /// Returns the names of all events.
    pub fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(AgentEvent::name).collect()
    }

    /// Returns a short line for each event.
    pub fn lines(&self) -> Vec<String> {
        self.events.iter().filter_map(line).collect()
    }

    /// Returns how many events of this kind there were.
    pub fn count(&self, name: &str) -> usize {
        self.events.iter().filter(|event| event.name() == name).count()
    }

    /// Returns the history, one text per message.
    pub fn history(&self) -> Vec<String> {
        self.agent.messages().iter().map(brief).collect()
    }

    /// Returns the answer at a position of the history.
    pub fn answer(&self, place: usize) -> Rc<AssistantMessage> {
        match self.agent.messages().get(place) {
            Some(AgentMessage::Assistant(answer)) => answer.clone(),
            other => panic!("no answer but {other:?}"),
        }
    }

    /// Returns what the end of the run reported: all new messages, and how many turns called the model.
    pub fn end(&self) -> (Vec<String>, u32) {
        match self.events.last() {
            Some(AgentEvent::AgentEnd { messages, turns, .. }) => {
                (messages.iter().map(brief).collect(), *turns)
            }
            other => panic!("no end but {other:?}"),
        }
    }

    /// Returns the result of the run.
    pub fn result(&self) -> AgentLoopResult {
        let result = self.stream.as_ref().and_then(AgentStream::result);
        result.cloned().unwrap_or_else(|| panic!("no result after {:?}", self.names()))
    }

    /// Checks the grammar of all events, and the history.
    pub fn check(&mut self) {
        let faults = std::mem::take(&mut self.grammar).finish(&self.agent.messages());
        assert!(faults.is_empty(), "{faults:?}\n{:?}", self.names());
    }
}

/// Describes a message briefly.
pub fn brief(message: &AgentMessage) -> String {
    match message {
        AgentMessage::User(user) => format!("user: {}", turnwheel::message::text_of(&user.content)),
        AgentMessage::Assistant(message) => {
            let calls: Vec<&str> = message.tool_calls().map(|call| call.call_id.as_str()).collect();
            let mut line = format!("assistant: {}", message.text());
            if !calls.is_empty() {
                line += &format!("[{}]", calls.join(" "));
            }
            if message.is_cut() {
                line += &format!(" ({})", message.stop_reason.as_str());
            }
            line
        }
        AgentMessage::ToolResult(result) => {
            let mark = if result.is_error { "!" } else { "" };
            format!("{}{mark}: {}", result.call_id, result.text())
        }
        AgentMessage::Custom(custom) => format!("custom: {}", custom.data.as_str()),
    }
}

/// Describes an event briefly; returns nothing for events that most tests do not care about.
pub fn line(event: &AgentEvent) -> Option<String> {
    use AgentEvent as A;
    Some(match event {
        A::AgentStart { .. } => "run".to_owned(),
        A::RunResumed { turn_index, .. } => format!("run goes on in turn {turn_index}"),
        A::AgentEnd { stop_reason, error, .. } => {
            let error = error.as_ref().map(|error| format!(": {}", error.message));
            format!("run ends {}{}", stop_reason.as_str(), error.unwrap_or_default())
        }
        A::TurnStart { turn_index, .. } => format!("turn {turn_index}"),
        A::TurnEnd { reason, .. } => format!("turn ends {}", reason.as_str()),
        A::MessageStart { .. } | A::ToolCallsProposed { .. } => return None,
        A::MessageUpdate(delta) => format!("+{}", delta.text),
        A::MessageReset { reason } => format!("reset: {reason}"),
        A::MessageEnd { message, .. } => brief(&AgentMessage::Assistant(message.clone())),
        A::ToolApprovalRequested { call_id, .. } => format!("{call_id} asked about"),
        A::ToolApprovalResolved { call_id, approved, by, .. } => {
            format!("{call_id} {} by {}", if *approved { "approved" } else { "refused" }, by.as_str())
        }
        A::QuestionAsked { question } => format!("asks about a {}", question.kind.as_str()),
        A::QuestionResolved { kind, accepted, by, .. } => {
            format!("{} {} by {}", kind.as_str(), if *accepted { "answered" } else { "refused" }, by.as_str())
        }
        A::ToolExecutionStart { call_id, arguments, .. } => {
            format!("{call_id} starts with {}", arguments.as_str())
        }
        A::ToolExecutionUpdate { call_id, update, .. } => format!("{call_id} says {}", update.as_str()),
        A::ToolExecutionEnd { result, .. } => brief(&AgentMessage::ToolResult(result.clone())),
        A::ContextCompacted { report } => {
            format!("compacted{}", if report.overflow { " (overflow)" } else { "" })
        }
        A::BeforeLlmCall { messages, .. } => format!("asks with {} messages", messages.len()),
        A::RetryAttempt { attempt, delay_ms, .. } => format!("attempt {attempt} failed, wait {delay_ms}"),
        A::ModelFallback { from, to } => format!("{to} for {from}"),
        A::ModelSwitched { from, to } => format!("switched from {from} to {to}"),
        A::CommandRefused { reason, .. } => format!("refused: {reason}"),
        A::StateChanged { changes } => format!("state {}", changes.as_str()),
        A::CacheAction { write, prefix_tokens } => {
            format!("cache {} {prefix_tokens}", if *write { "write" } else { "read" })
        }
        A::HistoryRewound { length, .. } => format!("back to {length} messages"),
        A::TransferInitiated { to, .. } => format!("transfer to {to}"),
        A::SubagentEvent { .. } | A::Budget { .. } | A::Custom { .. } => return None,
    })
}

/// Makes an answer that fails.
pub fn failure(kind: ErrorKind) -> ScriptedAnswer {
    vec![AssistantMessageEvent::Error(ErrorInfo::new(kind, "it failed"))]
}

/// Makes a stage whose model gives these answers.
pub fn stage(
    given: Vec<ScriptedAnswer>,
    tools: Vec<Rc<dyn AgentTool>>,
    change: impl FnOnce(&mut AgentLoopConfig),
) -> Stage {
    let clock = Clock::default();
    let mut config = config(&clock, answers(given), tools);
    change(&mut config);
    Stage::new(clock, config)
}
