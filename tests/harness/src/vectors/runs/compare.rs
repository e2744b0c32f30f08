//! The rules by which two records of a run are equal.

use std::collections::BTreeSet;

use turnwheel::json::{Map, Value};

use super::super::{Case, object, same};

/// Whether trace, outcome and metadata are equal.
pub(super) fn meets(expected: &Value, actual: &Value) -> bool {
    let same_member = |key: &str| {
        let null = Value::Null;
        same(expected.get(key).unwrap_or(&null), actual.get(key).unwrap_or(&null))
    };
    same(&comparable(expected, expected), &comparable(actual, expected))
        && same(&outcome(expected), &outcome(actual))
        && same_member("metadata_after")
        && same_member("blocked")
}

/// Returns a trace without what does not count: turns without a model call, empty answers, how an answer
/// was divided into pieces, and the time if the expectation has none.
fn comparable(record: &Value, expected: &Value) -> Value {
    let trace = record.get("trace").and_then(Value::as_array).unwrap_or_default();
    let timed = |record: &Value| {
        let trace = record.get("trace").and_then(Value::as_array).unwrap_or_default();
        trace.iter().any(|entry| entry.get("at_ms").is_some())
    };
    let with_time = timed(expected);
    let requests = requests(expected);
    let mut kept: Vec<Value> = Vec::new();
    for entry in joined(trace) {
        let Value::Object(mut entry) = entry else { continue };
        if !with_time {
            entry.remove("at_ms");
        }
        if let Some(wanted) =
            entry.get("inference").and_then(|n| requests.iter().find(|r| r.get("inference") == Some(n)))
        {
            in_form_of(wanted, &mut entry);
        }
        if let Some(Value::Array(messages)) = entry.remove("messages") {
            entry.insert("messages", Value::Array(without_empty(messages)));
        }
        kept.push(entry.into());
    }
    Value::Array(without_idle_turns(kept))
}

fn requests(record: &Value) -> Vec<&Value> {
    let trace = record.get("trace").and_then(Value::as_array).unwrap_or_default();
    trace.iter().filter(|entry| entry.get("inference").is_some()).collect()
}

/// A limit and tools are reported in different ways, or not at all.
fn in_form_of(wanted: &Value, request: &mut Map) {
    if let Some(limit) = request.remove("max_tokens") {
        for key in ["max_tokens", "max_output_tokens"].into_iter().filter(|key| wanted.get(key).is_some()) {
            request.insert(key, limit.clone());
        }
    }
    let Some(Value::Array(tools)) = request.remove("tools") else { return };
    let Some(wanted) = wanted.get("tools") else { return };
    let of_names = wanted.as_array().is_some_and(|tools| tools.iter().all(|tool| tool.as_str().is_some()));
    let form = |mut tool: Value| if of_names { tool.take("name") } else { tool };
    request.insert("tools", Value::Array(tools.into_iter().map(form).collect()));
}

fn outcome(record: &Value) -> Value {
    let mut outcome = record.get("outcome").cloned().unwrap_or_default();
    if let Some(Value::Object(ok)) = outcome.get_mut("ok")
        && let Some(Value::Array(messages)) = ok.remove("messages")
    {
        ok.insert("messages", Value::Array(without_empty(messages)));
    }
    outcome
}

fn event(entry: &Value) -> Option<&str> {
    entry.get("event").and_then(Value::as_str)
}

/// Joins all text of an answer into one piece, and all thinking likewise, at the
/// place of the first piece.
fn joined(trace: &[Value]) -> Vec<Value> {
    let mut joined = Vec::with_capacity(trace.len());
    let mut place = None;
    let (mut text, mut thinking) = (String::new(), String::new());
    for entry in trace {
        let delta = entry.get("delta").and_then(Value::as_str).unwrap_or_default();
        let pieces = match event(entry) {
            Some("TextDelta") => &mut text,
            Some("ThinkingDelta") => &mut thinking,
            Some("TurnCompleted" | "TurnStarted") => {
                put(&mut joined, place.take(), &mut text, &mut thinking);
                joined.push(entry.clone());
                continue;
            }
            _ => {
                joined.push(entry.clone());
                continue;
            }
        };
        pieces.push_str(delta);
        place = place.or(Some(joined.len()));
    }
    put(&mut joined, place, &mut text, &mut thinking);
    joined
}

fn put(trace: &mut Vec<Value>, place: Option<usize>, text: &mut String, thinking: &mut String) {
    let Some(place) = place else { return };
    for (name, pieces) in [("ThinkingDelta", thinking), ("TextDelta", text)] {
        let pieces = std::mem::take(pieces);
        if !pieces.is_empty() {
            trace.insert(place, object([("event", name.into()), ("delta", pieces.into())]));
        }
    }
}

