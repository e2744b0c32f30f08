//! Values that cross from the agent's thread: their JSON.

use std::fmt;
use std::marker::PhantomData;

use serde::{Serialize, Serializer};

use crate::data::json::{FromJson, ObjectWriter, ToJson, Value};
use crate::words::error::ErrorKind;
use crate::words::event::AgentEvent;

use super::error::SpawnError;

/// A value of the agent's thread, as its JSON. It is `Send`, which the value is not: [`Sent::read`] makes one of the thread that
/// calls it. `Display` and [`Sent::as_str`] give the text, serde the value.
pub struct Sent<T> {
    text: String,
    of: PhantomData<fn() -> T>,
}

impl<T> Sent<T> {
    fn of_text(text: String) -> Self {
        Sent { text, of: PhantomData }
    }

    /// The JSON, in one line.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The JSON, in one line.
    pub fn into_string(self) -> String {
        self.text
    }
}

impl<T: ToJson> Sent<T> {
    pub(super) fn new(value: &T) -> Self {
        Sent::of_text(value.to_json())
    }
}

impl<T: FromJson> Sent<T> {
    /// Reads the value.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`], if what the thread wrote cannot be read, which is a bug.
    pub fn read(&self) -> Result<T, SpawnError> {
        let value = Value::parse_container(&self.text).map_err(|error| error.text());
        value.and_then(|value| T::from_json(&value)).map_err(|why| {
            SpawnError::new(
                ErrorKind::Internal,
                ["what the agent's thread wrote cannot be read: ", &why].concat(),
            )
        })
    }
}

impl Sent<AgentEvent> {
    /// Writes an event as the npm package gives it, with the id of its run.
    pub(super) fn event(event: &AgentEvent, run_id: &str) -> Self {
        let mut text = String::new();
        let mut object = ObjectWriter::new(&mut text);
        event.write_members(&mut object);
        object.field("runId", run_id);
        object.end();
        Sent::of_text(text)
    }

    /// The name of the event, such as `message_update`: its `type`.
    pub fn name(&self) -> &str {
        let name = self.text.strip_prefix(r#"{"type":""#).and_then(|rest| rest.split('"').next());
        name.unwrap_or_default()
    }

    /// Whether this event adds text to the answer; [`AgentEvent::added_text`] gives it.
    ///
    /// ```
    /// # use futures::{TryStreamExt, executor::block_on};
    /// # use turnwheel::{Agent, AgentLoopConfig, scripted, spawn};
    /// # let agent = spawn(|| {
    /// #     let model = scripted::model([scripted::text("Hello!")]);
    /// #     Ok::<_, String>(Agent::new(AgentLoopConfig::new(model, scripted::clock()), Vec::new()))
    /// # })?;
    /// # block_on(async {
    /// # let mut run = agent.prompt("Say hello.").await?;
    /// while let Some(event) = run.try_next().await? {
    ///     print!("{}", event.added_text()?.unwrap_or_default());
    /// }
    /// # Ok::<_, turnwheel::spawn::SpawnError>(())
    /// # })?;
    /// # Ok::<(), turnwheel::spawn::SpawnError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Sent::read`].
    pub fn added_text(&self) -> Result<Option<String>, SpawnError> {
        if self.name() != "message_update" {
            return Ok(None);
        }
        Ok(self.read()?.added_text().map(str::to_owned))
    }
}

impl<T> Clone for Sent<T> {
    fn clone(&self) -> Self {
        Sent::of_text(self.text.clone())
    }
}

impl<T> PartialEq for Sent<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl<T> fmt::Display for Sent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T> fmt::Debug for Sent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T> Serialize for Sent<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        Value::parse_container(&self.text).map_err(S::Error::custom)?.serialize(serializer)
    }
}
