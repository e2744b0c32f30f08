//! A model that improvises.

use turnwheel::machine::Reply;
use turnwheel::message::{MessageStopReason, Usage};
use turnwheel::stream::AssistantMessageEvent as E;

use super::random::{ELSEWHERE, error};
use super::{Kind, Script, TOOLS};
use crate::dice::Dice;

impl Script {
    /// Returns the next thing to say, and whether more may follow.
    pub(super) fn next(&mut self, dice: &Dice) -> (Reply, bool) {
        self.emitted += 1;
        let event = self.event(dice);
        let more = !matches!(event, Some(E::Done { .. } | E::Error(_)) | None);
        (event.map_or(Reply::StreamEnded, Reply::Stream), more)
    }

    fn event(&mut self, dice: &Dice) -> Option<E> {
        if self.emitted == 1 && dice.chance(80) {
            return Some(E::Start);
        }
        if self.blocks.is_empty() && dice.chance(90) {
            return Some(self.open(dice));
        }
        match dice.below(100) {
            0..20 if self.blocks.len() < 4 => Some(self.open(dice)),
            20..50 if !self.blocks.is_empty() => Some(self.delta(dice)),
            50..55 if !self.blocks.is_empty() => Some(self.close(dice)),
            55..57 => Some(E::Ping),
            57 => Some(E::Usage(Usage { input: 2, output: 1, ..Usage::default() })),
            58 => None,
            59..62 => Some(E::Error(error(dice))),
            // Something that no provider should send.
            62 if dice.chance(50) => Some(E::TextDelta { index: 9, delta: "lost".to_owned() }),
            _ => Some(self.done(dice)),
        }
    }

    fn open(&mut self, dice: &Dice) -> E {
        let index = u32::try_from(self.blocks.len()).unwrap_or(0);
        let kind = *dice.pick(&[Kind::Text, Kind::Thinking, Kind::Call, Kind::Call, Kind::Call]);
        self.blocks.push((kind, true));
        match kind {
            Kind::Text => E::TextStart { index },
            Kind::Thinking => E::ThinkingStart { index },
            Kind::Call => {
                let call_id = (*dice.pick(&["a", "b", "c", "", "a#2", "call_1"])).to_owned();
                let tool_name = *dice.pick(&TOOLS);
                let is_elsewhere = self.knows_elsewhere && tool_name == "t0" && dice.aside().chance(40);
                let tool_name = if is_elsewhere { ELSEWHERE } else { tool_name };
                E::ToolCallStart { index, call_id, tool_name: tool_name.to_owned() }
            }
        }
    }

    fn delta(&mut self, dice: &Dice) -> E {
        // Usually the last one.
        let at = if dice.chance(90) { self.blocks.len() - 1 } else { dice.below(self.blocks.len()) };
        let index = u32::try_from(at).unwrap_or(0);
        if (!self.blocks[at].1 || self.argued == Some(at)) && dice.chance(95) {
            return E::Ping;
        }
        match self.blocks[at].0 {
            Kind::Text => E::TextDelta { index, delta: (*dice.pick(&["word ", "", "1"])).to_owned() },
            Kind::Thinking => E::ThinkingDelta { index, delta: "hm ".to_owned() },
            Kind::Call => {
                self.argued = Some(at);
                let pieces = ["{\"n\":1}", "{}", "{\"n\":2}", "{}", "{\"n\":", "[1]", "oops", " ", "null"];
                let piece = dice.pick(&pieces);
                E::ToolCallDelta { index, delta: (*piece).to_owned() }
            }
        }
    }

    fn close(&mut self, dice: &Dice) -> E {
        let at = dice.below(self.blocks.len());
        let index = u32::try_from(at).unwrap_or(0);
        let Some(block) = self.blocks.get_mut(at) else { return E::Ping };
        block.1 = false;
        match block.0 {
            Kind::Text => E::TextEnd { index, signature: None },
            Kind::Thinking => E::ThinkingEnd { index, signature: None, redacted: false },
            Kind::Call => E::ToolCallEnd { index, metadata: None },
        }
    }

    /// Most models close what they open.
    fn done(&mut self, dice: &Dice) -> E {
        let open = self.blocks.iter().position(|(_, open)| *open);
        if let Some(at) = open.filter(|_| dice.chance(97)) {
            let index = u32::try_from(at).unwrap_or(0);
            let kind = self.blocks[at].0;
            self.blocks[at].1 = false;
            return match kind {
                Kind::Text => E::TextEnd { index, signature: None },
                Kind::Thinking => E::ThinkingEnd { index, signature: None, redacted: false },
                Kind::Call => E::ToolCallEnd { index, metadata: None },
            };
        }
        use MessageStopReason as S;
        let rare = [S::Pause, S::Refusal, S::ContentFilter, S::Error, S::Aborted];
        let common = [S::Stop, S::ToolUse, S::ToolUse, S::Length];
        let reasons = if dice.chance(8) { &rare[..] } else { &common[..] };
        let usage = dice.chance(50).then(|| Usage { input: 5, output: 3, total: 8, ..Usage::default() });
        E::Done { stop_reason: *dice.pick(reasons), usage }
    }
}
