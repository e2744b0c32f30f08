//! The budgets of a run: its own, and those of the runs around it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rules::budget::{Account, Accounts, Books, OnExceed, Reached, Spent};
use crate::rules::stream::{StreamOptions, ToolChoice};
use crate::words::event::{AgentEvent, BudgetKind, BudgetState, RunStopReason};
use crate::words::message::{AgentMessage, Usage};

use super::state::LoopState;
use super::step::Step;

/// The line that the model reads in the last call.
const WRAP_UP: &str = "The budget of this run is used up. Answer now with what there is; call no tools.";

/// How long the answer of the last call may be, in tokens.
const LAST_ANSWER: u64 = 1_024;

/// What a run has used, and what it has told of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spending {
    pub(crate) books: Rc<RefCell<Books>>,
    /// What earlier runs of the agent have used.
    pub(crate) earlier: Spent,
    /// The budgets of the runs around this one.
    pub(crate) around: Accounts,
    /// What the call in progress is expected to use.
    reserved: Spent,
    pub(crate) told: Vec<(BudgetKind, BudgetState)>,
    /// Whether the next answer, or the one in progress, is the last.
    pub(crate) is_wrapping_up: bool,
}

impl Spending {
    /// A copy with books of its own.
    pub(crate) fn apart(&self) -> Self {
        let books = Rc::new(RefCell::new(self.books.borrow().clone()));
        Spending { books, around: self.around.apart(), ..self.clone() }
    }
}

impl LoopState {
    /// Gives the run the budgets of the runs around it.
    pub(crate) fn set_accounts(&mut self, accounts: Accounts) {
        self.spending.around = accounts;
    }

    /// What the run has used; `now` is the time.
    pub(crate) fn spent(&self, now: u64) -> Spent {
        let mut spent = self.spending.books.borrow().spent;
        spent.ms = self.timing.restored.unwrap_or(now.saturating_sub(self.timing.began));
        spent
    }
}

