//! Constants go to the part that uses them: what the linker says, what it does not say, and what variables point to.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::cell::RefCell;
use std::collections::BTreeSet;

use module_halves::{Constants, Module};
use wasm_encoder::{
    CodeSection, ConstExpr, CustomSection, DataSection, DataSymbolDefinition, Encode, Function,
    FunctionSection, GlobalSection, GlobalType, Instruction, LinkingSection, NameMap, NameSection, RefType,
    SymbolTable, TableSection, TableType, TypeSection, ValType,
};
use wasmparser::{Operator, Parser, Payload};

use common::memory;

const HELLO: i32 = 1024;
/// Two addresses: of `WORLD`, and behind it.
const TABLE: i32 = 1032;
const WORLD: i32 = 1040;
const OTHER: i32 = 1048;
const VARIABLE: i32 = 4096;

/// Symbols, by their numbers: what they are called and where they stand.
const SYMBOLS: [(&str, u32, i32, u32); 5] = [
    ("hello", 0, HELLO, 5),
    ("table", 0, TABLE, 8),
    ("world", 0, WORLD, 5),
    ("other", 0, OTHER, 5),
    ("variable", 1, VARIABLE, 4),
];
const KIND_CODE: u8 = 4;
const KIND_DATA: u8 = 5;

/// A module as the linker leaves it, with functions that have these numbers in them. It knows where each number comes from, but
/// for those that stand at no beginning of a symbol. The variable points to a symbol.
fn linked(numbers: &[i32], pointed: usize) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], [ValType::I32]);
    let (mut functions, mut code) = (FunctionSection::new(), CodeSection::new());
    let mut written: Vec<(u8, u32, usize, i32)> = Vec::new();
    for number in numbers {
        functions.function(0);
        code.function(
            Function::new([]).instruction(&Instruction::I32Const(*number)).instruction(&Instruction::End),
        );
        let known = SYMBOLS.iter().position(|(_, _, address, _)| address == number);
        written.extend(known.map(|symbol| (KIND_CODE, 0, symbol, 0)));
    }
    let mut tables = TableSection::new();
    let element_type = RefType::FUNCREF;
    tables.table(TableType { element_type, minimum: 1, maximum: Some(1), table64: false, shared: false });
    let memories = memory();
    let words = [WORLD.to_le_bytes(), (WORLD + 5).to_le_bytes()].concat();
    let constants = [&b"hello\0\0\0"[..], &words, b"world\0\0\0other"].concat();
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(HELLO), constants.clone());
    data.active(0, &ConstExpr::i32_const(VARIABLE), SYMBOLS[pointed].2.to_le_bytes());
    // Each segment begins with a flag, its address in four bytes, and its length.
    let begin = 1 + 6;
    let table = begin + 8;
    let variable = begin + u32::try_from(constants.len()).unwrap() + 6;
    let in_data = [(KIND_DATA, table, 2, 0), (KIND_DATA, table + 4, 2, 5), (KIND_DATA, variable, pointed, 0)];
    let mut symbols = SymbolTable::new();
    for (name, index, address, size) in SYMBOLS {
        let offset = u32::try_from(address - [HELLO, VARIABLE][usize::try_from(index).unwrap()]).unwrap();
        symbols.data(0, name, Some(DataSymbolDefinition { index, offset, size }));
    }
    let mut named = NameMap::new();
    named.append(0, ".rodata");
    named.append(1, ".data");
    let mut names = NameSection::new();
    names.data(&named);
    let mut whole = wasm_encoder::Module::new();
    whole
        .section(&types)
        .section(&functions)
        .section(&tables)
        .section(&memories)
        .section(&code)
        .section(&data);
    whole.section(LinkingSection::new().symbol_table(&symbols));
    whole.section(&list("reloc.CODE", &written)).section(&list("reloc.DATA", &in_data)).section(&names);
    whole.finish()
}

/// What the linker wrote where: kinds, places, symbols, and how far behind their beginnings.
fn list(name: &'static str, written: &[(u8, u32, usize, i32)]) -> CustomSection<'static> {
    let mut bytes = Vec::new();
    0_u32.encode(&mut bytes);
    written.len().encode(&mut bytes);
    for (kind, place, symbol, behind) in written {
        bytes.push(*kind);
        place.encode(&mut bytes);
        symbol.encode(&mut bytes);
        behind.encode(&mut bytes);
    }
    CustomSection { name: name.into(), data: bytes.into() }
}

/// The texts that each part sets, by what its functions have in them; where several parts use one, it goes to the first.
fn texts(numbers: &[i32], pointed: usize, sets: &[BTreeSet<u32>]) -> Vec<Vec<String>> {
    let wasm = linked(numbers, pointed);
    let constants = Constants::read(&wasm).unwrap();
    let parts =
        Module::read(&wasm).unwrap().split(sets, &constants, &|users| *users.first().unwrap()).unwrap();
    parts.iter().map(|part| texts_of(part)).collect()
}

fn texts_of(wasm: &[u8]) -> Vec<String> {
    let mut memory = vec![0; 65_536];
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::DataSection(section) = payload.unwrap() else { continue };
        for data in section {
            let data = data.unwrap();
            let wasmparser::DataKind::Active { offset_expr, .. } = data.kind else { panic!("not active") };
            let Operator::I32Const { value } = offset_expr.get_operators_reader().read().unwrap() else {
                panic!("no number")
            };
            let at = usize::try_from(value).unwrap();
            memory[at..at + data.data.len()].copy_from_slice(data.data);
        }
    }
    let is_there = |(_, _, address, size): &&(&str, u32, i32, u32)| {
        let at = usize::try_from(*address).unwrap();
        memory[at..at + usize::try_from(*size).unwrap()].iter().any(|byte| *byte != 0)
    };
    SYMBOLS.iter().filter(is_there).map(|(name, ..)| (*name).to_owned()).collect()
}

