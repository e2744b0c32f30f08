//! Function bodies with other indices.

use anyhow::{Result, anyhow};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{CodeSection, Function, Instruction};
use wasmparser::{FunctionBody, Operator};

use crate::flow::parts_ways;

/// What becomes of the index of a function.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// It is called, under another index.
    Direct(u32),
    /// It is called through the table: which one, its place there, and its type.
    Indirect { place: u32, type_index: u32, table_index: u32 },
}

/// The types that a part has: all, or those that it uses, in the order in which it came upon them.
pub(crate) enum Types {
    All,
    Used(Vec<u32>),
}

impl Types {
    /// The index of a type in the part.
    pub(crate) fn place(&mut self, index: u32) -> Result<u32> {
        let Types::Used(used) = self else { return Ok(index) };
        let known = used.iter().position(|known| *known == index);
        Ok(u32::try_from(known.unwrap_or_else(|| {
            used.push(index);
            used.len() - 1
        }))?)
    }
}

/// Writes code in which functions stand elsewhere.
pub(crate) struct Moved<'m> {
    pub(crate) places: &'m [Option<Place>],
    pub(crate) types: &'m mut Types,
    /// What stands before the first instruction of each stretch.
    pub(crate) marks: Option<&'m mut dyn FnMut() -> Vec<Instruction<'static>>>,
}

impl Moved<'_> {
    fn place(&self, function: u32) -> Result<Place> {
        let place = self.places.get(usize::try_from(function)?).copied().flatten();
        place.ok_or_else(|| anyhow!("function {function} is called from a part that does not know it"))
    }

    pub(crate) fn add(&mut self, body: &FunctionBody<'_>, code: &mut CodeSection) -> Result<()> {
        let mut function = self.new_function_with_parsed_locals(body).map_err(wrong)?;
        let mut operators = body.get_operators_reader()?;
        let mut begins = true;
        while !operators.eof() {
            let operator = operators.read()?;
            if let (true, Some(marks)) = (begins, &mut self.marks) {
                marks().iter().for_each(|mark| {
                    function.instruction(mark);
                });
            }
            begins = parts_ways(&operator);
            match operator {
                Operator::Call { function_index } => {
                    call(self.place(function_index)?, self.types, &mut function)?;
                }
                Operator::ReturnCall { .. } | Operator::RefFunc { .. } => {
                    return Err(anyhow!("a function is called or taken in a way that rustc does not use"));
                }
                operator => {
                    function.instruction(&self.instruction(operator).map_err(wrong)?);
                }
            }
        }
        code.function(&function);
        Ok(())
    }
}

impl Reencode for Moved<'_> {
    type Error = anyhow::Error;

    fn type_index(&mut self, index: u32) -> Result<u32, reencode::Error<anyhow::Error>> {
        self.types.place(index).map_err(reencode::Error::UserError)
    }
}

/// Calls a function with what is on the stack.
pub(crate) fn call(place: Place, types: &mut Types, function: &mut Function) -> Result<()> {
    match place {
        Place::Direct(index) => function.instruction(&Instruction::Call(index)),
        Place::Indirect { place, type_index, table_index } => function
            .instruction(&Instruction::I32Const(place.cast_signed()))
            .instruction(&Instruction::CallIndirect { type_index: types.place(type_index)?, table_index }),
    };
    Ok(())
}

/// The parts that stay as they are.
pub(crate) struct Same;

impl Reencode for Same {
    type Error = anyhow::Error;
}

pub(crate) fn wrong(error: reencode::Error<anyhow::Error>) -> anyhow::Error {
    anyhow!("a part of the module cannot be written again: {error}")
}
