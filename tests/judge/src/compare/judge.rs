//! Compares two traces event by event, and notes what differs.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

use super::words::{
    CORE, EXTENSION, FREE_WORDING, Shown, compactions, failed, ids, is_approval, is_tool, kind, list, shown,
    str_of,
};

pub(super) struct Judge {
    tags: HashSet<String>,
    pub(super) out: Vec<String>,
    /// Ids and names of the golden's calls, in order.
    pub(super) calls: Vec<(String, String)>,
    /// Calls for which the golden asked an approver.
    pub(super) asked: HashSet<String>,
    /// Calls that reached a tool.
    ran: HashSet<String>,
    shown: Vec<Shown>,
    /// Complete calls in a failed message that the trace keeps and the golden drops.
    kept: HashSet<String>,
    /// How many results the golden has twice.
    dups: u64,
}

impl Judge {
    pub(super) fn new(golden: &Value, trace: &Value) -> Self {
        let mut calls: Vec<(String, String)> = Vec::new();
        for e in list(golden, "events") {
            for c in list(&e, "tool_calls") {
                let call = (str_of(&c, "id").to_string(), str_of(&c, "name").to_string());
                if !calls.contains(&call) {
                    calls.push(call);
                }
            }
        }
        let mut asked: HashSet<String> = ids(&list(golden, "approvals"), "id").into_iter().collect();
        let asks = list(golden, "events");
        asked.extend(asks.iter().filter(|e| is_approval(e)).map(|e| str_of(e, "id").into()));
        let results: Vec<Value> = list(golden, "final_messages")
            .into_iter()
            .filter(|m| str_of(m, "role") == "tool_result")
            .collect();
        let mut seen = HashSet::new();
        let mut j = Judge {
            tags: list(golden, "divergences").iter().filter_map(|t| t.as_str().map(String::from)).collect(),
            out: Vec::new(),
            calls,
            asked,
            ran: ids(&list(golden, "executions"), "id").into_iter().collect(),
            shown: shown(golden),
            kept: HashSet::new(),
            dups: results.iter().filter(|r| !seen.insert(r.to_string())).count() as u64,
        };
        if j.partial() {
            let mut kept = HashSet::new();
            for m in list(trace, "final_messages").iter().filter(|m| failed(m)) {
                kept.extend(ids(&list(m, "tool_calls"), "id"));
            }
            kept.retain(|id| !j.calls.iter().any(|(known, _)| known == id));
            if kept.len() <= j.shown.iter().map(|s| s.calls).sum() {
                j.kept = kept;
            }
        }
        j
    }

    pub(super) fn has(&self, tag: &str) -> bool {
        self.tags.contains(tag)
    }

    /// Whether a failed message may keep what it had shown.
    fn partial(&self) -> bool {
        self.has("abort_partial") || self.has("error_partial")
    }

    /// Whether a failed message keeps what it had shown: all of it, or the beginning.
    fn partial_ok(&self, key: &str, t: &Value) -> bool {
        let t = t.as_str().unwrap_or_default();
        self.shown.iter().any(|s| match key {
            "text" => s.text.starts_with(t),
            _ => s.thinking.starts_with(t),
        })
    }

    /// Leaves out the results of kept calls.
    fn without_kept(&self, v: Vec<Value>, id: &str) -> Vec<Value> {
        v.into_iter().filter(|r| r["is_error"] != true || !self.kept.contains(str_of(r, id))).collect()
    }

    /// Returns the golden's results in the order of the calls, if the trace has them in that order.
    fn in_call_order(&self, mut g: Vec<Value>, t: &[Value], id: &str) -> Vec<Value> {
        let mut sorted = g.clone();
        sorted.sort_by_key(|r| self.calls.iter().position(|(c, _)| c == str_of(r, id)));
        if ids(&sorted, id) == ids(t, id) {
            g = sorted;
        }
        g
    }

