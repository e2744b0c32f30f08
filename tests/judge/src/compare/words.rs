//! What is read of a trace, and the words that it may have.

use std::collections::HashSet;

use serde_json::Value;

/// Events that the specification's event table does not list.
pub(super) const EXTENSION: [&str; 7] = [
    "before_llm_call",
    "tool_approval_requested",
    "tool_approval_resolved",
    "state_changed",
    "cache_action",
    "model_fallback",
    "transfer_initiated",
];

pub(super) const CORE: [&str; 12] = [
    "agent_start",
    "agent_end",
    "turn_start",
    "turn_end",
    "message_start",
    "message_update",
    "message_end",
    "tool_execution_start",
    "tool_execution_update",
    "tool_execution_end",
    "context_compacted",
    "oracle_hang",
];

/// Openings of engine-written result texts whose wording the specification leaves open.
pub(super) const FREE_WORDING: [&str; 8] = [
    "unknown tool: ",
    "tool execution panicked: ",
    "Tool call '",
    "error: tool call was incomplete",
    "policy stopped tool batch",
    "tool call cancelled: operation aborted",
    "tool call cancelled: transfer initiated",
    "custom tool execution strategy",
];

pub(super) fn str_of<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_default()
}
pub(super) fn kind(e: &Value) -> &str {
    str_of(e, "type")
}
pub(super) fn list(v: &Value, key: &str) -> Vec<Value> {
    v[key].as_array().cloned().unwrap_or_default()
}
pub(super) fn is_tool(e: &Value) -> bool {
    kind(e).starts_with("tool_")
}
pub(super) fn failed(v: &Value) -> bool {
    matches!(str_of(v, "stop_reason"), "error" | "aborted")
}
pub(super) fn is_approval(e: &Value) -> bool {
    kind(e).starts_with("tool_approval_")
}
pub(super) fn ids(v: &[Value], key: &str) -> Vec<String> {
    v.iter().map(|x| str_of(x, key).to_string()).collect()
}

/// What a failed message of the golden had shown before it failed.
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: usize,
}

pub(super) fn shown(golden: &Value) -> Vec<Shown> {
    let mut out = Vec::new();
    let mut updates: Vec<Value> = Vec::new();
    for e in list(golden, "events") {
        match kind(&e) {
            "message_start" => updates.clear(),
            "message_update" => updates.push(e),
            "message_end" if failed(&e) => {
                let join = |k: &str| -> String {
                    let of_kind = updates.iter().filter(|u| str_of(u, "kind") == k);
                    of_kind.map(|u| str_of(u, "delta")).collect()
                };
                let blocks: HashSet<String> = updates
                    .iter()
                    .filter(|u| str_of(u, "kind") == "tool_call")
                    .map(|u| u["index"].to_string())
                    .collect();
                out.push(Shown { text: join("text"), thinking: join("thinking"), calls: blocks.len() });
            }
            _ => {}
        }
    }
    out
}

/// The `context_compacted` events of each run; the first list has those before every run.
pub(super) fn compactions(trace: &Value) -> Vec<Vec<Value>> {
    let mut runs = vec![Vec::new()];
    for e in list(trace, "events") {
        match kind(&e) {
            "agent_start" => runs.push(Vec::new()),
            "context_compacted" => runs.last_mut().expect("never empty").push(e),
            _ => {}
        }
    }
    runs
}
