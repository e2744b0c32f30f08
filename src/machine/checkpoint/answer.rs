//! An answer in a checkpoint: on its way, cut, or in the history.

use crate::data::json::{ObjectWriter, ToJson};
use crate::data::table::Table;
use crate::rules::stream::CallFault;
use crate::words::message::AgentMessage;

use crate::machine::checkpoint::long;
use crate::machine::checkpoint::part::Part;
use crate::machine::history::History;
use crate::machine::phase::{AttemptStage, Cut, StoredAnswer, Streaming};

pub(super) fn write_stage(stage: &AttemptStage, out: &mut ObjectWriter<'_>) {
    match stage {
        AttemptStage::BeforeHook(_) => drop(out.field("step", "before_hook")),
        AttemptStage::BackingOff(_, until) => drop(out.field("step", "backing_off").field("until", until)),
        AttemptStage::AfterHook(_, answer) => {
            out.field("step", "after_hook");
            answer.write(out);
        }
        AttemptStage::Streaming(streaming) => cut_of(streaming).write(out),
        // It is asked again.
        AttemptStage::FailedHook(_, failed) => cut_of(&failed.streaming).write(out),
        AttemptStage::Cut(cut) => cut.write(out),
    }
}

fn cut_of(streaming: &Streaming) -> Cut {
    let assembler = streaming.assembler.clone();
    let (shown, usage) = (!assembler.is_empty(), assembler.usage.totalled());
    Cut { shown, usage, content: assembler.partial() }
}

pub(super) fn read_stage(history: &History, inference: &Part<'_>) -> AttemptStage {
    match inference.word("step") {
        "before_hook" => AttemptStage::BeforeHook(0),
        "backing_off" => AttemptStage::BackingOff(0, inference.long("until")),
        "after_hook" => match StoredAnswer::read(history, inference) {
            Some(answer) => AttemptStage::AfterHook(0, answer),
            None => AttemptStage::BeforeHook(0),
        },
        "streaming" => {
            let (content, usage) = (inference.read("content"), inference.read("usage"));
            AttemptStage::Cut(Cut { shown: inference.flag("shown"), content, usage })
        }
        other => {
            inference.unknown("step", other);
            AttemptStage::BeforeHook(0)
        }
    }
}

impl Cut {
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        out.field("step", "streaming").field("shown", &self.shown);
        out.field("content", &self.content).field("usage", &self.usage);
    }
}

impl StoredAnswer {
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        out.field("place", &long(self.place));
        let mut faults = ObjectWriter::new(out.key("faults"));
        for (id, fault) in &self.faults {
            let word = match fault {
                CallFault::Cut => "cut",
                CallFault::NotAnObject => "not_an_object",
                CallFault::Malformed(error) => error,
            };
            faults.field(id, word);
        }
        faults.end();
        let mut own = ObjectWriter::new(out.key("ownArguments"));
        for (id, arguments) in self.own_arguments.iter() {
            own.field(id, arguments);
        }
        own.end();
    }

    pub(super) fn read(history: &History, answer: &Part<'_>) -> Option<StoredAnswer> {
        let place = answer.size("place");
        let Some(AgentMessage::Assistant(message)) = history.messages().get(place) else {
            answer.report("place", "must be that of an answer");
            return None;
        };
        let faults = answer.map("faults");
        let mut read =
            StoredAnswer { message: message.clone(), place, faults: Vec::new(), own_arguments: Table::new() };
        for (id, fault) in faults.iter() {
            let fault = match fault.as_str().unwrap_or_default() {
                "cut" => CallFault::Cut,
                "not_an_object" => CallFault::NotAnObject,
                error => CallFault::Malformed(error.to_owned()),
            };
            read.faults.push((id.to_owned(), fault));
        }
        for (id, arguments) in answer.map("ownArguments").iter() {
            read.own_arguments.insert(id.to_owned(), arguments.to_raw());
        }
        // Whoever wrote it may have let them pass.
        for call in message.tool_calls().filter(|call| !faults.iter().any(|(id, _)| id == call.call_id)) {
            let own = read.own_arguments.get(&call.call_id).unwrap_or(&call.arguments);
            if let Err(why) = own.as_arguments() {
                read.faults.push((call.call_id.clone(), CallFault::Malformed(why)));
            }
        }
        Some(read)
    }
}
