//! What an agent asks of its host, and what the host has answered.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use turnwheel::json::{ObjectWriter, ToJson, Value};
use turnwheel::state::SessionState;
use turnwheel::tool::Updates;

/// What the host says about an effect.
pub(crate) enum Said {
    /// The head of an HTTP response.
    Head { status: u16, headers: Vec<(String, String)> },
    /// Bytes of its body.
    Body(Vec<u8>),
    /// Something that is not the last: an event of a model.
    Progress(Value),
    /// The last word.
    Done(Value),
    /// The last word: it failed, and why.
    Failed(String),
}

impl Said {
    fn is_last(&self) -> bool {
        matches!(self, Said::Done(_) | Said::Failed(_))
    }
}

/// Where a call of a tool reports its progress, and the state that it shares with the others.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) updates: Updates,
    pub(crate) state: SessionState,
}

struct Open {
    id: u64,
    said: VecDeque<Said>,
    waker: Option<Waker>,
    call: Option<Call>,
}

/// The effects that the host works on, the outputs for it, and the questions of rules, which must be answered at once.
#[derive(Default)]
pub(crate) struct Desk {
    now: Cell<u64>,
    seed: Cell<u64>,
    next: Cell<u64>,
    open: RefCell<Vec<Open>>,
    out: RefCell<Vec<String>>,
    answers: RefCell<Vec<Result<Value, String>>>,
    /// How many of the answers this step has used.
    used: Cell<usize>,
    question: RefCell<Option<String>>,
    has_rules: Cell<bool>,
}

impl Desk {
    /// Begins a step, with the host's time and chance.
    pub(crate) fn begin(&self, now: u64, seed: u64) {
        self.now.set(now);
        // What came before counts too: a host that gives the same seed twice gets other ids.
        self.seed.set(self.random() ^ seed ^ 0x9E37_79B9_7F4A_7C15);
        self.used.set(0);
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Returns 64 random bits, made of the seed of the step (xorshift64*).
    pub(crate) fn random(&self) -> u64 {
        let mut bits = self.seed.get().max(1);
        bits ^= bits >> 12;
        bits ^= bits << 25;
        bits ^= bits >> 27;
        self.seed.set(bits);
        bits.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    /// Adds an output.
    pub(crate) fn put(&self, output: String) {
        self.out.borrow_mut().push(output);
    }

    pub(crate) fn take_outputs(&self) -> Vec<String> {
        self.out.take()
    }

    /// Starts an effect.
    pub(crate) fn start(self: &Rc<Self>, effect: &str, call: Option<Call>) -> Effect {
        let id = self.next_id();
        self.put(start(id, effect));
        self.open.borrow_mut().push(Open { id, said: VecDeque::new(), waker: None, call });
        Effect { desk: self.clone(), id }
    }

    /// Takes what the host says about an effect. An effect that is over or cancelled is not there any more: what comes late
    /// changes nothing.
    pub(crate) fn say(&self, id: u64, said: Said) {
        let waker = {
            let mut open = self.open.borrow_mut();
            let Some(effect) = open.iter_mut().find(|effect| effect.id == id) else { return };
            effect.said.push_back(said);
            effect.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The call of a tool that is an effect.
    pub(crate) fn call(&self, id: u64) -> Option<Call> {
        self.open.borrow().iter().find(|effect| effect.id == id)?.call.clone()
    }

    /// Asks the host inside a step. Without an answer the step is taken back and made again when there is one, so what is
    /// returned in that case does not matter.
    ///
    /// # Errors
    /// What the host said.
    pub(crate) fn ask(&self, name: &str, argument: &str) -> Result<Value, String> {
        let used = self.used.get();
        if let Some(answer) = self.answers.borrow().get(used) {
            self.used.set(used + 1);
            return answer.clone();
        }
        self.question.borrow_mut().get_or_insert_with(|| callback(name, argument));
        Err("the host is asked".to_owned())
    }

    /// Says that something may ask the host inside a step.
    pub(crate) fn expect_questions(&self) {
        self.has_rules.set(true);
    }

    pub(crate) fn has_rules(&self) -> bool {
        self.has_rules.get()
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.question.borrow().is_some()
    }

    pub(crate) fn take_question(&self) -> Option<String> {
        self.question.take()
    }

    pub(crate) fn answer(&self, answer: Result<Value, String>) {
        self.answers.borrow_mut().push(answer);
    }

    /// The step is made: its answers belong to it alone.
    pub(crate) fn forget_answers(&self) {
        self.answers.borrow_mut().clear();
    }
}

/// Writes an object with a `kind`.
pub(crate) fn effect(kind: &str, members: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    object(|object| {
        object.field("kind", kind);
        members(object);
    })
}

/// Writes an effect that is a call of a function of the host.
pub(crate) fn callback(name: &str, argument: &str) -> String {
    effect("callback", |object| {
        object.field("name", name);
        object.key("argument").push_str(argument);
    })
}

/// Writes the output that starts an effect.
pub(crate) fn start(id: u64, effect: &str) -> String {
    object(|object| {
        object.field("type", "start").field("id", &id);
        object.key("effect").push_str(effect);
    })
}

/// Writes an object.
pub(crate) fn object(members: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut text = String::new();
    let mut object = ObjectWriter::new(&mut text);
    members(&mut object);
    object.end();
    text
}

/// Writes an output with one more member.
pub(crate) fn output<T: ToJson + ?Sized>(kind: &str, key: &str, value: &T) -> String {
    object(|object| {
        object.field("type", kind).field(key, value);
    })
}

/// An effect that the host works on. Dropped before its last word, it is cancelled.
pub(crate) struct Effect {
    desk: Rc<Desk>,
    id: u64,
}

impl Effect {
    /// Returns what the host says next.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        let mut open = self.desk.open.borrow_mut();
        let place = open.iter().position(|effect| effect.id == self.id);
        let Some(place) = place else { return Poll::Ready(Said::Failed("it is over".to_owned())) };
        let Some(effect) = open.get_mut(place) else { return Poll::Pending };
        let Some(said) = effect.said.pop_front() else {
            effect.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if said.is_last() {
            drop(open.swap_remove(place));
        }
        Poll::Ready(said)
    }

    /// Waits for the last word.
    pub(crate) async fn done(mut self) -> Result<Value, String> {
        loop {
            match std::future::poll_fn(|cx| self.poll(cx)).await {
                Said::Done(value) => return Ok(value),
                Said::Failed(text) => return Err(text),
                _ => {}
            }
        }
    }
}

impl Drop for Effect {
    fn drop(&mut self) {
        let mut open = self.desk.open.borrow_mut();
        let Some(place) = open.iter().position(|effect| effect.id == self.id) else { return };
        let effect = open.swap_remove(place);
        drop(open);
        // The host may have said its last word in this very step.
        if !effect.said.iter().any(Said::is_last) {
            self.desk.put(output("cancel", "id", &self.id));
        }
    }
}
