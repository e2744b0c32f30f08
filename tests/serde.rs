//! serde: what a Rust host gets from `serde_json::to_string(&event)` is what the npm package gives as objects, and
//! everything that is written is read again.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

#[path = "serde/plain.rs"]
mod plain;

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::rc::Rc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use turnwheel::approval::ToolDecision;
use turnwheel::checkpoint::CheckpointEnvelopeV1;
use turnwheel::driver::AgentLoopResult;
use turnwheel::error::{AgentError, ErrorInfo, ErrorKind, ProviderError};
use turnwheel::event::{
    AgentEvent, BudgetKind, BudgetState, CompactionReport, DecisionSource, RunStopReason, TurnEndReason,
};
use turnwheel::json::{RawJson, ToJson, Value};
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, CustomMessage, FileBlock, ImageBlock, LlmMessage, Media,
    MessageStopReason, TextBlock, ThinkingBlock, ToolCallBlock, ToolResultCause, ToolResultMessage, Usage,
    UserMessage,
};
use turnwheel::ports::AgentRunContext;
use turnwheel::question::{Question, QuestionKind};
use turnwheel::stream::{AssistantMessageEvent, Delta, DeltaKind, StreamOptions};
use turnwheel::tool::{AgentToolResult, Transfer};

fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// By way of JSON text, and by way of a tree of values, everything comes back as it was; both are what `to_json` writes.
fn comes_back<T: Serialize + DeserializeOwned + ToJson + PartialEq + Debug>(whole: &T) {
    let text = serde_json::to_string(whole).unwrap();
    assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *whole, "{text}");
    let tree = serde_json::to_value(whole).unwrap();
    assert_eq!(serde_json::from_value::<T>(tree.clone()).unwrap(), *whole, "{text}");
    assert_eq!(tree, serde_json::from_str::<serde_json::Value>(&whole.to_json()).unwrap());
}

fn usage() -> Usage {
    Usage {
        estimated: true,
        input: 9,
        output: 4,
        cache_read: 1,
        cache_write: 2,
        reasoning: Some(3),
        total: 16,
        cost: Some(271_037_500),
    }
}

fn error() -> ErrorInfo {
    ErrorInfo {
        retry_after_ms: Some(20),
        phase: Some("model".into()),
        provider: Some(ProviderError {
            status: Some(529),
            kind: Some("busy".into()),
            code: Some("b1".into()),
        }),
        ..ErrorInfo::new(ErrorKind::Overloaded, "try \"again\"")
    }
}

