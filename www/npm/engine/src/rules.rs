//! Synchronous rules implemented by the host: JavaScript functions that are called inside a step. Their
//! arguments and answers are JSON. The JavaScript half is `www/npm/rules.js`.

use std::cell::Cell;
use std::rc::Rc;

use wasm_bindgen::prelude::*;

use turnwheel::config::{ConvertToLlm, ResultTexts, Rules};
use turnwheel::event::CompactionReport;
use turnwheel::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, write_list};
use turnwheel::message::{AgentMessage, AssistantMessage, LlmMessage};
use turnwheel::policy::{
    DispatchCall, DispatchVerdict, PolicyContext, PostTurn, RunInfo, Transform, Verdict,
};
use turnwheel::retry::{RetryStrategy, RetryVerdict};

use crate::bridge;
use crate::protocol::{OptionFunction, OptionPart, PolicySlot, RuleName};

#[wasm_bindgen]
extern "C" {
    /// The JavaScript half of an agent.
    #[derive(Clone)]
    pub type Host;

    /// Says that a run wants to be polled.
    #[wasm_bindgen(method)]
    pub fn wake(this: &Host, run: u32);

    /// Calls a rule. An exception comes back as a text.
    #[wasm_bindgen(method, catch)]
    pub fn rule(this: &Host, name: &str, input: &str) -> Result<Option<String>, JsValue>;

    /// Checks the arguments of a call (JSON: its id, its tool, its arguments). Returns what is wrong with them, or
    /// nothing. The host keeps what its schema makes of them, for the tool.
    #[wasm_bindgen(method, catch)]
    pub fn validate(this: &Host, tools: u32, call: &str) -> Result<Option<String>, JsValue>;

    /// Returns a new id.
    #[wasm_bindgen(method)]
    pub fn id(this: &Host) -> String;

    /// Says that nothing refers to this version of the tools any more.
    #[wasm_bindgen(method)]
    pub fn forget(this: &Host, tools: u32);

    /// Returns a random number in [0, 1).
    #[wasm_bindgen(method)]
    pub fn random(this: &Host) -> f64;
}

/// How many messages, from the start, the provider has cached.
pub(super) type Cached = Rc<Cell<usize>>;

pub(super) fn count(cached: &Cached) -> u64 {
    u64::try_from(cached.get()).unwrap_or(0)
}

/// Calls a rule and reads its answer; `null` if there is none.
pub(super) fn call(host: &Host, name: RuleName, input: &str) -> Result<Value, String> {
    let answer = host.rule(name.as_str(), input).map_err(text_of)?;
    answer.map_or(Ok(Value::Null), |text| Value::parse(&text).map_err(|error| error.to_string()))
}

fn text_of(thrown: JsValue) -> String {
    let mut text = thrown.as_string().unwrap_or_default();
    bridge::current().iter().for_each(|bridge| bridge.mask_rule(&mut text));
    text
}

/// Installs the rules that the host has; `has` is the list of their names.
pub(super) fn install(rules: &mut Rules, host: &Host, cached: &Cached, has: &dyn Fn(&str) -> bool) {
    let random = host.clone();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fraction of 32 bits")]
    let random = move || (random.random() * 4_294_967_296.0) as u32;
    rules.random = Rc::new(random);
    if has(OptionFunction::ConvertToLlm.as_str()) {
        rules.convert_to_llm = Some(convert(host.clone()));
    }
    if has(OptionFunction::TransformContext.as_str()) {
        rules.transformers.push(Rc::new(transform(host.clone(), cached.clone())));
    }
    if has(PolicySlot::PreTurn.as_str()) {
        rules.pre_turn.push(Rc::new(policy(host.clone(), RuleName::PreTurn)));
    }
    if has(PolicySlot::PostLoop.as_str()) {
        rules.post_loop.push(Rc::new(policy(host.clone(), RuleName::PostLoop)));
    }
    if has(PolicySlot::PostTurn.as_str()) {
        let host = host.clone();
        rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
            let mut answer = call(&host, RuleName::PostTurn, &turn_input(turn))?;
            restore_calls(&mut answer, turn.message);
            verdict(&answer)
        }));
    }
    if has(OptionFunction::DynamicSystemPrompt.as_str()) {
        let host = host.clone();
        let prompt = move |_: &RunInfo<'_>| {
            Ok(call(&host, RuleName::DynamicSystemPrompt, "null")?.as_str().unwrap_or_default().to_owned())
        };
        rules.dynamic_system_prompt = Some(Rc::new(prompt));
    }
    if has(OptionPart::ResultTexts.as_str()) {
        rules.result_texts = Some(result_texts(host.clone()));
    }
    if has(OptionPart::Retry.as_str()) {
        rules.retry = Rc::new(HostRetry(host.clone()));
    }
}

