//! From bytes to events, for all wires. [`sse`](super::sse) cuts the bytes into frames,
//! [`SseDecoder`](frames::SseDecoder) hands each frame to the wire's own decoder, and that one reports what
//! the frame says to [`Answering`](answering::Answering), which makes events of it.

pub(super) mod answering;
pub(super) mod blocks;
pub(super) mod citations;
pub(super) mod fields;
pub(super) mod frames;
pub(super) mod piece;
pub(super) mod stop;
pub(super) mod template;
