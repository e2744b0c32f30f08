//! The files of the package, before they are written and as a folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::manifest::{CargoToml, Manifest};
use crate::run::root;

/// Returns the files as they are in the sources, with the version and the address of the repository filled in.
pub(super) fn gather(manifest: &Manifest, cargo: &CargoToml) -> Result<Files> {
    let mut files = Files::default();
    let source = root().join(&manifest.package.source);
    files.add_folder(&source, "")?;
    for name in &manifest.package.copy {
        let file = root().join(name);
        if files.0.contains_key(name) {
            continue; // The package has its own.
        }
        match fs::read(&file) {
            Ok(bytes) => files.add(name, bytes)?,
            Err(_) => eprintln!("warning: there is no {name} to put into the package"),
        }
    }
    let Some(package) = files.0.get_mut("package.json") else {
        bail!("{} has no package.json", manifest.package.source);
    };
    let text = String::from_utf8(package.clone()).context("package.json is not UTF-8")?;
    *package = filled_in(&text, cargo)?.into_bytes();
    Ok(files)
}

/// Puts in what only Cargo.toml says. Edits the text, because the order of `exports` matters and parsing would lose it.
pub(super) fn filled_in(package: &str, cargo: &CargoToml) -> Result<String> {
    const PLACE: &str = r#""version": "0.0.0""#;
    if package.matches(PLACE).count() != 1 {
        bail!("package.json has to say {PLACE} once; the build puts the version of Cargo.toml there");
    }
    let mut text = format!(r#""version": "{}""#, cargo.version);
    if let Some(address) = &cargo.repository {
        let pages = [
            format!(r#""homepage": "{address}#readme""#),
            format!(r#""repository": {{ "type": "git", "url": "git+{address}.git" }}"#),
            format!(r#""bugs": "{address}/issues""#),
        ];
        pages.iter().for_each(|page| text.push_str(&format!(",\n  {page}")));
    }
    Ok(package.replace(PLACE, &text))
}

/// The package before it is written: contents by path.
#[derive(Default)]
pub(super) struct Files(pub(super) BTreeMap<String, Vec<u8>>);

impl Files {
    pub(super) fn add(&mut self, name: &str, bytes: Vec<u8>) -> Result<()> {
        if self.0.insert(name.to_owned(), bytes).is_some() {
            bail!("two files want to be {name} in the package");
        }
        Ok(())
    }

    pub(super) fn add_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.path().join("Cargo.toml").is_file() {
                continue; // The Rust half of the package.
            }
            if entry.file_type()?.is_dir() {
                self.add_folder(&entry.path(), &format!("{path}/"))?;
            } else {
                self.add(&path, fs::read(entry.path())?)?;
            }
        }
        Ok(())
    }

    /// Removes a file that only the sources need.
    pub(super) fn take(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Removes and returns the scripts.
    pub(super) fn take_scripts(&mut self) -> BTreeMap<String, Vec<u8>> {
        let all = std::mem::take(&mut self.0);
        let (scripts, others) = all.into_iter().partition(|(name, _)| name.ends_with(".js"));
        self.0 = others;
        scripts
    }

    /// Returns the scripts that package.json names, and the inner ones that tests inspect.
    pub(super) fn entries(&self, inner: &[String]) -> Result<Vec<String>> {
        let package: Value = serde_json::from_slice(&self.0["package.json"]).context("in package.json")?;
        let mut named = BTreeSet::new();
        file_names(&package["exports"], &mut named);
        named.extend(inner.iter().map(String::as_str));
        Ok(named.into_iter().filter(|name| name.ends_with(".js")).map(str::to_owned).collect())
    }

    /// Checks that every file named by package.json exists; a missing one would only break
    /// for the users of one host.
    ///
    /// # Errors
    /// If one is missing.
    pub(super) fn check(&self) -> Result<()> {
        let package: Value = serde_json::from_slice(&self.0["package.json"]).context("in package.json")?;
        let mut named = BTreeSet::new();
        for key in ["exports", "main", "types"] {
            file_names(&package[key], &mut named);
        }
        for name in named {
            if !self.0.contains_key(name) {
                bail!("package.json names ./{name}, and no such file is in the package");
            }
        }
        Ok(())
    }

    /// Makes the folder contain exactly these files; files that are already right are not touched.
    pub(super) fn lay_out(&self, folder: &Path) -> Result<()> {
        remove_others(folder, "", &self.0)?;
        for (name, bytes) in &self.0 {
            let file = folder.join(name);
            if fs::read(&file).is_ok_and(|present| present == *bytes) {
                make_readable(&file)?;
                continue;
            }
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
            make_readable(&file)?;
        }
        Ok(())
    }
}

/// Gives a file the rights that it has in the tarball, where npm keeps them: they must not depend on the umask of whoever
/// builds.
fn make_readable(file: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if fs::metadata(file)?.permissions().mode() & 0o777 != 0o644 {
            fs::set_permissions(file, fs::Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}

/// Collects every `./path` in a value of package.json, at any depth.
fn file_names<'a>(value: &'a Value, names: &mut BTreeSet<&'a str>) {
    match value {
        Value::String(text) => names.extend(text.strip_prefix("./")),
        Value::Array(items) => items.iter().for_each(|item| file_names(item, names)),
        Value::Object(fields) => fields.values().for_each(|field| file_names(field, names)),
        _ => {}
    }
}

/// Checks that a folder which somebody names may become a package. Other files in it are deleted, so it has to
/// be new, or empty, or a package of ours.
///
/// # Errors
/// If it is something else.
pub(super) fn check_target(folder: &Path) -> Result<()> {
    let is_bare = fs::read_dir(folder).map_or(!folder.exists(), |mut entries| entries.next().is_none());
    let package = fs::read(folder.join("package.json")).unwrap_or_default();
    let package: Value = serde_json::from_slice(&package).unwrap_or_default();
    if !is_bare && (package["name"] != "turnwheel" || !folder.join("entry").is_dir()) {
        bail!(
            "{} is neither empty nor a package that was built here; its files would be deleted",
            folder.display()
        );
    }
    Ok(())
}

fn remove_others(folder: &Path, prefix: &str, keep: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            let inside = format!("{path}/");
            if keep.keys().any(|name| name.starts_with(&inside)) {
                remove_others(&entry.path(), &inside, keep)?;
            } else {
                fs::remove_dir_all(entry.path())?;
            }
        } else if !keep.contains_key(&path) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(named: &[(&str, &str)]) -> Files {
        Files(named.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn what_cargo_says_goes_into_its_place_and_nowhere_else() {
        let cargo = |repository: Option<&str>| CargoToml {
            version: "1.2.3".to_owned(),
            repository: repository.map(str::to_owned),
        };
        let package = r#"{ "version": "0.0.0", "exports": { "b": "1", "a": "2" } }"#;
        let made = filled_in(package, &cargo(None)).unwrap();
        assert_eq!(made, r#"{ "version": "1.2.3", "exports": { "b": "1", "a": "2" } }"#);
        assert!(filled_in(r#"{ "version": "0.1.0" }"#, &cargo(None)).is_err());
        let made = filled_in(package, &cargo(Some("https://git.example/a/b"))).unwrap();
        let made: Value = serde_json::from_str(&made).unwrap();
        assert_eq!(made["repository"]["url"], "git+https://git.example/a/b.git");
        assert_eq!(made["bugs"], "https://git.example/a/b/issues");
    }

    #[test]
    fn a_file_that_an_export_names_has_to_be_there() {
        let package = r#"{ "exports": { ".": { "types": "./index.d.ts", "default": ["./entry/web.js"] } } }"#;
        let whole = files(&[("package.json", package), ("index.d.ts", ""), ("entry/web.js", "")]);
        assert!(whole.check().is_ok());
        let broken = files(&[("package.json", package), ("index.d.ts", "")]);
        let error = broken.check().unwrap_err().to_string();
        assert_eq!(error, "package.json names ./entry/web.js, and no such file is in the package");
    }

    #[test]
    fn two_files_with_one_name_are_refused() {
        let mut files = files(&[("glue.js", "mine")]);
        assert!(files.add("glue.js", Vec::new()).is_err());
    }

    #[test]
    fn only_a_new_folder_an_empty_one_or_a_package_of_ours_is_built_into() {
        let folder = crate::pack::cache::scratch("target");
        assert!(check_target(&folder.join("new")).is_ok());
        assert!(check_target(&folder).is_ok());
        files(&[("package.json", r#"{ "name": "turnwheel" }"#), ("entry/web.js", "")])
            .lay_out(&folder.join("ours"))
            .unwrap();
        assert!(check_target(&folder.join("ours")).is_ok());
        files(&[("package.json", r#"{ "name": "theirs" }"#)]).lay_out(&folder.join("app")).unwrap();
        assert!(check_target(&folder.join("app")).is_err());
        assert!(check_target(&folder.join("app/package.json")).is_err());
    }

    #[test]
    fn the_package_folder_holds_these_files_and_no_others() {
        let folder = crate::pack::cache::scratch("lay-out");
        files(&[("a.js", "old"), ("old/b.js", ""), ("entry/c.js", "")]).lay_out(&folder).unwrap();
        files(&[("a.js", "new"), ("entry/d.js", "d")]).lay_out(&folder).unwrap();
        let mut found = Files::default();
        found.add_folder(&folder, "").unwrap();
        assert_eq!(found.0, files(&[("a.js", "new"), ("entry/d.js", "d")]).0);
    }

    #[cfg(unix)]
    #[test]
    fn everybody_may_read_the_files_whatever_they_were() {
        use std::os::unix::fs::PermissionsExt;
        let folder = crate::pack::cache::scratch("rights");
        let file = folder.join("a.js");
        for mode in [0o600, 0o755] {
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            files(&[("a.js", "")]).lay_out(&folder).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
        }
    }
}