fn policy(host: Host, name: RuleName) -> impl Fn(&PolicyContext<'_>) -> Result<Verdict, String> {
    move |context| verdict(&call(&host, name, &context_input(context))?)
}

fn convert(host: Host) -> Rc<ConvertToLlm> {
    Rc::new(move |message, _| {
        let answer = call(&host, RuleName::ConvertToLlm, &message.to_json())?;
        match answer {
            Value::Null => Ok(None),
            // The same message, so its encoding can be reused.
            Value::Bool(true) => Ok(message.as_llm()),
            other => LlmMessage::from_json(&other).map(Some),
        }
    })
}

fn transform(host: Host, cached: Cached) -> impl Fn(&[AgentMessage], bool) -> Result<Transform, String> {
    move |messages, overflow| {
        let mut input = String::new();
        let mut object = ObjectWriter::new(&mut input);
        object.field("overflow", &overflow).field("cached", &count(&cached));
        match bridge::current().filter(|bridge| is_mirrored(messages, &bridge.mirror.borrow())) {
            Some(_) => object.field("messages", &Value::Null),
            None => object.field("messages", messages),
        };
        object.end();
        read_transform(&call(&host, RuleName::TransformContext, &input)?)
    }
}

fn is_mirrored(messages: &[AgentMessage], mirror: &[AgentMessage]) -> bool {
    messages.len() == mirror.len() && messages.iter().zip(mirror).all(|(a, b)| a.is_same(b))
}

/// Reads `null`, `{ "view": [...], "report"?: {...} }` or `{ "replace": [...], "report": {...} }`. A pair of numbers is a
/// range of messages, without its end, in the history as JavaScript knows it.
pub(super) fn read_transform(answer: &Value) -> Result<Transform, String> {
    if let Some(view) = answer.get("view") {
        let view = read_refs(view)?;
        let report = answer.get("report").filter(|report| !report.is_null()).map(read_report);
        return Ok(match report {
            Some(report) => Transform::Reduced { view, report },
            None => Transform::View(view),
        });
    }
    let Some(messages) = answer.get("replace") else { return Ok(Transform::Unchanged) };
    let report = answer.get("report").filter(|report| !report.is_null()).map(read_report);
    Ok(Transform::Replace { messages: read_refs(messages)?, report })
}

pub(super) fn read_report(value: &Value) -> CompactionReport {
    let whole = |key: &str| value.number_at(key).unwrap_or(0);
    CompactionReport {
        text: value.text_at("text").unwrap_or_default().to_owned(),
        dropped_count: whole("droppedCount"),
        tokens_before: whole("tokensBefore"),
        tokens_after: whole("tokensAfter"),
        overflow: value.flag_at("overflow").unwrap_or(false),
    }
}

pub(super) fn read_refs(list: &Value) -> Result<Vec<AgentMessage>, String> {
    let bridge = bridge::current();
    let mirror = bridge.as_ref().map(|bridge| bridge.mirror.borrow());
    let items = list.as_array().ok_or("a list of messages was expected")?;
    let mut messages = Vec::with_capacity(items.len());
    for item in items {
        if let Some([from, to]) = item.as_array() {
            let place = |value: &Value| usize::try_from(value.as_u64()?).ok();
            let run = place(from).zip(place(to)).and_then(|(from, to)| mirror.as_ref()?.get(from..to));
            messages.extend_from_slice(run.ok_or("a message of the history was expected")?);
        } else {
            messages.push(AgentMessage::from_json(item)?);
        }
    }
    Ok(messages)
}

