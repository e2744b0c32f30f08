//! The machine alone, in a random world: random rules, random answers in any order, random mail, an abort
//! at any step. Checks what must hold whatever happens.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use turnwheel::answer::Answer;
use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolApprovalPolicy, ToolDecision};
use turnwheel::budget::{Amounts, Budget, OnExceed};
use turnwheel::checkpoint::convert::{from_stakai, to_stakai};
use turnwheel::config::{
    AgentLoopConfig, CacheHints, InFlight, Model, QueueMode, Rules, SteeringRules, SteeringTime, Timeouts,
    ToolExecutionPolicy,
};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::{AgentEvent, BudgetKind, BudgetState, CompactionReport};
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::machine::{
    AgentCommand, Effect, EffectId, Input, Letter, LoopState, OUTPUT_TOOL, Output, Queue, Receipt, Reply,
    tell_first, unsaid,
};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, MessageStopReason, ToolCallBlock, Usage,
};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::ports::{AgentRunContext, Compaction, HookStages, StreamFn, TurnChoice};
use turnwheel::question::{Question, QuestionKind};
use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
use turnwheel::state::SessionState;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{
    AgentToolResult, ApprovalNeed, Ask, Asking, ChildEvent, Progress, ToolOutcome, ToolSpec, Transfer,
};

use crate::clock::{BEGINNING, Clock};
use crate::dice::Dice;
use crate::grammar::Grammar;

/// Longer runs are stopped.
const LONGEST: usize = 400;

/// What a model calls; some of these tools do not exist.
const TOOLS: [&str; 14] = [
    "t0",
    "t0",
    "t0",
    "t0",
    "t0",
    "t0",
    "asks",
    "asks",
    "fatal",
    "slow",
    "slow",
    "denied",
    "ghost",
    OUTPUT_TOOL,
];

/// How a run is disturbed, besides at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// Aborts before this step.
    pub abort_at: Option<usize>,
    /// Steers before this step.
    pub steer_at: Option<usize>,
    /// No random mail and no random abort.
    pub quiet: bool,
    /// The chance in percent, at each moment, that the process ends and another
    /// continues from a checkpoint.
    pub sleeps: u64,
}

/// The outcome of a run.
pub struct Played {
    /// The faults found.
    pub faults: Vec<String>,
    /// How many inputs the machine took.
    pub steps: usize,
    /// The names of all events.
    pub trace: Vec<&'static str>,
}

/// Plays one run, which the seed determines.
pub fn play(seed: u64, disturbance: Disturbance) -> Played {
    let dice = Dice::new(seed);
    let rules = rules(&dice);
    let history = history(&dice);
    let begin = match history.last() {
        None => Input::Begin(vec![AgentMessage::user("go")]),
        Some(_) if dice.chance(30) => Input::Continue,
        Some(_) => Input::Begin(vec![AgentMessage::user("go"), AgentMessage::user("on")]),
    };
    let context = AgentRunContext::new("run", "session");
    let state = LoopState::new(context, history, SessionState::new(rules.session_state.clone()));
    let mut sim = Sim {
        dice,
        rules,
        state,
        disturbance,
        now: BEGINNING,
        outputs: VecDeque::new(),
        running: BTreeMap::new(),
        cancelled: Vec::new(),
        grammar: Grammar::default(),
        faults: Vec::new(),
        steps: 0,
        trace: Vec::new(),
        receipts: BTreeMap::new(),
        asked: BTreeMap::new(),
        allowed: BTreeMap::new(),
        changed: BTreeSet::new(),
        delivered: Vec::new(),
        begun: BTreeSet::new(),
        orphans: Vec::new(),
        raised: Amounts::default(),
        cleared: false,
    };
    sim.run(begin);
    sim.finish()
}

struct Sim {
    dice: Dice,
    rules: Rules,
    state: LoopState,
    disturbance: Disturbance,
    now: u64,
    outputs: VecDeque<Output>,
    running: BTreeMap<EffectId, Running>,
    /// Effects that were cancelled.
    cancelled: Vec<EffectId>,
    grammar: Grammar,
    faults: Vec<String>,
    steps: usize,
    trace: Vec<&'static str>,
    /// Receipts: open ones, and those that are settled.
    receipts: BTreeMap<u64, Option<Receipt>>,
    /// What each open or decided question of this life of the run showed, by its id: the call, tool and arguments.
    asked: BTreeMap<String, (String, String, RawJson)>,
    /// Calls that were approved in this life of the run, with the question that was answered.
    allowed: BTreeMap<String, String>,
    /// Calls that were given other arguments than the model's.
    changed: BTreeSet<String>,
    /// What the run appended.
    delivered: Vec<AgentMessage>,
    /// Calls whose tool has started.
    begun: BTreeSet<String>,
    /// Letters whose senders ended with their process.
    orphans: Vec<u64>,
    /// What was allowed beyond the budget.
    raised: Amounts,
    /// Whether the queues were ever cleared.
    cleared: bool,
}

enum Running {
    Choose,
    Prepare {
        overflow: bool,
    },
    Infer(Script),
    Hook,
    /// The call that it is asked about.
    Approve(String),
    Execute(Working),
    Poll(Queue),
    Compact,
    Sleep(u64),
}

/// A running tool.
#[derive(Default)]
struct Working {
    call_id: String,
    /// How many questions it has asked.
    asked: u64,
    /// The numbers of those that have no answer.
    open: BTreeSet<u64>,
    /// The open questions of the agent inside it, if one runs there.
    child: Vec<String>,
    /// How many questions that agent has asked.
    child_asked: u64,
}

/// A model that improvises.
#[derive(Default)]
struct Script {
    /// The kind of each block, and whether it is open.
    blocks: Vec<(Kind, bool)>,
    /// The last call that has arguments.
    argued: Option<usize>,
    emitted: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Call,
}

impl Working {
    fn waits(&self) -> bool {
        !self.open.is_empty() || !self.child.is_empty()
    }

