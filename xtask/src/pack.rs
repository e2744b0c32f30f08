//! `cargo xtask build`: builds the npm package in pkg/, by the steps that wasm-pack.toml describes.
//!
//! compile (cargo) → bindgen → wasm-opt, locals and order → vendor (esbuild) → join (esbuild) → pkg/ → sizes.
//! Each step remembers its inputs and is skipped if they have not changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use wasm_bindgen_cli_support::Bindgen;

use crate::args::Args;
use crate::locals;
use crate::rework;
use crate::run::{command, feed, read, root, run as run_command};
use crate::setup;

const TARGET: &str = "wasm32-unknown-unknown";
const MANIFEST: &str = "wasm-pack.toml";

/// The file names that wasm-bindgen uses.
const BOUND_JS: &str = "turnwheel.js";
const BOUND_WASM: &str = "turnwheel_bg.wasm";
/// Our own script, with the names that the module uses.
const GLUE: &str = "glue.js";
/// The output of wasm-opt, and the file in the package.
const OPTIMISED: &str = "optimised.wasm";
const ORDERED: &str = "ordered.wasm";

/// Runs `cargo xtask build [--dev | --named]`.
pub fn run(args: &[String]) -> Result<ExitCode> {
    let args = Args::parse(args, &["--dev", "--named"], &[])?;
    args.no_positional()?;
    let kind = match (args.has("--dev"), args.has("--named")) {
        (true, _) => Kind::Dev,
        (_, true) => Kind::Named,
        _ => Kind::Release,
    };
    setup::for_build()?;
    let package = build(kind)?;
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
    /// The folder of the package, pkg/ in the repository.
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
    let manifest = Manifest::read()?;
    let own_std = kind != Kind::Dev && setup::std_source()?;
    let compiled = compile(&manifest, kind, own_std)?;
    let cache = StepCache::next_to(&compiled)?;

    // The tools are inputs too: package-lock.json determines esbuild and binaryen.
    let lock = fs::read(root().join("package-lock.json")).context("package-lock.json is missing")?;
    let mut files = gather(&manifest)?;
    let glue = files.take_glue(&manifest.package.glue, kind)?;
    let bound =
        cache.make("bindgen", (fs::read(&compiled)?, &glue, include_str!("rework.rs")), |folder| {
            bind(&compiled, &glue, folder)
        })?;
    files.add(&manifest.package.glue, fs::read(bound.join(GLUE))?)?;
    let mut wasm = bound.join(BOUND_WASM);
    if kind != Kind::Dev {
        let mut flags = manifest.wasm_opt.flags.clone();
        if kind == Kind::Named {
            flags.retain(|flag| flag != "--strip-debug");
            flags.push("-g".to_owned());
        }
        let inputs = (fs::read(&wasm)?, &flags, &lock);
        wasm = cache.make("wasm-opt", inputs, |folder| optimise(&wasm, &flags, &folder.join(OPTIMISED)))?;
        wasm.push(OPTIMISED);
        let sources = (include_str!("locals.rs"), include_str!("rework.rs"));
        wasm = cache
            .make("order", (fs::read(&wasm)?, sources), |folder| reorder(&wasm, &folder.join(ORDERED)))?;
        wasm.push(ORDERED);
    }

    files.add(&manifest.package.wasm, fs::read(wasm)?)?;
    for (name, vendored) in &manifest.vendor {
        let made = cache.make(name, (&lock, vendored, vendored.sources()?), |folder| {
            vendor(vendored, &folder.join("out.js"))
        })?;
        files.add(name, fs::read(made.join("out.js"))?)?;
    }
    let parts = files.take_scripts();
    let entries = files.entries(&manifest.package.inner)?;
    let joined = cache.make("join", (&lock, &parts, &entries), |folder| join(&parts, &entries, folder))?;
    files.add_folder(&joined.join("out"), "")?;
    files.check()?;
    let folder = root().join(&manifest.package.out);
    files.lay_out(&folder)?;
    Ok(Built { folder, manifest, files, cache, own_std })
}