    fn text_ok(&self, golden: &Value, trace: &Value, is_error: bool) -> bool {
        let (g, t) = (golden.as_str().unwrap_or_default(), trace.as_str().unwrap_or_default());
        g == t
            || (self.has("transfer_refusal_text") && g.starts_with("Transfer to "))
            || (is_error
                && !t.is_empty()
                && (FREE_WORDING.iter().any(|p| g.starts_with(p))
                    || self.has("validation_text")
                    || (self.has("cancel_answer") && g.starts_with("tool call cancelled"))))
    }

    /// Compares the keys that matter; a key missing from the trace fails only when required.
    fn same(&mut self, at: &str, g: &Value, t: &Value, required: &[&str]) {
        let Some(go) = g.as_object() else {
            if g != t {
                self.out.push(format!("{at}: want {g}, got {t}"));
            }
            return;
        };
        for (key, gv) in go {
            if matches!(
                key.as_str(),
                "t" | "group" | "lane" | "group_order" | "message_count" | "partial_json"
            ) {
                continue;
            }
            let tv = &t[key.as_str()];
            if tv.is_null() && !required.contains(&key.as_str()) {
                continue;
            }
            let is_error = g["is_error"].as_bool().unwrap_or(false);
            let ok = match key.as_str() {
                "error" | "run_error" => gv.is_null() == tv.is_null(),
                "text" | "thinking" if failed(g) && self.partial() && self.partial_ok(key, tv) => true,
                "text" => self.text_ok(gv, tv, is_error),
                "is_error"
                    if self.has("transfer_refusal_text") && str_of(g, "text").starts_with("Transfer to ") =>
                {
                    true
                }
                "reason" => self.reason_ok(gv, tv),
                "tool_results" => {
                    self.results(at, gv, tv);
                    true
                }
                "tool_calls" => self.calls_ok(gv, tv),
                "snapshot_message_count" if self.has("max_tokens_dup") => {
                    let (g, t) = (gv.as_u64().unwrap_or(0), tv.as_u64().unwrap_or(0));
                    t <= g && g <= t + self.dups
                }
                _ => gv == tv,
            };
            if !ok {
                self.out.push(format!("{at}: {key}: want {gv}, got {tv}"));
            }
        }
        if go.contains_key("stop_reason")
            && !go.contains_key("tool_calls")
            && !self.calls_ok(&Value::Null, &t["tool_calls"])
        {
            self.out.push(format!("{at}: unwanted calls {}", t["tool_calls"]));
        }
    }

    fn reason_ok(&self, g: &Value, t: &Value) -> bool {
        let flat = |v: &Value| match v.as_str().unwrap_or_default() {
            "cancelled" => "aborted".to_string(),
            other => other.to_string(),
        };
        flat(g) == flat(t) || (self.has("steer_reason") && g == "steering_interrupt" && t == "tools_executed")
    }

    fn calls_ok(&self, g: &Value, t: &Value) -> bool {
        let strip = |v: &Value| -> Vec<(String, String, String)> {
            v.as_array()
                .map(|a| {
                    a.iter()
                        .map(|c| {
                            // A cut call may show no arguments or an empty object.
                            let args = if c["arguments"].is_null() {
                                "{}".into()
                            } else {
                                c["arguments"].to_string()
                            };
                            (str_of(c, "id").into(), str_of(c, "name").into(), args)
                        })
                        .collect()
                })
                .unwrap_or_default()
        };
        let mut t = strip(t);
        t.retain(|(id, _, _)| !self.kept.contains(id));
        strip(g) == t
    }

    fn results(&mut self, at: &str, g: &Value, t: &Value) {
        let prep = |v: &Value, any_order: bool| {
            let mut r = v.as_array().cloned().unwrap_or_default();
            if any_order {
                r.sort_by_key(|x| str_of(x, "id").to_string());
            }
            r
        };
        let any = self.has("max_tokens_dup");
        let (mut g, t) = (prep(g, any), self.without_kept(prep(t, any), "id"));
        if self.has("steer_result_order") {
            g = self.in_call_order(g, &t, "id");
        }
        self.zip(&format!("{at}: tool result"), &g, &t, &["id", "text", "is_error"]);
    }

