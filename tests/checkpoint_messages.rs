//! Messages survive a checkpoint exactly, and any reader of its format can read them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::rc::Rc;

use rig::dice::Dice;
use turnwheel::checkpoint::convert::{FOREIGN_KIND, from_stakai, to_stakai};
use turnwheel::error::{ErrorInfo, ErrorKind, ProviderError};
use turnwheel::json::{RawJson, ToJson, Value};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, FileBlock, ImageBlock, Media,
    MessageStopReason, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultCause, ToolResultMessage, Usage,
    UserMessage,
};

fn value(text: &str) -> Value {
    Value::parse(text).unwrap()
}

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// Checks what every reader of the format requires.
fn assert_readable(message: &Value) {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let role = text(message, "role").unwrap();
    assert!(["system", "user", "assistant", "tool"].contains(&role.as_str()));
    for (key, _) in message.as_object().unwrap().iter() {
        assert!(["role", "content", "name", "provider_options"].contains(&key), "{key}");
    }
    let content = message.get("content").unwrap();
    if content.as_str().is_some() {
        return;
    }
    for part in content.as_array().unwrap() {
        let known: &[&str] = match part.get("type").and_then(Value::as_str).unwrap() {
            "text" => &["type", "text"],
            "image" => &["type", "url", "detail"],
            "tool_call" => &["type", "id", "name", "arguments", "metadata"],
            "tool_result" => &["type", "tool_call_id", "content"],
            other => panic!("{other}"),
        };
        for (key, value) in part.as_object().unwrap().iter() {
            assert!(known.contains(&key), "{key}");
            assert!(["arguments", "metadata", "content"].contains(&key) || value.as_str().is_some());
        }
    }
}

fn round_trip(messages: &[AgentMessage]) -> Vec<Value> {
    let written = to_stakai(messages);
    for message in &written {
        assert_readable(message);
    }
    // As it is stored: as text.
    let stored = Value::parse(&written.to_json()).unwrap();
    assert_eq!(from_stakai(stored.as_array().unwrap()).unwrap(), messages, "{}", written.to_json());
    written
}

fn text(dice: &Dice) -> String {
    let pieces =
        ["", "a", "{\"a\":1}", "ünï \u{1f600}", "\"q\" \\ \n\t\u{1}", ";base64,", "data:", "[trimmed]"];
    (0..dice.below(3)).map(|_| *dice.pick(&pieces)).collect()
}

fn optional<T>(dice: &Dice, make: impl Fn(&Dice) -> T) -> Option<T> {
    dice.chance(40).then(|| make(dice))
}

fn json(dice: &Dice) -> RawJson {
    let texts = [
        "null",
        "0",
        "-1.50e3",
        "\"t\"",
        "{}",
        "[]",
        "false",
        "{\"input\":0}",
        "[{\"type\":\"text\",\"text\":\"x\"}]",
    ];
    raw(dice.pick::<&str>(&texts))
}

fn arguments(dice: &Dice) -> RawJson {
    let texts = [
        "{}",
        "{\"a\":1}",
        "{\"a\": [1, {\"b\": \"x, y: z\\\\\"}], \"c\": \"\\\"d\\\": e\"}",
        "{ \"a\" : 1 }",
        "{\"a\":1,\"a\":2}",
        "{\"a\":\"\\u00e4\"}",
        "{\"n\":12345678901234567890123}",
    ];
    raw(dice.pick::<&str>(&texts))
}

fn timestamp(dice: &Dice) -> u64 {
    *dice.pick(&[0, 1, 1_700_000_000_000, u64::MAX])
}

fn call(dice: &Dice) -> ContentBlock {
    ContentBlock::ToolCall(ToolCallBlock {
        call_id: text(dice),
        tool_name: text(dice),
        arguments: arguments(dice),
        metadata: optional(dice, json),
    })
}

fn media(dice: &Dice) -> Media {
    let mime_type = *dice.pick(&["image/png", "text/plain; charset=utf-8", "a/b"]);
    if dice.chance(30) {
        let mime_type = if dice.chance(50) { "" } else { mime_type };
        return Media::url(mime_type, ["https://a.example/", &text(dice)].concat()).unwrap();
    }
    Media::data(mime_type, *dice.pick(&["", "AAAA", "AA==", "-_8"])).unwrap()
}

