//! The rules of a host while a run is recorded: each is asked as before, and what it answers is written down.

use std::panic::resume_unwind;
use std::rc::Rc;

use crate::data::json::{Map, ObjectWriter, RawJson, ToJson};
use crate::data::list::ListWriter;
use crate::host::config::{AgentLoopConfig, Rules, ToolExecutionPolicy};
use crate::host::isolate::guard;
use crate::host::tool::{ApprovalNeed, ToolSpec};
use crate::rules::policy::RunInfo;
use crate::rules::policy::{
    ContextTransformer, DispatchCall, DispatchVerdict, PolicyContext, PostLoopPolicy, PostTurn,
    PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy, Transform, Verdict,
};
use crate::rules::retry::{RetryStrategy, RetryVerdict};
use crate::words::error::ErrorInfo;
use crate::words::message::{AgentMessage, ToolCallBlock, ToolResultCause};

use super::input::write_transform;
use super::messages::write_shown;
use super::pen::Pen;

/// Returns the same configuration, whose rules write down what they answer.
pub(super) fn recorded(config: &AgentLoopConfig, pen: &Rc<Pen>) -> AgentLoopConfig {
    let mut config = config.clone();
    let rules = &mut config.rules;
    record_chance(rules, pen);
    record_policies(rules, pen);
    record_view(rules, pen);
    record_tools(rules, pen);
    config
}

fn record_chance(rules: &mut Rules, pen: &Rc<Pen>) {
    let (random, own) = (rules.random.clone(), pen.clone());
    rules.random = Rc::new(move || own.infallible("random", || random()));
    let (new_id, own) = (rules.new_id.clone(), pen.clone());
    rules.new_id = Rc::new(move || own.infallible("id", || new_id()));
    rules.retry = Rc::new(Recorded { inner: rules.retry.clone(), pen: pen.clone(), place: 0 });
}

fn record_policies(rules: &mut Rules, pen: &Rc<Pen>) {
    for (place, policy) in rules.pre_turn.iter_mut().enumerate() {
        *policy = Rc::new(Recorded { inner: policy.clone(), pen: pen.clone(), place });
    }
    for (place, policy) in rules.pre_dispatch.iter_mut().enumerate() {
        *policy = Rc::new(Recorded { inner: policy.clone(), pen: pen.clone(), place });
    }
    for (place, policy) in rules.post_turn.iter_mut().enumerate() {
        *policy = Rc::new(Recorded { inner: policy.clone(), pen: pen.clone(), place });
    }
    for (place, policy) in rules.post_loop.iter_mut().enumerate() {
        *policy = Rc::new(Recorded { inner: policy.clone(), pen: pen.clone(), place });
    }
}

fn record_view(rules: &mut Rules, pen: &Rc<Pen>) {
    for (place, transformer) in rules.transformers.iter_mut().enumerate() {
        *transformer = Rc::new(Recorded { inner: transformer.clone(), pen: pen.clone(), place });
    }
    if let Some(inner) = rules.convert_to_llm.take() {
        let pen = pen.clone();
        rules.convert_to_llm = Some(Rc::new(move |message, run| {
            let shown = guard(|| inner(message, run));
            pen.answer("convertToLlm", 0, |out| match &shown {
                Err(error) => write_error(error, out),
                Ok(shown) => write_shown(message, shown.as_ref(), out),
            });
            shown
        }));
    }
    if let Some(inner) = rules.dynamic_system_prompt.take() {
        let pen = pen.clone();
        rules.dynamic_system_prompt = Some(Rc::new(move |run| {
            let prompt = guard(|| inner(run));
            pen.answer("dynamicSystemPrompt", 0, |out| write_fallible(&prompt, out));
            prompt
        }));
    }
}

