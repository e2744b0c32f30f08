//! What a module's file says.

use anyhow::{Context, Result, bail};
use wasmparser::{
    ConstExpr, Data, DataKind, Element, ElementItems, ElementKind, Export, FunctionBody, Global, Import,
    MemoryType, Operator, Parser, Payload, RecGroup, Table, TypeRef, Validator, WasmFeatures,
};

/// A module that can be split.
pub struct Module<'a> {
    pub(crate) types: Vec<RecGroup>,
    pub(crate) imports: Vec<Import<'a>>,
    /// The type of each function, imported ones first.
    pub(crate) functions: Vec<u32>,
    /// wasm-bindgen has a table of its own beside that of the functions.
    pub(crate) tables: Vec<Table<'a>>,
    /// The index of the table of functions.
    pub(crate) functions_table: u32,
    pub(crate) memory: MemoryType,
    pub(crate) globals: Vec<Global<'a>>,
    pub(crate) exports: Vec<Export<'a>>,
    /// What stands in the table: places and functions.
    pub(crate) places: Vec<(u32, u32)>,
    pub(crate) data: Vec<Data<'a>>,
    pub(crate) bodies: Vec<FunctionBody<'a>>,
}

impl<'a> Module<'a> {
    /// Reads a module.
    ///
    /// # Errors
    /// If it is not valid, or has what this crate does not know.
    pub fn read(wasm: &'a [u8]) -> Result<Self> {
        Validator::new_with_features(WasmFeatures::default())
            .validate_all(wasm)
            .context("not a valid module")?;
        let mut tables = Vec::new();
        let mut memories = Vec::new();
        let mut elements = Vec::new();
        let mut own = Vec::new();
        let (mut types, mut imports, mut globals) = (Vec::new(), Vec::new(), Vec::new());
        let (mut exports, mut data, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(section) => types = section.into_iter().collect::<Result<_, _>>()?,
                Payload::ImportSection(section) => {
                    imports = section.into_imports().collect::<Result<_, _>>()?;
                }
                Payload::FunctionSection(section) => own = section.into_iter().collect::<Result<_, _>>()?,
                Payload::TableSection(section) => tables = section.into_iter().collect::<Result<_, _>>()?,
                Payload::MemorySection(section) => {
                    memories = section.into_iter().collect::<Result<_, _>>()?
                }
                Payload::GlobalSection(section) => globals = section.into_iter().collect::<Result<_, _>>()?,
                Payload::ExportSection(section) => exports = section.into_iter().collect::<Result<_, _>>()?,
                Payload::ElementSection(section) => {
                    elements = section.into_iter().collect::<Result<_, _>>()?
                }
                Payload::DataSection(section) => data = section.into_iter().collect::<Result<_, _>>()?,
                Payload::CodeSectionEntry(body) => bodies.push(body),
                Payload::StartSection { .. } => {
                    bail!("the module has a start function, which would run before the rest is there")
                }
                Payload::TagSection(_) => bail!("the module has exceptions, which are not supported"),
                _ => {}
            }
        }
        let mut functions = imports.iter().map(imported_type).collect::<Result<Vec<_>>>()?;
        functions.append(&mut own);
        Ok(Module {
            types,
            imports,
            functions,
            functions_table: functions_table(&tables)?,
            tables,
            memory: only("memory", memories)?,
            globals,
            exports,
            places: places_of(elements)?,
            data: data.into_iter().map(active).collect::<Result<_>>()?,
            bodies,
        })
    }

    /// Returns the number of functions, imported ones included: they come first.
    pub fn function_count(&self) -> u32 {
        u32::try_from(self.functions.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn imported(&self) -> u32 {
        u32::try_from(self.imports.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn body(&self, function: u32) -> Result<&FunctionBody<'_>> {
        let at = function.checked_sub(self.imported()).context("an imported function has no body")?;
        self.bodies.get(usize::try_from(at)?).context("there is no such function")
    }

    pub(crate) fn type_of(&self, function: u32) -> Result<u32> {
        self.functions.get(usize::try_from(function)?).copied().context("there is no such function")
    }

    pub(crate) fn function_table(&self) -> Result<&Table<'_>> {
        self.tables.get(usize::try_from(self.functions_table)?).context("there is no table of functions")
    }
}

fn only<T>(what: &str, mut all: Vec<T>) -> Result<T> {
    match (all.pop(), all.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => bail!("the module must have exactly one {what} of its own"),
    }
}

fn functions_table(tables: &[Table<'_>]) -> Result<u32> {
    let all: Vec<usize> = (0..tables.len())
        .filter(|at| tables.get(*at).is_some_and(|table| table.ty.element_type.is_func_ref()))
        .collect();
    match all.as_slice() {
        [one] => Ok(u32::try_from(*one)?),
        _ => bail!("the module must have exactly one table of functions"),
    }
}

pub(crate) fn imported_type(import: &Import<'_>) -> Result<u32> {
    match import.ty {
        TypeRef::Func(index) => Ok(index),
        _ => bail!("the module imports `{}`, which is no function", import.name),
    }
}

fn active(data: Data<'_>) -> Result<Data<'_>> {
    match data.kind {
        DataKind::Active { memory_index: 0, .. } => Ok(data),
        _ => bail!("the module has a passive segment of data"),
    }
}

/// Where a segment stands in the memory.
pub(crate) fn address_of(data: &Data<'_>) -> Result<u32> {
    match &data.kind {
        DataKind::Active { offset_expr, .. } => number(offset_expr),
        DataKind::Passive => bail!("the module has a passive segment of data"),
    }
}

/// A constant that is a number.
pub(crate) fn number(expression: &ConstExpr<'_>) -> Result<u32> {
    match expression.get_operators_reader().read()? {
        Operator::I32Const { value } => Ok(value.cast_unsigned()),
        _ => bail!("a segment or a global of the module begins with what is not a number"),
    }
}

fn places_of(elements: Vec<Element<'_>>) -> Result<Vec<(u32, u32)>> {
    let mut places = Vec::new();
    for element in elements {
        let (ElementKind::Active { offset_expr, .. }, ElementItems::Functions(functions)) =
            (element.kind, element.items)
        else {
            bail!("the module has a segment of its table that is not a list of functions at a place");
        };
        for (place, function) in (number(&offset_expr)?..).zip(functions) {
            places.push((place, function?));
        }
    }
    places.sort_unstable();
    Ok(places)
}