fn image(dice: &Dice) -> ContentBlock {
    ContentBlock::Image(ImageBlock { media: media(dice) })
}

fn plain(dice: &Dice) -> ContentBlock {
    ContentBlock::Text(TextBlock { text: text(dice), signature: optional(dice, text) })
}

fn blocks(dice: &Dice, kinds: &[fn(&Dice) -> ContentBlock]) -> Vec<ContentBlock> {
    (0..dice.below(4)).map(|_| dice.pick(kinds)(dice)).collect()
}

fn thinking(dice: &Dice) -> ContentBlock {
    let redacted = dice.chance(30);
    ContentBlock::Thinking(ThinkingBlock { thinking: text(dice), signature: optional(dice, text), redacted })
}

fn file(dice: &Dice) -> ContentBlock {
    ContentBlock::File(FileBlock { media: media(dice), name: optional(dice, text) })
}

fn error(dice: &Dice) -> ErrorInfo {
    ErrorInfo {
        retryable: dice.chance(50),
        retry_after_ms: optional(dice, timestamp),
        phase: optional(dice, text),
        provider: optional(dice, |dice| ProviderError {
            status: optional(dice, |_| 429),
            kind: optional(dice, text),
            code: optional(dice, text),
        }),
        ..ErrorInfo::new(*dice.pick(&[ErrorKind::Server, ErrorKind::Aborted]), text(dice))
    }
}

fn usage(dice: &Dice) -> Usage {
    let n = |dice: &Dice| *dice.pick(&[0, 0, 7, u64::MAX]);
    let reasoning = optional(dice, n);
    let total = n(dice);
    let (input, output, cache_read, cache_write) = (n(dice), n(dice), n(dice), n(dice));
    Usage { input, output, cache_read, cache_write, reasoning, total, ..Usage::default() }.totalled()
}

fn message(dice: &Dice) -> AgentMessage {
    use MessageStopReason::{Aborted, Error, Length, Pause, Stop, ToolUse};
    use ToolResultCause::{Interrupted, Steering};
    match dice.below(4) {
        0 => UserMessage {
            content: blocks(dice, &[plain, plain, image, file]),
            timestamp: timestamp(dice),
            id: optional(dice, text),
            foreign: None,
        }
        .into(),
        1 => AssistantMessage {
            content: blocks(dice, &[plain, thinking, call, call, |dice| ContentBlock::Raw(json(dice))]),
            provider: text(dice),
            model: text(dice),
            usage: usage(dice),
            stop_reason: *dice.pick(&[Stop, ToolUse, Length, Pause, Aborted, Error]),
            error: optional(dice, error),
            timestamp: timestamp(dice),
            id: optional(dice, text),
            foreign: None,
        }
        .into(),
        2 => ToolResultMessage {
            call_id: text(dice),
            tool_name: text(dice),
            content: blocks(dice, &[plain, image]),
            details: optional(dice, json),
            is_error: dice.chance(50),
            cause: optional(dice, |dice| *dice.pick(&[Steering, Interrupted])),
            timestamp: timestamp(dice),
            foreign: None,
        }
        .into(),
        _ => AgentMessage::Custom(Rc::new(CustomMessage {
            kind: (*dice.pick(&["", "note", FOREIGN_KIND])).to_owned(),
            data: json(dice),
            timestamp: timestamp(dice),
        })),
    }
}

#[test]
fn what_was_written_comes_back_as_it_was() {
    for seed in 0..4_000 {
        let dice = Dice::new(seed);
        let messages: Vec<AgentMessage> = (0..dice.below(6)).map(|_| message(&dice)).collect();
        round_trip(&messages);
    }
}

