//! What has arrived of an answer, as events that give the same once more.

use super::super::event::AssistantMessageEvent as Event;
use super::{Assembler, Partial};

impl Assembler {
    /// The events that make up what has arrived, each block in one piece. A call has the model's own id.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = vec![Event::Start];
        for (index, block) in (0..).zip(&self.blocks) {
            block.write_events(index, &mut events);
        }
        if self.usage != crate::words::message::Usage::default() {
            events.push(Event::Usage(self.usage));
        }
        events
    }
}

impl Partial {
    fn write_events(&self, index: u32, events: &mut Vec<Event>) {
        match self {
            Partial::Text(block) => {
                events.push(Event::TextStart { index });
                if !block.text.is_empty() {
                    events.push(Event::TextDelta { index, delta: block.text.clone() });
                }
                events.push(Event::TextEnd { index, signature: block.signature.clone() });
            }
            Partial::Thinking(block) => {
                events.push(Event::ThinkingStart { index });
                if !block.thinking.is_empty() {
                    events.push(Event::ThinkingDelta { index, delta: block.thinking.clone() });
                }
                let (signature, redacted) = (block.signature.clone(), block.redacted);
                events.push(Event::ThinkingEnd { index, signature, redacted });
            }
            Partial::Call(call) => {
                let own = call.original.clone().unwrap_or_else(|| call.call_id.as_ref().to_owned());
                let tool_name = call.tool_name.as_ref().to_owned();
                events.push(Event::ToolCallStart { index, call_id: own, tool_name });
                if !call.text.is_empty() {
                    events.push(Event::ToolCallDelta { index, delta: call.text.clone() });
                }
                if !call.open {
                    events.push(Event::ToolCallEnd { index, metadata: call.metadata.clone() });
                }
            }
            Partial::Raw(data) => events.push(Event::Raw { index, data: data.clone() }),
        }
    }
}
