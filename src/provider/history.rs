//! The messages of a conversation as they stand in request bodies, each encoded once.

use crate::message::LlmMessage;

/// One standing text of all encoded messages. A request keeps what it has in common with the one before, cuts the
/// rest off and appends what is new.
///
/// `S` is what a wire carries from one message to the next, such as pictures that must wait for the end of the tool
/// results; it is kept for each message, so that the text can be cut anywhere.
#[derive(Debug, Default)]
pub(super) struct History<S> {
    text: String,
    entries: Vec<Entry<S>>,
}

#[derive(Debug)]
struct Entry<S> {
    message: LlmMessage,
    /// Where the message ends in the text.
    end: usize,
    /// What is carried behind it.
    carried: S,
}

impl<S: Clone + Default> History<S> {
    /// Makes the text that of `messages`. `append` gets each message that is new, what is carried from the one before,
    /// and the text to append to. Gives the number of messages that were new.
    pub(super) fn update(
        &mut self,
        messages: &[LlmMessage],
        mut append: impl FnMut(&LlmMessage, &mut S, &mut String),
    ) -> usize {
        let common =
            self.entries.iter().zip(messages).take_while(|(entry, m)| entry.message.is_same(m)).count();
        self.entries.truncate(common);
        let (end, mut carried) = match self.entries.last() {
            Some(entry) => (entry.end, entry.carried.clone()),
            None => (0, S::default()),
        };
        self.text.truncate(end);
        let new = messages.get(common..).unwrap_or_default();
        for message in new {
            append(message, &mut carried, &mut self.text);
            let (end, carried) = (self.text.len(), carried.clone());
            self.entries.push(Entry { message: message.clone(), end, carried });
        }
        new.len()
    }

    /// Forgets everything: messages would be encoded otherwise now.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.text.clear();
    }

    /// All messages.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What is carried behind the last message.
    pub(super) fn carried(&self) -> S {
        self.entries.last().map(|entry| entry.carried.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{AgentMessage, text_of};

    fn user(text: &str) -> LlmMessage {
        AgentMessage::user(text).as_llm().unwrap()
    }

    /// Appends the text and carries it to the next message.
    fn update(history: &mut History<String>, messages: &[LlmMessage]) -> usize {
        history.update(messages, |message, carried, out| {
            let LlmMessage::User(message) = message else { return };
            let text = text_of(&message.content);
            out.push_str(&format!("{text}<{carried} "));
            *carried = text;
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
        assert_eq!((history.text(), history.carried().as_str()), ("a< c<a ", "c"));
        assert_eq!(update(&mut history, std::slice::from_ref(&a)), 0);
        assert_eq!((history.text(), history.carried().as_str()), ("a< ", "a"));
    }

    #[test]
    fn an_equal_message_that_is_another_object_is_encoded_anew() {
        let mut history = History::default();
        update(&mut history, &[user("a")]);
        assert_eq!(update(&mut history, &[user("a")]), 1);
    }
}