    fn progress(&mut self, dice: &Dice) -> Progress {
        let aside = dice.aside();
        match aside.below(6) {
            0 | 1 => {
                self.asked += 1;
                self.open.insert(self.asked);
                let id = aside.chance(30).then(|| format!("q-{}", aside.below(1_000_000_000)));
                let ask = Ask { message: "which one?".to_owned(), schema: None, id };
                Progress::Ask(Asking { number: self.asked, ask })
            }
            2 => child_event(
                r#"{"type":"message_end","message":{"role":"assistant","content":[],"usage":{"input":2,"output":1,"total":3}}}"#,
                &aside,
            ),
            3 => {
                self.child_asked += 1;
                let id = format!("{}-{}-{}", self.call_id, self.child_asked, aside.below(1_000_000_000));
                let kind = if aside.chance(50) { "budget" } else { "elicitation" };
                let event = format!(
                    r#"{{"type":"question_asked","id":"{id}","kind":"{kind}","path":[],"message":"more?","askedAt":1}}"#
                );
                self.child.push(id);
                child_event(&event, &aside)
            }
            _ => Progress::Update(RawJson::string("working")),
        }
    }

    /// The agent inside has its answer.
    fn close_question(&mut self) -> Option<Progress> {
        let id = self.child.pop()?;
        let event = format!(
            r#"{{"type":"question_resolved","id":"{id}","kind":"budget","accepted":true,"by":"command","path":[]}}"#
        );
        Some(Progress::Event(ChildEvent {
            path: Vec::new(),
            event: raw(&event),
            keeps_questions: false,
            shares_budget: false,
        }))
    }
}

/// An event of an agent inside a call.
fn child_event(event: &str, dice: &Dice) -> Progress {
    let shares_budget = dice.chance(50);
    Progress::Event(ChildEvent { path: Vec::new(), event: raw(event), keeps_questions: false, shares_budget })
}

impl Sim {
    fn run(&mut self, begin: Input) {
        self.step(begin);
        while !self.state.is_ended() {
            if self.steps >= LONGEST || self.disturbance.abort_at.is_some_and(|at| self.steps >= at) {
                self.abort();
                break;
            }
            if self.dice_says_sleep() {
                self.sleep();
            } else if self.disturbance.steer_at == Some(self.steps) {
                self.steer(true);
            } else if !self.disturbance.quiet && self.dice.chance(8) {
                self.post_command();
            } else if !self.disturbance.quiet && self.dice.chance(1) {
                self.abort();
            } else if self.dice.chance(5) && !self.cancelled.is_empty() {
                self.late_reply();
            } else if !self.reply() {
                self.decide_or_stick();
            }
        }
    }

    /// Aborts the run, which must end it at once whatever it was doing.
    fn abort(&mut self) {
        self.step(Input::Abort("stop".into()));
        if !self.state.is_ended() {
            self.faults.push("an abort did not end the run".to_owned());
        }
        for _ in 0..3 {
            self.step(Input::Abort("stop".into()));
        }
    }

    fn step(&mut self, input: Input) {
        self.steps += 1;
        let mut out = Vec::new();
        let ended = self.state.is_ended();
        self.state.step(&self.rules, self.now, input, &mut out);
        if ended && out.iter().any(|output| !matches!(output, Output::Receipt(..))) {
            self.faults.push(format!("something came after the end: {out:?}"));
        }
        let nested = !self.outputs.is_empty();
        self.outputs.extend(out);
        if !nested {
            self.drain();
        }
    }

    /// Walks the list as the driver does: mail may come before every effect.
    fn drain(&mut self) {
        while let Some(output) = self.outputs.pop_front() {
            match output {
                Output::Event(event) => {
                    self.record(&event);
                    if self.dice_says_sleep() {
                        self.sleep();
                    }
                }
                Output::Receipt(id, receipt) => self.settle(id, receipt),
                Output::Answer { id, number, answer } => self.take_answer(id, number, &answer),
                Output::Cancel(id) => self.cancel(id),
                Output::Start { id, effect, announce } => {
                    // The list must not be empty while mail is taken, or the step would walk it itself.
                    self.outputs.push_front(Output::Cancel(0));
                    if !self.disturbance.quiet && self.dice.chance(3) && !self.state.is_ended() {
                        self.post_command();
                    }
                    self.outputs.pop_front();
                    let is_cancelled = self
                        .outputs
                        .iter()
                        .any(|output| matches!(output, Output::Cancel(cancelled) if *cancelled == id));
                    if is_cancelled {
                        continue;
                    }
                    if let Some(event) = announce {
                        self.record(&event);
                        if self.dice_says_sleep() {
                            self.sleep();
                            continue;
                        }
                    }
                    self.start(id, effect);
                }
            }
        }
    }

    fn dice_says_sleep(&self) -> bool {
        self.disturbance.sleeps > 0 && self.dice.chance(self.disturbance.sleeps)
    }

    /// Ends the process and continues from a checkpoint, read from its text.
    fn sleep(&mut self) {
        if self.trace.last() == Some(&"agent_end") {
            return;
        }
        let (unannounced, unemitted) = unsaid(&self.outputs);
        let mut run = String::new();
        self.state.write_checkpoint(self.now, &unannounced, &mut run);
        let envelope = to_stakai(self.state.messages()).to_json();
        let unemitted: Vec<AgentEvent> = unemitted.into_iter().cloned().collect();
        let unemitted = unemitted.to_json();
        let value = |text: &str| Value::parse(text).unwrap_or_default();
        let session = SessionState::new(self.state.session().snapshot());
        let read = from_stakai(value(&envelope).as_array().unwrap_or_default())
            .and_then(|history| LoopState::read_checkpoint(history, session, &value(&run)));
        let read = read.and_then(|state| Ok((state, Vec::<AgentEvent>::from_json(&value(&unemitted))?)));
        let (state, unemitted) = match read {
            Ok(read) => read,
            Err(text) => return self.faults.push(format!("a checkpoint cannot be read: {text}\n{run}")),
        };
        let mut again = String::new();
        state.write_checkpoint(self.now + 5, &[], &mut again);
        if unemitted.is_empty() && value(&again) != value(&run) && !run.contains("ended") {
            self.faults.push(format!("written again it differs\n{run}\n{again}"));
        }
        self.state = state;
        // Only what is still open keeps its question; nothing that was approved counts any more.
        self.allowed.clear();
        let open = self.state.questions();
        self.asked.retain(|id, (call_id, _, shown)| {
            let is_open = |q: &Question| q.id == *id && q.call_id() == Some(call_id.as_str());
            let same = |q: &Question| q.call.as_ref().is_some_and(|call| call.arguments == *shown);
            open.iter().any(|question| is_open(question) && same(question))
        });
        self.running.clear();
        self.cancelled.clear();
        for output in std::mem::take(&mut self.outputs) {
            if let Output::Receipt(id, receipt) = output {
                self.settle(id, receipt);
            }
        }
        let open: Vec<u64> = self.receipts.iter().filter(|(_, r)| r.is_none()).map(|(id, _)| *id).collect();
        self.receipts.retain(|_, receipt| receipt.is_some());
        self.orphans.extend(open);
        self.now += 1_000;
        let mut out = Vec::new();
        self.state.step(&self.rules, self.now, Input::Resume, &mut out);
        self.outputs.extend(out);
        tell_first(unemitted, &mut self.outputs);
        self.drain();
    }

