//! The running effects. Each is polled only after it was woken, and tools come before the rest.

use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures::future::LocalBoxFuture;
use futures::stream::LocalBoxStream;
use futures::stream::Stream;

use crate::data::table::Table;
use crate::host::cancel::CancelToken;
use crate::host::isolate::guard;
use crate::host::tool::{ChildRun, Progress, ToolOutcome, Updates};
use crate::machine::{EffectId, Reply};
use crate::rules::answer::Answer;
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::{ErrorInfo, ErrorKind};

/// The work of an effect.
pub(super) enum EffectFuture {
    /// Replies once.
    Once(LocalBoxFuture<'static, Reply>),
    /// A tool: updates, then its outcome.
    Tool(RunningTool),
    /// A model call: events, then the end.
    Model(LocalBoxStream<'static, AssistantMessageEvent>),
}

/// A running tool.
pub(super) struct RunningTool {
    call_id: Rc<str>,
    future: LocalBoxFuture<'static, ToolOutcome>,
    updates: Updates,
    /// Kept until the updates that came before it have been delivered.
    outcome: Option<ToolOutcome>,
    /// The last round in which the future was polled.
    round: u64,
}

impl EffectFuture {
    pub(super) fn tool(
        call_id: Rc<str>,
        future: LocalBoxFuture<'static, ToolOutcome>,
        updates: Updates,
    ) -> EffectFuture {
        EffectFuture::Tool(RunningTool { call_id, future, updates, outcome: None, round: 0 })
    }

    /// Turns a future of the host into one whose result, or failure, is a reply.
    pub(super) fn once<T: 'static>(
        future: Result<LocalBoxFuture<'static, Result<T, String>>, String>,
        reply: fn(Result<T, String>) -> Reply,
    ) -> EffectFuture {
        match future {
            Err(text) => EffectFuture::Once(Box::pin(std::future::ready(reply(Err(text))))),
            Ok(mut future) => EffectFuture::Once(Box::pin(std::future::poll_fn(move |cx| {
                match guard(|| Ok(future.as_mut().poll(cx))) {
                    Ok(Poll::Pending) => Poll::Pending,
                    Ok(Poll::Ready(answer)) => Poll::Ready(reply(answer)),
                    Err(text) => Poll::Ready(reply(Err(text))),
                }
            }))),
        }
    }
}

/// The result of polling an effect.
pub(super) enum Polled {
    /// A reply; more may follow.
    More(Reply),
    /// The last reply.
    Last(Reply),
}

/// The running effects.
#[derive(Default)]
pub(super) struct Tasks {
    /// Boxed, because removing an entry moves those after it.
    tasks: Table<EffectId, Box<Task>>,
    woken: Arc<Woken>,
    round: u64,
    /// Tools of this round that may have something to report.
    remaining: VecDeque<EffectId>,
}

struct Task {
    work: EffectFuture,
    cancel: CancelToken,
    waker: Waker,
}

/// The effects that were woken since the last look.
#[derive(Default)]
struct Woken {
    queues: Mutex<Queues>,
}

#[derive(Default)]
struct Queues {
    tools: VecDeque<EffectId>,
    others: VecDeque<EffectId>,
    driver: Option<Waker>,
}

struct TaskWaker {
    id: EffectId,
    is_tool: bool,
    woken: Arc<Woken>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        let driver = self.woken.with(|queues| {
            let queue = if self.is_tool { &mut queues.tools } else { &mut queues.others };
            queue.push_back(self.id);
            queues.driver.take()
        });
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

impl Woken {
    fn with<T>(&self, look: impl FnOnce(&mut Queues) -> T) -> T {
        let mut queues = self.queues.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        look(&mut queues)
    }
}

impl Queues {
    fn next_tool(&mut self) -> Option<EffectId> {
        if self.tools.is_empty() { None } else { self.tools.pop_front() }
    }
}

impl Tasks {
    /// Adds an effect. It is polled for the first time when the driver next polls the tasks.
    pub(super) fn insert(&mut self, id: EffectId, work: EffectFuture, cancel: CancelToken) {
        let is_tool = matches!(work, EffectFuture::Tool(_));
        let waker: Waker = Arc::new(TaskWaker { id, is_tool, woken: self.woken.clone() }).into();
        if let EffectFuture::Tool(tool) = &work {
            tool.updates.wake_by(&waker);
        }
        waker.wake_by_ref();
        self.tasks.insert(id, Box::new(Task { work, cancel, waker }));
    }

