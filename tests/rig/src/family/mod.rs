//! Families: an agent with agents inside it, two deep and several at once, in random worlds of virtual time: models that
//! improvise, tools that ask, budgets of each form, people who decide, send messages and stop the run, and processes that
//! end and go on from a checkpoint.
//!
//! What must hold in each of them is checked by [`play`]:
//!
//! - Every run ends, those inside too, and the events of each obey the grammar. Nothing comes from inside a call that has
//!   its result.
//! - Each call has exactly one result, and no tool runs twice, whatever ends in between.
//! - Whatever is asked anywhere is among the questions of the outermost agent, with its path, until it is closed; it is
//!   closed once, an answer counts once, and a question that outlives a process has the same id.
//! - When the call of a model begins, what was used and what all calls in progress are expected to use is within the
//!   budgets together. So in the end no more was used than the limit and the error of the estimates: what the calls that
//!   were in progress when the last one began have used beyond what they were expected to. A last call (`wrap_up`) comes on
//!   top. Calls of tools and turns are never more than allowed.
//! - A call of a tool without an implementation has its result from one answer, which is given once, or from what ended it.
//! - The history is taken back between two runs and not in one; what was cut can be put back, and a run goes on from what
//!   is left.
//! - A message that waits for the whole batch cancels nothing; each is read once, by the outermost agent.

mod books;
mod plan;
mod ports;
mod rewind;
mod watch;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use turnwheel::agent::Agent;
use turnwheel::answer::Answer;
use turnwheel::approval::ToolDecision;
use turnwheel::budget::Amounts;
use turnwheel::cancel::CancelToken;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::config::SteeringTime;
use turnwheel::driver::AgentStream;
use turnwheel::event::AgentEvent;
use turnwheel::json::RawJson;
use turnwheel::message::AgentMessage;
use turnwheel::ports::AgentRunContext;
use turnwheel::question::{Question, QuestionKind};

use crate::clock::{BEGINNING, Clock};
use crate::dice::Dice;
use books::Books;
use plan::Plan;
use watch::Watch;

/// A family, played.
#[derive(Debug, Default)]
pub struct Played {
    /// What was wrong.
    pub faults: Vec<String>,
    /// What happened, as far as it is counted: so that a test can tell that its worlds reach everything.
    pub seen: BTreeMap<&'static str, u64>,
    /// The names of the events, with the paths of those inside. Written only if something was wrong.
    pub trace: Vec<String>,
    /// How many events the outermost agent had.
    pub events: u64,
}

/// When the process of a family ends. The family is the same, up to there, whenever that is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deaths {
    /// At this event, counted from 1.
    pub first: Option<u64>,
    /// Not before something is asked.
    pub in_question: bool,
    /// And then again at each event, with this chance in a thousand.
    pub more: u64,
}

/// Plays the family of a seed, whose process ends in the midst of it: as `deaths` say, or, where it is over before that, at
/// another event.
pub fn play_killed(seed: u64, deaths: Deaths) -> Played {
    let played = play(seed, deaths);
    if played.seen.contains_key("killed") || played.events < 2 || !played.faults.is_empty() {
        return played;
    }
    let first = 1 + deaths.first.unwrap_or(0) % (played.events - 1);
    play(seed, Deaths { first: Some(first), in_question: false, ..deaths })
}

/// Plays the family of a seed.
pub fn play(seed: u64, deaths: Deaths) -> Played {
    let played = play_once(seed, deaths, false);
    if played.faults.is_empty() { played } else { play_once(seed, deaths, true) }
}

fn play_once(seed: u64, deaths: Deaths, is_traced: bool) -> Played {
    let dice = Dice::new(seed);
    let family = Rc::new(Family {
        plan: Plan::of(&dice),
        dice,
        deaths,
        clock: Clock::default(),
        watch: RefCell::new(Watch::new(is_traced)),
        books: RefCell::default(),
        agent: RefCell::default(),
        ids: Cell::default(),
        raises: Cell::default(),
        events: Cell::default(),
        has_died: Cell::default(),
        is_quiet: Cell::default(),
        tools: Cell::default(),
    });
    family.live();
    family.clock.clear();
    family.agent.take();
    let (watch, mut books) = (family.watch.take(), family.books.take());
    let mut played = watch.finish();
    played.faults.append(&mut books.faults);
    played.events = family.events.get();
    let flags = [
        ("last call", books.last_ones()),
        ("all is known", u64::from(books.knows_all())),
        ("has a budget", u64::from(family.plan.levels.iter().any(|level| level.budget.is_some()))),
    ];
    played.seen.extend(flags.into_iter().filter(|(_, count)| *count > 0));
    played
}

