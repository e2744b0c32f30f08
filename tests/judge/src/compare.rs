//! Judges another engine's trace against a golden one. The rules are in `tests/data/oracle/README.md`.

use std::collections::{BTreeMap, HashSet};

use serde_json::Value;

/// Events that the specification's event table does not list.
const EXTENSION: [&str; 7] = [
    "before_llm_call",
    "tool_approval_requested",
    "tool_approval_resolved",
    "state_changed",
    "cache_action",
    "model_fallback",
    "transfer_initiated",
];

const CORE: [&str; 12] = [
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
const FREE_WORDING: [&str; 8] = [
    "unknown tool: ",
    "tool execution panicked: ",
    "Tool call '",
    "error: tool call was incomplete",
    "policy stopped tool batch",
    "tool call cancelled: operation aborted",
    "tool call cancelled: transfer initiated",
    "custom tool execution strategy",
];

fn str_of<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_default()
}
fn kind(e: &Value) -> &str {
    str_of(e, "type")
}
fn list(v: &Value, key: &str) -> Vec<Value> {
    v[key].as_array().cloned().unwrap_or_default()
}
fn is_tool(e: &Value) -> bool {
    kind(e).starts_with("tool_")
}
fn failed(v: &Value) -> bool {
    matches!(str_of(v, "stop_reason"), "error" | "aborted")
}
fn is_approval(e: &Value) -> bool {
    kind(e).starts_with("tool_approval_")
}
fn ids(v: &[Value], key: &str) -> Vec<String> {
    v.iter().map(|x| str_of(x, key).to_string()).collect()
}

/// What a failed message of the golden had shown before it failed.
struct Shown {
    text: String,
    thinking: String,
    calls: usize,
}

fn shown(golden: &Value) -> Vec<Shown> {
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
fn compactions(trace: &Value) -> Vec<Vec<Value>> {
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

struct Judge {
    tags: HashSet<String>,
    out: Vec<String>,
    /// Ids and names of the golden's calls, in order.
    calls: Vec<(String, String)>,
    /// Calls for which the golden asked an approver.
    asked: HashSet<String>,
    /// Calls that reached a tool.
    ran: HashSet<String>,
    shown: Vec<Shown>,
    /// Complete calls in a failed message that the trace keeps and the golden drops.
    kept: HashSet<String>,
    /// How many results the golden has twice.
    dups: u64,
}

impl Judge {
    fn new(golden: &Value, trace: &Value) -> Self {
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

    fn has(&self, tag: &str) -> bool {
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

    fn zip(&mut self, at: &str, g: &[Value], t: &[Value], required: &[&str]) {
        if g.len() != t.len() {
            self.out.push(format!("{at}: want {} entries, got {}", g.len(), t.len()));
            return;
        }
        for (i, (g, t)) in g.iter().zip(t).enumerate() {
            self.same(&format!("{at} {i}"), g, t, required);
        }
    }

    /// Compares message lists: the final history and what a provider call saw.
    fn messages(&mut self, at: &str, g: &[Value], t: &[Value], may_drop_failed: bool) {
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
    fn unasked(&self, id: &str) -> bool {
        !self.asked.contains(id) && self.calls.iter().any(|(c, _)| c == id)
    }

    fn events(&mut self, golden: &Value, trace: &Value) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn goldens() -> Vec<Value> {
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

    fn judged(g: &Value, t: &Value) -> Vec<String> {
        let known = invariants(g);
        compare(g, t, false)
            .into_iter()
            .filter(|p| !known.contains(p) && !p.starts_with("informative"))
            .collect()
    }

    #[test]
    fn a_golden_trace_passes_itself() {
        for g in goldens() {
            assert_eq!(judged(&g, &g), Vec::<String>::new(), "{}", g["name"]);
            assert_eq!(compare(&g, &g, true), Vec::<String>::new());
        }
    }

    /// Applies a change to copies of the goldens, and demands that it is noticed wherever it applied.
    fn noticed(what: &str, change: impl Fn(&mut Value) -> bool) {
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
                .find(|m| {
                    m["role"] == "tool_result" && !m["text"].as_str().unwrap().starts_with("Transfer to ")
                })
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

    fn tagged(g: &Value, tags: &[&str]) -> bool {
        tags.iter().any(|tag| list(g, "divergences").contains(&json!(tag)))
    }
    fn untagged(g: &Value, tag: &str) -> Value {
        let mut g = g.clone();
        let left: Vec<Value> = list(&g, "divergences").into_iter().filter(|d| d != tag).collect();
        g["divergences"] = left.into();
        g
    }
    fn events_mut(t: &mut Value) -> &mut Vec<Value> {
        t["events"].as_array_mut().unwrap()
    }
    fn with_events(g: &Value, events: Vec<Value>) -> Value {
        let mut t = g.clone();
        t["events"] = events.into();
        t
    }
    fn passes(g: &Value, t: &Value) {
        assert_eq!(judged(g, t), Vec::<String>::new(), "{}", g["name"]);
    }
    fn fails(what: &str, g: &Value, t: &Value) {
        assert!(!judged(g, t).is_empty(), "{what} not noticed in {}", g["name"]);
    }
    fn ask(id: &str, name: &str) -> [Value; 2] {
        [
            json!({"type": "tool_approval_requested", "id": id, "name": name, "arguments": {}}),
            json!({"type": "tool_approval_resolved", "id": id, "name": name, "approved": false}),
        ]
    }
    /// Makes a golden of one turn: the calls `a`, `b`, … of tool `t`, the events
    /// of the batch, the results.
    fn batch_golden(tags: &[&str], calls: &[&str], batch: Vec<Value>, results: Vec<Value>) -> Value {
        let calls: Vec<Value> =
            calls.iter().map(|id| json!({"id": id, "name": "t", "arguments": {}})).collect();
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
    fn result(id: &str, text: &str, is_error: bool) -> Value {
        json!({"id": id, "text": text, "is_error": is_error})
    }

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
        let start =
            |id: &str| json!({"type": "tool_execution_start", "id": id, "name": "t", "arguments": {}});
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
            let started =
                |id: &Value| events.iter().any(|e| kind(e) == "tool_execution_start" && e["id"] == *id);
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
        let results =
            vec![result("c", "ok", false), result("a", cancelled, true), result("b", cancelled, true)];
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
        let two =
            json!([{"id": "a", "name": "t", "arguments": {}}, {"id": "b", "name": "t", "arguments": {}}]);
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
}
