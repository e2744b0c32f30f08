//! What goes into the machine, as JSON. Reading needs the state that takes the input: what a transformer gave names messages
//! of the history.

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value};
use crate::data::list::{ListWriter, read_all};
use crate::host::ports::{Compaction, TurnChoice};
use crate::host::tool::{AgentToolResult, Ask, Asking, ChildEvent, Progress, ToolOutcome};
use crate::machine::{AgentCommand, Input, Letter, LoopState, Reply};
use crate::rules::approval::read_decision;
use crate::rules::policy::Transform;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::ErrorInfo;
use crate::words::event::CompactionReport;
use crate::words::message::{AgentMessage, Usage};

use super::messages::{read_known, write_known};

/// Writes the members of an input, without those of a reply's effect.
pub(super) fn write_input(state: &LoopState, input: &Input, out: &mut ObjectWriter<'_>) {
    match input {
        Input::Begin(prompts) => drop(out.field("in", "begin").field("messages", prompts)),
        Input::Continue => drop(out.field("in", "continue")),
        Input::Resume => drop(out.field("in", "resume")),
        Input::Reply(_, reply) => {
            let out = out.raw("\"in\":\"reply\",\"reply\":");
            match usual(reply) {
                Some(text) => out.push_str(text),
                None => write_reply(state.messages(), given(state), reply, out),
            }
        }
        Input::Command(command) => drop(out.field("in", "command").field("command", command)),
        Input::Steer(letters) => drop(out.field("in", "steer").field("letters", letters)),
        Input::Abort(reason) => drop(out.field("in", "abort").field("reason", reason)),
        Input::Deserted => drop(out.field("in", "deserted")),
        Input::Flushed => drop(out.field("in", "flushed")),
    }
}

/// Reads an input.
///
/// # Errors
/// Names what cannot be read.
pub(super) fn read_input(state: &LoopState, line: &Value) -> Result<Input, String> {
    let get = |key: &str| line.get(key).unwrap_or(&Value::Null);
    Ok(match line.text_at("in").unwrap_or_default() {
        "begin" => Input::Begin(Vec::from_json(get("messages"))?),
        "continue" => Input::Continue,
        "resume" => Input::Resume,
        "reply" => {
            let id = line.number_at("id").ok_or("a reply needs the `id` of its effect")?;
            Input::Reply(id, read_reply(state.messages(), given(state), get("reply"))?)
        }
        "command" => Input::Command(AgentCommand::from_json(get("command"))?),
        "steer" => Input::Steer(read_all(get("letters"), Letter::from_json)?),
        "abort" => Input::Abort(line.text_at("reason").unwrap_or_default().into()),
        "deserted" => Input::Deserted,
        "flushed" => Input::Flushed,
        other => return Err(["there is no input `", other, "`"].concat()),
    })
}

/// What a transformer was given: the asynchronous one looks at the history as it was chosen for the turn.
fn given(state: &LoopState) -> &[AgentMessage] {
    state.chosen_messages()
}

/// What [`write_reply`] writes of the replies that come in every turn.
fn usual(reply: &Reply) -> Option<&'static str> {
    Some(match reply {
        Reply::Prepared(Ok(Transform::Unchanged)) => r#"{"kind":"prepared","as":"unchanged"}"#,
        Reply::Stream(AssistantMessageEvent::Start) => r#"{"kind":"stream","event":{"type":"start"}}"#,
        Reply::StreamEnded => r#"{"kind":"stream_ended"}"#,
        Reply::Hook(Ok(())) => r#"{"kind":"hook"}"#,
        Reply::Polled(messages) if messages.is_empty() => r#"{"kind":"polled","messages":[]}"#,
        Reply::Slept => r#"{"kind":"slept"}"#,
        _ => return None,
    })
}

