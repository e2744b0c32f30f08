//! The one asynchronous driver: walks the machine's list, starts and drops effects as futures, hands over what comes
//! back. It decides nothing about the run, spawns nothing and owns no executor: whoever polls it runs it.

mod tasks;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{self, LocalBoxStream, Stream, StreamExt};

use crate::cancel::CancelToken;
#[cfg(not(target_arch = "wasm32"))]
use crate::checkpoint::CheckpointEnvelopeV1;
use crate::config::{AgentLoopConfig, Ports};
use crate::error::{AgentError, ErrorInfo, ErrorKind};
use crate::event::{AgentEvent, RunStopReason};
use crate::isolate::guard;
use crate::json::{ObjectWriter, RawJson, ToJson};
use crate::list::ListWriter;
use crate::machine::{
    AgentCommand, Conversion, Effect, EffectId, Input, Letter, LoopState, Output, Queue, Receipt, Reply,
    is_something, tell_first, unsaid,
};
use crate::message::{AgentMessage, ToolCallBlock, Usage};
use crate::policy::Transform;
use crate::ports::{AgentRunContext, CompactionCall, HookCall};
use crate::state::SessionState;
use crate::stream::{AssistantMessageEvent, ModelRequest};
use crate::tool::{ToolContext, ToolOutcome, Updates};

use tasks::{Polled, Tasks, Work};

/// Mail to a run, from anywhere. Cloning it shares the box.
#[derive(Clone, Default)]
pub struct Inbox(Rc<InboxState>);

#[derive(Default)]
struct InboxState {
    mail: RefCell<VecDeque<AgentCommand>>,
    /// Whether there is any: asked far more often than there is.
    has_mail: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    closed: Cell<bool>,
}

impl Inbox {
    /// Posts a command and wakes the run.
    pub fn post(&self, command: AgentCommand) {
        self.0.mail.borrow_mut().push_back(command);
        self.0.has_mail.set(true);
        self.wake();
    }

    /// Nobody will post anything any more: a run that waits for a decision which only a command could bring is stopped.
    pub fn close(&self) {
        self.0.closed.set(true);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }

    fn is_empty(&self) -> bool {
        !self.0.has_mail.get()
    }

    fn take(&self) -> Option<AgentCommand> {
        if self.is_empty() { None } else { self.take_if(|_| true) }
    }

    /// Takes the next command, if it is of a kind.
    #[inline(never)]
    fn take_if(&self, is: fn(&AgentCommand) -> bool) -> Option<AgentCommand> {
        let mut mail = self.0.mail.borrow_mut();
        let command = mail.pop_front_if(|command| is(command));
        self.0.has_mail.set(!mail.is_empty());
        command
    }

    /// Writes down what waits in the box.
    pub(crate) fn write_mail(&self, mail: &mut ListWriter<'_>) {
        self.0.mail.borrow().iter().for_each(|command| command.write_json(mail.item()));
    }

    /// The letter and the steering that came right behind it.
    fn with_steering_after(&self, letter: Letter) -> Vec<Letter> {
        let mut letters = vec![letter];
        let is_steering = |command: &AgentCommand| matches!(command, AgentCommand::Steer(_));
        while let Some(AgentCommand::Steer(letter)) = self.take_if(is_steering) {
            letters.push(letter);
        }
        letters
    }

    pub(crate) fn take_all(&self) -> VecDeque<AgentCommand> {
        self.0.has_mail.set(false);
        self.0.mail.take()
    }

    pub(crate) fn has_messages(&self) -> bool {
        let mail = self.0.mail.borrow();
        mail.iter().any(|command| match command {
            AgentCommand::Steer(letter) | AgentCommand::FollowUp(letter) => is_something(&letter.message),
            _ => false,
        })
    }

    fn wake_by(&self, waker: &Waker) {
        let mut kept = self.0.waker.borrow_mut();
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }
}

/// What anybody may read of a run at any time, also from inside a callback.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// The history.
    pub messages: Vec<AgentMessage>,
    /// Grows whenever the history changes by anything but an append.
    pub epoch: u64,
    /// What the run used so far.
    pub usage: Usage,
    /// The calls that wait for somebody's decision.
    pub pending_approvals: Vec<ToolCallBlock>,
    /// What is left in the queues; set when the run is over.
    pub(crate) steering: Vec<Letter>,
    pub(crate) follow_up: Vec<Letter>,
    /// What the model is shown of each message; set when the run is over.
    pub(crate) conversions: Vec<Conversion>,
    /// Whether the run is over.
    pub ended: bool,
}

