//! What others wrote and the package contains: the crates in the module, and what is vendored beside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

use super::manifest::Manifest;
use crate::licence::in_todays_form;
use crate::locks::{CargoLock, PackageLock};
use crate::run::{command, read, root};

/// Something that others wrote.
#[derive(Debug, PartialEq)]
pub(super) struct Component {
    pub(super) name: String,
    pub(super) version: String,
    /// An SPDX expression.
    pub(super) licence: String,
    /// Its address as a package URL.
    pub(super) purl: String,
    /// The hash under which a lock file pins it.
    pub(super) hash: Option<Hash>,
    /// Where the texts of its licences may be.
    pub(super) folders: Vec<PathBuf>,
    /// Whom to name where there is no such text.
    pub(super) author: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Hash {
    /// In hexadecimal, of a crate.
    Sha256(String),
    /// In base64, of an npm package.
    Sha512(String),
}

/// All of it.
pub(super) struct Contents {
    /// In the module, sorted by name.
    pub(super) module: Vec<Component>,
    /// By the file that it is bundled into.
    pub(super) vendored: Vec<(String, Component)>,
}

impl Contents {
    /// Finds the names, versions and licences.
    pub(super) fn find(manifest: &Manifest, crates: &BTreeSet<PathBuf>) -> Result<Self> {
        let std = Std::installed()?;
        let mut locks = vec![CargoLock::read()?];
        locks.extend(CargoLock::at(&std.source.join("Cargo.lock")).ok());
        let mut module = vec![std.component()];
        for manifest in crates.iter().filter(|manifest| !manifest.starts_with(root())) {
            module.extend(std.component_of(manifest, &locks)?);
        }
        module.sort_by(|one, other| (&one.name, &one.version).cmp(&(&other.name, &other.version)));
        let lock = PackageLock::read()?;
        let vendored = manifest.vendor.iter();
        let vendored = vendored.map(|(file, vendor)| Ok((file.clone(), of_npm(&vendor.module, &lock)?)));
        Ok(Self { module, vendored: vendored.collect::<Result<_>>()? })
    }
}

/// The standard library: one thing made of many crates.
struct Std {
    version: String,
    source: PathBuf,
}

impl Std {
    fn installed() -> Result<Self> {
        let version = read(command("rustc").arg("--version"))?;
        let version =
            version.split_whitespace().nth(1).context("rustc does not tell its version")?.to_owned();
        let sysroot = read(command("rustc").args(["--print", "sysroot"]))?;
        let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library");
        // cargo names files by their real folders.
        Ok(Self { version, source: source.canonicalize().unwrap_or(source) })
    }

    fn component(&self) -> Component {
        Component {
            name: "the Rust standard library".to_owned(),
            version: self.version.clone(),
            licence: "MIT OR Apache-2.0".to_owned(),
            purl: format!("pkg:generic/rust-std@{}", self.version),
            hash: None,
            folders: Vec::new(),
            author: None,
        }
    }

