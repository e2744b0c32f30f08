use turnwheel::context::{
    DanglingCalls, Reducible, TokenBudget, boundary_in, dedup_results, keep_last_results, merge_same_role,
    reduce, remove_orphaned_results, set_boundary, shorten_old_answers, strip_dangling_calls, tool_tokens,
    trim_to_budget, with_margin,
};
use turnwheel::json::{Map, ToJson, Value};

use super::peer_message::PeerMessage;
use super::{Player, gives_wanted, list_of, object, same, text_of};

pub(super) const PLAYER: Player =
    Player { set: "context_reduction", play, meets: same, meets_recommendation: gives_wanted };

fn play(input: &Value) -> Result<Value, String> {
    let op = text_of(input, "op")?;
    if op == "budget_aware" {
        return play_budget(input);
    }
    if op == "estimate_tool_overhead" {
        return Ok(object([("tokens", overhead(input).into())]));
    }
    let mut messages = read(list_of(input, "messages")?)?;
    let keep_last = match input.get("keep_last") {
        None => 64,
        Some(Value::String(_)) => usize::MAX,
        Some(number) => whole_number(number)?,
    };
    match op {
        "estimate_tokens" => {
            let tokens = with_margin(messages.iter().map(Reducible::weight).sum());
            return Ok(object([("tokens", tokens.into())]));
        }
        "reduce" => reduce(&mut messages, keep_last),
        "dedup_tool_results" => dedup_results(&mut messages),
        "merge_consecutive_same_role" => merge_same_role(&mut messages),
        "truncate_old_tool_results" => keep_last_results(&mut messages, keep_last),
        "truncate_old_assistant_messages" => shorten_old_answers(&mut messages, keep_last),
        "strip_dangling_tool_calls" => strip_dangling_calls(&mut messages, DanglingCalls::StripAll),
        "remove_orphaned_tool_results" => remove_orphaned_results(&mut messages),
        other => return Err(format!("unknown op `{other}`")),
    }
    Ok(object([("messages", write(messages))]))
}

fn play_budget(input: &Value) -> Result<Value, String> {
    let number = |key: &str| input.get(key).and_then(Value::as_u64).unwrap_or(0);
    let Some(Value::Number(fraction)) = input.get("threshold") else {
        return Err("no `threshold`".to_owned());
    };
    let fraction = fraction.as_str().parse().map_err(|_| "`threshold` is no number")?;
    let budget = TokenBudget::new(number("model_context"), number("max_output_tokens"), fraction);
    let keep_last = whole_number(input.get("keep_last_n_assistant").ok_or("no `keep_last_n_assistant`")?)?;
    let mut metadata = input.get("metadata").cloned().unwrap_or_else(|| Map::new().into());
    let mut rounds = Vec::new();
    for round in list_of(input, "rounds")? {
        let mut messages = read(round.as_array().unwrap_or_default())?;
        merge_same_role(&mut messages);
        dedup_results(&mut messages);
        strip_dangling_calls(&mut messages, DanglingCalls::StripAll);
        remove_orphaned_results(&mut messages);
        let previous = boundary_in(&metadata);
        if let Some(boundary) = trim_to_budget(&mut messages, budget, overhead(input), keep_last, previous) {
            set_boundary(&mut metadata, boundary);
        }
        rounds.push(object([("messages", write(messages)), ("metadata", metadata.clone())]));
    }
    Ok(object([("rounds", Value::Array(rounds))]))
}

fn overhead(input: &Value) -> u64 {
    let tools = list_of(input, "tools").unwrap_or_default();
    let bytes = |tool: &Value| {
        let text = |key: &str| tool.get(key).and_then(Value::as_str).map_or(0, str::len);
        let schema = tool.get("parameters").map_or(0, |schema| schema.to_json().len());
        (text("name") + text("description") + schema) as u64
    };
    tools.iter().map(|tool| tool_tokens(bytes(tool))).sum()
}

fn read(messages: &[Value]) -> Result<Vec<PeerMessage>, String> {
    messages.iter().map(PeerMessage::read).collect()
}

fn write(messages: Vec<PeerMessage>) -> Value {
    Value::Array(messages.into_iter().map(PeerMessage::write).collect())
}

fn whole_number(value: &Value) -> Result<usize, String> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| format!("{} is no whole number", value.to_json()))
}
