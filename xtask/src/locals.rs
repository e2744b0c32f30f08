//! Renumbers the locals of a Wasm module so that it compresses better.
//!
//! A function may number its locals as it likes, and one local may hold any values that are never needed at the same
//! time. Compilers choose both without regard to compression, although these numbers are a fifth of the compressed
//! code. Here, each value of each function gets the number that a model of the whole code finds most likely in its
//! context. The instructions, their order and the length of the module stay the same.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use anyhow::{Result, bail, ensure};
use wasmparser::{FunctionBody, Operator, Parser, Payload, ValType};

/// How many preceding bytes the model looks at. Longer contexts gain nothing.
const CONTEXT: usize = 5;

/// The weight of shorter contexts: the larger it is, the less the model trusts a context that it has rarely seen.
const DOUBT: f64 = 8.0;

/// How much a change must save, in bits.
const MIN_SAVED_BITS: f64 = 0.3;

/// Returns the module with renumbered locals. Each round visits all functions once; after about eight, nothing
/// changes any more.
///
/// # Errors
/// If the module is malformed, if an instruction cannot be followed, or if a read would see other writes than before.
pub fn renumber(wasm: &[u8], rounds: usize) -> Result<Vec<u8>> {
    let mut module = wasm.to_vec();
    let mut functions = Function::read_all(wasm)?;
    let mut model = Model::default();
    for function in &functions {
        model.count(&module[function.code.clone()], 1);
    }
    for _ in 0..rounds {
        let mut changed = false;
        for function in &mut functions {
            let code = &mut module[function.code.clone()];
            // Its own bytes would speak for leaving it as it is.
            model.count(code, -1);
            changed |= function.improve(code, &model);
            model.count(code, 1);
        }
        if !changed {
            break;
        }
    }
    for (before, after) in functions.iter().zip(Function::read_all(&module)?) {
        ensure!(before.reads() == after.reads(), "a renumbered function would read other values");
    }
    Ok(module)
}

/// A function with at most 128 locals, whose numbers take one byte each.
struct Function {
    /// The place of its instructions in the module.
    code: Range<usize>,
    /// The types of its locals, parameters first.
    types: Vec<ValType>,
    parameters: usize,
    webs: Webs,
}

/// The webs of a function. A web is a value in a local: connected writes, with all reads that see them.
#[derive(Default)]
struct Webs {
    /// The web of each instruction that reads or writes a local, unless the instruction is unreachable.
    of: Vec<Option<usize>>,
    /// The local of each web. The first webs are the initial values of the locals, in their order.
    locals: Vec<usize>,
    /// The webs that must not share a local with a web.
    conflicts: Vec<BTreeSet<usize>>,
    /// Where the code names the local of each web.
    places: Vec<Vec<usize>>,
}

/// What an instruction does to locals or to the flow of control.
enum Step {
    Get(usize),
    Set(usize),
    Block,
    Loop,
    If,
    Else,
    End,
    /// A jump to one of these labels, counted from the innermost. If it is conditional, it may also continue.
    Branch {
        labels: Vec<u32>,
        conditional: bool,
    },
    Exit,
    Other,
}

impl Step {
    fn of(operator: Operator<'_>) -> Result<Step> {
        let branch = |labels, conditional| Step::Branch { labels, conditional };
        Ok(match operator {
            Operator::LocalGet { local_index } => Step::Get(local_index as usize),
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                Step::Set(local_index as usize)
            }
            Operator::Block { .. } => Step::Block,
            Operator::Loop { .. } => Step::Loop,
            Operator::If { .. } => Step::If,
            Operator::Else => Step::Else,
            Operator::End => Step::End,
            Operator::Br { relative_depth } => branch(vec![relative_depth], false),
            Operator::BrIf { relative_depth } => branch(vec![relative_depth], true),
            Operator::BrTable { targets } => {
                let mut labels = targets.targets().collect::<Result<Vec<_>, _>>()?;
                labels.push(targets.default());
                branch(labels, false)
            }
            Operator::Return | Operator::Unreachable => Step::Exit,
            // wasm-opt is not told to allow any of these, so the package has none.
            Operator::Try { .. }
            | Operator::TryTable { .. }
            | Operator::Throw { .. }
            | Operator::ThrowRef
            | Operator::BrOnNull { .. }
            | Operator::BrOnNonNull { .. }
            | Operator::BrOnCast { .. }
            | Operator::BrOnCastFail { .. }
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. }
            | Operator::ReturnCallRef { .. } => bail!("cannot follow `{operator:?}`"),
            _ => Step::Other,
        })
    }
}

