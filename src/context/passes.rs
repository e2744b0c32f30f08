//! The passes, each linear in what it is given. A message that does not change is not touched.

use crate::id_map::IdMap;

/// Who a message is from, as far as the passes care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Tools.
    Tool,
    /// Nobody the model hears of: passes look through it.
    Aside,
}

/// What a part of a message has to do with tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<'a> {
    /// It is the call with this id.
    Call(&'a str),
    /// It answers the call with this id.
    Result(&'a str),
    /// Nothing.
    None,
}

/// A message that passes can make smaller.
pub trait Reducible: Clone {
    /// Who it is from.
    fn role(&self) -> Role;
    /// How many parts it has.
    fn parts(&self) -> usize;
    /// What a part has to do with tool calls.
    fn link(&self, part: usize) -> Link<'_>;
    /// Whether nothing is in it that a model could be shown.
    fn is_empty(&self) -> bool;
    /// Keeps some of the parts. Gives whether the message is worth keeping.
    fn retain(&mut self, keep: &dyn Fn(usize) -> bool) -> bool;
    /// Whether [`Reducible::append`] could make one message of this one and the next.
    fn merges_with(&self, next: &Self) -> bool;
    /// Appends the parts of the next message.
    fn append(&mut self, next: Self);
    /// Whether this and the next are separate here, but stand for one message on the wire.
    fn joins(&self, next: &Self) -> bool;
    /// Leaves a trace of an old answer: its calls, or [`TRUNCATED`].
    fn shorten(&mut self);
    /// Replaces texts and results by [`PART_TRIMMED`]; calls and pictures stay. Other than answers and results are
    /// never trimmed.
    fn trim(&mut self);
    /// Roughly how many tokens it is; rather too many than too few.
    fn weight(&self) -> u64;
}

/// What an old answer without calls becomes.
pub const TRUNCATED: &str = "[assistant message truncated]";
/// What a trimmed text becomes.
pub const PART_TRIMMED: &str = "[trimmed]";

/// What happens to the calls of a message when not all of them are answered by what follows directly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DanglingCalls {
    /// All calls of the message go.
    StripAll,
    /// The unanswered ones go, and all but the first of those that share an id.
    StripUnanswered,
}

/// All six passes: results deduplicated, messages merged, old results and answers reduced to the newest `keep_last` of
/// each, then calls and results paired. The order matters: a result that goes takes its call along.
pub fn reduce<M: Reducible>(messages: &mut Vec<M>, keep_last: usize) {
    dedup_results(messages);
    merge_same_role(messages);
    keep_last_results(messages, keep_last);
    shorten_old_answers(messages, keep_last);
    strip_dangling_calls(messages, DanglingCalls::StripAll);
    remove_orphaned_results(messages);
}

/// Of several results for one call the last one stays.
pub fn dedup_results<M: Reducible>(messages: &mut Vec<M>) {
    let mut last = IdMap::default();
    let mut doomed = Vec::new();
    let results = results(messages);
    for place in &results {
        last.insert(place.id, place.at);
    }
    for place in &results {
        if last.get(place.id) != Some(&place.at) {
            doomed.push(place.at);
        }
    }
    remove_parts(messages, &doomed);
}

/// Neighbours of one role become one message. Of their other fields those of the first one stay.
pub fn merge_same_role<M: Reducible>(messages: &mut Vec<M>) {
    if !messages.windows(2).any(|pair| matches!(pair, [a, b] if a.merges_with(b))) {
        return remove_parts(messages, &[]);
    }
    let mut merged: Vec<M> = Vec::with_capacity(messages.len());
    for message in messages.drain(..) {
        match merged.last_mut() {
            Some(last) if last.merges_with(&message) => last.append(message),
            _ => merged.push(message),
        }
    }
    *messages = merged;
    remove_parts(messages, &[]);
}

/// Only the newest results stay.
pub fn keep_last_results<M: Reducible>(messages: &mut Vec<M>, keep: usize) {
    let mut doomed: Vec<Place> = results(messages).iter().map(|place| place.at).collect();
    doomed.truncate(doomed.len().saturating_sub(keep));
    remove_parts(messages, &doomed);
}

