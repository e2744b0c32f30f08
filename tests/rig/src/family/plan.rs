//! What holds for all lives of a family: what its agents are set to.

use turnwheel::approval::{ApprovalGate, ApprovalMode};
use turnwheel::budget::{Budget, OnExceed};
use turnwheel::config::{InFlight, QueueMode, SteeringTime};

use crate::dice::Dice;

/// The settings of the agents, the outermost first.
pub(super) struct Plan {
    pub(super) levels: [Level; 3],
    /// When a message acts that does not say so itself.
    pub(super) steering: SteeringTime,
    pub(super) in_flight: InFlight,
    pub(super) delivery: QueueMode,
}

pub(super) struct Level {
    pub(super) budget: Option<Budget>,
    pub(super) max_turns: u32,
    pub(super) max_tokens: u64,
    pub(super) is_sequential: bool,
    pub(super) most_at_once: Option<usize>,
    pub(super) gate: ApprovalGate,
    pub(super) mode: ApprovalMode,
    pub(super) has_approver: bool,
    /// Whether its questions are its own.
    pub(super) keeps_questions: bool,
    pub(super) tool_timeout: Option<u64>,
}

impl Plan {
    pub(super) fn of(dice: &Dice) -> Self {
        let times = SteeringTime::ALL;
        // Most are small, so that there can be many.
        let is_large = dice.chance(15);
        Plan {
            levels: [0, 1, 2].map(|level| Level::of(dice, level, is_large)),
            steering: *dice.pick(&times),
            in_flight: *dice.pick(&[InFlight::Cancel, InFlight::Cancel, InFlight::Finish]),
            delivery: *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]),
        }
    }
}

impl Level {
    fn of(dice: &Dice, level: usize, is_large: bool) -> Self {
        let (least, more) = match (is_large, level) {
            (true, _) => (2, 3),
            (false, 0) => (2, 2),
            (false, _) => (1, 2),
        };
        Level {
            budget: budget(dice, if level == 0 { 75 } else { 20 }),
            max_turns: u32::try_from(least + dice.below(more)).unwrap_or(2),
            max_tokens: 20,
            is_sequential: dice.chance(20),
            most_at_once: dice.chance(20).then(|| 1 + dice.below(2)),
            gate: *dice.pick(&[ApprovalGate::Batch, ApprovalGate::Prefix]),
            mode: if dice.chance(15) { ApprovalMode::Bypassed } else { ApprovalMode::Smart },
            has_approver: dice.chance(15),
            keeps_questions: level > 0 && dice.chance(10),
            tool_timeout: dice.chance(10).then_some(60),
        }
    }
}

fn budget(dice: &Dice, chance: u64) -> Option<Budget> {
    if !dice.chance(chance) {
        return None;
    }
    let some = |least: u64, most: usize| {
        dice.chance(40).then(|| least + u64::try_from(dice.below(most)).unwrap_or(0))
    };
    Some(Budget {
        // A token costs a millionth.
        usd: some(20, 800).map(|tokens| tokens * 1_000_000),
        tokens: some(20, 800),
        tool_calls: some(0, 8),
        turns: some(1, 8),
        ms: some(50, 500),
        on_exceed: *dice.pick(&[OnExceed::Stop, OnExceed::WrapUp, OnExceed::Ask]),
        ..Budget::default()
    })
}
