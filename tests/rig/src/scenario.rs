//! The contents of a scenario file. The format is described in `tests/data/oracle/README.md`, and what format 2 has beyond
//! it in `tests/data/scenarios/README.md`. An unknown word is an error: such a scenario needs something that cannot be
//! played yet.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// 2 if it has words that only this engine knows; its trace then shows more.
    #[serde(default)]
    pub format: u32,
    #[serde(default)]
    pub area: Value,
    #[serde(default)]
    pub why: Value,
    #[serde(default)]
    pub expect_note: Value,
    #[serde(default)]
    pub divergences: Vec<String>,
    #[serde(default)]
    pub driver: Driver,
    #[serde(default)]
    pub system_prompt: String,
    #[serde(default)]
    pub mode: Mode,
    #[serde(default)]
    pub initial_messages: Vec<Message>,
    pub prompt: Option<OneOrMany>,
    #[serde(default)]
    pub model: Vec<ModelCall>,
    #[serde(default)]
    pub fallback: Vec<Vec<ModelCall>>,
    #[serde(default)]
    pub tools: Vec<Tool>,
    #[serde(default)]
    pub steering: Vec<Queued>,
    #[serde(default)]
    pub follow_up: Vec<Queued>,
    pub approval: Option<Approval>,
    #[serde(default)]
    pub answers: Vec<Answering>,
    /// When the run is put into a checkpoint, its process ends, and another goes on, in milliseconds.
    pub sleep_ms: Option<u64>,
    #[serde(default)]
    pub policies: Vec<Policy>,
    pub transform: Option<Transform>,
    pub async_transform: Option<Transform>,
    pub abort: Option<Abort>,
    #[serde(default)]
    pub then: Vec<Then>,
    pub panicking_subscriber: Option<u64>,
    pub structured_output: Option<Value>,
    #[serde(default)]
    pub options: Options,
}

impl Scenario {
    /// Whether its trace shows what only this engine has.
    pub fn shows_more(&self) -> bool {
        self.format == 2
    }

    /// Whether somebody must be there: a message that says when it acts cannot be polled, and questions want answers.
    pub fn is_posted(&self) -> bool {
        self.steering.iter().any(|queued| queued.when.is_some()) || !self.answers.is_empty()
    }
}

