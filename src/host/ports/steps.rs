//! A durable engine stores what the effects of a run have answered. From that, another process can replay the run.

use std::rc::Rc;

use futures::future::LocalBoxFuture;

use super::ApprovalRequest;
use crate::data::json::{ObjectWriter, RawJson, ToJson, Value};
use crate::rules::approval::ToolDecision;
use crate::rules::stream::ModelRequest;
use crate::words::question::QuestionKind;

/// Stores what steps have answered. Set as [`Ports::steps`](crate::config::Ports::steps), it makes a run durable: each of its
/// effects is a step with a stable name, whose record is stored before what it says enters the run. In a later process the
/// same run is replayed from the records, without calling anything, and goes on where the last one ended.
///
/// The names are those of [`EffectNames`](crate::machine::EffectNames): `t3/model`, `t3/tool/0-pay`, `t3/approve/0`,
/// `t3/sleep/1`; those of an agent's second run begin with `r2/`, and those of a sub-agent with its call. Before a tool that
/// is not `idempotent` there is a marker, `t3/start/0-pay`: a later process that finds the marker and no result does not begin
/// the call again, and the model reads an error with the cause `interrupted`. While nobody but the host can move the run it is
/// inside `t3/mail/1`.
///
/// What does not come from a step must be the same again: policies and other rules, and the
/// [`TurnPreparer`](super::TurnPreparer). Steering, follow-ups, aborts and decisions from outside ride in the record of the
/// next step that ends. A listener that posts something itself must not do so while
/// [`AgentStream::is_replaying`](crate::AgentStream::is_replaying), for it would come twice.
///
/// Any asynchronous closure of this shape is an engine:
///
/// ```
/// use std::cell::RefCell;
/// use std::collections::BTreeMap;
/// use std::rc::Rc;
/// use turnwheel::json::RawJson;
/// use turnwheel::ports::Step;
/// use turnwheel::{AgentLoopConfig, AgentRunContext, CancelToken, agent_loop, scripted};
///
/// // What outlives the process.
/// let records: Rc<RefCell<BTreeMap<String, RawJson>>> = Rc::default();
/// let run = |model| {
///     let mut config = AgentLoopConfig::new(model, scripted::clock());
///     let records = records.clone();
///     config.ports.steps = Some(Rc::new(move |step: Step| {
///         let records = records.clone();
///         async move {
///             let stored = records.borrow().get(step.name()).cloned();
///             if let Some(record) = stored {
///                 return Ok(record);
///             }
///             let record = step.work().await;
///             records.borrow_mut().insert(step.name().to_owned(), record.clone());
///             Ok(record)
///         }
///     }));
///     let who = AgentRunContext::new("run-1", "session-1");
///     let run = agent_loop(vec!["The capital of France?".into()], config, who, CancelToken::new());
///     futures::executor::block_on(run.finish()).text
/// };
/// assert_eq!(run(scripted::model([scripted::text("Paris.")])), "Paris.");
/// // Another process: nothing is asked again.
/// assert_eq!(run(scripted::model([])), "Paris.");
/// assert_eq!(records.borrow().keys().collect::<Vec<_>>(), ["begin", "t0/model"]);
/// ```
pub trait Steps {
    /// Gives back the record that is stored under the step's name, or else what its work returns, once that is stored. An
    /// error means that it could not be stored: the run cannot go on in this process, and its result has the phase `step`.
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>>;

    /// Waits for an answer, if the engine can: until a person has decided about a call, unless there is an
    /// [`Approver`](super::Approver), and for the result of a call whose tool has no implementation
    /// ([`QuestionKind::ToolCall`]). Then answers come through it alone. For a call of the second kind,
    /// [`ToolDecision::Result`] is the result; everything else says that there will be none. Called only where [`Steps::waits`].
    fn wait(
        &self,
        _name: &str,
        _kind: QuestionKind,
        _request: &ApprovalRequest,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        Box::pin(std::future::pending())
    }

    /// Whether [`Steps::wait`] is there.
    fn waits(&self) -> bool {
        false
    }