    pub(super) fn zip(&mut self, at: &str, g: &[Value], t: &[Value], required: &[&str]) {
        if g.len() != t.len() {
            self.out.push(format!("{at}: want {} entries, got {}", g.len(), t.len()));
            return;
        }
        for (i, (g, t)) in g.iter().zip(t).enumerate() {
            self.same(&format!("{at} {i}"), g, t, required);
        }
    }

    /// Compares message lists: the final history and what a provider call saw.
    pub(super) fn messages(&mut self, at: &str, g: &[Value], t: &[Value], may_drop_failed: bool) {
        let replayed = |m: &Value| str_of(m, "role") == "assistant" && failed(m);
        let drop_failed = may_drop_failed && !t.iter().any(replayed);
        let runs = |m: &[Value]| -> Vec<(usize, usize)> {
            let mut out = Vec::new();
            let mut i = 0;
            while i < m.len() {
                let result = |m: &&Value| str_of(m, "role") == "tool_result";
                let n = m[i..].iter().take_while(result).count();
                if n > 0 {
                    out.push((i, i + n));
                }
                i += n.max(1);
            }
            out
        };
        let prep = |v: &[Value], j: &Self| {
            let mut m: Vec<Value> = v.iter().filter(|m| !(drop_failed && replayed(m))).cloned().collect();
            if j.has("max_tokens_dup") {
                for (i, end) in runs(&m) {
                    m[i..end].sort_by_key(|x| str_of(x, "tool_call_id").to_string());
                }
                m.dedup_by(|a, b| str_of(a, "role") == "tool_result" && a == b);
            }
            m
        };
        let (mut g, t) = (prep(g, self), prep(t, self));
        let t = self.without_kept(t, "tool_call_id");
        if self.has("steer_result_order") && g.len() == t.len() {
            for (i, end) in runs(&g) {
                let run = self.in_call_order(g[i..end].to_vec(), &t[i..end], "tool_call_id");
                g.splice(i..end, run);
            }
        }
        self.zip(at, &g, &t, &["role", "text", "tool_calls", "tool_call_id", "is_error"]);
    }

    fn prepare(&self, v: &Value, other: &Value) -> Vec<Value> {
        let other_kinds: HashSet<String> =
            list(other, "events").iter().map(|e| kind(e).to_string()).collect();
        let mut out: Vec<Value> = Vec::new();
        for e in list(v, "events") {
            let k = kind(&e).to_string();
            // Compactions may come anywhere inside their run, so they are compared separately.
            let known = CORE.contains(&k.as_str()) && k != "context_compacted";
            let shared = EXTENSION.contains(&k.as_str()) && other_kinds.contains(&k);
            if !known && !shared {
                continue;
            }
            if k == "message_update" {
                if self.has("retry_delta") || str_of(&e, "delta").is_empty() {
                    continue;
                }
                if let Some(last) = out.last_mut()
                    && kind(last) == "message_update"
                    && last["kind"] == e["kind"]
                    && last["index"] == e["index"]
                {
                    last["delta"] = format!("{}{}", str_of(last, "delta"), str_of(&e, "delta")).into();
                    continue;
                }
            }
            if k == "message_end" && failed(&e) {
                // What a failed message had shown is compared as its text.
                while self.partial() && out.pop_if(|last| kind(last) == "message_update").is_some() {}
                if self.has("retry_abort") {
                    continue;
                }
            }
            out.push(e);
        }
        out
    }

