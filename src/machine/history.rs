//! The messages of a conversation, and what is known about each of them.

use std::rc::Rc;

use crate::rules::call_ids::CallIds;
use crate::rules::context::{
    CleanPrefix, SameRole, estimate_tokens, hygiene, is_empty_message, reported_tokens,
};
use crate::words::message::{AgentMessage, LlmMessage};

/// The messages of a conversation, each with what the model is shown of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    messages: Vec<AgentMessage>,
    /// The result of `convert_to_llm` for each message, kept because it is called once per message.
    conversions: Vec<Conversion>,
    /// The number of messages, from the first, that have been converted.
    converted: usize,
    /// What the model is shown of the first messages. Requests share it, and it grows in place.
    listed: usize,
    list: Rc<Vec<LlmMessage>>,
    clean: CleanPrefix,
    weight: Weight,
    /// Every call id that was ever used.
    pub(crate) call_ids: CallIds,
    /// Increases with every change that is not an append.
    pub(crate) epoch: u64,
}

/// The length of a history in tokens. Each message is examined once.
#[derive(Clone, Debug, Default)]
struct Weight {
    /// The number of messages, from the first, that have been examined.
    messages: usize,
    /// Their estimated tokens.
    estimated: u64,
    /// The tokens that the provider reported for the newest answer, and the estimate up to it.
    reported: (u64, u64),
    /// Reports about this many first messages also counted other messages, which are gone.
    stale: usize,
}

/// What the model is shown of a message.
#[derive(Clone, Debug, Default)]
pub(crate) enum Conversion {
    #[default]
    Unconverted,
    Hidden,
    Shown(LlmMessage),
}

impl History {
    pub(super) fn of(messages: Vec<AgentMessage>) -> Self {
        let mut history = History::default();
        history.replace(messages);
        (history.weight, history.epoch) = (Weight::default(), 0);
        history
    }

    /// Reuses the messages of the last run in another one: what is known about them is kept. If others
    /// replaced them, the ids of those that are gone become free again, so that they do not accumulate for
    /// ever.
    pub(crate) fn reuse(known: Option<Box<History>>, messages: Vec<AgentMessage>) -> Self {
        match known {
            Some(known) if known.conversions.len() == messages.len() => {
                let History { conversions, weight, .. } = *known;
                if weight.stale > 0 {
                    return History { conversions, weight, ..History::of(messages) };
                }
                History { messages, conversions, weight, epoch: 0, ..*known }
            }
            _ => History::of(messages),
        }
    }

    /// Whether anything is known about the messages that a history of the same messages would not know.
    pub(crate) fn is_known(&self) -> bool {
        self.weight.stale > 0
            || self.conversions.iter().any(|known| !matches!(known, Conversion::Unconverted))
    }

    /// Each message, with what the model is shown of it: `None` if that is not known.
    pub(crate) fn conversions(&self) -> impl Iterator<Item = (&AgentMessage, Option<Option<&LlmMessage>>)> {
        self.messages.iter().zip(&self.conversions).map(|(message, known)| {
            let shown = (!matches!(known, Conversion::Unconverted)).then(|| known.shown());
            (message, shown)
        })
    }

    /// The number of first messages whose reported tokens count others too.
    pub(crate) fn stale(&self) -> usize {
        self.weight.stale
    }

    /// A history of which this much is known: see [`History::conversions`].
    pub(crate) fn with_knowledge(
        messages: Vec<AgentMessage>,
        conversions: Vec<Option<Option<LlmMessage>>>,
        stale: usize,
    ) -> Self {
        let mut history = History::of(messages);
        for (slot, known) in history.conversions.iter_mut().zip(conversions) {
            if let Some(shown) = known {
                *slot = shown.map_or(Conversion::Hidden, Conversion::Shown);
            }
        }
        history.weight.stale = stale;
        history
    }

    /// Takes what is known about the messages. The messages stay.
    pub(super) fn take_known(&mut self) -> History {
        let mut known = std::mem::take(self);
        self.messages = std::mem::take(&mut known.messages);
        known
    }

    pub(crate) fn messages(&self) -> &[AgentMessage] {
        &self.messages
    }

    pub(crate) fn push(&mut self, message: AgentMessage) {
        // A prompt may contain calls of another conversation.
        self.call_ids.learn(std::slice::from_ref(&message));
        self.messages.push(message);
        self.conversions.push(Conversion::Unconverted);
    }

