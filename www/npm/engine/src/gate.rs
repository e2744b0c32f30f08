//! An answer whose end waits: its pieces pass as they come, and what ends it enters the run only after JavaScript has stored
//! all of it. The half of `host.step` that only the engine can do, because nobody else has the whole answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use futures::Stream;
use futures::stream::LocalBoxStream;

use turnwheel::json::{FromJson, ToJson, Value};
use turnwheel::stream::AssistantMessageEvent;

use crate::bridge::{self, HostEffect, PendingAnswer};

/// See the module.
pub(super) struct Gate {
    answer: LocalBoxStream<'static, AssistantMessageEvent>,
    /// What has passed, the pieces of a block as one.
    passed: Vec<AssistantMessageEvent>,
    /// What the end waits for.
    held: Option<PendingAnswer>,
    end: Option<AssistantMessageEvent>,
    is_open: bool,
    /// What JavaScript lets pass in place of all this.
    instead: Option<IntoIter<AssistantMessageEvent>>,
}

impl Gate {
    pub(super) fn new(answer: LocalBoxStream<'static, AssistantMessageEvent>) -> Self {
        Gate { answer, passed: Vec::new(), held: None, end: None, is_open: false, instead: None }
    }

    fn note(&mut self, event: &AssistantMessageEvent) {
        use AssistantMessageEvent as E;
        match (self.passed.last_mut(), event) {
            (_, E::Ping) => {}
            (Some(E::TextDelta { delta: all, index: of }), E::TextDelta { delta, index })
            | (Some(E::ThinkingDelta { delta: all, index: of }), E::ThinkingDelta { delta, index })
            | (Some(E::ToolCallDelta { delta: all, index: of }), E::ToolCallDelta { delta, index })
                if of == index =>
            {
                all.push_str(delta);
            }
            _ => self.passed.push(event.clone()),
        }
    }

    /// Asks whether the end may enter.
    fn hold(&mut self, end: Option<AssistantMessageEvent>) {
        self.passed.extend(end.clone());
        let text = [r#"{"kind":"gate","events":"#, &self.passed.to_json(), "}"].concat();
        self.passed.clear();
        self.end = end;
        self.held = Some(bridge::ask(HostEffect::Json(text), None));
    }

    /// The end may enter, or the answer is void: other events stand for it. If they have no end, an abort is about to end it.
    fn open(&mut self, answer: &Value) {
        self.is_open = true;
        let events = answer.get("events").map(Vec::from_json);
        self.instead = events.map(|events| events.unwrap_or_default().into_iter());
    }
}

impl Stream for Gate {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        use AssistantMessageEvent as E;
        loop {
            if let Some(instead) = &mut self.instead {
                return instead.next().map_or(Poll::Pending, |event| Poll::Ready(Some(event)));
            }
            if self.is_open {
                return Poll::Ready(self.end.take());
            }
            if let Some(held) = &mut self.held {
                let Poll::Ready(answer) = Pin::new(held).poll(cx) else { return Poll::Pending };
                self.held = None;
                self.open(&answer.unwrap_or_default());
                continue;
            }
            match self.answer.as_mut().poll_next(cx) {
                Poll::Ready(end @ (None | Some(E::Done { .. } | E::Error(_)))) => self.hold(end),
                Poll::Ready(Some(event)) => {
                    self.note(&event);
                    return Poll::Ready(Some(event));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
