//! Delays are steps, or the engine sleeps them; time limits run in the process that does the work.

use std::rc::Rc;

use futures::future::FutureExt;

use crate::driver::AgentStream;
use crate::host::ports::StepEffect;
use crate::journal::steps::{Open, Outcome, RunSlot, What};
use crate::machine::{Effect, EffectId, Reply, Timed};

impl AgentStream {
    /// A timer starts. Returns the effect that is carried out now.
    pub(super) fn open_timer(&mut self, slot: &Rc<RunSlot>, id: EffectId, ms: u64) -> Option<Effect> {
        let journal = &slot.journal;
        match self.state.timed_by(id) {
            Timed::BackOff => {
                let effect = Effect::Sleep { ms };
                let name = slot.names.borrow_mut().name(&self.state, id, &effect);
                let until = journal.clock.get().saturating_add(ms);
                if let Some(sleep) = journal.engine.sleep(&name, ms) {
                    journal.wait_for(slot, id, name, until, sleep.map(|()| Reply::Slept).boxed_local());
                } else {
                    let open = Open::new(name, slot, What::Effect(id, r#"{"kind":"slept"}"#), Some(effect));
                    slot.open.borrow_mut().insert(id, open.clone());
                    journal.open(open, StepEffect::Sleep { ms });
                }
                None
            }
            Timed::Attempt(effect) | Timed::Call(effect) => {
                let open = slot.open.borrow().get(&effect).cloned();
                let runs = open.is_some_and(|open| open.begun.get() && !matches!(open.what, What::Start(_)))
                    || slot.loose.borrow().contains_key(&effect);
                slot.timers.borrow_mut().insert(effect, (id, ms, runs));
                runs.then_some(Effect::Sleep { ms })
            }
            Timed::Run => {
                let until = journal.clock.get().saturating_add(ms);
                slot.total.set(Some((id, until)));
                Some(Effect::Sleep { ms: until.saturating_sub(journal.real_time()) })
            }
            Timed::Nothing => None,
        }
    }

    /// The work of an effect begins: so does the time that it may take.
    pub(super) fn begin_timer(&mut self, slot: &Rc<RunSlot>, effect: EffectId) {
        let timer = slot
            .timers
            .borrow_mut()
            .get_mut(&effect)
            .and_then(|(timer, ms, runs)| (!std::mem::replace(runs, true)).then_some((*timer, *ms)));
        if let Some((timer, ms)) = timer {
            self.carry_out(timer, Effect::Sleep { ms });
        }
    }

    /// A timer of this process is over. Returns whether it was a time limit, which then is the journal's business.
    pub(super) fn is_limit(&mut self, slot: &Rc<RunSlot>, timer: EffectId) -> bool {
        if slot.total.get().is_some_and(|(id, _)| id == timer) {
            slot.journal.post_limit(slot, None);
            self.force_own(slot);
            slot.journal.inside(&slot.prefix, slot).iter().for_each(|inside| inside.end_steps());
            return true;
        }
        let limited =
            slot.timers.borrow().iter().find(|(_, (id, ..))| *id == timer).map(|(effect, _)| *effect);
        let Some(effect) = limited else { return false };
        match self.state.timed_by(timer) {
            Timed::Call(_) => {
                let open = slot.open.borrow().get(&effect).cloned();
                let call = slot.loose.borrow().get(&effect).cloned();
                if let Some(open) = open {
                    self.round.remove(effect);
                    open.end(Outcome::Late);
                } else if let Some(call) = call {
                    slot.journal.post_limit(slot, Some(&call));
                    slot.journal
                        .inside(&[&call, "/"].concat(), slot)
                        .iter()
                        .for_each(|inside| inside.end_steps());
                }
            }
            Timed::Attempt(_) => {
                let now = slot.clock.now();
                match self.state.patience(&self.config.rules, now) {
                    Err(error) => self.end_answer(effect, *error),
                    Ok(Some(ms)) => self.carry_out(timer, Effect::Sleep { ms }),
                    Ok(None) => {}
                }
            }
            _ => {}
        }
        true
    }

    /// A timer is not wanted any more.
    pub(super) fn give_up_timer(&self, slot: &RunSlot, timer: EffectId) {
        if slot.total.get().is_some_and(|(id, _)| id == timer) {
            slot.total.set(None);
        }
        let mut timers = slot.timers.borrow_mut();
        let effect = timers.iter().find(|(_, (id, ..))| *id == timer).map(|(effect, _)| *effect);
        if let Some(effect) = effect {
            timers.remove(&effect);
        }
    }
}