    /// Drops an effect, after setting its cancel token.
    pub(super) fn remove(&mut self, id: EffectId) {
        if let Some(task) = self.tasks.remove(&id) {
            let Task { work, cancel, .. } = *task;
            if let EffectFuture::Tool(tool) = &work {
                tool.updates.close();
            }
            cancel.cancel_if_observed("not wanted any more");
            // What the host's code does when it is dropped must not end the run.
            let _ = guard(|| {
                drop(work);
                Ok(())
            });
        }
    }

    pub(super) fn wake_by(&mut self, waker: &Waker) {
        self.woken.with(|queues| match &queues.driver {
            Some(known) if known.will_wake(waker) => {}
            _ => queues.driver = Some(waker.clone()),
        });
    }

    /// Begins a round: every tool that has been woken by now is polled once before the reply of any of them
    /// takes effect. Replies are processed in the order of the calls. Without rounds, a tool that keeps
    /// waking itself would starve the others.
    pub(super) fn begin_round(&mut self) {
        self.round += 1;
        while let Some(id) = self.woken.with(Queues::next_tool) {
            let mut at = self.remaining.len();
            self.remaining.push_back(id);
            // They mostly arrive in order.
            while at > 0 && self.remaining.get(at - 1).is_some_and(|other| *other > id) {
                self.remaining.swap(at - 1, at);
                at -= 1;
            }
        }
        if self.remaining.is_empty() {
            return;
        }
        for id in &self.remaining {
            if let Some(task) = self.tasks.get_mut(id)
                && let EffectFuture::Tool(tool) = &mut task.work
            {
                tool.advance(&mut Context::from_waker(&task.waker), self.round);
            }
        }
    }

    /// The agents that run inside the tools.
    pub(super) fn children(&self) -> Vec<(EffectId, Rc<dyn ChildRun>)> {
        let child = |(id, task): &(EffectId, Box<Task>)| match &task.work {
            EffectFuture::Tool(tool) => Some((*id, tool.updates.child()?)),
            _ => None,
        };
        self.tasks.iter().filter_map(child).collect()
    }

    /// The agent that runs inside a tool.
    pub(super) fn child(&self, id: EffectId) -> Option<Rc<dyn ChildRun>> {
        match &self.tasks.get(&id)?.work {
            EffectFuture::Tool(tool) => tool.updates.child(),
            _ => None,
        }
    }

    /// The call of a tool.
    pub(super) fn call_of(&self, id: EffectId) -> Option<Rc<str>> {
        match &self.tasks.get(&id)?.work {
            EffectFuture::Tool(tool) => Some(tool.call_id.clone()),
            _ => None,
        }
    }

    /// Returns what a tool has reported and nobody has read yet. An agent that runs inside it ends before.
    pub(super) fn rest_of(&self, id: EffectId, reason: &str) -> Vec<Progress> {
        let Some(task) = self.tasks.get(&id) else { return Vec::new() };
        let EffectFuture::Tool(tool) = &task.work else { return Vec::new() };
        if let Some(child) = tool.updates.child() {
            child.close(reason);
        }
        std::iter::from_fn(|| tool.updates.take()).collect()
    }

    /// Gives an answer to a question to the tool that asked it.
    #[cold]
    pub(super) fn answer(&mut self, id: EffectId, number: u64, answer: Answer) {
        if let Some(task) = self.tasks.get(&id)
            && let EffectFuture::Tool(tool) = &task.work
        {
            tool.updates.answer(number, answer);
        }
    }

    /// Returns progress that a tool has reported and nobody has read yet.
    pub(super) fn take_progress(&self) -> Option<(EffectId, Polled)> {
        self.tasks.iter().find_map(|(id, task)| match &task.work {
            EffectFuture::Tool(tool) => tool.progress().map(|polled| (*id, polled)),
            _ => None,
        })
    }

    /// Polls the tools of this round until one has something to report.
    pub(super) fn poll_round(&mut self) -> Option<(EffectId, Polled)> {
        while !self.remaining.is_empty()
            && let Some(id) = self.remaining.front().copied()
        {
            if let Some(polled) = self.poll(id) {
                return Some((id, polled));
            }
            self.remaining.pop_front();
        }
        None
    }

