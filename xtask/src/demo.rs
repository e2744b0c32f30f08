//! `cargo xtask demo`: serves the demo page, or writes a folder of it.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, root};
use crate::setup;

const PAGE: &str = "www/demo";

/// Runs `cargo xtask demo [--port N] [--model ID] [--base-url URL]`, or `demo --out FOLDER [--weights FOLDER|FILE|URL]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &[], &["--out", "--weights", "--port", "--model", "--base-url"])?;
    args.no_positional()?;
    let port = match args.value("--port") {
        Some(text) => {
            let no_port = |_| Misuse(format!("`{text}` is no port (0 to 65535)"));
            Some(text.parse::<u16>().map_err(no_port)?)
        }
        None => None,
    };
    if args.value("--weights").is_some() && args.value("--out").is_none() {
        return Err(
            Misuse("`--weights` goes with `--out`; the page that is served takes a file".to_owned()).into()
        );
    }
    setup::for_build()?;
    let package = pack::build(Kind::Release)?.folder;
    match args.value("--out") {
        Some(out) => folder(out, &package, args.value("--weights")),
        None => serve(&package, port, &args),
    }
}

/// Writes a folder that any web host serves. Paths are relative to where the user is.
fn folder(out: &str, package: &Path, weights: Option<&str>) -> Result<ExitCode> {
    let mut node = command("node");
    node.arg(root().join(PAGE).join("folder.mjs")).arg(std::path::absolute(out)?).arg(package);
    if let Some(weights) = weights {
        let is_address = weights.starts_with("https://") || weights.starts_with("http://");
        let given = if is_address { PathBuf::from(weights) } else { std::path::absolute(weights)? };
        node.arg("--weights").arg(given);
    }
    Ok(exit_code(node.status().context("cannot start node")?))
}

/// Serves the page until Ctrl-C.
fn serve(package: &Path, port: Option<u16>, args: &Args) -> Result<ExitCode> {
    let mut node = command("node");
    node.arg(root().join(PAGE).join("serve.mjs")).arg(package);
    node.args(port.map(|port| format!("--port={port}")));
    for name in ["--model", "--base-url"] {
        node.args(args.value(name).map(|value| format!("{name}={value}")));
    }
    let mut server = node.stdin(Stdio::piped()).spawn().context("cannot start node")?;
    // It ends when this closes: with this process, however that ends.
    let _open = server.stdin.take();
    Ok(exit_code(server.wait()?))
}