fn write_context(context: &PolicyContext<'_>, object: &mut ObjectWriter<'_>) {
    object
        .field("runId", context.run_id)
        .field("turnIndex", &context.turn_index)
        .field("usage", context.usage);
    object.field("messageCount", &u64::try_from(context.message_count).unwrap_or(0));
    object.field("newMessages", context.new_messages).field("overflowSignal", &context.overflow_signal);
    object.field("state", context.state);
}

fn context_input(context: &PolicyContext<'_>) -> String {
    let mut input = String::new();
    let mut object = ObjectWriter::new(&mut input);
    write_context(context, &mut object);
    object.end();
    input
}

fn turn_input(turn: &PostTurn<'_>) -> String {
    let mut input = String::new();
    let mut object = ObjectWriter::new(&mut input);
    write_context(&turn.context, &mut object);
    object.field("message", turn.message).field("toolResults", turn.tool_results);
    // JavaScript has the history up to here; the rest has not been sent yet.
    let known = bridge::current().map_or(0, |bridge| {
        let mirror = bridge.mirror.borrow();
        mirror.iter().zip(turn.messages).take_while(|(a, b)| a.is_same(b)).count()
    });
    object.field("known", &u64::try_from(known).unwrap_or(0));
    object.field("rest", turn.messages.get(known..).unwrap_or_default());
    object.end();
    input
}

/// Puts the turn's own calls back into a replacement, where they are numbers among the blocks. They are
/// used as the model wrote them, so numbers too large for JavaScript stay intact.
fn restore_calls(answer: &mut Value, message: &AssistantMessage) {
    let Some(Value::Array(injected)) = answer.get_mut("inject") else { return };
    for message_of_host in injected {
        let Some(Value::Array(blocks)) = message_of_host.get_mut("content") else { continue };
        for block in blocks {
            let call = block.as_u64().and_then(|n| message.tool_calls().nth(usize::try_from(n).ok()?));
            if let Some(call) = call {
                *block = Value::parse(&call.to_json()).unwrap_or_default();
            }
        }
    }
}

/// Reads `null`, `{ "stop": reason }` or `{ "inject": [...] }`.
fn verdict(answer: &Value) -> Result<Verdict, String> {
    if let Some(reason) = answer.get("stop") {
        return Ok(Verdict::Stop(reason.as_str().unwrap_or_default().to_owned()));
    }
    match answer.get("inject") {
        Some(messages) => Vec::from_json(messages).map(Verdict::Inject),
        None => Ok(Verdict::Continue),
    }
}

