//! The core module of `component`, in Node, which drives it by its messages. xtask has built it, and says where in
//! `CORE_MODULE`.

use std::path::Path;

use anyhow::{Result, bail};
use rig::ports::Route;

use super::{Engine, node};

pub(super) struct Component;

impl Engine for Component {
    fn scenarios(&self, scenarios: &Path, traces: &Path, queues: Option<Route>) -> Result<bool> {
        node::play("conformance.mjs", &["--engine=component"], queues, [scenarios, traces])
    }

    fn fixtures(&self, _: &Path) -> Result<bool> {
        bail!("recorded answers are played by `native` and `wasm`; `component` has the same wires")
    }
}
