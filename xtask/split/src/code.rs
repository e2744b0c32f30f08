//! Function bodies that call functions elsewhere.

use anyhow::{Context, Result, anyhow, bail};
use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{CodeSection, Function, Instruction};
use wasmparser::{FunctionBody, Operator};

/// How a function is called.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// Directly, by its index in the part.
    Direct(u32),
    /// Through the table: which one, its place there, and its type.
    Indirect { place: u32, type_index: u32, table_index: u32 },
}

impl Place {
    /// Calls the function with what is on the stack.
    pub(crate) fn call(self, function: &mut Function) {
        match self {
            Place::Direct(index) => function.instruction(&Instruction::Call(index)),
            Place::Indirect { place, type_index, table_index } => function
                .instruction(&Instruction::I32Const(place.cast_signed()))
                .instruction(&Instruction::CallIndirect { type_index, table_index }),
        };
    }
}

/// Adds a body, behind these instructions. `places` says how it calls each function of the module.
pub(crate) fn add(
    body: &FunctionBody<'_>,
    before: &[Instruction<'_>],
    places: &[Option<Place>],
    code: &mut CodeSection,
) -> Result<()> {
    let mut function = Same.new_function_with_parsed_locals(body).map_err(wrong)?;
    for instruction in before {
        function.instruction(instruction);
    }
    for operator in body.get_operators_reader()? {
        match operator? {
            Operator::Call { function_index } => {
                let place = places.get(usize::try_from(function_index)?).copied().flatten();
                place.context("a function is called from a part that does not know it")?.call(&mut function);
            }
            Operator::ReturnCall { .. } | Operator::RefFunc { .. } => {
                bail!("a function is called or taken in a way that rustc does not use");
            }
            operator => {
                function.instruction(&Same.instruction(operator).map_err(wrong)?);
            }
        }
    }
    code.function(&function);
    Ok(())
}

/// Writes what stays as it is.
pub(crate) struct Same;

impl Reencode for Same {
    type Error = anyhow::Error;
}

pub(crate) fn wrong(error: reencode::Error<anyhow::Error>) -> anyhow::Error {
    anyhow!("a part of the module cannot be written again: {error}")
}
