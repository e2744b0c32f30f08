//! What did not run of functions that did: it becomes functions of its own, which may be in another part.

mod body;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{BlockType, CodeSection, Function, Instruction, ValType};
use wasmparser::{CompositeInnerType, FrameKind, Operator};

use body::Body;

use crate::code::{Same, Types, wrong};
use crate::flow::{Flow, Frame, Step, flows};
use crate::read::Module;
use crate::split::{Part, write};

impl Module<'_> {
    /// Returns a module that does the same, in which everything of the functions that ran that did not run itself is a
    /// function of its own, if it has `least` bytes more than its call passes. `ran` has the stretches that a traced copy
    /// noted.
    ///
    /// # Errors
    /// If the code has instructions that this crate does not know.
    pub fn outlined(&self, ran: &BTreeSet<u32>, least: usize) -> Result<Vec<u8>> {
        let first = self.first_stretches()?;
        let imported = u32::try_from(self.imports.len())?;
        let first_of = |function: u32| {
            let own = function.checked_sub(imported).and_then(|own| usize::try_from(own).ok());
            own.and_then(|own| first.get(own)).copied()
        };
        let did_run = |function| first_of(function).is_some_and(|first| ran.contains(&first));
        let mut changed: BTreeMap<u32, Flow<'_>> = flows(self.wasm, did_run)?.into_iter().collect();
        let mut made = Made { next: self.function_count(), ..Made::default() };
        let mut code = CodeSection::new();
        for (function, body) in (imported..).zip(&self.bodies) {
            let Some(flow) = changed.remove(&function) else {
                code.raw(body.as_bytes());
                continue;
            };
            let first = first_of(function).unwrap_or(u32::MAX);
            let signature = self.signature(function)?;
            let is_cold = |step: &Step<'_>| !ran.contains(&(first + step.stretch));
            let outliner = Outliner { flow: &flow, signature, is_cold: &is_cold, least };
            code.function(&outliner.rewrite(&mut made)?);
        }
        for function in &made.functions {
            code.function(function);
        }
        let known = u32::try_from(self.types.len())?;
        let more = made.of_type.iter().map(|more| known + more);
        let functions = self.functions.iter().skip(self.imports.len()).copied().chain(more).collect();
        let part = Part {
            types: Types::All,
            more_types: made.types,
            imports: self.own_imports(&mut Types::All)?,
            functions,
            tables: self.own_tables(None)?,
            globals: self.own_globals()?,
            exports: self.own_exports(|index| index)?,
            places: self.places.clone(),
            code,
            memory: true,
            data: self.own_data()?,
        };
        write(self, part)
    }

    fn signature(&self, function: u32) -> Result<Signature> {
        let group = self.types.get(usize::try_from(self.type_of(function)?)?).context("no such type")?;
        let found = group.types().next().context("a type is empty")?;
        let CompositeInnerType::Func(found) = &found.composite_type.inner else {
            anyhow::bail!("the type of a function is that of something else");
        };
        Ok(Signature { takes: types_of(found.params())?, gives: types_of(found.results())? })
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Signature {
    pub(crate) takes: Vec<ValType>,
    pub(crate) gives: Vec<ValType>,
}

fn types_of(types: &[wasmparser::ValType]) -> Result<Vec<ValType>> {
    types.iter().map(|each| Same.val_type(*each).map_err(wrong)).collect()
}

/// The functions that are made of what did not run.
#[derive(Default)]
struct Made {
    next: u32,
    functions: Vec<Function>,
    /// Their types, as places in `types`.
    of_type: Vec<u32>,
    types: Vec<Signature>,
}

impl Made {
    /// Adds a function. Returns its index.
    fn add(&mut self, signature: Signature, function: Function) -> Result<u32> {
        let known = self.types.iter().position(|known| *known == signature);
        let place = known.unwrap_or_else(|| {
            self.types.push(signature);
            self.types.len() - 1
        });
        self.of_type.push(u32::try_from(place)?);
        self.functions.push(function);
        self.next += 1;
        Ok(self.next - 1)
    }
}

/// Instructions that did not run, and that leave and take nothing on the stack.
struct Region {
    begin: usize,
    end: usize,
    exits: Exits,
    /// The locals that it is given, and those of them that it gives back.
    given: Vec<u32>,
    changed: Vec<u32>,
}

/// How control leaves a region.
#[derive(Default)]
struct Exits {
    /// The blocks around it, counted from the innermost, to which it branches.
    targets: Vec<u32>,
    returns: bool,
    /// Whether it may get to its end.
    falls: bool,
}

impl Exits {
    /// Whether the function around it has nothing left to do.
    fn ends_all(&self) -> bool {
        self.targets.is_empty() && !self.falls
    }

    fn ways(&self) -> usize {
        self.targets.len() + usize::from(self.returns) + usize::from(self.falls)
    }

    /// Whether it has to say how it was left.
    fn differ(&self) -> bool {
        self.ways() > 1
    }

    /// The number of an exit in what it says: the end, the targets, the return.
    fn number(&self, place: usize) -> Result<i32> {
        Ok(i32::try_from(place + usize::from(self.falls))?)
    }
}

struct Outliner<'f, 'a> {
    flow: &'f Flow<'a>,
    signature: Signature,
    is_cold: &'f dyn Fn(&Step<'_>) -> bool,
    least: usize,
}