impl Function {
    fn read_all(wasm: &[u8]) -> Result<Vec<Function>> {
        let (mut signatures, mut types, mut functions) = (Vec::new(), Vec::new(), Vec::new());
        for part in Parser::new(0).parse_all(wasm) {
            match part? {
                Payload::TypeSection(section) => {
                    for signature in section.into_iter_err_on_gc_types() {
                        signatures.push(signature?.params().to_vec());
                    }
                }
                Payload::FunctionSection(section) => {
                    types = section.into_iter().collect::<Result<Vec<_>, _>>()?;
                    types.reverse();
                }
                Payload::CodeSectionEntry(body) => {
                    let parameters = types.pop().and_then(|of| signatures.get(of as usize)).cloned();
                    ensure!(parameters.is_some(), "a function has no type");
                    functions.extend(Function::read(&body, parameters.unwrap_or_default())?);
                }
                _ => {}
            }
        }
        Ok(functions)
    }

    fn read(body: &FunctionBody<'_>, mut types: Vec<ValType>) -> Result<Option<Function>> {
        let parameters = types.len();
        for group in body.get_locals_reader()? {
            let (count, kind) = group?;
            types.extend((0..count).map(|_| kind));
        }
        if types.len() > 128 {
            return Ok(None);
        }
        let mut operators = body.get_operators_reader()?;
        let start = operators.original_position();
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        while !operators.eof() {
            let (operator, at) = operators.read_with_offset()?;
            steps.push(Step::of(operator)?);
            places.push(at + 1 - start);
        }
        let webs = Webs::find(&steps, &places, types.len(), parameters)?;
        Ok(Some(Function { code: start..body.range().end, types, parameters, webs }))
    }

    /// The web of each instruction, numbered independently of the locals: parameters first, then in order of
    /// appearance.
    fn reads(&self) -> Vec<Option<usize>> {
        let mut order: Vec<usize> = (0..self.parameters).collect();
        let mut number = |web| {
            order.iter().position(|known| *known == web).unwrap_or_else(|| {
                order.push(web);
                order.len() - 1
            })
        };
        self.webs.of.iter().map(|web| web.map(&mut number)).collect()
    }

    /// Moves webs to other locals as long as that saves something. Returns whether anything changed.
    fn improve(&mut self, code: &mut [u8], model: &Model) -> bool {
        let mut bits: Vec<f64> = (0..code.len()).map(|at| model.bits(code, at)).collect();
        let mut seen = vec![0; code.len()];
        let (mut changed, mut generation) = (false, 0);
        loop {
            let mut has_improved = false;
            for web in 0..self.webs.locals.len() {
                for local in 0..self.types.len() {
                    let was = self.webs.locals[web];
                    let fits = local != was && self.types[local] == self.types[was];
                    if !fits || self.webs.places[web].is_empty() {
                        continue;
                    }
                    let Some(chain) = self.webs.chain(web, local, self.parameters) else { continue };
                    generation += 1;
                    let near = self.webs.near(&chain, &mut seen, generation);
                    self.webs.exchange(&chain, was, local, code);
                    let now: Vec<f64> = near.iter().map(|&at| model.bits(code, at)).collect();
                    let saved: f64 = near.iter().zip(&now).map(|(&at, now)| bits[at] - now).sum();
                    if saved > MIN_SAVED_BITS {
                        near.iter().zip(now).for_each(|(&at, now)| bits[at] = now);
                        has_improved = true;
                    } else {
                        self.webs.exchange(&chain, was, local, code);
                    }
                }
            }
            if !has_improved {
                return changed;
            }
            changed = true;
        }
    }
}

