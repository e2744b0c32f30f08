//! Events that may stand elsewhere, or be there more often.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ask, batch_golden, events_mut, fails, goldens, passes, result, tagged, untagged, with_events};
use crate::compare::judge::Judge;
use crate::compare::words::{is_approval, is_tool, kind, list, str_of};

/// All approvals of a batch come first, including those for calls that the golden never asked about.
fn asked_at_once(g: &Value) -> Value {
    let asked = Judge::new(g, g).asked;
    let mut events = Vec::new();
    let mut batch: Vec<Value> = Vec::new();
    let mut calls: Vec<(String, String)> = Vec::new();
    let mut extra = Vec::new();
    for e in list(g, "events") {
        if kind(&e) == "message_end" {
            for c in list(&e, "tool_calls") {
                calls.push((str_of(&c, "id").into(), str_of(&c, "name").into()));
            }
        }
        if is_tool(&e) {
            batch.push(e);
            continue;
        }
        if kind(&e) == "turn_end" && !batch.is_empty() {
            for (id, name) in calls.drain(..).filter(|(id, _)| !asked.contains(id)) {
                batch.extend(ask(&id, &name));
                extra.push(json!({"id": id, "name": name, "arguments": {}}));
            }
            batch.sort_by_key(|e| match kind(e) {
                "tool_approval_requested" => 0,
                "tool_approval_resolved" => 1,
                _ => 2,
            });
            events.append(&mut batch);
        }
        events.push(e);
    }
    let mut t = with_events(g, events);
    t["approvals"].as_array_mut().unwrap().extend(extra);
    t
}

#[test]
fn all_approvals_of_a_batch_may_be_asked_at_once() {
    let mut beyond = 0;
    for g in goldens().iter().filter(|g| tagged(g, &["approval_sequential"])) {
        let t = asked_at_once(g);
        passes(g, &t);

        // With the ends of cancelled calls, as in an engine that does both.
        let mut ended = Vec::new();
        for e in list(&t, "events") {
            if kind(&e) == "turn_end" && tagged(g, &["abort_end"]) {
                for r in list(&e, "tool_results") {
                    let call = list(&e, "tool_calls");
                    let call = call.iter().find(|c| c["id"] == r["id"]).unwrap();
                    ended.push(json!({"type": "tool_execution_end", "id": r["id"], "name": call["name"],
                                      "text": "cancelled", "is_error": true}));
                }
            }
            ended.push(e);
        }
        passes(g, &with_events(&t, ended));

        let asks = list(g, "approvals").len();
        if list(&t, "approvals").len() > asks {
            beyond += 1;
            fails("more asks", &untagged(g, "approval_sequential"), &t);
        }

        let mut ghost = t.clone();
        let at = list(&t, "events").iter().position(is_approval).unwrap();
        events_mut(&mut ghost).splice(at..at, ask("ghost", "t"));
        fails("an ask for a call nobody made", g, &ghost);

        let mut ghost = t.clone();
        let entry = json!({"id": "ghost", "name": "t", "arguments": {}});
        ghost["approvals"].as_array_mut().unwrap().push(entry);
        fails("an approval of a call nobody made", g, &ghost);

        let mut twice = t.clone();
        let first = t["approvals"][0].clone();
        twice["approvals"].as_array_mut().unwrap().push(first);
        fails("the same call asked twice", g, &twice);

        let mut lost = t.clone();
        lost["approvals"].as_array_mut().unwrap().remove(0);
        fails("an approval not asked", g, &lost);

        let mut lost = t.clone();
        events_mut(&mut lost).remove(at);
        fails("an approval event lost", g, &lost);

        let mut other = t.clone();
        let resolved =
            events_mut(&mut other).iter_mut().find(|e| kind(e) == "tool_approval_resolved").unwrap();
        resolved["approved"] = (resolved["approved"] != true).into();
        fails("another decision", g, &other);
    }
    assert!(beyond > 0);
}

