//! Who may do what: the host's own code, or a client that reaches the agent through a door such as an HTTP handler.
//!
//! Every door asks the same table, here and in the npm package, whose `www/npm/messages/authority.js` is generated from
//! it. A door may allow its clients more than the default, but never what the table forbids.

use super::answer::Answer;
use super::approval::ToolDecision;

/// Something that an agent can be told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Act {
    /// Say something as the user: a prompt, a steering message, a follow-up.
    Speak,
    /// Stop the run, forget the conversation, empty the queues.
    Stop,
    /// Take the conversation back to an earlier message.
    Rewind,
    /// Approve or reject a call that waits for a person.
    Tool,
    /// Answer what a running tool asks a person.
    Elicitation,
    /// Approve a call with other arguments.
    Arguments,
    /// Give a result in place of running a call.
    Result,
    /// Give the result of a call whose tool has no implementation here.
    ToolCall,
    /// Let a budget be exceeded.
    Budget,
    /// Decide about a call that the host's approver is deciding about.
    Approver,
    /// Speak in another role than the user's, or set state, metadata or the history.
    History,
}

/// Whether a client may do something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Unless its door forbids it.
    Yes,
    /// Only if its door allows it.
    Asked,
    /// Never.
    No,
}

impl Act {
    /// What a client may do. The host may do all of it.
    pub const CLIENTS: [(Act, &'static str, Leave); 11] = [
        (Act::Speak, "speak", Leave::Yes),
        (Act::Stop, "stop", Leave::Yes),
        (Act::Rewind, "rewind", Leave::Yes),
        (Act::Tool, "tool", Leave::Yes),
        (Act::Elicitation, "elicitation", Leave::Yes),
        (Act::Arguments, "arguments", Leave::Asked),
        (Act::Result, "result", Leave::Asked),
        (Act::ToolCall, "tool_call", Leave::Yes),
        (Act::Budget, "budget", Leave::Asked),
        (Act::Approver, "approver", Leave::No),
        (Act::History, "history", Leave::No),
    ];

    /// Returns the word used in options and refusals.
    pub fn as_str(self) -> &'static str {
        Self::CLIENTS.iter().find(|(act, ..)| *act == self).map_or("", |(_, word, _)| word)
    }

    fn leave(self) -> Leave {
        Self::CLIENTS.iter().find(|(act, ..)| *act == self).map_or(Leave::No, |(.., leave)| *leave)
    }

    /// What an answer does. Whoever may answer may say no, to a question of any kind.
    pub fn of(answer: &Answer) -> Option<Act> {
        match answer {
            Answer::Decision(ToolDecision::Accept) => Some(Act::Tool),
            Answer::Decision(ToolDecision::AcceptWith(_)) => Some(Act::Arguments),
            Answer::Decision(ToolDecision::Reject { .. }) | Answer::Decline | Answer::Cancel => None,
            Answer::Decision(ToolDecision::Result { .. }) => Some(Act::Result),
            Answer::Raise(_) => Some(Act::Budget),
            Answer::Accept(_) => Some(Act::Elicitation),
            Answer::Output { .. } => Some(Act::ToolCall),
        }
    }
}

/// Who gives a command.
#[derive(Clone, Copy, Debug)]
pub enum Origin<'a> {
    /// The host's own code.
    Host,
    /// A client, whose door allows these acts. `None` stands for what [`Act::CLIENTS`] says without being asked.
    Client(Option<&'a [Act]>),
}

impl Origin<'_> {
    /// Checks whether it may do something.
    ///
    /// # Errors
    ///
    /// If it may not; the text names the act.
    pub fn may(self, act: Act) -> Result<(), String> {
        let Origin::Client(allowed) = self else { return Ok(()) };
        let is_allowed = match act.leave() {
            Leave::No => false,
            Leave::Yes => allowed.is_none_or(|acts| acts.contains(&act)),
            Leave::Asked => allowed.is_some_and(|acts| acts.contains(&act)),
        };
        if is_allowed {
            return Ok(());
        }
        Err(["a client may not do this here: `", act.as_str(), "`"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_may_what_the_table_says_and_its_door_allows() {
        for (act, word, leave) in Act::CLIENTS {
            assert_eq!(act.as_str(), word);
            assert!(Origin::Host.may(act).is_ok(), "{word}");
            assert_eq!(Origin::Client(None).may(act).is_ok(), leave == Leave::Yes, "{word}");
            assert_eq!(Origin::Client(Some(&[act])).may(act).is_ok(), leave != Leave::No, "{word}");
            assert!(Origin::Client(Some(&[])).may(act).is_err(), "{word}");
        }
    }
}
