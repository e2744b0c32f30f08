//! Which constants each part needs. An address in the code does not say whose data is meant, but the linker knows: with
//! `--emit-relocs` it leaves a list of the objects (texts, tables) that it placed, and of every place in code and data at
//! which it wrote the address of one.
//!
//! wasm-opt comes after the linker and drops that list. It moves no data, so an address that the linker wrote still means the
//! same objects; one that it did not write was computed from such by wasm-opt, and is taken to mean all objects around it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anyhow::{Context, Result, bail};
use wasm_encoder::DataSection;
use wasm_encoder::reencode::{self, Reencode};
use wasmparser::{
    ConstExpr, Data, DataKind, DefinedDataSymbol, KnownCustom, Linking, LinkingSectionReader, MemArg, Name,
    NameSectionReader, Naming, Operator, Parser, Payload, RelocationEntry, RelocationType, SymbolFlags,
    SymbolInfo,
};

use crate::code::wrong;
use crate::read::Module;
use crate::split::FIRST_PART;

/// The segment of what nothing ever changes; see the linker's names of segments.
const CONSTANT: &str = ".rodata";
/// How far what wasm-opt computed may be from the object that is meant: no index that it could have added in is larger.
const NEAR: u32 = 1024;
/// How many bytes a segment costs, about.
const BRIDGED: usize = 8;

/// Chooses the part of a constant among those that use it.
pub type Home<'h> = dyn Fn(&BTreeSet<usize>) -> usize + 'h;

/// The constants of a module that can be in any part: no code changes them.
#[derive(Default)]
pub struct Constants {
    /// Where each stands, in order.
    objects: Vec<Range<u32>>,
    /// Which objects the linker meant by an address.
    meant: BTreeMap<u32, BTreeSet<usize>>,
    /// Which objects an object points to.
    held: BTreeMap<usize, BTreeSet<usize>>,
    /// What variables point to.
    pinned: BTreeSet<usize>,
}

impl Constants {
    /// Reads what the linker says about a module that it linked with `--emit-relocs`.
    ///
    /// # Errors
    /// If it says nothing.
    pub fn read(linked: &[u8]) -> Result<Self> {
        let linked = Linked::read(linked)?;
        let mut constants = Constants { objects: linked.constants()?, ..Self::default() };
        for entry in &linked.in_code {
            let Some((object, address)) = constants.target(&linked, entry)? else { continue };
            constants.meant.entry(address).or_default().insert(object);
        }
        for entry in &linked.in_data {
            let Some((object, address)) = constants.target(&linked, entry)? else { continue };
            let (place, written) = linked.data_at(entry.offset)?;
            if written != address {
                bail!("the linker wrote {written} where its list says {address}");
            }
            match constants.at(place) {
                Some(holder) => constants.held.entry(holder).or_default().insert(object),
                None => constants.pinned.insert(object),
            };
        }
        Ok(constants)
    }

    /// The constant that is meant by what the linker wrote, and the address that it wrote.
    fn target(&self, linked: &Linked<'_>, entry: &RelocationEntry) -> Result<Option<(usize, u32)>> {
        use RelocationType::{MemoryAddrI32, MemoryAddrLeb, MemoryAddrSleb};
        if !matches!(entry.ty, MemoryAddrI32 | MemoryAddrLeb | MemoryAddrSleb) {
            return Ok(None);
        }
        let symbol = linked.symbols.get(usize::try_from(entry.index)?).context("there is no such symbol")?;
        let Some(Symbol { address, .. }) = symbol else { return Ok(None) };
        let written = u32::try_from(i64::from(*address) + entry.addend)?;
        Ok(self.at(*address).map(|object| (object, written)))
    }

    /// The object that stands at an address.
    fn at(&self, address: u32) -> Option<usize> {
        let after = self.objects.partition_point(|object| object.start <= address);
        let object = after.checked_sub(1)?;
        self.objects.get(object).filter(|found| found.contains(&address)).map(|_| object)
    }

    /// The objects that may be meant by a number in the code.
    fn meant_by(&self, address: u32) -> BTreeSet<usize> {
        let known = self.meant.get(&address);
        let near = if known.is_some() { 0 } else { NEAR };
        let first = self.objects.partition_point(|object| object.end <= address.saturating_sub(near));
        let last = self.objects.partition_point(|object| object.start <= address.saturating_add(near));
        (first..last).chain(known.into_iter().flatten().copied()).collect()
    }