/// The contents of wasm-pack.toml.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Manifest {
    package: Package,
    cargo: Cargo,
    std: Std,
    wasm_opt: WasmOpt,
    vendor: BTreeMap<String, Vendor>,
    budget: Budget,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Package {
    name: String,
    source: String,
    out: String,
    wasm: String,
    glue: String,
    inner: Vec<String>,
    copy: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Cargo {
    profile: String,
    dev_profile: String,
    flags: Vec<String>,
}

/// How the standard library is compiled together with the crate.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Std {
    flags: Vec<String>,
    rustflags: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WasmOpt {
    flags: Vec<String>,
}

#[derive(Deserialize, Hash)]
#[serde(deny_unknown_fields)]
struct Vendor {
    module: String,
    exports: Vec<String>,
    /// Files of the module that are replaced by our own.
    #[serde(default)]
    replace: BTreeMap<String, String>,
    /// Our script that lists the edits in other files.
    edits: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Budget {
    entry: String,
    total: usize,
}

impl Manifest {
    fn read() -> Result<Self> {
        let text =
            fs::read_to_string(root().join(MANIFEST)).with_context(|| format!("cannot read {MANIFEST}"))?;
        let manifest: Self = toml::from_str(&text).with_context(|| format!("in {MANIFEST}"))?;
        // Unknown files in this folder are deleted, so it must be one of ours.
        let out = &manifest.package.out;
        if out.is_empty() || out.contains(['/', '\\', '.']) {
            bail!(
                "in {MANIFEST}: `out` is `{out}`; it has to be the plain name of a folder in the repository"
            );
        }
        Ok(manifest)
    }
}

/// Compiles the crate to wasm and returns the path.
///
/// Uses `cargo rustc --crate-type cdylib`: with the crate types of Cargo.toml (cdylib and rlib) cargo
/// silently skips link-time optimisation.
fn compile(manifest: &Manifest, kind: Kind, own_std: bool) -> Result<PathBuf> {
    let profile = if kind == Kind::Dev { &manifest.cargo.dev_profile } else { &manifest.cargo.profile };
    let mut cargo = command("cargo");
    cargo.args(["rustc", "--package", &manifest.package.name, "--lib", "--crate-type", "cdylib"]);
    cargo.args(["--target", TARGET, "--profile", profile, "--message-format", "json-render-diagnostics"]);
    let mut flags = without_machine_paths()?;
    if own_std {
        // The meaning of these flags depends on the version of rustc, which rust-toolchain.toml pins.
        cargo.env("RUSTC_BOOTSTRAP", "1").args(&manifest.std.flags);
        flags.extend_from_slice(&manifest.std.rustflags);
    }
    let flags = format!("target.{TARGET}.rustflags={}", serde_json::to_string(&flags)?);
    cargo.args(["--config", &flags]).args(&manifest.cargo.flags);
    let messages = read(&mut cargo)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == manifest.package.name.as_str())
        .filter_map(|message| message["filenames"].as_array().cloned())
        .flatten()
        .find_map(|file| file.as_str().filter(|file| file.ends_with(".wasm")).map(PathBuf::from))
        .context("cargo said nothing about a .wasm file")
}

/// Returns flags that remove this machine's folders from panic messages: they are private, they differ
/// from machine to machine, and they add bytes to the package.
fn without_machine_paths() -> Result<Vec<String>> {
    // If the sources of the standard library are installed, panic messages name them by this path.
    let sysroot = read(command("rustc").args(["--print", "sysroot"]))?;
    let mut prefixes = vec![root(), Path::new(sysroot.trim()).join("lib/rustlib/src/rust")];
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    if let Some(registries) = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()) {
        prefixes.extend(registries.filter_map(|entry| Some(entry.ok()?.path())));
    }
    prefixes.sort(); // The same flags in every run, or cargo recompiles everything.
    Ok(prefixes.iter().map(|folder| format!("--remap-path-prefix={}/=", folder.display())).collect())
}

