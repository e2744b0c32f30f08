//! Arguments as a type of serde: what fits runs, and what does not is a result that the model reads.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a panic here is a test that fails"
)]

use futures::executor::block_on;
use serde::Deserialize;
use turnwheel::json::RawJson;
use turnwheel::message::{AgentMessage, ToolResultCause, text_of};
use turnwheel::{
    Agent, AgentLoopConfig, AgentRunContext, CancelToken, ToolContext, ToolSpec, scripted, typed_tool,
};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
struct Trip {
    from: String,
    stops: Vec<Stop>,
    seats: Option<u8>,
    #[serde(default)]
    fare: Fare,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Stop {
    city: String,
    nights: u32,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Fare {
    #[default]
    Cheapest,
    Upto(f64),
    Between {
        low: f64,
        high: f64,
    },
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(tag = "kind")]
enum Shape {
    Circle { radius: f64 },
    Square(Side),
}

#[derive(Debug, Deserialize, PartialEq)]
struct Side {
    side: i64,
}

/// Runs a tool with these arguments; returns what the model reads, and why it is an error.
fn result_of(arguments: &str) -> (String, Option<ToolResultCause>) {
    let schema = r#"{"type":"object"}"#;
    let book = typed_tool(
        ToolSpec::parse("book", "Books a trip", schema).unwrap(),
        async |trip: Trip, call: ToolContext| {
            let nights: u32 = trip.stops.iter().map(|stop| stop.nights).sum();
            Ok::<_, String>(format!("{}: {} nights from {}", call.call_id, nights, trip.from))
        },
    );
    let answers = [scripted::calls([("c1", "book", arguments)]), scripted::text("Booked.")];
    let mut config = AgentLoopConfig::new(scripted::model(answers), scripted::clock());
    config.set_tools(vec![book]).unwrap();
    let agent = Agent::new(config, Vec::new());
    let run = agent.prompt(vec!["Go.".into()], AgentRunContext::random(), CancelToken::new()).unwrap();
    block_on(run.finish());
    let messages = agent.messages();
    let AgentMessage::ToolResult(result) = &messages[2] else { panic!("no result: {messages:?}") };
    (text_of(&result.content), result.cause)
}

#[test]
fn a_tool_takes_its_arguments_as_a_type() {
    let fits =
        r#"{"from":"Oslo","stops":[{"city":"Bergen","nights":2.0},{"city":"Voss","nights":1}],"why":"fun"}"#;
    assert_eq!(result_of(fits), ("c1: 3 nights from Oslo".to_owned(), None));
}

#[test]
fn arguments_that_do_not_fit_are_a_result_that_names_the_place() {
    let (text, cause) = result_of(r#"{"from":"Oslo","stops":[{"city":"Bergen","nights":"two"}]}"#);
    assert!(text.contains(r#"`stops[0].nights`: invalid type: string "two", expected u32"#), "{text}");
    assert_eq!(cause, Some(ToolResultCause::InvalidArguments));
    let (text, _) = result_of(r#"{"stops":[]}"#);
    assert!(text.contains("missing field `from`"), "{text}");
}

#[test]
fn enums_are_read_in_the_forms_of_serde() {
    let fare = |text: &str| RawJson::parse(text).unwrap().read::<Fare>();
    assert_eq!(fare(r#""cheapest""#), Ok(Fare::Cheapest));
    assert_eq!(fare(r#"{"upto":99}"#), Ok(Fare::Upto(99.0)));
    assert_eq!(fare(r#"{"between":{"low":1.5,"high":2e1}}"#), Ok(Fare::Between { low: 1.5, high: 20.0 }));
    assert_eq!(fare(r#"{"upto":"x"}"#).unwrap_err().path(), "upto");
    assert_eq!(fare("[]").unwrap_err().message(), "invalid type: a list, expected a variant");
    let shape = |text: &str| RawJson::parse(text).unwrap().read::<Shape>();
    assert_eq!(shape(r#"{"kind":"Circle","radius":1}"#), Ok(Shape::Circle { radius: 1.0 }));
    assert_eq!(shape(r#"{"kind":"Square","side":-3}"#), Ok(Shape::Square(Side { side: -3 })));
}

#[test]
fn every_value_is_read_as_serde_json_reads_it() {
    for text in [
        "null",
        "true",
        "0",
        "-0",
        "12",
        "-7",
        "1.25",
        "1e3",
        "18446744073709551615",
        "-9223372036854775808",
        r#""""#,
        r#""\u00e9\n""#,
        "[]",
        "[[],{}]",
        "{}",
        r#"{"a":{"b":[1,2.5,null]},"c":"d"}"#,
    ] {
        let ours: serde_json::Value = RawJson::parse(text).unwrap().read().unwrap();
        let theirs: serde_json::Value = serde_json::from_str(text).unwrap();
        let (ours, theirs) = (ours.to_string(), theirs.to_string());
        // A whole number stays one, also if it was written as `1e3` or `-0`.
        assert_eq!(ours.replace("-0.0", "0"), theirs.replace("-0.0", "0"), "{text}");
    }
}

#[test]
fn raw_json_is_text_and_text_is_raw_json() {
    let json: RawJson = r#" {"a": 1} "#.parse().unwrap();
    assert_eq!(json.to_string(), r#"{"a": 1}"#);
    assert_eq!("{".parse::<RawJson>().unwrap_err().offset(), 1);
}
