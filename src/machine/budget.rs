//! The budgets of a run: its own, and those of the runs around it.

use std::cell::RefCell;
use std::rc::Rc;

use crate::rules::answer::Answer;
use crate::rules::budget::{Account, Accounts, Amounts, Books, KINDS, Ledger, OnExceed};
use crate::rules::stream::{StreamOptions, ToolChoice};
use crate::words::event::{AgentEvent, BudgetKind, BudgetState, DecisionSource, RunStopReason};
use crate::words::message::{AgentMessage, Usage};
use crate::words::question::{Question, QuestionKind, ReachedLimit};

use super::phase::Phase;
use super::state::LoopState;
use super::step::Step;

/// The line that the model reads in the last call.
const WRAP_UP: &str = "The budget of this run is used up. Answer now with what there is; call no tools.";

/// How long the answer of the last call may be, in tokens.
const LAST_ANSWER: u64 = 1_024;

/// A call of a tool.
const ONE_CALL: Amounts = Amounts { usd: 0, tokens: 0, tool_calls: 1, turns: 0, ms: 0 };

/// What a run has used, and what it has told of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spending {
    pub(crate) books: Rc<RefCell<Books>>,
    /// What earlier runs of the agent have used.
    pub(crate) earlier: Ledger,
    /// The budgets of the runs around this one.
    pub(crate) around: Accounts,
    /// What the call in progress is expected to use.
    reserved: Amounts,
    pub(crate) told: Vec<(BudgetKind, BudgetState)>,
    /// Whether a call of a tool was refused since a model was called last.
    pub(crate) has_refused_call: bool,
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

/// Whether there is room in the budgets for the next call of a model.
enum Room {
    Enough,
    None,
    /// There is none, and a person is to be asked.
    Asked(ReachedLimit),
}

impl LoopState {
    /// Gives the run the budgets of the runs around it.
    pub(crate) fn set_accounts(&mut self, accounts: Accounts) {
        self.spending.around = accounts;
    }

    /// What the run has used; `now` is the time.
    pub(crate) fn spent(&self, now: u64) -> Amounts {
        let mut spent = self.spending.books.borrow().spent;
        spent.ms = self.timing.restored.unwrap_or(now.saturating_sub(self.timing.began));
        spent
    }
}

