//! A single model call: the request, the streamed answer, and the [`Assembler`] that builds a message from
//! it.

mod assemble;
mod event;
mod request;

pub use assemble::{Assembled, Assembler, CallFault, Excess, MAX_ANSWER};
pub use event::AssistantMessageEvent;
pub use request::{ModelRequest, NativeOutput, Reasoning, StreamOptions, ToolChoice, ToolSchema};

pub use crate::words::event::{Delta, DeltaKind};
