//! What `tracing` is told of a run, with the feature of that name; without it nothing, at no cost.

#[cfg(feature = "tracing")]
mod traced;
#[cfg(not(feature = "tracing"))]
mod untraced;

#[cfg(feature = "tracing")]
pub(super) use traced::Spans;
#[cfg(not(feature = "tracing"))]
pub(super) use untraced::Spans;
