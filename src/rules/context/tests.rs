//! The rules over our own messages.

use std::rc::Rc;

use super::*;
use crate::data::json::RawJson;
use crate::words::message::{
    CustomMessage, LlmMessage, MessageStopReason, ThinkingBlock, ToolCallBlock, ToolResultMessage,
    UserMessage,
};

fn user(text: &str) -> AgentMessage {
    AgentMessage::user(text)
}

fn stopped(text: &str, calls: &[&str], stop_reason: MessageStopReason) -> AgentMessage {
    let text = (!text.is_empty()).then(|| ContentBlock::text(text));
    let calls = calls.iter().map(|id| {
        ContentBlock::ToolCall(ToolCallBlock {
            call_id: (*id).to_owned(),
            tool_name: "view".to_owned(),
            arguments: RawJson::empty_object(),
            metadata: None,
        })
    });
    AssistantMessage {
        content: text.into_iter().chain(calls).collect(),
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason,
        error: None,
        timestamp: 0,
        id: None,
        foreign: None,
    }
    .into()
}

fn answer(text: &str, calls: &[&str]) -> AgentMessage {
    stopped(text, calls, MessageStopReason::Stop)
}

fn result(id: &str, text: &str) -> AgentMessage {
    ToolResultMessage {
        call_id: id.to_owned(),
        tool_name: "view".to_owned(),
        content: vec![ContentBlock::text(text)],
        details: None,
        is_error: false,
        cause: None,
        timestamp: 0,
        foreign: None,
    }
    .into()
}

fn custom() -> AgentMessage {
    AgentMessage::Custom(Rc::new(CustomMessage { kind: "note".into(), data: RawJson::null(), timestamp: 0 }))
}

/// `u:text`, `a:text+id`, `r:id=text`, one word per message.
fn shape(messages: &[AgentMessage]) -> Vec<String> {
    let content_shape = |content: &[ContentBlock]| {
        let word = |block: &ContentBlock| match block {
            ContentBlock::ToolCall(call) => format!("+{}", call.call_id),
            ContentBlock::Text(text) => text.text.clone(),
            _ => "?".to_owned(),
        };
        content.iter().map(word).collect::<String>()
    };
    let shape = |message: &AgentMessage| match message {
        AgentMessage::User(message) => format!("u:{}", content_shape(&message.content)),
        AgentMessage::Assistant(message) => format!("a:{}", content_shape(&message.content)),
        AgentMessage::ToolResult(result) => {
            format!("r:{}={}", result.call_id, content_shape(&result.content))
        }
        AgentMessage::Custom(_) => "custom".to_owned(),
    };
    messages.iter().map(shape).collect()
}

fn cleaned(messages: &[AgentMessage], same_role: SameRole) -> Vec<String> {
    let request = hygiene(messages.iter().filter_map(AgentMessage::as_llm).collect(), same_role);
    let twice = hygiene(request.clone(), same_role);
    assert_eq!(request, twice, "what is clean stays as it is");
    shape(&request.into_iter().map(AgentMessage::from).collect::<Vec<_>>())
}

#[test]
fn a_sound_history_is_handed_on_untouched() {
    let history = [
        user("q"),
        answer("look", &["t1", "t2"]),
        result("t1", "1"),
        result("t2", "2"),
        answer("end", &[]),
        user("again"),
    ];
    let request: Vec<LlmMessage> = history.iter().filter_map(AgentMessage::as_llm).collect();
    for same_role in [SameRole::Keep, SameRole::Merge] {
        let clean = hygiene(request.clone(), same_role);
        assert!(clean.len() == request.len() && clean.iter().zip(&request).all(|(a, b)| a.is_same(b)));
    }
}

#[test]
fn results_come_in_the_order_of_their_calls() {
    let history = [
        user("q"),
        answer("", &["t1", "t2", "t3"]),
        result("t3", "3"),
        result("t1", "1"),
        result("t2", "2"),
        answer("", &["t4", "t5"]),
        result("t5", "5"),
        result("t4", "4"),
    ];
    let ordered = ["u:q", "a:+t1+t2+t3", "r:t1=1", "r:t2=2", "r:t3=3", "a:+t4+t5", "r:t4=4", "r:t5=5"];
    assert_eq!(cleaned(&history, SameRole::Keep), ordered);
}

