//! Lives a tape again, a line at a time.

use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use crate::data::json::{FromJson, ToJson, Value};
use crate::data::table::Table;
use crate::data::text::number;
use crate::host::config::Rules;
use crate::machine::{EffectId, EffectNames, History, Input, Letter, LoopState, Output, Reply, tell_first};
use crate::rules::budget::Ledger;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::message::{AgentMessage, Usage};

use super::answering::{Answers, answer};
use super::beginning::read_run;
use super::digest::Digest;
use super::input::read_input;
use super::optional;
use super::pieces::read_piece;
use super::plain::{merge_rules, read_values};
use super::seen::Seen;
use super::text::Tape;

/// The engine does not do what the tape says, or the tape cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The input, counted from 0.
    pub input: u64,
    /// What the tape says.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { input, expected, got } = self;
        write!(f, "the replay differs from the tape at input {input}: expected {expected}, got {got}")
    }
}

impl std::error::Error for Divergence {}

/// Where an input comes: the time, the events before it, and the effects that have started.
#[derive(Clone, Copy, Debug)]
pub(super) struct When {
    pub(super) now: u64,
    pub(super) events: u64,
    pub(super) starts: u64,
}

/// The pieces of one line that are left.
pub(super) struct Pieces {
    pub(super) id: EffectId,
    pub(super) when: When,
    /// Shared with the players that were copied from this one, since there may be thousands.
    pub(super) all: Rc<[Value]>,
    /// The next one.
    pub(super) at: usize,
    /// The last piece that was written in full: the next ones may be only what they add.
    pub(super) last: Value,
}

/// Lives a tape again, one thing after the other.
pub struct Player {
    pub(super) tape: Tape,
    /// The events and starts that are not on the tape any more.
    pub(super) from: (u64, u64),
    /// The next line.
    pub(super) at: usize,
    /// The line that is fed next, and the lines about what is beside the machine before it.
    pub(super) next: Option<Value>,
    pub(super) beside: Vec<Value>,
    pub(super) pieces: Option<(Pieces, Option<(When, Value)>)>,
    pub(super) values: Value,
    pub(super) rules: Rules,
    pub(super) answers: Rc<Answers>,
    pub(super) state: Option<LoopState>,
    pub(super) queue: VecDeque<Output>,
    pub(super) pending: VecDeque<Seen>,
    pub(super) names: EffectNames,
    pub(super) open: Table<EffectId, String>,
    pub(super) known: Option<Box<History>>,
    /// The messages that the last run has left.
    pub(super) left: Vec<AgentMessage>,
    pub(super) letters: (Vec<Letter>, Vec<Letter>),
    pub(super) used: Usage,
    pub(super) spent: Ledger,
    pub(super) now: u64,
    pub(super) events: u64,
    pub(super) starts: u64,
    pub(super) inputs: u64,
    /// How many late events stand at the front of the queue.
    pub(super) late: usize,
    pub(super) request: Option<ModelRequest>,
    pub(super) digest: Digest,
}

impl Player {
    /// Begins at the beginning of a tape.
    pub fn new(tape: &Tape) -> Self {
        let nothing = super::digest::no_rules();
        // What was left out at the beginning has been counted.
        let from = |place: usize| {
            tape.header().list_at("from").get(place).and_then(Value::as_u64).unwrap_or_default()
        };
        Player {
            from: (from(0), from(1)),
            tape: tape.clone(),
            at: 0,
            next: None,
            beside: Vec::new(),
            pieces: None,
            values: Value::Null,
            rules: nothing,
            answers: Rc::default(),
            state: None,
            queue: VecDeque::new(),
            pending: VecDeque::new(),
            names: EffectNames::default(),
            open: Table::new(),
            known: None,
            left: Vec::new(),
            letters: Default::default(),
            used: Usage::default(),
            spent: Ledger::default(),
            now: tape.header().number_at("createdAt").unwrap_or_default(),
            events: 0,
            starts: 0,
            inputs: 0,
            late: 0,
            request: None,
            digest: Digest::of(tape),
        }
    }

    /// Lets inputs, replies and answers of rules be seen too, not only what follows from them.
    #[must_use]
    pub fn watching(self) -> Self {
        self.answers.watch();
        Player { digest: self.digest.watched(), ..self }
    }