impl Webs {
    /// Finds the webs by following all paths through the function.
    fn find(steps: &[Step], places: &[usize], locals: usize, parameters: usize) -> Result<Webs> {
        let successors = successors(steps)?;
        let live = live(steps, &successors);
        let is_live_after =
            |at: usize, local: usize| successors[at].iter().any(|&to| live[to] >> local & 1 == 1);

        // Each write starts a web, and so does each initial value. Where paths meet, their webs of a local are joined
        // if the local is still read.
        let mut sets = UnionFind((0..locals).collect());
        let mut before: Vec<Option<Vec<usize>>> = vec![None; steps.len() + 1];
        before[0] = Some((0..locals).collect());
        let mut of = vec![None; steps.len()];
        let mut after = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let Some(mut current) = before[at].clone() else {
                after.push(Vec::new());
                continue;
            };
            match *step {
                Step::Get(local) => of[at] = Some(current[local]),
                Step::Set(local) => {
                    current[local] = sets.add();
                    of[at] = Some(current[local]);
                }
                _ => {}
            }
            for &to in &successors[at] {
                match &before[to] {
                    None => before[to] = Some(current.clone()),
                    Some(known) => {
                        for local in (0..locals).filter(|local| live[to] >> local & 1 == 1) {
                            sets.join(known[local], current[local]);
                        }
                    }
                }
            }
            after.push(current);
        }

        // Number the webs; those of the initial values come first.
        let mut numbers = vec![None; sets.0.len()];
        let mut webs = Webs::default();
        for web in 0..sets.0.len() {
            let root = sets.root(web);
            if numbers[root].is_none() {
                numbers[root] = Some(webs.conflicts.len());
                webs.conflicts.push(BTreeSet::new());
            }
        }
        let mut number = |web: usize| numbers[sets.root(web)].unwrap_or_default();
        webs.locals = vec![0; webs.conflicts.len()];
        webs.places = vec![Vec::new(); webs.conflicts.len()];
        (0..locals).for_each(|local| webs.locals[number(local)] = local);
        webs.of = of.into_iter().map(|web| web.map(&mut number)).collect();
        for (at, step) in steps.iter().enumerate() {
            let Some(web) = webs.of[at] else { continue };
            webs.places[web].push(places[at]);
            if let Step::Set(local) = *step {
                webs.locals[web] = local;
                for other in (0..locals).filter(|&other| is_live_after(at, other)) {
                    webs.add_conflict(web, number(after[at][other]));
                }
            }
        }
        // Initially, parameters hold arguments, and other locals hold zero.
        let at_first: Vec<usize> = (0..locals).filter(|local| live[0] >> local & 1 == 1).collect();
        for &zero in at_first.iter().filter(|&&local| local >= parameters) {
            (0..parameters).for_each(|parameter| webs.add_conflict(zero, parameter));
        }
        for &one in &at_first {
            at_first.iter().for_each(|&other| webs.add_conflict(one, other));
        }
        Ok(webs)
    }

    fn add_conflict(&mut self, one: usize, other: usize) {
        if one != other {
            self.conflicts[one].insert(other);
            self.conflicts[other].insert(one);
        }
    }

    /// Returns the webs that have to change places so that `web` can move to another local: its rivals there, their
    /// rivals in its old local, and so on (a Kempe chain). `None` if a parameter would have to move.
    fn chain(&self, web: usize, to: usize, parameters: usize) -> Option<Vec<usize>> {
        let from = self.locals[web];
        let (mut chain, mut at) = (vec![web], 0);
        while let Some(&one) = chain.get(at) {
            if one < parameters {
                return None;
            }
            let there = if self.locals[one] == from { to } else { from };
            for &other in self.conflicts[one].iter().filter(|&&other| self.locals[other] == there) {
                if !chain.contains(&other) {
                    chain.push(other);
                }
            }
            at += 1;
        }
        Some(chain)
    }

    /// Returns the positions whose cost depends on the numbers of these webs, each once. `generation` must differ between
    /// calls.
    fn near(&self, chain: &[usize], seen: &mut [u32], generation: u32) -> Vec<usize> {
        let mut near = Vec::new();
        for &place in chain.iter().flat_map(|&web| &self.places[web]) {
            let end = seen.len().min(place + CONTEXT + 1);
            for (at, seen) in (place..end).zip(&mut seen[place..end]) {
                if *seen != generation {
                    *seen = generation;
                    near.push(at);
                }
            }
        }
        near
    }

    /// Swaps two locals for the webs of a chain. Doing it twice changes nothing.
    fn exchange(&mut self, chain: &[usize], one: usize, other: usize, code: &mut [u8]) {
        for &web in chain {
            let local = if self.locals[web] == one { other } else { one };
            self.locals[web] = local;
            self.places[web].iter().for_each(|&place| code[place] = local as u8);
        }
    }
}

