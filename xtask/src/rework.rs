//! What the build does to the wasm file that no tool does: it looks for a mistake of the compiler's, empties functions that
//! nobody calls, and puts the others into an order that compresses well.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use anyhow::{Result, anyhow, bail};
use wasm_encoder::reencode::{Error, Reencode};
use wasm_encoder::{CodeSection, Function, FunctionSection, Module};
use wasmparser::{
    CodeSectionReader, ExternalKind, FuncToValidate, FuncValidatorAllocations, FunctionBody,
    FunctionSectionReader, KnownCustom, Name, Operator, Parser, Payload, TypeRef, ValidPayload, Validator,
    ValidatorResources,
};

/// How wasm-bindgen calls what JavaScript calls a closure of Rust by.
const CLOSURE: &str = "::convert::closures::_::invoke::<";

/// Looks for functions that read what a call gives before the call.
///
/// LLVM keeps the second of two results in a local. Where an operation takes it first and behind it what is made of the
/// first result, as `found.unwrap_or(other)` does (`select(second, other, first & 1)`), LLVM 22 puts the reading of the
/// local before all of that, the call included: it reads what was there before, without a word
/// (<https://github.com/llvm/llvm-project/issues/98323>).
///
/// # Errors
/// Names the functions. Written in another way they come out right.
pub fn check_results(wasm: &[u8]) -> Result<()> {
    let parts = Parts::read(wasm)?;
    let (mut validator, mut at, mut wrong) = (Validator::new(), parts.imported, Vec::new());
    for payload in Parser::new(0).parse_all(wasm) {
        let ValidPayload::Func(function, body) = validator.payload(&payload?)? else { continue };
        if reads_too_early(function, &body)? {
            let name = parts.names.iter().find(|(named, _)| *named == at).map_or("?", |(_, name)| name);
            wrong.push(name);
        }
        at += 1;
    }
    if !wrong.is_empty() {
        bail!("the compiler has these read a result before the call that gives it: {}", wrong.join(" "));
    }
    Ok(())
}

fn reads_too_early(function: FuncToValidate<ValidatorResources>, body: &FunctionBody<'_>) -> Result<bool> {
    let mut validator = function.into_validator(FuncValidatorAllocations::default());
    validator.read_locals(&mut body.get_binary_reader())?;
    // What waits on the stack: the local that it was read from, if it was. And how many results of a call come now.
    let (mut stack, mut results): (Vec<Option<u32>>, u32) = (Vec::new(), 0);
    for read in body.get_operators_reader()?.into_iter_with_offsets() {
        let (operator, offset) = read?;
        let (pops, pushes) = operator.operator_arity(&validator).unwrap_or_default();
        stack.truncate(stack.len().saturating_sub(pops as usize));
        if let Operator::LocalSet { local_index } = operator
            && results > 0
            && stack.contains(&Some(local_index))
        {
            return Ok(true);
        }
        results = match operator {
            Operator::Call { .. } | Operator::CallIndirect { .. } if pushes > 1 => pushes,
            Operator::LocalSet { .. } | Operator::Drop => results.saturating_sub(1),
            _ => 0,
        };
        let read = match operator {
            Operator::LocalGet { local_index } => Some(local_index),
            _ => None,
        };
        stack.extend(std::iter::repeat_n(read, pushes as usize));
        validator.op(offset, &operator)?;
        stack.resize(validator.operand_stack_height() as usize, None);
    }
    Ok(false)
}

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
    use wasm_encoder::{Instruction as I, TypeSection, ValType};

    use super::*;

    /// A module with a function that gives two values, and one that calls it.
    fn module(caller: &[I<'_>]) -> Vec<u8> {
        let (mut module, mut types) = (Module::new(), TypeSection::new());
        types.ty().function([], [ValType::I32, ValType::I32]);
        types.ty().function([], [ValType::I32]);
        let mut functions = FunctionSection::new();
        functions.function(0).function(1);
        let mut code = CodeSection::new();
        for (locals, body) in [(0, &[I::I32Const(1), I::I32Const(2)][..]), (1, caller)] {
            let mut function = Function::new([(locals, ValType::I32)]);
            body.iter().chain([&I::End]).for_each(|instruction| _ = function.instruction(instruction));
            code.function(&function);
        }
        module.section(&types).section(&functions).section(&code);
        module.finish()
    }

    #[test]
    fn a_result_that_is_read_before_its_call_is_found() {
        let (call, set, get, other) = (I::Call(0), I::LocalSet(0), I::LocalGet(0), I::I32Const(3));
        let early =
            [get.clone(), other.clone(), call.clone(), set.clone(), I::I32Const(1), I::I32And, I::Select];
        assert!(check_results(&module(&early)).is_err());
        let right = [call.clone(), set.clone(), get.clone(), I::I32Add];
        check_results(&module(&right)).unwrap();
        // What was read is used up before.
        let before = [get, I::Drop, other, call, set, I::I32Add];
        check_results(&module(&before)).unwrap();
    }

    #[test]
    fn every_function_comes_once_and_like_follows_like() {
        let bodies: [&[u8]; 5] = [b"another thing", b"abcdefgh", b"abcdefghijklmnopqrs", b"another t", b""];
        assert_eq!(order_of(&bodies), [2, 1, 4, 3, 0]);
    }
}