/// Runs wasm-bindgen on the compiled crate. Its script is only used for comparison:
/// the package has its own.
fn bind(compiled: &Path, glue: &str, folder: &Path) -> Result<()> {
    let mut bindgen = Bindgen::new();
    bindgen.input_path(compiled).out_name("turnwheel").web(true)?.typescript(false);
    bindgen.remove_producers_section(true);
    bindgen.generate(folder).context("wasm-bindgen failed")?;
    let (bound, script) = (folder.join(BOUND_WASM), folder.join(BOUND_JS));
    let wasm = rework::without_unused_closures(&fs::read(&bound)?)?;
    let (wasm, glue) = rework::with_short_names(&wasm, &fs::read_to_string(&script)?, glue)
        .with_context(|| format!("wasm-bindgen wrote {}", script.display()))?;
    fs::write(&bound, wasm).with_context(|| format!("cannot write {}", bound.display()))?;
    fs::write(folder.join(GLUE), glue)?;
    // The facade is one plain folder of ES modules, and nothing else reaches a
    // Content-Security-Policy or a bundler.
    if folder.join("snippets").exists() || folder.join("package.json").exists() {
        bail!(
            "the crate has an inline JS snippet or asks for an npm package; the facade is the place for JavaScript"
        );
    }
    Ok(())
}

fn optimise(wasm: &Path, flags: &[String], out: &Path) -> Result<()> {
    let tool = root().join("node_modules/binaryen/bin/wasm-opt");
    run_command(command("node").arg(tool).arg(wasm).args(flags).arg("-o").arg(out))
}

/// Numbers the locals and orders the functions so that the module compresses well. Each step finds more after the other.
fn reorder(wasm: &Path, out: &Path) -> Result<()> {
    let mut module = fs::read(wasm)?;
    for rounds in 1..=3 {
        module = rework::grouped_by_similarity(&locals::renumber(&module, rounds)?)?;
    }
    fs::write(out, module).with_context(|| format!("cannot write {}", out.display()))
}

impl Vendor {
    /// Our own files, unchanged.
    fn sources(&self) -> Result<Vec<String>> {
        let read =
            |file| fs::read_to_string(root().join(file)).with_context(|| format!("cannot read {file}"));
        let own = [read(&self.edits), Ok(include_str!("vendor.mjs").to_owned())];
        self.replace.values().map(read).chain(own).collect()
    }
}

/// Bundles an npm module, minified, below a comment with its name and licence.
fn vendor(vendored: &Vendor, out: &Path) -> Result<()> {
    let package = root().join("node_modules").join(&vendored.module).join("package.json");
    let package: Value = serde_json::from_slice(&fs::read(&package)?)?;
    let text = |key: &str| package[key].as_str().with_context(|| format!("{} has no {key}", vendored.module));
    let (version, licence) = (text("version")?, text("license")?);
    let entry = format!("export {{ {} }} from {:?};", vendored.exports.join(", "), vendored.module);
    let banner = format!(
        "/*! {} {version}, shortened; {licence} licence, see LICENSE-THIRD-PARTY */",
        vendored.module
    );
    let mut node = command("node");
    node.current_dir(root()).arg("xtask/src/vendor.mjs").args([&entry, &banner, &vendored.edits]);
    node.args(vendored.replace.iter().map(|(file, ours)| format!("{file}={ours}")));
    let code = read(&mut node)?;
    fs::write(out, code).with_context(|| format!("cannot write {}", out.display()))
}

/// Joins the modules of the facade: what several entries share becomes one file. A host that loads each
/// module separately, as Node and a page without a bundler do, starts in half the time.
fn join(parts: &BTreeMap<String, Vec<u8>>, entries: &[String], folder: &Path) -> Result<()> {
    let (from, out) = (folder.join("parts"), folder.join("out"));
    fs::create_dir_all(&out)?;
    Files(parts.clone()).lay_out(&from)?;
    let outdir = format!("--outdir={}", out.display());
    let mut flags =
        vec!["--bundle", "--splitting", "--format=esm", "--target=es2022", "--legal-comments=inline"];
    // Inlines constants.
    flags.push("--minify-syntax");
    // The wasm file, and what the host or the user supplies, stay imports by name.
    flags.extend([
        "--packages=external",
        "--external:*.wasm",
        "--chunk-names=core-[hash]",
        "--outbase=.",
        &outdir,
    ]);
    flags.extend(entries.iter().map(String::as_str));
    esbuild(&from, "", &flags)?;
    let mut joined = Files::default();
    joined.add_folder(&out, "")?;
    for (name, code) in joined.0 {
        // An import without names is for side effects, which these files do not have;
        // bundlers would warn about it.
        let code = String::from_utf8(code)?;
        let is_bare =
            |line: &&str| line.starts_with("import \"./core-") || line.starts_with("import \"../core-");
        let kept: String = code.split_inclusive('\n').filter(|line| !is_bare(line)).collect();
        fs::write(out.join(name), kept)?;
    }
    Ok(())
}