/// Returns the possible successors of each instruction.
fn successors(steps: &[Step]) -> Result<Vec<Vec<usize>>> {
    // The `end` and the `else` of each opening instruction.
    let (mut open, mut ends, mut elses) = (Vec::new(), vec![0; steps.len()], vec![None; steps.len()]);
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Block | Step::Loop | Step::If => open.push(at),
            Step::Else => {
                let Some(&opening) = open.last() else { bail!("an `else` without an `if`") };
                elses[opening] = Some(at);
            }
            Step::End => {
                let Some(opening) = open.pop() else { continue }; // the function's own
                ends[opening] = at;
                if let Some(other) = elses[opening] {
                    ends[other] = at;
                }
            }
            _ => {}
        }
    }
    let mut successors = Vec::with_capacity(steps.len());
    for (at, step) in steps.iter().enumerate() {
        let next = at + 1;
        successors.push(match step {
            Step::Block | Step::Loop | Step::If => {
                open.push(at);
                let otherwise = elses[at].map_or(ends[at], |other| other + 1);
                if matches!(step, Step::If) { vec![next, otherwise] } else { vec![next] }
            }
            Step::Else => vec![ends[at]],
            Step::End => {
                open.pop();
                if next < steps.len() { vec![next] } else { Vec::new() }
            }
            Step::Branch { labels, conditional } => {
                let mut to: Vec<usize> = conditional.then_some(next).into_iter().collect();
                for &label in labels {
                    // The outermost label is the function itself.
                    let Some(depth) = open.len().checked_sub(label as usize + 1) else { continue };
                    let opening = open[depth];
                    to.push(if matches!(steps[opening], Step::Loop) { opening } else { ends[opening] });
                }
                to
            }
            Step::Exit => Vec::new(),
            Step::Get(_) | Step::Set(_) | Step::Other => vec![next],
        });
    }
    Ok(successors)
}

/// Returns which locals are live before each instruction, one bit per local.
fn live(steps: &[Step], successors: &[Vec<usize>]) -> Vec<u128> {
    let mut live = vec![0; steps.len() + 1];
    loop {
        let mut changed = false;
        for (at, step) in steps.iter().enumerate().rev() {
            let after = successors[at].iter().fold(0, |live_there, &to| live_there | live[to]);
            let before = match step {
                Step::Get(local) => after | 1 << local,
                Step::Set(local) => after & !(1 << local),
                _ => after,
            };
            changed |= std::mem::replace(&mut live[at], before) != before;
        }
        if !changed {
            return live;
        }
    }
}

/// Disjoint sets (union-find). The smallest member represents its set.
struct UnionFind(Vec<usize>);

impl UnionFind {
    fn add(&mut self) -> usize {
        self.0.push(self.0.len());
        self.0.len() - 1
    }

    fn root(&mut self, mut of: usize) -> usize {
        while self.0[of] != of {
            self.0[of] = self.0[self.0[of]];
            of = self.0[of];
        }
        of
    }

    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        self.0[one.max(other)] = one.min(other);
    }
}

/// A context model of all code: how often each byte follows which bytes. It stands in for brotli, which would take a
/// second for each question.
#[derive(Default)]
struct Model {
    /// How often a context occurs, and how often a byte follows it, by hash.
    counts: HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>,
}

impl Model {
    /// Adds code to the counts, or removes it.
    fn count(&mut self, code: &[u8], by: i32) {
        for at in 0..code.len() {
            for context in 0..=CONTEXT {
                for hash in Model::hashes(code, at, context) {
                    let count = self.counts.entry(hash).or_default();
                    *count = count.saturating_add_signed(by);
                }
            }
        }
    }

    /// Estimates the compressed size of a byte, in bits.
    fn bits(&self, code: &[u8], at: usize) -> f64 {
        let mut probability = 1.0 / 256.0;
        for context in 0..=CONTEXT {
            let [before, with] = Model::hashes(code, at, context).map(|hash| self.counts.get(&hash).copied());
            let Some(before) = before.filter(|count| *count > 0) else { break };
            probability = (f64::from(with.unwrap_or(0)) + DOUBT * probability) / (f64::from(before) + DOUBT);
        }
        -probability.log2()
    }

