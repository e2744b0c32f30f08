//! What is stored of a step.

use crate::data::json::members::plain;
use crate::data::json::{ObjectWriter, RawJson, ToJson, Value, members};
use crate::data::text;

/// The version of records.
const VERSION: u64 = 2;

/// What became of the work of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// A value, as JSON.
    Value(RawJson),
    /// The value could not be stored.
    Error(String),
    /// Nobody wanted it any more.
    Cancelled,
    /// Its time was over.
    Late,
}

/// What reached a run from outside.
#[derive(Clone, Debug)]
pub(crate) struct Mail {
    /// The process that it reached, and a number.
    pub(crate) id: String,
    /// The run: what comes before the names of its steps.
    pub(crate) run: String,
    /// The command; `{"kind":"limit"}` for the time limit of the run; `{"kind":"come",…}` for what the engine waited for.
    pub(crate) command: Value,
}

members!(write Mail { "id" => id: plain, "run" => run: plain, "command" => command: plain });

/// A record: of which step it is, what became of the work, when that was, how many records there were before it, and what had reached the run by then.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) n: u64,
    pub(crate) outcome: Outcome,
    pub(crate) mail: Vec<Mail>,
}

impl Record {
    pub(crate) fn write(&self, name: &str) -> RawJson {
        let mut json = String::new();
        let mut object = ObjectWriter::new(&mut json);
        object.field("v", &VERSION).field("name", name).field("at", &self.at).field("n", &self.n);
        match &self.outcome {
            Outcome::Value(value) => drop(object.field("value", value)),
            Outcome::Error(error) => drop(object.field("error", error)),
            Outcome::Cancelled => drop(object.field("cancelled", &true)),
            Outcome::Late => drop(object.field("late", &true)),
        }
        if !self.mail.is_empty() {
            object.field("mail", &self.mail);
        }
        object.end();
        RawJson::parse(&json).unwrap_or_else(|_| RawJson::null())
    }

    /// Reads the record of a step, or says why it is none.
    pub(crate) fn read(json: &RawJson, name: &str) -> Result<Record, String> {
        let value = json.to_value();
        if let Some(other) = value.text_at("name").filter(|other| *other != name) {
            return Err(["it gave the record of `", other, "`"].concat());
        }
        Record::read_value(&value).ok_or_else(|| {
            "it must give back what the work returned; it gave something else, or the record was damaged or is of another version of turnwheel"
                .to_owned()
        })
    }

    fn read_value(value: &Value) -> Option<Record> {
        if value.number_at("v") != Some(VERSION) {
            return None;
        }
        let outcome = match (value.get("value"), value.owned_at("error")) {
            (Some(value), _) => Outcome::Value(value.to_raw()),
            (None, Some(error)) => Outcome::Error(error),
            (None, None) if value.flag_at("late") == Some(true) => Outcome::Late,
            (None, None) if value.flag_at("cancelled") == Some(true) => Outcome::Cancelled,
            (None, None) => return None,
        };
        let mail = value.list_at("mail").iter().map(|mail| Mail {
            id: mail.owned_at("id").unwrap_or_default(),
            run: mail.owned_at("run").unwrap_or_default(),
            command: mail.get("command").cloned().unwrap_or_default(),
        });
        Some(Record { at: value.number_at("at")?, n: value.number_at("n")?, outcome, mail: mail.collect() })
    }
}

/// What is said where a value is too large to be stored.
pub(crate) fn too_large(what: &str, bytes: usize, limit: usize) -> String {
    let (bytes, limit) = (text::number(bytes), text::number(limit));
    [
        "the result of `",
        what,
        "` has ",
        &bytes,
        " bytes, and at most ",
        &limit,
        " can be stored (`Steps::max_bytes`)",
    ]
    .concat()
}