/// What a person answers to a question of this kind, the first that nobody has answered yet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answering {
    pub kind: String,
    /// The call that it is about, if several are asked about.
    pub call: Option<String>,
    #[serde(default)]
    pub after_ms: u64,
    pub answer: Value,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    #[default]
    Loop,
    Agent,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    #[default]
    Prompt,
    Continue,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub fn list(&self) -> &[String] {
        match self {
            OneOrMany::One(text) => std::slice::from_ref(text),
            OneOrMany::Many(texts) => texts,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub role: String,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub tool_calls: Vec<Call>,
    #[serde(default)]
    pub tool_call_id: String,
    #[serde(default)]
    pub is_error: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Option<Value>,
    pub arguments_chunks: Option<Vec<String>>,
    #[serde(default)]
    pub incomplete: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelCall {
    pub events: Vec<Item>,
    pub stop: Option<String>,
    pub usage: Option<Usage>,
    pub error: Option<Failure>,
    #[serde(default)]
    pub no_terminal: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    Text(OneOrMany),
    Thinking(OneOrMany),
    ToolCall(Call),
    Raw(Value),
    DelayMs(u64),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub kind: FailureKind,
    #[serde(default)]
    pub message: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Throttled,
    Network,
    Overflow,
    Auth,
    ContentFiltered,
    Aborted,
    None,
    /// The kind of an error without one; only in `retry.only`.
    Stream,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    pub schema: Option<Value>,
    #[serde(default)]
    pub requires_approval: bool,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub idempotent: bool,
    #[serde(default)]
    pub behavior: Behavior,
    #[serde(default)]
    pub by_call: BTreeMap<String, Behavior>,
    /// The agent that it runs, in place of a behaviour.
    pub agent: Option<Box<Child>>,
}

/// An agent that a tool runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Child {
    /// What its model says in each of its runs.
    #[serde(default)]
    pub model: Vec<ModelCall>,
    /// What it says in the run of this call instead.
    #[serde(default)]
    pub by_call: BTreeMap<String, Vec<ModelCall>>,
    #[serde(default)]
    pub tools: Vec<Tool>,
    /// Whether its questions are only its own.
    #[serde(default)]
    pub own_approvals: bool,
    pub approval_mode: Option<ApprovalMode>,
    /// Its approver.
    pub approval: Option<Approval>,
    pub budget: Option<Value>,
    #[serde(default)]
    pub stream_options: Value,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Behavior {
    pub updates: Vec<String>,
    pub update_gap_ms: u64,
    pub delay_ms: u64,
    pub set_state: BTreeMap<String, Value>,
    pub forever: bool,
    pub until_cancelled: bool,
    pub panic: Option<String>,
    pub transfer_to: Option<String>,
    pub error: Option<String>,
    pub echo: bool,
    pub result: Option<String>,
    /// A question that a person is asked; the answer is the result.
    pub ask: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    pub text: String,
    pub at: Trigger,
    pub when: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abort {
    pub at: Trigger,
}

/// A point in a run. All but the first and the last are inside a callback of the host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    BeforeStart,
    /// The run goes on in another process, and nothing of it has happened yet.
    AfterSleep,
    ModelCall {
        n: usize,
        before_item: usize,
    },
    Tool {
        id: String,
        when: When,
    },
    Approval(String),
    Transform(usize),
    Ms(u64),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Start,
    End,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    #[serde(default)]
    pub default: Decision,
    #[serde(default)]
    pub by_call: BTreeMap<String, Decision>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    #[default]
    Approve,
    Reject,
    ApproveWith(Value),
    Panic(String),
    PanicSync(String),
    Forever,
    After {
        ms: u64,
        then: Box<Decision>,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    pub slot: Slot,
    pub name: String,
    #[serde(default)]
    pub on_calls: Vec<u64>,
    #[serde(default)]
    pub tools: Vec<String>,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Slot {
    PreTurn,
    PreDispatch,
    PostTurn,
    PostLoop,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Continue,
    Stop(String),
    Inject(Vec<String>),
    Skip(String),
    SetArguments(Value),
    Panic(String),
    SetArgumentsThenPanic(Value),
    ReplaceText(String),
    ReplaceDroppingCalls(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transform {
    Noop,
    KeepLast {
        n: usize,
        #[serde(default)]
        only_on_overflow: bool,
        #[serde(default)]
        form: Form,
    },
    Prepend(String),
    SlidingWindow {
        normal_budget: u64,
        overflow_budget: u64,
        anchor: usize,
    },
    /// The reducers of the library, in this order.
    Reduce(Vec<Reducer>),
}

/// In which form a transformer gives what it has shortened.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A list: the history stays as it is.
    View,
    /// The new history.
    Messages,
    /// The new history, and a report.
    #[default]
    Report,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reducer {
    PruneToolResults(usize),
    KeepLast(usize),
    SlidingWindow { tokens: u64, overflow_tokens: u64, anchor: usize },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    Prompt(OneOrMany),
    /// What the next prompts are given as the options of their run.
    RunOptions(TurnChoice),
    ClearQueues,
    Continue,
    Steer(String),
    FollowUp(String),
    Reset,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub retry: Option<Retry>,
    pub steering_mode: Option<QueueMode>,
    pub follow_up_mode: Option<QueueMode>,
    pub tool_execution: Option<ToolExecution>,
    pub approval_mode: Option<ApprovalMode>,
    pub dynamic_system_prompts: Vec<String>,
    pub api_keys: Vec<String>,
    pub model_supports_tools: Option<bool>,
    pub agent_name: Option<String>,
    pub transfer_chain: Vec<String>,
    pub transfer_max_depth: Option<usize>,
    pub session_state: BTreeMap<String, Value>,
    pub metrics: bool,
    pub cache: Option<Cache>,
    pub structured_output_max_retries: Option<u32>,
    /// As the package has it: `{ tokens, toolCalls, … }`.
    pub budget: Option<Value>,
    /// The price of every model.
    pub price: Option<Value>,
    /// Whether usage that no model tells is estimated.
    pub estimates: bool,
    pub steering_when: Option<String>,
    /// As the package has them.
    pub stream_options: Value,
    /// What holds for the first run, in place of what the agent is set to.
    pub run_options: Option<TurnChoice>,
    /// What is chosen for each turn, in order; null and everything after the last one is nothing.
    pub prepare_turn: Vec<Option<TurnChoice>>,
    pub hooks: bool,
    pub layers: bool,
    pub max_depth: Option<u32>,
    pub max_turns: Option<u32>,
    pub tool_timeout_ms: Option<u64>,
}

/// What holds for one turn or one run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TurnChoice {
    pub stream_options: Option<Value>,
    pub active_tools: Option<Vec<String>>,
    pub system_prompt: Option<String>,
    /// A fallback of the scenario, by its number from 1.
    pub model: Option<usize>,
    /// How many of the newest messages the model is shown.
    pub newest: Option<usize>,
    pub budget: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    pub max_attempts: u32,
    pub base_delay_ms: u64,
    pub multiplier: f64,
    pub max_delay_ms: u64,
    pub only: Vec<FailureKind>,
}

impl Default for Retry {
    fn default() -> Self {
        Retry {
            max_attempts: 3,
            base_delay_ms: 1_000,
            multiplier: 2.0,
            max_delay_ms: 60_000,
            only: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum QueueMode {
    All,
    OneAtATime,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolExecution {
    Concurrent,
    Sequential,
    Priority(BTreeMap<String, i32>),
    Groups(Vec<Vec<usize>>),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalMode {
    Smart,
    Enabled,
    Bypassed,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    pub ttl_s: u64,
    pub min_tokens: u64,
    pub intervals: u32,
}