fn record_tools(rules: &mut Rules, pen: &Rc<Pen>) {
    if let Some(inner) = rules.validator.take() {
        let pen = pen.clone();
        rules.validator = Some(Rc::new(move |spec, call, run| {
            let fits = guard(|| inner(spec, call, run));
            pen.answer("validator", 0, |out| write_fallible(&fits.as_ref().map(|()| true), out));
            fits
        }));
    }
    if let Some(inner) = rules.result_texts.take() {
        let pen = pen.clone();
        let ask = move |cause: ToolResultCause, call: &ToolCallBlock, detail: &str, run: &RunInfo<'_>| {
            pen.infallible("resultTexts", || inner(cause, call, detail, run))
        };
        rules.result_texts = Some(Rc::new(ask));
    }
    if let ToolExecutionPolicy::Custom(inner) = &rules.tool_execution {
        let (inner, pen) = (inner.clone(), pen.clone());
        rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(move |calls, run| {
            let groups = guard(|| inner(calls, run));
            pen.answer("toolExecution", 0, |out| match &groups {
                Err(error) => write_error(error, out),
                Ok(groups) => write_groups(groups, out),
            });
            groups
        }));
    }
    if rules.tools.iter().any(|tool| matches!(tool.requires_approval, ApprovalNeed::Depends(_))) {
        rules.tools = rules.tools.iter().enumerate().map(|(place, tool)| depends(tool, place, pen)).collect();
    }
}

/// Whether a call needs approval is written down under the place of its tool.
fn depends(tool: &ToolSpec, place: usize, pen: &Rc<Pen>) -> ToolSpec {
    let mut tool = tool.clone();
    if let ApprovalNeed::Depends(inner) = &tool.requires_approval {
        let (inner, pen) = (inner.clone(), pen.clone());
        tool.requires_approval =
            ApprovalNeed::Depends(Rc::new(move |arguments: &RawJson, run: &RunInfo<'_>| {
                let needed = guard(|| inner(arguments, run));
                pen.answer("requiresApproval", place, |out| write_fallible(&needed, out));
                needed
            }));
    }
    tool
}

/// A rule that is one of a list.
struct Recorded<T: ?Sized> {
    inner: Rc<T>,
    pen: Rc<Pen>,
    place: usize,
}

impl RetryStrategy for Recorded<dyn RetryStrategy> {
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        self.delay_in(&RunInfo::default(), error, attempt, random)
    }

    fn delay_in(&self, run: &RunInfo<'_>, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        let verdict = guard(|| Ok(self.inner.delay_in(run, error, attempt, random)));
        self.pen.answer("retry", 0, |out| {
            let mut object = ObjectWriter::new(out);
            match &verdict {
                Ok(RetryVerdict::Wait(ms)) => drop(object.field("wait", ms)),
                Ok(RetryVerdict::Stop) | Err(_) => {}
                Ok(RetryVerdict::StopNaming(ms)) => drop(object.field("asked", ms)),
            }
            object.end();
        });
        passed_on(verdict)
    }
}

impl PreTurnPolicy for Recorded<dyn PreTurnPolicy> {
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String> {
        let verdict = guard(|| self.inner.evaluate(context));
        self.pen.answer("preTurn", self.place, |out| write_verdict(&verdict, out));
        verdict
    }
}

impl PostTurnPolicy for Recorded<dyn PostTurnPolicy> {
    fn evaluate(&self, turn: &PostTurn<'_>) -> Result<Verdict, String> {
        let verdict = guard(|| self.inner.evaluate(turn));
        self.pen.answer("postTurn", self.place, |out| write_verdict(&verdict, out));
        verdict
    }
}

impl PostLoopPolicy for Recorded<dyn PostLoopPolicy> {
    fn evaluate(&self, context: &PolicyContext<'_>) -> Result<Verdict, String> {
        let verdict = guard(|| self.inner.evaluate(context));
        self.pen.answer("postLoop", self.place, |out| write_verdict(&verdict, out));
        verdict
    }
}

