//! Judges another engine's trace against a golden one. The rules are in `tests/data/oracle/README.md`.

mod judge;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;

use judge::Judge;
use serde_json::Value;
use words::{failed, kind, list, str_of};

/// Rules that hold for every trace, whatever the scenario.
pub fn invariants(trace: &Value) -> Vec<String> {
    let mut out = Vec::new();
    let (mut run, mut turn, mut message) = (false, false, false);
    let mut ended = HashSet::new();
    for e in list(trace, "events") {
        let mut need = |ok: bool, what: &str| {
            if !ok {
                out.push(format!("invariant: {what} ({})", kind(&e)));
            }
        };
        match kind(&e) {
            "agent_start" => {
                need(!run, "runs do not nest");
                run = true;
            }
            "agent_end" => {
                need(run && !turn, "a run ends outside a turn");
                run = false;
            }
            "turn_start" => {
                need(run && !turn, "turns do not nest");
                turn = true;
            }
            "turn_end" => {
                need(turn && !message, "a turn ends after its message ended");
                turn = false;
                message = false;
                ended.clear();
            }
            "message_start" => {
                need(turn && !message, "one message at a time");
                message = true;
            }
            "message_update" => need(message, "updates belong to an open message"),
            "context_compacted" => need(run, "a compaction belongs to a run"),
            "message_end" => {
                need(message, "a message ends after it started");
                message = false;
            }
            "tool_execution_end" => {
                need(ended.insert(str_of(&e, "id").to_string()), "a call ends once");
            }
            _ => {}
        }
    }
    if run || turn || message {
        out.push("invariant: everything that starts ends".into());
    }
    let history = list(trace, "final_messages");
    for (i, m) in history.iter().enumerate() {
        for c in list(m, "tool_calls") {
            if failed(m) && !history[i + 1..].iter().any(|r| r["tool_call_id"] == c["id"]) {
                continue;
            }
            let n = history[i + 1..].iter().filter(|r| r["tool_call_id"] == c["id"]).count();
            if n != 1 {
                out.push(format!("invariant: call {} has {n} results in the history", c["id"]));
            }
        }
    }
    out
}

pub fn compare(golden: &Value, trace: &Value, strict: bool) -> Vec<String> {
    let mut j = Judge::new(golden, trace);
    if strict {
        for key in ["events", "final_messages", "model_calls", "executions", "outcomes"] {
            if golden[key] != trace[key] {
                j.out.push(format!("{key} differ"));
            }
        }
        return j.out;
    }
    j.events(golden, trace);
    j.messages("final message", &list(golden, "final_messages"), &list(trace, "final_messages"), false);
    let (gc, tc) = (list(golden, "model_calls"), list(trace, "model_calls"));
    if gc.len() == tc.len() {
        for (i, (g, t)) in gc.iter().zip(&tc).enumerate() {
            let at = format!("model call {}", i + 1);
            for key in ["model", "system_prompt", "tools", "api_key"] {
                if !t[key].is_null() && g[key] != t[key] {
                    j.out.push(format!("{at}: {key}: want {}, got {}", g[key], t[key]));
                }
            }
            let drop = j.has("error_message_replayed");
            j.messages(&at, &list(g, "messages"), &list(t, "messages"), drop);
        }
    } else {
        j.out.push(format!("want {} model calls, got {}", gc.len(), tc.len()));
    }
    let ran = |v: &Value| {
        let mut r: Vec<String> = list(v, "executions")
            .iter()
            .map(|e| format!("{} {} {}", e["id"], e["name"], e["arguments"]))
            .collect();
        r.sort();
        r
    };
    if ran(golden) != ran(trace) {
        j.out.push(format!("executions: want {:?}, got {:?}", ran(golden), ran(trace)));
    }
    for key in ["approvals", "policy_log", "transforms", "metrics", "outcomes"] {
        if !trace[key].is_null() {
            let (mut g, mut t) = (list(golden, key), list(trace, key));
            if key == "approvals" && j.has("approval_sequential") {
                // In any order; and the trace may ask about calls that the golden never reached.
                t.retain(|a| !j.unasked(str_of(a, "id")));
                g.sort_by_key(|a| str_of(a, "id").to_string());
                t.sort_by_key(|a| str_of(a, "id").to_string());
            }
            j.zip(key, &g, &t, &[]);
        }
    }
    if j.has("informative") {
        j.out.iter_mut().for_each(|p| p.insert_str(0, "informative, not a failure: "));
    }
    // The rules for every trace apply in every scenario, unless the golden itself breaks one.
    let known = if j.has("informative") || j.has("max_tokens_dup") { invariants(golden) } else { Vec::new() };
    j.out.extend(invariants(trace).into_iter().filter(|p| !known.contains(p)));
    j.out
}
