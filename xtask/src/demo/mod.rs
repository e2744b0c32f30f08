//! `cargo xtask demo`: serves the demo page, writes a folder of it, or answers one question in the terminal.

mod serve;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

use crate::args::{Args, Misuse};
use crate::pack::{self, Kind};
use crate::run::{command, exit_code, root};
use crate::setup;
use serve::{Site, listen, serve};

const PAGE: &str = "www/demo";

/// Where npm has put llama.cpp as WebAssembly.
const ENGINE: &str = "node_modules/@wllama/wllama/esm";

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
        (None, None) => serve_page(package, port, &args),
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

fn serve_page(package: PathBuf, port: Option<u16>, args: &Args) -> Result<ExitCode> {
    let page = root().join(PAGE);
    if !page.join("index.html").is_file() {
        bail!("there is no {PAGE}/index.html to serve");
    }
    let listener = listen(port)?;
    let mut address = format!("http://{}/", listener.local_addr()?);
    let options: Vec<String> = [("model", "--model"), ("baseUrl", "--base-url")]
        .iter()
        .filter_map(|(key, name)| Some(format!("{key}={}", encode(args.value(name)?))))
        .collect();
    if !options.is_empty() {
        address.push_str(&format!("?{}", options.join("&")));
    }
    // The Worker lives as long as this process: it stops when its standard input closes.
    let worker = start_worker(listener.local_addr()?.port());
    let (_child, worker) = worker.map_or((None, None), |(child, worker)| (Some(child), Some(worker)));
    println!("{address}");
    eprintln!("the demo page; Ctrl-C ends it");
    serve(&listener, &Site { page, package, engine: root().join(ENGINE), worker })
}

/// Starts the page's Worker in Cloudflare's runtime and returns its address. Without it the
/// loop runs on the page only.
fn start_worker(port: u16) -> Option<(Child, String)> {
    let mut node = command("node");
    node.arg(root().join(PAGE).join("serve-worker.mjs"));
    node.args(["127.0.0.1", "localhost"].map(|host| format!("http://{host}:{port}")));
    let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
    let mut address = String::new();
    let read = BufReader::new(child.stdout.take()?).read_line(&mut address);
    if read.is_err() || !address.starts_with("http://") {
        eprintln!("the Worker did not start; the page works without it");
        return None;
    }
    Some((child, address.trim().to_owned()))
}

/// Encodes a value for the query: the inverse of `decode`.
fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte))
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::serve::decode;
    use super::*;

    #[test]
    fn a_value_in_the_query_survives_the_way_to_the_page() {
        assert_eq!(encode("http://127.0.0.1:1/v1?a=b&c"), "http%3A%2F%2F127.0.0.1%3A1%2Fv1%3Fa%3Db%26c");
        assert_eq!(decode(&encode("ä b%")).as_deref(), Some("ä b%"));
    }
}
