//! Plays the recorded provider responses in `tests/data/fixtures` with the code
//! of `cargo xtask fixtures`.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

use std::fs;
use std::path::Path;

use harness::fixtures;

#[test]
fn every_recorded_answer_comes_out_as_it_should() {
    let outcome = fixtures::play(&harness::data("fixtures")).unwrap();
    assert_eq!(outcome.complaints, [""; 0]);
    assert_eq!(outcome.failed, 0);
    assert!(outcome.not_built.is_empty(), "wires that are not built: {:?}", outcome.not_built);
    assert!(outcome.passed >= 190, "{} cases were found", outcome.passed);
}

#[test]
fn files_that_cannot_be_played_are_cases_that_failed() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken-fixtures");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let text = r#"{"wire": "openai-chat", "text": "Hello"}"#;
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n";
    let files: [(&str, &str); 10] = [
        ("cut.expect.json", "{\"wire\": "),
        ("cut.sse", body),
        ("good.expect.json", text),
        ("good.sse", body),
        ("lone.expect.json", text),
        ("nameless.expect.json", "{}"),
        ("other.expect.json", r#"{"wire": "telegraph"}"#),
        ("refused.expect.json", r#"{"wire": "openai-chat"}"#),
        ("refused.http.json", "not JSON"),
        ("unexpected.sse", body),
    ];
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
    let outcome = fixtures::play(&dir).unwrap();
    let named: Vec<&str> =
        outcome.complaints.iter().map(|line| line.split([' ', ':']).next().unwrap()).collect();
    let wanted = [
        "cut.expect.json",
        "lone.http.json",
        "nameless.expect.json",
        "refused.http.json",
        "unexpected.expect.json",
    ];
    assert_eq!(named, wanted, "{:?}", outcome.complaints);
    assert_eq!((outcome.passed, outcome.failed, outcome.not_built.get("telegraph")), (1, 5, Some(&1)));
    assert!(!fixtures::run(&dir));
}

#[test]
fn a_block_of_no_type_is_compared_like_any_other() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typeless-fixtures");
    fs::create_dir_all(&dir).unwrap();
    let start = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}"#;
    let block = r#"{"type":"content_block_start","index":0,"content_block":{"novelty":1}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    let lines =
        [start, block, stop, end, r#"{"type":"message_stop"}"#].map(|data| format!("data: {data}\n\n"));
    fs::write(dir.join("typeless.sse"), lines.concat()).unwrap();
    fs::write(dir.join("typeless.expect.json"), r#"{"wire": "anthropic", "text": "x"}"#).unwrap();
    let outcome = fixtures::play(&dir).unwrap();
    assert_eq!((outcome.passed, outcome.failed), (0, 1));
    assert!(outcome.complaints.iter().all(|line| !line.contains("player")), "{:?}", outcome.complaints);
}

#[test]
fn a_directory_without_a_case_is_no_success() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("no-fixtures");
    fs::create_dir_all(&dir).unwrap();
    assert!(!fixtures::run(&dir));
}
