//! What the package weighs: every file, and what an app ships.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Built;
use super::manifest::{Budget, MANIFEST};
use super::scripts::esbuild;
use crate::run::{command, read, root};

/// The sizes of the package: of every file, and of what an app ships.
pub struct Sizes {
    files: Vec<(String, Size)>,
    entry: String,
    script: Size,
    wasm: Size,
    budget: usize,
    own_std: bool,
}

/// Bytes: uncompressed, after gzip -9, after brotli -11.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Size(usize, usize, usize);

impl Built {
    /// Measures the files in the package and what an app ships of them.
    pub fn sizes(&self) -> Result<Sizes> {
        let Budget { entry, total } = &self.manifest.budget;
        let names: Vec<&String> = self.files.0.keys().collect();
        let inputs = (include_str!("sizes.mjs"), entry, &self.files.0);
        let made = self.cache.make("sizes", inputs, |made| {
            let mut flags = vec!["--bundle", "--format=esm", "--minify", "--legal-comments=none"];
            // What is loaded later is not shipped with the rest.
            let deferred: Vec<String> =
                self.manifest.package.deferred.iter().map(|name| format!("--external:*/{name}")).collect();
            flags.extend(deferred.iter().map(String::as_str));
            let app = made.join("app.js");
            fs::write(&app, esbuild(&self.folder, &format!("export * from \"./{entry}\";"), &flags)?)?;
            let mut node = command("node");
            node.arg(root().join("xtask/src/pack/sizes.mjs")).arg(&app);
            let sizes = read(node.args(names.iter().map(|name| self.folder.join(name))))?;
            Ok(fs::write(made.join("sizes"), sizes)?)
        })?;
        let text = fs::read_to_string(made.join("sizes"))?;
        let mut sizes = text.lines().map(serde_json::from_str::<Size>);
        let script = sizes.next().context("sizes.mjs printed nothing")??;
        let files: Vec<(String, Size)> =
            names.into_iter().cloned().zip(sizes.collect::<Result<Vec<_>, _>>()?).collect();
        let wasm = files.iter().find(|(name, _)| *name == self.manifest.package.wasm);
        let wasm = wasm.context("the package has no wasm file")?.1;
        Ok(Sizes { files, entry: entry.clone(), script, wasm, budget: *total, own_std: self.own_std })
    }
}

impl Sizes {
    /// What an app ships, in bytes after brotli.
    pub(super) fn total(&self) -> usize {
        self.script.2 + self.wasm.2
    }

    /// Formats the table for people.
    pub fn table(&self) -> String {
        let mut text = format!("{:<28}{:>9}{:>9}{:>9}\n", "the package, bytes", "raw", "gzip", "brotli");
        let line = |name: &str, size: Size| format!("  {name:<26}{:>9}{:>9}{:>9}\n", size.0, size.1, size.2);
        for (name, size) in &self.files {
            text.push_str(&line(name, *size));
        }
        let Size(raw, gzip, brotli) = self.wasm;
        let all = Size(raw + self.script.0, gzip + self.script.1, brotli + self.script.2);
        text.push_str(&format!("what an app ships that imports {}\n", self.entry));
        text.push_str(&line("JavaScript, minified", self.script));
        text.push_str(&line("wasm", self.wasm));
        text.push_str(&line("together", all));
        text
    }

    /// Checks the size that an app ships.
    ///
    /// # Errors
    /// If it exceeds the budget in wasm-pack.toml.
    pub fn check(&self) -> Result<()> {
        let (total, budget) = (self.total(), self.budget);
        if !self.own_std {
            println!(
                "{total} bytes; the budget of {budget} is for a build with a standard library of its own"
            );
            return Ok(());
        }
        if total > budget {
            bail!(
                "an app ships {total} bytes, {} more than the budget of {budget} in {MANIFEST}",
                total - budget
            );
        }
        println!("{total} of {budget} bytes, {} left", budget - total);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_over_the_budget_fails_and_is_told_by_how_much() {
        let sizes = |budget| Sizes {
            files: Vec::new(),
            entry: "entry/web.js".to_owned(),
            script: Size(30, 20, 10),
            wasm: Size(300, 200, 100),
            budget,
            own_std: true,
        };
        assert!(sizes(110).check().is_ok());
        // The budget assumes a standard library that is compiled together with the crate.
        assert!(Sizes { own_std: false, ..sizes(109) }.check().is_ok());
        let error = sizes(109).check().unwrap_err().to_string();
        assert!(error.starts_with("an app ships 110 bytes, 1 more than the budget of 109"), "{error}");
    }
}