/// What all lives of a family share.
struct Family {
    plan: Plan,
    dice: Dice,
    deaths: Deaths,
    clock: Clock,
    watch: RefCell<Watch>,
    books: RefCell<Books>,
    /// The outermost agent of this life.
    agent: RefCell<Option<Agent>>,
    ids: Cell<u64>,
    /// How often a budget was raised.
    raises: Cell<u32>,
    /// How many events the outermost agent has had.
    events: Cell<u64>,
    has_died: Cell<bool>,
    /// Whether nobody sends messages any more.
    is_quiet: Cell<bool>,
    /// How many tools run.
    tools: Cell<u64>,
}

impl Family {
    fn live(self: &Rc<Self>) {
        let mut checkpoint = None;
        for life in 0..6 {
            match self.life(checkpoint.take(), life < 5) {
                Some(next) => checkpoint = Some(next),
                None => return,
            }
        }
        self.fault("it never ends");
    }

    /// Lives until the end, or until the process ends. Then returns the checkpoint.
    fn life(self: &Rc<Self>, from: Option<String>, sleeps: bool) -> Option<String> {
        let (agent, context) = match &from {
            None => (Agent::new(self.config(0), Vec::new()), AgentRunContext::new("r", "s")),
            Some(text) => {
                let envelope =
                    CheckpointEnvelopeV1::decode(text.as_bytes()).map_err(|error| error.to_string());
                let agent = envelope.and_then(|envelope| {
                    Agent::restore(self.config(0), &envelope).map_err(|error| error.to_string())
                });
                match agent {
                    Ok(agent) => (agent, AgentRunContext::new("r", "s")),
                    Err(text) => return self.end_with(format!("a checkpoint cannot be read: {text}")),
                }
            }
        };
        *self.agent.borrow_mut() = Some(agent.clone());
        let cancel = CancelToken::new();
        let run = match from {
            None => agent.prompt(vec!["Go.".into()], context, cancel),
            Some(_) => agent.continue_run(context, cancel),
        };
        let mut run = match run {
            Ok(run) => run,
            // Its last event came out before the process ended.
            Err(_) if self.watch.borrow().is_over() => return None,
            Err(error) => return self.end_with(format!("it does not go on: {error}")),
        };
        self.watch.borrow_mut().begin_life(BEGINNING + self.clock.elapsed());
        self.meddle();
        loop {
            match self.clock.run(run.next()) {
                Err(_) => {
                    let waits = self.watch.borrow().open_questions();
                    return self.end_with(format!("it hangs, with the questions {waits:?}"));
                }
                Ok(None) => break,
                Ok(Some(event)) => {
                    self.books.borrow_mut().share(&run, &event);
                    self.watch.borrow_mut().take(&event);
                    self.attend(&event);
                    let is_end = matches!(event, AgentEvent::AgentEnd { .. });
                    if self.is_last() && sleeps && !is_end {
                        return Some(self.sleep(&agent, run));
                    }
                }
            }
        }
        self.watch.borrow_mut().end_life(&agent, &run);
        self.books.borrow_mut().finish();
        drop(run);
        rewind::between_runs(self, &agent);
        None
    }

    /// Counts an event. Returns whether the process ends with it.
    fn is_last(&self) -> bool {
        let number = self.events.get() + 1;
        self.events.set(number);
        // Thrown in any case: until it ends a family is the same, whenever that is.
        let by_chance = self.dice.next() % 1_000 < self.deaths.more;
        let Some(first) = self.deaths.first.filter(|first| number >= *first) else { return false };
        if self.has_died.get() {
            return by_chance && number > first;
        }
        !self.deaths.in_question || !self.watch.borrow().open_questions().is_empty()
    }

    /// The process ends.
    fn sleep(&self, agent: &Agent, mut run: AgentStream) -> String {
        self.has_died.set(true);
        let text = run.checkpoint().encode();
        let tools = self.tools.replace(0);
        self.watch.borrow_mut().sleep(agent, tools > 0, self.books.borrow().is_calling());
        self.books.borrow_mut().sleep();
        self.agent.take();
        // Nothing of this life goes on: neither its timers nor the people who knew it.
        drop(run);
        self.clock.clear();
        // Time goes on.
        self.clock.at(self.clock.elapsed() + 1_000, || {});
        self.clock.advance();
        text
    }

    fn end_with(&self, fault: String) -> Option<String> {
        self.fault(&fault);
        None
    }

    fn fault(&self, fault: &str) {
        self.watch.borrow_mut().faults.push(fault.to_owned());
    }

    fn new_id(&self) -> String {
        self.ids.set(self.ids.get() + 1);
        format!("q{}", self.ids.get())
    }

    /// Calls `act` after some time.
    fn later(self: &Rc<Self>, most: usize, act: impl FnOnce(&Rc<Self>, &Agent) + 'static) {
        let family = self.clone();
        let ms = 10 * u64::try_from(self.dice.below(most)).unwrap_or(0);
        self.clock.at(self.clock.elapsed() + ms, move || {
            let agent = family.agent.borrow().clone();
            if let Some(agent) = agent {
                act(&family, &agent);
            }
        });
    }