    /// Gives each object to the part that `home` chooses among those whose functions may reach it. What none reaches, and
    /// what variables point to, stays in the first.
    pub(crate) fn homes(
        &self,
        module: &Module<'_>,
        part_of: impl Fn(u32) -> usize,
        home: &Home<'_>,
    ) -> Result<Homes> {
        let mut users: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); self.objects.len()];
        for function in module.imported()..module.function_count() {
            let mut ahead: Vec<usize> = Vec::new();
            for address in addresses(module, function)? {
                ahead.extend(self.meant_by(address));
            }
            self.reach(ahead, part_of(function), &mut users);
        }
        self.reach(self.pinned.iter().copied().collect(), FIRST_PART, &mut users);
        let homes = users.iter().map(|users| if users.is_empty() { FIRST_PART } else { home(users) });
        Ok(Homes(self.objects.iter().cloned().zip(homes).collect()))
    }

    /// Notes that a part uses these objects, and what they point to.
    fn reach(&self, mut ahead: Vec<usize>, part: usize, users: &mut [BTreeSet<usize>]) {
        while let Some(object) = ahead.pop() {
            if users.get_mut(object).is_some_and(|users| users.insert(part)) {
                ahead.extend(self.held.get(&object).into_iter().flatten());
            }
        }
    }
}

/// Where each constant goes.
pub(crate) struct Homes(Vec<(Range<u32>, usize)>);

impl Homes {
    /// The data of a part: its constants, and in the first part everything else.
    pub(crate) fn data_of(&self, module: &Module<'_>, part: usize) -> Result<DataSection> {
        let mut section = DataSection::new();
        for data in &module.data {
            let start = address_of(data)?;
            let mut homes = vec![FIRST_PART; data.data.len()];
            let end = start + u32::try_from(data.data.len())?;
            for (object, home) in &self.0 {
                let (from, to) =
                    (object.start.clamp(start, end) - start, object.end.clamp(start, end) - start);
                if let Some(places) = homes.get_mut(usize::try_from(from)?..usize::try_from(to)?) {
                    places.fill(*home);
                }
            }
            for run in runs(&homes, data.data, part) {
                let address = start + u32::try_from(run.start)?;
                let bytes = data.data.get(run).unwrap_or_default();
                section.active(
                    0,
                    &wasm_encoder::ConstExpr::i32_const(address.cast_signed()),
                    bytes.iter().copied(),
                );
            }
        }
        Ok(section)
    }
}

/// Which bytes a part sets. Memory is zero without that; and a few bytes that are another part's are cheaper than a segment of
/// their own for what follows them.
fn runs(homes: &[usize], bytes: &[u8], part: usize) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, (home, byte)) in homes.iter().zip(bytes).enumerate() {
        if *home != part || *byte == 0 {
            continue;
        }
        match runs.last_mut() {
            Some(last) if at - last.end <= BRIDGED => last.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// The numbers in the code of a function that may be addresses.
fn addresses(module: &Module<'_>, function: u32) -> Result<BTreeSet<u32>> {
    let mut numbers = Numbers::default();
    for operator in module.body(function)?.get_operators_reader()? {
        match operator? {
            Operator::I32Const { value } => {
                numbers.0.insert(value.cast_unsigned());
            }
            operator => {
                numbers.instruction(operator).map_err(wrong)?;
            }
        }
    }
    Ok(numbers.0)
}

/// Collects the fixed parts of the addresses of loads and stores.
#[derive(Default)]
struct Numbers(BTreeSet<u32>);

impl Reencode for Numbers {
    type Error = anyhow::Error;

    fn mem_arg(&mut self, arg: MemArg) -> Result<wasm_encoder::MemArg, reencode::Error<anyhow::Error>> {
        self.0.extend(u32::try_from(arg.offset));
        reencode::utils::mem_arg(self, arg)
    }
}

/// What the linker left in its module.
struct Linked<'a> {
    segments: Vec<Segment<'a>>,
    /// What was defined of its data, by the numbers of the symbols.
    symbols: Vec<Option<Symbol>>,
    in_code: Vec<RelocationEntry>,
    in_data: Vec<RelocationEntry>,
}

/// A segment as the linker placed it.
struct Segment<'a> {
    is_constant: bool,
    /// Where its bytes stand in the section of data.
    offset: usize,
    address: u32,
    bytes: &'a [u8],
}

struct Symbol {
    address: u32,
    size: u32,
}