#[test]
fn the_thinking_that_led_to_a_dropped_call_is_dropped_with_it() {
    let blocks = |ids: &[&str]| -> Vec<ContentBlock> {
        let block = |id: &&str| match *id {
            "?" => {
                ContentBlock::Thinking(ThinkingBlock { thinking: "hm".into(), ..ThinkingBlock::default() })
            }
            id => match answer("", &[id]) {
                AgentMessage::Assistant(message) => message.content[0].clone(),
                _ => panic!("an answer"),
            },
        };
        ids.iter().map(block).collect()
    };
    let cleaned_answer = |ids: &[&str], answered: &str| {
        let mut message = answer("text", &[]);
        let AgentMessage::Assistant(content) = &mut message else { panic!("an answer") };
        Rc::make_mut(content).content.extend(blocks(ids));
        cleaned(&[user("q"), message, result(answered, "1")], SameRole::Keep)[1].clone()
    };
    assert_eq!(cleaned_answer(&["?", "t1", "?", "t2"], "t2"), "a:text?+t2");
    assert_eq!(cleaned_answer(&["?", "t1", "?", "t2"], "t1"), "a:text?+t1");
    // The second call came of the same thinking.
    assert_eq!(cleaned_answer(&["?", "t1", "t2"], "t2"), "a:text?+t2");
    assert_eq!(cleaned_answer(&["?", "t1", "t2", "t3", "?"], "t3"), "a:text?+t3?");
}

#[test]
fn of_two_results_the_last_one_is_sent() {
    let history = [user("q"), answer("", &["t1"]), result("t1", "old"), result("t1", "new")];
    assert_eq!(cleaned(&history, SameRole::Keep), ["u:q", "a:+t1", "r:t1=new"]);
}

#[test]
fn a_call_without_its_result_is_not_sent_nor_a_result_without_its_call() {
    let history = [
        user("q"),
        answer("look", &["t1", "t2"]),
        result("t1", "1"),
        answer("", &["t3"]),
        user("stop"),
        result("t3", "late"),
        result("ghost", "boo"),
    ];
    assert_eq!(cleaned(&history, SameRole::Keep), ["u:q", "a:look+t1", "r:t1=1", "u:stop"]);
}

#[test]
fn of_calls_that_share_an_id_one_is_sent() {
    let history = [user("q"), answer("", &["t1", "t1"]), result("t1", "1")];
    assert_eq!(cleaned(&history, SameRole::Keep), ["u:q", "a:+t1", "r:t1=1"]);
}

#[test]
fn failed_and_empty_messages_are_left_out_and_aborted_ones_keep_what_is_whole() {
    let thought = AssistantMessage {
        content: vec![ContentBlock::Thinking(ThinkingBlock::default())],
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason: MessageStopReason::Stop,
        error: None,
        timestamp: 0,
        id: None,
        foreign: None,
    };
    let history = [
        user("q"),
        stopped("half", &["t0"], MessageStopReason::Error),
        result("t0", "not run"),
        stopped("", &[], MessageStopReason::Aborted),
        stopped("said", &["t1", "t2"], MessageStopReason::Aborted),
        result("t1", "1"),
        answer("", &[]),
        thought.into(),
        UserMessage::default().into(),
        user("go on"),
    ];
    assert_eq!(cleaned(&history, SameRole::Keep), ["u:q", "a:said+t1", "r:t1=1", "u:go on"]);
}

#[test]
fn neighbours_of_one_role_are_merged_only_where_the_wire_wants_it() {
    let history = [
        user("a"),
        user("b"),
        answer("", &["t1"]),
        user("c"),
        answer("x", &[]),
        answer("y", &["t2"]),
        result("t2", "2"),
    ];
    assert_eq!(cleaned(&history, SameRole::Keep), ["u:a", "u:b", "u:c", "a:x", "a:y+t2", "r:t2=2"]);
    assert_eq!(cleaned(&history, SameRole::Merge), ["u:abc", "a:xy+t2", "r:t2=2"]);
}

#[test]
fn the_window_keeps_the_anchor_with_its_results_and_the_newest_that_fit() {
    let long = "x".repeat(400);
    let history = [
        user("q"),
        answer("", &["t1"]),
        result("t1", "anchor"),
        answer(&long, &[]),
        answer("", &["t2"]),
        result("t2", &long),
        user("last"),
    ];
    let window = SlidingWindow { normal_budget: 120, overflow_budget: 10, anchor: 2 };
    let kept = window.apply(&history, false, 0).unwrap();
    assert_eq!(shape(&kept.messages)[..3], ["u:q", "a:+t1", "r:t1=anchor"]);
    assert_eq!(shape(&kept.messages)[3..4], ["a:+t2"]);
    assert_eq!((kept.dropped_count, kept.tokens_before, kept.tokens_after), (1, 202, 102));
    // The result no longer fits; its call is removed with it.
    let kept = window.apply(&history, true, 0).unwrap();
    assert_eq!(shape(&kept.messages), ["u:q", "a:+t1", "r:t1=anchor", "u:last"]);
    assert_eq!(window.apply(&history[..2], false, 0), None);
    // What the provider has cached stays, and so do the results of its calls.
    assert_eq!(window.apply(&history, true, 5), None);
}