    /// Polls the other woken effects, each once, until one has something to report.
    pub(super) fn poll_others(&mut self) -> Option<(EffectId, Polled)> {
        let woken = self.woken.with(|queues| queues.others.len());
        for _ in 0..woken {
            let id = self.woken.with(|queues| queues.others.pop_front())?;
            if let Some(polled) = self.poll(id) {
                return Some((id, polled));
            }
        }
        None
    }

    /// Whether no effect is running.
    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Polls the model call that has just sent a piece of its answer, if it alone has more to send.
    pub(super) fn poll_if_alone(&mut self, id: EffectId) -> Option<Reply> {
        let is_alone = self.woken.with(|queues| {
            queues.tools.is_empty() && queues.others.len() == 1 && queues.others.front() == Some(&id)
        });
        if !is_alone {
            return None;
        }
        // It stays in the queue as long as it may have more, after the effects woken in the meantime.
        let polled = self.poll_once(id);
        self.woken.with(|queues| {
            if polled.is_none() || queues.others.len() > 1 {
                queues.others.pop_front();
                if polled.is_some() {
                    queues.others.push_back(id);
                }
            }
        });
        match polled? {
            Polled::More(reply) | Polled::Last(reply) => Some(reply),
        }
    }

    /// Whether an effect was woken since it was last polled.
    pub(super) fn has_woken(&self) -> bool {
        self.woken.with(|queues| !queues.tools.is_empty() || !queues.others.is_empty())
    }

    /// Whether every tool of this round has been heard.
    pub(super) fn is_round_drained(&self) -> bool {
        self.remaining.is_empty()
    }

    /// Polls an effect, whether it was woken or not.
    pub(super) fn poll(&mut self, id: EffectId) -> Option<Polled> {
        let polled = self.poll_once(id);
        if let Some(Polled::More(Reply::Stream(_) | Reply::StreamEnded)) = polled {
            // It may have more ready, but the others come first.
            self.woken.with(|queues| queues.others.push_back(id));
        }
        polled
    }

    fn poll_once(&mut self, id: EffectId) -> Option<Polled> {
        let task = self.tasks.get_mut(&id)?;
        let mut cx = Context::from_waker(&task.waker);
        match &mut task.work {
            EffectFuture::Once(future) => match future.as_mut().poll(&mut cx) {
                Poll::Ready(reply) => Some(Polled::Last(reply)),
                Poll::Pending => None,
            },
            EffectFuture::Tool(tool) => tool.poll(&mut cx, self.round),
            EffectFuture::Model(stream) => {
                let next = guard(|| Ok(Pin::new(&mut *stream).poll_next(&mut cx)));
                let reply = match next {
                    Ok(Poll::Pending) => return None,
                    Ok(Poll::Ready(Some(event))) => Reply::Stream(event),
                    Ok(Poll::Ready(None)) => Reply::StreamEnded,
                    Err(text) => {
                        Reply::Stream(AssistantMessageEvent::Error(ErrorInfo::new(ErrorKind::Unknown, text)))
                    }
                };
                Some(Polled::More(reply))
            }
        }
    }
}

impl RunningTool {
    fn poll(&mut self, cx: &mut Context<'_>, round: u64) -> Option<Polled> {
        self.advance(cx, round);
        let ended = |outcome| Polled::Last(Reply::Executed(outcome));
        self.progress().or_else(|| self.outcome.take().map(ended))
    }

    /// Polls the tool, at most once in a round.
    fn advance(&mut self, cx: &mut Context<'_>, round: u64) {
        if self.outcome.is_some() || self.round == round {
            return;
        }
        self.round = round;
        self.updates.wake_by(cx.waker());
        match guard(|| Ok(self.future.as_mut().poll(cx))) {
            Ok(Poll::Pending) => {}
            Ok(Poll::Ready(outcome)) => self.outcome = Some(outcome),
            Err(text) => self.outcome = Some(ToolOutcome::Failed(text)),
        }
    }

    fn progress(&self) -> Option<Polled> {
        self.updates.take().map(|update| Polled::More(Reply::Progress(update)))
    }
}

impl Drop for Tasks {
    fn drop(&mut self) {
        let ids: Vec<EffectId> = self.tasks.iter().map(|(id, _)| *id).collect();
        for id in ids {
            self.remove(id);
        }
    }
}
