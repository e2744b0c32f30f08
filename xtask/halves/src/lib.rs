//! Splits a finished wasm module in two, so that a page can begin with less than half of it.
//!
//! [`Module::traced`] gives a copy in which every function notes that it was entered. Somebody runs it up to the point that
//! matters and reads off which functions that took. [`Module::split`] then gives two modules: `first` has those functions,
//! `rest` has all others. Together they are the module again:
//!
//! - `first` owns the memory, the table and the globals, has all of the module's imports and exports, and exports what `rest`
//!   needs under short names. `rest` imports that from a module called [`FIRST`], and the
//!   module's own imports as they are.
//! - A call from `first` to a function of `rest` goes through the table. Until `rest` is instantiated, its places there are
//!   null, and such a call traps: the caller of this crate sees to it that only what was traced is run before, or that
//!   nothing is lost if it traps.
//! - A call from `rest` to a function of `first` is a call of an import.
//! - All data stays in `first`: an address in the code does not say whose data is meant.
//!
//! It works on finished modules, after wasm-opt, for functions are then inlined as if there were no halves. It knows what
//! rustc and wasm-bindgen emit: one memory, one table, active segments. Anything else is an error, never a wrong module.

mod code;
mod read;
mod split;
mod trace;

pub use read::Module;
pub use split::FIRST;
pub use trace::ENTERED;
