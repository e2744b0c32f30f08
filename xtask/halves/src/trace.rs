//! A copy of a module whose functions note that they were entered.

use anyhow::Result;
use wasm_encoder::{CodeSection, ConstExpr, ExportKind, GlobalType, Instruction, ValType};

use crate::code::{Moved, Place};
use crate::read::Module;
use crate::split::{Part, write};

/// A traced module exports, under this and the function's index, a global that is 1 once the function was entered.
pub const ENTERED: &str = "entered:";

impl Module<'_> {
    /// Returns a copy in which each function notes that it was entered; see [`ENTERED`].
    ///
    /// # Errors
    /// If the code has instructions that this crate does not know.
    pub fn traced(&self) -> Result<Vec<u8>> {
        let mut globals = self.own_globals()?;
        let mut exports = self.own_exports(|index| index)?;
        let imported = u32::try_from(self.imports.len())?;
        let places: Vec<Option<Place>> =
            (0..self.function_count()).map(|index| Some(Place::Direct(index))).collect();
        let mut code = CodeSection::new();
        for (function, body) in (imported..).zip(&self.bodies) {
            let flag = globals.len();
            globals.global(
                GlobalType { val_type: ValType::I32, mutable: true, shared: false },
                &ConstExpr::i32_const(0),
            );
            exports.export(&format!("{ENTERED}{function}"), ExportKind::Global, flag);
            let prologue = vec![Instruction::I32Const(1), Instruction::GlobalSet(flag)];
            Moved { places: &places, prologue }.add(body, &mut code)?;
        }
        let functions = self.functions.iter().skip(self.imports.len()).copied().collect();
        let tables = self.own_tables(None)?;
        write(
            self,
            Part {
                imports: self.own_imports()?,
                functions,
                tables,
                globals,
                exports,
                places: self.places.clone(),
                code,
                data: true,
            },
        )
    }
}
