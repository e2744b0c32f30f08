use std::collections::{BTreeMap, BTreeSet};

use turnwheel::approval::{
    ApprovalError, ApprovalGate, ApprovalStateMachine, DecisionSource, ReadyCall, RuleNames,
    ToolApprovalAction, ToolApprovalPolicy, ToolDecision, strip_tool_prefix,
};
use turnwheel::json::{RawJson, ToJson, Value};
use turnwheel::message::{ContentBlock, ToolCallBlock, text_of as joined_text};

use super::{Case, Player, list_of, object, same, text_of};

pub(super) const TABLE: Player =
    Player { set: "approval_fsm", play: play_table, meets: same_outcome, meets_recommendation: is_sound };

pub(super) const POLICY: Player =
    Player { set: "approval_policy", play: play_policy, meets: same, meets_recommendation: is_strict_enough };

pub(super) fn policy(value: &Value) -> Result<ToolApprovalPolicy, String> {
    match value.as_str() {
        Some("none") => return Ok(ToolApprovalPolicy::None),
        Some("all") => return Ok(ToolApprovalPolicy::All),
        Some("defaults") => return Ok(ToolApprovalPolicy::with_defaults()),
        Some(other) => return Err(format!("unknown policy `{other}`")),
        None => {}
    }
    if let Ok(names) = list_of(value, "allowlist") {
        let names = names.iter().filter_map(Value::as_str);
        return Ok(ToolApprovalPolicy::from_allowlist(names.map(|name| strip_tool_prefix(name.trim()))));
    }
    if let Some(base) = value.get("base") {
        return Ok(policy(base)?.with_overrides(rules(value.get("overrides"))?));
    }
    let default = action(value.get("default").ok_or("a policy without a default")?)?;
    Ok(ToolApprovalPolicy::Custom { rules: rules(value.get("rules"))?.into_iter().collect(), default })
}

fn rules(value: Option<&Value>) -> Result<BTreeMap<String, ToolApprovalAction>, String> {
    let rules = value.and_then(Value::as_object).into_iter().flat_map(|rules| rules.iter());
    rules.map(|(name, word)| Ok((name.to_owned(), action(word)?))).collect()
}

fn action(word: &Value) -> Result<ToolApprovalAction, String> {
    let known = word.as_str().and_then(ToolApprovalAction::from_word);
    known.ok_or_else(|| format!("unknown action {}", word.to_json()))
}

fn play_policy(input: &Value) -> Result<Value, String> {
    let policy = policy(input.get("policy").ok_or("no `policy`")?)?;
    let name = text_of(input, "tool_name")?;
    let command = input.path(&["arguments", "command"]).and_then(Value::as_str);
    let stripped = strip_tool_prefix(name);
    let action = policy.action_by(RuleNames::AnyServer, name, command).as_str();
    Ok(object([("action", action.into()), ("stripped_name", stripped.into())]))
}

/// A case that needs a shell parser passes if approval is at least asked for. Otherwise an assertion
/// decides, or one of the two recommendations without one: an explicit denial holds under every policy,
/// and the full name is looked up first.
fn is_strict_enough(case: &Case<'_>, actual: &Value) -> bool {
    let Some(got) = actual.get("action").and_then(|word| action(word).ok()) else { return false };
    let minimum = case.wanted.and_then(|wanted| wanted.get("action_at_least"));
    if let Some(minimum) = minimum.and_then(|word| action(word).ok()) {
        return got >= minimum;
    }
    if case.is_host_specific && got >= ToolApprovalAction::Ask {
        return true;
    }
    let Ok(name) = text_of(case.input, "tool_name") else { return false };
    let denied = case.input.path(&["policy", "overrides", name]).and_then(Value::as_str) == Some("deny");
    let by_full_name = case.input.path(&["policy", "rules", name]).and_then(|word| action(word).ok());
    case.recommended.is_some() && ((denied && got == ToolApprovalAction::Deny) || by_full_name == Some(got))
}

fn play_table(input: &Value) -> Result<Value, String> {
    if input.get("repeat").and_then(Value::as_bool) != Some(true) {
        return play_table_once(input);
    }
    let mut outcomes: Vec<Value> = Vec::new();
    for _ in 0..10 {
        let outcome = play_table_once(input)?;
        if !outcomes.contains(&outcome) {
            outcomes.push(outcome);
        }
    }
    Ok(object([("distinct_outcomes", Value::Array(outcomes))]))
}

fn play_table_once(input: &Value) -> Result<Value, String> {
    let policy = policy(input.get("policy").ok_or("no `policy`")?)?;
    let calls: Result<Vec<ToolCallBlock>, String> = list_of(input, "tool_calls")?.iter().map(call).collect();
    let mut table = ApprovalStateMachine::default();
    table.open(calls?, |call| policy.action_by(RuleNames::AnyServer, &call.tool_name, None));
    let proposed = table.entries().iter().map(|entry| Value::from(entry.call.call_id.as_str())).collect();
    let initial = state(&table);
    let mut dispatched = Vec::new();
    let mut results = Vec::new();
    for op in list_of(input, "ops")? {
        let result = apply(&mut table, op, &mut dispatched)?;
        results.push(object([("result", result), ("state", state(&table))]));
    }
    Ok(object([
        ("initial", initial),
        ("results", Value::Array(results)),
        ("dispatch_order", Value::Array(dispatched)),
        ("proposed", Value::Array(proposed)),
    ]))
}

fn call(call: &Value) -> Result<ToolCallBlock, String> {
    Ok(ToolCallBlock {
        call_id: text_of(call, "id")?.to_owned(),
        tool_name: text_of(call, "name")?.to_owned(),
        arguments: call.get("arguments").map_or_else(RawJson::empty_object, ToJson::to_raw),
        metadata: None,
    })
}

