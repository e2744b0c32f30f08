//! The runs of an agent: how they start, and what they share with it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem::take;
use std::rc::Rc;
use std::task::Poll;

use crate::driver::{AgentStream, Handover, Published};
use crate::host::cancel::CancelToken;
use crate::host::ports::AgentRunContext;
use crate::machine::{History, Input, LoopState};
use crate::words::error::{AgentError, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::AgentMessage;

use super::checkpoint::Resume;
use super::{Agent, Shared};

impl Agent {
    /// Starts a run with these messages. It makes progress while the stream is polled.
    ///
    /// # Errors
    /// Misuse, if another run is active or waits to be continued, or if `prompts` is empty.
    pub fn prompt(
        &self,
        prompts: Vec<AgentMessage>,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        if prompts.is_empty() {
            return Err(AgentError::new(ErrorKind::Misuse, "a prompt needs at least one message"));
        }
        if self.0.resume.borrow().is_some() {
            let text = "a run waits to go on from its checkpoint; continue it first, or reset the agent";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        self.run(Input::Begin(prompts), context, cancel)
    }

    /// Continues the run that was restored from a checkpoint, or else starts one from the history as it is.
    ///
    /// # Errors
    /// Misuse, if another run is active, if the history is empty, or if its last message is the model's own and the queues
    /// are empty.
    pub fn continue_run(
        &self,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        match self.0.resume.take() {
            None => {}
            Some(Resume::Begin(begin)) => return self.run(begin, context, cancel),
            Some(Resume::Run(mut state, unemitted)) => {
                state.set_context(context);
                let handover = self.handover(cancel);
                return AgentStream::resumed(handover, *state, unemitted).map(|run| self.recorded(run));
            }
        }
        let refusal = {
            let waiting = self.has_waiting();
            let published = self.0.published.borrow();
            let published = published.borrow();
            match published.messages.last() {
                None => Some("cannot continue with an empty message history"),
                Some(AgentMessage::Assistant(_)) if !waiting => {
                    Some("cannot continue when the last message is an assistant message")
                }
                Some(_) => None,
            }
        };
        match refusal {
            Some(text) if !self.is_running() => Err(AgentError::new(ErrorKind::Misuse, text)),
            _ => self.run(Input::Continue, context, cancel),
        }
    }

    pub(super) fn run(
        &self,
        begin: Input,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Result<AgentStream, AgentError> {
        if self.is_running() {
            let text = "the agent is already running; steer it, queue a follow-up, or wait for it";
            return Err(AgentError::new(ErrorKind::Misuse, text));
        }
        // What was decided about an earlier run is not about this one.
        self.0.inbox.borrow().drop_decisions();
        let session = self.0.session.borrow().clone();
        let state = {
            let published = self.0.published.borrow();
            let mut published = published.borrow_mut();
            let queues = (std::mem::take(&mut published.steering), std::mem::take(&mut published.follow_up));
            let known = published.known.take().filter(|_| !self.0.is_conversion_stale.take());
            let history = History::reuse(known, published.messages.clone());
            LoopState::with_history(context, history, session).with_queues(queues.0, queues.1)
        };
        Ok(self.recorded(AgentStream::new(self.handover(cancel), state, begin)))
    }

    #[cfg_attr(not(feature = "durable"), expect(clippy::unused_self, reason = "nobody records"))]
    fn recorded(&self, run: AgentStream) -> AgentStream {
        #[cfg(feature = "durable")]
        if let Some(recorder) = &*self.0.seam.recorder.borrow() {
            return run.recorded(recorder);
        }
        run
    }

    /// What the agent shares with its next run.
    fn handover(&self, cancel: CancelToken) -> Handover {
        let published = {
            let before = self.published();
            let mut before = before.borrow_mut();
            let (messages, questions) = (take(&mut before.messages), take(&mut before.questions));
            Rc::new(RefCell::new(Published { messages, questions, ..Published::default() }))
        };
        *self.0.published.borrow_mut() = published.clone();
        *self.0.cancel.borrow_mut() = cancel.clone();
        let (listening, receiving, ending) =
            (Rc::downgrade(&self.0), Rc::downgrade(&self.0), Rc::downgrade(&self.0));
        let own_published = Rc::downgrade(&published);
        let has_subscribers = self.0.has_subscribers.clone();
        Handover {
            config: self.0.config.clone(),
            inbox: self.0.inbox.borrow().clone(),
            used: self.0.usage.clone(),
            spent: self.0.spent.borrow().clone(),
            cancel,
            track: self.0.track,
            published,
            listener: Rc::new(move |event| {
                if (has_subscribers.get() || matches!(event, AgentEvent::AgentEnd { .. }))
                    && let Some(shared) = listening.upgrade()
                {
                    if let AgentEvent::AgentEnd { usage, .. } = event
                        // A run that was reset is over for the agent, but its listeners still hear how it ends.
                        && own_published.upgrade().is_some_and(|b| Rc::ptr_eq(&b, &shared.published.borrow()))
                    {
                        shared.add(usage);
                    }
                    shared.dispatch(event);
                }
            }),
            receipts: Rc::new(move |id, receipt| {
                if let Some(shared) = receiving.upgrade() {
                    shared.settle(id, receipt);
                }
            }),
            ended: Rc::new(move || {
                if let Some(shared) = ending.upgrade() {
                    shared.wake_idle();
                }
            }),
            seam: self.0.seam.clone(),
        }
    }

    /// Aborts the active run, if there is one.
    pub fn abort(&self, reason: &str) {
        // The token of a run that is over may be that of others too.
        if self.is_running() {
            self.0.cancel.borrow().cancel(reason);
        }
    }

    /// Resolves when no run is active.
    pub async fn wait_for_idle(&self) {
        poll_fn(|cx| {
            if !self.is_running() {
                return Poll::Ready(());
            }
            let mut idle_wakers = self.0.idle_wakers.borrow_mut();
            if !idle_wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
                idle_wakers.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}

impl Shared {
    pub(super) fn wake_idle(&self) {
        for waker in self.idle_wakers.take() {
            waker.wake();
        }
    }
}
