//! The messages of a conversation as JSON for request bodies, each encoded once.

use std::rc::Rc;

use crate::data::text::Put;
use crate::words::message::{AssistantMessage, ContentBlock, LlmMessage, ToolCallBlock};

/// The text of all encoded messages. A request keeps the part it shares with the previous request, cuts off
/// the rest and appends what is new.
#[derive(Debug, Default)]
pub(crate) struct EncodedHistory {
    /// The model that it was encoded for, which determines what thinking is sent back.
    model: Option<Rc<str>>,
    text: String,
    entries: Vec<EncodedMessage>,
    /// How many of them refer to images or files by their addresses.
    links: usize,
}

#[derive(Debug)]
struct EncodedMessage {
    message: LlmMessage,
    /// Where the message ends in the text.
    end: usize,
    /// The state after it.
    carried: Carried,
    has_links: bool,
}

/// The state that a wire carries from one message to the next. It is kept for each message, so that the text
/// can be cut anywhere; the parts that grow with a batch of calls are shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Carried {
    /// The next message may continue what the last one began: a list of results or blocks.
    pub(crate) is_open: bool,
    /// The open list is not empty.
    pub(crate) has_block: bool,
    /// The last message is an answer, on wires whose answers must not follow each other.
    pub(crate) is_answered: bool,
    /// Parts with the pictures of tool results that must wait for the end of the results, each with a comma
    /// before it.
    pub(crate) pictures: Vec<Rc<str>>,
    /// The last answer, if the provider's metadata of its calls is needed for their results.
    pub(crate) answer: Option<Rc<AssistantMessage>>,
    /// The position of the block after the call of the last result.
    pub(crate) next: usize,
    /// The ends of the last blocks of the last two user messages, before their closing brace, where a mark
    /// for the cache can be inserted.
    pub(crate) marks: [Option<usize>; 2],
}

/// What stands before an answer that nothing of the user's precedes: what it answered was left out.
pub(crate) const LEFT_OUT: &str = "(earlier messages are left out)";

/// What stands between two answers.
pub(crate) const GO_ON: &str = "Go on.";

impl Carried {
    /// Takes the waiting pictures, as one text.
    pub(crate) fn take_pictures(&mut self) -> String {
        let mut all = String::new();
        std::mem::take(&mut self.pictures).iter().for_each(|parts| all.put(parts));
        all
    }

    /// Whether the messages that follow are encoded the same after both states. The messages of both were
    /// written starting at `from`.
    fn continues_like(&self, other: &Carried, from: usize) -> bool {
        let shape = |carried: &Carried| {
            let flags = (carried.is_open, carried.has_block, carried.is_answered);
            (flags, carried.next, carried.pictures.len())
        };
        let [before, own] = self.marks;
        let [other_before, other_own] = other.marks;
        let is_own = |mark: Option<usize>| mark.is_some_and(|mark| mark >= from);
        shape(self) == shape(other)
            && self.pictures.is_empty()
            && self.answer.is_none()
            && other.answer.is_none()
            && before == other_before
            && is_own(own) == is_own(other_own)
    }

    /// Returns the call of the last answer that a result belongs to. Results usually come in the order of
    /// their calls, so the search begins after the call found last.
    pub(crate) fn call(&mut self, call_id: &str) -> Option<&ToolCallBlock> {
        let blocks = &self.answer.as_ref()?.content;
        let (before, after) = blocks.split_at_checked(self.next).unwrap_or((&[], blocks));
        let found = after.iter().chain(before).enumerate().find_map(|(steps, block)| match block {
            ContentBlock::ToolCall(call) if call.call_id == call_id => Some((steps, call)),
            _ => None,
        });
        let (steps, call) = found?;
        self.next = (self.next + steps + 1) % blocks.len();
        Some(call)
    }
}

