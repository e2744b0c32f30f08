//! LICENSE-THIRD-PARTY: the licences of what others wrote and the package contains.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::contents::{Component, Contents};
use crate::licence::taken_under;
use crate::run::root;

pub(super) const FILE: &str = "LICENSE-THIRD-PARTY";

/// Of a choice, the first is taken: its text is in the package, and it asks for no names.
const ACCEPTED: &[&str] = &["Apache-2.0", "MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];

/// The licences that want the names of those who wrote it, and what they say after the names.
const NAMING: &[(&str, &str)] =
    &[("MIT", include_str!("licences/mit.txt")), ("Unicode-3.0", include_str!("licences/unicode-3.0.txt"))];

/// Compares the file in the repository, which readers see, with what was compiled.
///
/// # Errors
/// If they differ. The file is right afterwards.
pub(super) fn keep(contents: &Contents) -> Result<()> {
    let (file, text) = (root().join(FILE), text(contents)?);
    if fs::read_to_string(&file).is_ok_and(|kept| kept == text) {
        return Ok(());
    }
    fs::write(&file, text)?;
    bail!("{FILE} did not list what the package contains, and does now; look at it, and build again")
}

fn text(contents: &Contents) -> Result<String> {
    let mut text = String::from(
        "turnwheel is licensed under MIT or Apache-2.0, as you like (LICENSE-MIT, LICENSE-APACHE).\n\
         The published package also contains what is listed here, bundled or compiled. `cargo xtask build` writes this list.\n",
    );
    let mut taken = BTreeSet::new();
    for (file, component) in &contents.vendored {
        text.push_str(&format!("\n{file}\n{}", entry(component, &mut taken)?));
    }
    text.push_str("\nturnwheel.wasm and the script that talks to it\n");
    for component in &contents.module {
        text.push_str(&entry(component, &mut taken)?);
    }
    text.push_str(
        "\nThe text of Apache-2.0 is in LICENSE-APACHE. Its LLVM exception asks for nothing where something is there in\n\
         compiled form, as here.\n",
    );
    for (name, terms) in NAMING.iter().filter(|(name, _)| taken.contains(*name)) {
        text.push_str(&format!("\nThe text of {name}, for those above that are taken under it:\n\n{terms}"));
    }
    Ok(text)
}

/// Returns the lines for one component: its licence, and whose names that wants. Notes what it is taken under.
fn entry(component: &Component, taken: &mut BTreeSet<String>) -> Result<String> {
    let Component { name, version, licence, .. } = component;
    let its = taken_under(licence, ACCEPTED)
        .with_context(|| format!("{name} {version} is under {licence:?}, which licences.rs cannot meet"))?;
    let mut text = format!("  {name} {version}, {licence}");
    if its.join(" AND ") != *licence {
        text.push_str(&format!(", taken under {}", its.join(" and ")));
    }
    text.push('\n');
    let notice = component.folders.iter().find(|folder| folder.join("NOTICE").exists());
    if let (true, Some(folder)) = (its.iter().any(|licence| licence.starts_with("Apache")), notice) {
        bail!(
            "{} has a NOTICE, which has to travel along; licences.rs has not had to do that yet",
            folder.display()
        );
    }
    if its.iter().any(|licence| NAMING.iter().any(|(naming, _)| naming == licence)) {
        let names = copyrights(component);
        if names.is_empty() {
            bail!(
                "{name} {version} is taken under {}, and there is no copyright line to repeat",
                its.join(" and ")
            );
        }
        names.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    taken.extend(its);
    Ok(text)
}

/// Returns the lines with a copyright in the texts of a component's licences, each once, or its author.
fn copyrights(component: &Component) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for text in component.folders.iter().flat_map(|folder| texts_in(folder)) {
        for line in text.lines().map(str::trim) {
            let is_notice = ["Copyright (c)", "Copyright ©"].iter().any(|start| line.starts_with(start));
            if is_notice && !found.iter().any(|present| present == line) {
                found.push(line.to_owned());
            }
        }
    }
    if found.is_empty() {
        found.extend(component.author.as_ref().map(|author| format!("Copyright (c) {author}")));
    }
    found
}

/// Returns the texts of licences in a folder, in order.
fn texts_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let is_licence = |file: &Path| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        name.starts_with("LICEN") || name.starts_with("COPYING")
    };
    let mut files: Vec<_> = entries.filter(|file| is_licence(file)).collect();
    files.sort();
    files.iter().filter_map(|file| fs::read_to_string(file).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn component(licence: &str, text: &str, author: Option<&str>) -> Component {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = crate::pack::cache::scratch(&format!("licence-{number}"));
        fs::write(folder.join("LICENSE-MIT"), text).unwrap();
        Component {
            name: "slab".to_owned(),
            version: "1.0.0".to_owned(),
            licence: licence.to_owned(),
            purl: String::new(),
            hash: None,
            folders: vec![folder],
            author: author.map(str::to_owned),
        }
    }

    #[test]
    fn each_licence_gets_what_it_asks_for() {
        let text = "The MIT License\n\nCopyright (c) 2019 Carl Lerche\nThe above copyright notice and\n";
        let cases = [
            (component("MIT", text, None), "  slab 1.0.0, MIT\n    Copyright (c) 2019 Carl Lerche\n"),
            (component("MIT", "", Some("Jeremy")), "  slab 1.0.0, MIT\n    Copyright (c) Jeremy\n"),
            (
                component("MIT OR Apache-2.0", text, None),
                "  slab 1.0.0, MIT OR Apache-2.0, taken under Apache-2.0\n",
            ),
        ];
        for (component, expected) in cases {
            assert_eq!(entry(&component, &mut BTreeSet::new()).unwrap(), expected);
        }
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        let refused =
            |component: Component| format!("{:#}", entry(&component, &mut BTreeSet::new()).unwrap_err());
        assert!(
            refused(component("GPL-3.0-only", "", None)).starts_with("slab 1.0.0 is under \"GPL-3.0-only\"")
        );
        assert!(refused(component("MIT", "", None)).contains("no copyright line"));
        let with_notice = component("Apache-2.0", "", None);
        fs::write(with_notice.folders[0].join("NOTICE"), "").unwrap();
        assert!(refused(with_notice).contains("has a NOTICE"));
    }
}