/// What a run and its owner share.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) config: Rc<RefCell<Rc<AgentLoopConfig>>>,
    pub(crate) inbox: Inbox,
    /// What the runs before this one used.
    pub(crate) used: Rc<Cell<Usage>>,
    pub(crate) cancel: CancelToken,
    pub(crate) published: Rc<RefCell<Published>>,
    pub(crate) listener: Rc<dyn Fn(&AgentEvent)>,
    pub(crate) receipts: Rc<dyn Fn(u64, Receipt)>,
    /// Called once when the run is over and its end was told, or when it is dropped.
    pub(crate) ended: Rc<dyn Fn()>,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct AgentLoopResult {
    /// The run.
    pub run_id: Rc<str>,
    /// Everything appended since the start.
    pub messages: Vec<AgentMessage>,
    /// The text of the last answer; the JSON of a structured one.
    pub text: String,
    /// The structured answer, where one was asked for and given.
    pub output: Option<RawJson>,
    /// Everything it used.
    pub usage: Usage,
    /// Turns that called the model.
    pub turns: u32,
    /// Why it ended.
    pub stop_reason: RunStopReason,
    /// With stop reason error or aborted: why.
    pub error: Option<AgentError>,
}

/// What [`AgentStream::poll_output`] gives.
#[allow(clippy::large_enum_variant, reason = "handed on at once, never kept; a box would cost one per event")]
pub enum Next {
    /// Tell the listeners.
    Event(AgentEvent),
    /// What was told so far must reach the listeners before the run can go on.
    Barrier,
    /// The calls that are offered begin as soon as their announcements are told. Comes only to who asked for it.
    Offer,
    /// The run is over.
    End,
}