/// Installs this many policies that see every call. Each is a rule of its own, because the engine
/// combines their verdicts.
pub(super) fn install_pre_dispatch(rules: &mut Rules, host: &Host, policies: u64) {
    for index in 0..policies {
        let host = host.clone();
        rules.pre_dispatch.push(Rc::new(move |seen: &mut DispatchCall<'_>| pre_dispatch(&host, index, seen)));
    }
}

/// Reads what [`verdict`] does, or `{ "skip": text }`, or any of them with `arguments`.
fn pre_dispatch(host: &Host, index: u64, seen: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String> {
    let mut input = String::new();
    let mut object = ObjectWriter::new(&mut input);
    object
        .field("policy", &index)
        .field("callId", seen.call_id)
        .field("toolName", seen.tool_name)
        .field("arguments", &seen.arguments);
    object.field("state", seen.state);
    object.end();
    let answer = call(host, RuleName::PreDispatch, &input)?;
    if let Some(arguments) = answer.get("arguments") {
        seen.arguments = arguments.to_raw();
    }
    if let Some(text) = answer.get("skip") {
        return Ok(DispatchVerdict::Skip(text.as_str().unwrap_or_default().to_owned()));
    }
    Ok(match verdict(&answer)? {
        Verdict::Continue => DispatchVerdict::Continue,
        Verdict::Stop(reason) => DispatchVerdict::Stop(reason),
        Verdict::Inject(messages) => DispatchVerdict::Inject(messages),
    })
}

fn result_texts(host: Host) -> Rc<ResultTexts> {
    Rc::new(move |cause, block, detail, _| {
        let mut input = String::new();
        let mut object = ObjectWriter::new(&mut input);
        object.field("cause", cause.as_str()).field("call", block).field("detail", detail);
        object.end();
        call(&host, RuleName::ResultTexts, &input).ok()?.as_str().map(str::to_owned)
    })
}

/// Lets the host judge failed calls: it returns a number of milliseconds, or `false`.
struct HostRetry(Host);

impl RetryStrategy for HostRetry {
    fn delay(&self, error: &turnwheel::error::ErrorInfo, attempt: u32, _random: u32) -> RetryVerdict {
        let mut input = String::new();
        let mut object = ObjectWriter::new(&mut input);
        object.field("error", error).field("attempt", &attempt);
        object.end();
        match call(&self.0, RuleName::Retry, &input) {
            Ok(Value::Number(delay)) => delay.as_u64().map_or(RetryVerdict::Stop, RetryVerdict::Wait),
            _ => RetryVerdict::Stop,
        }
    }
}

/// Lets the host divide calls into groups.
pub(super) fn partition(
    host: Host,
) -> impl Fn(&[turnwheel::message::ToolCallBlock], &RunInfo<'_>) -> Result<Vec<Vec<usize>>, String> {
    move |calls, _| {
        let mut input = String::new();
        write_list(calls, &mut input);
        let answer = call(&host, RuleName::ToolExecution, &input)?;
        let groups = answer.as_array().ok_or("toolExecution must give a list of lists of indices")?;
        let mut read = Vec::with_capacity(groups.len());
        for group in groups {
            let indices = group.as_array().ok_or("toolExecution must give a list of lists of indices")?;
            let mut group = Vec::with_capacity(indices.len());
            for index in indices {
                let index = index.as_u64().and_then(|n| usize::try_from(n).ok());
                group.push(index.ok_or("toolExecution must give whole numbers from 0")?);
            }
            read.push(group);
        }
        Ok(read)
    }
}

/// Asks the tool's own function whether a call needs approval.
pub(super) fn requires_approval(
    tools: Rc<ToolsVersion>,
    tool: String,
) -> impl Fn(&RawJson, &RunInfo<'_>) -> Result<bool, String> {
    move |arguments, _| {
        let mut input = String::new();
        let mut object = ObjectWriter::new(&mut input);
        object.field("tools", &tools.number).field("tool", &tool).field("arguments", arguments);
        object.end();
        Ok(call(&tools.host, RuleName::RequiresApproval, &input)?.as_bool().unwrap_or(true))
    }
}

/// Checks arguments against a tool's schema, in JavaScript.
pub(super) fn validate(
    tools: Rc<ToolsVersion>,
) -> impl Fn(&turnwheel::tool::ToolSpec, &turnwheel::message::ToolCallBlock, &RunInfo<'_>) -> Result<(), String>
{
    move |_, block, _| {
        let arguments = block.arguments.as_str();
        let mut call = String::with_capacity(arguments.len() + 64);
        call.push('[');
        block.call_id.write_json(&mut call);
        call.push(',');
        block.tool_name.write_json(&mut call);
        call.push(',');
        call.push_str(arguments);
        call.push(']');
        let error = tools.host.validate(tools.number, &call);
        error.map_err(text_of)?.map_or(Ok(()), Err)
    }
}

/// The tools of one configuration. A turn keeps its configuration, so a call meets the definition that was asked about,
/// whatever the host has set since; JavaScript keeps these definitions until this is dropped.
pub(super) struct ToolsVersion {
    pub(super) host: Host,
    pub(super) number: u32,
}

impl Drop for ToolsVersion {
    fn drop(&mut self) {
        self.host.forget(self.number);
    }
}