    fn record(&mut self, event: &AgentEvent) {
        self.trace.push(event.name());
        self.grammar.take(event);
        match event {
            AgentEvent::ToolApprovalRequested { id, call_id, tool_name, arguments, .. } => {
                self.allowed.remove(call_id);
                self.asked.insert(id.clone(), (call_id.clone(), tool_name.clone(), arguments.clone()));
            }
            AgentEvent::ToolApprovalResolved { id, call_id, approved: true, .. } => {
                self.allowed.insert(call_id.clone(), id.clone());
            }
            AgentEvent::Budget { state: BudgetState::Raised, kind, limit, .. } => {
                let budget = self.rules.budget.unwrap_or_default();
                match kind {
                    BudgetKind::Tokens => self.raised.tokens = limit - budget.tokens.unwrap_or(0),
                    BudgetKind::Turns => self.raised.turns = limit - budget.turns.unwrap_or(0),
                    BudgetKind::ToolCalls => self.raised.tool_calls = limit - budget.tool_calls.unwrap_or(0),
                    _ => {}
                }
            }
            AgentEvent::AgentEnd { messages, .. } => self.delivered.clone_from(messages),
            _ => {}
        }
    }

    fn settle(&mut self, id: u64, receipt: Receipt) {
        if id == u64::MAX {
            return;
        }
        match self.receipts.get_mut(&id) {
            Some(open @ None) => *open = Some(receipt),
            other => self.faults.push(format!("receipt {id} settled twice: {other:?}, {receipt:?}")),
        }
    }

    fn cancel(&mut self, id: EffectId) {
        self.running.remove(&id);
        if id > 0 {
            self.cancelled.push(id);
        }
    }

    fn start(&mut self, id: EffectId, effect: Effect) {
        let running = match effect {
            Effect::Choose => Running::Choose,
            Effect::Prepare { overflow } => Running::Prepare { overflow },
            Effect::Infer { request, .. } => {
                self.faults.extend(faults_of_request(&request));
                self.check_budget();
                Running::Infer(Script::default())
            }
            Effect::Hook(_) => Running::Hook,
            Effect::Approve(request) => Running::Approve(request.call_id),
            Effect::Execute { tool, call_id, arguments } => {
                self.check_execution(tool, &call_id, &arguments);
                Running::Execute(Working { call_id: call_id.as_ref().to_owned(), ..Working::default() })
            }
            Effect::Poll(queue) => Running::Poll(queue),
            Effect::Compact { .. } => Running::Compact,
            Effect::Sleep { ms } => Running::Sleep(self.now + ms),
        };
        if self.running.insert(id, running).is_some() {
            self.faults.push(format!("effect {id} started twice"));
        }
    }

    /// A call of a model starts only if there is room, and never by more than what was allowed.
    fn check_budget(&mut self) {
        let Some(budget) = self.rules.budget else { return };
        let limit =
            |limit: Option<u64>, raised: u64| limit.map_or(u64::MAX, |limit| limit.saturating_add(raised));
        let (tokens, turns) =
            (limit(budget.tokens, self.raised.tokens), limit(budget.turns, self.raised.turns));
        let wraps_up = budget.on_exceed == OnExceed::WrapUp;
        let used = self.state.usage().total;
        if used >= tokens && !wraps_up {
            self.faults.push(format!("the model is called with {used} of {tokens} tokens used"));
        }
        let turn = u64::from(self.state.turn_index()) + 1;
        if turn > turns.saturating_add(u64::from(wraps_up)) {
            self.faults.push(format!("turn {turn} of {turns}"));
        }
    }

    fn check_execution(&mut self, tool: usize, call_id: &str, arguments: &RawJson) {
        let running =
            self.running.values().filter(|running| matches!(running, Running::Execute(_))).count() + 1;
        if self.rules.max_concurrent_tools.is_some_and(|limit| running > limit.max(1)) {
            self.faults.push(format!("{running} tools at once"));
        }
        if matches!(self.rules.tool_execution, ToolExecutionPolicy::Sequential) && running > 1 {
            self.faults.push("sequential tools overlap".to_owned());
        }
        let Some(spec) = self.rules.tools.get(tool) else {
            return self.faults.push(format!("there is no tool {tool}"));
        };
        let is_new = self.begun.insert(call_id.to_owned());
        if !is_new && !spec.idempotent {
            self.faults.push(format!("call {call_id} runs twice"));
        }
        let calls = self.rules.budget.and_then(|budget| budget.tool_calls).unwrap_or(u64::MAX);
        let calls = calls.saturating_add(self.raised.tool_calls);
        if u64::try_from(self.begun.len()).unwrap_or(u64::MAX) > calls {
            self.faults.push(format!("{} calls of {calls} run", self.begun.len()));
        }
        let by_rule =
            self.rules.approval.policy.is_some() || self.rules.approval.mode == ApprovalMode::Bypassed;
        let asks = matches!(spec.requires_approval, ApprovalNeed::Always)
            || self.rules.approval.mode == ApprovalMode::Enabled;
        let shown = self.allowed.get(call_id).and_then(|id| self.asked.get(id));
        if asks && !by_rule && shown.is_none() {
            self.faults.push(format!("call {call_id} runs unasked"));
        }
        if let Some((asked, name, shown)) = shown
            && (asked != call_id
                || **name != *spec.schema.name
                || (shown != arguments && !self.changed.contains(call_id)))
        {
            self.faults.push(format!("call {call_id} runs {arguments:?}, approved was {name} {shown:?}"));
        }
        if &*spec.schema.name == "denied" {
            self.faults.push("a denied tool runs".to_owned());
        }
    }