impl PreDispatchPolicy for Recorded<dyn PreDispatchPolicy> {
    fn evaluate(&self, call: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String> {
        let before = call.arguments.clone();
        let verdict = guard(|| self.inner.evaluate(call));
        let changed = (!before.is_same(&call.arguments)).then(|| call.arguments.clone());
        self.pen.answer("preDispatch", self.place, |out| write_dispatch(&verdict, changed.as_ref(), out));
        verdict
    }
}

impl ContextTransformer for Recorded<dyn ContextTransformer> {
    fn transform(&self, messages: &[AgentMessage], overflow_signal: bool) -> Result<Transform, String> {
        self.transform_in(&RunInfo::default(), messages, overflow_signal)
    }

    fn transform_in(
        &self,
        run: &RunInfo<'_>,
        messages: &[AgentMessage],
        overflow_signal: bool,
    ) -> Result<Transform, String> {
        let transform = guard(|| self.inner.transform_in(run, messages, overflow_signal));
        self.pen.answer("transformContext", self.place, |out| {
            let mut object = ObjectWriter::new(out);
            write_transform(messages, transform.as_ref(), &mut object);
            object.end();
        });
        transform
    }
}

impl Pen {
    /// Asks a rule that cannot fail, but may panic.
    fn infallible<T: ToJson>(&self, rule: &'static str, ask: impl FnOnce() -> T) -> T {
        let answer = guard(|| Ok(ask()));
        self.answer(rule, 0, |out| write_fallible(&answer, out));
        passed_on(answer)
    }
}

/// A panic of the host goes on as one.
fn passed_on<T>(answer: Result<T, String>) -> T {
    answer.unwrap_or_else(|text| resume_unwind(Box::new(text)))
}

fn write_error(error: &str, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    object.field("error", error);
    object.end();
}

fn write_fallible<T: ToJson>(answer: &Result<T, impl AsRef<str>>, out: &mut String) {
    match answer {
        Ok(answer) => answer.write_json(out),
        Err(error) => write_error(error.as_ref(), out),
    }
}

fn write_verdict(verdict: &Result<Verdict, String>, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    match verdict {
        Ok(Verdict::Continue) => {}
        Ok(Verdict::Stop(reason)) => drop(object.field("stop", reason)),
        Ok(Verdict::Inject(messages)) => drop(object.field("inject", messages)),
        Err(error) => drop(object.field("error", error)),
    }
    object.end();
}

fn write_dispatch(verdict: &Result<DispatchVerdict, String>, changed: Option<&RawJson>, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    match verdict {
        Ok(DispatchVerdict::Continue) => {}
        Ok(DispatchVerdict::Stop(reason)) => drop(object.field("stop", reason)),
        Ok(DispatchVerdict::Inject(messages)) => drop(object.field("inject", messages)),
        Ok(DispatchVerdict::Skip(text)) => drop(object.field("skip", text)),
        Err(error) => drop(object.field("error", error)),
    }
    if let Some(arguments) = changed {
        object.field("arguments", arguments);
    }
    object.end();
}

fn write_groups(groups: &[Vec<usize>], out: &mut String) {
    let mut list = ListWriter::new(out);
    for group in groups {
        let mut places = ListWriter::new(list.item());
        group.iter().for_each(|place| places.place(*place));
        places.end();
    }
    list.end();
}

/// How many functions there are of each kind, as a tape says it; those that are answers to nothing are left out.
pub(super) fn functions_of(rules: &Rules) -> Map {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let kinds = [
        ("preTurn", rules.pre_turn.len()),
        ("preDispatch", rules.pre_dispatch.len()),
        ("postTurn", rules.post_turn.len()),
        ("postLoop", rules.post_loop.len()),
        ("transformContext", rules.transformers.len()),
        ("convertToLlm", usize::from(rules.convert_to_llm.is_some())),
        ("dynamicSystemPrompt", usize::from(rules.dynamic_system_prompt.is_some())),
        ("validator", usize::from(rules.validator.is_some())),
        ("resultTexts", usize::from(rules.result_texts.is_some())),
    ];
    let kinds = kinds.into_iter().filter(|(_, n)| *n > 0);
    kinds.map(|(kind, n)| (kind.to_owned(), count(n).into())).collect()
}
