//! The machine alone, in a random world: random rules, random answers in any order, random mail, an abort
//! at any step. Checks what must hold whatever happens.

mod mail;
mod model;
mod random;
mod tool;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turnwheel::approval::ApprovalMode;
use turnwheel::budget::{Amounts, OnExceed};
use turnwheel::checkpoint::convert::{from_stakai, to_stakai};
use turnwheel::config::{Rules, ToolExecutionPolicy};
use turnwheel::event::{AgentEvent, BudgetKind, BudgetState};
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::machine::{
    Effect, EffectId, Input, LoopState, OUTPUT_TOOL, Output, Queue, Receipt, tell_first, unsaid,
};
use turnwheel::message::{AgentMessage, LlmMessage, MessageStopReason};
use turnwheel::ports::AgentRunContext;
use turnwheel::question::{Question, QuestionKind};
use turnwheel::state::SessionState;
use turnwheel::stream::ModelRequest;
use turnwheel::tool::ApprovalNeed;

use crate::clock::BEGINNING;
use crate::dice::Dice;
use crate::grammar::Grammar;
use random::{history, rules};

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
        elsewhere: BTreeSet::new(),
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
    /// The questions about calls that are answered elsewhere, open or closed.
    elsewhere: BTreeSet<String>,
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
    /// Whether it is offered a tool without an implementation.
    knows_elsewhere: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Thinking,
    Call,
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
                Output::Flush => self.flush(),
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

    /// Everything before has been received; what was posted meanwhile enters first.
    fn flush(&mut self) {
        if self.dice_says_sleep() {
            return self.sleep();
        }
        // As before an effect: the step must not walk the list.
        self.outputs.push_front(Output::Cancel(0));
        if !self.disturbance.quiet && self.dice.chance(10) && !self.state.is_ended() {
            self.post_command();
        }
        self.outputs.pop_front();
        if self.outputs.is_empty() {
            self.step(Input::Flushed);
        } else {
            self.outputs.retain(|output| !matches!(output, Output::Flush));
            self.outputs.push_back(Output::Flush);
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
            AgentEvent::QuestionAsked { question } if question.kind == QuestionKind::ToolCall => {
                // Nobody is asked twice, not even by another process.
                if !self.elsewhere.insert(question.id.clone()) {
                    self.faults.push(format!("{} is asked twice", question.id));
                }
                self.trace.push("asked_elsewhere");
            }
            AgentEvent::QuestionResolved { id, accepted: true, .. } if self.elsewhere.contains(id) => {
                self.trace.push("answered_elsewhere");
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
                let knows_elsewhere = self.rules.tools.iter().any(|spec| spec.is_external);
                Running::Infer(Script { knows_elsewhere, ..Script::default() })
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
        if spec.is_external {
            self.faults.push(format!("call {call_id} runs, and is answered elsewhere"));
        }
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
