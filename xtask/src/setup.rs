//! What the machine must have before anything else runs. Each function returns at once if nothing is
//! missing. If it cannot install something itself, the error says how to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::deny;
use crate::run::{command, read, root, run as run_command};

const WASM: &str = "wasm32-unknown-unknown";
const OLDEST_NODE: u32 = 20;
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Runs `cargo xtask setup`: everything at once.
pub fn run(args: &[String]) -> Result<ExitCode> {
    Args::parse(args, &[], &[])?.no_positional()?;
    for_build()?;
    let browser = chromium()?;
    chromedriver()?;
    if let Err(why) = deny::install()? {
        log(&format!("`cargo xtask deny` will skip what it has no tools for: {why}"));
    }
    log("compiling wasm-bindgen's test runner, unless it is there");
    run_command(command("cargo").args(["build", "--quiet", "--package", "bindgen-cli"]))?;
    println!("ready; the browser for tests is {}", browser.display());
    Ok(ExitCode::SUCCESS)
}

/// Installs what building the package needs: the wasm target, Node, the npm tools.
pub fn for_build() -> Result<()> {
    wasm_target()?;
    node()?;
    npm_packages()
}

/// Installs the wasm target.
///
/// # Errors
/// If the target is missing and rustup cannot add it.
fn wasm_target() -> Result<()> {
    let library = read(command("rustc").args(["--print", "target-libdir", "--target", WASM]))?;
    if Path::new(library.trim()).is_dir() {
        return Ok(());
    }
    log(&format!("adding Rust's {WASM} target"));
    run_command(command("rustup").args(["target", "add", WASM])).with_context(|| {
        format!(
            "Rust's {WASM} target is missing and rustup did not add it; \
             with another toolchain manager, install its rust-std for {WASM}"
        )
    })
}

/// Returns whether the sources of the standard library are installed, to compile it together with the
/// crate. Without them the installed library is used: the package works the same, but is larger.
pub fn std_source() -> Result<bool> {
    let sysroot = read(command("rustc").args(["--print", "sysroot"]))?;
    let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/Cargo.lock");
    if !source.is_file() {
        log("adding the sources of Rust's standard library (rust-src)");
        if let Err(error) = run_command(command("rustup").args(["component", "add", "rust-src"])) {
            log(&format!("{error:#}"));
        }
        if !source.is_file() {
            log("they are not to be had: the package will be some 7 KB larger than the published one");
        }
    }
    Ok(source.is_file())
}

/// Checks the version of Node.
///
/// # Errors
/// If Node is missing or older than the package supports.
pub fn node() -> Result<()> {
    let hint = format!("install Node {OLDEST_NODE} or newer, from your package manager or nodejs.org");
    let version = read(command("node").arg("--version")).with_context(|| hint.clone())?;
    let major =
        version.trim_start_matches('v').split('.').next().and_then(|digits| digits.parse::<u32>().ok());
    match major {
        Some(major) if major >= OLDEST_NODE => Ok(()),
        _ => bail!("Node is {}, which is too old; {hint}", version.trim()),
    }
}

/// Installs the tools of package-lock.json, unless that version was installed last.
fn npm_packages() -> Result<()> {
    let stamp = root().join("node_modules/.xtask-installed");
    let wanted =
        fs::read_to_string(root().join("package-lock.json")).context("package-lock.json is missing")?;
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    log("installing the npm tools");
    // None of their scripts is needed: esbuild and workerd are prebuilt packages.
    run_command(command("npm").args([
        "ci",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]))
    .context("npm could not install the tools of package-lock.json; is the npm registry within reach?")?;
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Returns the browser for tests: `$CHROMIUM`, or the first one on the PATH, or Debian's, which is
/// installed if run as root.
pub fn chromium() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("CHROMIUM") {
        let given = PathBuf::from(given);
        if !given.is_file() {
            bail!("CHROMIUM is {}, and there is no such file", given.display());
        }
        return Ok(given);
    }
    if let Some(found) = on_path(BROWSERS) {
        return Ok(found);
    }
    if on_path(&["apt-get"]).is_none() || !is_root() {
        bail!(
            "the browser tests want Chromium, and none of {} is on the PATH; install it \
             (`sudo apt-get install chromium`), or set CHROMIUM=/path/to/chrome, or leave them out: \
             `cargo xtask test --list` names the parts, `--skip NAME` leaves one out",
            BROWSERS.join(", ")
        );
    }
    apt_install("chromium")?;
    on_path(BROWSERS).context("apt-get installed chromium, and it is still not on the PATH")
}

/// Returns Chromium's WebDriver, which the tests of `turnwheel-web` are played with: `$CHROMEDRIVER`, or the one on
/// the PATH, or Debian's, which is installed if run as root.
pub fn chromedriver() -> Result<PathBuf> {
    if let Some(given) = std::env::var_os("CHROMEDRIVER") {
        return Ok(PathBuf::from(given));
    }
    if let Some(found) = on_path(&["chromedriver"]) {
        return Ok(found);
    }
    chromium()?;
    if on_path(&["apt-get"]).is_none() || !is_root() {
        bail!(
            "the tests of turnwheel-web in a browser want chromedriver; install it \
             (`sudo apt-get install chromium-driver`), or set CHROMEDRIVER=/path/to/chromedriver, or leave them \
             out: `--skip web-chromium`"
        );
    }
    apt_install("chromium-driver")?;
    on_path(&["chromedriver"]).context("apt-get installed chromium-driver, and it is still not on the PATH")
}

/// Checks that Python has pip; Debian's is installed if run as root.
///
/// # Errors
/// If it has none.
pub fn pip() -> Result<()> {
    let is_there = || {
        command("python3").args(["-m", "pip", "--version"]).output().is_ok_and(|told| told.status.success())
    };
    if is_there() {
        return Ok(());
    }
    if on_path(&["apt-get"]).is_none() || !is_root() {
        bail!("python3 has no pip, which fetches it (`sudo apt-get install python3-pip`)");
    }
    apt_install("python3-pip")?;
    if is_there() { Ok(()) } else { bail!("apt-get installed python3-pip, and python3 has no pip") }
}

fn apt_install(package: &str) -> Result<()> {
    log(&format!("installing {package}"));
    run_command(command("apt-get").args(["update", "-qq"]))?;
    let mut install = command("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    run_command(install.args(["install", "-y", "-qq", "--no-install-recommends", package]))
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

fn is_root() -> bool {
    read(command("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

fn log(what: &str) {
    eprintln!("setup: {what}");
}
