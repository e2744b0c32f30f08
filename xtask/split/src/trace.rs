//! A copy of a module whose functions note that they were entered.

use anyhow::Result;
use wasm_encoder::{CodeSection, ConstExpr, ExportKind, GlobalType, Instruction, ValType};

use crate::code::{Place, add};
use crate::read::Module;
use crate::split::Part;

/// A traced module exports globals under this and a number: bit `b` of number `n` says that function `32 * n
/// + b` was entered. Functions have the numbers that they have in the module, where imported ones come first.
pub const ENTERED: &str = "entered:";

impl Module<'_> {
    /// Returns a copy in which each function notes that it was entered; see [`ENTERED`].
    ///
    /// # Errors
    /// If the code has instructions that this crate does not know.
    pub fn traced(&self) -> Result<Vec<u8>> {
        let mut globals = self.own_globals()?;
        let mut exports = self.own_exports(|index| index)?;
        let count = self.function_count();
        let first = globals.len();
        let places: Vec<Option<Place>> = (0..count).map(|index| Some(Place::Direct(index))).collect();
        let mut code = CodeSection::new();
        for (function, body) in (self.imported()..).zip(&self.bodies) {
            let (global, bit) = (first + function / 32, 1_u32 << (function % 32));
            let note = [
                Instruction::GlobalGet(global),
                Instruction::I32Const(bit.cast_signed()),
                Instruction::I32Or,
                Instruction::GlobalSet(global),
            ];
            add(body, &note, &places, &mut code)?;
        }
        for number in 0..count.div_ceil(32) {
            let flags = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
            globals.global(flags, &ConstExpr::i32_const(0));
            exports.export(&format!("{ENTERED}{number}"), ExportKind::Global, first + number);
        }
        let part = Part {
            imports: self.own_imports()?,
            functions: self.functions.iter().skip(self.imports.len()).copied().collect(),
            tables: self.own_tables(None)?,
            globals,
            exports,
            places: self.places.clone(),
            code,
            has_memory: true,
        };
        part.write(self)
    }
}