#[test]
fn an_exchange_stays_whole_where_only_a_part_of_it_is_too_much() {
    let long = "x".repeat(400);
    let calling = answer(&long, &["t1", "t2"]);
    let history = [user("q"), user(&long), calling, result("t1", &long), result("t2", &long)];
    let kept = |normal_budget| {
        let window = SlidingWindow { normal_budget, overflow_budget: 0, anchor: 1 };
        window.apply(&history, false, 0).map(|kept| kept.dropped_count)
    };
    // The results are 200 tokens, the call is 101.
    assert_eq!(
        [kept(401), kept(400), kept(300), kept(250), kept(201)],
        [None, Some(1), Some(1), Some(1), Some(1)]
    );
    // An older exchange goes as a whole where nothing is left for its call.
    let longer: Vec<AgentMessage> = history.iter().cloned().chain([answer(&long, &[])]).collect();
    let window = |normal_budget| SlidingWindow { normal_budget, overflow_budget: 0, anchor: 1 };
    assert_eq!(window(301).apply(&longer, false, 0).map(|kept| kept.dropped_count), Some(1));
    assert_eq!(window(300).apply(&longer, false, 0).map(|kept| kept.dropped_count), Some(4));
    // If of several results only the newest fits, the others and the call stay with it; if nothing fits beside it, none does.
    assert_eq!(window(200).apply(&longer, false, 0).map(|kept| kept.dropped_count), Some(4));
    assert_eq!(window(250).apply(&longer, false, 0).map(|kept| kept.dropped_count), Some(1));
}

#[test]
fn the_newest_exchange_stays_even_if_it_does_not_fit() {
    let long = "x".repeat(400);
    let history = [user("q"), answer("old", &[]), answer("", &["t1"]), result("t1", &long)];
    let window = SlidingWindow { normal_budget: 50, overflow_budget: 50, anchor: 1 };
    let kept = window.apply(&history, false, 0).unwrap();
    assert_eq!(shape(&kept.messages)[..2], ["u:q", "a:+t1"]);
    assert_eq!(kept.dropped_count, 1);
}

#[test]
fn keep_last_leaves_traces_and_says_nothing_when_there_is_nothing_to_do() {
    let history = [
        user("q"),
        answer("one", &["t1"]),
        result("t1", "1"),
        answer("two", &["t2"]),
        custom(),
        result("t2", "2"),
        answer("end", &[]),
    ];
    let shown = KeepLast { messages: 1 }.apply(&history).unwrap();
    assert_eq!(shape(&shown), ["u:q", "a:+t2", "custom", "r:t2=2", "a:end"]);
    assert!(shown[0].is_same(&history[0]) && shown[4].is_same(&history[6]));
    assert_eq!(KeepLast { messages: 3 }.apply(&history), None);
}

#[test]
fn trimming_keeps_its_boundary_and_its_messages_from_request_to_request() {
    let long = "x".repeat(350);
    let mut history =
        vec![user("q"), answer(&long, &["t1"]), result("t1", &long), user("w"), answer("x", &[])];
    let trim =
        BudgetTrim { keep_last_answers: 1, fraction: 0.5, context_window: 500, max_output_tokens: 100 };
    let mut memory = TrimMemory::default();
    let first = trim.apply(&history, 0, &mut memory).unwrap();
    assert_eq!(shape(&first), ["u:q", "a:[trimmed]+t1", "r:t1=[trimmed]", "u:w", "a:x"]);
    assert_eq!(memory.boundary, 4);
    history.push(user("more"));
    let second = trim.apply(&history, 0, &mut memory).unwrap();
    assert_eq!(memory.boundary, 4);
    assert!(first.iter().zip(&second).all(|(before, now)| before.is_same(now)));
    // A process that knows only the boundary arrives at the same view.
    let mut restored = TrimMemory::restored(4);
    assert_eq!(trim.apply(&history, 0, &mut restored), Some(second));
    // Shorter than the boundary, so it was compacted.
    assert_eq!(trim.apply(&history[3..5], 0, &mut memory), None);
    assert_eq!(memory.boundary, 0);
    // A process that knows only the boundary notices it too.
    let mut restored = TrimMemory::restored(4);
    assert_eq!(trim.apply(&history[3..5], 0, &mut restored), None);
    assert_eq!(restored.boundary, 0);
}

#[test]
fn a_history_is_counted_by_what_the_provider_told_and_an_estimate_of_the_rest() {
    let AgentMessage::Assistant(message) = answer("x", &[]) else { panic!("an answer was expected") };
    let mut reported = (*message).clone();
    reported.usage = Usage { input: 900, cache_read: 80, output: 20, ..Usage::default() };
    let history = [user("long ago"), reported.into(), user("12345678"), custom()];
    assert_eq!(context_tokens(&history, &estimate_tokens), 1_000 + 2 + 100);
    assert_eq!(context_tokens(&history[2..], &estimate_tokens), 102);
}