impl EncodedHistory {
    /// Changes the text to that of `messages`, for a model. `append` gets each message that is new, what is
    /// carried from the one before, and the text to append to. Returns the number of messages that were new.
    pub(crate) fn update(
        &mut self,
        model: &Rc<str>,
        messages: &[LlmMessage],
        append: &mut dyn FnMut(&LlmMessage, &mut Carried, &mut String),
    ) -> usize {
        if self.model.as_ref() != Some(model) {
            self.entries.clear();
            self.links = 0;
            self.model = Some(model.clone());
        }
        let (mut common, mut replaced) = (0, 0);
        // Two messages may be replaced in place, which is enough for a prompt that differs in each request.
        // Each replacement moves all the text after it, so many of them would cost more than encoding anew.
        let mut places = 0..2;
        loop {
            let (known, left) = (self.entries.get(common..), messages.get(common..));
            let pairs = known.unwrap_or_default().iter().zip(left.unwrap_or_default());
            common += pairs.take_while(|(entry, message)| entry.message.is_same(message)).count();
            if places.next().is_none() || !self.replace(common, messages, append) {
                break;
            }
            common += 1;
            replaced += 1;
        }
        self.links -= self.entries.drain(common..).filter(|entry| entry.has_links).count();
        self.text.truncate(self.entries.last().map_or(0, |entry| entry.end));
        let mut carried = self.carried();
        let new = messages.get(common..).unwrap_or_default();
        for message in new {
            append(message, &mut carried, &mut self.text);
            let (end, carried) = (self.text.len(), carried.clone());
            let (message, has_links) = (message.clone(), message.has_links());
            self.links += usize::from(has_links);
            self.entries.push(EncodedMessage { message, end, carried, has_links });
        }
        replaced + new.len()
    }

    /// Replaces one message, if what comes after it stays the same. If not, returns `false`, and only the
    /// messages before it can be kept.
    fn replace(
        &mut self,
        at: usize,
        messages: &[LlmMessage],
        append: &mut dyn FnMut(&LlmMessage, &mut Carried, &mut String),
    ) -> bool {
        let next = self.entries.get(at + 1).zip(messages.get(at + 1));
        if !next.is_some_and(|(known, next)| known.message.is_same(next)) {
            return false;
        }
        let (kept, left) = self.entries.split_at_mut(at);
        let (Some((old, after)), Some(message)) = (left.split_first_mut(), messages.get(at)) else {
            return false;
        };
        let (from, mut carried) =
            kept.last().map_or((0, Carried::default()), |entry| (entry.end, entry.carried.clone()));
        let rest = self.text.split_off(old.end);
        self.text.truncate(from);
        append(message, &mut carried, &mut self.text);
        let fits = carried.continues_like(&old.carried, from);
        if fits {
            let (was, is) = (old.end, self.text.len());
            self.text.put(&rest);
            let moved = |place: usize| place.wrapping_sub(was).wrapping_add(is);
            for entry in after {
                entry.end = moved(entry.end);
                for mark in entry.carried.marks.iter_mut().flatten().filter(|mark| **mark >= from) {
                    // The mark in the old message itself becomes that of the new one.
                    *mark = if *mark < was { carried.marks[1].unwrap_or(*mark) } else { moved(*mark) };
                }
            }
            let (message, has_links) = (message.clone(), message.has_links());
            self.links = self.links + usize::from(has_links) - usize::from(old.has_links);
            *old = EncodedMessage { message, end: is, carried, has_links };
        }
        fits
    }

    /// Returns all messages, each with a comma before it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text refers to images or files by their addresses.
    pub(crate) fn has_links(&self) -> bool {
        self.links > 0
    }

    /// Returns what is carried after the last message.
    pub(crate) fn carried(&self) -> Carried {
        self.entries.last().map(|entry| entry.carried.clone()).unwrap_or_default()
    }

