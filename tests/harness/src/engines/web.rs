//! `turnwheel-web`, compiled to wasm and driven from Node: the crate `web-player` behind the players of the
//! package. xtask has built it, and says where in `WEB_PLAYER`.

use std::path::Path;

use anyhow::{Result, bail};
use rig::ports::Route;

use super::{Engine, node};

pub(super) struct Web;

impl Engine for Web {
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool> {
        node::play("conformance.mjs", &["--engine=web"], queues, [scenarios, traces])
    }

    fn fixtures(&self, _: &Path) -> Result<bool> {
        bail!("recorded answers are played by `native` and `wasm`; `web` has the same wires")
    }
}