#[test]
fn after_a_compaction_the_boundary_means_nothing() {
    let trim =
        BudgetTrim { keep_last_answers: 1, fraction: 0.5, context_window: 500, max_output_tokens: 100 };
    let mut memory = TrimMemory::default();
    let long = "w".repeat(300);
    let history: Vec<AgentMessage> =
        (0..6).flat_map(|n| [user(&n.to_string()), answer(&long, &[])]).collect();
    assert!(trim.apply(&history, 0, &mut memory).is_some());
    let before = memory.boundary;
    assert!(before > 3);
    // As many messages as before, but different ones, none of which was ever trimmed.
    let compacted: Vec<AgentMessage> =
        (0..6).flat_map(|n| [user(&n.to_string()), answer("short", &[])]).collect();
    assert_eq!(trim.apply(&compacted, 0, &mut memory), None);
    assert_eq!(memory.boundary, 0);
    // The messages before the point where the two differ are in the view all the same.
    trim.apply(&history, 0, &mut memory).unwrap();
    let parted: Vec<AgentMessage> =
        [&history[..3], &[answer(&"v".repeat(700), &[]), user("on"), answer("end", &[])]].concat();
    let view = trim.apply(&parted, 0, &mut memory).unwrap();
    assert_eq!(shape(&view), ["u:0", "a:[trimmed]", "u:1", "a:[trimmed]", "u:on", "a:end"]);
}

#[test]
fn a_boundary_that_is_no_place_is_none() {
    for (written, boundary) in [("3", 3), ("-1", 0), ("2.5", 0), ("\"3\"", 0), ("4294967295", 4_294_967_295)]
    {
        let metadata = crate::data::json::Value::parse(&format!("{{\"{BOUNDARY_KEY}\":{written}}}")).unwrap();
        assert_eq!(boundary_in(&metadata), boundary, "{written}");
    }
}

#[test]
fn a_list_that_grows_is_judged_as_one_that_is_whole() {
    let histories = [
        vec![user("go"), answer("a", &["1", "2"]), result("1", "x"), result("2", "y"), answer("b", &["3"])],
        vec![user("go"), answer("a", &["1"]), result("1", "x"), answer("b", &["1"]), result("1", "y")],
        vec![user("go"), answer("", &[]), user("on")],
        vec![user("go"), result("1", "x"), answer("a", &[])],
        vec![user("go"), answer("a", &["1", "2"]), result("2", "y"), result("1", "x"), user("on")],
    ];
    for history in histories {
        let messages: Vec<LlmMessage> = history.iter().filter_map(AgentMessage::as_llm).collect();
        let mut growing = CleanPrefix::default();
        for length in 0..=messages.len() {
            let known = &messages[..length];
            assert_eq!(
                growing.covers(known),
                CleanPrefix::default().covers(known),
                "{:?}",
                shape(&history[..length])
            );
        }
    }
}

/// Requests that are passed through unchanged are those that the full procedure leaves unchanged. A failed
/// answer, which is left out, requires the full procedure.
#[test]
fn the_short_way_to_a_request_gives_what_the_long_one_does() {
    let failed = stopped("half", &[], MessageStopReason::Error).as_llm().unwrap();
    let mut seed = 1_u64;
    let mut roll = move |sides: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    let ids = ["1", "2", "3"];
    let mut untouched = 0;
    for _ in 0..5_000 {
        let mut history = Vec::new();
        let mut clean = CleanPrefix::default();
        for _ in 0..roll(7) {
            let mut id = || ids[roll(3) as usize];
            let (one, other) = (id(), id());
            match roll(9) {
                0 | 1 => history.push(user("u")),
                2 => history.push(answer("a", &[])),
                3 => history.push(answer("", &[])),
                4 => history.push(result(one, "r")),
                5 => history.push(answer("", &[one])),
                6 => history.extend([answer("", &[one]), result(one, "r")]),
                7 => history.extend([answer("", &[one, other]), result(one, "r"), result(other, "s")]),
                _ => history.push(user("")),
            }
            let short: Vec<LlmMessage> = history.iter().filter_map(AgentMessage::as_llm).collect();
            let long = [short.clone(), vec![failed.clone()]].concat();
            for same_role in [SameRole::Keep, SameRole::Merge] {
                let wanted = hygiene(long.clone(), same_role);
                assert_eq!(hygiene(short.clone(), same_role), wanted, "{:?}", shape(&history));
                if same_role == SameRole::Keep && clean.covers(&short) {
                    assert_eq!(short, wanted, "{:?}", shape(&history));
                    untouched += 1;
                }
            }
        }
    }
    assert!(untouched > 1_000, "{untouched}");
}
