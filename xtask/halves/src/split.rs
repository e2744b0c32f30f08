//! The two halves of a module, and how either is written.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, ImportSection, Instruction, MemorySection, TableSection,
    TableType, TypeSection,
};
use wasmparser::{CompositeInnerType, ExternalKind, Operator};

use crate::code::{Moved, Place, Same, call, wrong};
use crate::read::Module;

/// The name of the module from which `rest` imports what `first` exports for it.
pub const FIRST: &str = "0";

/// The two modules.
pub struct Halves {
    /// Has the memory, the table, the globals, the data, and the functions that were kept.
    pub first: Vec<u8>,
    /// Has all other functions. Instantiated with the exports of `first` as the module [`FIRST`].
    pub rest: Vec<u8>,
}

/// A module in the making.
pub(crate) struct Half {
    pub(crate) imports: ImportSection,
    /// The types of its own functions.
    pub(crate) functions: Vec<u32>,
    pub(crate) tables: Vec<TableType>,
    pub(crate) globals: GlobalSection,
    pub(crate) exports: ExportSection,
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) code: CodeSection,
    /// Whether the memory and its data are here.
    pub(crate) data: bool,
}

impl Module<'_> {
    /// Splits the module: `first` keeps these functions.
    ///
    /// # Errors
    /// If the code has what this crate does not know.
    pub fn split(&self, kept: &BTreeSet<u32>) -> Result<Halves> {
        let plan = Plan::new(self, kept)?;
        Ok(Halves { first: self.first(&plan)?, rest: self.rest(&plan)? })
    }

    fn imported(&self) -> u32 {
        u32::try_from(self.imports.len()).unwrap_or(u32::MAX)
    }

    fn body(&self, function: u32) -> Result<&wasmparser::FunctionBody<'_>> {
        let at = function.checked_sub(self.imported()).context("an imported function has no body")?;
        self.bodies.get(usize::try_from(at)?).context("there is no such function")
    }

    fn function_table(&self) -> Result<&wasmparser::Table<'_>> {
        self.tables.get(usize::try_from(self.functions_table)?).context("there is no table of functions")
    }

    fn type_of(&self, function: u32) -> Result<u32> {
        self.functions.get(usize::try_from(function)?).copied().context("there is no such function")
    }

    /// The types and the bodies of these functions, which find all others at these places.
    fn code(&self, chosen: &[u32], places: &[Option<Place>]) -> Result<(Vec<u32>, CodeSection)> {
        let (mut types, mut code) = (Vec::new(), CodeSection::new());
        let mut moved = Moved { places, prologue: Vec::new() };
        for function in chosen {
            types.push(self.type_of(*function)?);
            moved.add(self.body(*function)?, &mut code)?;
        }
        Ok((types, code))
    }

    fn first(&self, plan: &Plan) -> Result<Vec<u8>> {
        let (mut functions, mut code) = self.code(&plan.kept, &plan.in_first)?;
        // An export whose function is in the rest is a function here that passes its arguments on.
        let mut doors = BTreeMap::new();
        for export in self.exports.iter().filter(|export| export.kind == ExternalKind::Func) {
            if let Some(Some(Place::Indirect { place, type_index, .. })) =
                plan.in_first.get(usize::try_from(export.index)?)
            {
                doors.insert(export.index, self.imported() + u32::try_from(functions.len())?);
                functions.push(*type_index);
                code.function(&self.door(*place, *type_index)?);
            }
        }
        let index = |function: u32| match plan.in_first.get(usize::try_from(function).unwrap_or(usize::MAX)) {
            Some(Some(Place::Direct(index))) => *index,
            _ => doors.get(&function).copied().unwrap_or(u32::MAX),
        };
        let mut exports = self.own_exports(index)?;
        exports.export("m", ExportKind::Memory, 0);
        for table in 0..u32::try_from(self.tables.len())? {
            exports.export(&format!("t{table}"), ExportKind::Table, table);
        }
        for global in 0..u32::try_from(self.globals.len())? {
            exports.export(&format!("g{global}"), ExportKind::Global, global);
        }
        for (number, function) in plan.needed.iter().enumerate() {
            exports.export(&short(number), ExportKind::Func, index(*function));
        }
        let tables = self.own_tables(Some(plan.table_size))?;
        let stays = |(place, function): &(u32, u32)| match index(*function) {
            _ if plan.deferred(*function) => None,
            index => Some((*place, index)),
        };
        let places = plan.places.iter().filter_map(stays).collect();
        write(
            self,
            Half {
                imports: self.own_imports()?,
                functions,
                tables,
                globals: self.own_globals()?,
                exports,
                places,
                code,
                data: true,
            },
        )
    }

    fn rest(&self, plan: &Plan) -> Result<Vec<u8>> {
        let mut imports = self.own_imports()?;
        for (number, function) in plan.needed.iter().enumerate() {
            imports.import(FIRST, &short(number), EntityType::Function(self.type_of(*function)?));
        }
        imports.import(FIRST, "m", Same.memory_type(self.memory).map_err(wrong)?);
        for (number, table) in self.own_tables(Some(plan.table_size))?.into_iter().enumerate() {
            imports.import(FIRST, &format!("t{number}"), table);
        }
        for (number, global) in self.globals.iter().enumerate() {
            imports.import(FIRST, &format!("g{number}"), Same.global_type(global.ty).map_err(wrong)?);
        }
        let (functions, code) = self.code(&plan.moved, &plan.in_rest)?;
        let goes = |(place, function): &(u32, u32)| match plan.in_rest.get(usize::try_from(*function).ok()?) {
            Some(Some(Place::Direct(index))) if plan.deferred(*function) => Some((*place, *index)),
            _ => None,
        };
        let places = plan.places.iter().filter_map(goes).collect();
        let (globals, exports) = (GlobalSection::new(), ExportSection::new());
        write(
            self,
            Half { imports, functions, tables: Vec::new(), globals, exports, places, code, data: false },
        )
    }

    /// A function that passes its arguments to what stands at a place of the table.
    fn door(&self, place: u32, type_index: u32) -> Result<Function> {
        let group = self.types.get(usize::try_from(type_index)?).context("there is no such type")?;
        let parameters = group.types().next().map(|each| match &each.composite_type.inner {
            CompositeInnerType::Func(function) => function.params().len(),
            _ => 0,
        });
        let mut function = Function::new([]);
        for parameter in 0..u32::try_from(parameters.unwrap_or(0))? {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        call(Place::Indirect { place, type_index, table_index: self.functions_table }, &mut function);
        function.instruction(&Instruction::End);
        Ok(function)
    }

    // ---- what stays as it is

    pub(crate) fn own_imports(&self) -> Result<ImportSection> {
        let mut section = ImportSection::new();
        for import in &self.imports {
            section.import(import.module, import.name, Same.entity_type(import.ty).map_err(wrong)?);
        }
        Ok(section)
    }

    /// The tables; that of the functions of another size, if need be.
    pub(crate) fn own_tables(&self, size: Option<u64>) -> Result<Vec<TableType>> {
        let mut tables = Vec::new();
        for (index, table) in (0..).zip(&self.tables) {
            let mut table = Same.table_type(table.ty).map_err(wrong)?;
            if let Some(size) = size.filter(|_| index == self.functions_table) {
                table.minimum = size;
                table.maximum = table.maximum.map(|_| size);
            }
            tables.push(table);
        }
        Ok(tables)
    }

    pub(crate) fn own_globals(&self) -> Result<GlobalSection> {
        let mut section = GlobalSection::new();
        for global in &self.globals {
            Same.parse_global(&mut section, global.clone()).map_err(wrong)?;
        }
        Ok(section)
    }

    pub(crate) fn own_exports(&self, index: impl Fn(u32) -> u32) -> Result<ExportSection> {
        let mut section = ExportSection::new();
        for export in &self.exports {
            let kind = Same.export_kind(export.kind).map_err(wrong)?;
            let at = if export.kind == ExternalKind::Func { index(export.index) } else { export.index };
            section.export(export.name, kind, at);
        }
        Ok(section)
    }
}