    /// Sleeps between two attempts to call a model, if the engine can. If not, the delay is a step, whose work sleeps.
    fn sleep(&self, _name: &str, _ms: u64) -> Option<LocalBoxFuture<'static, ()>> {
        None
    }

    /// What a call has changed in the session state enters the run with its record: for hosts that have a copy of the state. A key
    /// without a value is deleted.
    fn state_entered(&self, _key: &str, _value: Option<&Value>) {}

    /// An abort enters the run, perhaps that of an earlier process: for hosts that end what the run has begun there themselves.
    fn abort_entered(&self, _reason: &str) {}

    /// How many bytes a record may have. A longer result of a tool becomes an error result that names both numbers; a longer
    /// answer ends the run with an error.
    fn max_bytes(&self) -> Option<usize> {
        None
    }

    /// Whether the engine itself gives results back in the order in which they came first, in every process. If not, a stored
    /// result waits until each other open step has begun or is given back too; then they enter in the order of their ends.
    fn is_ordered(&self) -> bool {
        false
    }
}

impl<F, T> Steps for F
where
    F: Fn(Step) -> T,
    T: Future<Output = Result<RawJson, String>> + 'static,
{
    fn step(&self, step: Step) -> LocalBoxFuture<'static, Result<RawJson, String>> {
        Box::pin(self(step))
    }
}

/// Does the work of a step. Which attempt it is may be known.
pub(crate) type Work = dyn Fn(Option<u32>) -> LocalBoxFuture<'static, RawJson>;

/// A step: its name, what it does, and the work.
#[derive(Clone)]
pub struct Step {
    name: String,
    effect: Rc<StepEffect>,
    work: Rc<Work>,
}

impl Step {
    pub(crate) fn new(name: String, effect: StepEffect, work: Rc<Work>) -> Self {
        Step { name, effect: Rc::new(effect), work }
    }

    /// The name, at most 200 bytes: the same in every process that lives the run.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does.
    pub fn effect(&self) -> &StepEffect {
        &self.effect
    }

    /// Does the work, and returns the record to store: a JSON object. It never fails for what a model or a tool does. If it is
    /// called again in the same process, the record is the same.
    pub fn work(&self) -> LocalBoxFuture<'static, RawJson> {
        (self.work)(None)
    }

    /// Does the work, for an engine that counts the attempts from 1, over all processes. With [`Steps::is_ordered`] this
    /// says whether a call of a tool may have begun before, and not the marker.
    pub fn work_as(&self, attempt: u32) -> LocalBoxFuture<'static, RawJson> {
        (self.work)(Some(attempt))
    }
}

/// What a step does, as data: serialized, it is plain JSON with a `kind`.
#[derive(Clone, Debug)]
pub enum StepEffect {
    /// Stores what a run begins with.
    Begin,
    /// Calls a model.
    Model {
        /// The request, without its key.
        request: ModelRequest,
    },
    /// Calls a tool.
    Tool {
        /// The tool's name.
        name: Rc<str>,
        /// The id of the call.
        call_id: Rc<str>,
        /// The arguments, as the tool receives them.
        arguments: RawJson,
    },
    /// Stores that a tool is about to begin.
    Start,
    /// Calls another port of the host: an approver, a hook, a transformer, the compaction, a queue.
    Host,
    /// Waits.
    Sleep {
        /// The time in milliseconds.
        ms: u64,
    },
    /// Waits until something reaches the run from outside.
    Mail,
}

impl ToJson for StepEffect {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            StepEffect::Begin => drop(object.field("kind", "begin")),
            StepEffect::Model { request } => {
                object.field("kind", "model").field("model", &request.model).field("request", request);
            }
            StepEffect::Tool { name, call_id, arguments } => {
                object.field("kind", "tool").field("name", name);
                object.field("arguments", arguments).field("callId", call_id);
            }
            StepEffect::Start => drop(object.field("kind", "start")),
            StepEffect::Host => drop(object.field("kind", "host")),
            StepEffect::Sleep { ms } => drop(object.field("kind", "sleep").field("ms", ms)),
            StepEffect::Mail => drop(object.field("kind", "mail")),
        }
        object.end();
    }
}