    /// Lets one of the running effects reply. Returns whether there was one.
    fn reply(&mut self) -> bool {
        if self.running.is_empty() {
            return false;
        }
        let mut at = self.dice.below(self.running.len());
        if matches!(self.running.values().nth(at), Some(Running::Sleep(_))) && self.dice.chance(85) {
            // Timers are slow: other effects usually reply first.
            let busy = self.running.values().position(|running| !matches!(running, Running::Sleep(_)));
            at = busy.unwrap_or(at);
        }
        let Some((id, mut running)) =
            self.running.keys().nth(at).copied().and_then(|id| self.running.remove_entry(&id))
        else {
            return false;
        };
        let dice = self.dice.clone();
        let (reply, more) = match &mut running {
            Running::Choose => {
                let dice = dice.aside();
                let messages = dice.chance(20).then(|| self.state.messages().to_vec());
                let choice = TurnChoice { messages, ..TurnChoice::default() };
                (
                    Reply::Chosen(if dice.chance(3) { Err("no".to_owned()) } else { Ok(Box::new(choice)) }),
                    false,
                )
            }
            Running::Prepare { overflow } => {
                (Reply::Prepared(transform(&dice, self.state.messages(), *overflow)), false)
            }
            Running::Infer(script) => script.next(&dice),
            Running::Hook => {
                let failed = dice.chance(3);
                let error = ErrorInfo::new(ErrorKind::Hook, "the hook failed");
                (Reply::Hook(if failed { Err(error) } else { Ok(()) }), false)
            }
            Running::Approve(call_id) => {
                let decided = if dice.chance(8) { Err("no".to_owned()) } else { Ok(decision(&dice)) };
                if let Ok(ToolDecision::AcceptWith(_)) = decided {
                    self.changed.insert(call_id.clone());
                }
                (Reply::Approved(decided), false)
            }
            Running::Execute(working) if dice.chance(20) => (Reply::Progress(working.progress(&dice)), true),
            // It waits for a person, or the agent inside it does.
            Running::Execute(working) if working.waits() && dice.aside().chance(95) => {
                let child = working.close_question();
                self.running.insert(id, running);
                match child {
                    Some(event) => self.step(Input::Reply(id, Reply::Progress(event))),
                    None => self.answer_a_tool(),
                }
                return true;
            }
            Running::Execute(_) => (Reply::Executed(outcome(&dice)), false),
            Running::Poll(queue) => (Reply::Polled(self.polled(*queue)), false),
            Running::Compact => (Reply::Compacted(compaction(&dice, self.state.messages())), false),
            Running::Sleep(until) => {
                self.now = self.now.max(*until);
                (Reply::Slept, false)
            }
        };
        if more {
            self.running.insert(id, running);
        }
        self.now += u64::try_from(dice.below(3)).unwrap_or(0) * 10;
        self.step(Input::Reply(id, reply));
        true
    }

    fn polled(&self, queue: Queue) -> Vec<AgentMessage> {
        let likely = match queue {
            Queue::Steering => 12,
            Queue::Posted => 0,
            Queue::FollowUp => 25,
        };
        if self.dice.chance(likely) { vec![AgentMessage::user("polled")] } else { Vec::new() }
    }

    /// A late reply to a cancelled effect must change nothing.
    fn late_reply(&mut self) {
        let id = *self.dice.pick(&self.cancelled);
        let reply = match self.dice.below(6) {
            0 => Reply::Executed(outcome(&self.dice)),
            1 => Reply::Stream(E::TextDelta { index: 0, delta: "late".to_owned() }),
            2 => Reply::Approved(Ok(ToolDecision::Accept)),
            3 => Reply::Slept,
            4 => Reply::StreamEnded,
            _ => Reply::Polled(vec![AgentMessage::user("late")]),
        };
        let mut out = Vec::new();
        self.state.step(&self.rules, self.now, Input::Reply(id, reply), &mut out);
        if !out.is_empty() {
            self.faults.push(format!("a late reply to effect {id} changed something: {out:?}"));
        }
    }

    fn post_command(&mut self) {
        match self.dice.below(12) {
            0..=4 => self.steer(true),
            5 | 6 => self.steer(false),
            7 => {
                self.cleared = true;
                self.step(Input::Command(AgentCommand::ClearQueues));
            }
            8 => self.step(Input::Command(AgentCommand::SwitchModel)),
            9 => {
                let call_id = (*self.dice.pick(&["a", "b", "a#2", "call_1"])).to_owned();
                let decision = self.decision(&call_id);
                self.step(Input::Command(AgentCommand::ResolveTool { call_id, decision }));
            }
            10 if self.dice.chance(60) => self.answer_some(),
            10 => {
                let ids = ["a", "b", "c"].map(str::to_owned);
                let mut decisions = Vec::new();
                for id in ids {
                    let decision = self.decision(&id);
                    decisions.push((id, decision));
                }
                self.step(Input::Command(AgentCommand::ResolveTools(decisions)));
            }
            _ => {
                let empty = Letter::new(AgentMessage::user(" "), self.receipt());
                self.step(Input::Command(AgentCommand::Steer(empty)));
            }
        }
    }

    /// Answers questions by their ids: open ones, closed ones, and some that never were.
    fn answer_some(&mut self) {
        let mut ids: Vec<String> = self.state.questions().into_iter().map(|question| question.id).collect();
        if self.dice.chance(50) {
            ids.extend(self.asked.keys().next().cloned());
        }
        if self.dice.chance(10) {
            ids.push("never".to_owned());
        }
        let mut answers = Vec::new();
        for id in ids {
            let answer = self.answer_to(&id);
            answers.push((id, answer));
        }
        self.step(Input::Command(AgentCommand::Resolve(answers)));
    }

