//! What reaches a run from outside rides in the record of the next step that ends.

use std::rc::Rc;

use crate::data::json::{RawJson, ToJson, Value};
use crate::data::text;
use crate::machine::AgentCommand;

use super::journal::{Journal, object_of};
use super::open::What;
use super::record::{Mail, Outcome};
use super::slot::RunSlot;

/// Whether a step is one of a run inside a call.
fn is_inside(step: &str, call: &str) -> bool {
    step.strip_prefix(call).is_some_and(|rest| rest.starts_with('/'))
}

impl Journal {
    pub(crate) fn has_mail(&self) -> bool {
        !self.mail.borrow().is_empty()
    }

    /// A command has reached a run.
    pub(crate) fn post(&self, slot: &RunSlot, command: AgentCommand) {
        let json = Value::parse(&command.to_json()).unwrap_or_default();
        let id = self.post_json(slot, json);
        self.posted.borrow_mut().insert(id, command);
    }

    /// Whether mail that is in no record yet will end the run that a step belongs to.
    pub(crate) fn is_ending(&self, name: &str) -> bool {
        self.mail.borrow().iter().any(|mail| match mail.command.text_at("kind") {
            Some("cancel") => true,
            Some("limit") => match mail.command.text_at("name") {
                Some(call) => is_inside(name, call),
                None => name.starts_with(&mail.run),
            },
            _ => false,
        })
    }

    pub(crate) fn post_json(&self, slot: &RunSlot, command: Value) -> String {
        self.mails.set(self.mails.get() + 1);
        let id = [&self.life, ":", &text::number(self.mails.get())].concat();
        self.mail.borrow_mut().push(Mail { id: id.clone(), run: slot.prefix.clone(), command });
        let waiting = self.open.borrow().iter().find(|open| matches!(open.what, What::Mail)).cloned();
        if let Some(open) = waiting.filter(|open| open.begun.get()) {
            open.end(Outcome::Value(RawJson::null()));
        }
        id
    }

    /// The time of a run is over, or that of a call with an agent inside, which has this name.
    pub(crate) fn post_limit(&self, slot: &RunSlot, call: Option<&str>) {
        let limit = object_of(|object| {
            object.field("kind", "limit");
            if let Some(call) = call {
                object.field("name", call);
            }
        });
        self.post_json(slot, limit.to_value());
    }

    /// The runs inside a run, or inside a call of it: what comes before the names of their steps.
    pub(crate) fn inside(&self, prefix: &str, except: &RunSlot) -> Vec<Rc<RunSlot>> {
        let is_inside = |other: &Rc<RunSlot>| {
            other.prefix.starts_with(prefix) && !std::ptr::eq(&raw const **other, except)
        };
        self.slots().into_iter().filter(is_inside).collect()
    }
}