    /// Returns another player at the same place, which goes on by itself.
    pub(super) fn apart(&self) -> Self {
        let answers: Rc<Answers> = Rc::default();
        let mut rules = self.rules.clone();
        answer(&mut rules, &self.values, &answers);
        let pieces = self.pieces.as_ref().map(|(pieces, next)| {
            let Pieces { id, when, all, at, last } = pieces;
            (Pieces { id: *id, when: *when, all: all.clone(), at: *at, last: last.clone() }, next.clone())
        });
        Player {
            tape: self.tape.clone(),
            from: self.from,
            at: self.at,
            next: self.next.clone(),
            beside: self.beside.clone(),
            pieces,
            values: self.values.clone(),
            rules,
            answers,
            state: self.state.as_ref().map(LoopState::apart),
            queue: self.queue.clone(),
            pending: VecDeque::new(),
            names: self.names.clone(),
            open: self.open.clone(),
            known: self.known.clone(),
            left: self.left.clone(),
            letters: self.letters.clone(),
            used: self.used,
            spent: self.spent,
            now: self.now,
            events: self.events,
            starts: self.starts,
            inputs: self.inputs,
            late: self.late,
            request: self.request.clone(),
            digest: self.digest.clone(),
        }
    }

    /// The number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The time, in milliseconds since 1970.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The run, once one has begun.
    pub fn state(&self) -> Option<&LoopState> {
        self.state.as_ref()
    }

    /// The history: of the run, or between two runs what the last one has left.
    pub fn messages(&self) -> &[AgentMessage] {
        self.state.as_ref().map_or(&self.left, |state| state.messages())
    }

    /// What comes out while the tape is sealed.
    pub(super) fn digest_mut(&mut self) -> &mut Digest {
        &mut self.digest
    }

    /// Goes on until something can be seen; `None` at the end of the tape.
    ///
    /// # Errors
    /// If the engine does not do what the tape says, or a line cannot be read.
    pub fn advance(&mut self) -> Result<Option<Seen>, Divergence> {
        loop {
            if let Some(seen) = self.pending.pop_front() {
                return Ok(Some(seen));
            }
            self.peek()?;
            let target = self.target()?;
            if let Some(seen) = self.process(target)? {
                return Ok(Some(seen));
            }
            if !self.feed()? {
                return self.digest.check_end(self.events, self.inputs).map(|()| None);
            }
        }
    }

    fn read_when(&self, line: &Value) -> Option<When> {
        let [events, starts] = line.list_at("to") else { return None };
        let (events, starts) = (events.as_u64()?, starts.as_u64()?);
        let now = line.number_at("at")?;
        Some(When {
            now,
            events: events.saturating_sub(self.from.0),
            starts: starts.saturating_sub(self.from.1),
        })
    }