/// Which function stands where.
struct Plan {
    /// The functions of `first`, without imports, and those of the rest.
    kept: Vec<u32>,
    moved: Vec<u32>,
    /// The functions of `first` that the rest calls.
    needed: Vec<u32>,
    /// The table, with places for what `first` calls in the rest.
    places: Vec<(u32, u32)>,
    table_size: u64,
    /// For each function, how it is called in either half.
    in_first: Vec<Option<Place>>,
    in_rest: Vec<Option<Place>>,
    is_moved: Vec<bool>,
}

impl Plan {
    fn new(module: &Module<'_>, kept: &BTreeSet<u32>) -> Result<Self> {
        let (imported, count) = (module.imported(), module.function_count());
        let is_moved: Vec<bool> = (0..count).map(|each| each >= imported && !kept.contains(&each)).collect();
        let (moved, kept): (Vec<u32>, Vec<u32>) =
            (imported..count).partition(|each| is_moved.get(*each as usize).copied().unwrap_or(false));
        let mut needed = BTreeSet::new();
        for function in &moved {
            needed.extend(
                calls(module, *function)?
                    .into_iter()
                    .filter(|each| *each >= imported && !is(&is_moved, *each)),
            );
        }
        // What `first` calls, or exports, of the rest needs a place in the table.
        let mut called = BTreeSet::new();
        for function in &kept {
            called.extend(calls(module, *function)?.into_iter().filter(|each| is(&is_moved, *each)));
        }
        let exported = module.exports.iter().filter(|export| export.kind == ExternalKind::Func);
        called.extend(exported.map(|export| export.index).filter(|each| is(&is_moved, *each)));
        let mut places = module.places.clone();
        let mut place_of: BTreeMap<u32, u32> =
            places.iter().map(|(place, function)| (*function, *place)).collect();
        let mut next = u32::try_from(module.function_table()?.ty.initial)?;
        for function in called {
            place_of.entry(function).or_insert_with(|| {
                places.push((next, function));
                next += 1;
                next - 1
            });
        }
        let mut plan = Plan {
            places,
            table_size: next.into(),
            in_first: Vec::new(),
            in_rest: Vec::new(),
            needed: needed.into_iter().collect(),
            kept,
            moved,
            is_moved,
        };
        plan.in_first = plan.lay_out(module, count, |at| place_of.get(&at).copied())?;
        plan.in_rest = plan.rest_indices(imported, count);
        Ok(plan)
    }