/// Runs esbuild on code that may import what is importable from a folder.
///
/// Runs the program itself, not the script in its package: the script adds a page of
/// stack trace to every error.
fn esbuild(folder: &Path, code: &str, flags: &[&str]) -> Result<String> {
    let platforms = fs::read_dir(root().join("node_modules/@esbuild")).context("esbuild is not installed")?;
    let mut programs = platforms.filter_map(|entry| Some(entry.ok()?.path().join("bin/esbuild")));
    let program =
        programs.find(|program| program.is_file()).context("npm installed no esbuild for this machine")?;
    let mut esbuild = command(&program.to_string_lossy());
    feed(esbuild.current_dir(folder).arg("--log-level=warning").args(flags), code)
}

/// Returns the files as they are in the sources, with the version filled in.
fn gather(manifest: &Manifest) -> Result<Files> {
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
    *package = with_version(&text, &version()?)?.into_bytes();
    Ok(files)
}

/// Returns the version of the crate from Cargo.toml, the only place where it is written.
fn version() -> Result<String> {
    #[derive(Deserialize)]
    struct CargoToml {
        package: CargoPackage,
    }
    #[derive(Deserialize)]
    struct CargoPackage {
        version: String,
    }
    let text = fs::read_to_string(root().join("Cargo.toml"))?;
    let manifest: CargoToml = toml::from_str(&text).context("in Cargo.toml")?;
    Ok(manifest.package.version)
}

