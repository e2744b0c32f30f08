mod vectors;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some("vectors"), Some(dir)) = (words.next().as_deref(), words.next()) else {
        eprintln!("usage: cargo xtask vectors DIR");
        return ExitCode::from(2);
    };
    match vectors::run(Path::new(&dir)) {
        Ok(report) if report.failed == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