/// Only the newest answers stay whole.
pub fn shorten_old_answers<M: Reducible>(messages: &mut Vec<M>, keep: usize) {
    let answers = messages.iter().filter(|message| message.role() == Role::Assistant).count();
    let old = messages.iter_mut().filter(|message| message.role() == Role::Assistant);
    old.take(answers.saturating_sub(keep)).for_each(Reducible::shorten);
    remove_parts(messages, &[]);
}

/// Calls must be answered by what follows directly; those that are not, go.
pub fn strip_dangling_calls<M: Reducible>(messages: &mut Vec<M>, rule: DanglingCalls) {
    let mut doomed = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut calls: Vec<(usize, &str)> = Vec::new();
        for part in 0..message.parts() {
            if let Link::Call(id) = message.link(part) {
                calls.push((part, id));
            }
        }
        if calls.is_empty() {
            continue;
        }
        let mut answers = IdMap::default();
        for answer in results_after(messages, at) {
            answers.insert(answer.id, answer.at);
        }
        match rule {
            DanglingCalls::StripAll => {
                if !calls.iter().all(|(_, id)| answers.contains(id)) {
                    doomed.extend(calls.iter().map(|(part, _)| (at, *part)));
                }
            }
            DanglingCalls::StripUnanswered => {
                let mut first = IdMap::default();
                for (part, id) in &calls {
                    if !answers.contains(id) || first.insert(*id, (at, *part)).is_some() {
                        doomed.push((at, *part));
                    }
                }
            }
        }
    }
    remove_parts(messages, &doomed);
}

/// Results whose call did not come before them go.
pub fn remove_orphaned_results<M: Reducible>(messages: &mut Vec<M>) {
    let mut calls = IdMap::default();
    let mut doomed = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for part in 0..message.parts() {
            if let Link::Call(id) = message.link(part) {
                calls.insert(id, (at, part));
            }
        }
        for part in 0..message.parts() {
            if matches!(message.link(part), Link::Result(id) if !calls.contains(id)) {
                doomed.push((at, part));
            }
        }
    }
    remove_parts(messages, &doomed);
}

/// The number of a message and of a part in it.
type Place = (usize, usize);

struct ResultAt<'a> {
    id: &'a str,
    at: Place,
}

fn results<M: Reducible>(messages: &[M]) -> Vec<ResultAt<'_>> {
    let mut results = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        note_results(message, at, &mut results);
    }
    results
}

fn note_results<'m, M: Reducible>(message: &'m M, at: usize, results: &mut Vec<ResultAt<'m>>) {
    for part in 0..message.parts() {
        if let Link::Result(id) = message.link(part) {
            results.push(ResultAt { id, at: (at, part) });
        }
    }
}

/// What is answered by the message after `at`, and by those that join it.
fn results_after<M: Reducible>(messages: &[M], at: usize) -> Vec<ResultAt<'_>> {
    let mut results = Vec::new();
    let mut before: Option<&M> = None;
    for message in messages.iter().skip(at + 1).filter(|message| message.role() != Role::Aside) {
        if before.is_some_and(|before| !before.joins(message)) {
            break;
        }
        before = Some(message);
        note_results(message, at, &mut results);
    }
    results
}

/// Removes parts, given in order, and every message that is empty then or was before.
fn remove_parts<M: Reducible>(messages: &mut Vec<M>, doomed: &[Place]) {
    let mut doomed = doomed.iter().peekable();
    let mut parts = Vec::new();
    let mut at = 0;
    messages.retain_mut(|message| {
        parts.clear();
        while let Some((_, part)) = doomed.next_if(|(place, _)| *place == at) {
            parts.push(*part);
        }
        at += 1;
        let is_left = parts.is_empty() || message.retain(&|part| parts.binary_search(&part).is_err());
        is_left && !message.is_empty()
    });
}
