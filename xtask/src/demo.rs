//! `cargo xtask demo`: serves the demo page, writes a folder of it, or answers one question in the terminal.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, root};
use crate::setup;

const PAGE: &str = "www/demo";

/// Runs `cargo xtask demo [--port N] [--out FOLDER] [--weights FOLDER|FILE|URL] [--once QUESTION] [--model ID] [--base-url URL]
/// [--tape FILE]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(
        args,
        &[],
        &["--once", "--out", "--weights", "--port", "--model", "--base-url", "--tape"],
    )?;
    args.no_positional()?;
    let port = match args.value("--port") {
        Some(text) => {
            let no_port = |_| Misuse(format!("`{text}` is no port (0 to 65535)"));
            Some(text.parse::<u16>().map_err(no_port)?)
        }
        None => None,
    };
    if args.value("--tape").is_some() && args.value("--once").is_none() {
        return Err(Misuse("`--tape` goes with `--once`; the page has a button for it".to_owned()).into());
    }
    if args.value("--out").is_some() && args.value("--once").is_some() {
        return Err(
            Misuse("`--once` answers in the terminal, `--out` writes a folder: give one".to_owned()).into()
        );
    }
    if args.value("--weights").is_some() && args.value("--out").is_none() {
        return Err(
            Misuse("`--weights` goes with `--out`; the page that is served takes a file".to_owned()).into()
        );
    }
    setup::for_build()?;
    let package = pack::build(Kind::Release)?.folder;
    match (args.value("--once"), args.value("--out")) {
        (Some(question), _) => once(question, &args),
        (None, Some(out)) => folder(out, &package, args.value("--weights")),
        (None, None) => serve(&package, port, &args),
    }
}

/// Asks one question in Node. The answer goes to stdout, and the exit code is the script's.
fn once(question: &str, args: &Args) -> Result<ExitCode> {
    let mut node = command("node");
    node.arg(root().join(PAGE).join("once.mjs")).arg(question);
    for name in ["--model", "--base-url"] {
        if let Some(value) = args.value(name) {
            node.args([name, value]);
        }
    }
    if let Some(tape) = args.value("--tape") {
        // Relative to where the user is.
        node.arg("--tape").arg(std::path::absolute(tape)?);
    }
    Ok(exit_code(node.stdin(Stdio::inherit()).status().context("cannot start node")?))
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

/// Serves the page and its Worker until Ctrl-C.
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
