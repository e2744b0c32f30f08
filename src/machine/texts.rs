//! The stock words of results that no tool wrote. The steering one is fixed by the specification.

use crate::message::{ToolCallBlock, ToolResultCause};

pub(super) fn stock(cause: ToolResultCause, call: &ToolCallBlock, detail: &str) -> String {
    use ToolResultCause as C;
    let name = call.tool_name.as_str();
    match cause {
        C::UnknownTool => ["no tool named `", name, "`; ", detail].concat(),
        C::InvalidArguments => ["invalid arguments for `", name, "`: ", detail].concat(),
        C::Incomplete => "error: tool call was incomplete due to max tokens reached".to_owned(),
        C::Rejected if detail.is_empty() => ["tool call `", name, "` was rejected"].concat(),
        C::Rejected => ["tool call `", name, "` was rejected: ", detail].concat(),
        C::Denied => ["tool `", name, "` is denied by a rule"].concat(),
        C::Skipped => detail.to_owned(),
        C::PolicyStop => ["policy stopped tool batch before dispatch: ", detail].concat(),
        C::Steering => "tool call cancelled: user requested steering interrupt".to_owned(),
        C::Aborted => "tool call cancelled: operation aborted".to_owned(),
        C::Transfer => "tool call cancelled: transfer initiated".to_owned(),
        C::Timeout => ["tool `", name, "` did not finish within ", detail, " ms"].concat(),
        C::Threw => ["tool `", name, "` failed: ", detail].concat(),
        C::Interrupted => "tool call interrupted: the process ended while the tool ran".to_owned(),
    }
}
