//! What the package weighs: every file, and what an app ships.

use std::fs;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::Built;
use super::guide;
use super::inline;
use super::manifest::{Budget, MANIFEST};
use super::parts::Parts;
use super::scripts::esbuild;
use crate::run::{command, read, root};

/// The sizes of the package: of every file, and of what a page loads.
pub struct Sizes {
    files: Vec<(String, Size)>,
    entry: String,
    /// What a page loads, script and wasm: until the first request leaves; until the first text can be read; afterwards.
    stages: [(&'static str, [Size; 2]); 3],
    /// What only an agent loads whose host stores its steps; no part of the sum.
    apart: Size,
    budget: [usize; 2],
    /// Further modules, and the script with the engine inside: their files, their bytes after brotli, and their budgets.
    modules: Vec<(String, usize, usize)>,
    own_std: bool,
}

/// Bytes: uncompressed, after gzip -9, after brotli -11.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Size(usize, usize, usize);

const NOTHING: Size = Size(0, 0, 0);

impl Size {
    fn with(self, other: Self) -> Self {
        Size(self.0 + other.0, self.1 + other.1, self.2 + other.2)
    }
}

impl Built {
    /// Measures the files in the package and what a page loads of them.
    pub fn sizes(&self) -> Result<Sizes> {
        let Budget { entry, app, first, everything, inline, entries } = &self.manifest.budget;
        let names: Vec<&String> = self.files.0.keys().filter(|name| !guide::is_read(name)).collect();
        let inputs = (include_str!("sizes.mjs"), entry, app, &self.files.0);
        let made = self.cache.make("sizes", inputs, |made| {
            let mut node = command("node");
            node.arg(root().join("xtask/src/pack/sizes.mjs"));
            for (name, names) in [("app", format!("{{ {} }}", app.join(", "))), ("all", "*".to_owned())] {
                let (out, meta) = (made.join(name), made.join(format!("{name}.json")));
                let outputs =
                    [format!("--outdir={}", out.display()), format!("--metafile={}", meta.display())];
                let flags = ["--bundle", "--splitting", "--format=esm", "--minify", "--legal-comments=none"];
                let flags: Vec<&str> = flags.into_iter().chain(outputs.iter().map(String::as_str)).collect();
                esbuild(&self.folder, &format!("export {names} from \"./{entry}\";"), &flags)?;
                node.args([&out, &meta]);
            }
            let sizes = read(node.args(names.iter().map(|name| self.folder.join(name))))?;
            Ok(fs::write(made.join("sizes"), sizes)?)
        })?;
        let text = fs::read_to_string(made.join("sizes"))?;
        let mut sizes = text.lines().map(serde_json::from_str::<Size>);
        let mut script =
            || sizes.next().context("sizes.mjs printed nothing")?.context("in what sizes.mjs printed");
        let (at_once, later, apart) = (script()?, script()?, script()?);
        let files: Vec<(String, Size)> =
            names.into_iter().cloned().zip(sizes.collect::<Result<Vec<_>, _>>()?).collect();
        let size_of = |name: &String| {
            let found = files.iter().find(|(known, _)| known == name);
            found.map(|(_, size)| *size).with_context(|| format!("the package has no {name}"))
        };
        let Parts { first: begin, answer, rest } = self.manifest.package.parts.try_map(size_of)?;
        // A budget for an entry that is not there would never be exceeded.
        entries.keys().try_for_each(|name| size_of(name).map(drop))?;
        let modules = self.manifest.modules.values().map(|module| (module.wasm.clone(), module.budget));
        let modules = modules.chain([(inline::ENTRY.to_owned(), *inline)]);
        let modules = modules.map(|(name, budget)| Ok((name.clone(), size_of(&name)?.2, budget)));
        Ok(Sizes {
            modules: modules.collect::<Result<_>>()?,
            stages: [
                ("first", [at_once, begin]),
                ("answer", [NOTHING, answer]),
                ("afterwards", [later, rest]),
            ],
            apart,
            files,
            entry: entry.clone(),
            budget: [*first, *everything],
            own_std: self.own_std,
        })
    }
}

impl Sizes {
    /// What a page loads until its first request leaves, and in all, in bytes after brotli.
    pub(super) fn totals(&self) -> [usize; 2] {
        let sums = self.stages.map(|(_, [script, wasm])| script.2 + wasm.2);
        [sums[0], sums.iter().sum()]
    }

    /// Formats the table for people.
    pub fn table(&self) -> String {
        let mut text = format!("{:<28}{:>9}{:>9}{:>9}\n", "the package, bytes", "raw", "gzip", "brotli");
        let line = |name: &str, size: Size| format!("  {name:<26}{:>9}{:>9}{:>9}\n", size.0, size.1, size.2);
        for (name, size) in &self.files {
            text.push_str(&line(name, *size));
        }
        text.push_str(&format!("what a page loads that imports {}\n", self.entry));
        let mut everything = NOTHING;
        for (name, [script, wasm]) in self.stages {
            text.push_str(&line(&format!("{name}: script, minified"), script));
            text.push_str(&line(&format!("{name}: wasm"), wasm));
            text.push_str(&line(name, script.with(wasm)));
            everything = everything.with(script).with(wasm);
        }
        text.push_str(&line("everything", everything));
        text.push_str(&line("apart, for durable runs", self.apart));
        text
    }

    /// Checks what a page loads.
    ///
    /// # Errors
    /// If it exceeds a budget in wasm-pack.toml.
    pub fn check(&self) -> Result<()> {
        for ((what, size), budget) in ["first", "in all"].into_iter().zip(self.totals()).zip(self.budget) {
            if !self.own_std {
                println!(
                    "{what} {size} bytes; the budget of {budget} is for a build with a standard library of its own"
                );
            } else if size > budget {
                bail!(
                    "a page loads {size} bytes {what}, {} more than the budget of {budget} in {MANIFEST}",
                    size - budget
                );
            } else {
                println!("{what} {size} of {budget} bytes, {} left", budget - size);
            }
        }
        for (name, size, budget) in &self.modules {
            if self.own_std && size > budget {
                bail!("{name} has {size} bytes, {} more than its budget in {MANIFEST}", size - budget);
            }
            println!("{name} {size} of {budget} bytes, loaded only with an entry of its own");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_over_a_budget_fails_and_is_told_by_how_much() {
        let sizes = |first, everything| Sizes {
            files: Vec::new(),
            entry: "entry/web.js".to_owned(),
            stages: [
                ("first", [Size(30, 20, 10), Size(300, 200, 100)]),
                ("answer", [NOTHING, Size(20, 15, 10)]),
                ("afterwards", [Size(3, 2, 1), Size(40, 35, 30)]),
            ],
            apart: NOTHING,
            budget: [first, everything],
            modules: vec![("more.wasm".to_owned(), 5, 5)],
            own_std: true,
        };
        assert!(sizes(110, 151).check().is_ok());
        // The budgets assume a standard library that is compiled together with the crate.
        assert!(Sizes { own_std: false, ..sizes(109, 150) }.check().is_ok());
        let error = sizes(109, 151).check().unwrap_err().to_string();
        assert!(error.starts_with("a page loads 110 bytes first, 1 more than the budget of 109"), "{error}");
        let error = sizes(110, 150).check().unwrap_err().to_string();
        assert!(error.starts_with("a page loads 151 bytes in all, 1 more than the budget of 150"), "{error}");
    }
}
