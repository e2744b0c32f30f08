//! Tapes: whatever is played, its tape lived again gives the same trace.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails here says where"
)]

use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::dice::Dice;
use rig::play::{play_recorded, read};
use rig::ports::Route;
use rig::random::scenario;
use rig::replay::trace_of;
use turnwheel::http::{HttpModel, HttpResponse};
use turnwheel::tape::{Recorder, RecorderOptions, Tape, decode_again, replay};
use turnwheel::wires::{HttpRequest, WireOptions, wire};
use turnwheel::{AgentLoopConfig, AgentRunContext, CancelToken, agent_loop};

fn runs() -> u64 {
    std::env::var("TURNWHEEL_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1_000)
}

/// Plays a scenario, and its tape after it. Returns what differs.
fn difference(text: &str, route: Route, is_bounded: bool) -> Option<String> {
    let (live, tape) = play_recorded(read(text).unwrap(), route, is_bounded);
    let tape = Tape::parse(&tape).unwrap();
    assert!(tape.is_complete());
    match trace_of(&tape) {
        Err(fault) => Some(fault.to_string()),
        // As texts: the order of members counts too.
        Ok(replayed) if format!("{replayed:#}") == format!("{live:#}") => None,
        Ok(replayed) => Some(format!("live {live:#}\nreplayed {replayed:#}")),
    }
}

#[test]
fn every_recorded_scenario_lives_again_from_its_tape() {
    let scenarios = harness::data("oracle").join("scenarios");
    let mut faults = Vec::new();
    for file in harness::conformance::json_files(&scenarios).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        for route in [Route::Inbox, Route::Provider] {
            let fault = difference(&text, route, false);
            faults.extend(fault.map(|fault| format!("{}, {route:?}: {fault}", file.display())));
        }
    }
    assert!(faults.is_empty(), "{} faults, the first: {}", faults.len(), faults[0]);
}

#[test]
fn every_random_world_lives_again_from_its_tape() {
    for seed in 0..runs() {
        let text = scenario(&Dice::new(seed)).to_string();
        for route in [Route::Inbox, Route::Provider] {
            let fault = difference(&text, route, true);
            assert!(fault.is_none(), "seed {seed}, {route:?}: {}", fault.unwrap());
        }
    }
}

/// The scenarios of which tapes are kept, so that every later version shows that it still lives them.
const KEPT: [&str; 8] = [
    "abort_during_tools",
    "agent_two_prompts",
    "approved_with_new_arguments",
    "fallback_succeeds",
    "overflow_recovers",
    "policy_order",
    "retry_in_second_turn",
    "steering_one_at_a_time",
];

/// `WRITE_TAPES=1 cargo test --test tape` adds tapes of this version; those of others stay.
#[test]
fn tapes_of_every_version_live_again() {
    let folder = harness::data("tapes");
    if std::env::var("WRITE_TAPES").is_ok() {
        for name in KEPT {
            let file = harness::data("oracle").join("scenarios").join(name).with_extension("json");
            let scenario = read(&std::fs::read_to_string(file).unwrap()).unwrap();
            let natural = Route::natural(&scenario);
            let (_, tape) = play_recorded(scenario, natural, false);
            let format = Tape::parse(&tape).unwrap().header().number_at("tape").unwrap();
            let kept = format!("native-{}-v{format}-{name}.tape", env!("CARGO_PKG_VERSION"));
            std::fs::write(folder.join(kept), tape).unwrap();
        }
    }
    let files = harness::conformance::files_of(&folder, "tape").unwrap();
    assert!(files.len() >= 20, "only {} tapes", files.len());
    for file in files {
        let tape = Tape::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert!(tape.is_complete(), "{}", file.display());
        let replayed = replay(&tape).unwrap_or_else(|fault| panic!("{}: {fault}", file.display()));
        assert_eq!(Some(replayed.events.len() as u64), tape.events(), "{}", file.display());
    }
}

#[test]
fn a_tape_that_is_changed_is_a_divergence_or_unreadable_and_never_a_panic() {
    let text = std::fs::read_to_string(harness::data("tapes").join("demo-question.tape")).unwrap();
    let mut differ = 0;
    let dice = Dice::new(7);
    for _ in 0..400 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=dice.below(2) {
            let at = dice.below(bytes.len());
            match dice.below(3) {
                0 => bytes[at] = *dice.pick(b"{}[]\",:0x19e-"),
                1 => drop(bytes.drain(at..(at + dice.below(30)).min(bytes.len()))),
                _ => {
                    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                    let gone = 1 + dice.below(lines.len() - 1);
                    let kept = lines.iter().enumerate().filter(|(place, _)| *place != gone);
                    bytes = kept.map(|(_, line)| *line).collect::<Vec<_>>().join(&b'\n');
                }
            }
        }
        let Ok(tape) = Tape::parse(&String::from_utf8_lossy(&bytes)) else { continue };
        differ += usize::from(replay(&tape).is_err());
    }
    assert!(differ > 200, "only {differ} of 400 were noticed");
}

/// Records a run over HTTP, whose answer comes in these reads.
fn recorded_over_http(reads: &'static [&'static [u8]]) -> Tape {
    let transport = async move |_: HttpRequest| {
        let body = stream::iter(reads.iter().map(|read| Ok(read.to_vec()))).boxed_local();
        Ok::<_, String>(HttpResponse { status: 200, headers: Vec::new(), body })
    };
    let clock = Rc::new(turnwheel::scripted::Clock::default());
    let wire = wire("openai-chat", WireOptions::default()).unwrap();
    let model = HttpModel::new(wire, Rc::new(transport), clock.clone()).with_key("sk-0123456789").model("m");
    let recorder = Recorder::with_options(RecorderOptions { wire: true, ..RecorderOptions::default() });
    let context = AgentRunContext::new("run", "session");
    let config = AgentLoopConfig::new(model, clock);
    let run = agent_loop(vec!["Hi".into()], config, context, CancelToken::new()).recorded(&recorder);
    futures::executor::block_on(run.finish());
    recorder.stop();
    Tape::parse(&recorder.to_text()).unwrap()
}

const BEGIN: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Gr\xc3";
const REST: &[u8] = b"\xbc\xc3\x9fe\"},\"finish_reason\":\"stop\"}]}\n\n";

#[test]
fn the_bytes_of_an_answer_are_written_and_decoded_to_the_same() {
    let tape = recorded_over_http(&[BEGIN, REST, b"data: [DONE]\n\n"]);
    assert_eq!(decode_again(&tape), Ok(1));
    assert!(replay(&tape).is_ok());
}

#[test]
fn an_answer_with_the_key_in_it_is_not_written_as_bytes() {
    let tape = recorded_over_http(&[
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"sk-0123\"}}]}\n\n",
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"456789\"},\"finish_reason\":\"stop\"}]}\n\n",
    ]);
    assert_eq!(decode_again(&tape), Ok(0));
}
