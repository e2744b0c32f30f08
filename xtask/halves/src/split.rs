//! The parts of a module, and how each is written.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, ImportSection, Instruction, MemorySection, TableSection,
    TableType, TypeSection,
};
use wasmparser::{CompositeInnerType, ExternalKind, Operator};

use crate::code::{Moved, Place, Same, Types, call, wrong};
use crate::constants::{Constants, Home, Homes, address_of, number};
use crate::outline::Signature;
use crate::read::{Module, imported_type};

/// The name of the module from which all other parts import what the first one exports for them.
pub const FIRST: &str = "0";

/// The name under which the first part exports the end of the stack; see [`Module::check_stack`].
pub const STACK: &str = "g0";

/// A module in the making.
pub(crate) struct Part {
    /// Its types: those of the module, and others.
    pub(crate) types: Types,
    pub(crate) more_types: Vec<Signature>,
    pub(crate) imports: ImportSection,
    /// The types of its own functions.
    pub(crate) functions: Vec<u32>,
    pub(crate) tables: Vec<TableType>,
    pub(crate) globals: GlobalSection,
    pub(crate) exports: ExportSection,
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) code: CodeSection,
    /// Whether the memory is here.
    pub(crate) memory: bool,
    pub(crate) data: DataSection,
}

impl Module<'_> {
    /// Splits the module: one part for each of these sets of functions, the first of which begins, and one more for all
    /// functions that are in none of them. A function that is in several sets belongs to the first of these. A constant goes to
    /// the one that `home` chooses among the parts that use it: to one that is there whenever one of them runs.
    ///
    /// # Errors
    /// If there is no set, or if the code has what this crate does not know.
    pub fn split(
        &self,
        sets: &[BTreeSet<u32>],
        constants: &Constants,
        home: &Home<'_>,
    ) -> Result<Vec<Vec<u8>>> {
        if sets.is_empty() {
            bail!("a module is split into a first part and others");
        }
        let plan = Plan::new(self, sets)?;
        let homes = constants.homes(self, |function| plan.part_of(function), home)?;
        let mut parts = vec![self.first(&plan, &homes)?];
        for part in 1..=sets.len() {
            parts.push(self.part(&plan, part, &homes)?);
        }
        Ok(parts)
    }

    /// Checks what whoever undoes a call builds upon: the first global is the end of the stack, which is below all data and
    /// grows down, and no other global changes.
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
        let below = self.data.iter().map(address_of).collect::<Result<Vec<_>>>()?;
        if end == 0 || below.iter().any(|address| *address < end) {
            bail!("the stack is not below all data");
        }
        Ok(())
    }

    /// The functions that only these exports reach: a set for [`Module::split`], for what is loaded by whoever calls them. A
    /// function in the table may be called by anybody, and so may what it calls.
    ///
    /// # Errors
    /// If there is no such export.
    pub fn only_reached_by(&self, names: &[&str]) -> Result<BTreeSet<u32>> {
        let functions = self.exports.iter().filter(|export| export.kind == ExternalKind::Func);
        let (chosen, others): (Vec<&wasmparser::Export<'_>>, Vec<_>) =
            functions.partition(|export| names.contains(&export.name));
        if let Some(name) = names.iter().find(|name| !chosen.iter().any(|export| export.name == **name)) {
            bail!("the module exports no function `{name}`");
        }
        let others =
            others.iter().map(|export| export.index).chain(self.places.iter().map(|(_, each)| *each));
        let others = self.reached(others.collect())?;
        let reached = self.reached(chosen.iter().map(|export| export.index).collect())?;
        Ok(reached.difference(&others).copied().collect())
    }

    /// These functions and what they call, imported ones left out.
    fn reached(&self, mut ahead: Vec<u32>) -> Result<BTreeSet<u32>> {
        let mut reached = BTreeSet::new();
        while let Some(function) = ahead.pop() {
            if function >= self.imported() && reached.insert(function) {
                ahead.extend(calls(self, function)?);
            }
        }
        Ok(reached)
    }

    pub(crate) fn imported(&self) -> u32 {
        u32::try_from(self.imports.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn body(&self, function: u32) -> Result<&wasmparser::FunctionBody<'_>> {
        let at = function.checked_sub(self.imported()).context("an imported function has no body")?;
        self.bodies.get(usize::try_from(at)?).context("there is no such function")
    }

    fn function_table(&self) -> Result<&wasmparser::Table<'_>> {
        self.tables.get(usize::try_from(self.functions_table)?).context("there is no table of functions")
    }

    pub(crate) fn type_of(&self, function: u32) -> Result<u32> {
        self.functions.get(usize::try_from(function)?).copied().context("there is no such function")
    }

    /// The types and the bodies of these functions, which find all others at these places.
    fn code(
        &self,
        chosen: &[u32],
        places: &[Option<Place>],
        types: &mut Types,
    ) -> Result<(Vec<u32>, CodeSection)> {
        let (mut own, mut code) = (Vec::new(), CodeSection::new());
        for function in chosen {
            own.push(types.place(self.type_of(*function)?)?);
            Moved { places, types, marks: None }.add(self.body(*function)?, &mut code)?;
        }
        Ok((own, code))
    }

    fn first(&self, plan: &Plan, homes: &Homes) -> Result<Vec<u8>> {
        let own = plan.functions_of(FIRST_PART);
        let known = plan.seen_from(self, FIRST_PART)?;
        let mut types = Types::Used(Vec::new());
        let imports = self.own_imports(&mut types)?;
        let (mut functions, mut code) = self.code(&own, &known, &mut types)?;
        // An export whose function is elsewhere is a function here that passes its arguments on.
        let mut doors = BTreeMap::new();
        for export in self.exports.iter().filter(|export| export.kind == ExternalKind::Func) {
            let place = known.get(usize::try_from(export.index)?).copied().flatten();
            if let Some(Place::Indirect { place, type_index, .. }) = place
                && !doors.contains_key(&export.index)
            {
                doors.insert(export.index, self.imported() + u32::try_from(functions.len())?);
                functions.push(types.place(type_index)?);
                code.function(&self.door(place, type_index, &mut types)?);
            }
        }
        let index = |function: u32| match known.get(usize::try_from(function).unwrap_or(usize::MAX)) {
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
        write(
            self,
            Part {
                types,
                more_types: Vec::new(),
                imports,
                functions,
                tables: self.own_tables(Some(plan.table_size))?,
                globals: self.own_globals()?,
                exports,
                places: plan.places_of(FIRST_PART, &known),
                code,
                memory: true,
                data: homes.data_of(self, FIRST_PART)?,
            },
        )
    }

    fn part(&self, plan: &Plan, part: usize, homes: &Homes) -> Result<Vec<u8>> {
        let mut types = Types::Used(Vec::new());
        let mut imports = self.own_imports(&mut types)?;
        let needed: Vec<(usize, u32)> = plan.needed_by(self, part)?;
        for (number, function) in &needed {
            let own = types.place(self.type_of(*function)?)?;
            imports.import(FIRST, &short(*number), EntityType::Function(own));
        }
        imports.import(FIRST, "m", Same.memory_type(self.memory).map_err(wrong)?);
        for (number, table) in self.own_tables(Some(plan.table_size))?.into_iter().enumerate() {
            imports.import(FIRST, &format!("t{number}"), table);
        }
        for (number, global) in self.globals.iter().enumerate() {
            imports.import(FIRST, &format!("g{number}"), Same.global_type(global.ty).map_err(wrong)?);
        }
        let known = plan.seen_from(self, part)?;
        let (functions, code) = self.code(&plan.functions_of(part), &known, &mut types)?;
        let (globals, exports) = (GlobalSection::new(), ExportSection::new());
        let places = plan.places_of(part, &known);
        write(
            self,
            Part {
                types,
                more_types: Vec::new(),
                imports,
                functions,
                tables: Vec::new(),
                globals,
                exports,
                places,
                code,
                memory: false,
                data: homes.data_of(self, part)?,
            },
        )
    }

    /// A function that passes its arguments to what stands at a place of the table.
    fn door(&self, place: u32, type_index: u32, types: &mut Types) -> Result<Function> {
        let group = self.types.get(usize::try_from(type_index)?).context("there is no such type")?;
        let parameters = group.types().next().map(|each| match &each.composite_type.inner {
            CompositeInnerType::Func(function) => function.params().len(),
            _ => 0,
        });
        let mut function = Function::new([]);
        for parameter in 0..u32::try_from(parameters.unwrap_or(0))? {
            function.instruction(&Instruction::LocalGet(parameter));
        }
        call(Place::Indirect { place, type_index, table_index: self.functions_table }, types, &mut function)?;
        function.instruction(&Instruction::End);
        Ok(function)
    }

    // ---- what stays as it is

    pub(crate) fn own_imports(&self, types: &mut Types) -> Result<ImportSection> {
        let mut section = ImportSection::new();
        for import in &self.imports {
            let own = EntityType::Function(types.place(imported_type(import)?)?);
            section.import(import.module, import.name, own);
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

    pub(crate) fn own_data(&self) -> Result<DataSection> {
        let mut section = DataSection::new();
        for data in &self.data {
            Same.parse_data(&mut section, data.clone()).map_err(wrong)?;
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

/// The part that has the memory, the table and the globals.
pub(crate) const FIRST_PART: usize = 0;

/// Which function stands where.
struct Plan {
    imported: u32,
    /// The part of each function. Imported ones are everywhere.
    part: Vec<usize>,
    /// The functions of the first part that others call, in the order of their names there.
    needed: Vec<u32>,
    /// The table, with places for what one part calls in another.
    places: Vec<(u32, u32)>,
    place_of: BTreeMap<u32, u32>,
    table_size: u64,
}

impl Plan {
    fn new(module: &Module<'_>, sets: &[BTreeSet<u32>]) -> Result<Self> {
        let (imported, count) = (module.imported(), module.function_count());
        let part_of =
            |function: u32| sets.iter().position(|set| set.contains(&function)).unwrap_or(sets.len());
        let part: Vec<usize> = (0..count).map(part_of).collect();
        let mut plan = Plan {
            imported,
            part,
            needed: Vec::new(),
            places: module.places.clone(),
            place_of: module.places.iter().map(|(place, function)| (*function, *place)).collect(),
            table_size: module.function_table()?.ty.initial,
        };
        // What is called across parts: functions of the first part by import, all others through the table.
        let (mut needed, mut called) = (BTreeSet::new(), BTreeSet::new());
        for caller in imported..count {
            for function in calls(module, caller)? {
                if function < imported || plan.part_of(function) == plan.part_of(caller) {
                    continue;
                }
                if plan.part_of(function) == FIRST_PART { &mut needed } else { &mut called }.insert(function);
            }
        }
        let exported = module.exports.iter().filter(|export| export.kind == ExternalKind::Func);
        let elsewhere = |function: &u32| *function >= imported && plan.part_of(*function) != FIRST_PART;
        called.extend(exported.map(|export| export.index).filter(elsewhere));
        let mut next = u32::try_from(plan.table_size)?;
        for function in called {
            let places = &mut plan.places;
            plan.place_of.entry(function).or_insert_with(|| {
                places.push((next, function));
                next += 1;
                next - 1
            });
        }
        plan.table_size = next.into();
        plan.needed = needed.into_iter().collect();
        Ok(plan)
    }

    fn part_of(&self, function: u32) -> usize {
        self.part.get(function as usize).copied().unwrap_or(usize::MAX)
    }

    /// The functions of a part, without imports.
    fn functions_of(&self, part: usize) -> Vec<u32> {
        let count = u32::try_from(self.part.len()).unwrap_or(u32::MAX);
        (self.imported..count).filter(|function| self.part_of(*function) == part).collect()
    }

    /// Those functions of the first part that another part calls, with their numbers.
    fn needed_by(&self, module: &Module<'_>, part: usize) -> Result<Vec<(usize, u32)>> {
        let mut called = BTreeSet::new();
        for function in self.functions_of(part) {
            called.append(&mut calls(module, function)?);
        }
        Ok(self
            .needed
            .iter()
            .copied()
            .enumerate()
            .filter(|(_, function)| called.contains(function))
            .collect())
    }

    /// How a part calls each function, if it can. Imports come first, then what it takes from the first part, then its own.
    fn seen_from(&self, module: &Module<'_>, part: usize) -> Result<Vec<Option<Place>>> {
        let needed: Vec<u32> = match part {
            FIRST_PART => Vec::new(),
            _ => self.needed_by(module, part)?.into_iter().map(|(_, function)| function).collect(),
        };
        let direct = (0..self.imported).chain(needed).chain(self.functions_of(part));
        let index_of: BTreeMap<u32, u32> = direct.zip(0..).collect();
        let mut known = Vec::new();
        for function in 0..module.function_count() {
            let type_index = module.type_of(function)?;
            let table_index = module.functions_table;
            let indirect = |place: &u32| Place::Indirect { place: *place, type_index, table_index };
            let direct = index_of.get(&function).copied().map(Place::Direct);
            known.push(direct.or_else(|| self.place_of.get(&function).map(indirect)));
        }
        Ok(known)
    }

    /// The places of the table that a part fills: those of its own functions. Imported ones are the first part's business.
    fn places_of(&self, part: usize, known: &[Option<Place>]) -> Vec<(u32, u32)> {
        let of = |function: u32| if function < self.imported { FIRST_PART } else { self.part_of(function) };
        let own = |(place, function): &(u32, u32)| match known.get(*function as usize) {
            Some(Some(Place::Direct(index))) if of(*function) == part => Some((*place, *index)),
            _ => None,
        };
        self.places.iter().filter_map(own).collect()
    }
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

/// The name of the n-th function that other parts need. All begin alike: no name of wasm-bindgen does.
fn short(number: usize) -> String {
    format!("f{number}")
}

/// Writes a part, with the types and, if it is to be there, the memory of the whole.
pub(crate) fn write(module: &Module<'_>, part: Part) -> Result<Vec<u8>> {
    let mut types = TypeSection::new();
    let all = 0..u32::try_from(module.types.len())?;
    let kept = match part.types {
        Types::All => all.collect(),
        Types::Used(used) => used,
    };
    for index in kept {
        let group = module.types.get(usize::try_from(index)?).context("there is no such type")?;
        Same.parse_recursive_type_group(types.ty(), group.clone()).map_err(wrong)?;
    }
    for Signature { takes, gives } in part.more_types {
        types.ty().function(takes, gives);
    }
    let mut functions = FunctionSection::new();
    for each in &part.functions {
        functions.function(*each);
    }
    let mut whole = wasm_encoder::Module::new();
    whole.section(&types).section(&part.imports).section(&functions);
    if !part.tables.is_empty() {
        let mut section = TableSection::new();
        for table in part.tables {
            section.table(table);
        }
        whole.section(&section);
    }
    if part.memory {
        let mut section = MemorySection::new();
        section.memory(Same.memory_type(module.memory).map_err(wrong)?);
        whole.section(&section).section(&part.globals).section(&part.exports);
    }
    whole.section(&elements(&part.places, module.functions_table)).section(&part.code);
    if !part.data.is_empty() {
        whole.section(&part.data);
    }
    let bytes = whole.finish();
    wasmparser::Validator::new().validate_all(&bytes).context("a part is not a valid module")?;
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
