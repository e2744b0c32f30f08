//! Questions that a tool asks while it runs.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use crate::data::json::RawJson;
use crate::rules::answer::Answer;

/// What a tool wants to know from a person.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// The question in words.
    pub message: String,
    /// A JSON Schema of what is to be answered; `None` if a yes is enough.
    pub schema: Option<RawJson>,
    /// An id for the question that no other question has; chosen by the loop if there is none.
    pub id: Option<String>,
}

/// A question on its way to the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// The number of the question among those of the call.
    pub number: u64,
    /// What is asked.
    pub ask: Ask,
}

/// The answers to the questions of a call. A question that nobody answers any more is cancelled.
#[derive(Clone, Default)]
pub(super) struct Answers(Rc<RefCell<AnswersState>>);

#[derive(Default)]
struct AnswersState {
    last: u64,
    given: Vec<(u64, Answer)>,
    wakers: Vec<Waker>,
    closed: bool,
}

impl Answers {
    pub(super) fn next_number(&self) -> u64 {
        let mut state = self.0.borrow_mut();
        state.last += 1;
        state.last
    }

    pub(super) fn give(&self, number: u64, answer: Answer) {
        let mut state = self.0.borrow_mut();
        state.given.push((number, answer));
        state.wake();
    }

    pub(super) fn close(&self) {
        let mut state = self.0.borrow_mut();
        state.closed = true;
        state.wake();
    }

    pub(super) fn poll(&self, number: u64, cx: &mut Context<'_>) -> Poll<Answer> {
        let mut state = self.0.borrow_mut();
        if let Some(at) = state.given.iter().position(|(given, _)| *given == number) {
            return Poll::Ready(state.given.swap_remove(at).1);
        }
        if state.closed {
            return Poll::Ready(Answer::Cancel);
        }
        state.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

impl AnswersState {
    fn wake(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}
