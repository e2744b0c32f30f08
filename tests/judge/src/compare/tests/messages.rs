//! Messages that may say more or less.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{batch_golden, events_mut, fails, goldens, passes, result, tagged, untagged};
use crate::compare::compare;
use crate::compare::words::{failed, kind, shown};

/// Sets a key of every failed message, wherever it appears.
fn set_in_failed(g: &Value, key: &str, value: &Value) -> Value {
    let mut t = g.clone();
    for list in ["events", "final_messages"] {
        for m in t[list].as_array_mut().unwrap().iter_mut().filter(|m| failed(m)) {
            m[key] = value.clone();
        }
    }
    t
}

#[test]
fn a_failed_message_may_keep_what_it_showed() {
    let mut applied = 0;
    for g in goldens().iter().filter(|g| !tagged(g, &["informative"])) {
        let shown = shown(g);
        if shown.is_empty() {
            continue;
        }
        fails("an invented text", g, &set_in_failed(g, "text", &json!("invented")));
        let calls = json!([{"id": "ghost", "name": "t", "arguments": {}}]);
        fails("an invented call", g, &set_in_failed(g, "tool_calls", &calls));
        if tagged(g, &["abort_partial", "error_partial"]) && !shown[0].text.is_empty() {
            applied += 1;
            passes(g, &set_in_failed(g, "text", &json!(shown[0].text)));
            let more = json!(format!("{} and more", shown[0].text));
            fails("more than was shown", g, &set_in_failed(g, "text", &more));
        }
    }
    assert!(applied > 2, "{applied}");
}

#[test]
fn an_aborted_message_may_keep_text_and_calls() {
    let message = |text: &str, calls: &Value| json!({"role": "assistant", "text": text, "tool_calls": calls, "stop_reason": "aborted", "error": "x"});
    let event = |k: &str, text: &str, calls: &Value, results: &Value| {
        let mut e = message(text, calls);
        e["type"] = k.into();
        if k == "turn_end" {
            e["reason"] = "aborted".into();
            e["tool_results"] = results.clone();
        }
        e
    };
    let trace = |tags: &[&str], text: &str, calls: Value, results: Value, ends: Vec<Value>| {
        let mut events = vec![
            json!({"type": "agent_start"}),
            json!({"type": "turn_start"}),
            json!({"type": "message_start"}),
            json!({"type": "message_update", "kind": "text", "index": 0, "delta": "Let me"}),
            json!({"type": "message_update", "kind": "tool_call", "index": 1, "delta": "{}"}),
            event("message_end", text, &calls, &results),
        ];
        events.extend(ends);
        events.push(event("turn_end", text, &calls, &results));
        events.push(json!({"type": "agent_end"}));
        let mut history = vec![message(text, &calls)];
        for r in results.as_array().unwrap() {
            history.push(json!({"role": "tool_result", "tool_call_id": r["id"], "text": r["text"],
                                "is_error": r["is_error"]}));
        }
        json!({"name": "synthetic", "divergences": tags, "events": events, "final_messages": history})
    };
    let tags = ["abort_partial", "cancel_reason"];
    let g = trace(&tags, "", json!([]), json!([]), vec![]);
    let call = json!([{"id": "a", "name": "t", "arguments": {}}]);
    let answer = json!([result("a", "tool call cancelled: operation aborted", true)]);
    let end = json!({"type": "tool_execution_end", "id": "a", "name": "t", "is_error": true,
                     "text": "tool call cancelled: operation aborted"});
    let text = "Let me";
    passes(&g, &g);
    passes(&g, &trace(&tags, text, json!([]), json!([]), vec![]));
    passes(&g, &trace(&tags, text, call.clone(), json!([]), vec![]));
    passes(&g, &trace(&tags, text, call.clone(), answer.clone(), vec![end.clone()]));
    let t = trace(&tags, text, call.clone(), answer.clone(), vec![end.clone()]);
    fails("no tag", &untagged(&g, "abort_partial"), &t);
    let two = json!([{"id": "a", "name": "t", "arguments": {}}, {"id": "b", "name": "t", "arguments": {}}]);
    fails("more calls than were shown", &g, &trace(&tags, text, two, json!([]), vec![]));
    let good = json!([result("a", "done", false)]);
    fails("a call that worked", &g, &trace(&tags, text, call.clone(), good, vec![]));
    let twice = vec![end.clone(), end];
    fails("two ends", &g, &trace(&tags, text, call, answer, twice));
    // A committed message that an abort interrupts while its calls run: text and calls, with results.
    let whole = |calls: &str, text: &str| {
        let mut g = batch_golden(
            &["abort_end"],
            &["a"],
            vec![],
            vec![result("a", "tool call cancelled: operation aborted", true)],
        );
        g["final_messages"][1]["stop_reason"] = calls.into();
        g["final_messages"][1]["text"] = text.into();
        g
    };
    passes(&whole("aborted", "Let me"), &whole("aborted", "Let me"));
    fails("not aborted", &whole("aborted", "Let me"), &whole("tool_use", "Let me"));
    fails("another text", &whole("aborted", "Let me"), &whole("aborted", ""));
}