/// Edits the text, because the order of `exports` matters and parsing would lose it.
fn with_version(package: &str, version: &str) -> Result<String> {
    const PLACE: &str = r#""version": "0.0.0""#;
    if package.matches(PLACE).count() != 1 {
        bail!("package.json has to say {PLACE} once; the build puts the version of Cargo.toml there");
    }
    Ok(package.replace(PLACE, &format!(r#""version": "{version}""#)))
}

/// The package before it is written: contents by path.
#[derive(Default)]
struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    fn add(&mut self, name: &str, bytes: Vec<u8>) -> Result<()> {
        if self.0.insert(name.to_owned(), bytes).is_some() {
            bail!("two files want to be {name} in the package");
        }
        Ok(())
    }

    /// Removes and returns the script that talks to the module. An unoptimised build has one more
    /// import, for panic messages.
    fn take_glue(&mut self, name: &str, kind: Kind) -> Result<String> {
        const LEAVE: &str = "\n    ___wbindgen_string_get: leave,";
        const WORDS: &str = "\n    ___wbindgen_debug_string: (at, value) => leave(at, String(value)),";
        let file = self.0.remove(name).with_context(|| format!("there is no {name}"))?;
        let script = String::from_utf8(file)?;
        Ok(if kind == Kind::Dev { script.replace(LEAVE, &format!("{LEAVE}{WORDS}")) } else { script })
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.add_folder(&entry.path(), &format!("{path}/"))?;
            } else {
                self.add(&path, fs::read(entry.path())?)?;
            }
        }
        Ok(())
    }

    /// Removes and returns the scripts.
    fn take_scripts(&mut self) -> BTreeMap<String, Vec<u8>> {
        let all = std::mem::take(&mut self.0);
        let (scripts, others) = all.into_iter().partition(|(name, _)| name.ends_with(".js"));
        self.0 = others;
        scripts
    }

    /// Returns the scripts that package.json names, and the inner ones that tests inspect.
    fn entries(&self, inner: &[String]) -> Result<Vec<String>> {
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
    fn check(&self) -> Result<()> {
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
    fn lay_out(&self, folder: &Path) -> Result<()> {
        remove_others(folder, "", &self.0)?;
        for (name, bytes) in &self.0 {
            let file = folder.join(name);
            if fs::read(&file).is_ok_and(|present| present == *bytes) {
                continue;
            }
            if let Some(parent) = file.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
        }
        Ok(())
    }
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

/// The folder for the outputs of the steps: one subfolder each, next to the compiled crate, so
/// separate for each profile.
struct StepCache(PathBuf);

impl StepCache {
    fn next_to(compiled: &Path) -> Result<Self> {
        let folder = compiled.with_file_name("xtask");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// Returns the folder of a step. `make` fills it, unless the same code already filled
    /// it from the same inputs.
    fn make(&self, name: &str, inputs: impl Hash, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let mut hasher = DefaultHasher::new();
        (include_str!("pack.rs"), inputs).hash(&mut hasher);
        let mark = format!("{:016x}", hasher.finish());
        let (folder, stamp) = (self.0.join(name), self.0.join(format!("{name}.made-from")));
        if fs::read_to_string(&stamp).is_ok_and(|made| made == mark) && folder.is_dir() {
            return Ok(folder);
        }
        let start = Instant::now();
        let _ = fs::remove_file(&stamp);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        make(&folder)?;
        fs::write(&stamp, mark)?;
        eprintln!("{name:>12} {:.1} s", start.elapsed().as_secs_f32());
        Ok(folder)
    }
}

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
struct Size(usize, usize, usize);

impl Built {
    /// Measures the files in the package and what an app ships of them.
    pub fn sizes(&self) -> Result<Sizes> {
        let Budget { entry, total } = &self.manifest.budget;
        let names: Vec<&String> = self.files.0.keys().collect();
        let inputs = (include_str!("sizes.mjs"), entry, &self.files.0);
        let made = self.cache.make("sizes", inputs, |made| {
            let flags = ["--bundle", "--format=esm", "--minify", "--legal-comments=none"];
            let app = made.join("app.js");
            fs::write(&app, esbuild(&self.folder, &format!("export * from \"./{entry}\";"), &flags)?)?;
            let mut node = command("node");
            node.arg(root().join("xtask/src/sizes.mjs")).arg(&app);
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
    fn total(&self) -> usize {
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

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-pack-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn files(named: &[(&str, &str)]) -> Files {
        Files(named.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
    }

    #[test]
    fn the_manifest_of_the_repository_is_understood() {
        let manifest = Manifest::read().unwrap();
        assert_eq!(manifest.package.name, "turnwheel");
        assert!(manifest.budget.total > 0);
    }

    #[test]
    fn the_version_goes_into_its_place_and_nowhere_else() {
        let package = r#"{ "version": "0.0.0", "exports": { "b": "1", "a": "2" } }"#;
        let made = with_version(package, "1.2.3").unwrap();
        assert_eq!(made, r#"{ "version": "1.2.3", "exports": { "b": "1", "a": "2" } }"#);
        assert!(with_version(r#"{ "version": "0.1.0" }"#, "1.2.3").is_err());
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
    fn the_package_folder_holds_these_files_and_no_others() {
        let folder = folder("lay-out");
        files(&[("a.js", "old"), ("old/b.js", ""), ("entry/c.js", "")]).lay_out(&folder).unwrap();
        files(&[("a.js", "new"), ("entry/d.js", "d")]).lay_out(&folder).unwrap();
        let mut found = Files::default();
        found.add_folder(&folder, "").unwrap();
        assert_eq!(found.0, files(&[("a.js", "new"), ("entry/d.js", "d")]).0);
    }

    #[test]
    fn a_step_runs_again_only_when_its_inputs_change() {
        let cache = StepCache(folder("steps"));
        let mut runs = 0;
        for input in ["a", "a", "b", "b"] {
            let count = |_: &Path| {
                runs += 1;
                Ok(())
            };
            cache.make("step", input, count).unwrap();
        }
        assert_eq!(runs, 2);
    }

    #[test]
    fn a_step_that_failed_runs_again() {
        let cache = StepCache(folder("failing"));
        assert!(cache.make("step", "a", |_| bail!("no")).is_err());
        let mut ran = false;
        let note = |_: &Path| {
            ran = true;
            Ok(())
        };
        cache.make("step", "a", note).unwrap();
        assert!(ran);
    }

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