    pub(crate) fn amend(&mut self, place: usize, message: AgentMessage) {
        if let Some(slot) = self.messages.get_mut(place) {
            *slot = message;
            self.converted = self.converted.min(place);
            // Usually this is the newest answer, which has not been examined yet.
            if place < self.listed {
                self.listed = 0;
            }
            if place < self.weight.messages {
                self.weight = Weight { stale: self.weight.stale, ..Weight::default() };
            }
            self.epoch += 1;
        }
        if let Some(conversion) = self.conversions.get_mut(place) {
            *conversion = Conversion::Unconverted;
        }
    }

    /// Replaces the messages. Those that remain keep their conversion, and ids remain in use.
    pub(crate) fn replace(&mut self, messages: Vec<AgentMessage>) {
        let mut from = 0;
        let mut conversions = vec![Conversion::Unconverted; messages.len()];
        for (message, conversion) in messages.iter().zip(&mut conversions) {
            let Some(place) = self.place_of(message, from) else { continue };
            from = place + 1;
            if let Some(known) = self.conversions.get_mut(place) {
                *conversion = std::mem::take(known);
            }
        }
        self.call_ids.learn(&messages);
        self.weight = Weight { stale: messages.len(), ..Weight::default() };
        self.messages = messages;
        self.conversions = conversions;
        self.converted = 0;
        self.listed = 0;
        self.epoch += 1;
    }

    /// Returns the tokens, estimated in two ways: for everything, and from the provider's report for the
    /// newest answer plus an estimate for what came after it.
    pub(crate) fn tokens(&mut self) -> (u64, u64) {
        let weight = &mut self.weight;
        for message in self.messages.get(weight.messages..).unwrap_or_default() {
            weight.estimated = weight.estimated.saturating_add(estimate_tokens(message));
            weight.messages += 1;
            if let AgentMessage::Assistant(answer) = message
                && weight.messages > weight.stale
                && let Some(reported) = reported_tokens(answer)
            {
                weight.reported = (reported, weight.estimated);
            }
        }
        let (reported, estimated) = weight.reported;
        (weight.estimated, reported.saturating_add(weight.estimated - estimated))
    }

    /// Returns where the same message object is, searching from `from`.
    pub(crate) fn place_of(&self, message: &AgentMessage, from: usize) -> Option<usize> {
        let tail = self.messages.get(from..)?;
        tail.iter().position(|m| m.is_same(message)).map(|at| from + at)
    }

    /// Returns the first message that has not been converted yet.
    pub(crate) fn unconverted(&mut self) -> Option<AgentMessage> {
        let left = self.conversions.get(self.converted..)?;
        self.converted += left.iter().position(|known| matches!(known, Conversion::Unconverted))?;
        self.messages.get(self.converted).cloned()
    }

    /// Stores what the model is shown of the first message that has not been converted yet.
    pub(crate) fn keep_conversion(&mut self, shown: Option<LlmMessage>) {
        if let Some(conversion) = self.conversions.get_mut(self.converted) {
            *conversion = shown.map_or(Conversion::Hidden, Conversion::Shown);
        }
    }

    /// Returns what the model is shown of a message.
    pub(crate) fn shown(&self, place: usize) -> Option<LlmMessage> {
        self.conversions.get(place)?.shown().cloned()
    }

    /// Makes a request of what the model is shown of the history, as far as it has been converted.
    pub(crate) fn all_shown(&mut self) -> Rc<Vec<LlmMessage>> {
        // First checks only what was added after the part known to be right; if that fails, starts from the
        // beginning.
        let mut from = self.listed;
        loop {
            if from == 0 {
                self.list = Rc::default();
                self.clean = CleanPrefix::default();
            }
            let fresh = self.conversions.get(from..).unwrap_or_default();
            // A message that failed long ago must not make every later turn examine all messages.
            let fresh = fresh
                .iter()
                .filter_map(Conversion::shown)
                .filter(|message| !is_empty_message(message))
                .cloned();
            Rc::make_mut(&mut self.list).extend(fresh);
            self.listed = self.conversions.len();
            if self.clean.covers(&self.list) {
                return self.list.clone();
            }
            if from == 0 {
                break;
            }
            from = 0;
        }
        self.list = Rc::new(hygiene(self.list.to_vec(), SameRole::Keep));
        self.clean = CleanPrefix::default();
        if !self.clean.covers(&self.list) {
            self.listed = 0;
        }
        self.list.clone()
    }
}

impl Conversion {
    pub(super) fn shown(&self) -> Option<&LlmMessage> {
        match self {
            Conversion::Shown(message) => Some(message),
            Conversion::Unconverted | Conversion::Hidden => None,
        }
    }
}

#[cfg(test)]
mod tests;
