//! Splits a finished wasm module at its functions, so that a page can begin with a part of it.
//!
//! # In three steps
//!
//! 1. [`Module::traced`] writes a copy in which every function notes that it was entered. Somebody runs the
//!    copy up to the points that matter, say until a first request has been sent and until its answer has
//!    been read, and reads from the copy's exports which functions that took ([`ENTERED`]).
//! 2. Each such set of functions becomes a part, in the order in which the parts will be loaded. A function
//!    in several sets belongs to the first of them; a function in none belongs to the last part, the rest.
//! 3. [`Module::split`] writes one module per part. Together they are the module again.
//!
//! ```text
//!              imports ──► ┌─────────────────────────┐ ──► exports (of the whole)
//!                          │ first                   │
//!                          │ memory, data, globals,  │
//!                          │ tables, its functions   │
//!                          └──┬───────────────────▲──┘
//!          call_indirect by a │                   │ import "0" "f17", "m", "t0", "g0"
//!          place in the table ▼                   │
//!                          ┌──────────────────────┴──┐
//!                          │ a later part            │ fills its places of the table
//!                          │ its functions           │ when it is instantiated
//!                          └─────────────────────────┘
//! ```
//!
//! # How a function finds another
//!
//! | the callee is | the call becomes |
//! |---|---|
//! | in the caller's own part | a direct call |
//! | imported by the module | a direct call: every part imports what the module does |
//! | in the first part | a direct call of an import: the first part exports it as `f` and a number |
//! | in another part | `call_indirect` at its place in the table; it gets one there if it has none |
//!
//! An export of the module whose function is in a later part is, in the first part, a small function that
//! passes its arguments through the table. So whoever uses the module sees the same exports in every state.
//!
//! # While a part is missing
//!
//! The first part is instantiated first, the others in any order. The places of a missing part are null, and
//! a call of a null place traps. This crate does not hide that: its caller either calls only what is there,
//! or undoes a call that trapped. Undoing is a matter of copying the memory, if nothing else changes;
//! [`Module::check_stack`] checks that, and that what lies below the end of the stack ([`STACK`]) need not be
//! copied.
//!
//! # What it does not do
//!
//! Data stays in the first part, all of it: an address in the code does not say whose data is meant.
//! Functions stay whole: a part carries those of its functions' branches that nobody took, too. Both could be
//! moved, with twice the code and its own proof that nothing changed; the first part of turnwheel would be a
//! quarter smaller, everything a tenth larger.
//!
//! It comes after wasm-opt, for functions are then inlined as if there were no parts. It knows what rustc and
//! wasm-bindgen emit: one memory, one table of functions, active segments. Anything else is an error, never a
//! wrong module.

mod code;
mod read;
mod split;
mod trace;

pub use read::Module;
pub use split::{FIRST, STACK};
pub use trace::ENTERED;
