//! A small module, split: what is in each part, and what is refused. That all parts together do what the whole does is
//! tested with the package (tests/js/boundary/parts.test.mjs).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use split::{ENTERED, FIRST, Module};
use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ElementSection, Elements, EntityType, ExportKind, ExportSection,
    Function, FunctionSection, GlobalSection, GlobalType, ImportSection, Instruction, MemorySection,
    MemoryType, RefType, StartSection, TableSection, TableType, TypeSection, ValType,
};
use wasmparser::{Operator, Parser, Payload};

/// `a` is exported and calls `b`; `b` calls the imported function; `c` is exported and stands in the table; `d` calls `a`.
/// Imported functions come first, so these are 1 to 4.
fn module(change: impl FnOnce(&mut Parts)) -> Vec<u8> {
    let mut parts = Parts::default();
    change(&mut parts);
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32], [ValType::I32]);
    let mut imports = ImportSection::new();
    imports.import("env", "f", EntityType::Function(0));
    let mut functions = FunctionSection::new();
    for _ in 0..4 {
        functions.function(0);
    }
    let mut tables = TableSection::new();
    for _ in 0..parts.tables {
        tables.table(TableType {
            element_type: RefType::FUNCREF,
            minimum: 2,
            maximum: Some(2),
            table64: false,
            shared: false,
        });
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType {
        minimum: 1,
        maximum: None,
        memory64: false,
        shared: false,
        page_size_log2: None,
    });
    let mut exports = ExportSection::new();
    exports.export("a", ExportKind::Func, 1).export("c", ExportKind::Func, 3);
    let mut elements = ElementSection::new();
    elements.active(None, &ConstExpr::i32_const(1), Elements::Functions(vec![3].into()));
    let mut code = CodeSection::new();
    for calls in [Some(2), Some(0), None, Some(1)] {
        let mut function = Function::new([]);
        function.instruction(&Instruction::LocalGet(0));
        if let Some(called) = calls {
            function.instruction(&Instruction::Call(called));
        }
        code.function(function.instruction(&Instruction::End));
    }
    let mut globals = GlobalSection::new();
    for (mutable, value) in parts.globals {
        let kind = GlobalType { val_type: ValType::I32, mutable, shared: false };
        globals.global(kind, &ConstExpr::i32_const(value));
    }
    let mut data = DataSection::new();
    if parts.passive {
        data.passive(*b"hello");
    } else {
        data.active(0, &ConstExpr::i32_const(1024), *b"hello");
    }
    let mut whole = wasm_encoder::Module::new();
    whole.section(&types).section(&imports).section(&functions).section(&tables).section(&memories);
    whole.section(&globals).section(&exports);
    whole.section(&elements).section(&code).section(&data);
    whole.finish()
}

/// A module that runs something as soon as it is instantiated.
fn started() -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], []);
    let mut functions = FunctionSection::new();
    functions.function(0);
    let mut code = CodeSection::new();
    code.function(Function::new([]).instruction(&Instruction::End));
    let mut whole = wasm_encoder::Module::new();
    whole.section(&types).section(&functions).section(&StartSection { function_index: 0 }).section(&code);
    whole.finish()
}

struct Parts {
    tables: u32,
    passive: bool,
    /// Whether each changes, and what it begins with.
    globals: Vec<(bool, i32)>,
}

impl Default for Parts {
    fn default() -> Self {
        Parts { tables: 1, passive: false, globals: Vec::new() }
    }
}

/// What a module says of itself: names of exports, imports by module, how many functions and segments, and its calls.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    exports: Vec<String>,
    imports: Vec<String>,
    functions: usize,
    data: u32,
    direct: usize,
    indirect: usize,
    places: Vec<i32>,
    table: Option<u64>,
}

