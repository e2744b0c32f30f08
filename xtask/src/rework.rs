//! Changes to the wasm file that no other tool makes. It empties functions that are never called,
//! shortens the names shared with the glue to letters (after checking that the glue fits), and orders the
//! functions so that they compress well.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::hash::{DefaultHasher, Hasher};

use anyhow::{Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, ExportSection, Function, FunctionSection, ImportSection, Module};
use wasmparser::{
    BinaryReader, CodeSectionReader, Export, ExternalKind, FunctionBody, FunctionSectionReader,
    ImportSectionReader, KnownCustom, Name, Operator, Parser, Payload, TypeRef,
};

/// The name of the script in wasm-bindgen's output.
const MODULE: &str = "./turnwheel_bg.js";

/// Part of the name of the functions through which JavaScript calls a Rust closure,
/// in wasm-bindgen's output.
const CLOSURE: &str = "::convert::closures::_::invoke::<";

/// How many of the most-called functions come first. Up to 115 of them would get a one-byte index, but
/// they are then separated from the functions they resemble: beyond 50 the package grows again.
const HOT_FUNCTIONS: usize = 40;

/// Returns the module without the functions that would call closures which js-sys could create
/// and this crate does not.
///
/// wasm-bindgen exports the functions that JavaScript calls; the others are only in the table, where no
/// tool can tell whether their index is called. The module must contain the function names.
pub fn without_unused_closures(wasm: &[u8]) -> Result<Vec<u8>> {
    let parts = Parts::read(wasm)?;
    let is_unused = |&at: &u32| !parts.exported.contains(&at);
    let named = parts.names.iter().filter(|(_, name)| name.contains(CLOSURE)).map(|(at, _)| *at);
    let emptied: BTreeSet<u32> = named.filter(is_unused).collect();
    parts.write(wasm, (0..parts.bodies.len()).collect(), emptied)
}

/// Returns the module with similar functions next to each other. This only affects compression: what a
/// function repeats of its predecessor costs little. The most-called functions come first, because a
/// small index takes one byte.
pub fn grouped_by_similarity(wasm: &[u8]) -> Result<Vec<u8>> {
    let parts = Parts::read(wasm)?;
    let calls = parts.calls()?;
    let mut functions: Vec<usize> = (0..calls.len()).collect();
    functions.sort_by_key(|&at| Reverse(calls[at]));
    let (hot, others) = functions.split_at(calls.len().min(HOT_FUNCTIONS));
    let mut order = order_of(&parts.bodies, hot);
    order.extend(order_of(&parts.bodies, others));
    parts.write(wasm, order, BTreeSet::new())
}

/// Returns the module and `glue`, our script in place of wasm-bindgen's, with letters for the names that
/// they share. Only the memory keeps its name. The script's name is derived from the module's bytes:
/// letters would also match another version, and call something else there.
///
/// # Errors
/// If `glue` does not do what `bound`, wasm-bindgen's script, does.
pub fn with_short_names(wasm: &[u8], bound: &str, glue: &str) -> Result<(Vec<u8>, String)> {
    let mut hasher = DefaultHasher::new();
    hasher.write(wasm);
    let mut names = Renamer { script: format!("{:08x}", hasher.finish() >> 32), ..Renamer::default() };
    for part in Parser::new(0).parse_all(wasm) {
        match part? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    names.add_import(import?.name, bound);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    names.add_export(export?.name, bound);
                }
            }
            _ => {}
        }
    }
    check_calls(bound, glue)?;
    let glue = names.applied(glue)?;
    let mut module = Module::new();
    names
        .parse_core_module(&mut module, Parser::new(0), wasm)
        .map_err(|error| anyhow!("the module cannot be written anew: {error}"))?;
    Ok((module.finish(), glue))
}

/// Returns a name as our glue writes it: `__wbg_wake_690572cc8982fcae` is `_wake` there, and the entry
/// point of closures is just `_closure`. A function that creates a JavaScript value is named after the
/// value, because its own name contains a changing number.
fn plain_name(name: &str, bound: &str) -> String {
    without_hash(name, bound).unwrap_or_else(|| name.to_owned())
}

