//! Writes a tape while a run is alive.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::data::json::{Map, ObjectWriter, ToJson, write_u64};
use crate::data::list::ListWriter;
use crate::data::table::Table;
use crate::host::config::AgentLoopConfig;
use crate::host::tool::ChildEvent;
use crate::journal::{Answers, Beginning, Entering, Seam};
use crate::machine::{Effect, EffectId, EffectNames, Input, LoopState, Output, Reply};
use crate::rules::budget::Amounts;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::message::AgentMessage;

use super::asking::{functions_of, recorded};
use super::beginning::write_run;
use super::digest;
use super::input::{write_child, write_input};
use super::pen::{Pen, delta_of};
use super::pieces::write_piece;
use super::plain::values_of;
use super::redact::{Redact, Redactor};
use super::text::{Tape, VERSION};
use super::wire::hear_bytes;

/// What a recorder writes.
#[derive(Clone, Default)]
pub struct RecorderOptions {
    /// When the recording began, in milliseconds since 1970.
    pub now: u64,
    /// The longest content of an image or a file, in bytes of base64; of a longer one the tape has a placeholder.
    pub max_bytes: Option<usize>,
    /// Sees every text before it is written.
    pub redact: Option<Rc<Redact>>,
    /// Whether the bytes of answers over HTTP are written too, as they came: see [`decode_again`](super::decode_again).
    pub wire: bool,
    /// Whether each run begins with its whole history, so that what is before it can be left out.
    pub is_self_contained: bool,
    /// The events and the starts of effects that the tape has already, for one that goes on.
    pub counts: (u64, u64),
}

/// Hears the events of a run.
#[cfg(feature = "durable")]
type Listener = Rc<dyn Fn(&crate::words::event::AgentEvent)>;

/// Writes a tape of the runs of one agent. Clones write the same one.
#[derive(Clone)]
pub struct Recorder(Rc<Writing>);

struct Writing {
    pen: Rc<Pen>,
    is_self_contained: bool,
    hears_bytes: bool,
    is_stopped: Cell<bool>,
    /// The configuration that was written last, and the one whose rules are recorded.
    config: RefCell<Option<(Rc<AgentLoopConfig>, Rc<AgentLoopConfig>)>>,
    /// The values of its rules.
    values: RefCell<Vec<(&'static str, String)>>,
    names: RefCell<EffectNames>,
    /// The effects that have started and not ended: their names, as members of a line.
    open: RefCell<Table<EffectId, String>>,
    /// The messages that the last run has left.
    left: RefCell<Option<Vec<AgentMessage>>>,
    /// The changes of the session state after the last step.
    changes: RefCell<Map>,
    /// The books of all budgets after the last step.
    books: RefCell<Vec<[Amounts; 3]>>,
}

impl Recorder {
    /// Begins a tape; `now` is in milliseconds since 1970.
    pub fn new(now: u64) -> Self {
        Recorder::with_options(RecorderOptions { now, ..RecorderOptions::default() })
    }

    /// Begins a tape.
    pub fn with_options(options: RecorderOptions) -> Self {
        let RecorderOptions { now, max_bytes, redact, wire, is_self_contained, counts: (events, starts) } =
            options;
        let redacts = redact.is_some();
        let redactor = (max_bytes.is_some() || redact.is_some()).then_some(Redactor { max_bytes, redact });
        let pen = Pen {
            text: RefCell::default(),
            redactor,
            events: Cell::new(events),
            starts: Cell::new(starts),
            now: Cell::new(now),
            pieces: Cell::default(),
            block: Cell::default(),
            call: RefCell::default(),
        };
        pen.append(&header(now));
        Recorder(Rc::new(Writing {
            pen: Rc::new(pen),
            is_self_contained,
            // Nobody can find a text in bytes that may be cut anywhere, so what shall be redacted is not written as bytes.
            hears_bytes: wire && !redacts,
            is_stopped: Cell::default(),
            config: RefCell::default(),
            values: RefCell::default(),
            names: RefCell::default(),
            open: RefCell::default(),
            left: RefCell::default(),
            changes: RefCell::default(),
            books: RefCell::default(),
        }))
    }

    /// Writes a mark for people.
    pub fn note(&self, note: &str) {
        if !self.0.is_stopped.get() {
            let pen = &self.0.pen;
            pen.line(|line| {
                pen.when(pen.now.get(), line);
                line.field("note", note);
            });
        }
    }

    /// Ends the tape: the last line says what a replay of it gives. Nothing is written any more.
    pub fn stop(&self) {
        if self.0.is_stopped.replace(true) {
            return;
        }
        self.0.pen.close_pieces();
        let end = Tape::parse(&self.0.pen.text.borrow()).ok().map(|tape| digest::seal(&tape));
        if let Some(end) = end {
            self.0.pen.append(&end);
        }
    }

    /// The tape so far.
    pub fn to_text(&self) -> String {
        self.0.pen.close_pieces();
        self.0.pen.text.borrow().clone()
    }

    /// The events that the listeners were told of, and the effects that have started.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.pen.events.get(), self.0.pen.starts.get())
    }

