//! Splits a finished wasm module into parts, so that a page can begin with a third of it.
//!
//! [`Module::traced`] gives a copy in which every function notes that it was entered. Somebody runs it up to the points that
//! matter and reads off which functions that took. [`Module::split`] then gives one module for each of these sets of functions,
//! and one for all others. Together they are the module again:
//!
//! - The first part owns the memory, the table and the globals, has all of the module's imports and exports, and exports what
//!   the others need under short names. They import that from a module called [`FIRST`], and the module's own imports as they
//!   are. They can be instantiated in any order.
//! - A call of a function in another part goes through the table; one of a function in the first part is a call of an import.
//!   Until a part is instantiated, its places in the table are null, and such a call traps: the caller of this crate sees to
//!   it that only what is there is run, or that nothing is lost if it traps.
//! - Constants stand in the part that uses them, if the linker said whose they are ([`Constants`]); all other data is in the
//!   first part, for an address in the code does not say whose data is meant.
//!
//! A part need not come from a trace. What only certain exports reach ([`Module::only_reached_by`]), say all that records a
//! run, is a set like any other: given to `split` after that of the first part, it becomes a part that is loaded by
//! whoever wants to call these exports, and that no other page ever loads. What it shares with the rest of the module stays
//! where it was.
//!
//! It works on finished modules, after wasm-opt, for functions are then inlined as if there were no parts. It knows what
//! rustc and wasm-bindgen emit: one memory, one table, active segments. Anything else is an error, never a wrong module.

mod code;
mod constants;
mod flow;
mod outline;
mod read;
mod split;
mod trace;

pub use constants::{Constants, Home};
pub use read::Module;
pub use split::{FIRST, STACK};
pub use trace::ENTERED;
