//! The stock texts of results that the engine writes. The text for steering is fixed by the specification.

use crate::words::message::{ToolCallBlock, ToolResultCause};

pub(super) fn default_text(cause: ToolResultCause, call: &ToolCallBlock, detail: &str) -> String {
    use ToolResultCause as C;
    // The text before the tool's name and the text after it; without the latter the tool is not named.
    let (before, after) = match cause {
        C::UnknownTool => ("no tool named `", "`; "),
        C::InvalidArguments => ("invalid arguments for `", "`: "),
        C::Incomplete if detail.is_empty() => {
            ("error: tool call was incomplete due to max tokens reached", "")
        }
        C::Incomplete => ("error: tool call `", "` was incomplete: "),
        C::Rejected if detail.is_empty() => ("tool call `", "` was rejected"),
        C::Rejected => ("tool call `", "` was rejected: "),
        C::Denied => ("tool `", "` is denied by a rule"),
        C::Skipped => ("", ""),
        C::PolicyStop => ("policy stopped tool batch before dispatch: ", ""),
        C::Steering => ("tool call cancelled: user requested steering interrupt", ""),
        C::Aborted => ("tool call cancelled: operation aborted", ""),
        C::Transfer => ("tool call cancelled: transfer initiated", ""),
        C::Timeout => ("tool `", "` did not finish within "),
        C::Threw => ("tool `", "` failed: "),
        C::Interrupted => ("tool call interrupted: the process ended while the tool ran", ""),
        C::Budget => ("tool call not run: the budget of the run has no room for it", ""),
        C::Filtered => ("tool call not run: the answer was stopped by a safety filter or a refusal", ""),
    };
    let name = if after.is_empty() { "" } else { call.tool_name.as_str() };
    let unit = if cause == C::Timeout { " ms" } else { "" };
    [before, name, after, detail, unit].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::RawJson;

    #[test]
    fn a_call_that_was_not_sent_is_not_said_to_be_too_long() {
        let (call_id, tool_name, arguments) = ("a".to_owned(), "look_up".to_owned(), RawJson::empty_object());
        let call = ToolCallBlock { call_id, tool_name, arguments, metadata: None };
        let text = |detail: &str| default_text(ToolResultCause::Incomplete, &call, detail);
        assert_eq!(text(""), "error: tool call was incomplete due to max tokens reached");
        assert_eq!(
            text("the server did not send all of it"),
            "error: tool call `look_up` was incomplete: the server did not send all of it"
        );
    }
}