impl Outliner<'_, '_> {
    /// Writes the function without what did not run of it.
    fn rewrite(&self, made: &mut Made) -> Result<Function> {
        let mut found = Vec::new();
        self.level(0, self.flow.steps.len().saturating_sub(1), &mut Vec::new(), &mut found)?;
        found.sort_by_key(|region| region.begin);
        let mut locals = types_of(&self.flow.locals)?.split_off(self.signature.takes.len());
        // How a region was left, and what it returns.
        let spare = u32::try_from(self.flow.locals.len())?;
        locals.push(ValType::I32);
        locals.extend(&self.signature.gives);
        if !found.iter().any(|region| region.exits.differ()) {
            locals.truncate(locals.len() - 1 - self.signature.gives.len());
        }
        let mut function = Function::new_with_locals_types(locals);
        let mut at = 0;
        for region in &found {
            self.copy(at, region.begin, &mut function)?;
            let called = self.make(region, made)?;
            self.call(region, called, spare, &mut function)?;
            at = region.end;
        }
        self.copy(at, self.flow.steps.len(), &mut function)?;
        Ok(function)
    }

    fn copy(&self, begin: usize, end: usize, function: &mut Function) -> Result<()> {
        for step in self.flow.steps.get(begin..end).context("a region is cut short")? {
            function.instruction(&Same.instruction(step.operator.clone()).map_err(wrong)?);
        }
        Ok(())
    }

    // ---- finding them

    /// Looks through the instructions of one block, and through the blocks in it that ran.
    fn level(
        &self,
        begin: usize,
        end: usize,
        frames: &mut Vec<Frame>,
        found: &mut Vec<Region>,
    ) -> Result<()> {
        // A statement leaves the stack as it was.
        let (mut statement, mut is_cold, mut inner) = (begin, true, Vec::new());
        let mut run = None;
        let mut at = begin;
        loop {
            let step = self.flow.step(at)?;
            if at > statement && step.is_bare {
                if is_cold {
                    run.get_or_insert(statement);
                } else {
                    self.add(run.take(), statement, frames, found)?;
                    self.blocks(&inner, frames, found)?;
                }
                (statement, is_cold) = (at, true);
                inner.clear();
            }
            if at >= end || step.is_dead {
                break;
            }
            if Frame::of(&step.operator).is_some() {
                inner.push(at);
            }
            let whole = self.flow.steps.get(at..step.end).context("a block has no end")?;
            is_cold &= whole.iter().all(self.is_cold);
            at = step.end;
        }
        self.add(run, statement, frames, found)?;
        self.blocks(&inner, frames, found)
    }

    fn blocks(&self, blocks: &[usize], frames: &mut Vec<Frame>, found: &mut Vec<Region>) -> Result<()> {
        for begin in blocks {
            let step = self.flow.step(*begin)?;
            frames.extend(Frame::of(&step.operator));
            self.level(begin + 1, step.middle.unwrap_or(step.end) - 1, frames, found)?;
            if let Some(middle) = step.middle {
                self.level(middle, step.end - 1, frames, found)?;
            }
            frames.pop();
        }
        Ok(())
    }

