//! An answer whose end waits: its pieces pass as they come, and what ends it enters the run only after JavaScript has stored
//! all of it. The half of `host.step` that only the engine can do, because nobody else has the whole answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::LocalBoxStream;

use turnwheel::json::ToJson;
use turnwheel::stream::AssistantMessageEvent;

use crate::bridge::{self, HostEffect, PendingAnswer};

/// See the module.
pub(super) struct Gate {
    answer: LocalBoxStream<'static, AssistantMessageEvent>,
    /// What has passed, the pieces of a block as one.
    passed: Vec<AssistantMessageEvent>,
    /// What waits, and for what.
    held: Option<(Option<AssistantMessageEvent>, PendingAnswer)>,
}

impl Gate {
    pub(super) fn new(answer: LocalBoxStream<'static, AssistantMessageEvent>) -> Self {
        Gate { answer, passed: Vec::new(), held: None }
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
        self.held = Some((end, bridge::ask(HostEffect::Json(text), None)));
    }
}

impl Stream for Gate {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        use AssistantMessageEvent as E;
        loop {
            if let Some((end, answer)) = &mut self.held {
                let end = end.take();
                return match Pin::new(answer).poll(cx) {
                    Poll::Ready(_) => {
                        self.held = None;
                        Poll::Ready(end)
                    }
                    Poll::Pending => {
                        if let Some((held, _)) = &mut self.held {
                            *held = end;
                        }
                        Poll::Pending
                    }
                };
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