    /// An answer to a question; usually one that it may have.
    fn answer_to(&mut self, id: &str) -> Answer {
        let kind =
            self.state.questions().iter().find(|question| question.id == id).map(|question| question.kind);
        let aside = self.dice.aside();
        let kinds = [QuestionKind::Tool, QuestionKind::Budget, QuestionKind::Elicitation];
        let kind = kind.filter(|_| aside.chance(95)).unwrap_or_else(|| *aside.pick(&kinds));
        let more = |most| u64::try_from(aside.below(most)).unwrap_or(0);
        match kind {
            QuestionKind::Budget if aside.chance(60) => Answer::Raise(Amounts {
                tokens: more(60),
                tool_calls: more(3),
                turns: more(3),
                ms: more(2_000),
                ..Amounts::default()
            }),
            QuestionKind::Elicitation if aside.chance(70) => Answer::Accept(raw("{\"n\":1}")),
            QuestionKind::Budget | QuestionKind::Elicitation => {
                [Answer::Decline, Answer::Cancel, Answer::Decision(ToolDecision::Reject { reason: None })]
                    .get(aside.below(3))
                    .cloned()
                    .unwrap_or(Answer::Cancel)
            }
            _ => {
                let call_id = self.asked.get(id).map(|asked| asked.0.clone()).unwrap_or_default();
                self.decision(&call_id).into()
            }
        }
    }

    /// Answers one of the questions that tools have asked.
    fn answer_a_tool(&mut self) {
        let questions = self.state.questions();
        let asked = questions.iter().find(|question| question.kind == QuestionKind::Elicitation);
        let Some(question) = asked else {
            return self.faults.push("a tool waits, and nothing is asked".to_owned());
        };
        let answer = self.answer_to(&question.id);
        self.step(Input::Command(AgentCommand::Resolve(vec![(question.id.clone(), answer)])));
    }

    /// A tool gets an answer to a question that it has asked.
    fn take_answer(&mut self, id: EffectId, number: u64, answer: &Answer) {
        let Some(Running::Execute(working)) = self.running.get_mut(&id) else {
            return self.faults.push(format!("an answer to a tool that does not run: {answer:?}"));
        };
        if !working.open.remove(&number) {
            self.faults.push(format!("an answer to question {number}, which is not open: {answer:?}"));
        }
        if matches!(answer, Answer::Decision(_) | Answer::Raise(_)) {
            self.faults.push(format!("no answer for a tool: {answer:?}"));
        }
    }

    fn decision(&mut self, call_id: &str) -> ToolDecision {
        let decision = decision(&self.dice);
        if let ToolDecision::AcceptWith(_) = decision {
            self.changed.insert(call_id.to_owned());
        }
        decision
    }

    fn receipt(&mut self) -> u64 {
        let receipt = u64::try_from(self.receipts.len() + self.orphans.len()).unwrap_or(0) + 1;
        self.receipts.insert(receipt, None);
        receipt
    }

    fn steer(&mut self, now: bool) {
        let receipt = self.receipt();
        let message = AgentMessage::user(format!("letter {receipt}"));
        let when = self.dice.chance(50).then(|| {
            *self.dice.pick(&[SteeringTime::AfterBatch, SteeringTime::AfterTool, SteeringTime::Immediate])
        });
        let letter = Letter { message, receipt, when };
        let command = if now { AgentCommand::Steer(letter) } else { AgentCommand::FollowUp(letter) };
        self.step(Input::Command(command));
    }

    /// Nothing is running, so a decision must be pending; makes one.
    fn decide_or_stick(&mut self) {
        let questions = self.state.questions();
        if let Some(question) = questions.iter().find(|question| question.kind == QuestionKind::Budget) {
            let answer = self.answer_to(&question.id);
            return self.step(Input::Command(AgentCommand::Resolve(vec![(question.id.clone(), answer)])));
        }
        let pending = self.state.pending_approvals();
        match pending.get(self.dice.below(pending.len())) {
            Some(call) => {
                let call_id = call.call_id.clone();
                let decision = self.decision(&call_id);
                if self.dice.chance(50) {
                    let questions = self.state.questions();
                    let question = questions.iter().find(|question| question.call_id() == Some(&call_id));
                    let id = question.map_or_else(String::new, |question| question.id.clone());
                    return self.step(Input::Command(AgentCommand::Resolve(vec![(id, decision.into())])));
                }
                self.step(Input::Command(AgentCommand::ResolveTool { call_id, decision }));
            }
            None => {
                self.faults.push("nothing runs, nobody is waited for, and it is not the end".to_owned());
                self.abort();
            }
        }
    }

    fn finish(mut self) -> Played {
        let left: Vec<_> = self.running.keys().collect();
        if !left.is_empty() {
            self.faults.push(format!("effects still run after the end: {left:?}"));
        }
        self.check_receipts();
        let history = self.state.messages().to_vec();
        self.faults.append(&mut self.grammar.finish(&history));
        Played { faults: self.faults, steps: self.steps, trace: self.trace }
    }

    /// Checks that every letter was delivered once, or cleared, or is still in its queue.
    fn check_receipts(&mut self) {
        let (steering, follow_up) = self.state.take_queues();
        let waiting: Vec<u64> = steering.iter().chain(&follow_up).map(|letter| letter.receipt).collect();
        for id in &self.orphans {
            let text = format!("letter {id}");
            let stands = self.delivered.iter().filter(|m| is_text(m, &text)).count();
            let waits =
                steering.iter().chain(&follow_up).filter(|letter| is_text(&letter.message, &text)).count();
            if stands + waits > 1 || (stands + waits == 0 && !self.cleared) {
                self.faults.push(format!("orphaned letter {id} stands {stands} times, waits {waits} times"));
            }
        }
        for (id, receipt) in &self.receipts {
            let text = format!("letter {id}");
            let stands = self.delivered.iter().filter(|m| is_text(m, &text)).count();
            let waits = waiting.iter().filter(|waiting| *waiting == id).count();
            let fits = match receipt {
                Some(Receipt::Delivered { .. }) => (stands, waits) == (1, 0),
                Some(Receipt::Cleared) => (stands, waits) == (0, 0),
                None => (stands, waits) == (0, 1),
            };
            if !fits {
                self.faults
                    .push(format!("letter {id}: {receipt:?}, stands {stands} times, waits {waits} times"));
            }
        }
    }
}

fn is_text(message: &AgentMessage, text: &str) -> bool {
    matches!(message, AgentMessage::User(user) if turnwheel::message::text_of(&user.content) == text)
}

