//! `cargo xtask release --rehearse`: everything that the release workflow does, but the upload.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::args::{Args, Misuse};
use crate::pack::{self, CargoToml, Kind};
use crate::run::{command, read, root, target};
use crate::{setup, site};

/// Runs `cargo xtask release --rehearse [--out FOLDER]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--rehearse"], &["--out"])?;
    args.no_positional()?;
    if !args.has("--rehearse") {
        let text = "the workflow `release.yml` uploads; `release --rehearse` does all of it but that";
        return Err(Misuse(text.to_owned()).into());
    }
    let out = args.value("--out").map_or_else(|| target().join("xtask/rehearsed"), PathBuf::from);
    let out = std::path::absolute(out)?;
    let cargo = CargoToml::read()?;
    setup::for_build()?;
    let packed = out.join("packed");
    super::empty(&packed)?;
    let package = pack::build(Kind::Release)?;
    let archives = super::pack_all(&package, &cargo, &packed, false, false)?;
    print!("{}", super::write_sums(&packed, &archives)?);
    let changelog = fs::read_to_string(root().join("CHANGELOG.md"))?;
    fs::write(out.join("notes.md"), notes(&changelog, &cargo.version)?)?;
    write_provenance(&out, &cargo)?;
    if site::write(&package, &out.join("site"))? != ExitCode::SUCCESS {
        bail!("the site could not be written");
    }
    println!("{} holds the archives, their hashes, provenance.json, notes.md and the site", out.display());
    match super::gate::now(&cargo)?.as_slice() {
        [] => println!("nothing is missing for a release"),
        missing => println!("missing for a release:\n  {}", missing.join("\n  ")),
    }
    Ok(ExitCode::SUCCESS)
}

/// The section of a version in the changelog, without its heading.
fn notes(changelog: &str, version: &str) -> Result<String> {
    let heading = format!("## {version}");
    let mut lines = changelog.lines().skip_while(|line| !line.starts_with(&heading));
    lines.next().with_context(|| format!("CHANGELOG.md has no section `{heading}`"))?;
    let section: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
    Ok(section.join("\n").trim().to_owned() + "\n")
}

/// Writes the data of which the workflow makes the signed statement: commit, repository, workflow, tools.
fn write_provenance(out: &Path, cargo: &CargoToml) -> Result<()> {
    let tool = |name: &str| read(command(name).arg("--version")).map(|text| text.trim().to_owned());
    let statement = json!({
        "version": cargo.version,
        "repository": cargo.repository,
        "commit": read(command("git").args(["rev-parse", "HEAD"]))?.trim(),
        "workflow": ".github/workflows/release.yml",
        "rustc": tool("rustc")?,
        "node": tool("node")?,
    });
    let text = serde_json::to_string_pretty(&statement)? + "\n";
    fs::write(out.join("provenance.json"), text).context("cannot write provenance.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notes_are_the_section_of_the_version() {
        let changelog =
            "# Changelog\n\n## 1.2.0, 2026-12-01\n\n- New.\n\n### More\n\n- Other.\n\n## 1.1.0\n\n- Old.\n";
        assert_eq!(notes(changelog, "1.2.0").unwrap(), "- New.\n\n### More\n\n- Other.\n");
        assert!(notes(changelog, "2.0.0").is_err());
    }

    #[test]
    fn without_the_word_nothing_happens() {
        assert!(run(&[]).unwrap_err().to_string().contains("--rehearse"));
    }
}
