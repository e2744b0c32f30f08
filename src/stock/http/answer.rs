//! The events of a model call on their way to the loop: priced, and without the secrets of the call.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};

use crate::data::json::{RawJson, ToJson};
use crate::rules::secrets::{MASK, Pieces, Secrets};
use crate::rules::stream::AssistantMessageEvent;
use crate::words::error::ErrorInfo;

use super::ModelCall;

use AssistantMessageEvent as Event;

/// See [`ModelCall::answer`].
pub struct Answer<S> {
    events: S,
    call: ModelCall,
    has_secrets: bool,
    pieces: Pieces,
    /// What waits until the blocks that it ends have handed over what was held back.
    next: Option<Event>,
}

/// What a block consists of. Together with its index it names the block.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Thinking,
    Arguments,
}

impl<S> Answer<S> {
    pub(super) fn new(events: S, call: ModelCall) -> Self {
        let has_secrets = !call.all_secrets().is_empty();
        Answer { events, call, has_secrets, pieces: Pieces::default(), next: None }
    }

    /// Adds the cost to a usage, and masks the secrets. Events are large, and most are pieces: they are changed in place.
    #[inline]
    fn pass(&mut self, event: &mut Event) {
        let is_held = match event {
            Event::TextDelta { index, delta } => self.piece(*index, Kind::Text, delta),
            Event::ThinkingDelta { index, delta } => self.piece(*index, Kind::Thinking, delta),
            Event::ToolCallDelta { index, delta } => self.piece(*index, Kind::Arguments, delta),
            _ => {
                self.whole(event);
                false
            }
        };
        if is_held {
            // A sign of life all the same.
            *event = Event::Ping;
        }
    }

    /// Returns whether all of a piece is held back.
    #[inline]
    fn piece(&mut self, index: u32, kind: Kind, delta: &mut String) -> bool {
        if !self.has_secrets || delta.is_empty() {
            return false;
        }
        self.pieces.piece(self.call.all_secrets(), (index, kind as u8), delta);
        delta.is_empty()
    }

    /// Masks what is not a piece. What was held back of a block that ends goes first.
    fn whole(&mut self, event: &mut Event) {
        if let (Event::Usage(usage) | Event::Done { usage: Some(usage), .. }, Some(price)) =
            (&mut *event, self.call.price)
        {
            usage.cost = Some(price.of(usage));
        }
        if !self.has_secrets {
            return;
        }
        let secrets = self.call.all_secrets();
        let ended = match &*event {
            Event::TextEnd { index, .. } => Some((*index, Kind::Text as u8)),
            Event::ThinkingEnd { index, .. } => Some((*index, Kind::Thinking as u8)),
            Event::ToolCallEnd { index, .. } => Some((*index, Kind::Arguments as u8)),
            // A model of the host may have left a block open.
            Event::Done { .. } => self.pieces.open(),
            _ => None,
        };
        if let Some(block) = ended {
            let held = self.pieces.end(secrets, block);
            if !held.is_empty() {
                let piece = Kind::of(block.1).piece(block.0, held);
                self.next = Some(std::mem::replace(event, piece));
                return;
            }
        }
        match event {
            Event::Start => self.pieces.clear(),
            Event::ToolCallStart { call_id, tool_name, .. } => {
                secrets.mask_whole(call_id);
                secrets.mask_whole(tool_name);
            }
            Event::TextEnd { signature: Some(text), .. }
            | Event::ThinkingEnd { signature: Some(text), .. } => {
                secrets.mask_whole(text);
            }
            Event::ToolCallEnd { metadata: Some(json), .. } | Event::Raw { data: json, .. } => {
                mask_json(secrets, json)
            }
            Event::Error(error) => mask_error(secrets, error),
            Event::Done { .. } if self.pieces.open().is_some() => self.whole(event),
            _ => {}
        }
    }
}

impl Kind {
    fn of(number: u8) -> Kind {
        match number {
            0 => Kind::Text,
            1 => Kind::Thinking,
            _ => Kind::Arguments,
        }
    }

    fn piece(self, index: u32, delta: String) -> Event {
        match self {
            Kind::Text => Event::TextDelta { index, delta },
            Kind::Thinking => Event::ThinkingDelta { index, delta },
            Kind::Arguments => Event::ToolCallDelta { index, delta },
        }
    }
}

impl<S: Stream<Item = Event> + Unpin> Stream for Answer<S> {
    type Item = Event;

    #[inline]
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if let Some(mut event) = self.next.take() {
            self.whole(&mut event);
            return Poll::Ready(Some(event));
        }
        match self.events.poll_next_unpin(cx) {
            Poll::Ready(Some(mut event)) => {
                self.pass(&mut event);
                Poll::Ready(Some(event))
            }
            other => other,
        }
    }
}

/// Masks the secrets of a document that the engine only hands on. If nothing valid is left, a text stands in its place.
fn mask_json(secrets: &Secrets, json: &mut RawJson) {
    let mut text = json.to_json();
    secrets.mask_whole(&mut text);
    if text != json.as_str() {
        *json = RawJson::parse(&text).unwrap_or_else(|_| RawJson::string(MASK));
    }
}

/// Servers repeat the key that they refuse, and so does a host that cannot send it.
fn mask_error(secrets: &Secrets, error: &mut ErrorInfo) {
    secrets.mask(&mut error.message);
    error.phase.iter_mut().for_each(|text| secrets.mask(text));
    if let Some(provider) = &mut error.provider {
        provider.kind.iter_mut().chain(&mut provider.code).for_each(|text| secrets.mask(text));
    }
}
