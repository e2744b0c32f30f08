//! `turnwheel/inline`: the package as one script that imports nothing, with the engine inside; as a module and
//! for `require`.
//!
//! The engine is compressed, because no bundler does it, and in base64, because bundlers write all other letters
//! than those of ASCII as escapes. Bytes of the script, uncompressed and after brotli -11, for an engine of
//! 510,980 bytes:
//!
//! | | uncompressed | brotli | as esbuild prints it, brotli |
//! |---|--:|--:|--:|
//! | zopfli, base64 | 294,280 | 220,761 | the same |
//! | zlib -9, base64 | 309,244 | 232,040 | the same |
//! | zopfli, 85 letters | 275,890 | 223,607 | the same |
//! | zopfli, 91 letters | 271,430 | 223,377 | the same |
//! | zopfli, a letter of Latin-1 per byte | 334,826 | 227,222 | 633,461, 269,931 |
//! | zopfli, a letter of UTF-16 per 15 bits | 353,138 | 222,576 | 706,274, 249,234 |
//! | as it is, a letter of Latin-1 per byte | 609,822 | 203,744 | 1,280,380, 220,835 |
//! | as it is, base64 | 681,308 | 241,317 | the same |
//!
//! `DecompressionStream` knows deflate everywhere, and brotli nowhere. A decoder for 85 or 91 letters would be
//! ours, while every host has one for base64; and brotli can say each of 64 letters in exactly six bits, but none
//! of these in 6.4.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Kind;
use super::cache::StepCache;
use super::files::Files;
use super::scripts::esbuild;

/// The script, in the sources and in the package.
pub(super) const ENTRY: &str = "inline.js";
/// The same for `require`: TypeScript takes the types of the whole package for it from a file of this kind.
pub(super) const TYPES: &str = "inline.d.cts";
/// What the script imports, and its types, which only the sources need.
const ENGINE: &str = "boundary/inlined.js";
pub(super) const ENGINE_TYPES: &str = "boundary/inlined.d.ts";

/// Where the other engine lies, which this script does not have beside it: without this, bundlers would ship that file.
const SERVER_ADDRESS: (&str, &str) = (
    "server-address.js",
    "export const serverAddress = () => { throw new Error(\"turnwheel/inline has no files beside it\"); };\n",
);

/// Makes both scripts. Returns their folder.
pub(super) fn make(
    cache: &StepCache,
    lock: &[u8],
    scripts: BTreeMap<String, Vec<u8>>,
    wasm: &Path,
    kind: Kind,
) -> Result<PathBuf> {
    let module = fs::read(wasm)?;
    // Nobody waits for a quick build to be small.
    let rounds = NonZeroU64::new(if kind == Kind::Dev { 1 } else { 15 }).unwrap_or(NonZeroU64::MIN);
    let inputs = (lock, include_str!("inline.rs"), rounds, &module, &scripts);
    let made = cache.make("inline", inputs, |folder| {
        let mut sources = Files(scripts.clone());
        sources.add(ENGINE, engine(&module, rounds)?.into_bytes())?;
        sources.0.insert(SERVER_ADDRESS.0.to_owned(), SERVER_ADDRESS.1.into());
        join(&sources, folder)
    })?;
    Ok(made.join("out"))
}

/// The module with the bytes of the engine.
fn engine(module: &[u8], rounds: NonZeroU64) -> Result<String> {
    let options = zopfli::Options { iteration_count: rounds, ..zopfli::Options::default() };
    let mut packed = Vec::new();
    zopfli::compress(options, zopfli::Format::Zlib, module, &mut packed)
        .context("cannot compress the engine")?;
    Ok(format!("export const SIZE = {};\nexport const PACKED = \"{}\";\n", module.len(), to_base64(&packed)))
}

/// Joins everything that an agent may need, sooner or later. Without `--splitting`, what is loaded by `import()`
/// becomes a part of the script, too.
fn join(sources: &Files, folder: &Path) -> Result<()> {
    let from = folder.join("parts");
    sources.lay_out(&from)?;
    // esbuild tells Node what a script for `require` exports only if it is for Node.
    for (format, name) in [("esm", ENTRY), ("cjs", "inline.cjs")] {
        let (format, out) =
            (format!("--format={format}"), format!("--outfile={}", folder.join("out").join(name).display()));
        let flags = [
            "--bundle",
            "--minify",
            "--target=es2022",
            "--platform=node",
            "--legal-comments=inline",
            &format,
            &out,
            ENTRY,
        ];
        esbuild(&from, "", &flags)?;
        let script = folder.join("out").join(name);
        fs::write(&script, with_own_members(&fs::read_to_string(&script)?)?)?;
    }
    Ok(())
}

/// The script with esbuild's helper for namespaces going over the own members of a list of exports: others stand on
/// `Object.prototype` in some pages, and are no getters.
fn with_own_members(script: &str) -> Result<String> {
    let (before, rest) = script.split_once("=>{for(var ").context("esbuild wrote its helper otherwise")?;
    let (name, rest) = rest.split_once(" in ").context("esbuild wrote its helper otherwise")?;
    let (list, rest) = rest.split_once(')').context("esbuild wrote its helper otherwise")?;
    anyhow::ensure!(
        rest.contains(&format!("{{get:{list}[{name}],enumerable:!0}}")),
        "that loop is no helper of esbuild"
    );
    Ok(format!("{before}=>{{for(var {name} of Object.keys({list})){rest}"))
}

/// Writes bytes in base64.
fn to_base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits =
            three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= three.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_base64_that_everybody_reads() {
        // RFC 4648, section 10.
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (length, text) in known.into_iter().enumerate() {
            assert_eq!(to_base64(&b"foobar"[..length]), text);
        }
        assert_eq!(to_base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn exports_are_own_members() {
        let script = "var h=Object.defineProperty;var Ot=(n,t)=>{for(var e in t)h(n,e,{get:t[e],enumerable:!0})};for(var e in x);";
        let own = script.replacen("for(var e in t)", "for(var e of Object.keys(t))", 1);
        assert_eq!(with_own_members(script).unwrap(), own);
        assert!(with_own_members("for(var e in t);").is_err());
    }

    #[test]
    fn the_same_engine_becomes_the_same_script() {
        let module = b"\0asm once, and once, and once more".repeat(20);
        let made = || engine(&module, NonZeroU64::MIN).unwrap();
        assert_eq!(made(), made());
        let start = format!("export const SIZE = {};\nexport const PACKED = \"eNp", module.len());
        assert!(made().starts_with(&start), "{}", made());
    }
}
