//! Budgets: how much a run, or all runs of an agent, may use.

use std::cell::RefCell;
use std::rc::Rc;

use crate::data::json::members::{maybe, plain};
use crate::data::json::{FromJson, ObjectWriter, ToJson, Value, members, words};
use crate::words::event::BudgetKind;
use crate::words::message::Usage;
use crate::words::price::{Cost, cost, maybe_cost, read_cost, write_cost};
use crate::words::question::ReachedLimit;

/// How much may be used. What is not set has no limit. Checked before every call of a model, with what the call is expected
/// to use, and before every call of a tool. Sub-agents use the budgets of the agents around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Money; the models need a price.
    pub usd: Option<Cost>,
    /// Tokens, read and written.
    pub tokens: Option<u64>,
    /// Calls of tools.
    pub tool_calls: Option<u64>,
    /// Turns that call a model.
    pub turns: Option<u64>,
    /// The time in milliseconds in which runs were alive, not the time that they spent in a checkpoint.
    pub ms: Option<u64>,
    /// At which percentage of a limit the listeners are told; 80 by default.
    pub warn_at: u32,
    /// What happens when there is no room for the next call of a model.
    pub on_exceed: OnExceed,
    /// What the budget is for.
    pub scope: BudgetScope,
}

impl Default for Budget {
    fn default() -> Self {
        Budget {
            usd: None,
            tokens: None,
            tool_calls: None,
            turns: None,
            ms: None,
            warn_at: 80,
            on_exceed: OnExceed::default(),
            scope: BudgetScope::default(),
        }
    }
}

/// What happens when there is no room in a budget for the next call of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnExceed {
    /// The run ends.
    #[default]
    Stop,
    /// One last call, in which the model may call no tools and is asked to answer with what there is. It may exceed the
    /// budget.
    WrapUp,
    /// A person is asked, who may allow more; otherwise the run ends.
    Ask,
}

/// What a budget is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BudgetScope {
    /// Each run.
    #[default]
    Run,
    /// All runs of the agent together.
    Agent,
}

impl Budget {
    fn limit(&self, kind: BudgetKind) -> Option<u64> {
        match kind {
            BudgetKind::Usd => self.usd,
            BudgetKind::Tokens => self.tokens,
            BudgetKind::ToolCalls => self.tool_calls,
            BudgetKind::Turns => self.turns,
            BudgetKind::Ms => self.ms,
        }
    }

    /// Whether it takes an estimate to know if there is room.
    fn needs_estimate(&self) -> bool {
        self.usd.is_some() || self.tokens.is_some()
    }
}

members!(Budget {
    "usd" => usd: maybe_cost,
    "tokens" => tokens: maybe,
    "toolCalls" => tool_calls: maybe,
    "turns" => turns: maybe,
    "ms" => ms: maybe,
    "warnAt" => warn_at: percent(80),
    "onExceed" => on_exceed: plain,
    "scope" => scope: plain,
});

words!(OnExceed { Stop = "stop", WrapUp = "wrap_up", Ask = "ask" });
words!(BudgetScope { Run = "run", Agent = "agent" });

/// A share in percent, which JSON has as a fraction.
mod percent {
    use super::{Cost, ObjectWriter, Value, read_cost, write_cost};

    const ONE: Cost = 10_000_000_000;

    pub(super) fn write(percent: &u32, key: &str, object: &mut ObjectWriter<'_>) {
        write_cost(Cost::from(*percent) * ONE, object.key(key));
    }

    pub(super) fn read(value: &Value, key: &str, default: u32) -> u32 {
        let share = value.get(key).and_then(read_cost);
        share.and_then(|share| u32::try_from(share / ONE).ok()).unwrap_or(default)
    }
}

/// An amount of each kind that a budget limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Money.
    pub usd: Cost,
    /// Tokens.
    pub tokens: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// Turns that call a model.
    pub turns: u64,
    /// Milliseconds.
    pub ms: u64,
}

impl Amounts {
    pub(crate) fn of(usage: &Usage) -> Self {
        Amounts { usd: usage.cost.unwrap_or_default(), tokens: usage.total, ..Amounts::default() }
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        self.usd = self.usd.saturating_add(other.usd);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.tool_calls = self.tool_calls.saturating_add(other.tool_calls);
        self.turns = self.turns.saturating_add(other.turns);
        self.ms = self.ms.saturating_add(other.ms);
    }