impl Step<'_> {
    /// Its own budget, and those around it.
    #[cold]
    #[inline(never)]
    fn accounts(&self) -> Vec<Account> {
        let Spending { books, earlier, around, .. } = &self.state.spending;
        let own = self.rules.budget.map(|budget| Account::new(budget, books.clone(), *earlier));
        own.into_iter().chain(around.0.iter().cloned()).collect()
    }

    /// The budgets that sub-agents of this run use.
    #[cold]
    #[inline(never)]
    fn keep_accounts(&mut self) {
        self.state.shared_accounts = Accounts(self.accounts());
    }

    fn has_budget(&self) -> bool {
        self.rules.budget.is_some() || !self.state.spending.around.0.is_empty()
    }

    /// Counts what a call of a model has used.
    pub(super) fn count(&mut self, usage: &Usage) {
        self.state.tally.usage.add(usage);
        self.spend(&Spent::of(usage));
        if self.has_budget() {
            self.release();
        }
    }

    #[cold]
    #[inline(never)]
    fn release(&mut self) {
        let reserved = std::mem::take(&mut self.state.spending.reserved);
        self.accounts().iter().for_each(|account| account.release(&reserved));
    }

    /// Counts what was used in all budgets.
    pub(super) fn spend(&mut self, spent: &Spent) {
        self.state.spending.books.borrow_mut().spent.add(spent);
        self.state.spending.around.0.iter().for_each(|account| account.spend(spent));
    }

    /// The run begins, or goes on: from here on time counts.
    pub(super) fn begin_spending(&mut self) {
        self.state.spending.books.borrow_mut().began = self.state.timing.began;
        if self.has_budget() {
            self.keep_accounts();
        }
    }

    /// A turn is about to call the model. Returns why the run ends instead, if it does.
    pub(super) fn check_budget(&mut self) -> Option<RunStopReason> {
        if self.state.spending.is_wrapping_up {
            return Some(RunStopReason::Budget);
        }
        if self.has_budget() { self.check_accounts() } else { None }
    }

    #[cold]
    #[inline(never)]
    fn check_accounts(&mut self) -> Option<RunStopReason> {
        self.keep_accounts();
        let expected = Spent { turns: 1, ..self.expected() };
        let on_exceed = self.find_exceeded(&expected)?;
        if on_exceed != OnExceed::WrapUp {
            return Some(RunStopReason::Budget);
        }
        self.state.spending.is_wrapping_up = true;
        None
    }

    /// Whether there is no room for another attempt, or for a summary, after one that has used so much.
    pub(super) fn is_out_of_budget(&mut self, used: &Usage) -> bool {
        self.has_budget() && !self.state.spending.is_wrapping_up && self.is_too_much(used)
    }

    #[cold]
    #[inline(never)]
    fn is_too_much(&mut self, used: &Usage) -> bool {
        let mut expected = self.expected();
        expected.add(&Spent::of(used));
        self.find_exceeded(&expected).is_some()
    }

    /// Tells the listeners of a limit that would be exceeded. Returns what happens then: what the run's own budget says, and
    /// an end if it is that of a run around it.
    #[cold]
    #[inline(never)]
    fn find_exceeded(&mut self, expected: &Spent) -> Option<OnExceed> {
        let own = usize::from(self.rules.budget.is_some());
        let accounts = self.accounts();
        let mut found = None;
        for (at, account) in accounts.iter().enumerate() {
            if at < own {
                self.warn(account);
            }
            if let (None, Some(reached)) = (&found, account.exceeded_by(expected, self.now)) {
                let on_exceed = if at < own { account.on_exceed() } else { OnExceed::Stop };
                found = Some((reached, on_exceed));
            }
        }
        let (reached, on_exceed) = found?;
        self.tell(BudgetState::Exceeded, reached);
        Some(on_exceed)
    }

    #[cold]
    #[inline(never)]
    fn warn(&mut self, account: &Account) {
        let warnings: Vec<Reached> = account.warnings(self.now).collect();
        warnings.into_iter().for_each(|reached| self.tell(BudgetState::Warn, reached));
    }

    #[cold]
    #[inline(never)]
    fn tell(&mut self, state: BudgetState, reached: Reached) {
        let Reached { kind, used, limit } = reached;
        let told = &mut self.state.spending.told;
        if !told.contains(&(kind, state)) {
            told.push((kind, state));
            self.emit(AgentEvent::Budget { state, kind, used, limit });
        }
    }

    /// What the next call is expected to use: what it reads, and as much as its answer may have, or the last one had.
    #[cold]
    #[inline(never)]
    fn expected(&self) -> Spent {
        if !self.accounts().iter().any(Account::needs_estimate) {
            return Spent::default();
        }
        let last = self.state.history.messages().iter().rev().take(16).find_map(|message| match message {
            AgentMessage::Assistant(answer) => Some(answer.usage.output),
            _ => None,
        });
        let output = self.rules.stream_options.max_tokens.or(last).unwrap_or_default();
        let mut usage = Usage { input: self.expected_input(), output, ..Usage::default() }.totalled();
        let price = self.rules.models.first().and_then(|model| model.price);
        usage.cost = price.map(|price| price.of(&usage));
        Spent::of(&usage)
    }

    /// A call of a model begins: nobody else may use what it is expected to.
    pub(super) fn reserve(&mut self) {
        if self.has_budget() {
            self.reserve_expected();
        }
    }

    #[cold]
    #[inline(never)]
    fn reserve_expected(&mut self) {
        let expected = self.expected();
        self.accounts().iter().for_each(|account| account.reserve(&expected));
        self.state.spending.reserved = expected;
    }

    /// Whether a tool may be called once more. If so, it is counted.
    pub(super) fn may_call_tool(&mut self, is_again: bool) -> bool {
        if is_again {
            return true;
        }
        let one = Spent { tool_calls: 1, ..Spent::default() };
        if self.has_budget() && self.is_one_too_many(&one) {
            return false;
        }
        self.spend(&one);
        true
    }

    #[cold]
    #[inline(never)]
    fn is_one_too_many(&mut self, one: &Spent) -> bool {
        let exceeded = self.accounts().iter().find_map(|account| account.exceeded_by(one, self.now));
        exceeded.into_iter().for_each(|reached| self.tell(BudgetState::Exceeded, reached));
        exceeded.is_some()
    }

    /// The options of the last call, and its line.
    #[cold]
    #[inline(never)]
    pub(super) fn wrap_up(&self, options: Rc<StreamOptions>) -> (Rc<str>, Rc<StreamOptions>) {
        let prompt = &self.rules.system_prompt;
        let prompt: Rc<str> =
            if prompt.is_empty() { WRAP_UP.into() } else { [prompt, "\n\n", WRAP_UP].concat().into() };
        let mut options = options.as_ref().clone();
        options.max_tokens = Some(options.max_tokens.unwrap_or(LAST_ANSWER).min(LAST_ANSWER));
        // A structured answer may be asked for as a call.
        if self.rules.output.is_none() {
            options.tool_choice = Some(ToolChoice::None);
        }
        (prompt, Rc::new(options))
    }
}