/// Writes a reply. `messages` is the history, and `given` what a transformer was given.
pub(crate) fn write_reply(
    messages: &[AgentMessage],
    given: &[AgentMessage],
    reply: &Reply,
    out: &mut String,
) {
    let mut object = ObjectWriter::new(out);
    match reply {
        Reply::Chosen(Ok(choice)) => {
            object.field("kind", "chosen");
            if let Some(chosen) = &choice.messages {
                write_known(messages, chosen, object.key("messages"));
            }
        }
        Reply::Chosen(Err(error)) => drop(object.field("kind", "chosen").field("error", error)),
        Reply::Prepared(transform) => {
            object.field("kind", "prepared");
            write_transform(given, transform.as_ref(), &mut object);
        }
        Reply::Stream(event) => drop(object.field("kind", "stream").field("event", event)),
        Reply::StreamEnded => drop(object.field("kind", "stream_ended")),
        Reply::Hook(result) => {
            object.field("kind", "hook").optional("error", &result.as_ref().err().cloned());
        }
        Reply::Approved(Ok(decision)) => drop(object.field("kind", "approved").field("decision", decision)),
        Reply::Approved(Err(error)) => drop(object.field("kind", "approved").field("error", error)),
        Reply::Progress(Progress::Update(update)) => {
            object.field("kind", "progress").field("update", update);
        }
        Reply::Progress(Progress::Event(event)) => {
            object.field("kind", "child");
            write_child(event, &mut object);
        }
        Reply::Progress(Progress::Ask(asking)) => {
            object.field("kind", "ask");
            write_asking(asking, &mut object);
        }
        Reply::Executed(outcome) => {
            object.field("kind", "executed");
            write_outcome(outcome, &mut object);
        }
        Reply::Polled(messages) => drop(object.field("kind", "polled").field("messages", messages)),
        Reply::Compacted(compaction) => {
            object.field("kind", "compacted");
            write_compaction(messages, compaction.as_ref(), &mut object);
        }
        Reply::Slept => drop(object.field("kind", "slept")),
    }
    object.end();
}

/// Reads what [`write_reply`] has written.
pub(crate) fn read_reply(
    history: &[AgentMessage],
    given: &[AgentMessage],
    reply: &Value,
) -> Result<Reply, String> {
    let get = |key: &str| reply.get(key).unwrap_or(&Value::Null);
    let error = reply.owned_at("error");
    Ok(match reply.text_at("kind").unwrap_or_default() {
        "chosen" => Reply::Chosen(match error {
            Some(error) => Err(error),
            None => {
                let messages = reply.get("messages").map(|list| read_known(history, list)).transpose()?;
                Ok(Box::new(TurnChoice { messages, ..TurnChoice::default() }))
            }
        }),
        "prepared" => Reply::Prepared(read_transform(given, reply)?),
        "stream" => Reply::Stream(AssistantMessageEvent::from_json(get("event"))?),
        "stream_ended" => Reply::StreamEnded,
        "hook" => Reply::Hook(match reply.get("error") {
            None => Ok(()),
            Some(error) => Err(ErrorInfo::from_json(error)?),
        }),
        "approved" => Reply::Approved(match error {
            Some(error) => Err(error),
            None => Ok(read_decision(get("decision"))?),
        }),
        "progress" => Reply::Progress(Progress::Update(get("update").to_raw())),
        "child" => Reply::Progress(Progress::Event(read_child(reply))),
        "ask" => Reply::Progress(Progress::Ask(read_asking(reply))),
        "executed" => Reply::Executed(read_outcome(reply)?),
        "polled" => Reply::Polled(Vec::from_json(get("messages"))?),
        "compacted" => Reply::Compacted(read_compaction(history, reply)?),
        "slept" => Reply::Slept,
        other => return Err(["there is no reply `", other, "`"].concat()),
    })
}

/// Writes the members of a transformer's answer.
pub(super) fn write_transform(
    given: &[AgentMessage],
    transform: Result<&Transform, &String>,
    out: &mut ObjectWriter<'_>,
) {
    let report = match transform {
        Err(error) => {
            out.field("error", error);
            return;
        }
        Ok(Transform::Unchanged) => {
            out.field("as", "unchanged");
            return;
        }
        Ok(Transform::View(_)) => {
            out.field("as", "view");
            None
        }
        Ok(Transform::Reduced { report, .. }) => {
            out.field("as", "reduced");
            Some(report)
        }
        Ok(Transform::Replace { report, .. }) => {
            out.field("as", "replace");
            report.as_ref()
        }
    };
    if let Some(report) = report {
        out.field("report", report);
    }
    if let Some(messages) = transform.ok().and_then(Transform::messages) {
        write_known(given, messages, out.key("messages"));
    }
}

/// Reads what [`write_transform`] has written: the answer of a transformer, which may be an error.
pub(super) fn read_transform(
    given: &[AgentMessage],
    value: &Value,
) -> Result<Result<Transform, String>, String> {
    if let Some(error) = value.owned_at("error") {
        return Ok(Err(error));
    }
    let messages = || read_known(given, value.get("messages").unwrap_or(&Value::Null));
    let report = value.get("report").map(CompactionReport::from_json).transpose()?;
    Ok(Ok(match value.text_at("as") {
        Some("view") => Transform::View(messages()?),
        Some("reduced") => Transform::Reduced { view: messages()?, report: report.unwrap_or_default() },
        Some("replace") => Transform::Replace { messages: messages()?, report },
        _ => Transform::Unchanged,
    }))
}