impl<'a> Linked<'a> {
    fn read(linked: &'a [u8]) -> Result<Self> {
        let mut found =
            Linked { segments: Vec::new(), symbols: Vec::new(), in_code: Vec::new(), in_data: Vec::new() };
        let mut symbols = Vec::new();
        for payload in Parser::new(0).parse_all(linked) {
            match payload? {
                Payload::DataSection(section) => {
                    let start = section.range().start;
                    found.segments = section
                        .into_iter()
                        .map(|data| Segment::read(&data?, start))
                        .collect::<Result<_>>()?;
                }
                Payload::CustomSection(section) => match (section.as_known(), section.name()) {
                    (KnownCustom::Linking(linking), _) => symbols = symbols_of(&linking)?,
                    (KnownCustom::Reloc(list), "reloc.CODE") => {
                        found.in_code = list.entries().into_iter().collect::<Result<_, _>>()?
                    }
                    (KnownCustom::Reloc(list), "reloc.DATA") => {
                        found.in_data = list.entries().into_iter().collect::<Result<_, _>>()?
                    }
                    (KnownCustom::Name(names), _) => found.mark_constants(names)?,
                    _ => {}
                },
                _ => {}
            }
        }
        found.symbols = symbols.into_iter().map(|symbol| found.place(symbol?)).collect();
        Ok(found)
    }

    fn mark_constants(&mut self, names: NameSectionReader<'_>) -> Result<()> {
        for name in names {
            let Name::Data(names) = name? else { continue };
            for name in names {
                let Naming { index, name } = name?;
                let segment = self.segments.get_mut(usize::try_from(index)?);
                segment.context("there is no such segment")?.is_constant = name == CONSTANT;
            }
        }
        Ok(())
    }

    fn place(&self, symbol: DefinedDataSymbol) -> Option<Symbol> {
        let segment = self.segments.get(usize::try_from(symbol.index).ok()?)?;
        Some(Symbol { address: segment.address + symbol.offset, size: symbol.size })
    }

    /// Where the constants stand, in order. Those that share bytes are one.
    fn constants(&self) -> Result<Vec<Range<u32>>> {
        let Some(segment) = self.segments.iter().find(|segment| segment.is_constant) else {
            bail!("the linker named no segment of constants");
        };
        let end = segment.address + u32::try_from(segment.bytes.len())?;
        let mut all: Vec<Range<u32>> = self
            .symbols
            .iter()
            .flatten()
            .filter(|symbol| symbol.size > 0 && (segment.address..end).contains(&symbol.address))
            .map(|symbol| symbol.address..symbol.address + symbol.size)
            .collect();
        all.sort_unstable_by_key(|object| object.start);
        let mut objects: Vec<Range<u32>> = Vec::new();
        for object in all {
            match objects.last_mut() {
                Some(last) if object.start < last.end => last.end = last.end.max(object.end),
                _ => objects.push(object),
            }
        }
        Ok(objects)
    }

    /// The address of a place in the section of data, and the address that is written there.
    fn data_at(&self, offset: u32) -> Result<(u32, u32)> {
        let offset = usize::try_from(offset)?;
        let found = self.segments.iter().rev().find(|segment| segment.offset <= offset);
        let segment = found.context("the linker names a place outside of the data")?;
        let at = offset - segment.offset;
        let bytes = segment.bytes.get(at..).and_then(|bytes| bytes.first_chunk());
        let written = u32::from_le_bytes(*bytes.context("the linker names a place outside of the data")?);
        Ok((segment.address + u32::try_from(at)?, written))
    }
}

impl<'a> Segment<'a> {
    fn read(data: &Data<'a>, section: usize) -> Result<Self> {
        let offset = data.range.end - data.data.len() - section;
        Ok(Segment { is_constant: false, offset, address: address_of(data)?, bytes: data.data })
    }
}

fn symbols_of<'a>(linking: &LinkingSectionReader<'a>) -> Result<Vec<Option<DefinedDataSymbol>>> {
    let mut symbols = Vec::new();
    for part in linking.subsections() {
        let Linking::SymbolTable(table) = part? else { continue };
        for symbol in table {
            symbols.push(match symbol? {
                SymbolInfo::Data { symbol, flags, .. } if !flags.contains(SymbolFlags::ABSOLUTE) => symbol,
                _ => None,
            });
        }
    }
    Ok(symbols)
}

/// Where a segment stands in the memory.
pub(crate) fn address_of(data: &Data<'_>) -> Result<u32> {
    let DataKind::Active { offset_expr, .. } = &data.kind else { bail!("a segment of data is passive") };
    number(offset_expr)
}

/// A constant that is a number.
pub(crate) fn number(expression: &ConstExpr<'_>) -> Result<u32> {
    let Operator::I32Const { value } = expression.get_operators_reader().read()? else {
        bail!("a constant is not a number");
    };
    Ok(value.cast_unsigned())
}