    fn deferred(&self, function: u32) -> bool {
        is(&self.is_moved, function)
    }

    fn lay_out(
        &self,
        module: &Module<'_>,
        count: u32,
        place_of: impl Fn(u32) -> Option<u32>,
    ) -> Result<Vec<Option<Place>>> {
        let imported = module.imported();
        let mut next = imported;
        let mut places = Vec::new();
        for function in 0..count {
            places.push(if function < imported {
                Some(Place::Direct(function))
            } else if self.deferred(function) {
                let type_index = module.type_of(function)?;
                place_of(function).map(|place| Place::Indirect {
                    place,
                    type_index,
                    table_index: module.functions_table,
                })
            } else {
                next += 1;
                Some(Place::Direct(next - 1))
            });
        }
        Ok(places)
    }

    /// Imports come first, then what `first` exports, then the functions of the rest.
    fn rest_indices(&self, imported: u32, count: u32) -> Vec<Option<Place>> {
        let mut places: Vec<Option<Place>> =
            (0..count).map(|each| (each < imported).then_some(Place::Direct(each))).collect();
        for (index, function) in (imported..).zip(self.needed.iter().chain(&self.moved)) {
            if let Some(place) = places.get_mut(*function as usize) {
                *place = Some(Place::Direct(index));
            }
        }
        places
    }
}

fn is(flags: &[bool], at: u32) -> bool {
    flags.get(at as usize).copied().unwrap_or(false)
}

/// The functions that a function calls by name.
fn calls(module: &Module<'_>, function: u32) -> Result<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    for operator in module.body(function)?.get_operators_reader()? {
        if let Operator::Call { function_index } = operator? {
            found.insert(function_index);
        }
    }
    Ok(found)
}

/// The name of the n-th function that the rest needs. All begin alike: no name of wasm-bindgen does.
fn short(number: usize) -> String {
    format!("f{number}")
}

/// Writes a half, with the types and, if it is to be there, the memory of the whole.
pub(crate) fn write(module: &Module<'_>, half: Half) -> Result<Vec<u8>> {
    let mut types = TypeSection::new();
    for group in &module.types {
        Same.parse_recursive_type_group(types.ty(), group.clone()).map_err(wrong)?;
    }
    let mut functions = FunctionSection::new();
    for each in &half.functions {
        functions.function(*each);
    }
    let mut whole = wasm_encoder::Module::new();
    whole.section(&types).section(&half.imports).section(&functions);
    if !half.tables.is_empty() {
        let mut section = TableSection::new();
        for table in half.tables {
            section.table(table);
        }
        whole.section(&section);
    }
    if half.data {
        let mut section = MemorySection::new();
        section.memory(Same.memory_type(module.memory).map_err(wrong)?);
        whole.section(&section).section(&half.globals).section(&half.exports);
    }
    whole.section(&elements(&half.places, module.functions_table)).section(&half.code);
    if half.data {
        let mut section = DataSection::new();
        for data in &module.data {
            Same.parse_data(&mut section, data.clone()).map_err(wrong)?;
        }
        whole.section(&section);
    }
    let bytes = whole.finish();
    wasmparser::Validator::new().validate_all(&bytes).context("a half is not a valid module")?;
    Ok(bytes)
}

/// Neighbours in the table are one segment.
fn elements(places: &[(u32, u32)], table: u32) -> ElementSection {
    let mut places = places.to_vec();
    places.sort_unstable();
    let mut section = ElementSection::new();
    for run in places.chunk_by(|(a, _), (b, _)| a + 1 == *b) {
        let functions: Vec<u32> = run.iter().map(|(_, function)| *function).collect();
        let start = run.first().map_or(0, |(place, _)| *place);
        section.active(
            (table > 0).then_some(table),
            &ConstExpr::i32_const(start.cast_signed()),
            Elements::Functions(functions.into()),
        );
    }
    section
}
