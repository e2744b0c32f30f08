use super::*;
use crate::data::json::{FromJson, ToJson, Value};

#[test]
fn a_request_shares_a_list_that_grows_in_place() {
    let mut history = History::default();
    let mut list = Rc::default();
    for turn in 0..40 {
        let before = Rc::as_ptr(&list);
        drop(std::mem::take(&mut list));
        history.push(AgentMessage::user("on"));
        // As a policy that looks at every answer does.
        history.amend(turn, AgentMessage::user("go on"));
        while let Some(message) = history.unconverted() {
            history.keep_conversion(message.as_llm());
        }
        list = history.all_shown();
        assert_eq!(list.len(), turn + 1);
        assert!(turn == 0 || Rc::as_ptr(&list) == before);
    }
    history.amend(3, AgentMessage::user("else"));
    assert!(history.unconverted().is_some());
}

#[test]
fn a_list_grows_in_place_also_behind_what_is_never_shown() {
    let mut history = History::default();
    let mut list = Rc::default();
    for turn in 0..20 {
        let stop_reason = if turn == 3 { "error" } else { "stop" };
        let text = if turn == 5 { "" } else { "so it is" };
        history.push(AgentMessage::user("on"));
        history.push(answer(text, &[], stop_reason));
        let before = Rc::as_ptr(&list);
        drop(std::mem::take(&mut list));
        while let Some(message) = history.unconverted() {
            history.keep_conversion(message.as_llm());
        }
        list = history.all_shown();
        let void = [3, 5].iter().filter(|at| **at <= turn).count();
        assert_eq!(list.len(), 2 * (turn + 1) - void);
        assert!(turn == 0 || Rc::as_ptr(&list) == before);
    }
}

fn message(json: &str) -> AgentMessage {
    AgentMessage::from_json(&Value::parse(json).unwrap()).unwrap()
}

fn answer(text: &str, calls: &[&str], stop_reason: &str) -> AgentMessage {
    let call = |id| format!(r#",{{"type":"tool_call","callId":"{id}","toolName":"t","arguments":{{}}}}"#);
    let calls: String = calls.iter().map(call).collect();
    message(&format!(
        r#"{{"role":"assistant","content":[{{"type":"text","text":"{text}"}}{calls}],"stopReason":"{stop_reason}"}}"#
    ))
}

fn result(id: &str) -> AgentMessage {
    message(&format!(r#"{{"role":"tool_result","callId":"{id}","toolName":"t","content":"done"}}"#))
}

fn shown_of(history: &mut History, message: AgentMessage) -> Rc<Vec<LlmMessage>> {
    history.push(message);
    while let Some(message) = history.unconverted() {
        history.keep_conversion(message.as_llm());
    }
    history.all_shown()
}

#[test]
fn what_is_known_of_a_history_goes_on_to_the_next_run() {
    let mut history = History::default();
    for message in [AgentMessage::user("go"), answer("so", &["a"], "tool_use"), result("a")] {
        drop(shown_of(&mut history, message));
    }
    let list = Rc::as_ptr(&history.all_shown());
    let messages = history.messages().to_vec();
    let mut next = History::reuse(Some(Box::new(history)), messages);
    assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
    assert_eq!((next.epoch, Rc::as_ptr(&next.all_shown())), (0, list));
    // Their replacements know nothing about them.
    let kept = next.messages()[..1].to_vec();
    next.replace(kept.clone());
    assert!(next.unconverted().is_none() && next.call_ids.is_taken("a"));
    let mut last = History::reuse(Some(Box::new(next)), kept.clone());
    assert!(last.unconverted().is_none() && !last.call_ids.is_taken("a"));
    assert_eq!(last.all_shown().len(), 1);
    assert!(History::reuse(Some(Box::new(last)), Vec::new()).messages().is_empty());
    assert!(History::reuse(None, kept).unconverted().is_some());
}

#[test]
fn a_history_with_a_hole_is_made_right_once() {
    let mut history = History::default();
    let holed = [AgentMessage::user("go"), answer("wait", &["lost"], "aborted"), result("of nobody")];
    for message in holed {
        shown_of(&mut history, message);
    }
    let mut list = Rc::default();
    for turn in 0..40 {
        let before = Rc::as_ptr(&list);
        drop(std::mem::take(&mut list));
        list = shown_of(&mut history, AgentMessage::user("on"));
        assert_eq!(list.len(), turn + 3);
        assert!(turn == 0 || Rc::as_ptr(&list) == before);
    }
}

#[test]
fn whatever_comes_is_shown_as_if_it_had_come_at_once() {
    let mut state = 1_u64;
    let mut dice = |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % limit
    };
    for _ in 0..300 {
        let mut history = History::default();
        let (mut raw, mut ids) = (Vec::new(), Vec::new());
        for at in 0..12 {
            let message = match dice(6) {
                0 => AgentMessage::user(["hello", "", "more"][dice(3)]),
                1..4 => {
                    let own: Vec<String> = (0..dice(4)).map(|n| format!("{at}.{n}")).collect();
                    ids.extend(own.clone());
                    let own: Vec<&str> = own.iter().map(String::as_str).collect();
                    let stop = ["tool_use", "tool_use", "aborted", "error", "stop"][dice(5)];
                    answer(["so", ""][dice(2)], &own, stop)
                }
                _ if ids.is_empty() => result("nobody"),
                4 => result(&ids[dice(ids.len())]),
                _ => result(ids.last().unwrap()),
            };
            raw.extend(message.as_llm());
            let list = shown_of(&mut history, message);
            assert_eq!(list.to_json(), hygiene(raw.clone(), SameRole::Keep).to_json());
        }
    }
}
