//! A text of the user as a message. In a file of its own: beside the derived `impl`s it would change their numbers, and with
//! them the order of the functions in the wasm file.

use super::AgentMessage;

impl From<String> for AgentMessage {
    fn from(text: String) -> Self {
        AgentMessage::user(text)
    }
}