/// Lists the faults of a request: those of a history, and failed or empty messages.
fn faults_of_request(request: &ModelRequest) -> Vec<String> {
    let messages: Vec<AgentMessage> = request.messages.iter().cloned().map(AgentMessage::from).collect();
    let mut faults = crate::grammar::faults_of_history(&messages);
    for message in request.messages.iter() {
        if let LlmMessage::Assistant(message) = message
            && (message.stop_reason == MessageStopReason::Error || message.content.is_empty())
        {
            faults.push("a failed or empty message is asked with".to_owned());
        }
    }
    if request.model.is_empty() {
        faults.push("no model is asked".to_owned());
    }
    faults
}

impl Script {
    /// Returns the next thing to say, and whether more may follow.
    fn next(&mut self, dice: &Dice) -> (Reply, bool) {
        self.emitted += 1;
        let event = self.event(dice);
        let more = !matches!(event, Some(E::Done { .. } | E::Error(_)) | None);
        (event.map_or(Reply::StreamEnded, Reply::Stream), more)
    }

    fn event(&mut self, dice: &Dice) -> Option<E> {
        if self.emitted == 1 && dice.chance(80) {
            return Some(E::Start);
        }
        if self.blocks.is_empty() && dice.chance(90) {
            return Some(self.open(dice));
        }
        match dice.below(100) {
            0..20 if self.blocks.len() < 4 => Some(self.open(dice)),
            20..50 if !self.blocks.is_empty() => Some(self.delta(dice)),
            50..55 if !self.blocks.is_empty() => Some(self.close(dice)),
            55..57 => Some(E::Ping),
            57 => Some(E::Usage(Usage { input: 2, output: 1, ..Usage::default() })),
            58 => None,
            59..62 => Some(E::Error(error(dice))),
            // Something that no provider should send.
            62 if dice.chance(50) => Some(E::TextDelta { index: 9, delta: "lost".to_owned() }),
            _ => Some(self.done(dice)),
        }
    }

    fn open(&mut self, dice: &Dice) -> E {
        let index = u32::try_from(self.blocks.len()).unwrap_or(0);
        let kind = *dice.pick(&[Kind::Text, Kind::Thinking, Kind::Call, Kind::Call, Kind::Call]);
        self.blocks.push((kind, true));
        match kind {
            Kind::Text => E::TextStart { index },
            Kind::Thinking => E::ThinkingStart { index },
            Kind::Call => E::ToolCallStart {
                index,
                call_id: (*dice.pick(&["a", "b", "c", "", "a#2", "call_1"])).to_owned(),
                tool_name: (*dice.pick(&TOOLS)).to_owned(),
            },
        }
    }

    fn delta(&mut self, dice: &Dice) -> E {
        // Usually the last one.
        let at = if dice.chance(90) { self.blocks.len() - 1 } else { dice.below(self.blocks.len()) };
        let index = u32::try_from(at).unwrap_or(0);
        if (!self.blocks[at].1 || self.argued == Some(at)) && dice.chance(95) {
            return E::Ping;
        }
        match self.blocks[at].0 {
            Kind::Text => E::TextDelta { index, delta: (*dice.pick(&["word ", "", "1"])).to_owned() },
            Kind::Thinking => E::ThinkingDelta { index, delta: "hm ".to_owned() },
            Kind::Call => {
                self.argued = Some(at);
                let pieces = ["{\"n\":1}", "{}", "{\"n\":2}", "{}", "{\"n\":", "[1]", "oops", " ", "null"];
                let piece = dice.pick(&pieces);
                E::ToolCallDelta { index, delta: (*piece).to_owned() }
            }
        }
    }

    fn close(&mut self, dice: &Dice) -> E {
        let at = dice.below(self.blocks.len());
        let index = u32::try_from(at).unwrap_or(0);
        let Some(block) = self.blocks.get_mut(at) else { return E::Ping };
        block.1 = false;
        match block.0 {
            Kind::Text => E::TextEnd { index, signature: None },
            Kind::Thinking => E::ThinkingEnd { index, signature: None, redacted: false },
            Kind::Call => E::ToolCallEnd { index, metadata: None },
        }
    }

    /// Most models close what they open.
    fn done(&mut self, dice: &Dice) -> E {
        let open = self.blocks.iter().position(|(_, open)| *open);
        if let Some(at) = open.filter(|_| dice.chance(97)) {
            let index = u32::try_from(at).unwrap_or(0);
            let kind = self.blocks[at].0;
            self.blocks[at].1 = false;
            return match kind {
                Kind::Text => E::TextEnd { index, signature: None },
                Kind::Thinking => E::ThinkingEnd { index, signature: None, redacted: false },
                Kind::Call => E::ToolCallEnd { index, metadata: None },
            };
        }
        use MessageStopReason as S;
        let rare = [S::Pause, S::Refusal, S::ContentFilter, S::Error, S::Aborted];
        let common = [S::Stop, S::ToolUse, S::ToolUse, S::Length];
        let reasons = if dice.chance(8) { &rare[..] } else { &common[..] };
        let usage = dice.chance(50).then(|| Usage { input: 5, output: 3, total: 8, ..Usage::default() });
        E::Done { stop_reason: *dice.pick(reasons), usage }
    }
}

fn error(dice: &Dice) -> ErrorInfo {
    use ErrorKind as K;
    let kinds = [
        K::Throttled,
        K::Network,
        K::Server,
        K::Auth,
        K::ContextOverflow,
        K::ContextOverflow,
        K::Unknown,
        K::Aborted,
    ];
    let text = dice.pick(&["it failed", "429", "context_length_exceeded"]);
    let mut error = ErrorInfo::new(*dice.pick(&kinds), *text);
    if dice.chance(20) {
        error.retry_after_ms = Some(*dice.pick(&[0, 50, 1_000_000]));
    }
    error
}

fn decision(dice: &Dice) -> ToolDecision {
    match dice.below(8) {
        0 => ToolDecision::Reject { reason: None },
        1 => ToolDecision::Reject { reason: Some("no".to_owned()) },
        2 => ToolDecision::AcceptWith(raw("{\"n\":2}")),
        3 => ToolDecision::AcceptWith(raw("[]")),
        4 => ToolDecision::Result {
            content: vec![ContentBlock::text("mine")],
            details: None,
            is_error: dice.chance(50),
        },
        _ => ToolDecision::Accept,
    }
}