fn seen(wasm: &[u8]) -> Seen {
    let mut seen = Seen::default();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.unwrap() {
            Payload::ExportSection(section) => {
                seen.exports = section.into_iter().map(|export| export.unwrap().name.to_owned()).collect();
            }
            Payload::ImportSection(section) => {
                let name = |import: wasmparser::Import<'_>| format!("{}.{}", import.module, import.name);
                seen.imports = section.into_imports().map(|import| name(import.unwrap())).collect();
            }
            Payload::TableSection(section) => {
                seen.table = section.into_iter().next().map(|table| table.unwrap().ty.initial)
            }
            Payload::DataSection(section) => seen.data = section.count(),
            Payload::ElementSection(section) => {
                for element in section {
                    let wasmparser::ElementKind::Active { offset_expr, .. } = element.unwrap().kind else {
                        continue;
                    };
                    if let Operator::I32Const { value } = offset_expr.get_operators_reader().read().unwrap() {
                        seen.places.push(value);
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                seen.functions += 1;
                for operator in body.get_operators_reader().unwrap() {
                    match operator.unwrap() {
                        Operator::Call { .. } => seen.direct += 1,
                        Operator::CallIndirect { .. } => seen.indirect += 1,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    seen
}

/// The names under which a part imports.
fn from_first(names: &[&str]) -> Vec<String> {
    let others = names.iter().map(|name| format!("{FIRST}.{name}"));
    std::iter::once("env.f".to_owned()).chain(others).collect()
}

#[test]
fn each_function_is_in_one_part_and_finds_the_others() {
    let wasm = module(|_| {});
    let parts = Module::read(&wasm).unwrap().split(&[BTreeSet::from([1])]).unwrap();
    let [first, rest] = parts.as_slice() else { panic!("{} parts", parts.len()) };
    let first = seen(first);
    // `a`, which calls `b` through the table, and a door to `c`, which stands in the rest.
    assert_eq!((first.functions, first.direct, first.indirect), (2, 0, 2));
    assert_eq!(first.exports, ["a", "c", "m", "t0", "f0"]);
    assert_eq!(first.imports, ["env.f"]);
    // `c` has its place already; `b` gets a new one. Both are filled by the rest.
    assert_eq!((first.table, first.places, first.data), (Some(3), vec![], 1));
    let rest = seen(rest);
    assert_eq!((rest.functions, rest.direct, rest.indirect), (3, 2, 0));
    assert_eq!(rest.imports, from_first(&["f0", "m", "t0"]));
    assert_eq!((rest.exports, rest.places, rest.data), (vec![], vec![1], 0));
}

#[test]
fn parts_beside_the_first_find_each_other_through_the_table_whichever_comes_first() {
    // `b` and `c` in parts of their own, `d` in the rest: `a` calls `b`, `d` calls `a`.
    let wasm = module(|_| {});
    let sets = [BTreeSet::from([1]), BTreeSet::from([2]), BTreeSet::from([1, 3])];
    let parts = Module::read(&wasm).unwrap().split(&sets).unwrap();
    let all: Vec<Seen> = parts.iter().map(|part| seen(part)).collect();
    assert_eq!(all.iter().map(|part| part.functions).collect::<Vec<_>>(), [2, 1, 1, 1]);
    // Only the rest calls into the first part, so only it imports a function from there.
    assert_eq!(all[1].imports, from_first(&["m", "t0"]));
    assert_eq!(all[2].imports, from_first(&["m", "t0"]));
    assert_eq!(all[3].imports, from_first(&["f0", "m", "t0"]));
    // Each fills its own places: `b` the new one, `c` the one that it had.
    assert_eq!(
        [&all[0].places, &all[1].places, &all[2].places, &all[3].places],
        [&vec![], &vec![2], &vec![1], &vec![]]
    );
}

#[test]
fn a_first_part_with_everything_leaves_nothing_to_the_rest() {
    let wasm = module(|_| {});
    let parts = Module::read(&wasm).unwrap().split(&[(1..5).collect()]).unwrap();
    let (whole, first, rest) = (seen(&wasm), seen(&parts[0]), seen(&parts[1]));
    assert_eq!((first.functions, first.direct, first.indirect), (whole.functions, whole.direct, 0));
    assert_eq!((first.places, first.table), (whole.places, whole.table));
    assert_eq!((rest.functions, rest.places), (0, vec![]));
}

#[test]
fn each_function_of_a_traced_module_has_a_bit() {
    let wasm = module(|_| {});
    let whole = seen(&wasm);
    let traced = seen(&Module::read(&wasm).unwrap().traced().unwrap());
    assert_eq!(traced.exports, ["a".to_owned(), "c".to_owned(), format!("{ENTERED}0")]);
    assert_eq!((traced.functions, traced.direct, &traced.places), (4, whole.direct, &whole.places));
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    let refused = |change: fn(&mut Parts)| {
        let wasm = module(change);
        Module::read(&wasm).err().unwrap().to_string()
    };
    assert!(refused(|parts| parts.passive = true).contains("passive segment of data"));
    assert!(refused(|parts| parts.tables = 2).contains("exactly one table of functions"));
    assert!(Module::read(&started()).err().unwrap().to_string().contains("start function"));
    assert!(Module::read(b"\0asm").err().unwrap().to_string().contains("not a valid module"));
}

#[test]
fn what_is_built_upon_the_stack_is_checked() {
    let said = |globals: Vec<(bool, i32)>| {
        let wasm = module(|parts| parts.globals = globals);
        Module::read(&wasm).unwrap().check_stack().map_err(|error| error.to_string())
    };
    assert_eq!(said(vec![(true, 1024), (false, 4096)]), Ok(()));
    for (globals, refused) in [
        (vec![], "the first global is not the end of the stack"),
        (vec![(false, 1024)], "the first global is not the end of the stack"),
        (vec![(true, 1024), (true, 0)], "the module has a global that changes beside the end of its stack"),
        (vec![(true, 1025)], "the stack is not below all data"),
        (vec![(true, 0)], "the stack is not below all data"),
    ] {
        assert_eq!(said(globals).unwrap_err(), refused);
    }
}
