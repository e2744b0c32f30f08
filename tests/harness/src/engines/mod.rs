//! What plays scenarios and recordings: one module for each way to run the loop. A further engine is a
//! module with an [`Engine`] and a line in `ENGINES`; `cargo xtask` has a table beside it that says what
//! must be built first.

mod ai_sdk;
mod component;
mod native;
mod node;
mod wasm;
mod web;

use std::path::Path;

use anyhow::{Result, bail};
use rig::ports::Route;

/// A way to run the loop. Each prints what it played and returns whether everything was well; an error is
/// a folder that cannot be read or a program that cannot be started.
pub trait Engine {
    /// Plays every scenario of a folder in virtual time and writes a trace each, under the same name. A
    /// scenario that needs something the engine does not have is skipped and named. `queues` is the way of
    /// posted messages; by default each scenario's own.
    ///
    /// # Errors
    /// If nothing can be played at all.
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool>;

    /// Like [`Engine::scenarios`], and writes the tape of each scenario into a third folder, as NAME.tape.
    ///
    /// # Errors
    /// If nothing can be played at all.
    fn record(&self, _: [&Path; 3], _: Option<Route>) -> Result<bool> {
        bail!("this engine makes no tapes; `native` and `wasm` do")
    }

    /// Writes the trace of every tape of a folder. It knows nothing else: no script, no tools.
    ///
    /// # Errors
    /// If nothing can be read at all.
    fn replay(&self, _tapes: &Path, _traces: &Path) -> Result<bool> {
        bail!("this engine plays no tapes; `native` and `wasm` do")
    }

    /// Plays every recorded answer below a folder through the wires and compares.
    ///
    /// # Errors
    /// If nothing can be played at all.
    fn fixtures(&self, dir: &Path) -> Result<bool>;
}

/// The engines by their names. The last is the package, whose runs are also read as AG-UI events.
const ENGINES: [(&str, &dyn Engine); 6] = [
    ("native", &native::Native),
    ("wasm", &wasm::Wasm(&[])),
    ("web", &web::Web),
    ("component", &component::Component),
    ("ai-sdk", &ai_sdk::AiSdk),
    ("ag-ui", &wasm::Wasm(&["--ag-ui"])),
];

/// Returns the engine of that name.
pub fn engine(name: &str) -> Option<&'static dyn Engine> {
    ENGINES.iter().find(|(known, _)| *known == name).map(|(_, engine)| *engine)
}