    /// Returns the hash of a byte's context, and of the context with the byte.
    fn hashes(code: &[u8], at: usize, context: usize) -> [u64; 2] {
        let mixed = |value: u64| value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        let before = &code[at.saturating_sub(context)..at];
        let before = mixed(before.iter().fold(1 + context as u64, |all, &byte| all << 8 | u64::from(byte)));
        [before, mixed(before ^ u64::from(code[at]) ^ 1 << 32)]
    }
}

/// Passes on a key that is already a hash.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.0 = self.0 << 8 | u64::from(byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasm_encoder::{
        BlockType, CodeSection, Function as Body, FunctionSection, InstructionSink, Module, TypeSection,
        ValType as Type,
    };

    /// Pseudo-random numbers.
    struct Tape(u64);

    impl Tape {
        fn below(&mut self, end: u32) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 33) as u32 % end
        }
    }

    const LOCALS: u32 = 7;
    const PARAMETERS: u32 = 2;

    /// Generates statements that write locals, show them (`drop`) and jump; `global.get 0` is a condition.
    fn statements(code: &mut InstructionSink<'_>, tape: &mut Tape, depth: u32) {
        for _ in 0..2 + tape.below(4) {
            let local = tape.below(LOCALS);
            match tape.below(if depth < 4 { 16 } else { 10 }) {
                0..=2 => drop(code.i32_const(tape.below(9) as i32).local_set(local)),
                3 => drop(code.local_get(tape.below(LOCALS)).local_set(local)),
                4 => drop(code.i32_const(tape.below(9) as i32).local_tee(local).drop()),
                5..=7 => drop(code.local_get(local).drop()),
                8 => drop(code.global_get(0).br_if(tape.below(depth + 1))),
                9 if depth > 0 && tape.below(2) == 0 => match tape.below(4) {
                    0 => drop(code.return_()),
                    1 => {
                        let targets: Vec<u32> = (0..3).map(|_| tape.below(depth + 1)).collect();
                        code.global_get(0).br_table(targets, tape.below(depth + 1));
                    }
                    _ => drop(code.br(tape.below(depth + 1))),
                },
                9 => drop(code.nop()),
                kind => {
                    match kind % 3 {
                        0 => code.block(BlockType::Empty),
                        1 => code.loop_(BlockType::Empty),
                        _ => code.global_get(0).if_(BlockType::Empty),
                    };
                    statements(code, tape, depth + 1);
                    if kind % 3 == 2 && tape.below(2) == 0 {
                        code.else_();
                        statements(code, tape, depth + 1);
                    }
                    code.end();
                }
            }
        }
    }

    fn module(bodies: impl Iterator<Item = Body>) -> Vec<u8> {
        let (mut types, mut functions, mut code) =
            (TypeSection::new(), FunctionSection::new(), CodeSection::new());
        types.ty().function([Type::I32; PARAMETERS as usize], []);
        for body in bodies {
            functions.function(0);
            code.function(&body);
        }
        let mut module = Module::new();
        module.section(&types).section(&functions).section(&code);
        module.finish()
    }

    fn random_module(tape: &mut Tape) -> Vec<u8> {
        module((0..30).map(|_| {
            let mut body = Body::new([(LOCALS - PARAMETERS, Type::I32)]);
            statements(&mut body.instructions(), tape, 0);
            body.instructions().end();
            body
        }))
    }

    /// Runs all functions with conditions from a tape, and returns what they show.
    fn shown(module: &[u8], seed: u64) -> Vec<Vec<u32>> {
        let mut shown = Vec::new();
        for part in Parser::new(0).parse_all(module) {
            let Payload::CodeSectionEntry(body) = part.unwrap() else { continue };
            let operators: Vec<Operator<'_>> =
                body.get_operators_reader().unwrap().into_iter().map(Result::unwrap).collect();
            shown.push(walk(&operators, &mut Tape(seed)));
        }
        shown
    }

    fn walk(operators: &[Operator<'_>], tape: &mut Tape) -> Vec<u32> {
        // The position after the matching `end`, or after the `else` if that is wanted and comes first.
        let end_of_block = |mut at: usize, or_else: bool| {
            let mut depth = 0;
            loop {
                match operators[at] {
                    Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => depth += 1,
                    Operator::Else if depth == 0 && or_else => return at + 1,
                    Operator::End if depth == 0 => return at + 1,
                    Operator::End => depth -= 1,
                    _ => {}
                }
                at += 1;
            }
        };
        let mut locals = [0; LOCALS as usize];
        locals[..PARAMETERS as usize].copy_from_slice(&[11, 22]);
        // The target of each open label, and whether a jump leaves it open.
        let mut open: Vec<(usize, bool)> = Vec::new();
        let (mut at, mut stack, mut shown) = (0, Vec::new(), Vec::new());
        for _ in 0..400 {
            let Some(operator) = operators.get(at) else { break };
            at += 1;
            let jump = match operator {
                Operator::I32Const { value } => {
                    stack.push(*value as u32);
                    None
                }
                Operator::GlobalGet { .. } => {
                    stack.push(tape.below(3));
                    None
                }
                Operator::LocalGet { local_index } => {
                    stack.push(locals[*local_index as usize]);
                    None
                }
                Operator::LocalSet { local_index } => {
                    locals[*local_index as usize] = stack.pop().unwrap();
                    None
                }
                Operator::LocalTee { local_index } => {
                    locals[*local_index as usize] = *stack.last().unwrap();
                    None
                }
                Operator::Drop => {
                    shown.push(stack.pop().unwrap());
                    None
                }
                Operator::Block { .. } => {
                    open.push((end_of_block(at, false), false));
                    None
                }
                Operator::Loop { .. } => {
                    open.push((at, true));
                    None
                }
                Operator::If { .. } => {
                    let end = end_of_block(at, false);
                    let other = end_of_block(at, true);
                    if stack.pop() == Some(0) {
                        at = other;
                    }
                    if at != end {
                        open.push((end, false));
                    }
                    None
                }
                Operator::Else => Some(0),
                Operator::End => {
                    open.pop();
                    None
                }
                Operator::Br { relative_depth } => Some(*relative_depth),
                Operator::BrIf { relative_depth } => (stack.pop() != Some(0)).then_some(*relative_depth),
                Operator::BrTable { targets } => {
                    let labels: Vec<u32> = targets.targets().map(Result::unwrap).collect();
                    let chosen = labels.get(stack.pop().unwrap() as usize);
                    Some(chosen.copied().unwrap_or(targets.default()))
                }
                Operator::Return => break,
                Operator::Nop => None,
                other => panic!("{other:?}"),
            };
            let Some(label) = jump else { continue };
            let Some(place) = open.len().checked_sub(label as usize + 1) else { break };
            let (to, stays) = open[place];
            open.truncate(place + usize::from(stays));
            at = to;
        }
        shown
    }

    #[test]
    fn a_renumbered_module_is_another_and_shows_the_same() {
        let mut tape = Tape(0x5eed);
        for round in 1..40 {
            let module = random_module(&mut tape);
            let renumbered = renumber(&module, 2).unwrap();
            assert_ne!(renumbered, module);
            assert_eq!(renumbered.len(), module.len());
            for seed in 1..30 {
                assert_eq!(shown(&renumbered, seed), shown(&module, seed), "module {round}, tape {seed}");
            }
        }
    }

    #[test]
    fn what_stands_everywhere_is_written_with_the_same_numbers() {
        let same = |first: u32, other: u32| {
            let mut body = Body::new([(3, Type::I32)]);
            body.instructions()
                .i32_const(1)
                .local_set(first)
                .i32_const(2)
                .local_set(other)
                .local_get(first)
                .drop()
                .local_get(other)
                .drop()
                .end();
            body
        };
        let numbered = [(2, 3), (2, 3), (2, 3), (3, 2), (4, 3), (2, 4)];
        let renumbered =
            renumber(&module(numbered.into_iter().map(|(one, other)| same(one, other))), 3).unwrap();
        let functions = Function::read_all(&renumbered).unwrap();
        let codes: BTreeSet<&[u8]> =
            functions.iter().map(|function| &renumbered[function.code.clone()]).collect();
        assert_eq!(codes.len(), 1);
    }

    #[test]
    fn functions_with_long_numbers_stay_and_unknown_jumps_are_refused() {
        let mut large = Body::new([(200, Type::I32)]);
        large.instructions().i32_const(1).local_set(150).local_get(150).drop().end();
        let module_of_one = module([large].into_iter());
        assert_eq!(renumber(&module_of_one, 1).unwrap(), module_of_one);
        let mut tail = Body::new([]);
        tail.instructions().return_call(0).end();
        let error = renumber(&module([tail].into_iter()), 1).unwrap_err();
        assert!(error.to_string().contains("ReturnCall"), "{error}");
    }
}