#[test]
fn nothing_is_stored_twice() {
    let long = "x".repeat(10_000);
    let spaced = raw(&format!("{{\"path\": \"a\", \"text\": \"{long}\"}}"));
    let call = |arguments: &RawJson| {
        let (call_id, tool_name) = ("c".to_owned(), "t".to_owned());
        ContentBlock::ToolCall(ToolCallBlock {
            call_id,
            tool_name,
            arguments: arguments.clone(),
            metadata: None,
        })
    };
    let thinking = ThinkingBlock { thinking: long.clone(), signature: Some(long.clone()), redacted: false };
    let image = ImageBlock { media: Media::data("image/png", long.as_str()).unwrap() };
    let answer = AssistantMessage {
        content: vec![ContentBlock::Thinking(thinking), ContentBlock::text(long.as_str()), call(&spaced)],
        provider: "anthropic".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: MessageStopReason::ToolUse,
        error: None,
        timestamp: 5,
        id: None,
        foreign: None,
    };
    let question =
        UserMessage { content: vec![ContentBlock::Image(image)], timestamp: 5, id: None, foreign: None };
    let messages = [AgentMessage::user("q"), question.into(), answer.into()];
    let written = round_trip(&messages).to_json().len();
    let own = messages.to_json().len();
    assert!(written < own + 100 * messages.len(), "{written} bytes for {own}");
}

