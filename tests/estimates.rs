//! How near the estimates are to what the providers tell: over the recorded answers whose output can be seen.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that fails here says where"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use futures::executor::block_on;
use futures::stream::{self, LocalBoxStream, StreamExt};
use serde_json::Value;
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::event::AgentEvent;
use turnwheel::ports::{AgentRunContext, StreamFn};
use turnwheel::scripted::Clock;
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::wires::{WireOptions, wire};

/// Recordings whose output is not all to be seen, and why.
const HIDDEN: [(&str, &str); 8] = [
    ("anthropic/mcp-server-tool", "the server's tools are part of the output"),
    ("anthropic/server-web-search", "the server's tools are part of the output"),
    ("gemini/finish-recitation", "the answer was withheld"),
    ("gemini/no-content-parts", "a picture is part of the output"),
    ("gemini/safety-vertex", "the text was taken out of the recording"),
    ("openai-responses/custom-tool", "the call has no arguments that are JSON, and none are kept"),
    ("anthropic/refusal-no-content", "a refusal has text that is not sent"),
    ("openai-responses/refusal", "a refusal has text that is not sent"),
];

/// A recorded answer, without what it says of its usage.
struct Recorded(Vec<E>);

impl StreamFn for Recorded {
    fn stream(&self, _: ModelRequest, _: &AgentRunContext, _: CancelToken) -> LocalBoxStream<'static, E> {
        stream::iter(self.0.clone()).boxed_local()
    }

    fn estimates_usage(&self) -> bool {
        true
    }
}

/// A recording: its name, what the provider has told, and what is estimated.
struct Case {
    name: String,
    told: u64,
    estimated: u64,
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|end| end == "sse") {
            found.push(path);
        }
    }
}

/// Returns nothing for a recording that does not count: what was made up, failed answers, and answers without any output, or
/// with one that is not all to be seen.
fn case(dir: &Path, path: &Path) -> Option<Case> {
    let name = path.strip_prefix(dir).unwrap().with_extension("").to_str().unwrap().replace('\\', "/");
    let expected = fs::read_to_string(path.with_extension("expect.json")).ok()?;
    let expected: Value = serde_json::from_str(&expected).unwrap();
    let is_recorded = expected["provenance"].as_str().is_some_and(|word| word.starts_with("recorded"));
    let usage = &expected["usage"];
    let told = usage["output"].as_u64().filter(|told| *told > 0)?;
    let thinks = usage["reasoning"].as_u64().is_some_and(|tokens| tokens > 0)
        || expected["thinking"].as_array().is_some_and(|thoughts| !thoughts.is_empty());
    let calls = expected["tool_calls"].as_array().map_or(0, Vec::len);
    let is_empty = expected["text"].as_str().unwrap_or_default().is_empty() && calls == 0;
    let is_hidden = HIDDEN.iter().any(|(hidden, _)| *hidden == name);
    if !is_recorded || thinks || is_empty || is_hidden || !expected["error"].is_null() {
        return None;
    }
    let body = fs::read_to_string(path).ok()?;
    let model = ["\"model\":\"", "\"model\": \"", "\"modelVersion\": \"", "\"modelVersion\":\""]
        .into_iter()
        .find_map(|key| body.split_once(key)?.1.split('"').next())
        .unwrap_or_default();
    let wire = wire(expected["wire"].as_str().unwrap(), WireOptions::default()).unwrap();
    let (mut decoder, mut events) = (wire.decoder(), Vec::new());
    decoder.feed(body.as_bytes(), &mut events);
    decoder.finish(&mut events);
    let untold: Vec<E> = events
        .into_iter()
        .filter_map(|event| match event {
            E::Usage(_) => None,
            E::Done { stop_reason, .. } => Some(E::Done { stop_reason, usage: None }),
            other => Some(other),
        })
        .collect();
    Some(Case { name, told, estimated: estimate(model, untold) })
}

fn estimate(model: &str, events: Vec<E>) -> u64 {
    let model = Model::new("p", model, Rc::new(Recorded(events)));
    let mut config = AgentLoopConfig::new(model, Rc::new(Clock::default()));
    config.rules.max_turns = Some(1);
    let agent = Agent::new(config, Vec::new());
    let who = AgentRunContext::new("r", "s");
    let mut run = agent.prompt(vec!["Go.".into()], who, CancelToken::new()).unwrap();
    block_on(async {
        while let Some(event) = run.next().await {
            if let AgentEvent::MessageEnd { message, .. } = event {
                assert!(message.usage.estimated);
                return message.usage.output;
            }
        }
        panic!("there is no answer")
    })
}

fn errors(cases: &[Case]) -> Vec<f64> {
    let error = |case: &Case| (case.estimated as f64 - case.told as f64).abs() / case.told as f64;
    let mut errors: Vec<f64> = cases.iter().map(error).collect();
    errors.sort_by(f64::total_cmp);
    errors
}

#[test]
fn half_of_the_estimates_are_within_fifteen_percent_and_nine_of_ten_within_thirty_five() {
    let dir = harness::data("fixtures");
    let mut paths = Vec::new();
    find(&dir, &mut paths);
    paths.sort();
    let cases: Vec<Case> = paths.iter().filter_map(|path| case(&dir, path)).collect();
    for Case { name, told, estimated } in &cases {
        println!("{name}: {told} told, {estimated} estimated");
    }
    assert!(cases.len() >= 50, "only {} recordings count", cases.len());
    let errors = errors(&cases);
    let median = errors[errors.len() / 2];
    let within = errors.iter().filter(|error| **error <= 0.35).count() as f64 / errors.len() as f64;
    println!("{} recordings, median {median:.3}, {within:.3} within 35 %", errors.len());
    assert!(median <= 0.15, "the median error is {median}");
    assert!(within >= 0.9, "only {within} are within 35 %");
}

#[test]
fn what_does_not_count_is_there_and_named_for_a_reason() {
    let dir = harness::data("fixtures");
    for (name, why) in HIDDEN {
        assert!(dir.join(name).with_extension("sse").exists(), "there is no {name}");
        assert!(!why.is_empty());
    }
}
