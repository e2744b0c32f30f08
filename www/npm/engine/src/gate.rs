//! An answer whose end waits: its pieces pass as they come, and what ends it enters the run only after JavaScript has stored
//! all of it. The half of `host.step` that only the engine can do, because nobody else has the whole answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use futures::stream::LocalBoxStream;

use turnwheel::error::ErrorInfo;
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
}

impl Gate {
    pub(super) fn new(answer: LocalBoxStream<'static, AssistantMessageEvent>) -> Self {
        Gate { answer, passed: Vec::new(), held: None, end: None, is_open: false }
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

    /// The answer may enter, or what cannot be stored becomes this error, and the answer is void.
    fn open(&mut self, refused: Option<&Value>) -> bool {
        self.is_open = true;
        let error = refused.and_then(|error| ErrorInfo::from_json(error).ok());
        let is_void = error.is_some();
        if let Some(error) = error {
            self.end = Some(AssistantMessageEvent::Error(error));
        }
        is_void
    }
}

impl Stream for Gate {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        use AssistantMessageEvent as E;
        loop {
            if self.is_open {
                return Poll::Ready(self.end.take());
            }
            if let Some(held) = &mut self.held {
                let Poll::Ready(answer) = Pin::new(held).poll(cx) else { return Poll::Pending };
                self.held = None;
                if self.open(answer.ok().as_ref().and_then(|answer| answer.get("error"))) {
                    return Poll::Ready(Some(E::Start));
                }
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
