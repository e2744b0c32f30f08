//! `cargo xtask NAME`

mod fixtures;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["fixtures", dir] if fixtures::run(Path::new(dir)) => ExitCode::SUCCESS,
        ["fixtures", _] => ExitCode::FAILURE,
        _ => {
            eprintln!("usage: cargo xtask fixtures DIR");
            ExitCode::FAILURE
        }
    }
}
