//! Golden traces that are changed, and what the judge says of them.

mod faults;
mod messages;
mod order;

use serde_json::{Value, json};

use super::words::list;
use super::{compare, invariants};

pub(super) fn goldens() -> Vec<Value> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/oracle");
    let mut out = Vec::new();
    {
        let dir = std::fs::read_dir(root.join("golden")).unwrap();
        for f in dir.flatten() {
            out.push(serde_json::from_str(&std::fs::read_to_string(f.path()).unwrap()).unwrap());
        }
    }
    assert!(!out.is_empty());
    out
}

pub(super) fn judged(g: &Value, t: &Value) -> Vec<String> {
    let known = invariants(g);
    compare(g, t, false).into_iter().filter(|p| !known.contains(p) && !p.starts_with("informative")).collect()
}

/// Applies a change to copies of the goldens, and demands that it is noticed wherever it applied.
pub(super) fn noticed(what: &str, change: impl Fn(&mut Value) -> bool) {
    let mut applied = 0;
    let mut missed = Vec::new();
    for g in goldens() {
        if g["divergences"].as_array().is_some_and(|d| d.contains(&json!("informative"))) {
            continue;
        }
        let mut t = g.clone();
        if change(&mut t) {
            applied += 1;
            if judged(&g, &t).is_empty() {
                missed.push(g["name"].to_string());
            }
        }
    }
    assert!(applied > 5, "{what}: applied to {applied}");
    assert!(missed.is_empty(), "{what}: not noticed in {missed:?}");
}

pub(super) fn tagged(g: &Value, tags: &[&str]) -> bool {
    tags.iter().any(|tag| list(g, "divergences").contains(&json!(tag)))
}
pub(super) fn untagged(g: &Value, tag: &str) -> Value {
    let mut g = g.clone();
    let left: Vec<Value> = list(&g, "divergences").into_iter().filter(|d| d != tag).collect();
    g["divergences"] = left.into();
    g
}
pub(super) fn events_mut(t: &mut Value) -> &mut Vec<Value> {
    t["events"].as_array_mut().unwrap()
}
pub(super) fn with_events(g: &Value, events: Vec<Value>) -> Value {
    let mut t = g.clone();
    t["events"] = events.into();
    t
}
pub(super) fn passes(g: &Value, t: &Value) {
    assert_eq!(judged(g, t), Vec::<String>::new(), "{}", g["name"]);
}
pub(super) fn fails(what: &str, g: &Value, t: &Value) {
    assert!(!judged(g, t).is_empty(), "{what} not noticed in {}", g["name"]);
}
pub(super) fn ask(id: &str, name: &str) -> [Value; 2] {
    [
        json!({"type": "tool_approval_requested", "id": id, "name": name, "arguments": {}}),
        json!({"type": "tool_approval_resolved", "id": id, "name": name, "approved": false}),
    ]
}
/// Makes a golden of one turn: the calls `a`, `b`, … of tool `t`, the events
/// of the batch, the results.
pub(super) fn batch_golden(tags: &[&str], calls: &[&str], batch: Vec<Value>, results: Vec<Value>) -> Value {
    let calls: Vec<Value> = calls.iter().map(|id| json!({"id": id, "name": "t", "arguments": {}})).collect();
    let mut events = vec![
        json!({"type": "agent_start"}),
        json!({"type": "turn_start"}),
        json!({"type": "message_start"}),
        json!({"type": "message_end", "text": "", "tool_calls": calls, "stop_reason": "tool_use"}),
    ];
    events.extend(batch);
    events.push(json!({"type": "turn_end", "reason": "steering_interrupt", "tool_results": results}));
    events.push(json!({"type": "agent_end"}));
    let mut history = vec![
        json!({"role": "user", "text": "Go."}),
        json!({"role": "assistant", "text": "", "tool_calls": calls, "stop_reason": "tool_use"}),
    ];
    for r in &results {
        history.push(json!({"role": "tool_result", "tool_call_id": r["id"], "text": r["text"],
                            "is_error": r["is_error"]}));
    }
    json!({"name": "synthetic", "divergences": tags, "events": events, "final_messages": history,
           "model_calls": [{"n": 1, "messages": [{"role": "user", "text": "Go."}]},
                           {"n": 2, "messages": history}]})
}
pub(super) fn result(id: &str, text: &str, is_error: bool) -> Value {
    json!({"id": id, "text": text, "is_error": is_error})
}
