//! An answer in a checkpoint: on its way, cut, or in the history.

use crate::data::json::{ObjectWriter, ToJson};
use crate::data::table::Table;
use crate::rules::stream::CallFault;
use crate::words::message::AgentMessage;

use crate::machine::checkpoint::long;
use crate::machine::checkpoint::part::Part;
use crate::machine::history::History;
use crate::machine::state::{Answer, AskStep, Cut};

pub(super) fn write_step(step: &AskStep, out: &mut ObjectWriter<'_>) {
    let cut;
    match step {
        AskStep::BeforeHook(_) => drop(out.field("step", "before_hook")),
        AskStep::BackingOff(_, until) => drop(out.field("step", "backing_off").field("until", until)),
        AskStep::AfterHook(_, answer) => {
            out.field("step", "after_hook");
            answer.write(out);
        }
        AskStep::Streaming(streaming) => {
            let assembler = streaming.assembler.clone();
            let (shown, usage) = (!assembler.is_empty(), assembler.usage.totalled());
            cut = Cut { shown, usage, content: assembler.partial() };
            cut.write(out);
        }
        AskStep::Cut(cut) => cut.write(out),
    }
}

#[inline(never)]
pub(super) fn read_step(history: &History, ask: &Part<'_>) -> AskStep {
    match ask.word("step") {
        "before_hook" => AskStep::BeforeHook(0),
        "backing_off" => AskStep::BackingOff(0, ask.long("until")),
        "after_hook" => match Answer::read(history, ask) {
            Some(answer) => AskStep::AfterHook(0, answer),
            None => AskStep::BeforeHook(0),
        },
        "streaming" => {
            let (content, usage) = (ask.read("content"), ask.read("usage"));
            AskStep::Cut(Cut { shown: ask.flag("shown"), content, usage })
        }
        other => {
            ask.unknown("step", other);
            AskStep::BeforeHook(0)
        }
    }
}

impl Cut {
    pub(super) fn write(&self, out: &mut ObjectWriter<'_>) {
        out.field("step", "streaming").field("shown", &self.shown);
        out.field("content", &self.content).field("usage", &self.usage);
    }
}

impl Answer {
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

    pub(super) fn read(history: &History, answer: &Part<'_>) -> Option<Answer> {
        let place = answer.size("place");
        let Some(AgentMessage::Assistant(message)) = history.messages().get(place) else {
            answer.report("place", "must be that of an answer");
            return None;
        };
        let faults = answer.map("faults");
        let mut read =
            Answer { message: message.clone(), place, faults: Vec::new(), own_arguments: Table::new() };
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
        Some(read)
    }
}