    /// Goes on until so many events have been emitted. Returns whether the tape has as many.
    ///
    /// # Errors
    /// As for [`Player::advance`].
    pub fn seek(&mut self, events: u64) -> Result<bool, Divergence> {
        while self.events < events {
            if self.advance()?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// There is no such moment.
    pub(super) fn too_short(&self, wanted: u64) -> Divergence {
        self.fault([&number(wanted), " events"].concat(), ["a tape of ", &number(self.events)].concat())
    }

    pub(super) fn fault(&self, expected: impl Into<String>, got: impl Into<String>) -> Divergence {
        Divergence { input: self.inputs, expected: expected.into(), got: got.into() }
    }

    fn unreadable(&self, why: &str) -> Divergence {
        self.fault("a line that can be read", ["line ", &number(self.at + 1), ": ", why].concat())
    }

    /// Reads up to the next line that waits for events.
    fn peek(&mut self) -> Result<(), Divergence> {
        if let Some((pieces, next @ None)) = &mut self.pieces {
            match pieces.all.get(pieces.at).cloned() {
                Some(piece) => {
                    pieces.at += 1;
                    let read = read_piece(pieces, piece).map_err(|why| Divergence {
                        input: self.inputs,
                        expected: "a piece of an answer".to_owned(),
                        got: why.to_owned(),
                    })?;
                    *next = Some(read);
                }
                None => self.pieces = None,
            }
        }
        while self.pieces.is_none() && self.next.is_none() {
            let Some(line) = self.tape.line(self.at) else { return Ok(()) };
            let line = line.map_err(|why| self.unreadable(&why))?;
            self.at += 1;
            if ["rules", "set", "books"].iter().any(|key| line.get(key).is_some()) {
                self.beside.push(line);
            } else if !["ask", "wire", "child", "added"].iter().any(|key| line.get(key).is_some()) {
                self.next = Some(line);
            }
        }
        Ok(())
    }

    /// How far the outputs are processed before the next line is fed; `None` for all of them.
    fn target(&self) -> Result<Option<When>, Divergence> {
        if let Some((_, Some((when, _)))) = &self.pieces {
            return Ok(Some(*when));
        }
        match &self.next {
            Some(line) if line.get("to").is_some() => self
                .read_when(line)
                .map(Some)
                .ok_or_else(|| self.unreadable("`at` and `to` say when it came")),
            _ => Ok(None),
        }
    }

    /// Feeds the next line. Returns whether there was one.
    fn feed(&mut self) -> Result<bool, Divergence> {
        for line in std::mem::take(&mut self.beside) {
            self.take_beside(&line).map_err(|why| self.unreadable(&why))?;
        }
        if let Some((pieces, next)) = &mut self.pieces
            && let Some((when, event)) = next.take()
        {
            let id = pieces.id;
            self.take_piece(id, when, event)?;
            return Ok(true);
        }
        let Some(line) = self.next.take() else { return Ok(false) };
        if line.get("run").is_some() {
            self.begin_run(&line).map_err(|why| self.unreadable(&why))?;
            return Ok(true);
        }
        let when = self.read_when(&line).ok_or_else(|| self.unreadable("there is no `to`"))?;
        if let Some(note) = line.owned_at("note") {
            self.pending.push_back(Seen::Note(note));
            return Ok(true);
        }
        self.now = when.now;
        match line.text_at("in") {
            Some("pieces") => {
                let mut line = line;
                let id = line.number_at("id").unwrap_or_default();
                let Value::Array(pieces) = line.take("pieces") else {
                    return Err(self.unreadable("`pieces` must be a list"));
                };
                self.pieces = Some((Pieces { id, when, all: pieces.into(), at: 0, last: Value::Null }, None));
            }
            Some("late") => self.take_late(&line),
            _ => self.take_input(&line)?,
        }
        Ok(true)
    }

    fn take_beside(&mut self, line: &Value) -> Result<(), String> {
        if let Some(rules) = line.get("rules") {
            merge_rules(&mut self.values, rules);
            read_values(&self.values, &mut self.rules)?;
            answer(&mut self.rules, &self.values, &self.answers);
        }
        let Some(state) = &self.state else { return Ok(()) };
        for (key, value) in line.members_at("set") {
            state.session.set(key, value.clone());
        }
        for key in line.list_at("deleted").iter().filter_map(Value::as_str) {
            state.session.delete(key);
        }
        let own = std::iter::once(&state.spending.books);
        for (books, totals) in own.chain(state.spending.around.books()).zip(line.list_at("books")) {
            books.borrow_mut().set_totals([
                optional(totals, "spent")?,
                optional(totals, "reserved")?,
                optional(totals, "raised")?,
            ]);
        }
        Ok(())
    }

    fn begin_run(&mut self, line: &Value) -> Result<(), String> {
        let start = read_run(line, self.known.take(), &self.left)?;
        self.queue.clear();
        self.open.clear();
        self.names = EffectNames::default();
        (self.used, self.spent) = (start.used, start.spent);
        self.letters = Default::default();
        self.pending.push_back(Seen::Run(start.state.context.clone()));
        self.digest.resume_with(start.unemitted);
        self.state = Some(start.state);
        Ok(())
    }

    fn take_piece(&mut self, id: EffectId, when: When, event: Value) -> Result<(), Divergence> {
        self.now = when.now;
        let piece = AssistantMessageEvent::from_json(&event).map_err(|why| self.unreadable(&why))?;
        let no_run = self.fault("a run", "a piece of an answer before it");
        let state = self.state.as_mut().ok_or(no_run)?;
        // What is not taken by this short way comes again as an input.
        if let Ok(Some(told)) = state.apply_stream_event(when.now, id, Reply::Stream(piece)) {
            self.digest.take_event(&told);
            self.queue.push_back(Output::Event(told));
        }
        self.inputs += 1;
        if self.digest.is_watched() {
            let name = self.open.get(&id).cloned().unwrap_or_default();
            self.pending.push_back(Seen::Reply { id, name, reply: event.to_raw(), is_last: false });
        }
        Ok(())
    }

    /// The answers that rules gave during the step are the lines after it.
    fn gather_answers(&mut self) -> Result<Vec<Value>, Divergence> {
        let mut answers = Vec::new();
        while let Some(line) = self.tape.line(self.at) {
            let line = line.map_err(|why| self.unreadable(&why))?;
            if line.get("ask").is_some() {
                answers.push(line);
            } else if line.get("note").is_some() && self.answer_follows() {
                // A rule of the host has made it.
                self.pending.extend(line.owned_at("note").map(Seen::Note));
            } else {
                break;
            }
            self.at += 1;
        }
        Ok(answers)
    }

    /// Whether the notes from here on stand before an answer.
    fn answer_follows(&self) -> bool {
        let mut lines = (self.at..).map_while(|at| self.tape.line(at)?.ok());
        lines.find(|line| line.get("note").is_none()).is_some_and(|line| line.get("ask").is_some())
    }

    fn take_input(&mut self, line: &Value) -> Result<(), Divergence> {
        let answers = self.gather_answers()?;
        self.answers.expect(answers);
        let no_run = self.fault("a run", "an input before it");
        let state = self.state.as_mut().ok_or(no_run)?;
        let input = read_input(state, line);
        let input = input.map_err(|why| self.unreadable(&why))?;
        self.show_input(line, &input);
        let Some(state) = &mut self.state else { return Ok(()) };
        if let Input::Reply(id, reply) = &input
            && !state.fits(*id, reply)
        {
            let got = ["nothing waits for a reply of ", line.text_at("name").unwrap_or("an effect")].concat();
            return Err(self.fault("a run that waits for this reply", got));
        }
        let is_resume = matches!(input, Input::Resume);
        let mut out = Vec::new();
        // What rules answered to the last input of a tape that was cut may be missing: then the input is too.
        let is_last = !self.tape.is_complete() && self.at >= self.tape.len();
        let before = is_last.then(|| state.apart());
        state.names_messages = self.tape.version() > 2;
        state.step(&self.rules, self.now, input, &mut out);
        while self.tape.version() == 1 && matches!(out.last(), Some(Output::Flush)) {
            out.pop();
            state.step(&self.rules, self.now, Input::Flushed, &mut out);
        }
        for output in &out {
            if let Output::Start { id, effect, .. } = output {
                let name = self.names.name(state, *id, effect);
                self.open.insert(*id, name);
            }
        }
        if before.is_some() && self.answers.fault().is_some() {
            self.state = before;
            return Ok(());
        }
        let checked = self.digest.check(self.inputs, &out, &self.open);
        self.queue.extend(out);
        if is_resume {
            tell_first(self.digest.take_resumed(), &mut self.queue);
        }
        self.pending.extend(self.answers.take_given().into_iter().map(Seen::Rule));
        if let Some((expected, got)) = self.answers.fault() {
            return Err(self.fault(expected, got));
        }
        self.inputs += 1;
        checked
    }

    fn show_input(&mut self, line: &Value, input: &Input) {
        let Input::Reply(id, reply) = input else {
            if self.digest.is_watched() {
                self.pending.push_back(Seen::Input(line.to_raw()));
            }
            return;
        };
        let is_last = !matches!(reply, Reply::Stream(_) | Reply::Progress(_));
        if self.digest.is_watched() {
            let name = self.open.get(id).cloned().unwrap_or_default();
            let reply = line.get("reply").cloned().unwrap_or_default().to_raw();
            self.pending.push_back(Seen::Reply { id: *id, name, reply, is_last });
        }
        if is_last {
            self.open.remove(id);
        }
    }
}