/// Drops empty answers: one side may store them and the other not.
fn without_empty(messages: Vec<Value>) -> Vec<Value> {
    let is_empty = |message: &Value| {
        let has_no_content = match message.get("content") {
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(parts)) => {
                parts.iter().all(|part| part.get("text").and_then(Value::as_str) == Some(""))
            }
            _ => false,
        };
        has_no_content && message.get("role").and_then(Value::as_str) == Some("assistant")
    };
    messages.into_iter().filter(|message| !is_empty(message)).collect()
}

/// Drops turns without a model call: one side may show them and the other not.
fn without_idle_turns(trace: Vec<Value>) -> Vec<Value> {
    let mut removed = BTreeSet::new();
    let mut open: Option<Vec<usize>> = None;
    for (at, entry) in trace.iter().enumerate() {
        match event(entry) {
            Some("TurnStarted") => {
                removed.extend(open.take().unwrap_or_default());
                open = Some(vec![at]);
            }
            Some("TurnCompleted") => {
                if let Some(mut turn) = open.take() {
                    turn.push(at);
                    removed.extend(turn);
                }
            }
            _ if entry.get("inference").is_some() => open = None,
            _ => {}
        }
    }
    removed.extend(open.unwrap_or_default());
    trace.into_iter().enumerate().filter(|(at, _)| !removed.contains(at)).map(|(_, entry)| entry).collect()
}

/// Checks the assertions of a case that has some, and that the run did not wait for
/// something that had already come.
pub(super) fn gives_wanted(case: &Case<'_>, actual: &Value) -> bool {
    let Some(Value::Object(wanted)) = case.wanted else { return false };
    let waits = actual.get("blocked").is_some();
    let had_reason = actual.get("had_reason_to_wait").and_then(Value::as_bool) == Some(true);
    (!waits || had_reason) && wanted.iter().all(|(key, value)| holds(key, value, actual))
}

fn holds(key: &str, wanted: &Value, actual: &Value) -> bool {
    let trace = actual.get("trace").and_then(Value::as_array).unwrap_or_default();
    let count = |key: &str| trace.iter().filter(|entry| entry.get(key).is_some()).count();
    let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
    let got = match key {
        "stop_reason" => actual.path(&["outcome", "ok", "stop_reason"]).cloned(),
        "tools_run" => {
            Some(Value::Array(trace.iter().filter_map(|e| e.get("tool_begin")).cloned().collect()))
        }
        "inferences" => return number(wanted) == Some(count("inference")),
        "compactions_at_most" => return number(wanted).is_some_and(|limit| count("compact") <= limit),
        "last_user_text" => last_user_text(actual),
        "error_kind" => actual.path(&["outcome", "err", "kind"]).cloned(),
        "error" => Some(actual.path(&["outcome", "err"]).is_some().into()),
        "terminal_error_event" => {
            Some(trace.last().is_some_and(|entry| event(entry) == Some("RunError")).into())
        }
        "on_error_called" => actual.get("on_error_called").cloned(),
        "proposed_ids_distinct" => Some(ids_are_distinct(trace).into()),
        "stored_call_metadata" => Some(call_metadata(actual)),
        _ => None,
    };
    got.is_some_and(|got| same(wanted, &got))
}

fn messages(actual: &Value) -> &[Value] {
    actual.path(&["outcome", "ok", "messages"]).and_then(Value::as_array).unwrap_or_default()
}

fn parts(message: &Value) -> &[Value] {
    message.get("content").and_then(Value::as_array).unwrap_or_default()
}

fn last_user_text(actual: &Value) -> Option<Value> {
    let is_user = |message: &&Value| message.get("role").and_then(Value::as_str) == Some("user");
    let last = messages(actual).iter().rev().find(is_user)?;
    match last.get("content")? {
        text @ Value::String(_) => Some(text.clone()),
        _ => parts(last).iter().find_map(|part| part.get("text")).cloned(),
    }
}

fn ids_are_distinct(trace: &[Value]) -> bool {
    let proposed =
        trace.iter().filter_map(|entry| entry.get("tool_calls").and_then(Value::as_array)).flatten();
    let mut seen = BTreeSet::new();
    proposed.filter_map(|call| call.get("id").and_then(Value::as_str)).all(|id| seen.insert(id))
}

fn call_metadata(actual: &Value) -> Value {
    let calls = messages(actual).iter().flat_map(parts).filter_map(|part| {
        let id = part.get("id").and_then(Value::as_str)?;
        Some((id.to_owned(), part.get("metadata")?.clone()))
    });
    Value::Object(calls.collect::<Map>())
}
