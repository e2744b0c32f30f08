//! A tool that works for a while, asks, and has an agent inside it.

use turnwheel::json::RawJson;
use turnwheel::tool::{Ask, Asking, ChildEvent, Progress};

use super::Working;
use super::random::raw;
use crate::dice::Dice;

impl Working {
    pub(super) fn waits(&self) -> bool {
        !self.open.is_empty() || !self.child.is_empty()
    }

    pub(super) fn progress(&mut self, dice: &Dice) -> Progress {
        let aside = dice.aside();
        match aside.below(6) {
            0 | 1 => {
                self.asked += 1;
                self.open.insert(self.asked);
                let id = aside.chance(30).then(|| format!("q-{}", aside.below(1_000_000_000)));
                let ask = Ask { message: "which one?".to_owned(), schema: None, id };
                Progress::Ask(Asking { number: self.asked, ask })
            }
            2 => child_event(
                r#"{"type":"message_end","message":{"role":"assistant","content":[],"usage":{"input":2,"output":1,"total":3}}}"#,
                &aside,
            ),
            3 => {
                self.child_asked += 1;
                let id = format!("{}-{}-{}", self.call_id, self.child_asked, aside.below(1_000_000_000));
                let kind = if aside.chance(50) { "budget" } else { "elicitation" };
                let event = format!(
                    r#"{{"type":"question_asked","id":"{id}","kind":"{kind}","path":[],"message":"more?","askedAt":1}}"#
                );
                self.child.push(id);
                child_event(&event, &aside)
            }
            _ => Progress::Update(RawJson::string("working")),
        }
    }

    /// The agent inside has its answer.
    pub(super) fn close_question(&mut self) -> Option<Progress> {
        let id = self.child.pop()?;
        let event = format!(
            r#"{{"type":"question_resolved","id":"{id}","kind":"budget","accepted":true,"by":"command","path":[]}}"#
        );
        Some(Progress::Event(ChildEvent {
            path: Vec::new(),
            event: raw(&event),
            keeps_questions: false,
            shares_budget: false,
        }))
    }
}

/// An event of an agent inside a call.
fn child_event(event: &str, dice: &Dice) -> Progress {
    let shares_budget = dice.chance(50);
    Progress::Event(ChildEvent { path: Vec::new(), event: raw(event), keeps_questions: false, shares_budget })
}
