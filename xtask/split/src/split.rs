//! The parts of a module: which function stands where, and how each part is written.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, ImportSection, Instruction, MemorySection, TableSection,
    TableType, TypeSection,
};
use wasmparser::{CompositeInnerType, ExternalKind, Operator};

use crate::code::{Place, Same, add, wrong};
use crate::read::{Module, address_of, imported_type, number};

/// The name of the module from which all other parts import what the first one exports for them.
pub const FIRST: &str = "0";

/// The name under which the first part exports the end of the stack; see [`Module::check_stack`].
pub const STACK: &str = "g0";

/// The part that has the memory, the data, the tables and the globals.
const FIRST_PART: usize = 0;

impl Module<'_> {
    /// Splits the module: one part for each of these sets of functions, and one more for all functions that
    /// are in none of them. A function that is in several sets belongs to the first of these.
    ///
    /// # Errors
    /// If there is no set, or if the code has what this crate does not know.
    pub fn split(&self, sets: &[BTreeSet<u32>]) -> Result<Vec<Vec<u8>>> {
        if sets.is_empty() {
            bail!("a module is split into a first part and others");
        }
        let plan = Plan::new(self, sets)?;
        let others = (1..=sets.len()).map(|part| self.later(&plan, part));
        std::iter::once(self.first(&plan)).chain(others).collect()
    }

    /// Checks what whoever undoes a call builds upon: the first global is the end of the stack, which is
    /// below all data and grows down, and no other global changes.
    ///
    /// # Errors
    /// If it is otherwise.
    pub fn check_stack(&self) -> Result<()> {
        let changing: Vec<bool> = self.globals.iter().map(|global| global.ty.mutable).collect();
        let [true, others @ ..] = changing.as_slice() else {
            bail!("the first global is not the end of the stack")
        };
        if others.contains(&true) {
            bail!("the module has a global that changes beside the end of its stack");
        }
        let end = self.globals.first().map(|stack| number(&stack.init_expr)).transpose()?.unwrap_or_default();
        let addresses = self.data.iter().map(address_of).collect::<Result<Vec<_>>>()?;
        if end == 0 || addresses.iter().any(|address| *address < end) {
            bail!("the stack is not below all data");
        }
        Ok(())
    }

    fn first(&self, plan: &Plan) -> Result<Vec<u8>> {
        let places = plan.seen_from(self, FIRST_PART)?;
        let (mut functions, mut code) = self.code(&plan.functions_of(FIRST_PART), &places)?;
        let mut index_of: BTreeMap<u32, u32> = BTreeMap::new();
        for (function, place) in (0..).zip(&places) {
            match place {
                Some(Place::Direct(index)) => index_of.insert(function, *index),
                Some(place @ Place::Indirect { type_index, .. }) if self.is_exported(function) => {
                    code.function(&self.door(*place, *type_index)?);
                    functions.push(*type_index);
                    index_of.insert(function, self.imported() + u32::try_from(functions.len() - 1)?)
                }
                _ => None,
            };
        }
        let index = |function: u32| index_of.get(&function).copied().unwrap_or(u32::MAX);
        let mut exports = self.own_exports(index)?;
        exports.export("m", ExportKind::Memory, 0);
        for table in 0..u32::try_from(self.tables.len())? {
            exports.export(&format!("t{table}"), ExportKind::Table, table);
        }
        for global in 0..u32::try_from(self.globals.len())? {
            exports.export(&format!("g{global}"), ExportKind::Global, global);
        }
        for (name, (function, _)) in plan.taken.iter().enumerate() {
            exports.export(&short(name), ExportKind::Func, index(*function));
        }
        let part = Part {
            imports: self.own_imports()?,
            functions,
            tables: self.own_tables(Some(plan.table_size))?,
            globals: self.own_globals()?,
            exports,
            places: plan.places_of(FIRST_PART, &places),
            code,
            has_memory: true,
        };
        part.write(self)
    }

    fn later(&self, plan: &Plan, part: usize) -> Result<Vec<u8>> {
        let mut imports = self.own_imports()?;
        for (name, function) in plan.taken_by(part) {
            imports.import(FIRST, &short(name), EntityType::Function(self.type_of(function)?));
        }
        imports.import(FIRST, "m", Same.memory_type(self.memory).map_err(wrong)?);
        for (number, table) in self.own_tables(Some(plan.table_size))?.into_iter().enumerate() {
            imports.import(FIRST, &format!("t{number}"), table);
        }
        for (number, global) in self.globals.iter().enumerate() {
            imports.import(FIRST, &format!("g{number}"), Same.global_type(global.ty).map_err(wrong)?);
        }
        let places = plan.seen_from(self, part)?;
        let (functions, code) = self.code(&plan.functions_of(part), &places)?;
        let part = Part {
            imports,
            functions,
            tables: Vec::new(),
            globals: GlobalSection::new(),
            exports: ExportSection::new(),
            places: plan.places_of(part, &places),
            code,
            has_memory: false,
        };
        part.write(self)
    }

    /// The types and the bodies of these functions.
    fn code(&self, chosen: &[u32], places: &[Option<Place>]) -> Result<(Vec<u32>, CodeSection)> {
        let mut code = CodeSection::new();
        for function in chosen {
            add(self.body(*function)?, &[], places, &mut code)?;
        }
        Ok((chosen.iter().map(|function| self.type_of(*function)).collect::<Result<_>>()?, code))
    }

    /// A function that passes its arguments to what stands at a place of the table.
    fn door(&self, place: Place, type_index: u32) -> Result<Function> {
        let group = self.types.get(usize::try_from(type_index)?).context("there is no such type")?;
        let parameters = group.types().next().map_or(0, |each| match &each.composite_type.inner {
            CompositeInnerType::Func(function) => function.params().len(),
            _ => 0,
        });
        let mut function = Function::new([]);
        for parameter in 0..u32::try_from(parameters)? {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        place.call(&mut function);
        function.instruction(&Instruction::End);
        Ok(function)
    }

    fn is_exported(&self, function: u32) -> bool {
        self.exports.iter().any(|export| export.kind == ExternalKind::Func && export.index == function)
    }

    // ---- what stays as it is

    pub(crate) fn own_imports(&self) -> Result<ImportSection> {
        let mut section = ImportSection::new();
        for import in &self.imports {
            section.import(import.module, import.name, EntityType::Function(imported_type(import)?));
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

/// Which function stands where, and who calls it from elsewhere.
struct Plan {
    imported: u32,
    /// The functions that are not imported, in the order in which parts have them: those of a type stand
    /// together, and so does what a compressor finds alike.
    order: Vec<u32>,
    /// The part of each function. Imported ones are everywhere.
    part: Vec<usize>,
    /// The functions of the first part that others call, in the order of their names there, and which parts
    /// call them.
    taken: Vec<(u32, BTreeSet<usize>)>,
    /// The table: which function stands at which place, with new places for what one part calls in another.
    place_of: BTreeMap<u32, u32>,
    places: Vec<(u32, u32)>,
    table_size: u64,
}

impl Plan {
    fn new(module: &Module<'_>, sets: &[BTreeSet<u32>]) -> Result<Self> {
        let (imported, count) = (module.imported(), module.function_count());
        let part_of =
            |function: u32| sets.iter().position(|set| set.contains(&function)).unwrap_or(sets.len());
        let mut plan = Plan {
            imported,
            order: (imported..count).collect(),
            part: (0..count).map(part_of).collect(),
            taken: Vec::new(),
            place_of: module.places.iter().map(|(place, function)| (*function, *place)).collect(),
            places: module.places.clone(),
            table_size: module.function_table()?.ty.initial,
        };
        plan.order.sort_by_key(|function| module.type_of(*function).ok());
        let exported = (imported..count).filter(|function| module.is_exported(*function));
        let mut placed: BTreeSet<u32> =
            exported.filter(|function| plan.part_of(*function) != FIRST_PART).collect();
        let mut taken: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for caller in imported..count {
            let part = plan.part_of(caller);
            for called in calls(module, caller)?.into_iter().filter(|called| *called >= imported) {
                match plan.part_of(called) {
                    same if same == part => {}
                    FIRST_PART => {
                        taken.entry(called).or_default().insert(part);
                    }
                    _ => {
                        placed.insert(called);
                    }
                }
            }
        }
        // What the same parts take has neighbouring names, those of a type in a row: repetitions to a
        // compressor.
        plan.taken = taken.into_iter().collect();
        plan.taken.sort_by_key(|(function, parts)| (parts.clone(), module.type_of(*function).ok()));
        placed.retain(|function| !plan.place_of.contains_key(function));
        // Those of a part stand together: that is one segment.
        let in_order = (0..=sets.len()).flat_map(|part| plan.functions_of(part));
        let placed: Vec<u32> = in_order.filter(|function| placed.contains(function)).collect();
        for (place, function) in (u32::try_from(plan.table_size)?..).zip(placed) {
            plan.place_of.insert(function, place);
            plan.places.push((place, function));
            plan.table_size = u64::from(place) + 1;
        }
        Ok(plan)
    }

    fn part_of(&self, function: u32) -> usize {
        self.part.get(function as usize).copied().unwrap_or(usize::MAX)
    }

    /// The functions of a part, without imports.
    fn functions_of(&self, part: usize) -> Vec<u32> {
        self.order.iter().copied().filter(|function| self.part_of(*function) == part).collect()
    }

    /// The functions of the first part that another part calls, and the numbers of their names.
    fn taken_by(&self, part: usize) -> impl Iterator<Item = (usize, u32)> {
        let all = self.taken.iter().map(|(function, _)| *function).enumerate();
        all.zip(&self.taken).filter(move |(_, (_, parts))| parts.contains(&part)).map(|(found, _)| found)
    }

    /// How a part calls each function, if it can. Imports come first, then what it takes from the first part,
    /// then its own.
    fn seen_from(&self, module: &Module<'_>, part: usize) -> Result<Vec<Option<Place>>> {
        let direct = (0..self.imported)
            .chain(self.taken_by(part).map(|(_, function)| function))
            .chain(self.functions_of(part));
        let index_of: BTreeMap<u32, u32> = direct.zip(0..).collect();
        let table_index = module.functions_table;
        let seen = |function: u32| {
            let type_index = module.type_of(function)?;
            let indirect = |place: &u32| Place::Indirect { place: *place, type_index, table_index };
            let direct = index_of.get(&function).copied().map(Place::Direct);
            Ok(direct.or_else(|| self.place_of.get(&function).map(indirect)))
        };
        (0..module.function_count()).map(seen).collect()
    }

    /// The places of the table that a part fills: those of its own functions. Imported ones are the first
    /// part's business.
    fn places_of(&self, part: usize, seen: &[Option<Place>]) -> Vec<(u32, u32)> {
        let of = |function: u32| if function < self.imported { FIRST_PART } else { self.part_of(function) };
        let own = |(place, function): &(u32, u32)| match seen.get(*function as usize) {
            Some(Some(Place::Direct(index))) if of(*function) == part => Some((*place, *index)),
            _ => None,
        };
        self.places.iter().filter_map(own).collect()
    }
}

/// The name of the n-th function that other parts take. All begin alike: no name of wasm-bindgen does.
fn short(number: usize) -> String {
    format!("f{number}")
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

/// A module in the making.
pub(crate) struct Part {
    pub(crate) imports: ImportSection,
    /// The types of its own functions.
    pub(crate) functions: Vec<u32>,
    pub(crate) tables: Vec<TableType>,
    pub(crate) globals: GlobalSection,
    pub(crate) exports: ExportSection,
    /// What it puts into the table: places and functions.
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) code: CodeSection,
    /// Whether the memory is here, and what stands in it.
    pub(crate) has_memory: bool,
}

impl Part {
    /// Writes it, with the types and, if it is to be there, the memory of the whole.
    pub(crate) fn write(self, module: &Module<'_>) -> Result<Vec<u8>> {
        let mut types = TypeSection::new();
        for group in &module.types {
            Same.parse_recursive_type_group(types.ty(), group.clone()).map_err(wrong)?;
        }
        let mut functions = FunctionSection::new();
        for type_index in &self.functions {
            functions.function(*type_index);
        }
        let (mut tables, mut memories, mut data) =
            (TableSection::new(), MemorySection::new(), DataSection::new());
        for table in self.tables {
            tables.table(table);
        }
        if self.has_memory {
            memories.memory(Same.memory_type(module.memory).map_err(wrong)?);
            for each in &module.data {
                Same.parse_data(&mut data, each.clone()).map_err(wrong)?;
            }
        }
        let mut whole = wasm_encoder::Module::new();
        whole.section(&types).section(&self.imports).section(&functions).section(&tables).section(&memories);
        whole.section(&self.globals).section(&self.exports);
        whole.section(&elements(&self.places, module.functions_table)).section(&self.code).section(&data);
        let bytes = whole.finish();
        wasmparser::Validator::new().validate_all(&bytes).context("a part is not a valid module")?;
        Ok(bytes)
    }
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
