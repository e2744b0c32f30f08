//! The body of a function that was a region of another.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{BlockType, Function, Instruction};
use wasmparser::Operator;

use super::{Outliner, Region};
use crate::code::{Same, wrong};
use crate::flow::Frame;

/// A region on its way to be the body of a function.
pub(super) struct Body<'b, 'f, 'a> {
    pub(super) outliner: &'b Outliner<'f, 'a>,
    pub(super) region: &'b Region,
    /// The new places of its locals.
    pub(super) places: &'b BTreeMap<u32, u32>,
    /// The place of the number that says how it was left; what it returns stands behind it.
    pub(super) spare: u32,
}

impl Body<'_, '_, '_> {
    /// All that is left to do of the function around it: it returns what that would.
    pub(super) fn write_last(&self, function: &mut Function) -> Result<()> {
        self.instructions(function, |instruction, depth| match instruction {
            Instruction::Br(target) if target >= depth => vec![Instruction::Return],
            Instruction::BrIf(target) => vec![Instruction::BrIf(target.min(depth))],
            Instruction::BrTable(targets, last) => {
                let targets: Vec<u32> = targets.iter().map(|target| (*target).min(depth)).collect();
                vec![Instruction::BrTable(targets.into(), last.min(depth))]
            }
            other => vec![other],
        })
    }

    /// Each way out is the end of a block; the outermost is that of all.
    pub(super) fn write(&self, function: &mut Function) -> Result<()> {
        let Region { exits, .. } = self.region;
        let outer: u32 = u32::try_from(exits.targets.len() + usize::from(exits.returns))?;
        for _ in 0..=outer {
            function.instruction(&Instruction::Block(BlockType::Empty));
        }
        let way = |target: u32, depth: u32| match target.checked_sub(depth) {
            None => target,
            Some(target) => {
                let place = exits.targets.iter().position(|known| *known == target);
                depth + place.map_or(outer - 1, |place| u32::try_from(place).unwrap_or(u32::MAX))
            }
        };
        let returned: Vec<Instruction<'static>> = match exits.differ() {
            true => (self.spare + 1..)
                .take(self.outliner.signature.gives.len())
                .map(Instruction::LocalSet)
                .collect(),
            false => Vec::new(),
        };
        self.instructions(function, |instruction, depth| match instruction {
            Instruction::Return => {
                let back = Instruction::Br(depth + outer - 1);
                returned.iter().rev().cloned().chain([back]).collect()
            }
            Instruction::Br(target)
                if target.checked_sub(depth).is_some_and(|target| !exits.targets.contains(&target)) =>
            {
                let back = Instruction::Br(depth + outer - 1);
                returned.iter().rev().cloned().chain([back]).collect()
            }
            Instruction::Br(target) => vec![Instruction::Br(way(target, depth))],
            Instruction::BrIf(target) => vec![Instruction::BrIf(way(target, depth))],
            Instruction::BrTable(targets, last) => {
                let targets: Vec<u32> = targets.iter().map(|target| way(*target, depth)).collect();
                vec![Instruction::BrTable(targets.into(), way(last, depth))]
            }
            other => vec![other],
        })?;
        self.ways_out(outer, function)
    }

    /// Ends the blocks, each with the number of its way out, and gives back what the function around it is told.
    fn ways_out(&self, outer: u32, function: &mut Function) -> Result<()> {
        let Region { exits, changed, .. } = self.region;
        // The number is 0 if it gets to its end.
        if outer > 0 {
            function.instruction(&if exits.falls {
                Instruction::Br(outer)
            } else {
                Instruction::Unreachable
            });
        }
        for place in 0..outer {
            function.instruction(&Instruction::End);
            if exits.differ() {
                function
                    .instruction(&Instruction::I32Const(exits.number(usize::try_from(place)?)?))
                    .instruction(&Instruction::LocalSet(self.spare));
            }
            function.instruction(&Instruction::Br(outer - 1 - place));
        }
        function.instruction(&Instruction::End);
        if exits.differ() {
            function.instruction(&Instruction::LocalGet(self.spare));
        }
        if exits.returns {
            for local in (self.spare + 1..).take(self.outliner.signature.gives.len()) {
                function.instruction(&Instruction::LocalGet(local));
            }
        }
        for local in changed {
            let place = self.places.get(local).context("a local is lost")?;
            function.instruction(&Instruction::LocalGet(*place));
        }
        Ok(())
    }

    /// Writes the instructions, each as `change` has it that is told how many blocks of the region are around it.
    fn instructions(
        &self,
        function: &mut Function,
        change: impl Fn(Instruction<'static>, u32) -> Vec<Instruction<'static>>,
    ) -> Result<()> {
        let mut depth = 0;
        let steps = self.outliner.flow.steps.get(self.region.begin..self.region.end);
        for step in steps.context("a region is cut short")? {
            let place = |local: &u32| self.places.get(local).copied().context("a local is lost");
            let changed = match &step.operator {
                Operator::LocalGet { local_index } => vec![Instruction::LocalGet(place(local_index)?)],
                Operator::LocalSet { local_index } => vec![Instruction::LocalSet(place(local_index)?)],
                Operator::LocalTee { local_index } => vec![Instruction::LocalTee(place(local_index)?)],
                Operator::Br { relative_depth } => change(Instruction::Br(*relative_depth), depth),
                Operator::BrIf { relative_depth } => change(Instruction::BrIf(*relative_depth), depth),
                Operator::BrTable { targets } => {
                    let all: Vec<u32> = targets.targets().collect::<Result<_, _>>()?;
                    change(Instruction::BrTable(all.into(), targets.default()), depth)
                }
                Operator::Return => change(Instruction::Return, depth),
                operator => {
                    if Frame::of(operator).is_some() {
                        depth += 1;
                    } else if matches!(operator, Operator::End) {
                        depth -= 1;
                    }
                    function.instruction(&Same.instruction(operator.clone()).map_err(wrong)?);
                    continue;
                }
            };
            for instruction in &changed {
                function.instruction(instruction);
            }
        }
        Ok(())
    }
}
