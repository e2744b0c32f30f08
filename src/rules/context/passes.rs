//! The passes. Each takes linear time, and leaves messages that need no change untouched.

use crate::data::id_map::IdMap;

/// The role of a message, as far as the passes need it.
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
    /// Never shown to the model; passes ignore the message.
    Aside,
}

/// How a message part relates to tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link<'a> {
    /// The call with this id.
    Call(&'a str),
    /// The result of the call with this id.
    Result(&'a str),
    /// Neither.
    None,
}

/// A message that passes can reduce.
pub trait Reducible: Clone {
    /// Returns the role.
    fn role(&self) -> Role;
    /// Returns the number of parts.
    fn parts(&self) -> usize;
    /// Returns how a part relates to tool calls.
    fn link(&self, part: usize) -> Link<'_>;
    /// Whether the message has no content that a model could be shown.
    fn is_empty(&self) -> bool;
    /// Keeps only some of the parts. Returns whether the message is still worth keeping.
    fn retain(&mut self, keep: &dyn Fn(usize) -> bool) -> bool;
    /// Whether [`Reducible::append`] could merge this message with the next.
    fn merges_with(&self, next: &Self) -> bool;
    /// Appends the parts of the next message.
    fn append(&mut self, next: Self);
    /// Whether this message and the next are separate here, but form one message on the wire.
    fn joins(&self, next: &Self) -> bool;
    /// Reduces an old answer to a trace: its calls, or [`TRUNCATED`].
    fn shorten(&mut self);
    /// Replaces texts and results with [`PART_TRIMMED`]. Calls and images stay. Only answers and results
    /// are ever trimmed.
    fn trim(&mut self);
    /// Estimates the tokens; rather too high than too low.
    fn weight(&self) -> u64;
}

/// Replaces an old answer without calls.
pub const TRUNCATED: &str = "[assistant message truncated]";
/// Replaces a trimmed text.
pub const PART_TRIMMED: &str = "[trimmed]";

/// What happens to the calls of a message if the directly following messages do not answer all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DanglingCalls {
    /// All calls of the message are removed.
    StripAll,
    /// Unanswered calls are removed, and all but the first of those that share an id.
    StripUnanswered,
}

/// Runs all six passes: deduplicates results, merges messages, reduces old results and answers to the
/// newest `keep_last` of each, then pairs calls and results. The order matters: a removed result takes its
/// call along.
pub fn reduce<M: Reducible>(messages: &mut Vec<M>, keep_last: usize) {
    dedup_results(messages);
    merge_same_role(messages);
    keep_last_results(messages, keep_last);
    shorten_old_answers(messages, keep_last);
    strip_dangling_calls(messages, DanglingCalls::StripAll);
    remove_orphaned_results(messages);
}

/// Keeps only the last of several results for a call.
pub fn dedup_results<M: Reducible>(messages: &mut Vec<M>) {
    let mut last = IdMap::default();
    let mut removed = Vec::new();
    let results = results(messages);
    for place in &results {
        last.insert(place.id, place.at);
    }
    for place in &results {
        if last.get(place.id) != Some(&place.at) {
            removed.push(place.at);
        }
    }
    remove_parts(messages, &removed);
}

/// Merges adjacent messages of the same role. Other fields are those of the first message.
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

/// Keeps only the newest results. Where there are no more than that, nothing changes.
pub fn keep_last_results<M: Reducible>(messages: &mut Vec<M>, keep: usize) {
    let mut removed: Vec<PartPlace> = results(messages).iter().map(|place| place.at).collect();
    if removed.len() > keep {
        removed.truncate(removed.len() - keep);
        remove_parts(messages, &removed);
    }
}

/// Keeps only the newest answers whole. Where there are no more than that, nothing changes.
pub fn shorten_old_answers<M: Reducible>(messages: &mut Vec<M>, keep: usize) {
    let answers = messages.iter().filter(|message| message.role() == Role::Assistant).count();
    if answers <= keep {
        return;
    }
    let old = messages.iter_mut().filter(|message| message.role() == Role::Assistant);
    old.take(answers.saturating_sub(keep)).for_each(Reducible::shorten);
    remove_parts(messages, &[]);
}

/// Removes calls that the directly following messages do not answer.
pub fn strip_dangling_calls<M: Reducible>(messages: &mut Vec<M>, rule: DanglingCalls) {
    let mut removed = Vec::new();
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
                    removed.extend(calls.iter().map(|(part, _)| (at, *part)));
                }
            }
            DanglingCalls::StripUnanswered => {
                let mut first = IdMap::default();
                for (part, id) in &calls {
                    if !answers.contains(id) || first.insert(*id, (at, *part)).is_some() {
                        removed.push((at, *part));
                    }
                }
            }
        }
    }
    remove_parts(messages, &removed);
}

/// Removes results whose call does not come before them.
pub fn remove_orphaned_results<M: Reducible>(messages: &mut Vec<M>) {
    let mut calls = IdMap::default();
    let mut removed = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for part in 0..message.parts() {
            if let Link::Call(id) = message.link(part) {
                calls.insert(id, (at, part));
            }
        }
        for part in 0..message.parts() {
            if matches!(message.link(part), Link::Result(id) if !calls.contains(id)) {
                removed.push((at, part));
            }
        }
    }
    remove_parts(messages, &removed);
}

/// The index of a message, and of a part in it.
type PartPlace = (usize, usize);

struct ResultAt<'a> {
    id: &'a str,
    at: PartPlace,
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

/// Returns the results in the message after `at`, and in those that join it.
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
fn remove_parts<M: Reducible>(messages: &mut Vec<M>, removed: &[PartPlace]) {
    let mut removed = removed.iter().peekable();
    let mut parts = Vec::new();
    let mut at = 0;
    messages.retain_mut(|message| {
        parts.clear();
        while let Some((_, part)) = removed.next_if(|(place, _)| *place == at) {
            parts.push(*part);
        }
        at += 1;
        let is_left = parts.is_empty() || message.retain(&|part| parts.binary_search(&part).is_err());
        is_left && !message.is_empty()
    });
}
