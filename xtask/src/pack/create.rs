//! The package `create-turnwheel`: www/create, and the templates that it copies, made from www/examples.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::files::{Files, filled_in};
use super::guide;
use super::manifest::CargoToml;
use crate::run::{root, target};

const SOURCE: &str = "www/create";
const EXAMPLES: &str = "www/examples";

/// The folder of the built package.
pub fn folder() -> PathBuf {
    target().join("create-turnwheel")
}

/// Builds it.
///
/// # Errors
/// If templates.json names an example that is not there.
pub(super) fn make(cargo: &CargoToml) -> Result<()> {
    let mut files = Files::default();
    files.add_folder(&root().join(SOURCE), "")?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.add(licence, fs::read(root().join(licence))?)?;
    }
    let package = files.0.get_mut("package.json").context("www/create has no package.json")?;
    *package = filled_in(std::str::from_utf8(package)?, cargo)?.into_bytes();
    let templates: Value = serde_json::from_slice(&files.0["templates.json"]).context("in templates.json")?;
    for (name, template) in templates.as_object().context("templates.json is no object")? {
        let example = template["example"].as_str().with_context(|| format!("{name} has no `example`"))?;
        let (path, inside) = (format!("{EXAMPLES}/{example}"), format!("templates/{name}/"));
        let mut found = Files::default();
        found.add_folder(&root().join(&path), &inside)?;
        for (file, bytes) in found.0 {
            if file.contains("/node_modules/") {
                continue;
            }
            let bytes = match file == format!("{inside}README.md") {
                true => guide::in_template(std::str::from_utf8(&bytes)?, &format!("{path}/README.md"), cargo)
                    .into_bytes(),
                false => bytes,
            };
            files.add(&file, bytes)?;
        }
        if !files.0.contains_key(&format!("{inside}package.json")) {
            bail!("{path} has no package.json, so it is no template");
        }
    }
    files.lay_out(&folder())
}
