//! The npm package as it lies in pkg/, in Node. Its players are scripts, because they use its public API.

use std::path::Path;

use anyhow::Result;
use rig::ports::Route;

use super::{Engine, node};

/// With the options of its player.
pub(super) struct Wasm(pub(super) &'static [&'static str]);

impl Engine for Wasm {
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool> {
        node::play("conformance.mjs", self.0, queues, [scenarios, traces])
    }

    fn record(&self, [scenarios, traces, tapes]: [&Path; 3], queues: Option<Route>) -> Result<bool> {
        let tapes = format!("--tapes={}", tapes.display());
        node::play("conformance.mjs", &[&tapes], queues, [scenarios, traces])
    }

    fn replay(&self, tapes: &Path, traces: &Path) -> Result<bool> {
        node::play("conformance.mjs", &["--replay"], None, [tapes, traces])
    }

    fn fixtures(&self, dir: &Path) -> Result<bool> {
        node::play("fixtures.mjs", &[], None, [dir])
    }
}
