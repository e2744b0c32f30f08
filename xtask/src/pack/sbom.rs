//! The bill of materials in the package, as CycloneDX 1.6: what it contains, and what it was made with.
//!
//! The same package has the same bill, byte by byte: there is no time in it, and its number is a hash of the rest.

use anyhow::{Context, Result};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::contents::{self, Component, Contents};
use crate::locks::{CargoLock, PackageLock};
use crate::run::{command, read};

pub(super) const FILE: &str = "sbom.cdx.json";

/// The package itself.
pub(super) struct Subject<'a> {
    pub(super) version: &'a str,
    pub(super) repository: Option<&'a str>,
    /// The module: its name in the package, and its bytes.
    pub(super) wasm: (&'a str, &'a [u8]),
}

/// Makes the bill.
pub(super) fn bill(subject: &Subject, contents: &Contents) -> Result<Vec<u8>> {
    write(subject, contents, tools()?)
}

fn write(subject: &Subject, contents: &Contents, tools: Vec<Part>) -> Result<Vec<u8>> {
    let package = Part {
        licenses: vec![Licence { expression: "MIT OR Apache-2.0".to_owned() }],
        external_references: subject
            .repository
            .map(|url| Reference { kind: "vcs", url: url.to_owned() })
            .into_iter()
            .collect(),
        ..Part::new("library", "turnwheel", subject.version, format!("pkg:npm/turnwheel@{}", subject.version))
    };
    let (name, bytes) = subject.wasm;
    let mut module = Part::new("file", name, subject.version, String::new());
    module.id = name.to_owned();
    module.hashes.push(Sum { alg: "SHA-256", content: hex(&Sha256::digest(bytes)) });
    let vendored = contents.vendored.iter().map(|(_, component)| component);
    let ids = |components: &mut dyn Iterator<Item = &Component>| -> Vec<String> {
        components.map(|component| component.purl.clone()).collect()
    };
    let mut direct = vec![module.id.clone()];
    direct.extend(ids(&mut vendored.clone()));
    let dependencies = vec![
        Dependency { of: package.id.clone(), depends_on: direct },
        Dependency { of: module.id.clone(), depends_on: ids(&mut contents.module.iter()) },
    ];
    let complete = dependencies.iter().map(|dependency| dependency.of.clone()).collect();
    let mut bill = Bill {
        bom_format: "CycloneDX",
        spec_version: "1.6",
        serial_number: String::new(),
        version: 1,
        metadata: Metadata { lifecycles: [Phase { phase: "build" }], component: package },
        components: [module].into_iter().chain(vendored.chain(&contents.module).map(Part::from)).collect(),
        dependencies,
        compositions: [Composition { aggregate: "complete", dependencies: complete }],
        formulation: [Formula { components: tools }],
    };
    bill.serial_number = serial(&Sha256::digest(serde_json::to_vec(&bill)?));
    let mut text = serde_json::to_vec_pretty(&bill)?;
    text.push(b'\n');
    Ok(text)
}

/// Returns what the package is made with, each in the version that the lock files pin.
fn tools() -> Result<Vec<Part>> {
    let rustc = read(command("rustc").arg("--version"))?;
    let rustc = rustc.split_whitespace().nth(1).context("rustc does not tell its version")?.to_owned();
    let (crates, npm) = (CargoLock::read()?, PackageLock::read()?);
    let bindgen = "wasm-bindgen-cli-support";
    let bindgen = crates
        .crates
        .iter()
        .find(|locked| locked.name == bindgen)
        .context("Cargo.lock has no wasm-bindgen")?;
    let mut tools = vec![
        Part::new("application", "rustc", &rustc, format!("pkg:generic/rustc@{rustc}")),
        Part::new(
            "application",
            &bindgen.name,
            &bindgen.version,
            format!("pkg:cargo/{}@{}", bindgen.name, bindgen.version),
        ),
    ];
    for name in ["binaryen", "esbuild"] {
        let version = npm.find(name).and_then(|locked| locked.version.as_deref());
        let version = version.with_context(|| format!("package-lock.json has no {name}"))?;
        tools.push(Part::new("application", name, version, format!("pkg:npm/{name}@{version}")));
    }
    Ok(tools)
}