    /// Creates a buffer with room for the body of a request.
    pub(crate) fn body_buffer(&self, system_prompt: &str) -> String {
        String::with_capacity(self.text.len() + system_prompt.len() + 2_048)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::{FromJson, RawJson, Value};
    use crate::words::message::{AgentMessage, text_of};

    fn user(text: &str) -> LlmMessage {
        AgentMessage::user(text).as_llm().unwrap()
    }

    fn update(history: &mut EncodedHistory, messages: &[LlmMessage]) -> usize {
        update_for("m", history, messages)
    }

    /// Appends the text and carries it to the next message.
    fn update_for(model: &str, history: &mut EncodedHistory, messages: &[LlmMessage]) -> usize {
        history.update(&model.into(), messages, &mut |message, carried, out| {
            let LlmMessage::User(message) = message else { return };
            let text = text_of(&message.content);
            out.push_str(&format!("{text}<{} ", carried.pictures.concat()));
            carried.pictures = vec![text.into()];
        })
    }

    #[test]
    fn what_two_requests_have_in_common_is_encoded_once() {
        let (a, b, c) = (user("a"), user("b"), user("c"));
        let mut history = EncodedHistory::default();
        assert_eq!(update(&mut history, &[a.clone(), b.clone()]), 2);
        assert_eq!(update(&mut history, &[a.clone(), b.clone(), c.clone()]), 1);
        assert_eq!(history.text(), "a< b<a c<b ");
        assert_eq!(update(&mut history, &[a.clone(), b.clone(), c.clone()]), 0);
        assert_eq!(update(&mut history, &[a.clone(), c.clone()]), 1);
        assert_eq!((history.text(), history.carried().pictures.concat().as_str()), ("a< c<a ", "c"));
        assert_eq!(update(&mut history, std::slice::from_ref(&a)), 0);
        assert_eq!((history.text(), history.carried().pictures.concat().as_str()), ("a< ", "a"));
    }

    #[test]
    fn an_equal_message_that_is_another_object_is_encoded_anew() {
        let mut history = EncodedHistory::default();
        update(&mut history, &[user("a")]);
        assert_eq!(update(&mut history, &[user("a")]), 1);
    }

    #[test]
    fn behind_a_message_that_is_another_one_each_time_nothing_is_encoded_anew() {
        let plain = |history: &mut EncodedHistory, messages: &[LlmMessage]| {
            history.update(&"m".into(), messages, &mut |message, _, out| {
                let LlmMessage::User(message) = message else { return };
                out.put(&text_of(&message.content));
            })
        };
        let (b, c) = (user("b"), user("c"));
        let mut history = EncodedHistory::default();
        assert_eq!(plain(&mut history, &[user("a"), b.clone(), user("x"), c.clone()]), 4);
        assert_eq!(plain(&mut history, &[user("longer"), b.clone(), user(""), c.clone()]), 2);
        assert_eq!(history.text(), "longerbc");
        assert_eq!(plain(&mut history, &[user(""), b.clone(), user("y"), c.clone(), user("d")]), 3);
        assert_eq!(history.text(), "bycd");
        let (d, e) = (user("d"), user("e"));
        assert_eq!(
            plain(&mut history, &[user("1"), b.clone(), user("2"), d.clone(), user("3"), e.clone()]),
            5
        );
        assert_eq!(
            plain(&mut history, &[user("4"), b.clone(), user("5"), d.clone(), user("6"), e.clone()]),
            4
        );
        assert_eq!(history.text(), "4b5d6e");
        // What is carried decides.
        assert_eq!(update(&mut history, &[user("a"), b.clone()]), 2);
        assert_eq!(update(&mut history, &[user("o"), b]), 2);
        assert_eq!(history.text(), "o< b<o ");
    }

    #[test]
    fn pictures_that_wait_are_there_once_however_many_results_wait_with_them() {
        let mut history = EncodedHistory::default();
        let messages = [user("a"), user("b"), user("c")];
        history.update(&"m".into(), &messages, &mut |_, carried, _| carried.pictures.push("picture".into()));
        let [first, .., last] = history.entries.as_slice() else { panic!("there are three") };
        assert_eq!(last.carried.pictures.len(), 3);
        assert!(Rc::ptr_eq(&first.carried.pictures[0], &last.carried.pictures[0]));
    }

    #[test]
    fn a_result_finds_its_call_in_whatever_order() {
        let call = |id: &str| {
            ContentBlock::ToolCall(ToolCallBlock {
                call_id: id.to_owned(),
                tool_name: String::new(),
                arguments: RawJson::empty_object(),
                metadata: None,
            })
        };
        let answer = |content| {
            let json = Value::parse(r#"{"role":"assistant","content":[]}"#).unwrap();
            Some(Rc::new(AssistantMessage { content, ..AssistantMessage::from_json(&json).unwrap() }))
        };
        let blocks = vec![ContentBlock::text("now"), call("a"), call("b"), call("c")];
        let mut carried = Carried { answer: answer(blocks), ..Carried::default() };
        for id in ["a", "b", "c", "c", "a", "c", "b", "a"] {
            assert_eq!(carried.call(id).map(|call| call.call_id.as_str()), Some(id));
            assert!(carried.call("d").is_none());
        }
        carried.answer = answer(Vec::new());
        assert!(carried.call("a").is_none());
    }

    #[test]
    fn for_another_model_everything_is_encoded_anew() {
        let (a, b) = (user("a"), user("b"));
        let mut history = EncodedHistory::default();
        update(&mut history, &[a.clone(), b.clone()]);
        assert_eq!(update_for("n", &mut history, &[a.clone(), b.clone()]), 2);
        assert_eq!(history.text(), "a< b<a ");
        assert_eq!(update_for("n", &mut history, &[a, b]), 0);
    }
}