    fn without(&self, other: &Amounts) -> Self {
        Amounts {
            usd: self.usd.saturating_sub(other.usd),
            tokens: self.tokens.saturating_sub(other.tokens),
            ..*self
        }
    }

    pub(crate) fn part(&self, kind: BudgetKind) -> u64 {
        match kind {
            BudgetKind::Usd => self.usd,
            BudgetKind::Tokens => self.tokens,
            BudgetKind::ToolCalls => self.tool_calls,
            BudgetKind::Turns => self.turns,
            BudgetKind::Ms => self.ms,
        }
    }
}

members!(Amounts {
    "usd" => usd: cost,
    "tokens" => tokens: plain,
    "toolCalls" => tool_calls: plain,
    "turns" => turns: plain,
    "ms" => ms: plain,
});

/// What a run has used, its sub-agents included, and what the calls in progress are expected to use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    pub(crate) spent: Amounts,
    reserved: Amounts,
    /// What persons have allowed beyond the limits.
    pub(crate) raised: Amounts,
    /// When the run began, not counting the time it spent in a checkpoint.
    pub(crate) began: u64,
}

impl Books {
    /// What was used, what the calls in progress are expected to use, and what persons have allowed beyond the limits.
    pub(crate) fn totals(&self) -> [Amounts; 3] {
        [self.spent, self.reserved, self.raised]
    }

    pub(crate) fn set_totals(&mut self, [spent, reserved, raised]: [Amounts; 3]) {
        (self.spent, self.reserved, self.raised) = (spent, reserved, raised);
    }
}

/// What earlier runs of an agent have used, and what persons have allowed them beyond the limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) spent: Amounts,
    pub(crate) raised: Amounts,
}

impl Ledger {
    /// Adds what a run has used, and what it was allowed.
    pub(crate) fn add(&mut self, spent: &Amounts, raised: &Amounts) {
        self.spent.add(spent);
        self.raised.add(raised);
    }

    /// Writes what there is as members of a checkpoint.
    pub(crate) fn write_members(&self, out: &mut ObjectWriter<'_>) {
        for (key, amounts) in [("spent", &self.spent), ("raised", &self.raised)] {
            if *amounts != Amounts::default() {
                out.field(key, amounts);
            }
        }
    }

    /// Reads the members of a checkpoint.
    pub(crate) fn read(own: &Value) -> Result<Self, String> {
        let amounts = |key: &str| own.get(key).map_or(Ok(Amounts::default()), Amounts::from_json);
        Ok(Ledger { spent: amounts("spent")?, raised: amounts("raised")? })
    }
}

/// A budget and what was used of it.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    budget: Budget,
    books: Rc<RefCell<Books>>,
    earlier: Ledger,
}

/// The budgets that a run shares with the runs around it.
#[derive(Clone, Debug, Default)]
pub struct Accounts(pub(crate) Vec<Account>);

impl Accounts {
    /// A copy with books of its own.
    pub(crate) fn apart(&self) -> Self {
        let apart = |account: &Account| {
            let books = Rc::new(RefCell::new(account.books.borrow().clone()));
            Account { books, ..account.clone() }
        };
        Accounts(self.0.iter().map(apart).collect())
    }

    pub(crate) fn books(&self) -> impl Iterator<Item = &Rc<RefCell<Books>>> {
        self.0.iter().map(|account| &account.books)
    }
}

impl ToJson for Account {
    fn write_json(&self, out: &mut String) {
        let books = self.books.borrow();
        let mut object = ObjectWriter::new(out);
        object.field("budget", &self.budget).field("earlier", &self.earlier.spent);
        object.field("earlierRaised", &self.earlier.raised);
        object.field("spent", &books.spent).field("reserved", &books.reserved).field("raised", &books.raised);
        object.field("began", &books.began);
        object.end();
    }
}

