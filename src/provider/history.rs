//! The messages of a conversation as they stand in request bodies, each encoded once.

use std::rc::Rc;

use crate::message::LlmMessage;

/// One standing text of all encoded messages. A request keeps what it has in common with the one before, cuts the
/// rest off and appends what is new.
#[derive(Debug, Default)]
pub(super) struct History {
    /// The model that it was encoded for: what is given back of thinking depends on it.
    model: Option<Rc<str>>,
    text: String,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    message: LlmMessage,
    /// Where the message ends in the text.
    end: usize,
    /// What is carried behind it.
    carried: Carried,
}

/// What a wire carries from one message to the next. It is kept for each message, so that the text can be cut anywhere.
#[derive(Clone, Debug, Default)]
pub(super) struct Carried {
    /// What the last message began may be continued by the next one: a list of results, of blocks.
    pub(super) is_open: bool,
    /// The open list has a block.
    pub(super) has_block: bool,
    /// Parts with the pictures of tool results that must wait for the end of the results, each with a comma before it.
    pub(super) pictures: String,
    /// Calls of the last answer that the provider knows in its own way, and its ids of them where it has any.
    pub(super) calls: Vec<(String, String)>,
    /// Where the last blocks of the last two user messages end, before their closing brace: places for a mark.
    pub(super) marks: [Option<usize>; 2],
}

impl History {
    /// Makes the text that of `messages`, for a model. `append` gets each message that is new, what is carried from the
    /// one before, and the text to append to. Gives the number of messages that were new.
    #[inline(never)]
    pub(super) fn update(
        &mut self,
        model: &Rc<str>,
        messages: &[LlmMessage],
        append: &mut dyn FnMut(&LlmMessage, &mut Carried, &mut String),
    ) -> usize {
        if self.model.as_ref() != Some(model) {
            self.entries.clear();
            self.model = Some(model.clone());
        }
        let common =
            self.entries.iter().zip(messages).take_while(|(entry, m)| entry.message.is_same(m)).count();
        self.entries.truncate(common);
        self.text.truncate(self.entries.last().map_or(0, |entry| entry.end));
        let mut carried = self.carried();
        let new = messages.get(common..).unwrap_or_default();
        for message in new {
            append(message, &mut carried, &mut self.text);
            let (end, carried) = (self.text.len(), carried.clone());
            self.entries.push(Entry { message: message.clone(), end, carried });
        }
        new.len()
    }

    /// All messages.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What is carried behind the last message.
    #[inline(never)]
    pub(super) fn carried(&self) -> Carried {
        self.entries.last().map(|entry| entry.carried.clone()).unwrap_or_default()
    }

    /// Room for the body of a request.
    #[inline(never)]
    pub(super) fn room(&self, system_prompt: &str) -> String {
        String::with_capacity(self.text.len() + system_prompt.len() + 2_048)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AgentMessage, text_of};

    fn user(text: &str) -> LlmMessage {
        AgentMessage::user(text).as_llm().unwrap()
    }

    fn update(history: &mut History, messages: &[LlmMessage]) -> usize {
        update_for("m", history, messages)
    }

    /// Appends the text and carries it to the next message.
    fn update_for(model: &str, history: &mut History, messages: &[LlmMessage]) -> usize {
        history.update(&model.into(), messages, &mut |message, carried, out| {
            let LlmMessage::User(message) = message else { return };
            let text = text_of(&message.content);
            out.push_str(&format!("{text}<{} ", carried.pictures));
            carried.pictures = text;
        })
    }

    #[test]
    fn what_two_requests_have_in_common_is_encoded_once() {
        let (a, b, c) = (user("a"), user("b"), user("c"));
        let mut history = History::default();
        assert_eq!(update(&mut history, &[a.clone(), b.clone()]), 2);
        assert_eq!(update(&mut history, &[a.clone(), b.clone(), c.clone()]), 1);
        assert_eq!(history.text(), "a< b<a c<b ");
        assert_eq!(update(&mut history, &[a.clone(), b.clone(), c.clone()]), 0);
        assert_eq!(update(&mut history, &[a.clone(), c.clone()]), 1);
        assert_eq!((history.text(), history.carried().pictures.as_str()), ("a< c<a ", "c"));
        assert_eq!(update(&mut history, std::slice::from_ref(&a)), 0);
        assert_eq!((history.text(), history.carried().pictures.as_str()), ("a< ", "a"));
    }

    #[test]
    fn an_equal_message_that_is_another_object_is_encoded_anew() {
        let mut history = History::default();
        update(&mut history, &[user("a")]);
        assert_eq!(update(&mut history, &[user("a")]), 1);
    }
    #[test]
    fn for_another_model_everything_is_encoded_anew() {
        let (a, b) = (user("a"), user("b"));
        let mut history = History::default();
        update(&mut history, &[a.clone(), b.clone()]);
        assert_eq!(update_for("n", &mut history, &[a.clone(), b.clone()]), 2);
        assert_eq!(history.text(), "a< b<a ");
        assert_eq!(update_for("n", &mut history, &[a, b]), 0);
    }
}
