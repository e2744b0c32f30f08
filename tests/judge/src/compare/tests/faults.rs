//! Traces that differ, and are found.

use serde_json::json;

use super::{events_mut, fails, goldens, judged, noticed, passes, tagged};
use crate::compare::compare;
use crate::compare::words::{EXTENSION, kind};

#[test]
fn a_golden_trace_passes_itself() {
    for g in goldens() {
        assert_eq!(judged(&g, &g), Vec::<String>::new(), "{}", g["name"]);
        assert_eq!(compare(&g, &g, true), Vec::<String>::new());
    }
}

#[test]
fn a_lost_turn_end_is_noticed() {
    noticed("turn_end", |t| {
        let e = t["events"].as_array_mut().unwrap();
        e.iter().position(|e| e["type"] == "turn_end").map(|i| e.remove(i)).is_some()
    });
}

#[test]
fn a_lost_tool_end_is_noticed() {
    noticed("tool end", |t| {
        let e = t["events"].as_array_mut().unwrap();
        e.iter().position(|e| e["type"] == "tool_execution_end").map(|i| e.remove(i)).is_some()
    });
}

#[test]
fn a_doubled_message_start_is_noticed() {
    noticed("message_start", |t| {
        let e = t["events"].as_array_mut().unwrap();
        e.iter()
            .position(|e| e["type"] == "message_start")
            .map(|i| e.insert(i, json!({"type": "message_start"})))
            .is_some()
    });
}

#[test]
fn a_lost_model_call_is_noticed() {
    noticed("model call", |t| t["model_calls"].as_array_mut().unwrap().pop().is_some());
}

#[test]
fn a_message_missing_from_a_model_call_is_noticed() {
    noticed("message of a call", |t| {
        t["model_calls"].as_array_mut().unwrap().last_mut().is_some_and(|c| {
            let m = c["messages"].as_array_mut().unwrap();
            !m.is_empty() && {
                m.remove(0);
                true
            }
        })
    });
}

#[test]
fn a_changed_final_text_is_noticed() {
    noticed("final text", |t| {
        let m = t["final_messages"].as_array_mut().unwrap();
        m.iter_mut().find(|m| m["role"] == "user").map(|m| m["text"] = "changed".into()).is_some()
    });
}

#[test]
fn a_flipped_error_flag_is_noticed() {
    noticed("is_error", |t| {
        let m = t["final_messages"].as_array_mut().unwrap();
        m.iter_mut()
            .find(|m| m["role"] == "tool_result" && !m["text"].as_str().unwrap().starts_with("Transfer to "))
            .map(|m| m["is_error"] = (!m["is_error"].as_bool().unwrap()).into())
            .is_some()
    });
}

#[test]
fn an_unwanted_execution_is_noticed() {
    noticed("execution", |t| {
        let extra = json!({"id": "ghost", "name": "ghost", "arguments": {}});
        match t["executions"].as_array_mut() {
            Some(e) => e.push(extra),
            None => t["executions"] = json!([extra]),
        }
        true
    });
}

#[test]
fn calls_that_end_at_the_same_time_may_end_in_any_order() {
    let mut swapped = 0;
    for g in goldens() {
        let mut t = g.clone();
        let e = t["events"].as_array_mut().unwrap();
        for i in 1..e.len() {
            let (a, b) = (&e[i - 1], &e[i]);
            if a["type"] == b["type"]
                && a["type"].as_str().unwrap().starts_with("tool_execution")
                && a["id"] != b["id"]
                && a["t"] == b["t"]
                && a["group_order"].is_null()
            {
                e.swap(i - 1, i);
                swapped += 1;
                break;
            }
        }
        assert_eq!(judged(&g, &t), Vec::<String>::new(), "{}", g["name"]);
    }
    assert!(swapped > 5);
}

#[test]
fn a_wrong_finishing_order_is_noticed() {
    let g = goldens().into_iter().find(|g| g["name"] == "three_tools_out_of_order").unwrap();
    let mut t = g.clone();
    let e = t["events"].as_array_mut().unwrap();
    let ends: Vec<usize> = (0..e.len()).filter(|i| e[*i]["type"] == "tool_execution_end").collect();
    e.swap(ends[0], ends[2]);
    assert!(!judged(&g, &t).is_empty());
}

#[test]
fn events_of_other_types_are_ignored() {
    for g in goldens() {
        let mut t = g.clone();
        t["events"].as_array_mut().unwrap().insert(1, json!({"type": "my_engine_event"}));
        assert_eq!(judged(&g, &t), Vec::<String>::new(), "{}", g["name"]);
    }
}

#[test]
fn an_engine_without_extension_events_passes() {
    for g in goldens() {
        let mut t = g.clone();
        t["events"].as_array_mut().unwrap().retain(|e| !EXTENSION.contains(&kind(e)));
        assert_eq!(judged(&g, &t), Vec::<String>::new(), "{}", g["name"]);
    }
}

#[test]
fn calls_that_the_golden_does_not_know_are_noticed() {
    let ghost = json!([{"id": "ghost", "name": "t", "arguments": {}}]);
    for (list, k) in [("events", "message_end"), ("events", "turn_end"), ("final_messages", "")] {
        noticed("an unwanted call", |t| {
            let m = t[list].as_array_mut().unwrap();
            m.iter_mut()
                .find(|m| {
                    kind(m) == k
                        && m["stop_reason"].is_string()
                        && m["tool_calls"].is_null()
                        && (!k.is_empty() || m["role"] == "assistant")
                })
                .map(|m| m["tool_calls"] = ghost.clone())
                .is_some()
        });
    }
}

#[test]
fn an_informative_golden_still_wants_a_whole_trace() {
    let mut applied = 0;
    for g in goldens().iter().filter(|g| tagged(g, &["informative"])) {
        applied += 1;
        passes(g, g);
        let mut other = g.clone();
        other["final_messages"][0]["text"] = "changed".into();
        passes(g, &other);
        assert!(compare(g, &other, false).iter().all(|p| p.starts_with("informative")));
        let mut open = g.clone();
        events_mut(&mut open).retain(|e| kind(e) != "agent_end");
        fails("a run that does not end", g, &open);
    }
    assert!(applied > 0);
}