    /// The length of the tape so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.0.pen.text.borrow().len()
    }

    /// Takes the lines that are complete, for a host that keeps them itself. [`Recorder::stop`] then has nothing to look at:
    /// the host ends the tape with [`seal`](super::seal).
    pub fn take_lines(&self) -> String {
        let pen = &self.0.pen;
        if pen.redactor.as_ref().is_some_and(Redactor::sees_texts) && pen.pieces.get().is_some() {
            // What is redacted is seen as a whole, so the last line waits for the rest of its block.
            let mut text = pen.text.borrow_mut();
            let end = text.rfind('\n').map_or(0, |at| at + 1);
            let open = text.split_off(end);
            return std::mem::replace(&mut *text, open);
        }
        pen.close_pieces();
        pen.text.take()
    }

    #[cfg(feature = "durable")]
    pub(crate) fn at_seam<Run>(&self) -> Rc<dyn Seam<Run>> {
        self.0.clone()
    }

    /// Returns a listener that hears what this one hears, and counts it.
    #[cfg(feature = "durable")]
    pub(crate) fn listening(&self, listener: Listener) -> Listener {
        let pen = self.0.pen.clone();
        Rc::new(move |event| {
            pen.events.set(pen.events.get() + 1);
            listener(event);
        })
    }
}

/// The first line of a tape.
pub fn header(now: u64) -> String {
    let mut line = String::new();
    let mut object = ObjectWriter::new(&mut line);
    object.field("tape", &VERSION).field("engine", env!("CARGO_PKG_VERSION")).field("createdAt", &now);
    object.end();
    line
}

impl Writing {
    /// Writes the values of rules that have changed.
    fn write_rules(&self, config: &AgentLoopConfig, is_whole: bool) {
        let mut values = values_of(&config.rules);
        values.push(("functions", functions_of(&config.rules).to_json()));
        let before = self.values.replace(values);
        let values = self.values.borrow();
        let changed: Vec<_> = values.iter().filter(|value| is_whole || !before.contains(value)).collect();
        if !changed.is_empty() {
            self.pen.line(|line| {
                let mut rules = ObjectWriter::new(line.key("rules"));
                changed.iter().for_each(|(key, value)| rules.key(key).push_str(value));
                rules.end();
            });
        }
    }

    /// Writes what has changed beside the machine since the last step: the session state, and budgets that others use.
    fn write_surroundings(&self, state: &LoopState) {
        if state.session.has_changes() {
            let changes = state.session.changes();
            if *self.changes.borrow() != changes {
                self.write_changes(state, &changes);
            }
        }
        let books = books_of(state);
        if *self.books.borrow() != books {
            self.pen.line(|line| {
                let mut list = ListWriter::new(line.key("books"));
                for [spent, reserved, raised] in &books {
                    let mut object = ObjectWriter::new(list.item());
                    object.field("spent", spent).field("reserved", reserved).field("raised", raised);
                    object.end();
                }
                list.end();
            });
            *self.books.borrow_mut() = books;
        }
    }

    /// Writes which effect a line is about.
    fn write_effect(&self, id: EffectId, line: &mut ObjectWriter<'_>) {
        write_u64(id, line.raw("\"id\":"));
        if let Some(name) = self.open.borrow().get(&id) {
            line.raw(name);
        }
    }

    fn write_changes(&self, state: &LoopState, changes: &Map) {
        self.pen.line(|line| {
            let mut set = ObjectWriter::new(line.key("set"));
            let mut deleted = Vec::new();
            for (key, value) in changes.iter() {
                match state.session.get(key) {
                    None => deleted.push(key.to_owned()),
                    Some(_) => drop(set.field(key, value)),
                }
            }
            set.end();
            if !deleted.is_empty() {
                line.field("deleted", &deleted);
            }
        });
    }

    fn remember(&self, state: &LoopState) {
        let has_changed = state.session.has_changes() || !self.changes.borrow().is_empty();
        if has_changed {
            *self.changes.borrow_mut() = state.session.changes();
        }
        if !state.spending.around.0.is_empty() || !self.books.borrow().is_empty() {
            *self.books.borrow_mut() = books_of(state);
        }
    }
}

/// What is in the books of all budgets; nothing for a run without.
fn books_of(state: &LoopState) -> Vec<[Amounts; 3]> {
    if state.shared_accounts.0.is_empty() {
        return Vec::new();
    }
    let own = std::iter::once(&state.spending.books);
    own.chain(state.spending.around.books()).map(|books| books.borrow().totals()).collect()
}

impl Writing {
    fn add_beginning(&self, state: &LoopState, beginning: &Beginning<'_>) {
        *self.names.borrow_mut() = EffectNames::default();
        self.open.borrow_mut().clear();
        if let Some((config, _)) = &*self.config.borrow()
            && self.is_self_contained
        {
            self.write_rules(config, true);
        }
        let left = self.left.take().filter(|_| !self.is_self_contained);
        self.pen.line(|line| write_run(state, beginning, left.as_deref(), line));
        *self.books.borrow_mut() = books_of(state);
        *self.changes.borrow_mut() = state.session.changes();
    }