    /// Returns the events of one batch without those that the tags allow an engine to add. `results` are
    /// the golden's results for the calls of this turn.
    fn drop_allowed(&self, g: &[Value], t: &[Value], results: &[Value]) -> Vec<Value> {
        let in_golden = |k: &str, id: &str| g.iter().any(|e| kind(e) == k && str_of(e, "id") == id);
        let extra_end = ["steer_cancel_end", "abort_end", "max_tokens_end"].iter().any(|t| self.has(t));
        t.iter()
            .enumerate()
            .filter(|(i, e)| {
                let (k, id) = (kind(e), str_of(e, "id"));
                let answer = results.iter().find(|r| str_of(r, "id") == id);
                let name = self.calls.iter().any(|(c, n)| c == id && n == str_of(e, "name"));
                let end_follows = t[i + 1..]
                    .iter()
                    .any(|later| kind(later) == "tool_execution_end" && str_of(later, "id") == id);
                let last = !t[i + 1..].iter().any(|later| !is_approval(later) && str_of(later, "id") == id);
                let allowed = match k {
                    // A call that never ran.
                    "tool_execution_start" => {
                        (self.has("no_start") || extra_end)
                            && answer.is_some()
                            && name
                            && end_follows
                            && !self.ran.contains(id)
                    }
                    // A call that was cancelled or cut.
                    "tool_execution_end" if e["is_error"] == true => {
                        last && (self.kept.contains(id)
                            || extra_end
                                && name
                                && answer.is_some_and(|r| {
                                    r["is_error"] == true && self.text_ok(&r["text"], &e["text"], true)
                                }))
                    }
                    _ => false,
                };
                !allowed || in_golden(k, id)
            })
            .map(|(_, e)| e.clone())
            .collect()
    }

    /// Drops the turn of a run that a policy stops before its model call: the golden has no turn for it,
    /// but an engine may show one that starts and ends without a message.
    fn drop_stopped_turn(&self, g: &[Value], mut t: Vec<Value>) -> Vec<Value> {
        let turns = |v: &[Value]| v.iter().filter(|e| kind(e) == "turn_start").count();
        let stopped = t.windows(3).position(|w| {
            let end = &w[1];
            kind(&w[0]) == "turn_start"
                && kind(end) == "turn_end"
                && kind(&w[2]) == "agent_end"
                && end["reason"] == "complete"
                && end["message"].is_null()
                && str_of(end, "text").is_empty()
                && ["tool_results", "tool_calls"].iter().all(|k| list(end, k).is_empty())
        });
        if let Some(i) = stopped
            && turns(&t) == turns(g) + 1
        {
            t.drain(i..i + 2);
        }
        t
    }

    /// Whether this is a call of the golden for which it never asked an approver.
    pub(super) fn unasked(&self, id: &str) -> bool {
        !self.asked.contains(id) && self.calls.iter().any(|(c, _)| c == id)
    }

    pub(super) fn events(&mut self, golden: &Value, trace: &Value) {
        let (gc, tc) = (compactions(golden), compactions(trace));
        for i in 0..gc.len().max(tc.len()) {
            let of = |v: &[Vec<Value>]| v.get(i).cloned().unwrap_or_default();
            self.zip(&format!("run {i}: compaction"), &of(&gc), &of(&tc), &[]);
        }
        let g = self.prepare(golden, trace);
        let mut t = self.prepare(trace, golden);
        if self.has("pre_turn_stop") {
            t = self.drop_stopped_turn(&g, t);
        }
        let (mut i, mut j, mut turn) = (0, 0, 0);
        while i < g.len() || j < t.len() {
            if i < g.len() && kind(&g[i]) == "turn_start" {
                turn += 1;
            }
            let gi = g[i..].iter().take_while(|e| is_tool(e)).count();
            let tj = t[j..].iter().take_while(|e| is_tool(e)).count();
            if gi > 0 || tj > 0 {
                let results = g[i..]
                    .iter()
                    .find(|e| kind(e) == "turn_end")
                    .map_or_else(Vec::new, |e| list(e, "tool_results"));
                let batch = self.drop_allowed(&g[i..i + gi], &t[j..j + tj], &results);
                self.group(turn, &g[i..i + gi], &batch);
                i += gi;
                j += tj;
                continue;
            }
            match (g.get(i), t.get(j)) {
                (Some(a), Some(b)) if kind(a) == kind(b) => {
                    let required: &[&str] = match kind(a) {
                        "message_end" => &["text", "tool_calls", "stop_reason", "error"],
                        "turn_end" => &["reason", "tool_results"],
                        "message_update" => &["kind", "delta"],
                        _ => &[],
                    };
                    self.same(&format!("turn {turn}: {}", kind(a)), a, b, required);
                }
                (a, b) => {
                    let name = |v: Option<&Value>| v.map_or("the end".to_string(), |v| kind(v).to_string());
                    self.out.push(format!("turn {turn}: want {}, got {}", name(a), name(b)));
                    return;
                }
            }
            i += 1;
            j += 1;
        }
    }

