//! What people and coding agents read in the package: the docs, the skill, an index of both, and the hashes of the modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::files::Files;
use super::links::{self, Place};
use super::manifest::CargoToml;
use super::sbom::hex;
use crate::run::root;

/// The folders, with the same names here and in the package.
const FOLDERS: [&str; 2] = ["docs", "skills"];
/// For those who change the package: in the repository only, as CONTRIBUTING.md is.
const INTERNALS: &str = "docs/internals";
const INDEX: &str = "llms.txt";
/// As `sha256sum --check` reads it.
pub(super) const SUMS: &str = "SHA256SUMS";
const SKILL: &str = "skills/turnwheel/SKILL.md";

/// Adds the docs and the skill. A link to a file that is not in the package leads to the repository, or is text.
pub(super) fn add(files: &mut Files, cargo: &CargoToml) -> Result<()> {
    let mut pages = Files::default();
    for folder in FOLDERS {
        pages.add_folder(&root().join(folder), &format!("{folder}/"))?;
    }
    pages.0.retain(|name, _| is_read(name));
    let index = index(files, &pages.0)?;
    let readable = |path: &str| files.0.contains_key(path) || pages.0.contains_key(path);
    let mut made = BTreeMap::new();
    for (name, bytes) in &pages.0 {
        let bytes = match (name.ends_with(".md"), std::str::from_utf8(bytes)) {
            (true, Ok(text)) => {
                let place = |path: &str| if readable(path) { Place::Kept } else { Place::Elsewhere };
                links::led(text, name, &place, cargo.repository.as_deref()).into_bytes()
            }
            _ => bytes.clone(),
        };
        made.insert(name.clone(), bytes);
    }
    for (name, bytes) in made {
        files.add(&name, bytes)?;
    }
    files.add(INDEX, index.into_bytes())?;
    let modules = files.0.iter().filter(|(name, _)| name.ends_with(".wasm"));
    let sums: String =
        modules.map(|(name, bytes)| format!("{}  {name}\n", hex(&Sha256::digest(bytes)))).collect();
    files.add(SUMS, sums.into_bytes())
}

/// Returns whether a file is for readers: its size says nothing about an app.
pub(super) fn is_read(name: &str) -> bool {
    let name = Path::new(name);
    FOLDERS.iter().any(|folder| name.starts_with(folder)) && !name.starts_with(INTERNALS)
}

/// Lists the pages in the order of docs/README.md, a line each, as <https://llmstxt.org> wants it.
fn index(files: &Files, pages: &BTreeMap<String, Vec<u8>>) -> Result<String> {
    let package: Value = serde_json::from_slice(&files.0["package.json"]).context("in package.json")?;
    let text = |name: &str| -> Result<&str> {
        let bytes = pages.get(name).with_context(|| format!("there is no {name}"))?;
        std::str::from_utf8(bytes).with_context(|| format!("{name} is not UTF-8"))
    };
    let mut made = format!(
        "# turnwheel\n\n> {}\n\nEach page is a file of the npm package. The code on them runs as it stands.\n\n## Guide\n\n",
        package["description"].as_str().unwrap_or_default()
    );
    made.push_str(&format!("- [How to write with turnwheel]({SKILL}): {}\n", skill(text(SKILL)?)?));
    made.push_str("- [README](README.md): what it is, the first screen, a map of the entries\n\n## Docs\n\n");
    let mut listed = Vec::new();
    for link in links::targets(text("docs/README.md")?) {
        let name = format!("docs/{}", link.split('#').next().unwrap_or_default());
        if name.ends_with(".md") && !listed.contains(&name) && pages.contains_key(&name) {
            let (title, about) = begin(text(&name)?).with_context(|| format!("{name} has no heading"))?;
            made.push_str(&format!("- [{title}]({name}): {about}\n"));
            listed.push(name);
        }
    }
    Ok(made)
}

/// Returns the heading of a page, and its first sentence.
fn begin(text: &str) -> Option<(String, String)> {
    let (heading, rest) = text.strip_prefix("# ")?.split_once("\n\n")?;
    let paragraph = links::plain(rest.split("\n\n").next()?).replace('\n', " ");
    let end = [". ", ": "].iter().filter_map(|end| paragraph.find(end)).min();
    let sentence = paragraph[..end.unwrap_or(paragraph.len())].trim_end_matches(['.', ':', ' ']);
    Some((heading.trim().to_owned(), sentence.to_owned()))
}

/// Returns the description in the head of the skill.
fn skill(text: &str) -> Result<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("description: "));
    line.with_context(|| format!("{SKILL} has no `description`"))
}

/// The README of a template: links to docs lead into the installed package.
pub(super) fn in_template(text: &str, page: &str, cargo: &CargoToml) -> String {
    let own = page.trim_end_matches("README.md");
    let place = |path: &str| {
        if path.starts_with(own) {
            Place::Kept
        } else if is_read(path) && fs::metadata(root().join(path)).is_ok_and(|found| found.is_file()) {
            Place::At(format!("node_modules/turnwheel/{path}"))
        } else {
            Place::Elsewhere
        }
    };
    links::led(text, page, &place, cargo.repository.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_listed_with_its_heading_and_its_first_sentence() {
        let page = "# Tapes\n\nA tape is what went\ninto an [agent](a.md). It is all.\n\n## More\n";
        assert_eq!(begin(page), Some(("Tapes".to_owned(), "A tape is what went into an agent".to_owned())));
        assert_eq!(begin("no heading"), None);
    }

    #[test]
    fn the_links_of_a_template_lead_into_the_installed_package_or_are_text() {
        let cargo = CargoToml { version: "1.0.0".to_owned(), repository: None };
        let read = |text: &str| in_template(text, "www/examples/worker/README.md", &cargo);
        assert_eq!(
            read("See [docs](../../../docs/tape.md#fork) and [proxy](../proxy)."),
            "See [docs](node_modules/turnwheel/docs/tape.md#fork) and proxy."
        );
        assert_eq!(read("[the page](page.html)"), "[the page](page.html)");
        assert_eq!(read("See [the loop](../../../docs/internals/loop.md)."), "See the loop.");
    }
}