fn state(table: &ApprovalStateMachine) -> Value {
    let pending = table.pending().map(|call| Value::from(call.call_id.as_str())).collect();
    object([
        ("pending", Value::Array(pending)),
        ("waiting_for_user", table.is_waiting_for_user().into()),
        ("complete", table.is_complete().into()),
    ])
}

fn apply(table: &mut ApprovalStateMachine, op: &Value, dispatched: &mut Vec<Value>) -> Result<Value, String> {
    let mut next = |table: &mut ApprovalStateMachine| {
        let ready = table.next_ready(ApprovalGate::Prefix).map(|ready| shown(&ready));
        dispatched.extend(ready.clone());
        ready
    };
    let answer = match text_of(op, "op")? {
        "next_ready" => return Ok(next(table).unwrap_or_default()),
        "drain" => return Ok(Value::Array(std::iter::from_fn(|| next(table)).collect())),
        "resolve" | "resolve_command" => {
            let decision = decision(op.get("decision").ok_or("no `decision`")?)?;
            table.resolve(text_of(op, "id")?, decision, DecisionSource::Command).map(|_| ())
        }
        "resolve_many" => {
            let decisions = op.get("decisions").and_then(Value::as_object).ok_or("no `decisions`")?;
            let decisions: Result<BTreeMap<String, ToolDecision>, String> =
                decisions.iter().map(|(id, value)| Ok((id.to_owned(), decision(value)?))).collect();
            table.resolve_all(decisions?, DecisionSource::Command).map(|_| ())
        }
        "other_command" => Err(ApprovalError::InvalidCommand),
        other => return Err(format!("unknown op `{other}`")),
    };
    Ok(match answer {
        Ok(()) => "ok".into(),
        Err(error) => refused(&error),
    })
}

pub(super) fn decision(value: &Value) -> Result<ToolDecision, String> {
    Ok(match text_of(value, "action")? {
        "accept" => ToolDecision::Accept,
        "reject" => ToolDecision::Reject { reason: None },
        "custom_result" => ToolDecision::Result {
            details: None,
            content: vec![ContentBlock::text(text_of(value, "content")?)],
            is_error: false,
        },
        other => return Err(format!("unknown decision `{other}`")),
    })
}

fn shown(ready: &ReadyCall) -> Value {
    let decision = match &ready.decision {
        ToolDecision::Accept | ToolDecision::AcceptWith(_) => object([("action", "accept".into())]),
        ToolDecision::Reject { .. } => object([("action", "reject".into())]),
        ToolDecision::Result { content, .. } => {
            object([("action", "custom_result".into()), ("content", joined_text(content).into())])
        }
    };
    object([
        ("id", ready.call.call_id.as_str().into()),
        ("name", ready.call.tool_name.as_str().into()),
        ("decision", decision),
    ])
}

fn refused(error: &ApprovalError) -> Value {
    let message = ("message", Value::String(error.to_string()));
    let kind = match error {
        ApprovalError::UnknownToolCallId(_) => "unknown_tool_call_id",
        ApprovalError::AlreadyResolved(_) => "already_resolved",
        // There is no known word for these errors; their messages are exact.
        ApprovalError::InvalidArguments(_) | ApprovalError::InvalidCommand => return object([message]),
    };
    object([("error", kind.into()), ("tool_call_id", error.call_id().unwrap_or_default().into()), message])
}

/// Compares everything but the list of ids, which only this crate returns. An error without a word of its
/// own is compared by its message.
fn same_outcome(expected: &Value, actual: &Value) -> bool {
    let parts = ["initial", "results", "dispatch_order"];
    match (expected.get("distinct_outcomes"), actual.get("distinct_outcomes")) {
        (None, None) => parts.iter().all(|part| match (expected.get(part), actual.get(part)) {
            (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
                expected.len() == actual.len()
                    && expected.iter().zip(actual).all(|(wanted, got)| same_result(wanted, got))
            }
            (Some(expected), Some(actual)) => same(expected, actual),
            _ => false,
        }),
        (Some(Value::Array(expected)), Some(Value::Array(actual))) => {
            actual.iter().all(|got| expected.iter().any(|wanted| same_outcome(wanted, got)))
        }
        _ => false,
    }
}

fn same_result(expected: &Value, actual: &Value) -> bool {
    let message = |value: &Value| value.path(&["result", "message"]).cloned();
    let is_nameless = message(actual).is_some() && actual.path(&["result", "error"]).is_none();
    if is_nameless {
        return message(expected) == message(actual) && expected.get("state") == actual.get("state");
    }
    same(expected, actual)
}

/// Checks the `wanted` assertions of this set: distinct ids, or a single outcome in which a refused
/// bulk change changed nothing.
fn is_sound(case: &Case<'_>, actual: &Value) -> bool {
    let Some(wanted) = case.wanted else { return false };
    if wanted.get("proposed_ids_distinct").is_some() {
        let mut seen = BTreeSet::new();
        let ids = list_of(actual, "proposed").unwrap_or_default();
        return !ids.is_empty() && ids.iter().filter_map(Value::as_str).all(|id| seen.insert(id));
    }
    if wanted.get("deterministic").is_none() {
        return false;
    }
    let Ok([outcome]) = list_of(actual, "distinct_outcomes") else { return false };
    let mut before = outcome.get("initial");
    list_of(outcome, "results").unwrap_or_default().iter().all(|step| {
        let after = step.get("state");
        let was_refused = step.path(&["result", "error"]).is_some();
        let is_sound = !was_refused || before == after;
        before = after;
        is_sound
    })
}
