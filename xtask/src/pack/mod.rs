//! `cargo xtask build`: builds the npm package in pkg/, by the steps that wasm-pack.toml describes.
//!
//! compile (cargo) → bindgen → wasm-opt → vendor (esbuild) → join (esbuild) → guide → pkg/ → sizes. Beside it, in
//! target/create-turnwheel, the package that starts a project (create.rs).
//! Each step remembers its inputs and is skipped if they have not changed.

mod bind;
mod cache;
mod compile;
mod contents;
mod create;
mod files;
mod guide;
mod inline;
mod licences;
mod links;
mod manifest;
mod parts;
mod sbom;
mod scripts;
mod sizes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::run::{root, target};
use crate::setup;

use bind::{bind, optimise};
use cache::StepCache;
use compile::compile;
use contents::Contents;
pub use create::folder as create_folder;
use files::{Files, gather};
pub use manifest::CargoToml;
use manifest::{Manifest, Module};
pub use sbom::hex;
use scripts::{join, vendor};

/// Runs `cargo xtask build [--dev | --named] [--out FOLDER]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--dev", "--named"], &["--out"])?;
    args.no_positional()?;
    let kind = match (args.has("--dev"), args.has("--named")) {
        (true, _) => Kind::Dev,
        (_, true) => Kind::Named,
        _ => Kind::Release,
    };
    let out = args.value("--out").map(Path::new);
    out.map_or(Ok(()), files::check_target)?;
    setup::for_build()?;
    let package = build_into(out, kind)?;
    match kind {
        Kind::Dev => println!("{} is there, not optimised, so not measured", package.folder.display()),
        Kind::Named => println!("{} is there, its functions named", package.folder.display()),
        Kind::Release => {
            let sizes = package.sizes()?;
            print!("{}", sizes.table());
            sizes.check()?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The kinds of package: the published one, one that builds quickly, and, for profilers, the published
/// one with function names.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Release,
    Dev,
    Named,
}

/// The result of [`build`].
pub struct Built {
    /// The folder of the package: pkg/ in the repository, or the one asked for.
    pub folder: PathBuf,
    manifest: Manifest,
    files: Files,
    cache: StepCache,
    own_std: bool,
}

/// Builds pkg/. Reports progress on stderr; measures no sizes.
///
/// # Errors
/// If a step fails, or the package is inconsistent (`exports` names a file that no step produced).
pub fn build(kind: Kind) -> Result<Built> {
    build_into(None, kind)
}

/// Builds the core module of `component`, with the flags of the package's module. Returns its file, `turnwheel.core.wasm`.
///
/// # Errors
/// If a step fails.
pub fn build_core() -> Result<PathBuf> {
    const ENGINE: &str = "turnwheel-component";
    let manifest = Manifest::read()?;
    let own_std = setup::std_source()?;
    let compiled = compile(&manifest, (ENGINE, &manifest.cargo.profile), Kind::Release, own_std)?.wasm;
    let cache = StepCache::next_to(&compiled)?;
    let lock = fs::read(root().join("package-lock.json")).context("package-lock.json is missing")?;
    let step = (&*["wasm-opt-", ENGINE].concat(), "-Oz");
    let made = optimised_as(step, &manifest, Kind::Release, (&cache, &compiled), &lock)?;
    let folder = target().join("xtask/component");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let file = folder.join("turnwheel.core.wasm");
    fs::copy(&made, &file).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn build_into(out: Option<&Path>, kind: Kind) -> Result<Built> {
    let manifest = Manifest::read()?;
    let own_std = kind != Kind::Dev && setup::std_source()?;
    let compiled = compile(&manifest, (&manifest.package.engine, &manifest.cargo.profile), kind, own_std)?;
    let contents = Contents::find(&manifest, &compiled.crates)?;
    if own_std {
        licences::keep(&contents)?;
    }
    let compiled = compiled.wasm;
    let cache = StepCache::next_to(&compiled)?;

    // The tools are inputs too: package-lock.json determines esbuild and binaryen.
    let lock = fs::read(root().join("package-lock.json")).context("package-lock.json is missing")?;
    let cargo = CargoToml::read()?;
    let mut files = gather(&manifest, &cargo)?;
    let bound = cache.make("bindgen", fs::read(&compiled)?, |folder| bind(&compiled, folder))?;
    files.add(&manifest.package.glue, fs::read(bound.join(bind::GLUE))?)?;
    files.take(&keep_types(&manifest, &manifest.package.glue, &bound.join(bind::TYPES))?);
    files.take(inline::ENGINE_TYPES);
    let wasm = optimised(&manifest, kind, &cache, &bound.join(bind::WASM), &lock)?;
    for module in manifest.modules.values() {
        add_module(&manifest, module, (kind, own_std), &lock, &mut files)?;
    }
    let module = fs::read(&wasm)?;
    let subject = sbom::Subject {
        version: &cargo.version,
        repository: cargo.repository.as_deref(),
        wasm: (&manifest.package.wasm, &module),
    };
    files.add(sbom::FILE, sbom::bill(&subject, &contents)?)?;
    files.add(&manifest.package.wasm, module)?;
    for (name, vendored) in &manifest.vendor {
        let made = cache.make(name, (&lock, vendored, vendored.sources()?), |folder| {
            vendor(vendored, &folder.join("out.js"))
        })?;
        files.add(name, fs::read(made.join("out.js"))?)?;
    }
    let scripts = files.take_scripts();
    let named = [&manifest.package.inner[..], &manifest.package.deferred].concat();
    let mut entries = files.entries(&named)?;
    entries.retain(|name| name != inline::ENTRY);
    let joined =
        cache.make("join", (&lock, &scripts, &entries), |folder| join(&scripts, &entries, folder))?;
    let facade = joined.join("out");
    files.add_folder(&facade, "")?;
    let names = &manifest.package.parts;
    let inlined = inline::make(&cache, &lock, scripts, &wasm, kind)?;
    let scripts = (include_str!("trace.mjs"), include_str!("parts.rs"), parts::sources()?);
    let inputs = (fs::read(&wasm)?, scripts, names.all(), &files.0);
    let split = cache.make("parts", inputs, |folder| parts::split(&wasm, &facade, names, folder))?;
    for name in names.all() {
        files.add(name, fs::read(split.join(name))?)?;
    }
    files.add_folder(&inlined, "")?;
    files.add(inline::TYPES, files.0["index.d.ts"].clone())?;
    let folder = lay_out(&mut files, &manifest, &cargo, out)?;
    Ok(Built { folder, manifest, files, cache, own_std })
}

/// Writes the package, with its guide, and `create-turnwheel` beside it. Returns its folder.
fn lay_out(files: &mut Files, manifest: &Manifest, cargo: &CargoToml, out: Option<&Path>) -> Result<PathBuf> {
    guide::add(files, cargo)?;
    files.check()?;
    if out.is_none() {
        create::make(cargo)?;
    }
    let folder = out.map_or_else(|| root().join(&manifest.package.out), Path::to_path_buf);
    files.lay_out(&folder)?;
    Ok(folder)
}

/// Makes a further module: the same steps, and no parts.
fn add_module(
    manifest: &Manifest,
    module: &Module,
    (kind, own_std): (Kind, bool),
    lock: &[u8],
    files: &mut Files,
) -> Result<()> {
    let compiled = compile(manifest, (&module.engine, &module.profile), kind, own_std)?.wasm;
    let cache = StepCache::next_to(&compiled)?;
    let step = |name: &str| [name, &module.engine].join("-");
    let bound = cache.make(&step("bindgen"), fs::read(&compiled)?, |folder| bind(&compiled, folder))?;
    files.add(&module.glue, fs::read(bound.join(bind::GLUE))?)?;
    files.take(&keep_types(manifest, &module.glue, &bound.join(bind::TYPES))?);
    let wasm = optimised_as(
        (&step("wasm-opt"), &module.optimise),
        manifest,
        kind,
        (&cache, &bound.join(bind::WASM)),
        lock,
    )?;
    files.add(&module.wasm, fs::read(wasm)?)
}

/// Returns the wasm file of the package, which a quick build leaves as it is.
fn optimised(
    manifest: &Manifest,
    kind: Kind,
    cache: &StepCache,
    wasm: &Path,
    lock: &[u8],
) -> Result<PathBuf> {
    optimised_as(("wasm-opt", "-Oz"), manifest, kind, (cache, wasm), lock)
}

fn optimised_as(
    (step, level): (&str, &str),
    manifest: &Manifest,
    kind: Kind,
    (cache, wasm): (&StepCache, &Path),
    lock: &[u8],
) -> Result<PathBuf> {
    if kind == Kind::Dev {
        return Ok(wasm.to_owned());
    }
    let mut flags = manifest.wasm_opt.flags.clone();
    flags.iter_mut().filter(|flag| *flag == "-Oz").for_each(|flag| *flag = level.to_owned());
    if kind == Kind::Named {
        flags.retain(|flag| flag != "--strip-debug");
        flags.push("-g".to_owned());
    }
    let inputs = (fs::read(wasm)?, &flags, lock);
    let made = cache.make(step, inputs, |folder| optimise(wasm, &flags, &folder.join(bind::OPTIMISED)))?;
    Ok(made.join(bind::OPTIMISED))
}

/// Compares the types of the engine's calls with those in the sources, which tsc reads. Returns the name of their file.
///
/// # Errors
/// If they differ. The file is right afterwards.
fn keep_types(manifest: &Manifest, glue: &str, made: &Path) -> Result<String> {
    let name = glue.replace(".js", ".d.ts");
    let kept = root().join(&manifest.package.source).join(&name);
    let types = fs::read(made)?;
    if fs::read(&kept).is_ok_and(|kept| kept == types) {
        return Ok(name);
    }
    fs::write(&kept, types)?;
    bail!("{} did not say what the engine exports, and does now; build again", kept.display())
}