/// Returns a UUID made of a hash, of the version that the standard leaves to whoever makes one.
fn serial(hash: &[u8]) -> String {
    let mut digits = hex(&hash[..16]);
    digits.replace_range(12..13, "8");
    digits.replace_range(16..17, "8");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    format!("urn:uuid:{}", parts.join("-"))
}

/// Writes bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads base64 as it stands in package-lock.json.
fn from_base64(text: &str) -> Vec<u8> {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for value in text.bytes().filter_map(|letter| LETTERS.iter().position(|known| *known == letter)) {
        bits = (bits << 6 | value as u32) & 0xff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}

// The parts of the format that are used here.

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bill {
    bom_format: &'static str,
    spec_version: &'static str,
    serial_number: String,
    version: u32,
    metadata: Metadata,
    components: Vec<Part>,
    dependencies: Vec<Dependency>,
    compositions: [Composition; 1],
    formulation: [Formula; 1],
}

#[derive(Serialize)]
struct Metadata {
    lifecycles: [Phase; 1],
    component: Part,
}

#[derive(Serialize)]
struct Phase {
    phase: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(rename = "bom-ref")]
    id: String,
    name: String,
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hashes: Vec<Sum>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    licenses: Vec<Licence>,
    #[serde(skip_serializing_if = "String::is_empty")]
    purl: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    external_references: Vec<Reference>,
}

impl Part {
    fn new(kind: &'static str, name: &str, version: &str, purl: String) -> Self {
        Self {
            kind,
            id: purl.clone(),
            name: name.to_owned(),
            version: version.to_owned(),
            hashes: Vec::new(),
            licenses: Vec::new(),
            purl,
            external_references: Vec::new(),
        }
    }
}

impl From<&Component> for Part {
    fn from(component: &Component) -> Self {
        let hash = component.hash.clone().map(|hash| match hash {
            contents::Hash::Sha256(content) => Sum { alg: "SHA-256", content },
            contents::Hash::Sha512(base64) => Sum { alg: "SHA-512", content: hex(&from_base64(&base64)) },
        });
        Self {
            hashes: hash.into_iter().collect(),
            licenses: vec![Licence { expression: component.licence.clone() }],
            ..Self::new("library", &component.name, &component.version, component.purl.clone())
        }
    }
}

#[derive(Serialize)]
struct Sum {
    alg: &'static str,
    content: String,
}

#[derive(Serialize)]
struct Licence {
    expression: String,
}

#[derive(Serialize)]
struct Reference {
    #[serde(rename = "type")]
    kind: &'static str,
    url: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Dependency {
    #[serde(rename = "ref")]
    of: String,
    depends_on: Vec<String>,
}

#[derive(Serialize)]
struct Composition {
    aggregate: &'static str,
    dependencies: Vec<String>,
}

#[derive(Serialize)]
struct Formula {
    components: Vec<Part>,
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn made(wasm: &[u8]) -> Value {
        let slab = Component {
            name: "slab".to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT".to_owned(),
            purl: "pkg:cargo/slab@1.0.0".to_owned(),
            hash: Some(contents::Hash::Sha512("AAEC/w==".to_owned())),
            folders: Vec::new(),
            author: None,
        };
        let contents = Contents { module: vec![slab], vendored: Vec::new() };
        let subject = Subject { version: "0.1.0", repository: None, wasm: ("a.wasm", wasm) };
        serde_json::from_slice(&write(&subject, &contents, Vec::new()).unwrap()).unwrap()
    }

    #[test]
    fn a_bill_names_the_package_the_module_and_what_is_in_it() {
        let bill = made(b"");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:npm/turnwheel@0.1.0");
        assert_eq!(bill["components"][0]["hashes"][0]["content"], hex(&Sha256::digest(b"")));
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "000102ff");
        assert_eq!(bill["dependencies"][1]["dependsOn"][0], "pkg:cargo/slab@1.0.0");
    }

    #[test]
    fn its_number_follows_from_its_contents() {
        let number = |wasm| made(wasm)["serialNumber"].as_str().unwrap().to_owned();
        assert_eq!(number(b"one"), number(b"one"));
        assert_ne!(number(b"one"), number(b"two"));
        assert_eq!(number(b"one").len(), "urn:uuid:3e671687-395b-81f5-830f-a58921a69b79".len());
    }
}
