//! A step in progress, and where each input goes.

use crate::host::config::Rules;
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;

use super::input::{Input, Reply};
use super::output::{Effect, EffectId, Output};
use super::phase::Phase;
use super::state::LoopState;

impl LoopState {
    /// Takes one input and appends what follows from it. `now` is in milliseconds since 1970. Input that
    /// does not fit the state changes nothing.
    ///
    /// # Panics
    /// In debug builds, at a reply of the wrong kind, or to an effect that was never started.
    pub fn step(&mut self, rules: &Rules, now: u64, input: Input, out: &mut Vec<Output>) {
        Step { state: self, rules, now, out }.handle(input);
    }
}

/// A step in progress: the state, and what the step may use. Its methods are spread over the files of this
/// module, in the order in which they run in a turn.
pub(crate) struct Step<'a> {
    pub(crate) state: &'a mut LoopState,
    pub(crate) rules: &'a Rules,
    /// Milliseconds since 1970.
    pub(crate) now: u64,
    pub(crate) out: &'a mut Vec<Output>,
}

impl Step<'_> {
    fn handle(&mut self, input: Input) {
        match input {
            Input::Begin(prompts) => self.begin(prompts),
            Input::Continue => self.continue_run(),
            Input::Resume => self.resume_run(),
            Input::Reply(id, reply) => self.reply(id, reply),
            Input::Command(command) => self.command(command),
            Input::Steer(letters) => self.receive_steering(letters),
            Input::Abort(reason) => self.abort(&reason),
            Input::Deserted => self.leave_nobody_waiting(),
            Input::Flushed => self.flushed(),
        }
    }

    /// Gives a reply to the phase that waits for it. Nothing waits for a late reply to a cancelled effect, which
    /// changes nothing.
    fn reply(&mut self, id: EffectId, reply: Reply) {
        debug_assert!(self.state.fits(id, &reply), "no phase waits for {reply:?} from effect {id}");
        let Some(reply) = self.stream_in_place(id, reply) else { return };
        let reply = match (reply, self.state.queues.polls.remove(&id)) {
            (Reply::Polled(messages), Some(queue)) => return self.polled_alongside(queue, messages),
            (reply, _) => reply,
        };
        if self.state.timing.limit == Some(id) {
            self.state.timing.limit = None;
            let text = "the run took longer than its time limit";
            return self.interrupt_run(ErrorInfo::new(ErrorKind::Timeout, text));
        }
        match (&self.state.phase, reply) {
            (Phase::Inferring(_), reply) => {
                if let Phase::Inferring(inference) = std::mem::take(&mut self.state.phase) {
                    self.reply_to_inference(inference, id, reply);
                }
            }
            (Phase::Dispatching(_), reply) => {
                if let Some(batch) = self.take_batch() {
                    self.reply_to_batch(batch, id, reply);
                }
            }
            (Phase::Choosing { effect, .. }, Reply::Chosen(choice)) if *effect == id => self.chosen(choice),
            (&Phase::Preparing { effect, overflow }, Reply::Prepared(result)) if effect == id => {
                self.prepared(result, overflow);
            }
            (&Phase::Compacting { effect }, Reply::Compacted(result)) if effect == id => {
                self.compacted(result);
            }
            (&Phase::Polling { effect, queue, then }, Reply::Polled(messages)) if effect == id => {
                self.receive(queue, messages);
                self.polled(queue, then);
            }
            (&Phase::Closing { effect, .. }, Reply::Hook(_)) if effect == id => {
                if let Phase::Closing { reason, error, .. } = std::mem::take(&mut self.state.phase) {
                    self.close(reason, error);
                }
            }
            // Too late.
            (_, other) => drop(other),
        }
    }

    pub(crate) fn emit(&mut self, event: AgentEvent) {
        self.out.push(Output::Event(event));
    }

    pub(crate) fn start(&mut self, effect: Effect) -> EffectId {
        self.start_announced(effect, None)
    }

    pub(crate) fn start_announced(&mut self, effect: Effect, announce: Option<AgentEvent>) -> EffectId {
        let id = self.state.new_effect();
        self.out.push(Output::Start { id, effect, announce });
        id
    }

    pub(crate) fn cancel(&mut self, id: EffectId) {
        self.out.push(Output::Cancel(id));
    }

    pub(crate) fn cancel_some(&mut self, id: Option<EffectId>) {
        if let Some(id) = id {
            self.cancel(id);
        }
    }
}
