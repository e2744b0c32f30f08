//! The instructions of a function, and where its ways part.

use anyhow::{Context, Result, anyhow};
use wasmparser::{
    BlockType, FrameKind, FuncToValidate, FuncValidatorAllocations, FunctionBody, Operator, Parser, ValType,
    ValidPayload, Validator, ValidatorResources, WasmFeatures,
};

/// Whether what follows an instruction may run although what stands before it did not, or the other way round.
pub(crate) fn parts_ways(operator: &Operator<'_>) -> bool {
    matches!(
        operator,
        Operator::If { .. }
            | Operator::Else
            | Operator::End
            | Operator::BrIf { .. }
            | Operator::BrTable { .. }
    )
}

/// How many stretches a function has that run from their first instruction to their last or not at all.
pub(crate) fn stretches(body: &FunctionBody<'_>) -> Result<u32> {
    let mut operators = body.get_operators_reader()?;
    let mut count = 0;
    let mut begins = true;
    while !operators.eof() {
        count += u32::from(begins);
        begins = parts_ways(&operators.read()?);
    }
    Ok(count)
}

/// A block that is open at an instruction.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) gives: bool,
}

/// An instruction and what is known before it.
pub(crate) struct Step<'a> {
    pub(crate) operator: Operator<'a>,
    /// Its place in the file.
    pub(crate) offset: usize,
    /// The number of its stretch, counted in its function.
    pub(crate) stretch: u32,
    /// Whether nothing lies on the stack that its block has put there.
    pub(crate) is_bare: bool,
    /// Whether it can be reached at all.
    pub(crate) is_dead: bool,
    /// The instruction behind the last of the block that begins here, and behind its first half.
    pub(crate) end: usize,
    pub(crate) middle: Option<usize>,
}

/// A function, instruction by instruction.
pub(crate) struct Flow<'a> {
    pub(crate) steps: Vec<Step<'a>>,
    /// The types of its locals, those of its parameters first.
    pub(crate) locals: Vec<ValType>,
}

/// Reads the functions of a module for which something is asked, in their order.
pub(crate) fn flows<'a>(wasm: &'a [u8], wanted: impl Fn(u32) -> bool) -> Result<Vec<(u32, Flow<'a>)>> {
    let mut validator = Validator::new_with_features(WasmFeatures::default());
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let ValidPayload::Func(function, body) = validator.payload(&payload?)? {
            let index = function.index;
            if wanted(index) {
                found.push((index, Flow::read(function, &body)?));
            }
        }
    }
    Ok(found)
}

impl<'a> Flow<'a> {
    fn read(function: FuncToValidate<ValidatorResources>, body: &FunctionBody<'a>) -> Result<Self> {
        let mut validator = function.into_validator(FuncValidatorAllocations::default());
        let mut reader = body.get_binary_reader();
        validator.read_locals(&mut reader)?;
        let locals =
            (0..validator.len_locals()).filter_map(|local| validator.get_local_type(local)).collect();
        let mut flow = Flow { steps: Vec::new(), locals };
        let mut open = Vec::new();
        let mut operators = body.get_operators_reader()?;
        let (mut stretch, mut begins) = (0, false);
        while !operators.eof() {
            let (operator, offset) = operators.read_with_offset()?;
            stretch += u32::from(begins);
            begins = parts_ways(&operator);
            let frame = validator.get_control_frame(0).context("an instruction stands in no block")?;
            let height = usize::try_from(validator.operand_stack_height())?;
            let at = flow.steps.len();
            let (is_bare, is_dead) = (height == frame.height, frame.unreachable);
            match &operator {
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => open.push(at),
                Operator::Else => {
                    let begin = open.last().and_then(|begin| flow.steps.get_mut(*begin));
                    begin.context("`else` without `if`")?.middle = Some(at + 1);
                }
                Operator::End => {
                    // The last one ends the function.
                    if let Some(begin) = open.pop().and_then(|begin| flow.steps.get_mut(begin)) {
                        begin.end = at + 1;
                    }
                }
                _ => {}
            }
            validator.op(offset, &operator)?;
            flow.steps.push(Step { operator, offset, stretch, is_bare, is_dead, end: at + 1, middle: None });
        }
        Ok(flow)
    }

    pub(crate) fn step(&self, at: usize) -> Result<&Step<'a>> {
        self.steps.get(at).ok_or_else(|| anyhow!("there is no instruction {at}"))
    }
}

impl Frame {
    /// The block that an instruction opens.
    pub(crate) fn of(operator: &Operator<'_>) -> Option<Self> {
        let frame = |kind, blockty: &BlockType| Some(Frame { kind, gives: *blockty != BlockType::Empty });
        match operator {
            Operator::Block { blockty } => frame(FrameKind::Block, blockty),
            Operator::Loop { blockty } => frame(FrameKind::Loop, blockty),
            Operator::If { blockty } => frame(FrameKind::If, blockty),
            _ => None,
        }
    }

    /// Whether a branch to it carries something.
    pub(crate) fn takes(self) -> bool {
        self.gives && self.kind != FrameKind::Loop
    }
}