impl FromJson for Account {
    fn from_json(value: &Value) -> Result<Self, String> {
        let amounts = |key: &str| value.get(key).map_or(Ok(Amounts::default()), Amounts::from_json);
        let began = value.number_at("began").unwrap_or_default();
        let (spent, reserved, raised) = (amounts("spent")?, amounts("reserved")?, amounts("raised")?);
        let books = Books { spent, reserved, raised, began };
        Ok(Account {
            budget: Budget::from_json(value.get("budget").unwrap_or(&Value::Null))?,
            books: Rc::new(RefCell::new(books)),
            earlier: Ledger { spent: amounts("earlier")?, raised: amounts("earlierRaised")? },
        })
    }
}

impl ToJson for Accounts {
    fn write_json(&self, out: &mut String) {
        self.0.write_json(out);
    }
}

impl FromJson for Accounts {
    fn from_json(value: &Value) -> Result<Self, String> {
        Ok(Accounts(Vec::from_json(value)?))
    }
}

pub(crate) const KINDS: [BudgetKind; 5] =
    [BudgetKind::Usd, BudgetKind::Tokens, BudgetKind::ToolCalls, BudgetKind::Turns, BudgetKind::Ms];

impl Account {
    pub(crate) fn new(budget: Budget, books: Rc<RefCell<Books>>, earlier: Ledger) -> Self {
        let earlier = if budget.scope == BudgetScope::Agent { earlier } else { Ledger::default() };
        Account { budget, books, earlier }
    }

    pub(crate) fn needs_estimate(&self) -> bool {
        self.budget.needs_estimate()
    }

    pub(crate) fn on_exceed(&self) -> OnExceed {
        self.budget.on_exceed
    }

    /// What is used, calls in progress included.
    fn used(&self, now: u64) -> Amounts {
        let books = self.books.borrow();
        let mut used = self.earlier.spent;
        used.add(&books.spent);
        used.add(&books.reserved);
        used.ms = used.ms.saturating_add(now.saturating_sub(books.began));
        used
    }

    /// What may be used of a kind, if that is limited.
    fn limit(&self, kind: BudgetKind) -> Option<u64> {
        let raised = self.earlier.raised.part(kind).saturating_add(self.books.borrow().raised.part(kind));
        Some(self.budget.limit(kind)?.saturating_add(raised))
    }

    /// A person allows so much more.
    pub(crate) fn raise(&self, amounts: &Amounts) {
        self.books.borrow_mut().raised.add(amounts);
    }

    /// How it stands with a kind, if that is limited.
    pub(crate) fn standing(&self, kind: BudgetKind, now: u64) -> Option<ReachedLimit> {
        Some(ReachedLimit { kind, used: self.used(now).part(kind), limit: self.limit(kind)? })
    }

    /// Returns a limit that would be exceeded by using so much more. Time is over once it is used up.
    pub(crate) fn exceeded_by(&self, more: &Amounts, now: u64) -> Option<ReachedLimit> {
        let used = self.used(now);
        KINDS.into_iter().find_map(|kind| {
            let limit = self.limit(kind)?;
            let after = used.part(kind).saturating_add(more.part(kind));
            let is_over =
                if kind == BudgetKind::Ms { after >= limit } else { more.part(kind) > 0 && after > limit };
            let is_used_up = matches!(kind, BudgetKind::Usd | BudgetKind::Tokens) && used.part(kind) >= limit;
            // A call of a tool is not held up by what a model has used, and a call of a model not by tools.
            let counts = more.tool_calls == 0 || kind == BudgetKind::ToolCalls;
            (counts && (is_over || is_used_up)).then_some(ReachedLimit { kind, used: used.part(kind), limit })
        })
    }

    /// Returns the limits that are nearly reached.
    pub(crate) fn warnings(&self, now: u64) -> impl Iterator<Item = ReachedLimit> {
        KINDS.into_iter().filter_map(move |kind| {
            let standing = self.standing(kind, now)?;
            let (used, limit) = (u128::from(standing.used), u128::from(standing.limit));
            (used * 100 >= limit * u128::from(self.budget.warn_at)).then_some(standing)
        })
    }

    pub(crate) fn spend(&self, spent: &Amounts) {
        self.books.borrow_mut().spent.add(spent);
    }

    pub(crate) fn reserve(&self, expected: &Amounts) {
        self.books.borrow_mut().reserved.add(expected);
    }

    pub(crate) fn release(&self, expected: &Amounts) {
        let mut books = self.books.borrow_mut();
        books.reserved = books.reserved.without(expected);
    }
}