    /// Returns what a crate is listed as: of those in the sources of the standard library only the ones with a licence of
    /// their own are listed.
    fn component_of(&self, manifest: &Path, locks: &[CargoLock]) -> Result<Option<Component>> {
        let real = manifest.canonicalize().unwrap_or_else(|_| manifest.to_owned());
        let is_in_std = real.starts_with(&self.source);
        // What says nothing there is under the licence of the whole.
        let whole = Some(self.component().licence).filter(|_| is_in_std);
        let mut component = of_crate(&real, locks, whole)?;
        if !is_in_std {
            return Ok(Some(component));
        }
        // Its texts are those of the project above it, and of the library of mathematics beside it.
        let above: Vec<PathBuf> =
            component.folders.iter().filter_map(|own| own.parent()).map(Path::to_owned).collect();
        component.folders.extend(above.iter().map(|above| above.join("libm")));
        component.folders.extend(above);
        Ok(Some(component).filter(|component| component.licence != self.component().licence))
    }
}

/// Reads the manifest of a crate.
fn of_crate(manifest: &Path, locks: &[CargoLock], otherwise: Option<String>) -> Result<Component> {
    #[derive(Deserialize)]
    struct CargoToml {
        package: Package,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        version: String,
        license: Option<String>,
    }
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let read: CargoToml = toml::from_str(&text)
        .with_context(|| format!("{} does not tell its name and version", manifest.display()))?;
    let Package { name, version, license } = read.package;
    let licence =
        license.or(otherwise).with_context(|| format!("{name} {version} does not tell its licence"))?;
    let checksum = locks.iter().find_map(|lock| lock.find(&name, &version)?.checksum.clone());
    Ok(Component {
        purl: format!("pkg:cargo/{name}@{version}"),
        licence: in_todays_form(&licence),
        hash: checksum.map(Hash::Sha256),
        folders: manifest.parent().map(Path::to_owned).into_iter().collect(),
        author: None,
        name,
        version,
    })
}

/// Reads the manifest of an npm package that is installed.
fn of_npm(name: &str, lock: &PackageLock) -> Result<Component> {
    let folder = root().join("node_modules").join(name);
    let package: Value = serde_json::from_slice(&fs::read(folder.join("package.json"))?)?;
    let text = |key: &str| package[key].as_str().with_context(|| format!("{name} has no {key}"));
    let version = text("version")?.to_owned();
    let integrity = lock.find(name).and_then(|locked| locked.integrity.as_deref());
    // `Name <address> (page)`, or an object.
    let author = package["author"]["name"].as_str().or(package["author"].as_str());
    let author =
        author.and_then(|author| author.split(['<', '(']).next()).map(|author| author.trim().to_owned());
    Ok(Component {
        purl: format!("pkg:npm/{}@{version}", name.replacen('@', "%40", 1)),
        licence: in_todays_form(text("license")?),
        hash: integrity
            .and_then(|hash| hash.strip_prefix("sha512-"))
            .map(|hash| Hash::Sha512(hash.to_owned())),
        folders: vec![folder],
        author,
        name: name.to_owned(),
        version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_named_with_its_version_licence_and_checksum() {
        let folder = crate::pack::cache::scratch("crate");
        let manifest = folder.join("Cargo.toml");
        fs::write(
            &manifest,
            "[package]\nname = \"slab\"\nversion = \"1.2.3\"\nlicense = \"MIT/Apache-2.0\"\n",
        )
        .unwrap();
        let lock = "[[package]]\nname = \"slab\"\nversion = \"1.2.3\"\nchecksum = \"abc\"\n";
        let locks = [toml::from_str(lock).unwrap()];
        let found = of_crate(&manifest, &locks, None).unwrap();
        assert_eq!((found.name.as_str(), found.purl.as_str()), ("slab", "pkg:cargo/slab@1.2.3"));
        assert_eq!(
            (found.licence.as_str(), found.hash),
            ("MIT OR Apache-2.0", Some(Hash::Sha256("abc".to_owned())))
        );
        fs::write(&manifest, "[package]\nname = \"slab\"\nversion = \"1.2.3\"\n").unwrap();
        let error = format!("{:#}", of_crate(&manifest, &locks, None).unwrap_err());
        assert!(error.contains("slab 1.2.3 does not tell its licence"), "{error}");
    }

    #[test]
    fn of_the_standard_library_only_what_has_its_own_licence_is_listed() {
        let source = crate::pack::cache::scratch("std").canonicalize().unwrap();
        let std = Std { version: "1.0.0".to_owned(), source: source.clone() };
        let made = |name: &str, licence: &str| {
            let folder = source.join(name);
            fs::create_dir_all(&folder).unwrap();
            let text =
                format!("[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nlicense = \"{licence}\"\n");
            fs::write(folder.join("Cargo.toml"), text).unwrap();
            std.component_of(&folder.join("Cargo.toml"), &[]).unwrap()
        };
        assert_eq!(made("alloc", "MIT OR Apache-2.0"), None);
        let own = made("builtins", "MIT").unwrap();
        assert!(own.folders.contains(&source.join("libm")) && own.folders.contains(&source), "{own:?}");
    }

    #[test]
    fn what_is_vendored_is_named_with_its_author() {
        let lock = PackageLock::read().unwrap();
        let found = of_npm("@cfworker/json-schema", &lock).unwrap();
        assert!(found.purl.starts_with("pkg:npm/%40cfworker/json-schema@"), "{}", found.purl);
        assert_eq!((found.licence.as_str(), found.author.as_deref()), ("MIT", Some("Jeremy Danyow")));
        assert!(matches!(found.hash, Some(Hash::Sha512(_))));
    }
}