fn outcome(dice: &Dice) -> ToolOutcome {
    match dice.below(20) {
        0 => ToolOutcome::Failed("broke".to_owned()),
        1 => ToolOutcome::Invalid("not so".to_owned()),
        2 => ToolOutcome::Cancelled,
        3 => {
            let transfer = Some(Transfer { to: (*dice.pick(&["other", "me"])).to_owned(), reason: None });
            ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() })
        }
        4 => ToolOutcome::Completed(AgentToolResult::error("no luck")),
        5 => ToolOutcome::Completed(AgentToolResult::default()),
        _ => ToolOutcome::Completed(AgentToolResult::text("a long enough result")),
    }
}

/// Transforms only as a sound host would: a complete history stays complete.
fn transform(dice: &Dice, messages: &[AgentMessage], overflow: bool) -> Result<Transform, String> {
    if !dice.chance(if overflow { 70 } else { 25 }) {
        return Ok(Transform::Unchanged);
    }
    let users: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| matches!(message, AgentMessage::User(_)))
        .map(|(at, _)| at)
        .collect();
    let from = if users.is_empty() { 0 } else { *dice.pick(&users) };
    let kept = messages.get(from..).unwrap_or_default().to_vec();
    let report = CompactionReport { text: "shorter".to_owned(), ..CompactionReport::default() };
    Ok(match dice.below(10) {
        0 => return Err("the transformer failed".to_owned()),
        1..=3 => Transform::View(kept),
        4 => Transform::Replace { messages: kept, report: None },
        5 => {
            let summary = std::iter::once(AgentMessage::user("summary"));
            Transform::Replace { messages: summary.chain(kept).collect(), report: Some(report) }
        }
        _ => Transform::Replace { messages: kept, report: Some(report) },
    })
}

fn compaction(dice: &Dice, messages: &[AgentMessage]) -> Option<Result<Compaction, String>> {
    match dice.below(4) {
        0 => None,
        1 => Some(Err("no summary".to_owned())),
        _ => {
            let kept = messages.iter().rposition(|message| matches!(message, AgentMessage::User(_)));
            let messages = messages.get(kept.unwrap_or(0)..).unwrap_or_default().to_vec();
            Some(Ok(Compaction {
                messages,
                report: dice.chance(50).then(CompactionReport::default),
                ..Compaction::default()
            }))
        }
    }
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).expect("JSON")
}

/// Returns a complete history, or an empty one.
fn history(dice: &Dice) -> Vec<AgentMessage> {
    if dice.chance(60) {
        return Vec::new();
    }
    let call = ToolCallBlock {
        call_id: "a".to_owned(),
        tool_name: "t0".to_owned(),
        arguments: RawJson::empty_object(),
        metadata: None,
    };
    let asked = AssistantMessage {
        content: vec![ContentBlock::text("let me see"), ContentBlock::ToolCall(call)],
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: MessageStopReason::ToolUse,
        error: None,
        timestamp: 1,
        foreign: None,
    };
    let result = turnwheel::message::ToolResultMessage {
        call_id: "a".to_owned(),
        tool_name: "t0".to_owned(),
        content: vec![ContentBlock::text("seen")],
        details: None,
        is_error: false,
        cause: None,
        timestamp: 1,
        foreign: None,
    };
    vec![AgentMessage::user("before"), asked.into(), result.into()]
}

struct NoModel;

impl StreamFn for NoModel {
    fn stream(
        &self,
        _: ModelRequest,
        _: &AgentRunContext,
        _: turnwheel::cancel::CancelToken,
    ) -> futures::stream::LocalBoxStream<'static, E> {
        Box::pin(futures::stream::empty())
    }
}

struct Impatient(Dice);

impl RetryStrategy for Impatient {
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        if self.0.chance(10) {
            return RetryVerdict::StopNaming(90_000);
        }
        RetryConfig::default().delay(error, attempt, random)
    }
}

fn rules(dice: &Dice) -> Rules {
    let aside = dice.aside();
    let window = aside.chance(25).then(|| u64::try_from(aside.below(60)).unwrap_or(0));
    let model = |id: &str, supports_tools| Model {
        provider: "p".into(),
        id: id.into(),
        supports_tools,
        context_window: window,
        number: 0,
        stream_fn: Rc::new(NoModel),
    };
    let mut config = AgentLoopConfig::new(model("m", true), Rc::new(Clock::default()));
    let spare = (0..dice.below(3)).map(|n| model(&format!("spare-{n}"), dice.chance(80)));
    config.set_models(std::iter::once(model("m", dice.chance(95))).chain(spare).collect());
    let mut rules = config.rules;
    rules.prepares_turns = aside.chance(20);
    let tools = ["t0", "asks", "fatal", "slow", "denied"].map(|name| {
        let mut spec = ToolSpec::new(name, "", raw("{\"type\":\"object\"}"));
        spec.fatal = name == "fatal";
        spec.idempotent = name == "slow";
        spec.priority = i32::try_from(dice.below(3)).unwrap_or(0);
        spec.timeout_ms = (name == "slow").then_some(50);
        spec.max_result_bytes = dice.chance(20).then_some(3);
        if name == "asks" {
            spec.requires_approval = ApprovalNeed::Always;
        }
        if name == "slow" && dice.chance(50) {
            spec.requires_approval = ApprovalNeed::Depends(Rc::new(|_, _| Err("undecided".to_owned())));
        }
        spec
    });
    rules.schemas = tools.iter().map(|spec| spec.schema.clone()).collect();
    rules.tools = tools.into();
    rules.max_turns = Some(u32::try_from(1 + dice.below(6)).unwrap_or(1));
    rules.retry = Rc::new(Impatient(dice.clone()));
    rules.approval.mode = *dice.pick(&[ApprovalMode::Smart, ApprovalMode::Enabled, ApprovalMode::Bypassed]);
    use turnwheel::approval::ToolApprovalAction as A;
    let denied = BTreeMap::from([
        ("denied".to_owned(), A::Deny),
        ("t0".to_owned(), *dice.pick(&[A::Approve, A::Ask])),
    ]);
    rules.approval.policy = Some(ToolApprovalPolicy::Custom {
        rules: denied.into_iter().collect(),
        default: *dice.pick(&[A::Approve, A::Ask, A::Deny]),
    });
    if dice.chance(50) {
        // Without rules nothing is denied by name.
        rules.approval.policy = None;
        rules.tools = rules.tools.iter().filter(|spec| &*spec.schema.name != "denied").cloned().collect();
        rules.schemas = rules.tools.iter().map(|spec| spec.schema.clone()).collect();
    }
    rules.has_approver = dice.chance(60);
    rules.gate = *dice.pick(&[ApprovalGate::Batch, ApprovalGate::Prefix]);
    rules.tool_execution = execution(dice);
    rules.max_concurrent_tools = dice.chance(30).then(|| 1 + dice.below(2));
    rules.steering = SteeringRules {
        when: *dice.pick(&[SteeringTime::AfterBatch, SteeringTime::AfterTool, SteeringTime::Immediate]),
        in_flight: *dice.pick(&[InFlight::Cancel, InFlight::Finish]),
        delivery: *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]),
        before_first_call: dice.chance(20),
    };
    rules.follow_up = *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]);
    let some = |ms: u64| dice.chance(15).then_some(ms);
    rules.timeouts =
        Timeouts { first_chunk: some(100), chunk: some(50), tool: some(60), total: some(2_000), model: None };
    rules.max_recoveries_per_turn = u32::try_from(dice.below(3)).unwrap_or(0);
    rules.include_requests = dice.chance(20);
    rules.output = dice.chance(15).then(|| {
        let schemas = ["object", "number"].map(|kind| raw(&format!("{{\"type\":\"{kind}\"}}")));
        dice.pick(&schemas).clone()
    });
    rules.output_retries = 1;
    rules.cache = dice.chance(20).then(|| CacheHints::new(500, 3, 2));
    rules.agent_name = "me".into();
    if dice.chance(30) {
        rules.hooks = HookStages {
            before_inference: dice.chance(50),
            after_inference: dice.chance(50),
            before_tool_execution: dice.chance(50),
            after_tool_execution: dice.chance(50),
            on_error: dice.chance(50),
        };
    }
    rules.budget = budget(&aside);
    add_functions(dice, &mut rules);
    rules
}