#[test]
fn events_may_have_more_fields() {
    for g in goldens() {
        let mut t = g.clone();
        for e in events_mut(&mut t) {
            if kind(e) == "agent_end" {
                e["stop_reason"] = "completed".into();
                e["messages"] = json!([{"role": "user", "text": "Go."}]);
                e["turns"] = 7.into();
                e["usage"] = json!({"input": 1});
                e["error"] = json!({"code": "network"});
            }
            e["seq"] = 1.into();
        }
        passes(&g, &t);
    }
}

#[test]
fn a_failed_message_need_not_be_replayed() {
    let user = |text: &str| json!({"role": "user", "text": text});
    let error =
        |text: &str| json!({"role": "assistant", "text": text, "stop_reason": "error", "error": "bad"});
    let build = |tags: &[&str], messages: Vec<Value>| {
        let mut g = batch_golden(tags, &[], vec![], vec![]);
        g["model_calls"] = json!([{"n": 1, "messages": messages}]);
        g
    };
    let tags = ["error_message_replayed"];
    let g = build(&tags, vec![user("One"), error(""), user("Two")]);
    let without = build(&[], vec![user("One"), user("Two")]);
    passes(&g, &g);
    passes(&g, &without);
    fails("no tag", &untagged(&g, "error_message_replayed"), &without);
    fails("less", &g, &build(&[], vec![user("One")]));
    fails("other words", &g, &build(&[], vec![user("One"), error("x"), user("Two")]));
    for g in goldens().iter().filter(|g| tagged(g, &tags)) {
        let mut t = g.clone();
        for c in t["model_calls"].as_array_mut().unwrap() {
            c["messages"].as_array_mut().unwrap().retain(|m| !failed(m));
        }
        assert_ne!(*g, t);
        passes(g, &t);
    }
}

#[test]
fn a_call_cut_by_max_tokens_has_its_result_once_or_as_recorded() {
    let mut applied = 0;
    for g in goldens().iter().filter(|g| tagged(g, &["max_tokens_dup"])) {
        applied += 1;
        assert_eq!(compare(g, g, false), Vec::<String>::new());
        let once = |m: &mut Value| {
            let mut seen = HashSet::new();
            m.as_array_mut()
                .unwrap()
                .retain(|m| m["role"] != "tool_result" || seen.insert(m["tool_call_id"].to_string()));
        };
        let mut t = g.clone();
        once(&mut t["final_messages"]);
        for c in t["model_calls"].as_array_mut().unwrap() {
            once(&mut c["messages"]);
        }
        for e in events_mut(&mut t) {
            if let Some(n) = e["snapshot_message_count"].as_u64() {
                e["snapshot_message_count"] = (n - 1).into();
            }
        }
        assert_ne!(*g, t);
        passes(g, &t);
        let mut lost = t.clone();
        lost["final_messages"].as_array_mut().unwrap().retain(|m| m["role"] != "tool_result");
        fails("no result", g, &lost);
        let mut thrice = g.clone();
        let m = thrice["final_messages"].as_array_mut().unwrap();
        let at = m.iter().position(|m| m["role"] == "tool_result").unwrap();
        m.insert(at, m[at].clone());
        m.insert(at, m[at].clone());
        fails("too many results", g, &thrice);
    }
    assert!(applied > 0);
}
