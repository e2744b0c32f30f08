//! The text of a tape: a line of JSON for each thing that went into the run.

use std::fmt;
use std::rc::Rc;

use crate::data::json::Value;

/// The version of the format that this engine writes, and the highest that it reads.
///
/// | version | what is new |
/// |---|---|
/// | 2 | `flushed`: policies decide after the listeners have received the events before |
pub(super) const VERSION: u64 = 3;

/// A recorded tape. Cloning copies a pointer.
#[derive(Clone, Debug)]
pub struct Tape(Rc<Lines>);

#[derive(Debug)]
struct Lines {
    header: Value,
    lines: Vec<Rc<str>>,
    end: Option<Value>,
}

/// Why a text is no tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapeError(String);

impl fmt::Display for TapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TapeError {}

impl Tape {
    /// Reads a tape. Its lines are read when they are needed; a last line that is cut, as a crash leaves it, is left out.
    ///
    /// # Errors
    /// If the text does not begin like a tape, or is of a version that this engine does not know.
    pub fn parse(text: &str) -> Result<Self, TapeError> {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let header = lines.next().and_then(|line| Value::parse_container(line).ok());
        let version = header.as_ref().and_then(|header| header.number_at("tape"));
        match (header, version) {
            (Some(header), Some(1..=VERSION)) => Ok(Tape::of(header, lines)),
            (_, Some(other)) => {
                let other = crate::data::text::number(other);
                Err(TapeError(
                    ["the tape is of version ", &other, ", which this engine does not know"].concat(),
                ))
            }
            _ => Err(TapeError("the text is no tape: its first line must have a number `tape`".to_owned())),
        }
    }

    fn of<'a>(header: Value, lines: impl Iterator<Item = &'a str>) -> Self {
        let mut lines: Vec<Rc<str>> = lines.map(Rc::from).collect();
        let parsed = lines.last().map(|last| Value::parse_container(last));
        let end = match parsed {
            Some(Ok(last)) if last.get("end").is_some() => {
                lines.pop();
                Some(last.get("end").cloned().unwrap_or_default())
            }
            Some(Err(_)) => {
                // A crash has cut it.
                lines.pop();
                None
            }
            _ => None,
        };
        Tape(Rc::new(Lines { header, lines, end }))
    }

    /// The first line.
    pub fn header(&self) -> &Value {
        &self.0.header
    }

    /// In the first version, policies decided in the same step; before the third, messages had no names.
    pub(super) fn version(&self) -> u64 {
        self.0.header.number_at("tape").unwrap_or(VERSION)
    }

    /// Whether the recording was stopped in order.
    pub fn is_complete(&self) -> bool {
        self.0.end.is_some()
    }

    /// The number of lines, without the first and the last.
    pub fn len(&self) -> usize {
        self.0.lines.len()
    }

    /// Whether nothing happened.
    pub fn is_empty(&self) -> bool {
        self.0.lines.is_empty()
    }

    /// The number of events, if the tape says it: one that was cut does not.
    pub fn events(&self) -> Option<u64> {
        self.0.end.as_ref()?.number_at("events")
    }

    /// What a replay of it must give.
    pub(super) fn end(&self) -> Option<&Value> {
        self.0.end.as_ref()
    }

    /// Reads a line.
    pub(super) fn line(&self, at: usize) -> Option<Result<Value, String>> {
        let line = self.0.lines.get(at)?;
        Some(Value::parse_container(line).map_err(|error| error.to_string()))
    }
}
