//! Starts a player that is a script for Node.

use std::ffi::OsStr;
use std::process::Command;

use anyhow::{Context, Result};
use rig::ports::Route;

/// Runs a script of tests/js to its end, visibly. Returns whether it ended with 0.
pub(super) fn play<const N: usize>(
    script: &str,
    options: &[&str],
    queues: Option<Route>,
    folders: [impl AsRef<OsStr>; N],
) -> Result<bool> {
    let queues = queues.map(|queues| match queues {
        Route::Inbox => "--queues=inbox",
        Route::Provider => "--queues=provider",
    });
    let mut node = Command::new("node");
    node.arg(crate::tests().join("js").join(script)).args(options).args(queues).args(folders);
    Ok(node.status().context("cannot start node")?.success())
}