#[test]
fn approvals_stand_outside_a_strict_order() {
    let strict = |mut e: Value| {
        e["group_order"] = "strict".into();
        e
    };
    let start = |id: &str| json!({"type": "tool_execution_start", "id": id, "name": "t", "arguments": {}});
    let end = |id: &str| json!({"type": "tool_execution_end", "id": id, "name": "t", "text": "ok", "is_error": false});
    let yes = |id: &str| {
        let [asked, mut resolved] = ask(id, "t");
        resolved["approved"] = true.into();
        [asked, resolved]
    };
    let ([a1, a2], [b1, b2]) = (yes("a"), yes("b"));
    let order = |v: Vec<&Value>| -> Vec<Value> { v.into_iter().cloned().map(strict).collect() };
    let (sa, ea, sb, eb) = (start("a"), end("a"), start("b"), end("b"));
    let batch = order(vec![&a1, &a2, &b1, &b2, &sb, &eb, &sa, &ea]);
    let mut g = batch_golden(
        &["approval_sequential"],
        &["a", "b"],
        batch,
        vec![result("a", "ok", false), result("b", "ok", false)],
    );
    g["approvals"] = json!([{"id": "a", "name": "t"}, {"id": "b", "name": "t"}]);
    let play = |v: Vec<&Value>| {
        let mut t = g.clone();
        events_mut(&mut t).splice(4..12, order(v));
        t
    };
    passes(&g, &g);
    let at_once = play(vec![&a1, &b1, &b2, &a2, &sb, &eb, &sa, &ea]);
    passes(&g, &at_once);
    fails("strict approvals", &untagged(&g, "approval_sequential"), &at_once);
    fails("tools in another order", &g, &play(vec![&a1, &b1, &a2, &b2, &sa, &ea, &sb, &eb]));
    fails("a start before its approval", &g, &play(vec![&a1, &b1, &a2, &sb, &b2, &eb, &sa, &ea]));
    fails("a resolution before its question", &g, &play(vec![&b2, &b1, &a1, &a2, &sb, &eb, &sa, &ea]));
}

#[test]
fn unknown_events_may_stand_anywhere() {
    for g in goldens() {
        let mut events = Vec::new();
        for e in list(&g, "events") {
            events.push(json!({"type": "retry_attempt", "attempt": 1}));
            events.push(json!({"type": "tool_queue", "id": "a"}));
            events.push(e);
        }
        events.push(json!({"type": "my_engine_event", "text": "x"}));
        passes(&g, &with_events(&g, events));
    }
}

#[test]
fn a_compaction_may_stand_anywhere_inside_its_run() {
    let mut moved = 0;
    for g in goldens() {
        let events = list(&g, "events");
        let mut without = events.clone();
        let Some(from) = events.iter().position(|e| kind(e) == "context_compacted") else {
            let mut t = g.clone();
            let extra = json!({"type": "context_compacted", "dropped_count": 1});
            events_mut(&mut t).insert(1, extra);
            if !tagged(&g, &["informative"]) {
                fails("a compaction that never was", &g, &t);
            }
            continue;
        };
        let compaction = without.remove(from);
        if without.iter().any(|e| kind(e) == "context_compacted") {
            fails("a lost compaction", &g, &with_events(&g, without));
            let (all, rest): (Vec<Value>, Vec<Value>) =
                events.into_iter().partition(|e| kind(e) == "context_compacted");
            for at in 1..rest.len() {
                let mut t = rest.clone();
                t.splice(at..at, all.clone());
                passes(&g, &with_events(&g, t));
                moved += 1;
            }
            continue;
        }
        fails("a lost compaction", &g, &with_events(&g, without.clone()));
        let last = without.iter().rposition(|e| kind(e) == "agent_end").unwrap();
        for at in 1..=last {
            let mut t = without.clone();
            t.insert(at, compaction.clone());
            passes(&g, &with_events(&g, t));
            moved += 1;
        }
        for at in [0, without.len()] {
            let mut t = without.clone();
            t.insert(at, compaction.clone());
            fails("a compaction outside its run", &g, &with_events(&g, t));
        }
        let mut t = g.clone();
        events_mut(&mut t)[from]["dropped_count"] = 99.into();
        fails("another report", &g, &t);
        let mut t = g.clone();
        events_mut(&mut t).insert(from, compaction);
        fails("a doubled compaction", &g, &t);
    }
    assert!(moved > 20, "{moved}");
}

