//! `turnwheel-web`, compiled to wasm and driven from Node.

use std::path::Path;

use anyhow::{Result, bail};
use rig::ports::Route;

use super::Engine;

pub(super) struct Web;

impl Engine for Web {
    /// Not there yet. As for `wasm`, this is to be a script of tests/js, started by `node::play` on what
    /// xtask has built.
    fn scenarios(&self, _: &Path, _: &Path, _: Option<Route>) -> Result<bool> {
        bail!("the engine `web` is not built yet")
    }

    fn fixtures(&self, _: &Path) -> Result<bool> {
        bail!("recorded answers are played by `native` and `wasm`; `web` has the same wires")
    }
}
