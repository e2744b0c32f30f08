//! What a replay gives, in short: after each input that is no piece of an answer, a hash of all outputs so far, and the names
//! of the new ones. The last line of a tape has them, and a replay compares.

use std::rc::Rc;

use crate::data::json::{ObjectWriter, ToJson, Value};
use crate::data::table::Table;
use crate::data::text::number;
use crate::host::config::Rules;
use crate::machine::{EffectId, Output, hash_of};
use crate::words::event::AgentEvent;

use super::play::{Divergence, Player};
use super::text::Tape;

/// Lives a tape that has no end once, and returns the line that ends it: how many events it has, and what a replay gives. If
/// the replay differs from what was recorded, the line says where.
pub fn seal(tape: &Tape) -> String {
    let mut player = Player::new(tape);
    player.digest_mut().collected = Some(Vec::new());
    let fault = loop {
        match player.advance() {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    let events = player.events();
    let digest = player.digest_mut();
    let mut line = String::new();
    let mut object = ObjectWriter::new(&mut line);
    let mut end = ObjectWriter::new(object.key("end"));
    end.field("events", &events).field("outputs", digest.collected.as_ref().unwrap_or(&Vec::new()));
    if let Some(fault) = fault {
        end.field("fault", &fault.to_string());
    }
    end.end();
    object.end();
    line
}

/// Rules before a tape says which.
pub(super) fn no_rules() -> Rules {
    Rules::with_models(Vec::new(), Rc::new(String::new))
}

/// Collects what comes out, or compares it.
#[derive(Clone, Default)]
pub(super) struct Digest {
    hash: u64,
    /// What the tape expects, and how much of it has come.
    expected: Rc<[Value]>,
    at: usize,
    events: Option<u64>,
    collected: Option<Vec<String>>,
    watched: bool,
    resumed: Vec<AgentEvent>,
}

impl Digest {
    pub(super) fn of(tape: &Tape) -> Self {
        let expected = tape.end().map(|end| end.list_at("outputs").to_vec()).unwrap_or_default();
        Digest { expected: expected.into(), events: tape.events(), ..Digest::default() }
    }

    pub(super) fn watched(self) -> Self {
        Digest { watched: true, ..self }
    }

    /// Whether anybody wants to see what goes in.
    pub(super) fn is_watched(&self) -> bool {
        self.watched
    }

    /// Keeps the events that a checkpoint had not emitted until its run has resumed.
    pub(super) fn resume_with(&mut self, unemitted: Option<Vec<AgentEvent>>) {
        self.resumed = unemitted.unwrap_or_default();
    }

    pub(super) fn take_resumed(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.resumed)
    }

    /// Takes an event that comes by itself.
    pub(super) fn take_event(&mut self, event: &AgentEvent) {
        if self.is_needed() {
            self.add(&what(event));
        }
    }

    fn is_needed(&self) -> bool {
        self.collected.is_some() || self.at < self.expected.len()
    }

    fn add(&mut self, text: &str) {
        self.hash = self.hash.rotate_left(1) ^ hash_of(text.as_bytes());
    }

    /// Takes the outputs of an input.
    pub(super) fn check(
        &mut self,
        input: u64,
        out: &[Output],
        names: &Table<EffectId, String>,
    ) -> Result<(), Divergence> {
        if !self.is_needed() {
            return Ok(());
        }
        let mut words = String::new();
        for output in out {
            words.push_str(" ");
            let name = |id: &EffectId| names.get(id).cloned().unwrap_or_else(|| number(*id));
            match output {
                Output::Event(event) => {
                    self.add(&what(event));
                    words.push_str(event.name());
                }
                Output::Start { id, announce, .. } => {
                    if let Some(event) = announce {
                        self.add(&what(event));
                    }
                    words.push_str(&[">", &name(id)].concat());
                }
                Output::Cancel(id) => words.push_str(&["<", &name(id)].concat()),
                Output::Answer { id, number: question, answer } => {
                    self.add(&answer.to_json());
                    words.push_str(&["=", &name(id), "?", &number(*question)].concat());
                }
                // Who waits for a receipt is not on the tape.
                Output::Receipt(..) => words.push_str("receipt"),
                Output::Flush => words.push_str("flush"),
            }
        }
        self.add(&words);
        let is = hex(self.hash) + &words;
        if let Some(collected) = &mut self.collected {
            collected.push(is);
            return Ok(());
        }
        let expected = self.expected.get(self.at).and_then(Value::as_str).unwrap_or_default().to_owned();
        self.at += 1;
        if is == expected { Ok(()) } else { Err(Divergence { input, expected, got: is }) }
    }

    /// At the end of the tape everything has come.
    pub(super) fn check_end(&self, events: u64, inputs: u64) -> Result<(), Divergence> {
        match self.events {
            Some(expected) if expected != events => Err(Divergence {
                input: inputs,
                expected: [&number(expected), " events"].concat(),
                got: [&number(events), " events"].concat(),
            }),
            _ => Ok(()),
        }
    }
}

/// What an event says, without the time: versions before this one told none.
fn what(event: &AgentEvent) -> String {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    event.write_what(&mut object);
    object.end();
    out
}

fn hex(hash: u64) -> String {
    let digit = |place: u32| char::from_digit(u32::try_from(hash >> (4 * place) & 15).unwrap_or(0), 16);
    (0..8).rev().filter_map(digit).collect()
}