    /// Adds a region, if it can be a function and is worth it.
    fn add(&self, begin: Option<usize>, end: usize, frames: &[Frame], found: &mut Vec<Region>) -> Result<()> {
        let Some(begin) = begin else { return Ok(()) };
        let Some(exits) = self.exits(begin, end, frames)? else { return Ok(()) };
        let is_repeated = frames.iter().any(|frame| frame.kind == FrameKind::Loop);
        let (given, written) = self.locals(begin, end, is_repeated)?;
        let changed = if exits.ends_all() { Vec::new() } else { written };
        let size = self.flow.step(end)?.offset - self.flow.step(begin)?.offset;
        if size > self.least + 2 * (given.len() + changed.len()) + 6 * exits.ways() {
            found.push(Region { begin, end, exits, given, changed });
        }
        Ok(())
    }

    /// How control leaves these instructions. Nothing, if it does so in a way that a function cannot tell.
    fn exits(&self, begin: usize, end: usize, frames: &[Frame]) -> Result<Option<Exits>> {
        let mut exits = Exits { falls: !self.flow.step(end)?.is_dead, ..Exits::default() };
        let mut depth = 0;
        let gives = !self.signature.gives.is_empty();
        let mut targets = BTreeSet::new();
        for step in self.flow.steps.get(begin..end).context("a region is cut short")? {
            let (branches, is_plain): (Vec<u32>, bool) = match &step.operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => {
                    depth += 1;
                    continue;
                }
                Operator::End => {
                    depth -= 1;
                    continue;
                }
                Operator::Return => {
                    exits.returns = true;
                    continue;
                }
                Operator::Br { relative_depth } => (vec![*relative_depth], true),
                Operator::BrIf { relative_depth } => (vec![*relative_depth], false),
                Operator::BrTable { targets } => {
                    (targets.targets().chain([Ok(targets.default())]).collect::<Result<_, _>>()?, false)
                }
                Operator::ReturnCall { .. }
                | Operator::ReturnCallIndirect { .. }
                | Operator::BrOnNull { .. }
                | Operator::BrOnNonNull { .. } => return Ok(None),
                _ => continue,
            };
            for target in branches.into_iter().filter_map(|target: u32| target.checked_sub(depth)) {
                let place = usize::try_from(target)?;
                if place >= frames.len() {
                    if gives && !is_plain {
                        return Ok(None);
                    }
                    exits.returns = true;
                } else if frames.iter().rev().nth(place).is_some_and(|frame| frame.takes()) {
                    return Ok(None);
                } else {
                    targets.insert(target);
                }
            }
        }
        exits.targets = targets.into_iter().collect();
        Ok(Some(exits))
    }

    /// The locals that these instructions share with the others of the function: all, and those that are written here.
    fn locals(&self, begin: usize, end: usize, is_repeated: bool) -> Result<(Vec<u32>, Vec<u32>)> {
        let (mut inside, mut outside, mut written) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut depth = 0;
        for (at, step) in self.flow.steps.iter().enumerate() {
            let is_inside = (begin..end).contains(&at);
            let (local, is_written) = match &step.operator {
                Operator::LocalGet { local_index } => (*local_index, false),
                Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => {
                    (*local_index, true)
                }
                operator => {
                    if is_inside && Frame::of(operator).is_some() {
                        depth += 1;
                    } else if is_inside && matches!(operator, Operator::End) {
                        depth -= 1;
                    }
                    continue;
                }
            };
            if !is_inside {
                outside.insert(local);
                continue;
            }
            // What is written first, wherever the region is entered, does not come from outside.
            inside.entry(local).or_insert(is_written && depth == 0);
            if is_written {
                written.insert(local);
            }
        }
        let parameters = u32::try_from(self.signature.takes.len())?;
        let is_shared = |(local, is_fresh): (&u32, &bool)| {
            let is_own = *local >= parameters && !outside.contains(local);
            (!is_own || (is_repeated && !is_fresh)).then_some(*local)
        };
        let given: Vec<u32> = inside.iter().filter_map(is_shared).collect();
        let changed = given.iter().copied().filter(|local| written.contains(local)).collect();
        Ok((given, changed))
    }

    // ---- writing them

    fn type_of(&self, local: u32) -> Result<ValType> {
        let found = self.flow.locals.get(usize::try_from(local)?).context("there is no such local")?;
        Same.val_type(*found).map_err(wrong)
    }

    /// Makes a function of a region. Returns its index.
    fn make(&self, region: &Region, made: &mut Made) -> Result<u32> {
        let Region { exits, given, changed, .. } = region;
        let takes: Vec<ValType> = given.iter().map(|local| self.type_of(*local)).collect::<Result<_>>()?;
        let gives = if exits.ends_all() {
            self.signature.gives.clone()
        } else {
            let said = exits.differ().then_some(ValType::I32);
            let returned = exits.returns.then_some(&self.signature.gives).into_iter().flatten().copied();
            let changed = changed.iter().map(|local| self.type_of(*local)).collect::<Result<Vec<_>>>()?;
            said.into_iter().chain(returned).chain(changed).collect()
        };
        // Its locals: what it is given, what only it has, how it is left and what it returns.
        let mut places: BTreeMap<u32, u32> = given.iter().copied().zip(0..).collect();
        let mut locals = Vec::new();
        for step in self.flow.steps.get(region.begin..region.end).context("a region is cut short")? {
            if let Operator::LocalGet { local_index }
            | Operator::LocalSet { local_index }
            | Operator::LocalTee { local_index } = step.operator
                && !places.contains_key(&local_index)
            {
                places.insert(local_index, u32::try_from(given.len() + locals.len())?);
                locals.push(self.type_of(local_index)?);
            }
        }
        let spare = u32::try_from(given.len() + locals.len())?;
        if exits.differ() && !exits.ends_all() {
            locals.push(ValType::I32);
            locals.extend(&self.signature.gives);
        }
        let mut function = Function::new_with_locals_types(locals);
        let body = Body { outliner: self, region, places: &places, spare };
        if exits.ends_all() { body.write_last(&mut function) } else { body.write(&mut function) }?;
        function.instruction(&Instruction::End);
        made.add(Signature { takes, gives }, function)
    }

    /// Calls the function that a region has become, and goes on where it was left.
    fn call(&self, region: &Region, called: u32, spare: u32, function: &mut Function) -> Result<()> {
        let Region { exits, given, changed, .. } = region;
        for local in given {
            function.instruction(&Instruction::LocalGet(*local));
        }
        function.instruction(&Instruction::Call(called));
        if exits.ends_all() {
            function.instruction(&Instruction::Return);
            return Ok(());
        }
        for local in changed.iter().rev() {
            function.instruction(&Instruction::LocalSet(*local));
        }
        let returned: Vec<u32> = (spare + 1..).take(self.signature.gives.len()).collect();
        if exits.returns {
            for local in returned.iter().rev() {
                function.instruction(&Instruction::LocalSet(*local));
            }
        }
        if !exits.differ() {
            if let Some(target) = exits.targets.first() {
                function.instruction(&Instruction::Br(*target));
            }
            return Ok(());
        }
        function.instruction(&Instruction::LocalSet(spare));
        if exits.returns {
            go_back(exits, spare, &returned, function)?;
        }
        go_on(exits, spare, function)
    }
}

