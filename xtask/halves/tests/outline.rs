//! Random functions, and the same without what did not run of them: node runs both, also where something is missing that the
//! trace has not seen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use module_halves::Module;
use wasm_encoder::{
    BlockType, CodeSection, EntityType, ExportKind, ExportSection, Function, FunctionSection, ImportSection,
    Instruction, RefType, TableSection, TableType, TypeSection, ValType,
};

use common::memory;

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap()
    }
}

/// Parameters and locals that hold numbers, and one that says how often loops may still go round.
const NUMBERS: u32 = 5;
const FUEL: u32 = 5;
const LONG: u32 = 6;

/// Writes a function of two numbers: statements that change locals, and every way to branch.
struct Writer<'d> {
    dice: &'d mut Dice,
    code: Vec<Instruction<'static>>,
    gives: bool,
}

impl Writer<'_> {
    fn number(&mut self) {
        let instruction = match self.dice.up_to(3) {
            0 => Instruction::I32Const(i32::try_from(self.dice.up_to(9)).unwrap() - 2),
            _ => Instruction::LocalGet(self.dice.up_to(NUMBERS)),
        };
        self.code.push(instruction);
    }

    fn condition(&mut self) {
        self.number();
        self.number();
        self.code.push(
            [Instruction::I32LtS, Instruction::I32Eq, Instruction::I32GtU][self.dice.up_to(3) as usize]
                .clone(),
        );
    }

    /// A loop that has gone round too often ends in a trap.
    fn burn(&mut self) {
        use Instruction::{End, I32Const, I32Eqz, I32Sub, If, LocalGet, LocalTee, Unreachable};
        self.code.extend([LocalGet(FUEL), I32Const(1), I32Sub, LocalTee(FUEL), I32Eqz]);
        self.code.extend([If(BlockType::Empty), Unreachable, End]);
    }

    fn sum(&mut self) {
        self.number();
        self.number();
        let instructions = [Instruction::I32Add, Instruction::I32Sub, Instruction::I32Xor];
        self.code.push(instructions[self.dice.up_to(3) as usize].clone());
        self.code.push(Instruction::LocalSet(self.dice.up_to(NUMBERS)));
    }

    /// How many blocks are around it, that of the function included.
    fn statements(&mut self, depth: u32, left: u32) {
        for _ in 0..=self.dice.up_to(4) {
            match self.dice.up_to(if left == 0 { 6 } else { 14 }) {
                0..=2 => self.sum(),
                3 => self.long_sum(),
                4 => {
                    self.condition();
                    // Out of the function a branch takes its result along.
                    let target = self.dice.up_to(depth);
                    if self.gives && target + 1 == depth {
                        self.code.push(Instruction::Drop);
                    } else {
                        self.code.push(Instruction::BrIf(target));
                    }
                }
                5 if depth > 1 && self.dice.up_to(3) == 0 => {
                    self.leave(depth);
                    return;
                }
                5 => {}
                6..=8 => {
                    self.condition();
                    self.code.push(Instruction::If(BlockType::Empty));
                    self.statements(depth + 1, left - 1);
                    if self.dice.up_to(2) == 0 {
                        self.code.push(Instruction::Else);
                        self.statements(depth + 1, left - 1);
                    }
                    self.code.push(Instruction::End);
                }
                9 | 10 => {
                    self.code.push(Instruction::Block(BlockType::Empty));
                    self.statements(depth + 1, left - 1);
                    self.code.push(Instruction::End);
                }
                11 => self.choice(),
                _ => {
                    self.code.push(Instruction::Loop(BlockType::Empty));
                    self.burn();
                    self.statements(depth + 1, left - 1);
                    self.condition();
                    self.code.extend([Instruction::BrIf(0), Instruction::End]);
                }
            }
        }
    }

    /// Adds a number to the long one.
    fn long_sum(&mut self) {
        self.number();
        self.code.extend([Instruction::LocalTee(self.dice.up_to(NUMBERS)), Instruction::I64ExtendI32S]);
        self.code.extend([Instruction::LocalGet(LONG), Instruction::I64Add, Instruction::LocalSet(LONG)]);
    }

    /// Takes one of two numbers.
    fn choice(&mut self) {
        self.condition();
        self.code.push(Instruction::If(BlockType::Result(ValType::I32)));
        self.number();
        self.code.push(Instruction::Else);
        (0..4).for_each(|_| self.sum());
        self.number();
        self.code.extend([Instruction::End, Instruction::LocalSet(self.dice.up_to(NUMBERS))]);
    }

    /// Goes somewhere else, whatever happens.
    fn leave(&mut self, depth: u32) {
        if self.dice.up_to(2) == 0 {
            if self.gives {
                self.number();
            }
            self.code.push(Instruction::Return);
        } else {
            let last = if self.gives { depth - 1 } else { depth };
            self.number();
            let targets: Vec<u32> = (0..3).map(|_| self.dice.up_to(last)).collect();
            self.code.push(Instruction::BrTable(targets.into(), self.dice.up_to(last)));
        }
    }
}

