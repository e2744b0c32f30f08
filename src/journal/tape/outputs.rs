//! What becomes of the outputs of a machine that is lived again: what the driver did with them, in the same order.

use crate::data::json::Value;
use crate::data::text::number;
use crate::host::ports::HookCall;
use crate::machine::{Effect, EffectId, Output};
use crate::words::event::AgentEvent;

use super::input::read_child;
use super::play::{Divergence, Player, When};
use super::seen::Seen;

impl Player {
    /// Processes outputs until something can be seen, or until the next input comes.
    pub(super) fn process(&mut self, target: Option<When>) -> Result<Option<Seen>, Divergence> {
        loop {
            let wanted = target.map(|when| (when.events, when.starts));
            let has_come =
                wanted.is_some_and(|(events, starts)| self.events >= events && self.starts >= starts);
            // A tool gets an answer as soon as all before it was told: before the next input.
            if has_come && !matches!(self.queue.front(), Some(Output::Answer { .. })) {
                return Ok(None);
            }
            let may_start = wanted.is_none_or(|(_, starts)| self.starts < starts);
            let Some(output) = self.queue.pop_front() else {
                return match wanted {
                    None => Ok(None),
                    Some((events, _)) => Err(self.fault(
                        [&number(events), " events before it"].concat(),
                        [&number(self.events), " events"].concat(),
                    )),
                };
            };
            self.late = self.late.saturating_sub(1);
            match output {
                Output::Event(event) => return Ok(Some(self.emit(event))),
                Output::Receipt(..) | Output::Flush => {}
                Output::Answer { id, number, answer } => {
                    let name = self.open.get(&id).cloned().unwrap_or_default();
                    return Ok(Some(Seen::Answer { id, name, number, answer }));
                }
                Output::Cancel(id) => {
                    let name = self.open.remove(&id).unwrap_or_default();
                    return Ok(Some(Seen::Cancel { id, name }));
                }
                Output::Start { id, effect, announce } => {
                    if !is_after_hook(&effect) && self.is_cancelled(id) {
                        continue;
                    }
                    match announce {
                        Some(event) => {
                            self.queue.push_front(Output::Start { id, effect, announce: None });
                            return Ok(Some(self.emit(event)));
                        }
                        None if may_start => return Ok(Some(self.start(id, effect))),
                        // Calls that start together are announced together.
                        None => {
                            self.queue.push_front(Output::Start { id, effect, announce });
                            let Some(event) = self.next_announcement() else {
                                return Err(self.fault("an announcement", "none"));
                            };
                            return Ok(Some(self.emit(event)));
                        }
                    }
                }
            }
        }
    }

    fn next_announcement(&mut self) -> Option<AgentEvent> {
        self.queue.iter_mut().find_map(|output| match output {
            Output::Start { announce, .. } => announce.take(),
            _ => None,
        })
    }

    fn is_cancelled(&self, id: EffectId) -> bool {
        self.queue.iter().any(|output| matches!(output, Output::Cancel(other) if *other == id))
    }

    fn emit(&mut self, event: AgentEvent) -> Seen {
        self.events += 1;
        if let (AgentEvent::AgentEnd { usage, .. }, Some(state)) = (&event, &mut self.state) {
            self.used.add(usage);
            let raised = state.spending.books.borrow().raised;
            self.spent.add(&state.spent(self.now), &raised);
            self.left = state.messages().to_vec();
            self.letters = state.take_queues();
            self.known = Some(Box::new(state.take_history()));
        }
        Seen::Event(event)
    }

    fn start(&mut self, id: EffectId, effect: Effect) -> Seen {
        self.starts += 1;
        if let Effect::Infer { request, .. } = &effect {
            self.request = Some(request.clone());
        }
        let name = self.open.get(&id).cloned().unwrap_or_default();
        Seen::Start { id, name, effect }
    }

    /// An agent inside a call has told something while it was dropped: that comes before all else.
    pub(super) fn take_late(&mut self, line: &Value) {
        let Some(state) = &mut self.state else { return };
        let call_id = line.text_at("callId").unwrap_or_default();
        let events = state.take_late_event(call_id, read_child(line));
        events.iter().for_each(|event| self.digest.take_event(event));
        let Some(dropped) = line.number_at("id") else {
            return self.pending.extend(events.into_iter().map(Seen::Event));
        };
        let is_it = |output: &Output| matches!(output, Output::Cancel(id) if *id == dropped);
        if let Some(place) = self.queue.iter().position(is_it) {
            self.queue.drain(..=place);
            self.late = 0;
        }
        for event in events {
            self.queue.insert(self.late.min(self.queue.len()), Output::Event(event));
            self.late += 1;
        }
    }
}

/// These observe what is in the history already, and start whatever has happened since.
fn is_after_hook(effect: &Effect) -> bool {
    matches!(effect, Effect::Hook(HookCall::AfterInference { .. } | HookCall::AfterToolExecution { .. }))
}