#[test]
fn a_plain_question_is_a_plain_text_to_every_reader() {
    let written = to_stakai(&[AgentMessage::user("hello")]);
    assert_eq!(written.to_json(), r#"[{"role":"user","content":"hello"}]"#);
}

fn foreign(text: &str) -> (Vec<AgentMessage>, Vec<Value>) {
    let value = value(text);
    let messages = from_stakai(value.as_array().unwrap()).unwrap();
    let written = to_stakai(&messages);
    assert_eq!(from_stakai(&written).unwrap(), messages);
    (messages, written)
}

#[test]
fn what_another_engine_wrote_is_read_and_written_again() {
    for text in [
        r#"[{"role":"system","content":"be brief"},{"role":"user","content":"q","name":"ann","mood":"good"}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":"a"}]"#,
        concat!(
            r#"[{"role":"user","content":[{"type":"text","text":"a","cache":1},"#,
            r#"{"type":"image","url":"data:image/png;base64,AAAA","detail":"low"},"#,
            r#"{"type":"image","url":"https://example.org/a.png"}],"#,
            r#""provider_options":{"anthropic":{"cache_control":{"type":"ephemeral"}}}}]"#
        ),
        concat!(
            r#"[{"role":"assistant","content":[{"type":"text","text":"look"},"#,
            r#"{"type":"tool_call","id":"t1","name":"view","arguments":{"p":[1,null]},"metadata":{"sig":"s"},"k":1},"#,
            r#"{"type":"tool_call","id":"t2","name":"edit","arguments":[1]},{"type":"image","url":"https://e.org"}]},"#,
        ),
    ] {
        let text = if text.ends_with(',') {
            [text, r#"{"role":"tool","content":[{"type":"tool_result","tool_call_id":"t1","content":{"j":1}}]}]"#].concat()
        } else {
            text.to_owned()
        };
        let (messages, mut written) = foreign(&text);
        // Only the tool name is new in a result.
        for message in &mut written {
            if message.get("role").and_then(Value::as_str) == Some("tool") {
                let own = message.take("provider_options").to_json();
                assert_eq!(own, r#"{"turnwheel":{"toolName":"view"}}"#);
            }
        }
        assert_eq!(Value::Array(written), value(&text));
        assert!(!messages.is_empty());
    }
}

#[test]
fn a_message_of_another_engine_means_what_it_meant_there() {
    let (messages, _) = foreign(concat!(
        r#"[{"role":"system","content":"s"},{"role":"user","content":"q"},"#,
        r#"{"role":"assistant","content":[{"type":"tool_call","id":"t1","name":"view","arguments":{}},"#,
        r#"{"type":"tool_call","id":"t2","name":"edit","arguments":"{\"a\":1}"}]},"#,
        r#"{"role":"tool","content":[{"type":"tool_result","tool_call_id":"t1","content":"one"},"#,
        r#"{"type":"tool_result","tool_call_id":"t2","content":["x", 2]}]},"#,
        r#"{"role":"assistant","content":"done"},{"role":"tool","content":"of no call"}]"#
    ));
    let [system, _, asked, one, two, done, unconvertible] = messages.as_slice() else {
        panic!("{messages:?}")
    };
    assert!(matches!(system, AgentMessage::Custom(custom) if custom.kind == FOREIGN_KIND));
    assert!(matches!(unconvertible, AgentMessage::Custom(_)));
    let AgentMessage::Assistant(asked) = asked else { panic!() };
    assert_eq!(asked.stop_reason, MessageStopReason::ToolUse);
    assert_eq!(
        asked.tool_calls().map(|call| call.arguments.as_str()).collect::<Vec<_>>(),
        ["{}", "{\"a\":1}"]
    );
    for (result, id, tool, text) in [(one, "t1", "view", "one"), (two, "t2", "edit", "[\"x\",2]")] {
        let AgentMessage::ToolResult(result) = result else { panic!() };
        assert_eq!(
            (result.call_id.as_str(), result.tool_name.as_str(), result.text().as_str()),
            (id, tool, text)
        );
    }
    assert!(matches!(done, AgentMessage::Assistant(done) if done.text() == "done"
        && done.stop_reason == MessageStopReason::Stop));
}

#[test]
fn values_nested_as_deep_as_any_survive() {
    let deep = ["{\"a\":", &"[".repeat(127), &"]".repeat(127), "}"].concat();
    let data = raw(&deep);
    let custom = CustomMessage { kind: "k".to_owned(), data, timestamp: 1 };
    let messages = [AgentMessage::Custom(Rc::new(custom))];
    let written = to_stakai(&messages);
    let envelope = turnwheel::checkpoint::CheckpointEnvelopeV1::new(None, written, Value::Null);
    let again = turnwheel::checkpoint::CheckpointEnvelopeV1::decode(envelope.to_json().as_bytes()).unwrap();
    assert_eq!(from_stakai(&again.messages).unwrap(), messages);
}

#[test]
fn damaged_messages_are_refused_or_read_but_never_break_anything() {
    let dice = Dice::new(7);
    let bytes = b"{}[]\",:0x ";
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..8_000 {
        let dice_of_message = Dice::new(seed % 97);
        let mut text =
            to_stakai(&[message(&dice_of_message), message(&dice_of_message)]).to_json().into_bytes();
        for _ in 0..=dice.below(3) {
            let at = dice.below(text.len());
            text[at] = *dice.pick(bytes);
        }
        let Ok(text) = String::from_utf8(text) else { continue };
        let Ok(Value::Array(messages)) = Value::parse(&text) else { continue };
        match from_stakai(&messages) {
            Ok(messages) => {
                taken += 1;
                let again = from_stakai(&to_stakai(&messages));
                assert!(again.is_ok(), "{text}");
            }
            Err(reason) => {
                refused += 1;
                assert!(reason.starts_with("message "), "{reason}");
            }
        }
    }
    assert!(taken > 500 && refused > 50, "{taken} taken, {refused} refused");
}

/// What both halves write: this crate and www/npm/checkpoint/.
/// `TURNWHEEL_BLESS=1` writes the file again.
#[test]
fn the_package_writes_the_same() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/checkpoints/messages.json");
    // Left out: numbers that JavaScript cannot represent, and layouts, which it does not know.
    let unconvertible = ["12345678901234567890123", "18446744073709551615", "\"layout\"", "\"a\":1,\"a\":2"];
    let cases = (0..600).filter_map(|seed| {
        let message = message(&Dice::new(seed));
        let case =
            ["{\"message\":", &message.to_json(), ",\"written\":", &to_stakai(&[message])[0].to_json(), "}"];
        Some(case.concat())
            .filter(|case| !unconvertible.iter().any(|unconvertible| case.contains(unconvertible)))
    });
    let written = ["[\n", &cases.collect::<Vec<_>>().join(",\n"), "\n]\n"].concat();
    if std::env::var("TURNWHEEL_BLESS").is_ok() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &written).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), written);
}