fn call() -> ToolCallBlock {
    ToolCallBlock {
        call_id: "a".into(),
        tool_name: "time".into(),
        arguments: raw(r#"{"zone":"Europe/Oslo","deep":[1,-2,0.5,1.0,null,true,18446744073709551615]}"#),
        metadata: Some(raw(r#"{"id":"x"}"#)),
    }
}

fn answer() -> AssistantMessage {
    let text = TextBlock { text: "Noon.".into(), signature: Some("s".into()) };
    let thinking = ThinkingBlock { thinking: "hm".into(), signature: Some("t".into()), redacted: true };
    AssistantMessage {
        content: vec![
            ContentBlock::Thinking(thinking),
            ContentBlock::Text(text),
            ContentBlock::ToolCall(call()),
            ContentBlock::Raw(raw(r#"{"type":"server_tool_use"}"#)),
        ],
        provider: "openai".into(),
        model: "m".into(),
        usage: usage(),
        stop_reason: MessageStopReason::ToolUse,
        error: Some(error()),
        timestamp: 1_700_000_000_000,
        id: None,
        foreign: None,
    }
}

fn result() -> ToolResultMessage {
    ToolResultMessage {
        call_id: "a".into(),
        tool_name: "time".into(),
        content: vec![
            ContentBlock::text("noon"),
            ContentBlock::Image(ImageBlock { media: Media::data("image/png", "AA==").unwrap() }),
        ],
        details: Some(raw("[1]")),
        is_error: true,
        cause: Some(ToolResultCause::Timeout),
        timestamp: 7,
        foreign: None,
    }
}

/// A message of each role.
fn messages() -> Vec<AgentMessage> {
    let file = FileBlock { media: Media::data("text/plain", "aGk=").unwrap(), name: Some("hi.txt".into()) };
    let question = UserMessage {
        content: vec![ContentBlock::text("What?"), ContentBlock::File(file)],
        ..UserMessage::default()
    };
    let custom = CustomMessage { kind: "note".into(), data: raw(r#"{"k":null}"#), timestamp: 3 };
    vec![question.into(), answer().into(), result().into(), AgentMessage::Custom(Rc::new(custom))]
}

/// A question about a call of a tool without an implementation.
fn asked_elsewhere() -> Question {
    let question = Question::new(QuestionKind::ToolCall, "q2".into(), 6);
    Question { path: vec!["k".to_owned()], call: Some(call()), ..question }
}

/// An event of each kind, with everything in it that it can have.
fn events() -> Vec<AgentEvent> {
    use AgentEvent as E;
    let (call_id, tool_name) = (|| "a".to_owned(), || "time".to_owned());
    let arguments = || raw(r#"{"zone":"UTC"}"#);
    let delta = |kind| E::MessageUpdate(Delta { content_index: 1, kind, text: "No".into() });
    vec![
        E::AgentStart { at: 7 },
        E::RunResumed {
            turn_index: 2,
            partial_message: Some(Rc::new(answer())),
            pending_approvals: vec![Question::about(call(), "q1".into(), 5)],
            running_tools: vec![call()],
            at: 7,
        },
        E::AgentEnd {
            own_usage: None,
            messages: messages(),
            stop_reason: RunStopReason::MaxTurns,
            usage: usage(),
            turns: 3,
            error: Some(error()),
            at: 7,
        },
        E::TurnStart { turn_index: 0, at: 7 },
        E::TurnEnd {
            turn_index: 0,
            message: Some(Rc::new(answer())),
            tool_results: vec![Rc::new(result())],
            reason: TurnEndReason::SteeringInterrupt,
            at: 7,
        },
        E::TurnEnd {
            turn_index: 1,
            message: None,
            tool_results: vec![],
            reason: TurnEndReason::Aborted,
            at: 7,
        },
        E::MessageStart { at: 7 },
        delta(DeltaKind::Text),
        delta(DeltaKind::Thinking),
        delta(DeltaKind::ToolCall { call_id: "a".into(), tool_name: "time".into() }),
        E::MessageReset { reason: "again".into() },
        E::MessageEnd { message: Rc::new(answer()), at: 7 },
        E::ToolCallsProposed { calls: vec![call()] },
        E::ToolApprovalRequested {
            path: vec!["k".to_owned()],
            id: "q1".into(),
            call_id: call_id(),
            tool_name: tool_name(),
            arguments: arguments(),
            asked_at: 5,
        },
        E::ToolApprovalResolved {
            path: vec!["k".to_owned()],
            id: "q1".into(),
            call_id: call_id(),
            tool_name: tool_name(),
            approved: true,
            by: DecisionSource::Command,
        },
        E::ToolExecutionStart { call_id: call_id(), tool_name: tool_name(), arguments: arguments(), at: 7 },
        E::ToolExecutionUpdate { call_id: call_id(), tool_name: tool_name(), update: raw("\"half\"") },
        E::ToolExecutionEnd { result: Rc::new(result()), at: 7 },
        E::ContextCompacted {
            report: CompactionReport {
                text: "short".into(),
                dropped_count: 4,
                tokens_before: 90,
                tokens_after: 10,
                overflow: true,
            },
        },
        E::BeforeLlmCall {
            system_prompt: "Be brief.".into(),
            messages: Rc::new(messages().iter().filter_map(AgentMessage::as_llm).collect()),
            model: "m".into(),
        },
        E::RetryAttempt { attempt: 1, delay_ms: 20, reason: "busy".into(), error: error() },
        E::ModelFallback { from: "m".into(), to: "n".into() },
        E::ModelSwitched { from: "m".into(), to: "n".into() },
        E::CommandRefused { id: Some("q1".into()), call_id: Some(call_id()), reason: "late".into() },
        E::StateChanged { changes: raw(r#"{"k":null}"#) },
        E::CacheAction { write: true, prefix_tokens: 12 },
        E::TransferInitiated { to: "sales".into(), reason: Some("money".into()) },
        E::SubagentEvent {
            call_id: call_id(),
            path: vec!["a".to_owned()],
            event: raw(r#"{"type":"agent_start","runId":"r/a"}"#),
        },
        E::QuestionAsked { question: Box::new(asked_elsewhere()) },
        E::QuestionResolved {
            id: "q2".into(),
            kind: QuestionKind::ToolCall,
            call_id: Some(call_id()),
            accepted: true,
            by: DecisionSource::Abort,
            path: vec!["k".to_owned()],
        },
        E::Budget { state: BudgetState::Warn, kind: BudgetKind::Tokens, used: 80, limit: 100 },
        E::HistoryRewound { length: 2, cut: 3, added: 1 },
        E::Custom { name: "mine".into(), payload: raw("[]") },
    ]
}

fn model_events() -> Vec<AssistantMessageEvent> {
    use AssistantMessageEvent as E;
    let text = || "x".to_owned();
    vec![
        E::Start,
        E::TextStart { index: 0 },
        E::TextDelta { index: 0, delta: text() },
        E::TextEnd { index: 0, signature: Some(text()) },
        E::ThinkingStart { index: 1 },
        E::ThinkingDelta { index: 1, delta: text() },
        E::ThinkingEnd { index: 1, signature: None, redacted: true },
        E::ThinkingEnd { index: 1, signature: Some(text()), redacted: false },
        E::ToolCallStart { index: 2, call_id: text(), tool_name: text() },
        E::ToolCallDelta { index: 2, delta: text() },
        E::ToolCallEnd { index: 2, metadata: Some(raw(r#"{"id":"x"}"#)) },
        E::Raw { index: 3, data: raw(r#"{"type":"new"}"#) },
        E::Usage(usage()),
        E::Ping,
        E::Done { stop_reason: MessageStopReason::Length, usage: Some(usage()) },
        E::Error(error()),
    ]
}

/// The kinds of events, as the source has them.
fn kinds() -> BTreeSet<&'static str> {
    let source = include_str!("../src/words/event/mod.rs");
    let (_, from) = source.split_once("pub enum AgentEvent {\n").unwrap();
    let (body, _) = from.split_once("\n}\n").unwrap();
    let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
    let named = lines.filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()));
    named.filter_map(|line| line.split([' ', '(', ',']).next()).collect()
}

#[test]
fn every_event_comes_back() {
    events().iter().for_each(comes_back);
    let debugged: Vec<String> = events().iter().map(|event| format!("{event:?}")).collect();
    let here: BTreeSet<&str> = debugged.iter().filter_map(|event| event.split([' ', '(']).next()).collect();
    assert_eq!(here, kinds(), "every kind of event stands here");
    model_events().iter().for_each(comes_back);
    comes_back(&events());
}

#[test]
fn every_message_block_and_error_comes_back() {
    messages().iter().for_each(comes_back);
    messages().iter().filter_map(AgentMessage::as_llm).for_each(|message: LlmMessage| comes_back(&message));
    comes_back(&answer());
    comes_back(&answer().content);
    comes_back(&result());
    comes_back(&call());
    comes_back(&usage());
    comes_back(&error());
    let again: AgentError =
        serde_json::from_str(&serde_json::to_string(&AgentError::from(error())).unwrap()).unwrap();
    assert_eq!(*again.info(), error());
}

#[test]
fn a_checkpoint_comes_back_and_older_shapes_are_read() {
    let envelope = CheckpointEnvelopeV1::new(
        Some("11111111-2222-4333-8444-555555555555"),
        vec![Value::parse(r#"{"role":"user","content":"q","mood":"good"}"#).unwrap()],
        Value::parse(r#"{"cwd":"/w"}"#).unwrap(),
    );
    comes_back(&envelope);
    let legacy: CheckpointEnvelopeV1 = serde_json::from_str(r#"[{"role":"user","content":"q"}]"#).unwrap();
    assert_eq!(legacy.agent_messages().unwrap().len(), 1);
    let error = serde_json::from_str::<CheckpointEnvelopeV1>(r#"{"version":2}"#).unwrap_err();
    assert_eq!(error.to_string(), "unsupported checkpoint version: 2");
}

#[test]
fn a_result_comes_back_without_the_cause_of_its_error() {
    let whole = AgentLoopResult {
        own_usage: None,
        run_id: "r".into(),
        messages: messages(),
        text: "Noon.".into(),
        output: Some(raw(r#"{"time":"noon"}"#)),
        usage: usage(),
        turns: 2,
        stop_reason: RunStopReason::Error,
        error: Some(AgentError::from(error()).because(std::io::Error::other("cable"))),
    };
    let text = serde_json::to_string(&whole).unwrap();
    let again: AgentLoopResult = serde_json::from_str(&text).unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert_eq!((again.messages, again.output), (whole.messages, whole.output));
    let error = serde_json::from_str::<AgentLoopResult>(r#"{"runId":"r","messages":[]}"#).unwrap_err();
    assert_eq!(error.to_string(), "unknown stop reason ``");
}

#[test]
fn what_hosts_hand_over_comes_back() {
    comes_back(&AgentRunContext::new("r", "s"));
    comes_back(&AgentToolResult { details: Some(raw("1")), ..AgentToolResult::error("no") });
    let transfer = Transfer { to: "sales".into(), reason: None };
    comes_back(&AgentToolResult { transfer: Some(transfer), ..AgentToolResult::default() });
    comes_back(&ToolDecision::AcceptWith(raw(r#"{"k":1}"#)));
    comes_back(&ToolDecision::Reject { reason: Some("no".into()) });
    let options = r#"{"temperature":0.5,"maxTokens":9,"reasoning":{"budgetTokens":5},"body":{"k":[1]}}"#;
    comes_back(&serde_json::from_str::<StreamOptions>(options).unwrap());
    let error = serde_json::from_str::<AgentToolResult>(r#"{"transfer":{}}"#).unwrap_err();
    assert_eq!(error.to_string(), "a transfer needs a text `to`");
}

#[test]
fn words_are_texts() {
    assert_eq!(serde_json::to_value(MessageStopReason::ToolUse).unwrap(), "tool_use");
    assert_eq!(serde_json::from_str::<RunStopReason>("\"max_turns\"").unwrap(), RunStopReason::MaxTurns);
    let error = serde_json::from_str::<TurnEndReason>("\"tired\"").unwrap_err();
    assert!(error.to_string().starts_with("`tired` is no word for a TurnEndReason"), "{error}");
}

#[test]
fn an_event_is_written_as_the_npm_package_gives_it() {
    let end = AgentEvent::ToolExecutionEnd { result: Rc::new(result()), at: 8 };
    assert_eq!(
        serde_json::to_value(end).unwrap(),
        json!({
            "type": "tool_execution_end",
            "callId": "a",
            "toolName": "time",
            "result": {
                "role": "tool_result",
                "callId": "a",
                "toolName": "time",
                "content": [
                    { "type": "text", "text": "noon" },
                    { "type": "image", "mimeType": "image/png", "data": "AA==" },
                ],
                "details": [1],
                "isError": true,
                "cause": "timeout",
                "timestamp": 7,
            },
            "isError": true,
            "at": 8,
        })
    );
}

#[test]
fn a_serializer_of_objects_gets_objects() {
    let start = AgentEvent::ToolExecutionStart {
        call_id: "a".into(),
        tool_name: "t".into(),
        arguments: raw(r#"{"n":[1,-1,0.5,null,true]}"#),
        at: 9,
    };
    assert_eq!(
        plain::noted(&start),
        [
            "object of 5",
            "\"type\"",
            "\"tool_execution_start\"",
            "\"callId\"",
            "\"a\"",
            "\"toolName\"",
            "\"t\"",
            "\"arguments\"",
            "object of 1",
            "\"n\"",
            "list of 5",
            "u64 1",
            "i64 -1",
            "f64 0.5",
            "null",
            "true",
            "\"at\"",
            "u64 9",
        ]
    );
    events().iter().for_each(|event| assert!(plain::noted(event)[0].starts_with("object of")));
}

#[test]
fn arguments_keep_their_meaning_but_not_their_layout() {
    let written = r#"{"type":"tool_call","callId":"a","toolName":"t","arguments":{ "n" : 1e2, "big": 12345678901234567890123 }}"#;
    let call: ToolCallBlock = serde_json::from_str(written).unwrap();
    assert_eq!(call.arguments.as_str(), r#"{"n":100.0,"big":1.2345678901234568e22}"#);
}

#[test]
fn what_is_nested_without_end_is_refused() {
    let mut deep = serde_json::Value::Null;
    for _ in 0..300 {
        deep = json!([deep]);
    }
    let error = serde_json::from_value::<RawJson>(deep).unwrap_err();
    assert_eq!(error.to_string(), "it is nested too deep");
}
