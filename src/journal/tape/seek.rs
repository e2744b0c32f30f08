//! Finds any moment of a tape, forwards and backwards.

use super::frame::Frame;
use super::play::{Divergence, Player};
use super::text::Tape;

/// How many events lie between two moments that are kept.
const APART: u64 = 256;

/// How many lie between two that are kept around the moment looked at last.
const NEAR: u64 = 16;

/// Finds moments of a tape. It keeps a player every few hundred events, and more around the last moment: whoever goes back a
/// step goes back another one.
pub struct Seeker {
    kept: Vec<Player>,
    /// Those between two kept ones, in order.
    near: Vec<Player>,
    /// The moment looked at last: the next one is often close behind it.
    last: Player,
}

impl Seeker {
    /// Looks for moments of this tape.
    pub fn new(tape: &Tape) -> Self {
        Seeker { kept: vec![Player::new(tape)], near: Vec::new(), last: Player::new(tape) }
    }

    /// The moment after so many events.
    ///
    /// # Errors
    /// As for [`Seeker::seek`].
    pub fn frame(&mut self, events: u64) -> Result<Frame, Divergence> {
        self.seek(events).map(Player::frame)
    }

    /// A player that has come to the moment after so many events.
    ///
    /// # Errors
    /// If the tape has not as many, or the engine does not do what the tape says.
    pub fn seek(&mut self, events: u64) -> Result<&Player, Divergence> {
        let is_behind = self.last.events() <= events && events - self.last.events() < NEAR;
        if !is_behind {
            self.last = match self.nearest_of_near(events) {
                Some(player) => player,
                None => self.nearest(events)?,
            };
        }
        if !self.last.seek(events)? {
            return Err(self.last.too_short(events));
        }
        Ok(&self.last)
    }

    /// A copy of the last player around the last moment that is not beyond these events.
    fn nearest_of_near(&self, events: u64) -> Option<Player> {
        let is_fit = |player: &&Player| player.events() <= events && events - player.events() < NEAR;
        self.near.iter().rev().find(is_fit).map(Player::apart)
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
        let mut player = self.kept.get(at).map_or_else(|| self.last.apart(), Player::apart);
        self.near.clear();
        loop {
            let next = player.events().saturating_add(NEAR);
            if next > events || !player.seek(next)? {
                return Ok(player);
            }
            self.near.push(player.apart());
        }
    }
}
