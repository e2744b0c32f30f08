//! Finds any moment of a tape, forwards and backwards.

use super::frame::Frame;
use super::play::{Divergence, Player};
use super::text::Tape;

/// How many events lie between two moments that are kept.
const APART: u64 = 256;

/// Finds moments of a tape. It keeps a player every few hundred events, so that no moment is far from one.
pub struct Seeker {
    kept: Vec<Player>,
    /// The moment looked at last: the next one is often close behind it.
    last: Player,
}

impl Seeker {
    /// Looks for moments of this tape.
    pub fn new(tape: &Tape) -> Self {
        Seeker { kept: vec![Player::new(tape)], last: Player::new(tape) }
    }

    /// The moment after so many events.
    ///
    /// # Errors
    /// If the tape has not as many, or the engine does not do what the tape says.
    pub fn frame(&mut self, events: u64) -> Result<Frame, Divergence> {
        let is_behind = self.last.events() <= events && events - self.last.events() < APART;
        if !is_behind {
            self.last = self.nearest(events)?;
        }
        if !self.last.seek(events)? {
            return Err(self.last.too_short(events));
        }
        Ok(self.last.frame())
    }

    /// Returns a copy of the last player that is not beyond these events. Those on the way are kept.
    fn nearest(&mut self, events: u64) -> Result<Player, Divergence> {
        let wanted = usize::try_from(events / APART).unwrap_or(usize::MAX);
        while self.kept.len() <= wanted {
            let Some(mut player) = self.kept.last().map(Player::apart) else { break };
            let next = u64::try_from(self.kept.len()).unwrap_or(u64::MAX).saturating_mul(APART);
            if !player.seek(next)? {
                break;
            }
            self.kept.push(player);
        }
        let at = wanted.min(self.kept.len().saturating_sub(1));
        Ok(self.kept.get(at).map_or_else(|| self.last.apart(), Player::apart))
    }
}