impl Step<'_> {
    /// Its own budget, and those around it.
    #[cold]
    fn accounts(&self) -> Vec<Account> {
        let Spending { books, earlier, around, .. } = &self.state.spending;
        let own = self.rules.budget.map(|budget| Account::new(budget, books.clone(), *earlier));
        own.into_iter().chain(around.0.iter().cloned()).collect()
    }

    /// The budgets that sub-agents of this run use.
    #[cold]
    fn keep_accounts(&mut self) {
        self.state.shared_accounts = Accounts(self.accounts());
    }

    fn has_budget(&self) -> bool {
        self.rules.budget.is_some() || !self.state.spending.around.0.is_empty()
    }

    /// Counts what a call of a model has used.
    pub(super) fn count(&mut self, usage: &Usage) {
        self.state.tally.usage.add(usage);
        self.spend(&Amounts::of(usage));
        if self.has_budget() {
            self.release();
        }
    }

    #[cold]
    fn release(&mut self) {
        let reserved = std::mem::take(&mut self.state.spending.reserved);
        self.accounts().iter().for_each(|account| account.release(&reserved));
    }

    /// Counts what was used in all budgets.
    pub(super) fn spend(&mut self, spent: &Amounts) {
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

    /// A turn is about to call the model. Returns whether it may; if not, the run ends, or a person is asked.
    pub(super) fn has_room(&mut self) -> bool {
        let is_limited = self.state.spending.is_wrapping_up || self.has_budget();
        !is_limited || self.seek_room()
    }

    #[cold]
    fn seek_room(&mut self) -> bool {
        match self.check_accounts() {
            Room::Enough => return true,
            Room::None => self.stop_before_call(RunStopReason::Budget),
            Room::Asked(limit) => self.ask_for_more(limit),
        }
        false
    }

    fn check_accounts(&mut self) -> Room {
        if self.state.spending.is_wrapping_up {
            return Room::None;
        }
        self.keep_accounts();
        if std::mem::take(&mut self.state.spending.has_refused_call)
            && let Some((limit, OnExceed::Ask)) = self.find_exceeded(&ONE_CALL)
        {
            return Room::Asked(limit);
        }
        let expected = Amounts { turns: 1, ..self.expected() };
        match self.find_exceeded(&expected) {
            None => Room::Enough,
            Some((_, OnExceed::Stop)) => Room::None,
            Some((limit, OnExceed::Ask)) => Room::Asked(limit),
            Some((_, OnExceed::WrapUp)) => {
                self.state.spending.is_wrapping_up = true;
                Room::Enough
            }
        }
    }

    /// Asks a person whether more may be used.
    fn ask_for_more(&mut self, limit: ReachedLimit) {
        let id = self.new_id();
        let what = limit.kind.as_str();
        let message = ["the budget has no room for the next call: `", what, "`"];
        let question = Box::new(Question {
            message: Some(message.concat()),
            limit: Some(limit),
            ..Question::new(QuestionKind::Budget, id, self.now)
        });
        self.emit(AgentEvent::QuestionAsked { question: question.clone() });
        self.state.phase = Phase::Questioned(question);
    }

    /// A person has answered whether more may be used.
    #[cold]
    pub(super) fn answer_budget(&mut self, answer: Answer) {
        let question = match std::mem::take(&mut self.state.phase) {
            Phase::Questioned(question) => question,
            phase => return self.state.phase = phase,
        };
        let by = if answer == Answer::Cancel { DecisionSource::Abort } else { DecisionSource::Command };
        self.resolved(&question, answer.is_positive(), by);
        let Answer::Raise(amounts) = answer else { return self.stop_before_call(RunStopReason::Budget) };
        self.raise(&amounts);
        self.append_arrived();
        if self.state.turn.is_restored {
            // Whatever was chosen for the turn is no data, so it is asked again.
            return self.choose(Phase::Preparing { effect: 0, overflow: false });
        }
        self.pre_turn();
    }

    /// Raises the limits of the budget that has no room.
    fn raise(&mut self, amounts: &Amounts) {
        let of_model = Amounts { turns: 1, ..self.expected() };
        let accounts = self.accounts();
        let mut asking = accounts.iter().filter(|account| account.on_exceed() == OnExceed::Ask);
        let is_full = |account: &&Account| {
            account.exceeded_by(&of_model, self.now).or(account.exceeded_by(&ONE_CALL, self.now)).is_some()
        };
        let Some(account) = asking.clone().find(is_full).or(asking.next()) else { return };
        account.raise(amounts);
        for kind in KINDS.into_iter().filter(|kind| amounts.part(*kind) > 0) {
            // What was told is told again when it happens again.
            self.state.spending.told.retain(|(told, _)| *told != kind);
            if let Some(ReachedLimit { kind, used, limit }) = account.standing(kind, self.now) {
                self.emit(AgentEvent::Budget { state: BudgetState::Raised, kind, used, limit });
            }
        }
    }

    /// Whether there is no room for another attempt, or for a summary, after one that has used so much.
    pub(super) fn is_out_of_budget(&mut self, used: &Usage) -> bool {
        self.has_budget() && self.is_too_much(used)
    }

    #[cold]
    fn is_too_much(&mut self, used: &Usage) -> bool {
        let mut expected = self.expected();
        expected.add(&Amounts::of(used));
        // What the attempt before had reserved is no longer expected, though what it has used may not be counted yet.
        let reserved = self.state.spending.reserved;
        self.release();
        let is_too_much = self.find_exceeded(&expected).is_some();
        self.reserve_amounts(reserved);
        is_too_much
    }

    /// Tells the listeners of a limit that would be exceeded. Returns what happens then: what the run's own budget says, and
    /// an end if it is that of a run around it, unless a person is to be asked.
    #[cold]
    fn find_exceeded(&mut self, expected: &Amounts) -> Option<(ReachedLimit, OnExceed)> {
        let own = usize::from(self.rules.budget.is_some());
        let accounts = self.accounts();
        let mut found = None;
        for (at, account) in accounts.iter().enumerate() {
            // A run inside a call uses up the budgets around it too, and nobody else is there to say so.
            self.warn(account);
            // The last call may pass its own, also when it is tried again; it may not pass those around it.
            if at < own && self.state.spending.is_wrapping_up {
                continue;
            }
            // The last call that its own budget allows must not use what those around it do not allow.
            let is_open = matches!(found, None | Some((_, OnExceed::WrapUp)));
            if let (true, Some(reached)) = (is_open, account.exceeded_by(expected, self.now)) {
                let on_exceed = match account.on_exceed() {
                    OnExceed::WrapUp if at >= own => OnExceed::Stop,
                    on_exceed => on_exceed,
                };
                found = Some((reached, on_exceed));
            }
        }
        let (reached, on_exceed) = found?;
        self.tell(BudgetState::Exceeded, reached);
        Some((reached, on_exceed))
    }

    #[cold]
    fn warn(&mut self, account: &Account) {
        let warnings: Vec<ReachedLimit> = account.warnings(self.now).collect();
        warnings.into_iter().for_each(|reached| self.tell(BudgetState::Warn, reached));
    }

    #[cold]
    fn tell(&mut self, state: BudgetState, reached: ReachedLimit) {
        let ReachedLimit { kind, used, limit } = reached;
        let told = &mut self.state.spending.told;
        if !told.contains(&(kind, state)) {
            told.push((kind, state));
            self.emit(AgentEvent::Budget { state, kind, used, limit });
        }
    }

    /// What the next call is expected to use: what it reads, and as much as its answer may have, or the last one had.
    #[cold]
    fn expected(&self) -> Amounts {
        if !self.accounts().iter().any(Account::needs_estimate) {
            return Amounts::default();
        }
        let last = self.state.history.messages().iter().rev().take(16).find_map(|message| match message {
            AgentMessage::Assistant(answer) => Some(answer.usage.output),
            _ => None,
        });
        let output = self.rules.stream_options.max_tokens.or(last).unwrap_or_default();
        let mut usage = Usage { input: self.expected_input(), output, ..Usage::default() }.totalled();
        let price = self.rules.models.first().and_then(|model| model.price);
        usage.cost = price.map(|price| price.of(&usage));
        Amounts::of(&usage)
    }

    /// A call of a model begins: nobody else may use what it is expected to.
    pub(super) fn reserve(&mut self) {
        if self.has_budget() {
            self.reserve_expected();
        }
    }

    #[cold]
    fn reserve_expected(&mut self) {
        let expected = self.expected();
        self.reserve_amounts(expected);
    }

    fn reserve_amounts(&mut self, amounts: Amounts) {
        self.accounts().iter().for_each(|account| account.reserve(&amounts));
        self.state.spending.reserved = amounts;
    }

    /// Whether a tool may be called once more. If so, it is counted.
    pub(super) fn may_call_tool(&mut self, is_again: bool) -> bool {
        if is_again {
            return true;
        }
        if self.has_budget() && self.is_one_too_many() {
            return false;
        }
        self.spend(&ONE_CALL);
        true
    }

    #[cold]
    fn is_one_too_many(&mut self) -> bool {
        let accounts = self.accounts();
        let exceeded = accounts.iter().find_map(|account| account.exceeded_by(&ONE_CALL, self.now));
        self.state.spending.has_refused_call |= exceeded.is_some();
        if exceeded.is_some() {
            // One batch may go from nothing to too much.
            accounts.iter().for_each(|account| self.warn(account));
        }
        exceeded.into_iter().for_each(|reached| self.tell(BudgetState::Exceeded, reached));
        exceeded.is_some()
    }

    /// The options of the last call, and its line.
    #[cold]
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