#[test]
fn a_constant_goes_to_the_part_that_uses_it_and_takes_along_what_it_points_to() {
    let sets = [BTreeSet::from([0])];
    // Nobody uses `other`; the variable, and so what it points to, is everybody's.
    assert_eq!(
        texts(&[HELLO, TABLE], 3, &sets),
        [vec!["hello", "other", "variable"], vec!["table", "world"]]
    );
    assert_eq!(
        texts(&[TABLE, HELLO], 3, &sets),
        [vec!["table", "world", "other", "variable"], vec!["hello"]]
    );
    // A variable that points into what a later part uses keeps it in the first.
    assert_eq!(
        texts(&[HELLO, TABLE], 2, &sets),
        [vec!["hello", "world", "other", "variable"], vec!["table"]]
    );
}

#[test]
fn a_number_that_the_linker_did_not_write_means_everything_near_it() {
    let sets = [BTreeSet::from([0])];
    let first = ["hello", "table", "world", "other", "variable"];
    for near in [HELLO + 1, HELLO - 1000, OTHER + 1000] {
        assert_eq!(texts(&[near, TABLE], 3, &sets), [first.to_vec(), vec![]], "{near}");
    }
    // These are no addresses.
    for far in [0, -1, 5, HELLO - 1024 - 1, OTHER + 5 + 1024] {
        let texts = texts(&[far, TABLE], 3, &sets);
        assert_eq!(texts, [vec!["hello", "other", "variable"], vec!["table", "world"]], "{far}");
    }
}

#[test]
fn whose_a_constant_is_that_several_use_is_asked() {
    let wasm = linked(&[HELLO, HELLO, OTHER], 3);
    let constants = Constants::read(&wasm).unwrap();
    let asked = RefCell::new(Vec::new());
    let choose = |users: &BTreeSet<usize>| {
        asked.borrow_mut().push(users.clone());
        1
    };
    let sets = [BTreeSet::from([0]), BTreeSet::from([1])];
    let parts = Module::read(&wasm).unwrap().split(&sets, &constants, &choose).unwrap();
    assert_eq!(asked.into_inner(), [BTreeSet::from([0, 1]), BTreeSet::from([0, 2])]);
    assert_eq!(texts_of(&parts[1]), ["hello", "other"]);
}

/// What is said of a module with these globals, each of which changes or does not, and data at this address.
fn stack(globals: &[(bool, i32)], address: i32) -> Result<(), String> {
    let mut tables = TableSection::new();
    let element_type = RefType::FUNCREF;
    tables.table(TableType { element_type, minimum: 1, maximum: Some(1), table64: false, shared: false });
    let memories = memory();
    let mut section = GlobalSection::new();
    for (mutable, value) in globals {
        let kind = GlobalType { val_type: ValType::I32, mutable: *mutable, shared: false };
        section.global(kind, &ConstExpr::i32_const(*value));
    }
    let mut data = DataSection::new();
    data.active(0, &ConstExpr::i32_const(address), *b"hello");
    let mut whole = wasm_encoder::Module::new();
    whole.section(&tables).section(&memories).section(&section).section(&data);
    let wasm = whole.finish();
    Module::read(&wasm).unwrap().check_stack().map_err(|error| error.to_string())
}

#[test]
fn what_is_built_upon_the_stack_is_checked() {
    assert_eq!(stack(&[(true, 1024), (false, 4096)], 1024), Ok(()));
    let refused = |globals: &[(bool, i32)], address| stack(globals, address).unwrap_err();
    assert_eq!(refused(&[], 1024), "the first global is not the end of the stack");
    assert_eq!(refused(&[(false, 1024)], 1024), "the first global is not the end of the stack");
    assert!(refused(&[(true, 1024), (true, 0)], 1024).contains("a global that changes beside"));
    assert_eq!(refused(&[(true, 1024)], 1023), "the stack is not below all data");
    assert_eq!(refused(&[(true, 0)], 1024), "the stack is not below all data");
}

#[test]
fn a_list_that_does_not_fit_the_data_is_refused() {
    let wasm = linked(&[HELLO], 3);
    let at = wasm.windows(4).position(|bytes| bytes == (WORLD + 5).to_le_bytes()).unwrap();
    let mut other = wasm.clone();
    other[at] += 1;
    assert!(Constants::read(&other).err().unwrap().to_string().contains("the linker wrote 1046"));
    assert!(
        Constants::read(b"\0asm\x01\0\0\0").err().unwrap().to_string().contains("no segment of constants")
    );
}
