//! Compares traces of format 2. What both engines play must be the same, word for word; only who of several agents that run
//! at the same instant is first is nobody's business.

use serde_json::Value;

/// Returns what is otherwise than in the golden trace, a line for each part.
pub(crate) fn compare(golden: Value, trace: Value) -> Vec<String> {
    let [golden, trace] = [golden, trace].map(in_order);
    let (Value::Object(golden), Value::Object(trace)) = (golden, trace) else {
        return vec!["a trace is an object".to_owned()];
    };
    let parts = golden.keys().chain(trace.keys().filter(|key| !golden.contains_key(*key)));
    parts.filter_map(|part| difference(part, golden.get(part), trace.get(part))).collect()
}

fn difference(part: &str, golden: Option<&Value>, trace: Option<&Value>) -> Option<String> {
    if golden == trace {
        return None;
    }
    let (Some(Value::Array(golden)), Some(Value::Array(trace))) = (golden, trace) else {
        return Some(format!("{part}: want {}, got {}", shown(golden), shown(trace)));
    };
    let at = (0..golden.len().max(trace.len())).find(|at| golden.get(*at) != trace.get(*at))?;
    Some(format!("{part} {at}: want {}, got {}", shown(golden.get(at)), shown(trace.get(at))))
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}

/// Puts what happens at the same instant in several agents into the order of their calls, and names options as JavaScript does.
fn in_order(mut trace: Value) -> Value {
    let is_inside = |event: &Value| event["type"] == "subagent_event";
    let of_tools = |event: &Value| {
        let name = event["type"].as_str().unwrap_or_default();
        ["subagent_event", "question_"].iter().any(|word| name.starts_with(word)) || name.starts_with("tool_")
    };
    if let Some(events) = trace["events"].as_array_mut() {
        let together = |a: &Value, b: &Value| of_tools(a) && of_tools(b) && a["t"] == b["t"];
        for same in events.chunk_by_mut(together).filter(|same| same.iter().any(is_inside)) {
            same.sort_by_key(lane);
        }
    }
    if let Some(calls) = trace["model_calls"].as_array_mut()
        && calls.iter().any(|call| call.get("path").is_some())
    {
        calls.sort_by_key(|call| (call["t"].as_u64(), call["path"].to_string()));
        for (n, call) in (1_u64..).zip(calls) {
            call["n"] = n.into();
        }
    }
    name_as_javascript(&mut trace);
    trace
}

/// The call of the agent itself that an event belongs to.
fn lane(event: &Value) -> String {
    let of = |value: &Value| value.as_str().map(str::to_owned);
    of(&event["path"][0]).or_else(|| of(&event["call"])).or_else(|| of(&event["id"])).unwrap_or_default()
}

fn name_as_javascript(value: &mut Value) {
    match value {
        Value::String(text) if text.contains("`max_depth`") => {
            *text = text.replace("`max_depth`", "`maxDepth`")
        }
        Value::Array(items) => items.iter_mut().for_each(name_as_javascript),
        Value::Object(members) => members.values_mut().for_each(name_as_javascript),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn inside(call: &str, event: &str, t: u64) -> Value {
        json!({ "type": "subagent_event", "call": call, "path": [call], "event": event, "t": t })
    }

    #[test]
    fn agents_that_run_at_once_may_be_told_in_any_order_and_nothing_else_may() {
        let golden = json!({ "events": [inside("a", "x", 0), inside("a", "y", 0), inside("b", "x", 0)] });
        let mixed = json!({ "events": [inside("b", "x", 0), inside("a", "x", 0), inside("a", "y", 0)] });
        assert_eq!(compare(golden.clone(), mixed), Vec::<String>::new());
        let wrong = json!({ "events": [inside("a", "y", 0), inside("a", "x", 0), inside("b", "x", 0)] });
        assert_eq!(compare(golden.clone(), wrong).len(), 1);
        let later = json!({ "events": [inside("a", "x", 0), inside("b", "x", 0), inside("a", "y", 10)] });
        assert_eq!(compare(golden.clone(), later).len(), 1);
        let more = json!({ "events": golden["events"], "hooks": [1] });
        assert_eq!(compare(golden, more), ["hooks: want nothing, got [1]"]);
    }

    #[test]
    fn without_agents_inside_the_order_is_as_written() {
        let start = |id: &str| json!({ "type": "tool_execution_start", "id": id, "t": 0 });
        let [one, other] = [["a", "b"], ["b", "a"]].map(|ids| json!({ "events": ids.map(start).to_vec() }));
        assert_eq!(compare(one, other).len(), 1);
    }
}
