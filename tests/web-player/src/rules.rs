//! What is decided inside a step, as JavaScript functions.

use js_sys::Function;
use turnwheel::error::ErrorInfo;
use turnwheel::event::CompactionReport;
use turnwheel::json::{FromJson, ObjectWriter, ToJson, Value};
use turnwheel::message::{AgentMessage, ToolCallBlock};
use turnwheel::policy::{
    DispatchCall, DispatchVerdict, PolicyContext, PostTurn, RunInfo, Transform, Verdict,
};
use turnwheel::retry::{RetryStrategy, RetryVerdict};
use turnwheel_web::to_js;
use wasm_bindgen::JsValue;

use crate::options::Cached;
use crate::{ask, count, object};

/// A policy before a turn or at the end of the run.
pub(crate) fn on_context(policy: Function) -> impl Fn(&PolicyContext<'_>) -> Result<Verdict, String> {
    move |context| verdict(&ask(&policy, &[&object(|out| write_context(context, out))])?)
}

/// A policy after a turn.
pub(crate) fn on_turn(policy: Function) -> impl Fn(&PostTurn<'_>) -> Result<Verdict, String> {
    move |turn| {
        let seen = object(|out| {
            write_context(&turn.context, out);
            out.field("message", turn.message).field("toolResults", turn.tool_results);
            out.field("messages", turn.messages);
        });
        verdict(&ask(&policy, &[&seen])?)
    }
}

/// A policy about one call.
pub(crate) fn on_call(policy: Function) -> impl Fn(&mut DispatchCall<'_>) -> Result<DispatchVerdict, String> {
    move |call| {
        let seen = object(|out| {
            out.field("callId", call.call_id).field("toolName", call.tool_name);
            out.field("arguments", &call.arguments).field("state", call.state);
        });
        let answer = ask(&policy, &[&seen])?;
        if let Some(arguments) = answer.get("arguments") {
            call.arguments = arguments.to_raw();
        }
        if let Some(text) = answer.text_at("skip") {
            return Ok(DispatchVerdict::Skip(text.to_owned()));
        }
        Ok(match verdict(&answer)? {
            Verdict::Continue => DispatchVerdict::Continue,
            Verdict::Stop(reason) => DispatchVerdict::Stop(reason),
            Verdict::Inject(messages) => DispatchVerdict::Inject(messages),
        })
    }
}

fn write_context(context: &PolicyContext<'_>, out: &mut ObjectWriter<'_>) {
    out.field("runId", context.run_id).field("turnIndex", &context.turn_index).field("usage", context.usage);
    out.field("messageCount", &count(context.message_count)).field("newMessages", context.new_messages);
    out.field("overflowSignal", &context.overflow_signal).field("state", context.state);
}

/// Reads nothing, `{ stop }` or `{ inject }`.
fn verdict(answer: &Value) -> Result<Verdict, String> {
    if let Some(reason) = answer.text_at("stop") {
        return Ok(Verdict::Stop(reason.to_owned()));
    }
    match answer.get("inject").and_then(Value::as_array) {
        Some(messages) => messages.iter().map(message).collect::<Result<_, _>>().map(Verdict::Inject),
        None => Ok(Verdict::Continue),
    }
}

/// Reads a message, or a text of the user.
fn message(value: &Value) -> Result<AgentMessage, String> {
    value.as_str().map_or_else(|| AgentMessage::from_json(value), |text| Ok(AgentMessage::user(text)))
}

/// `transformContext`.
pub(crate) fn transform(
    transform: Function,
    cached: Cached,
) -> impl Fn(&[AgentMessage], bool) -> Result<Transform, String> {
    move |messages, overflow| {
        let info = cache_info(cached.get());
        read_transform(&ask(&transform, &[&to_js(messages), &overflow.into(), &info])?)
    }
}

/// What a transformer is told besides the messages.
pub(crate) fn cache_info(cached: usize) -> JsValue {
    object(|info| {
        info.field("cachedMessages", &count(cached));
    })
}

/// Reads nothing, a list of messages for this request, or `{ messages, report? }` that replace the history.
pub(crate) fn read_transform(answer: &Value) -> Result<Transform, String> {
    if answer.is_null() {
        return Ok(Transform::Unchanged);
    }
    if answer.as_array().is_some() {
        return Vec::from_json(answer).map(Transform::View);
    }
    let messages = Vec::from_json(answer.get("messages").unwrap_or(&Value::Null))?;
    let report = answer.get("report").map(|report| {
        let whole = |key: &str| report.number_at(key).unwrap_or_default();
        CompactionReport {
            text: report.text_at("text").unwrap_or_default().to_owned(),
            dropped_count: whole("droppedCount"),
            tokens_before: whole("tokensBefore"),
            tokens_after: whole("tokensAfter"),
            overflow: report.flag_at("overflow").unwrap_or_default(),
        }
    });
    Ok(Transform::Replace { messages, report })
}

/// `toolExecution` as a function of the calls.
pub(crate) fn groups(
    groups: Function,
) -> impl Fn(&[ToolCallBlock], &RunInfo<'_>) -> Result<Vec<Vec<usize>>, String> {
    move |calls, _| {
        let wrong = || "lists of indices were expected".to_owned();
        let index = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong);
        let group = |value: &Value| value.as_array().ok_or_else(wrong)?.iter().map(index).collect();
        ask(&groups, &[&to_js(calls)])?.as_array().ok_or_else(wrong)?.iter().map(group).collect()
    }
}

/// `retry` as a function of the error: a number of milliseconds, or `false`.
pub(crate) struct HostRetry(pub(crate) Function);

impl RetryStrategy for HostRetry {
    fn delay(&self, error: &ErrorInfo, attempt: u32, _random: u32) -> RetryVerdict {
        let answer = ask(&self.0, &[&to_js(error), &attempt.into()]).unwrap_or_default();
        answer.as_u64().map_or(RetryVerdict::Stop, RetryVerdict::Wait)
    }
}
