//! Stable names of effects. A name says which effect of a run it is, without the ids of providers: the same run, lived
//! again, has the same names. Tapes use them, and so can engines that store what an effect has answered.

use crate::data::table::Table;
use crate::data::text;
use crate::host::ports::HookCall;
use crate::words::message::ToolCallBlock;

use super::input::Queue;
use super::output::{Effect, EffectId};
use super::phase::Phase;
use super::state::LoopState;

/// The longest name, in bytes. Engines that store steps by their names take 256 at most.
const LONGEST: usize = 200;

/// The longest part of a tool's name in the name of an effect, in bytes.
const LONGEST_TOOL: usize = 64;

/// Gives the effects of one run their names, in the order in which they start.
///
/// | name | effect |
/// |---|---|
/// | `t3/choose`, `t3/transform`, `t3/compact` | what the host prepares in the fourth turn |
/// | `t3/model`, `t3/model.2` | its first and its second call of a model |
/// | `t3/hook/before_inference` | its hooks of a stage |
/// | `t3/approve/0`, `t3/tool/0-pay` | the question about the first call of its answer, and the call |
/// | `t3/queue.1` | the first poll of a queue |
/// | `t3/sleep/1`, `t3/limit/1` | the first delay between attempts, and the first time limit |
/// | `t3/start/0-pay` | no effect: what a host stores before the first call runs, see [`EffectNames::start`] |
/// | `t3/answer/0-pay` | no effect: a host that waits for decisions waits for the result of a call without implementation |
/// | `t3/mail/1` | no effect: what a host stores while the run waits only for commands, see [`EffectNames::mail`] |
/// | `t3/summary.1` | no effect: a call of a model by the compaction engine, see [`EffectNames::summary`] |
///
/// An effect that starts again in the same turn gets a number, from `.2` on.
#[derive(Clone, Debug, Default)]
pub struct EffectNames {
    /// What comes before every name: the name of the call that the run is inside, and a slash.
    prefix: String,
    turn_index: u32,
    /// How often each name was given in this turn.
    given: Table<String, u64>,
}

impl EffectNames {
    /// Names the effects of a run inside the call with this name; empty for a run that is inside none.
    pub fn inside(call: &str) -> Self {
        let prefix = if call.is_empty() { String::new() } else { [call, "/"].concat() };
        EffectNames { prefix, ..EffectNames::default() }
    }

    /// Names an effect that a step has just started; `state` is that after the step.
    pub fn name(&mut self, state: &LoopState, id: EffectId, effect: &Effect) -> String {
        let kind = match effect {
            Effect::Choose => "choose".to_owned(),
            Effect::Prepare { .. } => "transform".to_owned(),
            Effect::Infer { .. } => "model".to_owned(),
            Effect::Compact { .. } => "compact".to_owned(),
            Effect::Hook(call) => hook_name(state, call),
            Effect::Approve(request) => ["approve/", &place_of(state, &request.call_id)].concat(),
            Effect::Execute { call_id, .. } => ["tool/", &call_name(state, call_id)].concat(),
            Effect::Poll(Queue::FollowUp) => "follow_up".to_owned(),
            Effect::Poll(_) => "queue".to_owned(),
            Effect::Sleep { .. } => (if state.is_backing_off(id) { "sleep" } else { "limit" }).to_owned(),
        };
        let numbering = match effect {
            Effect::Poll(_) => Numbering::Always("."),
            Effect::Sleep { .. } => Numbering::Always("/"),
            _ => Numbering::FromTwo,
        };
        self.numbered(state, &kind, numbering)
    }

    /// Names what a host stores before a call runs, to know later that it may have run: `t3/start/0-pay` for `t3/tool/0-pay`.
    pub fn start(&mut self, state: &LoopState, call_id: &str) -> String {
        self.of_call("start/", state, call_id)
    }

    /// Names something about a call that is no effect.
    pub(crate) fn of_call(&mut self, kind: &str, state: &LoopState, call_id: &str) -> String {
        let kind = [kind, &call_name(state, call_id)].concat();
        self.numbered(state, &kind, Numbering::FromTwo)
    }

    /// Names a call of a model by which the compaction engine makes a summary: `t3/summary.1`, `t3/summary.2`.
    pub fn summary(&mut self, state: &LoopState) -> String {
        self.numbered(state, "summary", Numbering::Always("."))
    }

    /// Names a wait for mail, of a run that waits for nothing else: `t3/mail/1`, `t3/mail/2`.
    pub fn mail(&mut self, state: &LoopState) -> String {
        self.numbered(state, "mail", Numbering::Always("/"))
    }

    fn numbered(&mut self, state: &LoopState, kind: &str, numbering: Numbering) -> String {
        let turn_index = state.turn_index();
        if self.turn_index != turn_index {
            self.turn_index = turn_index;
            self.given.clear();
        }
        let name = [&self.prefix, "t", &text::number(u64::from(turn_index)), "/", kind].concat();
        let count = self.given.get(&name).copied().unwrap_or_default() + 1;
        self.given.insert(name.clone(), count);
        let number = match numbering {
            Numbering::Always(before) => [before, &text::number(count)].concat(),
            Numbering::FromTwo if count > 1 => [".", &text::number(count)].concat(),
            Numbering::FromTwo => String::new(),
        };
        shortened([name, number].concat())
    }
}

/// Which of several effects of a kind have a number.
#[derive(Clone, Copy)]
enum Numbering {
    /// All, behind this.
    Always(&'static str),
    /// All but the first.
    FromTwo,
}

fn hook_name(state: &LoopState, call: &HookCall) -> String {
    let place = match call {
        HookCall::BeforeToolExecution { call } | HookCall::AfterToolExecution { call, .. } => {
            ["/", &place_of(state, &call.call_id)].concat()
        }
        _ => String::new(),
    };
    ["hook/", call.stage(), &place].concat()
}

/// The place of a call in its answer, and its tool.
fn call_name(state: &LoopState, call_id: &str) -> String {
    let name = call_of(state, call_id).map_or("", |(_, call)| call.tool_name.as_str());
    let name = name.get(..name.floor_char_boundary(LONGEST_TOOL)).unwrap_or_default();
    [&place_of(state, call_id), "-", name].concat()
}

/// The place of a call in its answer: ids of providers are texts of any length.
fn place_of(state: &LoopState, call_id: &str) -> String {
    call_of(state, call_id).map_or_else(String::new, |(place, _)| text::number(place))
}

fn call_of<'a>(state: &'a LoopState, call_id: &str) -> Option<(u64, &'a ToolCallBlock)> {
    let Phase::Dispatching(batch) = &state.phase else { return None };
    let place = batch.place_of(call_id)?;
    let call = batch.calls.get(place)?;
    Some((u64::try_from(place).unwrap_or(u64::MAX), &call.block))
}

/// Cuts a name that is too long, and ends it in a hash of the whole.
fn shortened(name: String) -> String {
    if name.len() <= LONGEST {
        return name;
    }
    let hash = text::number(hash_of(name.as_bytes()));
    let kept = name.get(..name.floor_char_boundary(LONGEST - hash.len() - 1)).unwrap_or_default();
    [kept, "~", &hash].concat()
}

/// FNV-1a, 64 bits: the same everywhere and for ever.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_keeps_its_beginning_and_ends_in_a_hash() {
        let long = "t3/tool/0-research/".repeat(20);
        let short = shortened(long.clone());
        assert!(short.len() <= LONGEST && short.starts_with("t3/tool/0-research/t3/tool"));
        assert_ne!(short, shortened([&long, "x"].concat()));
        assert_eq!(shortened("t0/model".to_owned()), "t0/model");
    }
}