#[test]
fn a_stopped_run_may_show_a_turn_without_a_message() {
    let turn = |end: Value| [json!({"type": "turn_start"}), end];
    let end = json!({"type": "turn_end", "reason": "complete", "message": null, "tool_results": []});
    let mut applied = 0;
    for g in goldens() {
        let last = list(&g, "events").iter().rposition(|e| kind(e) == "agent_end");
        let Some(last) = last.filter(|_| !tagged(&g, &["informative"])) else {
            continue;
        };
        let with = |end: &Value| {
            let mut t = g.clone();
            events_mut(&mut t).splice(last..last, turn(end.clone()));
            t
        };
        if !tagged(&g, &["pre_turn_stop"]) {
            fails("an empty turn", &g, &with(&end));
            continue;
        }
        applied += 1;
        passes(&g, &with(&end));
        let mut absent = end.clone();
        absent.as_object_mut().unwrap().remove("message");
        passes(&g, &with(&absent));
        for (key, value) in [
            ("message", json!({"text": "x"})),
            ("text", json!("x")),
            ("reason", json!("tools_executed")),
            ("tool_results", json!([result("a", "x", true)])),
        ] {
            let mut wrong = end.clone();
            wrong[key] = value;
            fails(key, &g, &with(&wrong));
        }
        let mut twice = with(&end);
        events_mut(&mut twice).splice(last..last, turn(end.clone()));
        fails("two empty turns", &g, &twice);
        let mut message = with(&end);
        let opened = [
            json!({"type": "message_start"}),
            json!({"type": "message_end", "text": "", "stop_reason": "stop"}),
        ];
        events_mut(&mut message).splice(last + 1..last + 1, opened);
        fails("a message in it", &g, &message);
    }
    assert!(applied > 0);
}

#[test]
fn a_call_that_never_ran_may_have_a_start_before_its_end() {
    let mut applied = 0;
    for g in goldens().iter().filter(|g| !tagged(g, &["informative"])) {
        let events = list(g, "events");
        let started = |id: &Value| events.iter().any(|e| kind(e) == "tool_execution_start" && e["id"] == *id);
        let Some(at) = events.iter().position(|e| kind(e) == "tool_execution_end" && !started(&e["id"]))
        else {
            continue;
        };
        applied += 1;
        let start = json!({"type": "tool_execution_start", "id": events[at]["id"],
                           "name": events[at]["name"], "arguments": {}});
        let mut t = g.clone();
        events_mut(&mut t).insert(at, start.clone());
        passes(g, &t);
        let mut t = g.clone();
        events_mut(&mut t).insert(at + 1, start.clone());
        fails("a start after the end", g, &t);
        let mut t = g.clone();
        let mut ghost = start;
        ghost["id"] = "ghost".into();
        events_mut(&mut t).insert(at, ghost);
        fails("a start of nothing", g, &t);
    }
    assert!(applied > 5, "{applied}");
}

