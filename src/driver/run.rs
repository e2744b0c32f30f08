//! How a run makes progress: its outputs first, in order; then the next piece of the answer; then whatever has
//! happened, a tool's reply first, then abort and mail, then the rest.

use std::task::{Context, Poll};

use crate::host::isolate::guard;
use crate::journal::{Entering, Rest};
use crate::machine::{AgentCommand, Effect, EffectId, Input, Output, Reply};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::event::AgentEvent;

use super::answer::AnswerPump;
use super::handover::AgentLoopResult;
use super::hooks::is_after_hook;
use super::tasks::Polled;
use super::{AgentStream, Beginning, Next};

impl AgentStream {
    /// Polls the stream for listeners that receive events in batches. With `is_delivered`, the caller confirms that
    /// everything it received before has reached its listeners. Without it, the run stops at the next
    /// [`Next::Barrier`]: no effect starts and no answer ends before the listeners could respond.
    pub fn poll_output(&mut self, cx: &mut Context<'_>, is_delivered: bool) -> Poll<Next> {
        if self.begin.is_some() {
            self.spans.begin(self.state.context(), &self.config);
        }
        let _entered = self.spans.entered();
        if self.begin.is_some() && self.rest(Rest::Beginning, cx).is_some() {
            return Poll::Pending;
        }
        if let Some(begin) = self.begin.take() {
            self.begin(begin);
        }
        self.answer.wake();
        loop {
            if self.rest(Rest::Between, cx).is_some() {
                return Poll::Ready(Next::End);
            }
            match self.outputs.pop() {
                Some(Output::Event(event)) => {
                    self.emit(&event);
                    return Poll::Ready(Next::Event(event));
                }
                Some(Output::Receipt(id, receipt)) => (self.handover.receipts)(id, receipt),
                Some(Output::Answer { id, number, answer }) => self.round.tasks.answer(id, number, answer),
                Some(Output::Cancel(id)) => self.drop_effect(id),
                Some(start)
                    if self.takes_offers && !self.has_unhandled() && self.outputs.is_offer(&start) =>
                {
                    self.outputs.put_back(start);
                    return Poll::Ready(Next::Offer);
                }
                // A caller of batches names messages by their place, so it must know of a new history first.
                Some(next @ (Output::Start { .. } | Output::Flush))
                    if !is_delivered || (self.takes_offers && self.told_epoch != self.state.epoch()) =>
                {
                    self.told_epoch = self.state.epoch();
                    self.outputs.put_back(next);
                    return Poll::Ready(Next::Barrier);
                }
                Some(Output::Start { id, effect, announce }) => self.announce_or_start(id, effect, announce),
                Some(Output::Flush) => self.flush(),
                None if self.state.is_ended() => {
                    return self.rest(Rest::Over, cx).map_or(Poll::Ready(Next::End), |_| Poll::Pending);
                }
                None if self.answer.is_ready() => {
                    if let Some(event) = self.poll_answer() {
                        (self.handover.listener)(&event);
                        return Poll::Ready(Next::Event(event));
                    }
                }
                None => match self.poll_tasks(cx, is_delivered) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(Next::Barrier),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    /// Applies what was posted before the run, including an abort, before the run begins. A run that
    /// continues from a checkpoint first emits that it does, and then the events not emitted yet.
    pub(super) fn begin(&mut self, begin: Beginning) {
        self.enters_beginning(&begin);
        match begin {
            Beginning::Resume(unemitted) => {
                self.step(Input::Resume);
                self.outputs.tell_first(unemitted);
            }
            Beginning::Start(begin) => {
                let mut decisions = Vec::new();
                while let Some(command) = self.handover.inbox.take() {
                    if command.is_decision() {
                        decisions.push(command);
                    } else {
                        self.step(Input::Command(command));
                    }
                }
                self.step(begin);
                // A refusal is an event of the run, so it comes after the beginning.
                for command in decisions {
                    if !self.state.is_ended() {
                        self.step(Input::Command(command));
                    }
                }
            }
        }
    }

    /// Emits the announcement of an effect, or starts the effect, unless what has arrived in the meantime cancels it.
    fn announce_or_start(&mut self, id: EffectId, effect: Effect, announce: Option<AgentEvent>) {
        // These hooks observe what is already in the history, so they are called regardless of what has arrived
        // since; then nobody waits for them.
        if !is_after_hook(&effect) {
            self.handle_tools();
            self.handle_commands();
            if self.outputs.is_cancelled(id) {
                return;
            }
        }
        match announce {
            None => self.start(id, effect),
            Some(event) => {
                self.outputs.put_back(Output::Start { id, effect, announce: None });
                self.outputs.put_back(Output::Event(event));
            }
        }
    }

    /// The listeners have received everything so far. What they posted meanwhile enters first, and its events are
    /// received too before policies decide.
    fn flush(&mut self) {
        self.handle_commands();
        if self.outputs.is_empty() {
            self.step(Input::Flushed);
        } else {
            self.outputs.flush_later();
        }
    }

    /// The fast path for most events: the answer continues, and nothing has happened that would take
    /// precedence.
    fn poll_answer(&mut self) -> Option<AgentEvent> {
        while let Some(id) = self.answer.take_ready() {
            if !self.round.is_idle() || self.has_commands() {
                return None;
            }
            let Some(reply) = self.round.tasks.poll_if_alone(id) else {
                self.answer = AnswerPump::Paused(id);
                return None;
            };
            if self.has_commands() {
                // The polled code may itself have aborted or steered, and that takes precedence over its
                // reply.
                self.round.hold(id, Polled::More(reply));
                return None;
            }
            self.update_now();
            if let Reply::Stream(piece) = &reply {
                self.seam.enters(&self.state, self.now, &Entering::Piece(id, piece));
            }
            match self.state.apply_stream_event(self.now, id, reply) {
                Ok(event) => {
                    self.answer = AnswerPump::Ready(id);
                    if event.is_some() {
                        return event;
                    }
                }
                Err(other) => self.round.hold(id, Polled::More(other)),
            }
        }
        None
    }

    /// Processes one thing: a tool's reply first, then abort and mail, then the rest. Returns `Ready(true)`
    /// if there was one, and `Ready(false)` if the listeners must be told first.
    fn poll_tasks(&mut self, cx: &mut Context<'_>, is_delivered: bool) -> Poll<bool> {
        self.round.tasks.wake_by(cx.waker());
        self.handover.inbox.wake_by(cx.waker());
        if self.rest(Rest::Polling, cx).is_some() {
            return Poll::Ready(true);
        }
        self.round.begin();
        if let Some((id, polled)) = self.round.tasks.poll_round() {
            self.take_polled(id, polled);
            return Poll::Ready(true);
        }
        self.round.end();
        if self.handle_commands() {
            return Poll::Ready(true);
        }
        // The polled code may itself have aborted or steered, and that takes precedence over its reply.
        if self.round.hold_next() && self.handle_commands() {
            return Poll::Ready(true);
        }
        match self.round.take_held() {
            None => self.wait(cx),
            Some((id, Polled::More(reply))) if !is_delivered && ends_answer(&reply) => {
                self.round.hold(id, Polled::More(reply));
                Poll::Ready(false)
            }
            Some((id, polled)) => {
                self.take_polled(id, polled);
                Poll::Ready(true)
            }
        }
    }

    /// Nothing is ready.
    fn wait(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        if self.handover.inbox.is_closed() {
            self.desert_children();
        }
        let is_idle = self.round.tasks.is_empty() && !self.seam.has_steps();
        if self.handover.inbox.is_closed() && (is_idle || self.state.has_asks()) {
            self.step(Input::Deserted);
            if !self.outputs.is_empty() {
                return Poll::Ready(true);
            }
        }
        if let Some(rest) = self.rest(Rest::Idle, cx) {
            return rest;
        }
        if self.round.tasks.has_woken() {
            // An effect that has woken itself is polled again only after the executor's other tasks have had
            // their turn.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Takes the replies of the tools of this round.
    pub(super) fn handle_tools(&mut self) {
        while let Some((id, polled)) = self.round.tasks.poll_round() {
            self.take_polled(id, polled);
        }
    }

    pub(super) fn take_polled(&mut self, id: EffectId, polled: Polled) {
        let reply = match polled {
            Polled::More(reply) => {
                self.answer.note(id, &reply);
                if self.state.has_child_questions() {
                    // A layer around the call may have let it begin only now.
                    self.answer_early(id);
                }
                let Some(reply) = self.arrived(id, reply) else { return };
                let Some(reply) = self.tells_late(id, reply) else { return };
                reply
            }
            Polled::Last(reply) => {
                self.handle_progress();
                self.round.tasks.remove(id);
                let Some(reply) = self.arrived(id, reply) else { return };
                self.put_into_force(reply)
            }
        };
        self.step(Input::Reply(id, reply));
    }

    /// What was chosen for the turn holds before the machine goes on with it.
    fn put_into_force(&mut self, reply: Reply) -> Reply {
        let Reply::Chosen(Ok(mut choice)) = reply else { return reply };
        let taken = self.take_config(Some(std::mem::take(&mut choice.options)));
        Reply::Chosen(taken.map(|()| choice))
    }

    /// Takes the progress that tools have reported, before anything that may end them, so that no reported
    /// progress is lost.
    pub(super) fn handle_progress(&mut self) {
        while let Some((id, polled)) = self.round.next_progress() {
            self.take_polled(id, polled);
        }
    }

    /// Whether an abort or mail is waiting to be processed.
    fn has_commands(&self) -> bool {
        !self.handover.inbox.is_empty() || self.abort.is_waiting()
    }

    /// Whether anything has arrived that must be processed before another call starts.
    fn has_unhandled(&self) -> bool {
        self.has_commands() || !self.round.tasks.is_round_drained()
    }

    /// Processes abort and mail. Returns whether there was any.
    pub(super) fn handle_commands(&mut self) -> bool {
        if let Some(has_handled) = self.divert_commands() {
            return has_handled;
        }
        let abort = self.abort.take();
        let is_aborted = abort.is_some();
        if let Some(reason) = abort {
            // What was decided by then was decided, though nothing comes of it.
            for command in self.handover.inbox.take_decisions_before_abort() {
                self.handle_command(command);
            }
            self.close_children(&reason);
            self.handle_progress();
            self.step(Input::Abort(reason));
        }
        self.handle_inbox() || is_aborted
    }

    fn handle_inbox(&mut self) -> bool {
        let mut has_handled = false;
        // Commands that arrive after the end are for the next run.
        while !self.state.is_ended()
            && let Some(command) = self.handover.inbox.take()
        {
            has_handled = true;
            self.handle_command(command);
        }
        has_handled
    }

    pub(super) fn handle_command(&mut self, command: AgentCommand) {
        if let AgentCommand::Cancel(reason) = &command {
            self.close_children(reason);
        }
        self.handle_progress();
        let input = match command {
            AgentCommand::Steer(letter) => Input::Steer(self.handover.inbox.with_steering_after(letter)),
            AgentCommand::Resolve(answers) => match self.answer_children(answers) {
                Some(answers) => Input::Command(AgentCommand::Resolve(answers)),
                None => return,
            },
            command => Input::Command(command),
        };
        self.step(input);
    }

    pub(super) fn step(&mut self, input: Input) {
        self.update_now();
        let AgentStream { state, config, now, seam, .. } = self;
        seam.enters(state, *now, &Entering::Input(&input));
        self.outputs.append(|out| {
            state.step(&config.rules, *now, input, out);
            seam.entered(state, out);
        });
        self.handover.publish(&self.state);
    }

    /// Reads the clock. If the clock fails, time stands still.
    pub(super) fn update_now(&mut self) {
        self.now = guard(|| Ok(self.config.ports.timer.now())).unwrap_or(self.now);
    }

    /// Emits an event to the listeners. When they receive the end, the run is over: they may begin another
    /// one.
    pub(super) fn emit(&mut self, event: &AgentEvent) {
        let is_end = matches!(event, AgentEvent::AgentEnd { .. });
        if is_end {
            let mut spent = self.handover.spent.get();
            let raised = self.state.spending.books.borrow().raised;
            spent.add(&self.state.spent(self.now), &raised);
            self.handover.spent.set(spent);
            self.handover.hand_over(&mut self.state);
            self.result = AgentLoopResult::of_end(event, &self.state);
        }
        if let Some(track) = self.handover.track {
            track(&mut self.handover.published.borrow_mut().questions, event);
        }
        self.spans.event(event, &self.config);
        (self.handover.listener)(event);
        if is_end {
            self.leave_seam();
            (self.handover.ended)();
        }
    }
}

pub(super) fn ends_answer(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::StreamEnded
            | Reply::Stream(AssistantMessageEvent::Done { .. } | AssistantMessageEvent::Error(_))
    )
}