    /// Compares the tool events of one batch: each call's own order is fixed; across calls only ends and
    /// updates at different virtual times are ordered.
    fn group(&mut self, turn: usize, g: &[Value], t: &[Value]) {
        let at = format!("turn {turn}: batch");
        let required = ["id", "name", "arguments", "text", "is_error", "approved"];
        let free_asks = self.has("approval_sequential");
        let wanted = |e: &&Value| !(free_asks && is_approval(e) && self.unasked(str_of(e, "id")));
        let g: &[Value] = &g.iter().filter(wanted).cloned().collect::<Vec<_>>();
        let t: &[Value] = &t.iter().filter(wanted).cloned().collect::<Vec<_>>();
        if g.first().is_some_and(|e| e["group_order"] == "strict") && g.len() == t.len() {
            let ordered = |e: &&Value| !(free_asks && is_approval(e));
            for (a, b) in g.iter().filter(ordered).zip(t.iter().filter(ordered)) {
                if kind(a) == kind(b) {
                    self.same(&format!("{at}: {}", kind(a)), a, b, &required);
                } else {
                    self.out.push(format!("{at}: want {} {}, got {} {}", kind(a), a["id"], kind(b), b["id"]));
                    return;
                }
            }
            if !free_asks {
                return;
            }
        }
        let lanes = |v: &[Value]| {
            let mut m: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for e in v {
                m.entry(str_of(e, "id").to_string()).or_default().push(e.clone());
            }
            m
        };
        let (gl, tl) = (lanes(g), lanes(t));
        for id in tl.keys().filter(|id| !gl.contains_key(*id)) {
            self.out.push(format!("{at}: unexpected events for call {id}"));
        }
        for (id, ge) in &gl {
            let te = tl.get(id).cloned().unwrap_or_default();
            let names = |v: &[Value]| v.iter().map(|e| kind(e).to_string()).collect::<Vec<_>>();
            if names(ge) == names(&te) {
                for (a, b) in ge.iter().zip(&te) {
                    self.same(&format!("{at}: call {id}: {}", kind(a)), a, b, &required);
                }
            } else {
                self.out.push(format!("{at}: call {id}: want {:?}, got {:?}", names(ge), names(&te)));
            }
        }
        if free_asks {
            return;
        }
        let timed = |e: &&Value| matches!(kind(e), "tool_execution_end" | "tool_execution_update");
        let key =
            |e: &Value| (kind(e).to_string(), str_of(e, "id").to_string(), str_of(e, "text").to_string());
        let mut last: Option<(u64, usize)> = None;
        let mut level_max = 0;
        for e in g.iter().filter(timed) {
            let (Some(when), Some(pos)) = (
                e["t"].as_u64(),
                t.iter().position(|x| {
                    key(x).0 == key(e).0
                        && key(x).1 == key(e).1
                        && (kind(e) == "tool_execution_end" || key(x).2 == key(e).2)
                }),
            ) else {
                continue;
            };
            if let Some((w, p)) = last
                && when > w
                && pos < p
            {
                self.out.push(format!("{at}: {} of call {} comes too early", kind(e), e["id"]));
            }
            if last.is_none_or(|(w, _)| when > w) {
                level_max = 0;
            }
            level_max = level_max.max(pos);
            last = Some((when, level_max.max(last.map_or(0, |(_, p)| p))));
        }
    }
}