    fn add_input(&self, state: &LoopState, now: u64, input: &Input) {
        self.write_surroundings(state);
        self.pen.line(|line| {
            self.pen.when(now, line);
            if let Input::Reply(id, _) = input {
                self.write_effect(*id, line);
            }
            write_input(state, input, line);
        });
        if let Input::Reply(id, reply) = input
            && !matches!(reply, Reply::Stream(_) | Reply::Progress(_))
        {
            self.open.borrow_mut().remove(id);
        }
    }

    fn add_piece(&self, state: &LoopState, now: u64, id: EffectId, event: &AssistantMessageEvent) {
        use AssistantMessageEvent as E;
        // What ends an answer, or begins it anew, takes the long way.
        if matches!(event, E::Start | E::Done { .. } | E::Error(_)) {
            return;
        }
        self.write_surroundings(state);
        let pen = &self.pen;
        let (events, before) = (pen.events.get(), pen.now.replace(now));
        let open = pen.pieces.get().filter(|(open, _)| *open == id);
        let added = delta_of(event);
        let block = added.map(|(kind, index, _)| (kind, index));
        let is_next = block.is_some() && pen.block.replace(block) == block;
        match (open, added) {
            // Most pieces add to the block of the one before, which was an event.
            (Some((_, told)), Some((_, _, delta))) if is_next && events == told + 1 => {
                let mut text = pen.text.borrow_mut();
                text.push_str(",");
                if now > before {
                    text.push_str("[");
                    write_u64(now - before, &mut text);
                    text.push_str(",");
                }
                delta.write_json(&mut text);
                text.push_str(if now > before { "]" } else { "" });
            }
            (Some((_, told)), _) => {
                let mut text = pen.text.borrow_mut();
                text.push_str(",[");
                write_u64(now.saturating_sub(before), &mut text);
                text.push_str(",");
                write_u64(events.saturating_sub(told), &mut text);
                write_piece(event, &mut text);
            }
            (None, _) => {
                pen.close_pieces();
                pen.block.set(block);
                let mut text = pen.text.borrow_mut();
                let mut line = ObjectWriter::new(&mut text);
                pen.when(now, &mut line);
                line.raw("\"in\":\"pieces\"");
                self.write_effect(id, &mut line);
                line.raw("\"pieces\":[[0,0");
                write_piece(event, &mut text);
            }
        }
        pen.pieces.set(Some((id, events)));
    }

    fn add_late(&self, call_id: &str, event: &ChildEvent, dropped: Option<EffectId>) {
        let pen = &self.pen;
        pen.line(|line| {
            pen.when(pen.now.get(), line);
            line.field("in", "late").field("callId", call_id).optional("id", &dropped);
            write_child(event, line);
        });
    }
}

impl<Run> Seam<Run> for Writing {
    fn configure(&self, config: Rc<AgentLoopConfig>) -> Rc<AgentLoopConfig> {
        if self.is_stopped.get() {
            return config;
        }
        if let Some((known, recorded)) = &*self.config.borrow()
            && Rc::ptr_eq(known, &config)
        {
            return recorded.clone();
        }
        self.write_rules(&config, false);
        let mut recorded = recorded(&config, &self.pen);
        if self.hears_bytes {
            let timer = config.ports.timer.clone();
            hear_bytes(&mut recorded, &self.pen, Rc::new(move || timer.now()));
        }
        let recorded = Rc::new(recorded);
        *self.config.borrow_mut() = Some((config, recorded.clone()));
        recorded
    }

    fn starts(&self, _: &mut Run, _: EffectId, effect: Effect, _: Answers) -> Option<Effect> {
        self.pen.starts.set(self.pen.starts.get() + 1);
        Some(effect)
    }

    fn enters(&self, state: &LoopState, now: u64, entering: &Entering<'_>) {
        if self.is_stopped.get() {
            return;
        }
        match entering {
            Entering::Beginning(beginning) => self.add_beginning(state, beginning),
            Entering::Input(input) => self.add_input(state, now, input),
            Entering::Piece(id, event) => self.add_piece(state, now, *id, event),
            Entering::Late { call_id, event, dropped } => self.add_late(call_id, event, *dropped),
        }
    }

    fn entered(&self, state: &LoopState, out: &[Output]) {
        if self.is_stopped.get() {
            return;
        }
        for output in out {
            match output {
                Output::Start { id, effect, .. } => {
                    let name = self.names.borrow_mut().name(state, *id, effect);
                    if self.hears_bytes && matches!(effect, Effect::Infer { .. }) {
                        *self.pen.call.borrow_mut() = Some((*id, name.clone()));
                    }
                    let mut member = String::from("\"name\":");
                    name.write_json(&mut member);
                    self.open.borrow_mut().insert(*id, member);
                }
                Output::Cancel(id) => drop(self.open.borrow_mut().remove(id)),
                Output::Event(_) | Output::Answer { .. } | Output::Receipt(..) | Output::Flush => {}
            }
        }
        if state.is_ended() {
            *self.left.borrow_mut() = Some(state.messages().to_vec());
        }
        self.remember(state);
    }
}