fn budget(dice: &Dice) -> Option<Budget> {
    if !dice.chance(40) {
        return None;
    }
    let some = |most| dice.chance(40).then(|| u64::try_from(dice.below(most)).unwrap_or(0));
    let on_exceed = *dice.pick(&[OnExceed::Stop, OnExceed::WrapUp, OnExceed::Ask]);
    Some(Budget {
        tokens: some(120),
        tool_calls: some(5),
        turns: some(5),
        ms: some(3_000),
        on_exceed,
        ..Budget::default()
    })
}

fn execution(dice: &Dice) -> ToolExecutionPolicy {
    let dice = dice.clone();
    match dice.below(4) {
        0 => ToolExecutionPolicy::Concurrent,
        1 => ToolExecutionPolicy::Sequential,
        2 => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Custom(Rc::new(move |calls, _| match dice.below(5) {
            0 => Err("no idea".to_owned()),
            1 => Ok(vec![vec![0], vec![0]]),
            2 => Ok(vec![(0..calls.len()).rev().collect()]),
            _ => Ok((0..calls.len()).map(|at| vec![at]).collect()),
        })),
    }
}

fn add_functions(dice: &Dice, rules: &mut Rules) {
    if dice.chance(30) {
        let dice = dice.clone();
        rules.validator =
            Some(Rc::new(
                move |_, _, _| if dice.chance(15) { Err("does not fit".to_owned()) } else { Ok(()) },
            ));
    }
    if dice.chance(20) {
        let dice = dice.clone();
        rules.dynamic_system_prompt = Some(Rc::new(move |_| match dice.below(12) {
            0 => Err("no prompt".to_owned()),
            1 => Ok(String::new()),
            _ => Ok("now".to_owned()),
        }));
    }
    if dice.chance(20) {
        let (dice, seen) = (dice.clone(), RefCell::new(BTreeSet::new()));
        rules.convert_to_llm = Some(Rc::new(move |message, _| {
            if dice.chance(1) {
                return Err("cannot convert".to_owned());
            }
            let _ = seen.borrow_mut().insert(0);
            Ok(message.as_llm())
        }));
    }
    if dice.chance(20) {
        let dice = dice.clone();
        let transformer =
            move |messages: &[AgentMessage], overflow: bool| transform(&dice, messages, overflow);
        rules.transformers.push(Rc::new(transformer));
    }
    if dice.chance(20) {
        let text = |_: turnwheel::message::ToolResultCause,
                    _: &ToolCallBlock,
                    _: &str,
                    _: &turnwheel::policy::RunInfo<'_>| Some("mine".to_owned());
        rules.result_texts = Some(Rc::new(text));
    }
    if dice.chance(40) {
        add_policies(dice, rules);
    }
}

fn add_policies(dice: &Dice, rules: &mut Rules) {
    let between = |dice: &Dice| {
        let dice = dice.clone();
        move |_: &PolicyContext<'_>| verdict(&dice)
    };
    rules.pre_turn.push(Rc::new(between(dice)));
    rules.post_loop.push(Rc::new(between(dice)));
    let judge = dice.clone();
    rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
        if judge.chance(10) {
            let mut other = (**turn.message).clone();
            if judge.chance(50) {
                other.content.retain(|block| matches!(block, ContentBlock::ToolCall(_)));
            } else {
                other.content.clear();
            }
            return Ok(Verdict::Inject(vec![other.into()]));
        }
        verdict(&judge)
    }));
    let judge = dice.clone();
    rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
        Ok(match judge.below(25) {
            0 => DispatchVerdict::Stop("enough".to_owned()),
            1 => DispatchVerdict::Skip("not this one".to_owned()),
            2 => DispatchVerdict::Inject(vec![AgentMessage::user("by the way")]),
            3 => {
                call.arguments = raw("{\"n\":3}");
                DispatchVerdict::Continue
            }
            4 => return Err("no policy".to_owned()),
            _ => DispatchVerdict::Continue,
        })
    }));
}

fn verdict(dice: &Dice) -> Result<Verdict, String> {
    Ok(match dice.below(25) {
        0 => Verdict::Stop("enough".to_owned()),
        1 => Verdict::Inject(vec![AgentMessage::user("remember")]),
        2 => return Err("no policy".to_owned()),
        _ => Verdict::Continue,
    })
}