fn without_hash(name: &str, bound: &str) -> Option<String> {
    if name.starts_with("wasm_bindgen_") && name.contains("__closures_") {
        return Some("_closure".to_owned());
    }
    if name.starts_with("__wbindgen_generic_") {
        let (_, cast) = bound.split_once(&format!("{name}: "))?.1.split_once("// Cast intrinsic for `")?;
        let kinds = [("Closure(", "_cast_closure"), ("Ref(String) ", "_cast_text")];
        return kinds.iter().find(|(kind, _)| cast.starts_with(kind)).map(|(_, short)| (*short).to_owned());
    }
    let (rest, hash) = name.strip_prefix("__wbg_")?.rsplit_once('_')?;
    (hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then(|| format!("_{rest}"))
}

/// Checks that our glue calls every export with as many values as wasm-bindgen's does. Exports that only
/// take and return numbers may be passed on as they are.
fn check_calls(bound: &str, glue: &str) -> Result<()> {
    for function in bound.split("\nexport function ").skip(1) {
        let Some((function, _)) = function.split_once("\n}") else { continue };
        let name = function.split('(').next().unwrap_or_default();
        let Some(wanted) = values_of(function, name) else { continue };
        let crosses = ["passString", "passArray", "ExternrefTable", "FromWasm0"]
            .iter()
            .any(|way| function.contains(way));
        match values_of(glue, name) {
            None if crosses || !glue.contains(&format!(": wasm.{name},")) => {
                bail!("glue.js has no `{name}` that does what wasm-bindgen's does:\n{function}")
            }
            Some(given) if given != wanted => {
                bail!("glue.js calls `{name}` with {given} values, wasm-bindgen with {wanted}")
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns the number of values that an export is called with.
fn values_of(script: &str, name: &str) -> Option<usize> {
    let (_, call) = script.split_once(&format!("wasm.{name}("))?;
    let (mut depth, mut values) = (0, 1);
    for c in call.chars() {
        match c {
            ')' if depth == 0 => return Some(if call.starts_with(')') { 0 } else { values }),
            ',' if depth == 0 => values += 1,
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The names that become letters: in the module, and in our glue.
#[derive(Default)]
struct Renamer {
    /// The module's name for the script.
    script: String,
    short: BTreeMap<String, String>,
    imports: BTreeMap<String, String>,
    exports: BTreeMap<String, String>,
}

impl Renamer {
    fn add_import(&mut self, name: &str, bound: &str) {
        let short_name = self.next();
        self.imports.insert(plain_name(name, bound), short_name.clone());
        self.short.insert(name.to_owned(), short_name);
    }

    fn add_export(&mut self, name: &str, bound: &str) {
        let short_name = if name == "memory" { name.to_owned() } else { self.next() };
        self.exports.insert(plain_name(name, bound), short_name.clone());
        self.short.insert(name.to_owned(), short_name);
    }

    /// Returns the next free name: a single letter while there are any, then longer ones.
    fn next(&self) -> String {
        let alphabet: Vec<char> = ('a'..='z').chain('A'..='Z').collect();
        let at = self.short.len();
        "_".repeat(at / alphabet.len()) + &alphabet[at % alphabet.len()].to_string()
    }

    fn name<'n>(&'n self, name: &'n str) -> &'n str {
        self.short.get(name).map_or(name, String::as_str)
    }

    /// Returns the glue with letters. It calls `wasm.NAME`, and provides members
    /// `NAME: …` or `NAME(…) {`.
    fn applied(&self, glue: &str) -> Result<String> {
        let mut calls =
            glue.replace(MODULE, &self.script).split("wasm.").map(str::to_owned).collect::<Vec<_>>();
        for call in calls.iter_mut().skip(1) {
            let end = call.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(call.len());
            let Some(short_name) = self.exports.get(&call[..end]) else {
                bail!("glue.js calls `{}`, which the module does not export", &call[..end]);
            };
            call.replace_range(..end, short_name);
        }
        let mut glue = calls.join("wasm.");
        for (name, short_name) in &self.imports {
            let found = [": ", "("].into_iter().find(|next| glue.contains(&format!("\n    {name}{next}")));
            let Some(next) = found else {
                bail!("the module imports `{name}`, and glue.js has no such function")
            };
            glue = glue.replacen(&format!("\n    {name}{next}"), &format!("\n    {short_name}{next}"), 1);
        }
        Ok(glue)
    }
}

impl Reencode for Renamer {
    type Error = Infallible;

    fn parse_import_section(
        &mut self,
        imports: &mut ImportSection,
        section: ImportSectionReader<'_>,
    ) -> Result<(), Error> {
        for import in section.into_imports() {
            let import = import?;
            let kind = self.entity_type(import.ty)?;
            imports.import(&self.script, self.name(import.name), kind);
        }
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error> {
        let kind = self.export_kind(export.kind)?;
        exports.export(self.name(export.name), kind, export.index);
        Ok(())
    }
}

/// The parts of a module that matter here.
#[derive(Default)]
struct Parts<'a> {
    /// How many functions are imported; they have the first indices.
    imported: u32,
    exported: BTreeSet<u32>,
    names: Vec<(u32, &'a str)>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Parts<'a> {
    fn read(wasm: &'a [u8]) -> Result<Self> {
        let mut parts = Parts::default();
        for part in Parser::new(0).parse_all(wasm) {
            match part? {
                Payload::ImportSection(imports) => {
                    for import in imports.into_imports() {
                        parts.imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export?;
                        parts.exported.extend((export.kind == ExternalKind::Func).then_some(export.index));
                    }
                }
                Payload::CodeSectionEntry(body) => parts.bodies.push(body.as_bytes()),
                Payload::CustomSection(custom) => {
                    let KnownCustom::Name(names) = custom.as_known() else { continue };
                    for named in names {
                        let Name::Function(functions) = named? else { continue };
                        for function in functions {
                            let function = function?;
                            parts.names.push((function.index, function.name));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(parts)
    }

    /// Counts from how many places each function is called.
    fn calls(&self) -> Result<Vec<usize>> {
        let mut calls = vec![0; self.bodies.len()];
        for body in &self.bodies {
            for operator in FunctionBody::new(BinaryReader::new(body, 0)).get_operators_reader()? {
                let Operator::Call { function_index } = operator? else { continue };
                let own = function_index.checked_sub(self.imported);
                if let Some(count) = own.and_then(|at| calls.get_mut(at as usize)) {
                    *count += 1;
                }
            }
        }
        Ok(calls)
    }

    /// Writes the module with its functions (by their old position) in this order, some of them emptied.
    fn write(&self, wasm: &[u8], order: Vec<usize>, emptied: BTreeSet<u32>) -> Result<Vec<u8>> {
        let mut places = vec![0; order.len()];
        for (place, &was) in (self.imported..).zip(&order) {
            places[was] = place;
        }
        let mut module = Module::new();
        Mover { imported: self.imported, order, places, emptied }
            .parse_core_module(&mut module, Parser::new(0), wasm)
            .map_err(|error| anyhow!("the module cannot be written anew: {error}"))?;
        Ok(module.finish())
    }
}

/// Orders the functions: the longest first, and after each the one that shares the largest part of its
/// four-byte pieces with it.
fn order_of(bodies: &[&[u8]], functions: &[usize]) -> Vec<usize> {
    let pieces: Vec<BTreeSet<&[u8]>> = bodies.iter().map(|body| body.windows(4).collect()).collect();
    let mut owners: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (at, pieces) in pieces.iter().enumerate() {
        pieces.iter().for_each(|piece| owners.entry(piece).or_default().push(at));
    }
    let mut left: BTreeSet<usize> = functions.iter().copied().collect();
    let mut order = Vec::with_capacity(functions.len());
    let mut next = left.iter().copied().max_by_key(|&at| bodies[at].len());
    while let Some(now) = next {
        left.remove(&now);
        order.push(now);
        let mut shared = vec![0_usize; bodies.len()];
        pieces[now].iter().flat_map(|piece| &owners[piece]).for_each(|&at| shared[at] += 1);
        // The pieces of a function of two instructions occur everywhere, which says little.
        let share = |at: usize| shared[at] as f64 / (pieces[at].len() + 5) as f64;
        next = left.iter().copied().max_by(|&a, &b| share(a).total_cmp(&share(b)));
    }
    order
}

/// Writes the module again with changed function indices.
struct Mover {
    imported: u32,
    /// The functions by their old position, in their new order.
    order: Vec<usize>,
    /// The new index of each function.
    places: Vec<u32>,
    /// The functions that only trap, by their old index.
    emptied: BTreeSet<u32>,
}

impl Reencode for Mover {
    type Error = Infallible;

    fn function_index(&mut self, function: u32) -> Result<u32, Error> {
        let own = function.checked_sub(self.imported);
        Ok(own.map_or(function, |own| self.places[own as usize]))
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        let types: Vec<u32> = section.into_iter().collect::<Result<_, _>>()?;
        for &was in &self.order {
            functions.function(types[was]);
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: CodeSectionReader<'_>,
    ) -> Result<(), Error> {
        let bodies: Vec<FunctionBody<'_>> = section.into_iter().collect::<Result<_, _>>()?;
        for was in self.order.clone() {
            if self.emptied.contains(&(self.imported + was as u32)) {
                let mut trap = Function::new([]);
                trap.instructions().unreachable().end();
                code.function(&trap);
            } else {
                self.parse_function_body(code, bodies[was].clone())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_letters_in_the_module_and_in_the_glue() {
        let closure = "wasm_bindgen_c357bade0fce1642___convert__closures_____invoke___true_";
        let memory = wasm_encoder::MemoryType {
            minimum: 1,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        };
        let mut imports = ImportSection::new();
        imports.import(MODULE, "__wbg_wake_690572cc8982fcae", memory);
        imports.import(MODULE, "__wbindgen_generic_0000000000000002", memory);
        let mut exports = ExportSection::new();
        for name in ["memory", closure, "run_poll"] {
            exports.export(name, wasm_encoder::ExportKind::Memory, 0);
        }
        let mut module = Module::new();
        module.section(&imports).section(&exports);
        let wasm = module.finish();
        let bound = "__wbindgen_generic_0000000000000002: function(a) {\n// Cast intrinsic for `Ref(String) -> Externref`.";
        let glue = "{\n    _wake: f,\n    _cast_text(a) {} } ./turnwheel_bg.js wasm.memory wasm._closure() run_poll: wasm.run_poll,";
        let (short, script) = with_short_names(&wasm, bound, glue).unwrap();
        let called = Parser::new(0).parse_all(&short).find_map(|part| match part.unwrap() {
            Payload::ImportSection(section) => {
                Some(section.into_imports().next()?.unwrap().module.to_owned())
            }
            _ => None,
        });
        let script = script.replace(&called.unwrap(), "NAME");
        assert_eq!(script, "{\n    a: f,\n    b(a) {} } NAME wasm.memory wasm.d() run_poll: wasm.e,");
        let names = Parser::new(0).parse_all(&short).flat_map(|part| match part.unwrap() {
            Payload::ImportSection(section) => {
                section.into_imports().map(|import| import.unwrap().name.to_owned()).collect()
            }
            Payload::ExportSection(section) => {
                section.into_iter().map(|export| export.unwrap().name.to_owned()).collect()
            }
            _ => Vec::new(),
        });
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "memory", "d", "e"]);
        for stale in [glue.replace("_wake", "_woke"), glue.replace("wasm.run_poll", "wasm.run_pull")] {
            assert!(with_short_names(&wasm, bound, &stale).is_err(), "{stale}");
        }
        assert_eq!(without_hash("__wbg_reset_state", ""), None);
    }

    #[test]
    fn glue_that_calls_otherwise_than_wasm_bindgen_is_refused() {
        let bound = "\nexport function say(a, b) {\n  passString(b);\n  wasm.say(a, b0, b1);\n}\nexport function count(n) {\n  wasm.count(n);\n}\n";
        assert!(check_calls(bound, "wasm.say(a, put(b, c), length) count: wasm.count,").is_ok());
        for stale in [
            "",
            "say: wasm.say, count: wasm.count,",
            "wasm.say(put(a), length) count: wasm.count,",
            "wasm.say(a, put(b), length)",
        ] {
            assert!(check_calls(bound, stale).is_err(), "{stale}");
        }
    }

    #[test]
    fn every_function_comes_once_and_like_follows_like() {
        let bodies: [&[u8]; 5] = [b"another thing", b"abcdefgh", b"abcdefghijklmnopqrs", b"another t", b""];
        assert_eq!(order_of(&bodies, &[0, 1, 2, 3, 4]), [2, 1, 4, 3, 0]);
    }
}
