//! Puts the functions of a wasm file into an order in which like follows like. It has no other meaning than that what a
//! function repeats of the one before costs little after compression: 2.5 KB of the package.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use anyhow::{Result, anyhow};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, FunctionSection, Module};
use wasmparser::{CodeSectionReader, FunctionBody, FunctionSectionReader, Parser, Payload, TypeRef};

/// The same module, its functions in another order.
pub fn like_after_like(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut imported = 0;
    let mut bodies = Vec::new();
    for part in Parser::new(0).parse_all(wasm) {
        match part? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::CodeSectionEntry(body) => bodies.push(body.as_bytes()),
            _ => {}
        }
    }
    let order = order_of(&bodies);
    let mut places = vec![0; order.len()];
    for (place, &was) in (imported..).zip(&order) {
        places[was] = place;
    }
    let mut module = Module::new();
    Mover { imported, order, places }
        .parse_core_module(&mut module, Parser::new(0), wasm)
        .map_err(|error| anyhow!("the functions cannot be put in order: {error}"))?;
    Ok(module.finish())
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
            self.parse_function_body(code, bodies[was].clone())?;
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
