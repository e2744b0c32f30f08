//! npm's tools, as package-lock.json pins them.

use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Verdict, allowed, flaw_of_licence};
use crate::locks::{LockedPackage, PackageLock};
use crate::run::command;

/// What a tool may be under besides what deny.toml allows: none of these reaches the package, and a tool that is used as it
/// is has nothing to disclose.
const FOR_TOOLS: &[&str] = &["0BSD", "BSD-2-Clause", "BlueOak-1.0.0", "CC0-1.0", "ISC", "MPL-2.0"];

/// Tools that are let in although their licence is another, or tells nothing: how their name begins, what they say, and why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("@img/sharp-", "LGPL-3.0-or-later", "libvips, a library beside sharp that miniflare does not load here"),
    (
        "@modelcontextprotocol/server-everything",
        "SEE LICENSE IN LICENSE",
        "a test's MCP server; the text is that of Apache-2.0 and MIT",
    ),
];

/// Checks that npm can take every package from its registry alone, and only the bytes that were locked.
pub(super) fn sources() -> Result<Verdict> {
    let lock = PackageLock::read()?;
    let packages = lock.packages.iter().filter(|(path, _)| !path.is_empty());
    Ok(packages.filter_map(|(path, package)| flaw_of_source(path, package)).collect::<Vec<_>>().into())
}

fn flaw_of_source(path: &str, package: &LockedPackage) -> Option<String> {
    let hash = package.integrity.as_deref().unwrap_or_default();
    if package.link || !path.contains("node_modules/") {
        return Some(format!("{path} is a folder, not a package"));
    }
    if let Some(address) = &package.resolved {
        // .npmrc leaves addresses out: the registry is whichever the machine is set up for.
        return Some(format!("{path} names an address, {address}; without it npm asks its registry"));
    }
    // Of several hashes npm takes the strongest.
    (!hash.starts_with("sha512-") || hash.contains(' ')).then(|| format!("{path} is not under one SHA-512"))
}

pub(super) fn licences() -> Result<Verdict> {
    let (lock, allowed) = (PackageLock::read()?, allowed()?);
    let allowed: Vec<&str> = allowed.iter().map(String::as_str).chain(FOR_TOOLS.iter().copied()).collect();
    let packages = lock.packages.iter().filter(|(path, _)| !path.is_empty());
    Ok(packages
        .filter_map(|(path, package)| flaw_of_tool(path, package, &allowed))
        .collect::<Vec<_>>()
        .into())
}

fn flaw_of_tool(path: &str, package: &LockedPackage, allowed: &[&str]) -> Option<String> {
    let name = path.rsplit("node_modules/").next().unwrap_or(path);
    let licence = package.license.as_deref();
    let is_let_in = |(start, says, _): &(&str, &str, &str)| {
        name.starts_with(start) && licence.is_some_and(|licence| licence.contains(says))
    };
    if EXCEPTIONS.iter().any(is_let_in) { None } else { flaw_of_licence(path, licence, allowed) }
}

/// Asks the registry which of them are known to be vulnerable.
pub(super) fn advisories() -> Result<Verdict> {
    let mut npm = command("npm");
    let npm = npm.args(["audit", "--json", "--loglevel=error"]).stderr(Stdio::null());
    let output = npm.output().context("cannot start `npm`")?;
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(read_audit(&told))
}

fn read_audit(told: &Value) -> Verdict {
    let Some(found) = told["vulnerabilities"].as_object() else {
        let why = told["message"].as_str().or(told["error"]["summary"].as_str());
        return Verdict::Skipped(format!(
            "the registry does not answer it: {}",
            why.unwrap_or("npm printed no report")
        ));
    };
    let line = |(name, flaw): (&String, &Value)| {
        format!("{name}: {}", flaw["severity"].as_str().unwrap_or("unknown"))
    };
    found.iter().map(line).collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn locked() -> LockedPackage {
        let integrity = Some("sha512-abc==".to_owned());
        LockedPackage { license: Some("MIT".to_owned()), integrity, ..LockedPackage::default() }
    }

    #[test]
    fn a_tool_comes_from_the_registry_under_its_hash() {
        let path = "node_modules/slab";
        assert_eq!(flaw_of_source(path, &locked()), None);
        assert!(flaw_of_source("slab", &locked()).is_some());
        let other = |change: fn(&mut LockedPackage)| {
            let mut package = locked();
            change(&mut package);
            flaw_of_source(path, &package)
        };
        assert!(other(|package| package.link = true).is_some());
        assert!(other(|package| package.integrity = None).is_some());
        assert!(other(|package| package.integrity = Some("sha1-abc".to_owned())).is_some());
        assert!(other(|package| package.resolved = Some("git+ssh://git.example/slab".to_owned())).is_some());
        assert_eq!(sources().unwrap(), Verdict::Fine);
    }

    #[test]
    fn an_exception_is_for_its_package_and_its_licence_alone() {
        let flaw = |path: &str, licence: &str| {
            flaw_of_tool(path, &LockedPackage { license: Some(licence.to_owned()), ..locked() }, &["MIT"])
        };
        assert_eq!(flaw("node_modules/@img/sharp-libvips-linux-x64", "LGPL-3.0-or-later"), None);
        assert!(flaw("node_modules/slab", "LGPL-3.0-or-later").is_some());
        assert!(flaw("node_modules/@img/sharp-libvips-linux-x64", "AGPL-3.0-only").is_some());
        assert!(flaw("node_modules/@img/sharp-/node_modules/slab", "LGPL-3.0-or-later").is_some());
        assert_eq!(licences().unwrap(), Verdict::Fine);
    }

    #[test]
    fn an_audit_that_was_not_answered_is_skipped_and_one_with_findings_fails() {
        assert_eq!(read_audit(&json!({ "vulnerabilities": {} })), Verdict::Fine);
        let found = read_audit(&json!({ "vulnerabilities": { "slab": { "severity": "high" } } }));
        assert_eq!(found, Verdict::Broken(vec!["slab: high".to_owned()]));
        let refused = read_audit(&json!({ "message": "405 Method Not Allowed", "error": { "summary": "" } }));
        assert_eq!(
            refused,
            Verdict::Skipped("the registry does not answer it: 405 Method Not Allowed".to_owned())
        );
        assert!(matches!(read_audit(&Value::Null), Verdict::Skipped(_)));
    }
}
