//! The npm package with the AI SDK's own providers behind its models: what they make of recorded answers, compared with
//! what the wires of the package make of them.

use std::path::Path;

use anyhow::{Result, bail};
use rig::ports::Route;

use super::{Engine, node};

pub(super) struct AiSdk;

impl Engine for AiSdk {
    fn scenarios(&self, _: &Path, _: &Path, _: Option<Route>) -> Result<bool> {
        bail!("`ai-sdk` plays recorded answers; scenarios are played by `native`, `wasm` and `web`")
    }

    fn fixtures(&self, dir: &Path) -> Result<bool> {
        node::play("ai-sdk/fixtures.mjs", &[], None, [dir])
    }
}