fn write_compaction(
    history: &[AgentMessage],
    compaction: Option<&Result<Compaction, String>>,
    out: &mut ObjectWriter<'_>,
) {
    match compaction {
        None => {}
        Some(Err(error)) => drop(out.field("error", error)),
        Some(Ok(Compaction { failed: Some(error), usage, .. })) => {
            out.field("error", error).field("usage", usage);
        }
        Some(Ok(Compaction { messages, report, usage, failed: None })) => {
            write_known(history, messages, out.key("messages"));
            out.optional("report", report).field("usage", usage);
        }
    }
}

fn read_compaction(
    history: &[AgentMessage],
    value: &Value,
) -> Result<Option<Result<Compaction, String>>, String> {
    let usage = value.get("usage").map(Usage::from_json).transpose()?;
    if let Some(error) = value.owned_at("error") {
        return Ok(Some(match usage {
            Some(usage) => Ok(Compaction { failed: Some(error), usage, ..Compaction::default() }),
            None => Err(error),
        }));
    }
    let Some(list) = value.get("messages") else { return Ok(None) };
    Ok(Some(Ok(Compaction {
        messages: read_known(history, list)?,
        report: value.get("report").map(CompactionReport::from_json).transpose()?,
        usage: usage.unwrap_or_default(),
        failed: None,
    })))
}

fn write_outcome(outcome: &ToolOutcome, out: &mut ObjectWriter<'_>) {
    match outcome {
        ToolOutcome::Completed(result) => drop(out.field("result", result)),
        ToolOutcome::Failed(text) => drop(out.field("failed", text)),
        ToolOutcome::Invalid(text) => drop(out.field("invalid", text)),
        ToolOutcome::Cancelled => drop(out.field("cancelled", &true)),
        ToolOutcome::Interrupted => drop(out.field("interrupted", &true)),
    }
}

fn read_outcome(value: &Value) -> Result<ToolOutcome, String> {
    if let Some(text) = value.owned_at("failed") {
        return Ok(ToolOutcome::Failed(text));
    }
    if let Some(text) = value.owned_at("invalid") {
        return Ok(ToolOutcome::Invalid(text));
    }
    match value.get("result") {
        Some(result) => Ok(ToolOutcome::Completed(AgentToolResult::from_json(result)?)),
        None if value.get("interrupted").is_some() => Ok(ToolOutcome::Interrupted),
        None => Ok(ToolOutcome::Cancelled),
    }
}

/// Writes the members of a question of a running tool.
fn write_asking(asking: &Asking, out: &mut ObjectWriter<'_>) {
    let Asking { number, ask: Ask { message, schema, id } } = asking;
    out.field("number", number).field("message", message).optional("schema", schema).optional("askId", id);
}

fn read_asking(value: &Value) -> Asking {
    let ask = Ask {
        message: value.owned_at("message").unwrap_or_default(),
        schema: value.get("schema").map(ToJson::to_raw),
        id: value.owned_at("askId"),
    };
    Asking { number: value.number_at("number").unwrap_or_default(), ask }
}

/// Writes the members of an event of an agent inside a call.
pub(super) fn write_child(child: &ChildEvent, out: &mut ObjectWriter<'_>) {
    let ChildEvent { path, event, keeps_questions, shares_budget } = child;
    let mut list = ListWriter::new(out.key("path"));
    path.iter().for_each(|call_id| call_id.write_json(list.item()));
    list.end();
    out.field("event", event);
    out.optional("keepsQuestions", &keeps_questions.then_some(true));
    out.optional("sharesBudget", &shares_budget.then_some(true));
}

/// Reads what [`write_child`] has written.
pub(super) fn read_child(value: &Value) -> ChildEvent {
    let path = value.list_at("path").iter().filter_map(|call_id| call_id.as_str().map(str::to_owned));
    ChildEvent {
        path: path.collect(),
        event: value.get("event").map_or_else(RawJson::null, ToJson::to_raw),
        keeps_questions: value.flag_at("keepsQuestions").unwrap_or_default(),
        shares_budget: value.flag_at("sharesBudget").unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_replies_are_written_like_the_others() {
        let replies = [
            Reply::Prepared(Ok(Transform::Unchanged)),
            Reply::Stream(AssistantMessageEvent::Start),
            Reply::StreamEnded,
            Reply::Hook(Ok(())),
            Reply::Polled(Vec::new()),
            Reply::Slept,
        ];
        for reply in replies {
            let mut written = String::new();
            write_reply(&[], &[], &reply, &mut written);
            assert_eq!(usual(&reply), Some(&*written));
        }
    }
}