/// A module with one function that gives a number and one that gives nothing; both tell their locals at the end.
fn module(dice: &mut Dice) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
    types.ty().function([ValType::I32, ValType::I32], []);
    types.ty().function([ValType::I32, ValType::I64], []);
    let mut imports = ImportSection::new();
    imports.import("env", "tell", EntityType::Function(2));
    let mut functions = FunctionSection::new();
    functions.function(0).function(1);
    let mut tables = TableSection::new();
    let table = TableType {
        element_type: RefType::FUNCREF,
        minimum: 0,
        maximum: Some(0),
        table64: false,
        shared: false,
    };
    tables.table(table);
    let memories = memory();
    let mut exports = ExportSection::new();
    exports.export("gives", ExportKind::Func, 1).export("tells", ExportKind::Func, 2);
    let mut code = CodeSection::new();
    for gives in [true, false] {
        let mut writer = Writer { dice: &mut *dice, code: Vec::new(), gives };
        for _ in 0..4 {
            writer.statements(1, 4);
        }
        let mut function = Function::new([(4, ValType::I32), (1, ValType::I64)]);
        function.instruction(&Instruction::I32Const(30)).instruction(&Instruction::LocalSet(FUEL));
        writer.code.iter().for_each(|instruction| {
            function.instruction(instruction);
        });
        for local in 0..NUMBERS {
            function
                .instruction(&Instruction::LocalGet(local))
                .instruction(&Instruction::LocalGet(LONG))
                .instruction(&Instruction::Call(0));
        }
        if gives {
            function.instruction(&Instruction::LocalGet(0));
        }
        code.function(function.instruction(&Instruction::End));
    }
    let mut whole = wasm_encoder::Module::new();
    whole
        .section(&types)
        .section(&imports)
        .section(&functions)
        .section(&tables)
        .section(&memories)
        .section(&exports)
        .section(&code);
    whole.finish()
}

/// Runs both functions of each module with these numbers: what they say, a line for each module, and what of the module ran.
const RUN: &str = r#"
const fs = require("fs");
const [numbers, ...files] = process.argv.slice(1);
for (const file of files) {
  const said = [];
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(fs.readFileSync(file)), { env: { tell: (a, b) => said.push(a, b) } });
  for (const a of JSON.parse(numbers)) for (const b of [0, 3, 7]) for (const name of ["gives", "tells"]) {
    try { said.push(exports[name](a, b)); } catch (error) { said.push(error.message); }
  }
  const ran = [];
  for (const [name, flags] of Object.entries(exports)) if (name.startsWith("entered:")) for (let bit = 0; bit < 32; bit++) if (flags.value >>> bit & 1) ran.push(32 * Number(name.slice(8)) + bit);
  console.log(`${said.join(" ")}|${ran.join(" ")}`);
}
"#;

fn run(numbers: &str, files: &[PathBuf]) -> Vec<(String, BTreeSet<u32>)> {
    let output = Command::new("node").args(["-e", RUN, numbers]).args(files).output().expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (said, ran) = line.split_once('|').unwrap();
        (said.to_owned(), ran.split_whitespace().map(|number| number.parse().unwrap()).collect())
    };
    text.lines().map(line).collect()
}

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("outline");
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_module_without_what_did_not_run_does_the_same() {
    let (folder, mut dice) = (folder(), Dice(7));
    let wholes: Vec<Vec<u8>> = (0..300).map(|_| module(&mut dice)).collect();
    let place = |kind: &str, number: usize| folder.join(format!("{kind}-{number}.wasm"));
    let all = |kind: &str| (0..wholes.len()).map(|number| place(kind, number)).collect::<Vec<_>>();
    for (number, whole) in wholes.iter().enumerate() {
        fs::write(place("whole", number), whole).unwrap();
        fs::write(place("traced", number), Module::read(whole).unwrap().traced().unwrap()).unwrap();
    }
    let mut taken_out = 0;
    for (number, (_, ran)) in run("[0,1]", &all("traced")).into_iter().enumerate() {
        let whole = Module::read(&wholes[number]).unwrap();
        let outlined = whole.outlined(&ran, 0).unwrap();
        taken_out += Module::read(&outlined).unwrap().function_count() - whole.function_count();
        fs::write(place("outlined", number), outlined).unwrap();
    }
    // That there was something to compare.
    assert!(taken_out > 600, "{taken_out}");
    let numbers = "[0,1,2,-1,5,100]";
    for (number, (one, other)) in
        run(numbers, &all("whole")).iter().zip(run(numbers, &all("outlined"))).enumerate()
    {
        assert_eq!(one.0, other.0, "module {number}");
    }
}
