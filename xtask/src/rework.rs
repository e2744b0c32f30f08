//! What the build does to the wasm file that no tool does: it empties functions that nobody calls, shortens the names that
//! only the glue uses, and puts the functions into an order that compresses well.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use anyhow::{Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, ExportSection, Function, FunctionSection, ImportSection, Module};
use wasmparser::{
    CodeSectionReader, Export, ExternalKind, FunctionBody, FunctionSectionReader, ImportSectionReader,
    KnownCustom, Name, Parser, Payload, TypeRef,
};

/// How wasm-bindgen calls what JavaScript calls a closure of Rust by.
const CLOSURE: &str = "::convert::closures::_::invoke::<";

/// The same module, without what would call the closures that js-sys could make and this crate does not.
///
/// wasm-bindgen exports what JavaScript calls; the others only stand in the table, where no tool can tell whether their
/// number is called. The names of the functions have to be in the module.
pub fn without_unused_closures(wasm: &[u8]) -> Result<Vec<u8>> {
    let parts = Parts::read(wasm)?;
    let is_unused = |&at: &u32| !parts.exported.contains(&at);
    let named = parts.names.iter().filter(|(_, name)| name.contains(CLOSURE)).map(|(at, _)| *at);
    let emptied: BTreeSet<u32> = named.filter(is_unused).collect();
    parts.write(wasm, (0..parts.bodies.len()).collect(), emptied)
}

/// The same module, its functions in an order in which like follows like. It has no other meaning than that what a
/// function repeats of the one before costs little after compression.
pub fn like_after_like(wasm: &[u8]) -> Result<Vec<u8>> {
    let parts = Parts::read(wasm)?;
    parts.write(wasm, order_of(&parts.bodies), BTreeSet::new())
}

/// The same module and its glue, which call what one has of the other by names without what wasm-bindgen writes into them
/// to tell crates and versions apart.
///
/// # Errors
/// When two names would be one, or the glue does not know a name.
pub fn with_short_names(wasm: &[u8], glue: &str) -> Result<(Vec<u8>, String)> {
    let mut glue = glue.to_owned();
    let mut names = Renamer::default();
    for part in Parser::new(0).parse_all(wasm) {
        match part? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    names.learn(import?.name)?;
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    names.learn(export?.name)?;
                }
            }
            _ => {}
        }
    }
    for (long, short) in &names.0 {
        if !glue.contains(long) {
            bail!("the glue does not know `{long}`: did wasm-bindgen change how it writes names?");
        }
        glue = glue.replace(long, short);
    }
    let mut module = Module::new();
    names
        .parse_core_module(&mut module, Parser::new(0), wasm)
        .map_err(|error| anyhow!("the module cannot be written anew: {error}"))?;
    Ok((module.finish(), glue))
}

/// A name without its hash: `__wbg_wake_690572cc8982fcae` is `_wake`, of a closure's way in only `_closure` is left. Each
/// keeps a mark in front, so that it is no name that stands elsewhere in the glue.
fn short_name(name: &str) -> Option<String> {
    if name.starts_with("wasm_bindgen_") && name.contains("__closures_") {
        return Some("_closure".to_owned());
    }
    let (rest, hash) = name.strip_prefix("__wbg_")?.rsplit_once('_')?;
    (hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then(|| format!("_{rest}"))
}

/// Names that become others.
#[derive(Default)]
struct Renamer(BTreeMap<String, String>);

impl Renamer {
    fn learn(&mut self, name: &str) -> Result<()> {
        let Some(short) = short_name(name) else { return Ok(()) };
        if self.0.values().any(|known| *known == short) {
            bail!("`{name}` cannot be `{short}`: another is called so");
        }
        self.0.insert(name.to_owned(), short);
        Ok(())
    }

    fn name<'n>(&'n self, name: &'n str) -> &'n str {
        self.0.get(name).map_or(name, String::as_str)
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
            imports.import(import.module, self.name(import.name), kind);
        }
        Ok(())
    }

    fn parse_export(&mut self, exports: &mut ExportSection, export: Export<'_>) -> Result<(), Error> {
        let kind = self.export_kind(export.kind)?;
        exports.export(self.name(export.name), kind, export.index);
        Ok(())
    }
}

/// What of a module matters here.
#[derive(Default)]
struct Parts<'a> {
    /// How many functions come from outside; they have the first numbers.
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

    /// Writes the module anew: its functions, by where they were, in this order, some of them empty.
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

/// After each function comes the one of whose pieces (four bytes each) it has the largest share; the longest is first.
fn order_of(bodies: &[&[u8]]) -> Vec<usize> {
    let pieces: Vec<BTreeSet<&[u8]>> = bodies.iter().map(|body| body.windows(4).collect()).collect();
    let mut owners: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
    for (at, pieces) in pieces.iter().enumerate() {
        pieces.iter().for_each(|piece| owners.entry(piece).or_default().push(at));
    }
    let mut left: BTreeSet<usize> = (0..bodies.len()).collect();
    let mut order = Vec::with_capacity(bodies.len());
    let mut next = left.iter().copied().max_by_key(|&at| bodies[at].len());
    while let Some(now) = next {
        left.remove(&now);
        order.push(now);
        let mut shared = vec![0_usize; bodies.len()];
        pieces[now].iter().flat_map(|piece| &owners[piece]).for_each(|&at| shared[at] += 1);
        // Of a function of two instructions everything stands everywhere: that says little.
        let share = |at: usize| shared[at] as f64 / (pieces[at].len() + 5) as f64;
        next = left.iter().copied().max_by(|&a, &b| share(a).total_cmp(&share(b)));
    }
    order
}

/// Writes the module anew.
struct Mover {
    imported: u32,
    /// The functions by where they were, in their new order.
    order: Vec<usize>,
    /// The new number of each function.
    places: Vec<u32>,
    /// Which trap and do nothing else, by their old numbers.
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
    fn names_lose_their_hashes_in_the_module_and_in_the_glue() {
        let closure = "wasm_bindgen_c357bade0fce1642___convert__closures_____invoke___true_";
        let mut exports = ExportSection::new();
        exports.export("__wbg_wake_690572cc8982fcae", wasm_encoder::ExportKind::Memory, 0);
        exports.export(closure, wasm_encoder::ExportKind::Memory, 0);
        exports.export("run_poll", wasm_encoder::ExportKind::Memory, 0);
        let mut module = Module::new();
        module.section(&exports);
        let glue = format!("__wbg_wake_690572cc8982fcae: 1, wake, {closure}() wasm.{closure}() run_poll");
        let (wasm, glue) = with_short_names(&module.finish(), &glue).unwrap();
        assert_eq!(glue, "_wake: 1, wake, _closure() wasm._closure() run_poll");
        let names = Parser::new(0).parse_all(&wasm).filter_map(|part| match part.unwrap() {
            Payload::ExportSection(exports) => {
                Some(exports.into_iter().map(|export| export.unwrap().name.to_owned()))
            }
            _ => None,
        });
        assert_eq!(names.flatten().collect::<Vec<_>>(), ["_wake", "_closure", "run_poll"]);
        assert_eq!(short_name("__wbg_reset_state"), None);
    }

    #[test]
    fn every_function_comes_once_and_like_follows_like() {
        let bodies: [&[u8]; 5] = [b"another thing", b"abcdefgh", b"abcdefghijklmnopqrs", b"another t", b""];
        assert_eq!(order_of(&bodies), [2, 1, 4, 3, 0]);
    }
}
