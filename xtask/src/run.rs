//! Runs other programs: where, and what is reported if one fails.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Returns the repository's folder. The environment at run time comes first: several checkouts may
/// share a target directory.
pub fn root() -> PathBuf {
    let manifest =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let xtask = PathBuf::from(manifest);
    xtask.parent().map(PathBuf::from).unwrap_or(xtask)
}

/// Returns cargo's target directory; xtask keeps its own files in `xtask/` there.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// Returns the folder in which cargo keeps what it downloads, if this user has one.
pub fn cargo_home() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
}

/// Makes a command that runs in the repository. `cargo` is the cargo that runs xtask.
pub fn command(program: &str) -> Command {
    let mut command = match std::env::var_os("CARGO") {
        Some(cargo) if program == "cargo" => Command::new(cargo),
        _ => Command::new(program),
    };
    command.current_dir(root()).stdin(Stdio::null());
    command
}

/// Runs a command to its end, visibly; an exit code other than 0 is an error. Its output goes to stderr,
/// because stdout belongs to what xtask was asked for.
pub fn run(command: &mut Command) -> Result<()> {
    command.stdout(std::io::stderr());
    let status = command.status().with_context(|| cannot_start(command))?;
    if !status.success() {
        bail!("`{}` failed ({status})", command_line(command));
    }
    Ok(())
}

/// Runs a command to its end and returns its stdout; its stderr stays visible.
pub fn read(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().with_context(|| cannot_start(command))?;
    text_of(output, command)
}

/// Like [`read`], with input on stdin.
pub fn feed(command: &mut Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = command.spawn().with_context(|| cannot_start(command))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(input.as_bytes())
            .with_context(|| format!("`{}` does not read", command_line(command)))?;
    }
    text_of(child.wait_with_output()?, command)
}

fn text_of(output: Output, command: &Command) -> Result<String> {
    if !output.status.success() {
        bail!("`{}` failed ({})", command_line(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` wrote something that is not UTF-8", command_line(command)))
}

/// Returns the exit code of a program as our own. A program that was killed has none.
pub fn exit_code(status: ExitStatus) -> ExitCode {
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Formats the command as a person would type it, without the program's folder.
pub fn command_line(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    let mut parts = vec![name];
    parts.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    parts.join(" ")
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start `{}`; is it installed and on the PATH?", command.get_program().to_string_lossy())
}
