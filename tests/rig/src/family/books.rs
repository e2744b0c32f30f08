//! The books of the outermost agent, and whether its budget holds.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::Value;
use turnwheel::budget::Accounts;
use turnwheel::driver::AgentStream;
use turnwheel::event::AgentEvent;
use turnwheel::json::ToJson;
use turnwheel::message::Usage;

use super::Family;
use crate::clock::BEGINNING;

/// What is known of what was used.
#[derive(Default)]
pub(super) struct Books {
    pub(super) faults: Vec<String>,
    accounts: Option<Accounts>,
    /// What the calls in progress use, by a number for each.
    in_progress: BTreeMap<u64, u64>,
    calls: u64,
    /// By how many tokens calls that were in progress together used more than they were expected to.
    error: u64,
    /// The runs that have called a model in this life.
    awake: BTreeSet<String>,
    is_restored: bool,
    /// What the last calls have used, which a budget allows beyond its limit.
    last_calls: u64,
    /// Whether a call was cut: of those nobody but the engine knows what they used.
    is_unclear: bool,
    is_checked: bool,
}

/// A limit of tokens, and how it stands with it.
struct Standing {
    spent: u64,
    reserved: u64,
    limit: Option<u64>,
}

impl Standing {
    fn of(account: &Value, key: &str) -> Self {
        let part = |whole: &str| number(&account[whole][key]);
        let limit = account["budget"].get(key).map(|limit| number(limit) + part("raised"));
        Standing { spent: part("spent"), reserved: part("reserved"), limit }
    }
}

/// Money counts in tokens: each costs a millionth of a unit per million.
fn number(value: &Value) -> u64 {
    match value.as_u64() {
        Some(number) => number,
        None => (value.as_f64().unwrap_or_default() * 1_000_000.0).round() as u64,
    }
}

impl Books {
    /// Keeps the accounts of a run that begins or goes on.
    pub(super) fn share(&mut self, run: &AgentStream, event: &AgentEvent) {
        if matches!(event, AgentEvent::AgentStart { .. } | AgentEvent::RunResumed { .. }) {
            self.accounts = Some(run.accounts());
        }
    }

    /// Whether a model is answering.
    pub(super) fn is_calling(&self) -> bool {
        !self.in_progress.is_empty()
    }

    /// The process ends: what was in progress is over.
    pub(super) fn sleep(&mut self) {
        self.is_unclear |= !self.in_progress.is_empty();
        self.in_progress.clear();
        self.awake.clear();
        self.is_restored = true;
        self.accounts = None;
    }

    fn account(&self) -> Option<Value> {
        let accounts: Value = serde_json::from_str(&self.accounts.as_ref()?.to_json()).unwrap_or_default();
        accounts.get(0).cloned()
    }

    /// A call begins. `is_last` is set for the one that the outermost budget allows beyond its limit.
    fn begin(&mut self, run_id: &str, usage: u64, is_last: bool, now: u64) -> u64 {
        self.calls += 1;
        self.in_progress.insert(self.calls, usage);
        if is_last {
            self.last_calls += usage;
        }
        // A call that was in progress when the process ended is made again, whatever the time.
        let may_be_late = self.awake.insert(run_id.to_owned()) && self.is_restored;
        if let Some(account) = self.account().filter(|account| account.get("budget").is_some()) {
            self.check(&account, is_last);
            if !is_last && !may_be_late {
                self.check_time(&account, now);
            }
        }
        self.calls
    }

    fn check(&mut self, account: &Value, is_last: bool) {
        for key in ["tokens", "usd"] {
            let Standing { spent, reserved, limit } = Standing::of(account, key);
            let Some(limit) = limit else { continue };
            if !is_last && spent + reserved > limit {
                self.faults.push(format!(
                    "a call begins with {spent} used and {reserved} expected of {limit} {key}"
                ));
            }
            let used: u64 = self.in_progress.values().sum();
            self.error = self.error.max(used.saturating_sub(reserved));
        }
        let more = u64::from(is_last);
        for (key, more) in [("turns", more), ("toolCalls", 0)] {
            let Standing { spent, limit, .. } = Standing::of(account, key);
            if limit.is_some_and(|limit| spent > limit + more) {
                self.faults.push(format!("{spent} of {limit:?} {key}"));
            }
        }
    }

    fn check_time(&mut self, account: &Value, now: u64) {
        let began = number(&account["began"]);
        let limit = account["budget"].get("ms").map(|ms| number(ms) + number(&account["raised"]["ms"]));
        if limit.is_some_and(|limit| now.saturating_sub(began) >= limit) {
            self.faults.push(format!("a call begins after {} of {limit:?} ms", now - began));
        }
    }

    /// How many calls a budget allowed beyond its limit.
    pub(super) fn last_ones(&self) -> u64 {
        u64::from(self.last_calls > 0)
    }

    /// Whether a budget was kept, and it is known what every call used.
    pub(super) fn knows_all(&self) -> bool {
        self.is_checked && !self.is_unclear
    }

    /// The run is over.
    pub(super) fn finish(&mut self) {
        let Some(account) = self.account() else { return };
        for key in ["tokens", "usd"] {
            let Standing { spent, limit, reserved } = Standing::of(&account, key);
            self.is_checked |= limit.is_some();
            if let Some(limit) = limit
                && !self.is_unclear
                && spent > limit + self.error + self.last_calls
            {
                let Books { error, last_calls, .. } = self;
                let fault =
                    format!("{spent} of {limit} {key} used, with {error} unforeseen and {last_calls} to end");
                self.faults.push(fault);
            }
            if reserved > 0 {
                self.faults.push(format!("{reserved} {key} are expected to be used after the end"));
            }
        }
    }
}

/// A call of a model, while it goes on.
pub(super) struct Progress {
    family: Rc<Family>,
    number: u64,
    is_over: bool,
}

impl Progress {
    pub(super) fn begin(family: &Rc<Family>, run_id: &str, usage: Usage, is_last: bool) -> Self {
        let now = BEGINNING + family.clock.elapsed();
        let number = family.books.borrow_mut().begin(run_id, usage.total, is_last && run_id == "r", now);
        Progress { family: family.clone(), number, is_over: false }
    }

    /// It is complete; what it used counts as soon as the engine has read it.
    pub(super) fn end(&mut self, is_failed: bool) {
        self.is_over = true;
        let mut books = self.family.books.borrow_mut();
        books.in_progress.remove(&self.number);
        books.is_unclear |= is_failed;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if !self.is_over {
            self.end(true);
        }
    }
}