/// Returns, if the region said so.
fn go_back(exits: &Exits, spare: u32, returned: &[u32], function: &mut Function) -> Result<()> {
    let number = exits.number(exits.targets.len())?;
    function
        .instruction(&Instruction::LocalGet(spare))
        .instruction(&Instruction::I32Const(number))
        .instruction(&Instruction::I32Eq)
        .instruction(&Instruction::If(BlockType::Empty));
    for local in returned {
        function.instruction(&Instruction::LocalGet(*local));
    }
    function.instruction(&Instruction::Return).instruction(&Instruction::End);
    Ok(())
}

/// Branches to where the region said, or goes on behind it.
fn go_on(exits: &Exits, spare: u32, function: &mut Function) -> Result<()> {
    match (exits.targets.as_slice(), exits.falls) {
        ([], _) => {}
        ([target], false) => {
            function.instruction(&Instruction::Br(*target));
        }
        ([target], true) => {
            function.instruction(&Instruction::LocalGet(spare)).instruction(&Instruction::BrIf(*target));
        }
        (targets, falls) => {
            // Behind the block around the table stands what follows the region.
            let all: Vec<u32> =
                falls.then_some(0).into_iter().chain(targets.iter().map(|target| target + 1)).collect();
            let (last, others) = all.split_last().context("a table without targets")?;
            function
                .instruction(&Instruction::Block(BlockType::Empty))
                .instruction(&Instruction::LocalGet(spare))
                .instruction(&Instruction::BrTable(others.into(), *last))
                .instruction(&Instruction::End);
            if !falls {
                function.instruction(&Instruction::Unreachable);
            }
        }
    }
    Ok(())
}
