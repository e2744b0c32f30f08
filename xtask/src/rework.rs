//! What the build does to the wasm file that no tool does: it empties functions that nobody calls, and puts the others
//! into an order that compresses well.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use anyhow::{Result, anyhow};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, Function, FunctionSection, Module};
use wasmparser::{
    CodeSectionReader, ExternalKind, FunctionBody, FunctionSectionReader, KnownCustom, Name, Parser, Payload,
    TypeRef,
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
    fn every_function_comes_once_and_like_follows_like() {
        let bodies: [&[u8]; 5] = [b"another thing", b"abcdefgh", b"abcdefghijklmnopqrs", b"another t", b""];
        assert_eq!(order_of(&bodies), [2, 1, 4, 3, 0]);
    }
}