/// Starts a run with these messages on an empty history.
pub fn agent_loop(
    prompts: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> AgentStream {
    AgentStream::alone(Vec::new(), Input::Begin(prompts), config, context, cancel)
}

/// Starts a run that goes on from a history.
///
/// # Errors
/// Misuse, where the history is empty or ends with an answer of the model: there is nothing to answer.
pub fn agent_loop_continue(
    messages: Vec<AgentMessage>,
    config: AgentLoopConfig,
    context: AgentRunContext,
    cancel: CancelToken,
) -> Result<AgentStream, AgentError> {
    match messages.last() {
        None => Err(AgentError::new(ErrorKind::Misuse, "cannot continue with an empty message history")),
        Some(AgentMessage::Assistant(_)) => {
            let text = "cannot continue when the last message is an assistant message";
            Err(AgentError::new(ErrorKind::Misuse, text))
        }
        Some(_) => Ok(AgentStream::alone(messages, Input::Continue, config, context, cancel)),
    }
}

/// A run: a stream of its events. It runs while it is polled; dropping it stops the run, and the history stays whole.
pub struct AgentStream {
    line: Line,
    /// Wakes the run when it is cancelled.
    _watcher: Rc<dyn Fn()>,
    context: AgentRunContext,
    state: LoopState,
    /// The configuration of this turn.
    config: Rc<AgentLoopConfig>,
    /// How the run begins, until it is polled.
    begin: Option<Input>,
    outputs: VecDeque<Output>,
    /// How many of them are cancellations: each of many calls that start together asks for its own.
    cancels: usize,
    tasks: Tasks,
    /// The key of this turn.
    key: KeyOfTurn,
    /// Events of the run from before its checkpoint that nobody was told of.
    untold: Vec<AgentEvent>,
    /// What an effect said, until abort and mail are heard and, for the end of an answer, the listeners were told.
    held: Option<(EffectId, Polled)>,
    /// The model call that gave a piece of its answer last, and may have more.
    flowing: Option<EffectId>,
    /// The model call that gave a piece of its answer last, and waits for more.
    paused: Option<EffectId>,
    /// Whether the caller announces calls that start together at once.
    takes_offers: bool,
    /// Whether a tool has shown something since all that was shown was heard.
    shown: Rc<Cell<bool>>,
    /// Whether the tools of this round were looked at.
    round_over: bool,
    abort_heard: bool,
    /// What the clock said last.
    now: u64,
    result: Option<AgentLoopResult>,
}

/// Turn, provider, key.
type KeyOfTurn = Rc<RefCell<Option<(u32, Rc<str>, Option<Rc<str>>)>>>;

impl AgentStream {
    fn alone(
        messages: Vec<AgentMessage>,
        begin: Input,
        config: AgentLoopConfig,
        context: AgentRunContext,
        cancel: CancelToken,
    ) -> Self {
        let line = Line {
            config: Rc::new(RefCell::new(Rc::new(config))),
            inbox: Inbox::default(),
            used: Rc::default(),
            cancel,
            published: Rc::default(),
            listener: Rc::new(|_| {}),
            receipts: Rc::new(|_, _| {}),
            ended: Rc::new(|| {}),
        };
        let session = SessionState::new(line.config.borrow().rules.session_state.clone());
        let state = LoopState::new(context.clone(), messages, session);
        AgentStream::new(line, state, begin, context)
    }

    pub(crate) fn new(line: Line, state: LoopState, begin: Input, context: AgentRunContext) -> Self {
        let config = line.config.borrow().clone();
        let inbox = line.inbox.clone();
        let watcher: Rc<dyn Fn()> = Rc::new(move || inbox.wake());
        line.cancel.watch(&watcher);
        let mut stream = AgentStream {
            line,
            _watcher: watcher,
            context,
            state,
            config,
            begin: Some(begin),
            outputs: VecDeque::new(),
            cancels: 0,
            tasks: Tasks::default(),
            key: KeyOfTurn::default(),
            untold: Vec::new(),
            held: None,
            flowing: None,
            paused: None,
            takes_offers: false,
            shown: Rc::default(),
            round_over: true,
            abort_heard: false,
            now: 0,
            result: None,
        };
        stream.publish();
        stream
    }

    /// Who runs.
    pub fn context(&self) -> &AgentRunContext {
        &self.context
    }

    /// Posts mail to the run.
    pub fn inbox(&self) -> Inbox {
        self.line.inbox.clone()
    }

    /// The state of the run.
    pub fn state(&self) -> &LoopState {
        &self.state
    }

    /// How the run ended; `None` before its end.
    pub fn result(&self) -> Option<&AgentLoopResult> {
        self.result.as_ref()
    }

    /// A run that goes on from a checkpoint, with the events that nobody was told of.
    pub(crate) fn resumed(
        line: Line,
        state: LoopState,
        untold: Vec<AgentEvent>,
        context: AgentRunContext,
    ) -> Self {
        let mut stream = AgentStream::new(line, state, Input::Resume, context);
        stream.untold = untold;
        stream
    }

    /// The run as it stands, to be put away and gone on with elsewhere: see [`Agent::restore`](crate::agent::Agent::restore).
    /// May be taken at any moment, also in the middle of an answer, a batch or a wait.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn checkpoint(&mut self) -> CheckpointEnvelopeV1 {
        let end_told = self.result.is_some();
        let mut own = String::new();
        let mut object = ObjectWriter::new(&mut own);
        self.write_checkpoint(end_told, &mut object);
        object.end();
        CheckpointEnvelopeV1::of_state(&self.context.run_id, self.state.messages(), &own)
    }

    /// Writes down what the run is at: the members of the state that a checkpoint keeps. With `end_told` the end of
    /// the run was told, so that it is only history.
    pub(crate) fn write_checkpoint(&mut self, end_told: bool, out: &mut ObjectWriter<'_>) {
        self.hear_finished();
        let session = self.state.session();
        out.field("session", &session.snapshot()).field("changes", &session.changes());
        out.field("usage", &self.line.used.get());
        let mut mail = ListWriter::new(out.key("mail"));
        self.line.inbox.write_mail(&mut mail);
        if !self.abort_heard
            && let Some(reason) = self.line.cancel.reason()
        {
            AgentCommand::Cancel(reason).write_json(mail.item());
        }
        mail.end();
        match &self.begin {
            Some(Input::Begin(prompts)) => drop(out.field("prompts", prompts)),
            Some(Input::Continue) => out.key("prompts").push_str("null"),
            _ if end_told => {}
            _ => {
                self.look_at_the_clock();
                let (unannounced, waiting) = unsaid(&self.outputs);
                self.state.write_checkpoint(self.now, &unannounced, out.key("run"));
                let mut untold = ListWriter::new(out.key("untold"));
                self.untold.iter().for_each(|event| event.write_json(untold.item()));
                waiting.iter().for_each(|event| event.write_json(untold.item()));
                untold.end();
            }
        }
    }

    /// Takes the answers of tools that are done, and what else came and only waits until the mail that came with it was
    /// told: what a tool has done and a person has said must not be forgotten.
    fn hear_finished(&mut self) {
        if self.begin.is_none() && !self.state.is_ended() {
            self.hear_tools();
            self.tasks.begin_round();
            self.hear_tools();
            if let Some((id, polled)) = self.held.take_if(|held| matches!(held.1, Polled::Last(_))) {
                self.take_polled(id, polled);
            }
        }
    }

    /// Runs to the end and gives the result.
    pub async fn finish(mut self) -> AgentLoopResult {
        while self.next().await.is_some() {}
        self.result.clone().unwrap_or_else(|| AgentLoopResult {
            run_id: self.context.run_id.clone(),
            messages: Vec::new(),
            text: String::new(),
            output: None,
            usage: Usage::default(),
            turns: 0,
            stop_reason: RunStopReason::Error,
            error: Some(AgentError::new(ErrorKind::Internal, "the run ended in silence")),
        })
    }

    /// As polling the stream, for listeners that are told in batches. With `told` the caller says that everything it
    /// got before has reached them; without, the run stops at the next [`Next::Barrier`]: no effect starts, and no
    /// answer ends, before the listeners had their say.
    pub fn poll_output(&mut self, cx: &mut Context<'_>, told: bool) -> Poll<Next> {
        if let Some(begin) = self.begin.take() {
            self.begin(begin);
        }
        self.flowing = self.flowing.or(self.paused.take());
        loop {
            match self.outputs.pop_front() {
                Some(Output::Event(event)) => {
                    self.tell(&event);
                    return Poll::Ready(Next::Event(event));
                }
                Some(Output::Receipt(id, receipt)) => (self.line.receipts)(id, receipt),
                Some(Output::Cancel(id)) => {
                    self.cancels = self.cancels.saturating_sub(1);
                    self.drop_effect(id);
                }
                Some(start) if self.takes_offers && !self.has_news() && self.is_offer(&start) => {
                    self.outputs.push_front(start);
                    return Poll::Ready(Next::Offer);
                }
                Some(start @ Output::Start { .. }) if !told => {
                    self.outputs.push_front(start);
                    return Poll::Ready(Next::Barrier);
                }
                Some(Output::Start { id, effect, announce }) => {
                    // Hooks hear of what is in the history, whatever came meanwhile; then nobody waits for them.
                    if !tells_the_past(&effect) {
                        self.hear_tools();
                        self.hear();
                        if self.is_cancelled(id) {
                            continue;
                        }
                    }
                    if let Some(event) = announce {
                        self.outputs.push_front(Output::Start { id, effect, announce: None });
                        self.outputs.push_front(Output::Event(event));
                        continue;
                    }
                    self.start(id, effect);
                }
                None if self.state.is_ended() => return Poll::Ready(Next::End),
                None if self.flowing.is_some() => {
                    if let Some(event) = self.flow() {
                        (self.line.listener)(&event);
                        return Poll::Ready(Next::Event(event));
                    }
                }
                None => match self.poll_tasks(cx, told) {
                    Poll::Ready(true) => {}
                    Poll::Ready(false) => return Poll::Ready(Next::Barrier),
                    Poll::Pending => return Poll::Pending,
                },
            }
        }
    }

    /// Asks for [`Next::Offer`]: who is told in batches is told of all calls that start together at once, not one by one.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn take_offers(&mut self) {
        self.takes_offers = true;
    }

    /// The announcements of the calls that start now, one after the other.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn each_offered(&self, tell: &mut dyn FnMut(&AgentEvent)) {
        for output in &self.outputs {
            match output {
                Output::Start { announce: Some(event), .. } if self.is_offer(output) => tell(event),
                _ => return,
            }
        }
    }

    /// So many of the calls that were offered are announced; the others wait for what was posted meanwhile.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn announced(&mut self, count: usize) {
        for output in self.outputs.iter_mut().take(count) {
            if let Output::Start { announce, .. } = output
                && let Some(event) = announce.take()
            {
                (self.line.listener)(&event);
            }
        }
    }

    /// A call that may start as soon as its announcement is told.
    fn is_offer(&self, output: &Output) -> bool {
        match output {
            Output::Start { id, effect: Effect::Execute { .. }, announce: Some(_) } => {
                !self.is_cancelled(*id)
            }
            _ => false,
        }
    }

    /// Whether something came in that counts before another call starts.
    fn has_news(&self) -> bool {
        self.has_mail() || !self.tasks.is_round_heard()
    }

    /// What was posted before the run counts before it begins, also that it shall not be. A run that goes on says so
    /// first, and what is still to tell.
    #[inline(never)]
    fn begin(&mut self, begin: Input) {
        if matches!(begin, Input::Resume) {
            self.step(begin);
            return tell_first(std::mem::take(&mut self.untold), &mut self.outputs);
        }
        let mut stop = None;
        while let Some(command) = self.line.inbox.take() {
            match command {
                AgentCommand::Cancel(reason) => stop = stop.or(Some(reason)),
                command => self.step(Input::Command(command)),
            }
        }
        self.step(begin);
        if let Some(reason) = stop {
            self.step(Input::Abort(reason));
        }
    }

    /// The way of most events: the answer goes on, and nothing else has happened that would come first.
    fn flow(&mut self) -> Option<AgentEvent> {
        while let Some(id) = self.flowing.take() {
            if self.held.is_some() || !self.round_over || self.has_mail() {
                return None;
            }
            let Some(reply) = self.tasks.poll_on(id) else {
                self.paused = Some(id);
                return None;
            };
            if self.has_mail() {
                // What was polled has aborted or steered: that counts before what it says.
                self.held = Some((id, Polled::More(reply)));
                return None;
            }
            self.look_at_the_clock();
            match self.state.flow(self.now, id, reply) {
                Ok(event) => {
                    self.flowing = Some(id);
                    if event.is_some() {
                        return event;
                    }
                }
                Err(other) => self.held = Some((id, Polled::More(other))),
            }
        }
        None
    }

    /// Whether an abort or mail waits to be heard.
    fn has_mail(&self) -> bool {
        !self.line.inbox.is_empty() || (!self.abort_heard && self.line.cancel.is_cancelled())
    }

    /// Lets something happen: a tool's answer first, then abort and mail, then the rest. `Ready(true)` when something
    /// did, `Ready(false)` when the listeners must be told first.
    #[inline(never)]
    fn poll_tasks(&mut self, cx: &mut Context<'_>, told: bool) -> Poll<bool> {
        self.tasks.wake_by(cx.waker());
        self.line.inbox.wake_by(cx.waker());
        if self.round_over {
            self.round_over = false;
            self.tasks.begin_round();
        }
        if let Some((id, polled)) = self.tasks.poll_round() {
            self.take_polled(id, polled);
            return Poll::Ready(true);
        }
        self.round_over = true;
        if self.hear() {
            return Poll::Ready(true);
        }
        if self.held.is_none() {
            self.held = self.tasks.poll_others();
            // What was polled may have aborted or steered: that counts before what it says.
            if self.held.is_some() && self.hear() {
                return Poll::Ready(true);
            }
        }
        match self.held.take() {
            None => {
                if self.tasks.is_empty() && self.state.has_open_approvals() && self.line.inbox.0.closed.get()
                {
                    self.step(Input::Abort("nobody is left to decide about the calls".into()));
                    return Poll::Ready(true);
                }
                if self.tasks.has_woken() {
                    // What woke itself meanwhile has its turn when the others of the executor had theirs.
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            Some((id, Polled::More(reply))) if !told && ends_answer(&reply) => {
                self.held = Some((id, Polled::More(reply)));
                Poll::Ready(false)
            }
            Some((id, polled)) => {
                self.take_polled(id, polled);
                Poll::Ready(true)
            }
        }
    }

    /// Takes what the tools of this round have to say.
    fn hear_tools(&mut self) {
        while let Some((id, polled)) = self.tasks.poll_round() {
            self.take_polled(id, polled);
        }
    }

    fn take_polled(&mut self, id: EffectId, polled: Polled) {
        match polled {
            Polled::More(reply) => {
                self.flowing = matches!(reply, Reply::Stream(_)).then_some(id);
                self.step(Input::Reply(id, reply));
            }
            Polled::Last(reply) => {
                self.hear_progress();
                self.tasks.remove(id);
                self.step(Input::Reply(id, reply));
            }
        }
    }

    /// Takes what the tools have shown. What may end them comes after it: nothing that was shown is lost.
    fn hear_progress(&mut self) {
        if !self.shown.replace(false) {
            return;
        }
        while let Some((id, polled)) = self.tasks.take_progress() {
            self.take_polled(id, polled);
        }
    }

    /// Hands over abort and mail. Whether there was any.
    fn hear(&mut self) -> bool {
        let mut heard = false;
        if !self.abort_heard && self.line.cancel.is_cancelled() {
            self.abort_heard = true;
            heard = true;
            self.hear_progress();
            let reason = self.line.cancel.reason().unwrap_or_else(|| "the run was aborted".into());
            self.step(Input::Abort(reason));
        }
        self.hear_mail() || heard
    }

    fn hear_mail(&mut self) -> bool {
        let mut heard = false;
        // What comes after the end is for the next run.
        while !self.state.is_ended()
            && let Some(command) = self.line.inbox.take()
        {
            heard = true;
            self.hear_progress();
            self.step(match command {
                AgentCommand::Steer(letter) => Input::Steer(self.line.inbox.with_steering_after(letter)),
                command => Input::Command(command),
            });
        }
        heard
    }

    fn step(&mut self, input: Input) {
        self.look_at_the_clock();
        // Mostly the list is empty: then the machine writes into it, and nothing is moved.
        let is_behind = !self.outputs.is_empty();
        let mut out = if is_behind { Vec::new() } else { Vec::from(std::mem::take(&mut self.outputs)) };
        self.state.step(&self.config.rules, self.now, input, &mut out);
        self.cancels += out.iter().filter(|output| matches!(output, Output::Cancel(_))).count();
        if is_behind {
            self.outputs.extend(out)
        } else {
            self.outputs = out.into()
        }
        self.publish();
    }

    /// A clock that fails stands still.
    fn look_at_the_clock(&mut self) {
        self.now = guard(|| Ok(self.config.ports.timer.now())).unwrap_or(self.now);
    }

    /// Puts what changed where everybody may read it.
    fn publish(&mut self) {
        let mut published = self.line.published.borrow_mut();
        let messages = self.state.messages();
        if published.epoch != self.state.epoch() {
            published.epoch = self.state.epoch();
            published.messages = messages.to_vec();
        } else if let Some(fresh) = messages.get(published.messages.len()..) {
            published.messages.extend_from_slice(fresh);
        }
        published.usage = *self.state.usage();
        if self.state.has_open_approvals() || !published.pending_approvals.is_empty() {
            // They are asked about together and decided one by one: what is still open is not copied anew each time.
            let mut open = self.state.open_approvals().peekable();
            let known = &mut published.pending_approvals;
            known.retain(|call| open.next_if(|left| left.call_id == call.call_id).is_some());
            known.extend(open.cloned());
        }
    }

    /// Tells an event to the listeners. When they hear of the end, the run is over: they may begin another.
    fn tell(&mut self, event: &AgentEvent) {
        self.note_end(event);
        (self.line.listener)(event);
        if let AgentEvent::AgentEnd { .. } = event {
            (self.line.ended)();
        }
    }

    /// Leaves what is left to whoever comes next.
    fn hand_over(&mut self) {
        let mut published = self.line.published.borrow_mut();
        published.ended = true;
        (published.steering, published.follow_up) = self.state.take_queues();
        published.conversions = self.state.take_conversions();
    }

    fn note_end(&mut self, event: &AgentEvent) {
        if let AgentEvent::AgentEnd { messages, stop_reason, usage, turns, error } = event {
            self.hand_over();
            let last = messages.iter().rev().find_map(|message| match message {
                AgentMessage::Assistant(answer) => Some(answer.text()),
                _ => None,
            });
            let output = self.state.output().cloned();
            self.result = Some(AgentLoopResult {
                run_id: self.context.run_id.clone(),
                messages: messages.clone(),
                text: output.as_ref().map(|json| json.as_str().to_owned()).or(last).unwrap_or_default(),
                output,
                usage: *usage,
                turns: *turns,
                stop_reason: *stop_reason,
                error: error.clone().map(AgentError::from),
            });
        }
    }

    fn drop_effect(&mut self, id: EffectId) {
        self.tasks.remove(id);
        if self.held.as_ref().is_some_and(|(held, _)| *held == id) {
            self.held = None;
        }
    }

    /// Whether a cancellation of the effect waits in the list.
    fn is_cancelled(&self, id: EffectId) -> bool {
        let is_this = |output: &Output| matches!(output, Output::Cancel(cancelled) if *cancelled == id);
        self.cancels > 0 && self.outputs.iter().any(is_this)
    }

    #[inline(never)]
    fn start(&mut self, id: EffectId, effect: Effect) {
        if let Effect::Prepare { overflow: false } = effect
            && self.state.is_turn_new()
        {
            // What the host changed holds from the next turn on, as a whole.
            self.config = self.line.config.borrow().clone();
        }
        let config = self.config.clone();
        let ports = &config.ports;
        if let Some(reply) = unasked(ports, &effect) {
            return self.step(Input::Reply(id, reply));
        }
        let cancel = CancelToken::new();
        let beside = matches!(effect, Effect::Poll(_));
        let work = match effect {
            Effect::Prepare { overflow } => {
                let Some(transformer) = ports.transformer.clone() else { return };
                let messages: Rc<[AgentMessage]> = self.state.messages().into();
                let answer = guard(|| Ok(transformer.transform(messages, overflow, cancel.clone())));
                Work::once(answer, Reply::Prepared)
            }
            Effect::Poll(queue) => {
                let Some(provider) = ports.messages.clone() else { return };
                let answer = guard(|| {
                    let messages = match queue {
                        Queue::FollowUp => provider.poll_follow_up(),
                        _ => provider.poll_steering(),
                    };
                    Ok(Box::pin(async { Ok(messages.await) }) as LocalBoxFuture<'static, _>)
                });
                Work::once(answer, |messages| Reply::Polled(messages.unwrap_or_default()))
            }
            Effect::Compact { model } => {
                let Some(engine) = ports.compaction.clone() else { return };
                let messages: Rc<[AgentMessage]> = self.state.messages().into();
                let call = CompactionCall { messages, model, cancel: cancel.clone() };
                let answer = guard(|| Ok(engine.compact(&self.context, call)));
                Work::once(answer, |compaction| Reply::Compacted(Some(compaction)))
            }
            Effect::Approve(request) => {
                let Some(approver) = ports.approver.clone() else { return };
                let answer = guard(|| Ok(approver.decide(request, cancel.clone())));
                Work::once(answer, Reply::Approved)
            }
            Effect::Sleep { ms } => {
                let sleep = guard(|| Ok(ports.timer.sleep(ms)));
                // A timer that fails never rings.
                let sleep = sleep.unwrap_or_else(|_| Box::pin(std::future::pending()));
                Work::once(Ok(Box::pin(sleep.map(Ok))), |_| Reply::Slept)
            }
            Effect::Hook(call) => {
                let run = self.line.cancel.clone();
                let told = tell_hooks(config.clone(), self.context.clone(), run, call);
                Work::once(Ok(told), |told| Reply::Hook(told.map_err(hook_error)))
            }
            Effect::Execute { tool, call_id, arguments } => {
                self.execute(&config, tool, call_id, arguments, cancel.clone())
            }
            Effect::Infer { model, turn_index, request } => {
                Work::Model(self.infer(&config, model, turn_index, request, &cancel))
            }
        };
        self.tasks.insert(id, work, cancel);
        if beside {
            // An answer that is there at once counts before anything else starts.
            let polled = self.tasks.poll(id);
            if let Some(Polled::Last(Reply::Polled(messages))) = &polled
                && messages.is_empty()
            {
                // Whoever was asked may have aborted or steered meanwhile: that counts before "nothing".
                self.hear();
            }
            polled.into_iter().for_each(|polled| self.take_polled(id, polled));
        }
    }

    fn execute(
        &self,
        config: &Rc<AgentLoopConfig>,
        tool: usize,
        call_id: Rc<str>,
        arguments: RawJson,
        cancel: CancelToken,
    ) -> Work {
        let updates = Updates::noted_in(self.shown.clone());
        let tool_name =
            config.rules.tools.get(tool).map_or_else(|| "".into(), |spec| spec.schema.name.clone());
        let Some(tool) = config.ports.tools.get(tool).cloned() else {
            let gone = ToolOutcome::Failed("the tool is not there any more".to_owned());
            return Work::tool(Box::pin(async { gone }), updates);
        };
        let context = ToolContext {
            call_id,
            tool_name,
            run_id: self.context.run_id.clone(),
            session_id: self.context.session_id.clone(),
            arguments,
            cancel,
            updates: updates.clone(),
            state: self.state.session().clone(),
        };
        let future = guard(|| Ok(tool.execute(context)));
        let future = future.unwrap_or_else(|text| Box::pin(async { ToolOutcome::Failed(text) }));
        Work::tool(future, updates)
    }

    /// First the key, once per turn, then the call.
    fn infer(
        &self,
        config: &Rc<AgentLoopConfig>,
        model: usize,
        turn_index: u32,
        mut request: ModelRequest,
        cancel: &CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let Some(model) = config.ports.models.get(model).cloned() else {
            return failed_stream(ErrorInfo::new(ErrorKind::Misuse, "there is no such model"));
        };
        let (context, cancel) = (self.context.clone(), cancel.clone());
        let known = self.key.borrow().clone();
        let known = known.filter(|(turn, provider, _)| *turn == turn_index && *provider == model.provider);
        let call = move |mut request: ModelRequest, key: Option<Rc<str>>| {
            request.api_key = key;
            let stream = guard(|| Ok(model.stream_fn.stream(request, &context, cancel)));
            stream.unwrap_or_else(|text| failed_stream(ErrorInfo::new(ErrorKind::Unknown, text)))
        };
        let Some(keys) = config.ports.keys.clone() else { return call(request, None) };
        if let Some((_, _, key)) = known {
            return call(request, key);
        }
        let (kept, run) = (self.key.clone(), self.line.cancel.clone());
        let provider = model.provider.clone();
        request.api_key = None;
        let asked = async move {
            let key = match guard(|| Ok(keys.key(&provider))) {
                Ok(future) => future.await,
                Err(text) => Err(text),
            };
            if run.is_cancelled() {
                // Who gives keys has stopped the run: no model is called any more.
                return std::future::pending().await;
            }
            match key {
                Ok(key) => {
                    *kept.borrow_mut() = Some((turn_index, provider, key.clone()));
                    call(request, key)
                }
                Err(text) => {
                    let text = ["the key could not be had: ", &text].concat();
                    failed_stream(ErrorInfo::new(ErrorKind::Auth, text))
                }
            }
        };
        Box::pin(Keyed::Asked(Box::pin(asked)))
    }
}

/// A model call: first its key, then its events.
enum Keyed {
    Asked(LocalBoxFuture<'static, LocalBoxStream<'static, AssistantMessageEvent>>),
    Open(LocalBoxStream<'static, AssistantMessageEvent>),
}

impl Stream for Keyed {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        if let Keyed::Asked(asked) = &mut *self {
            match asked.as_mut().poll(cx) {
                Poll::Ready(stream) => *self = Keyed::Open(stream),
                Poll::Pending => return Poll::Pending,
            }
        }
        match &mut *self {
            Keyed::Open(stream) => stream.as_mut().poll_next(cx),
            Keyed::Asked(_) => Poll::Pending,
        }
    }
}

impl Stream for AgentStream {
    type Item = AgentEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AgentEvent>> {
        match self.poll_output(cx, true) {
            Poll::Ready(Next::Event(event)) => Poll::Ready(Some(event)),
            Poll::Ready(Next::Barrier | Next::Offer | Next::End) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for AgentStream {
    /// A run that nobody polls any more is stopped, so that its history is whole, and its end is told.
    fn drop(&mut self) {
        if self.result.is_some() {
            return;
        }
        match self.begin.take() {
            None => {}
            // It began before its checkpoint.
            Some(begin @ Input::Resume) => self.begin(begin),
            Some(_) => {
                // It never began: there is nothing to tell.
                self.hand_over();
                return (self.line.ended)();
            }
        }
        // The second time only the error hooks can be left; nobody waits for them.
        for _ in 0..2 {
            self.step(Input::Abort("the run was dropped".into()));
        }
        while let Some(output) = self.outputs.pop_front() {
            match output {
                Output::Event(event) => self.tell(&event),
                Output::Receipt(id, receipt) => (self.line.receipts)(id, receipt),
                Output::Start { .. } | Output::Cancel(_) => {}
            }
        }
    }
}

async fn tell_hooks_in_order(
    config: Rc<AgentLoopConfig>,
    context: AgentRunContext,
    run: CancelToken,
    call: HookCall,
) -> Result<(), String> {
    let is_error = matches!(call, HookCall::OnError { .. });
    for hook in &config.ports.hooks {
        if !hook.stages().has(&call) {
            continue;
        }
        if run.is_cancelled() && !is_past(&call) {
            // The hook before it has stopped the run: nobody else is told.
            return std::future::pending().await;
        }
        let told = match guard(|| Ok(hook.call(&context, call.clone()))) {
            Ok(mut future) => {
                std::future::poll_fn(move |cx| match guard(|| Ok(future.as_mut().poll(cx))) {
                    Ok(poll) => poll,
                    Err(text) => Poll::Ready(Err(text)),
                })
                .await
            }
            Err(text) => Err(text),
        };
        if !is_error {
            told?;
        }
    }
    Ok(())
}

fn tell_hooks(
    config: Rc<AgentLoopConfig>,
    context: AgentRunContext,
    run: CancelToken,
    call: HookCall,
) -> LocalBoxFuture<'static, Result<(), String>> {
    let mut told: LocalBoxFuture<'static, _> = Box::pin(tell_hooks_in_order(config, context, run, call));
    // The hooks hear of it where it stands in the order of things, also where the run is stopped before they are done.
    match told.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
        Poll::Pending => told,
    }
}

/// What an effect answers for which the host has nobody.
fn unasked(ports: &Ports, effect: &Effect) -> Option<Reply> {
    match effect {
        Effect::Prepare { .. } if ports.transformer.is_none() => {
            Some(Reply::Prepared(Ok(Transform::default())))
        }
        Effect::Poll(queue) if *queue == Queue::Posted || ports.messages.is_none() => {
            Some(Reply::Polled(Vec::new()))
        }
        Effect::Compact { .. } if ports.compaction.is_none() => Some(Reply::Compacted(None)),
        _ => None,
    }
}

fn tells_the_past(effect: &Effect) -> bool {
    matches!(effect, Effect::Hook(call) if is_past(call))
}

fn is_past(call: &HookCall) -> bool {
    matches!(call, HookCall::AfterInference { .. } | HookCall::AfterToolExecution { .. })
}

fn hook_error(text: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Hook, ["a hook failed: ", &text].concat()).in_phase("hook")
}

fn failed_stream(error: ErrorInfo) -> LocalBoxStream<'static, AssistantMessageEvent> {
    stream::iter([AssistantMessageEvent::Error(error)]).boxed_local()
}

fn ends_answer(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::StreamEnded
            | Reply::Stream(AssistantMessageEvent::Done { .. } | AssistantMessageEvent::Error(_))
    )
}