    /// People send messages, and lose patience.
    fn meddle(self: &Rc<Self>) {
        for _ in 0..self.dice.below(4) {
            self.later(30, |family, agent| family.send(agent));
        }
        if self.dice.chance(8) {
            self.later(40, |_, agent| agent.abort("enough"));
        }
    }

    fn send(&self, agent: &Agent) {
        if self.is_quiet.get() {
            return;
        }
        let number = self.watch.borrow().letters.len();
        let message = AgentMessage::user(format!("letter {number}"));
        let times = SteeringTime::ALL;
        let own = self.dice.chance(70).then(|| *self.dice.pick(&times));
        self.watch.borrow_mut().send(own.unwrap_or(self.plan.steering));
        match own {
            Some(when) => drop(agent.steer_when(message, when)),
            None => drop(agent.steer(message)),
        }
    }

    /// Somebody sees to what is asked.
    fn attend(self: &Rc<Self>, event: &AgentEvent) {
        match event {
            AgentEvent::ToolApprovalRequested { id, .. } => self.ask(id.clone(), QuestionKind::Tool),
            AgentEvent::QuestionAsked { question } => self.ask(question.id.clone(), question.kind),
            AgentEvent::RunResumed { pending_approvals, .. } => {
                for Question { id, kind, .. } in pending_approvals {
                    self.ask(id.clone(), *kind);
                }
            }
            _ => {}
        }
        // An interruption at just this moment.
        if self.dice.chance(1) {
            let agent = self.agent.borrow().clone();
            agent.iter().for_each(|agent| self.send(agent));
        }
        if self.dice.chance(1) {
            let agent = self.agent.borrow().clone();
            agent.iter().for_each(|agent| rewind::refused(self, agent));
        }
    }

    fn ask(self: &Rc<Self>, id: String, kind: QuestionKind) {
        // Some answer on the spot.
        if self.dice.chance(30) {
            let agent = self.agent.borrow().clone();
            if let Some(agent) = agent {
                return self.answer(&agent, &id, kind);
            }
        }
        // Some calls are never answered: then somebody loses patience.
        if kind == QuestionKind::ToolCall && self.dice.chance(4) {
            return self.clock.at(self.clock.elapsed() + 2_000, {
                let family = self.clone();
                move || family.agent.borrow().iter().for_each(|agent| agent.abort("nobody answers"))
            });
        }
        self.later(12, move |family, agent| family.answer(agent, &id, kind));
    }

    fn answer(&self, agent: &Agent, id: &str, kind: QuestionKind) {
        let is_open = self.watch.borrow().is_open(id);
        if self.dice.chance(10) {
            let misfit = match kind {
                QuestionKind::ToolCall if self.dice.chance(50) => Answer::Accept(json("{}")),
                QuestionKind::ToolCall => ToolDecision::Accept.into(),
                _ => Answer::Raise(Amounts::default()),
            };
            if agent.resolve(id, misfit) {
                self.fault("an answer that fits no question counts");
            }
        }
        let answer = self.answer_of(kind);
        let counts = agent.resolve(id, answer.clone());
        self.watch.borrow_mut().answer(id, answer.is_positive(), counts, is_open);
        if counts && self.dice.chance(30) && agent.resolve(id, self.answer_of(kind)) {
            self.fault("a second answer counts");
        }
    }

    fn answer_of(&self, kind: QuestionKind) -> Answer {
        let dice = &self.dice;
        match kind {
            QuestionKind::Budget if self.raises.get() < 5 && dice.chance(70) => {
                self.raises.set(self.raises.get() + 1);
                // Of each something: what raises nothing of the limit is no answer.
                let amount = |most| 1 + u64::try_from(dice.below(most)).unwrap_or(0);
                Answer::Raise(Amounts {
                    usd: amount(300) * 1_000_000,
                    tokens: amount(300),
                    tool_calls: amount(4),
                    turns: amount(4),
                    ms: amount(300),
                })
            }
            QuestionKind::Elicitation if dice.chance(70) => Answer::Accept(json("{\"n\":1}")),
            QuestionKind::Elicitation => {
                if dice.chance(50) {
                    Answer::Decline
                } else {
                    Answer::Cancel
                }
            }
            QuestionKind::ToolCall if dice.chance(70) => Answer::output("there"),
            QuestionKind::ToolCall if dice.chance(50) => Answer::error("nowhere"),
            QuestionKind::Tool if dice.chance(75) => ToolDecision::Accept.into(),
            _ => ToolDecision::Reject { reason: None }.into(),
        }
    }
}

fn json(text: &str) -> RawJson {
    RawJson::parse(text).expect("JSON")
}