#[test]
fn cancelled_calls_may_have_an_end() {
    let mut applied = 0;
    for g in goldens().iter().filter(|g| !tagged(g, &["informative"])) {
        let all = list(g, "events");
        let has = |k: &str, id: &str| all.iter().any(|e| kind(e) == k && str_of(e, "id") == id);
        let names: BTreeMap<String, String> = Judge::new(g, g).calls.into_iter().collect();
        let build = |change: &dyn Fn(&mut Value), starts: bool| {
            let (mut out, mut added) = (Vec::new(), 0);
            for e in &all {
                if kind(e) == "turn_end" {
                    for r in list(e, "tool_results") {
                        let id = str_of(&r, "id");
                        if has("tool_execution_end", id) {
                            continue;
                        }
                        added += 1;
                        if starts && !has("tool_execution_start", id) {
                            out.push(json!({"type": "tool_execution_start", "id": id,
                                            "name": names[id], "arguments": {}}));
                        }
                        let mut end = json!({"type": "tool_execution_end", "id": id, "name": names[id],
                                             "text": r["text"], "is_error": true});
                        change(&mut end);
                        out.push(end);
                    }
                }
                out.push(e.clone());
            }
            (with_events(g, out), added)
        };
        let (t, added) = build(&|_| (), false);
        if added == 0 {
            continue;
        }
        applied += 1;
        passes(g, &t);
        passes(g, &build(&|_| (), true).0);
        fails("no error", g, &build(&|e| e["is_error"] = false.into(), false).0);
        fails("no text", g, &build(&|e| e["text"] = "".into(), false).0);
        fails("a ghost", g, &build(&|e| e["id"] = "ghost".into(), false).0);
        fails("another name", g, &build(&|e| e["name"] = "other".into(), false).0);
        if tagged(g, &["steer_cancel_end"]) && !tagged(g, &["cancel_answer"]) {
            fails("free wording", g, &build(&|e| e["text"] = "stopped".into(), false).0);
        }
    }
    assert!(applied > 5, "{applied}");
}

#[test]
fn results_may_stand_in_the_order_of_the_calls() {
    let cancelled = "tool call cancelled: user requested steering interrupt";
    let end = |id: &str| json!({"type": "tool_execution_end", "id": id, "name": "t", "text": "ok", "is_error": false});
    let results = vec![result("c", "ok", false), result("a", cancelled, true), result("b", cancelled, true)];
    let tags = ["steer_result_order", "steer_cancel_end"];
    let g = batch_golden(&tags, &["a", "b", "c"], vec![end("c")], results.clone());
    let sorted = |order: [usize; 3]| {
        let r = order.iter().map(|i| results[*i].clone()).collect();
        let mut t = batch_golden(&tags, &["a", "b", "c"], vec![end("c")], r);
        t["name"] = "sorted".into();
        t
    };
    passes(&g, &g);
    passes(&g, &sorted([1, 2, 0]));
    fails("no tag", &untagged(&g, "steer_result_order"), &sorted([1, 2, 0]));
    fails("any other order", &g, &sorted([2, 1, 0]));
    fails("any other order", &g, &sorted([0, 2, 1]));
    for key in ["final_messages", "model_calls"] {
        let mut t = sorted([1, 2, 0]);
        t[key] = sorted([2, 0, 1])[key].clone();
        fails(key, &g, &t);
    }
    // The recorded ones.
    for g in goldens().iter().filter(|g| tagged(g, &["steer_result_order"])) {
        let calls: Vec<String> = Judge::new(g, g).calls.into_iter().map(|c| c.0).collect();
        let rank = |r: &Value, key: &str| calls.iter().position(|c| c == str_of(r, key));
        let mut t = g.clone();
        for e in events_mut(&mut t).iter_mut().filter(|e| kind(e) == "turn_end") {
            let r = e["tool_results"].as_array_mut().unwrap();
            r.sort_by_key(|r| rank(r, "id"));
        }
        let sort = |m: &mut Value| {
            m.as_array_mut()
                .unwrap()
                .chunk_by_mut(|a, b| a["role"] == b["role"])
                .filter(|run| run[0]["role"] == "tool_result")
                .for_each(|run| run.sort_by_key(|r| rank(r, "tool_call_id")));
        };
        sort(&mut t["final_messages"]);
        for c in t["model_calls"].as_array_mut().unwrap() {
            sort(&mut c["messages"]);
        }
        assert_ne!(*g, t);
        passes(g, &t);
    }
}
