//! A copy of a module whose code notes that it ran.

use std::collections::BTreeSet;

use anyhow::Result;
use wasm_encoder::{CodeSection, ConstExpr, ExportKind, GlobalType, Instruction, ValType};

use crate::code::{Moved, Place, Types};
use crate::flow::stretches;
use crate::read::Module;
use crate::split::{Part, write};

/// A traced module exports globals under this and a number: bit `b` of number `n` says that stretch `32 * n + b` ran.
pub const ENTERED: &str = "entered:";

impl Module<'_> {
    /// Returns a copy in which each stretch of code notes that it ran; see [`ENTERED`]. A stretch runs from its first
    /// instruction to its last or not at all. They are numbered in the order of the code.
    ///
    /// # Errors
    /// If the code has instructions that this crate does not know.
    pub fn traced(&self) -> Result<Vec<u8>> {
        let mut globals = self.own_globals()?;
        let mut exports = self.own_exports(|index| index)?;
        let places: Vec<Option<Place>> =
            (0..self.function_count()).map(|index| Some(Place::Direct(index))).collect();
        let first = globals.len();
        let mut next = 0;
        let mut marks = || {
            let (global, bit) = (first + next / 32, 1_u32 << (next % 32));
            next += 1;
            vec![
                Instruction::GlobalGet(global),
                Instruction::I32Const(bit.cast_signed()),
                Instruction::I32Or,
                Instruction::GlobalSet(global),
            ]
        };
        let mut code = CodeSection::new();
        for body in &self.bodies {
            Moved { places: &places, types: &mut Types::All, marks: Some(&mut marks) }
                .add(body, &mut code)?;
        }
        for number in 0..next.div_ceil(32) {
            let flags = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
            globals.global(flags, &ConstExpr::i32_const(0));
            exports.export(&format!("{ENTERED}{number}"), ExportKind::Global, first + number);
        }
        let functions = self.functions.iter().skip(self.imports.len()).copied().collect();
        let part = Part {
            types: Types::All,
            more_types: Vec::new(),
            imports: self.own_imports(&mut Types::All)?,
            functions,
            tables: self.own_tables(None)?,
            globals,
            exports,
            places: self.places.clone(),
            code,
            memory: true,
            data: self.own_data()?,
        };
        write(self, part)
    }

    /// The functions that these stretches are the beginnings of.
    ///
    /// # Errors
    /// If the code has instructions that this crate does not know.
    pub fn entered(&self, ran: &BTreeSet<u32>) -> Result<BTreeSet<u32>> {
        let imported = u32::try_from(self.imports.len())?;
        let first = self.first_stretches()?;
        Ok((imported..)
            .zip(first)
            .filter(|(_, first)| ran.contains(first))
            .map(|(function, _)| function)
            .collect())
    }

    /// The number of the first stretch of each function that is not imported.
    pub(crate) fn first_stretches(&self) -> Result<Vec<u32>> {
        let mut next = 0;
        let mut first = Vec::new();
        for body in &self.bodies {
            first.push(next);
            next += stretches(body)?;
        }
        Ok(first)
    }
}
