//! The native cost of the engine's parts: the SSE decoder, each wire's decoder and encoder, and whole
//! runs of the loop, whose cost per turn must not grow with the history.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that fails here says where")]

use std::hint::black_box;
use std::rc::Rc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::executor::block_on;
use futures::future::LocalBoxFuture;
use futures::stream::{self, LocalBoxStream, StreamExt};

use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model};
use turnwheel::driver::agent_loop;
use turnwheel::json::RawJson;
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, MessageStopReason, ToolCallBlock,
    ToolResultMessage, Usage,
};
use turnwheel::ports::{AgentRunContext, StreamFn, Timer};
use turnwheel::stream::{AssistantMessageEvent as Event, ModelRequest};
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec};
use turnwheel::wires::anthropic::Anthropic;
use turnwheel::wires::gemini::Gemini;
use turnwheel::wires::openai_chat::OpenAiChat;
use turnwheel::wires::openai_responses::OpenAiResponses;
use turnwheel::wires::sse::SseParser;
use turnwheel::wires::{Wire, WireOptions};

const DELTAS: usize = 10_000;
const READ: usize = 16 * 1024;

fn wires() -> Vec<(&'static str, Box<dyn Wire>)> {
    vec![
        ("openai_chat", Box::new(OpenAiChat::new(WireOptions::default()).unwrap())),
        ("openai_responses", Box::new(OpenAiResponses::new(WireOptions::default()).unwrap())),
        ("anthropic", Box::new(Anthropic::new(WireOptions::default()).unwrap())),
        ("gemini", Box::new(Gemini::new(WireOptions::default()).unwrap())),
    ]
}

/// An answer of many small deltas, as the wire's server would write it.
fn answer(wire: &str) -> Vec<u8> {
    let (head, delta, tail) = match wire {
        "openai_chat" => (
            "",
            r#"data: {"id":"c","object":"chat.completion.chunk","created":1700000000,"model":"m","system_fingerprint":"f","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}"#,
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        ),
        "openai_responses" => (
            "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\"}}\n\n",
            r#"data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"i","output_index":0,"content_index":0,"delta":" word","logprobs":[]}"#,
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n",
        ),
        "anthropic" => (
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word"}}"#,
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
        ),
        _ => (
            "",
            r#"data: {"candidates":[{"content":{"parts":[{"text":" word"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":1,"totalTokenCount":2},"modelVersion":"m"}"#,
            "data: {\"candidates\":[{\"content\":{\"parts\":[]},\"finishReason\":\"STOP\"}]}\n\n",
        ),
    };
    let mut body = head.to_owned();
    for _ in 0..DELTAS {
        body.push_str(delta);
        body.push_str("\n\n");
    }
    body.push_str(tail);
    body.into_bytes()
}

fn sse(c: &mut Criterion) {
    let body = answer("openai_chat");
    let mut group = c.benchmark_group("sse");
    group.throughput(Throughput::Elements(DELTAS as u64));
    group.bench_function("16 KiB reads", |b| {
        b.iter(|| {
            let (mut parser, mut length) = (SseParser::default(), 0);
            for read in body.chunks(READ) {
                parser.feed(read, |frame| length += frame.data.len()).unwrap();
            }
            length
        });
    });
}

fn decoders(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    group.throughput(Throughput::Elements(DELTAS as u64));
    for (name, wire) in wires() {
        let body = answer(name);
        group.bench_function(name, |b| {
            b.iter(|| {
                let (mut decoder, mut events) = (wire.decoder(), Vec::new());
                for read in body.chunks(READ) {
                    decoder.feed(read, &mut events);
                }
                decoder.finish(&mut events);
                assert!(events.len() > DELTAS && matches!(events.last(), Some(Event::Done { .. })));
                events.len()
            });
        });
    }
}

/// An answer that asks for this many calls at once.
fn asking(wire: &str, calls: usize) -> Vec<u8> {
    let mut body = String::new();
    let mut say = |text: String| body.extend(["data: ", &text, "\n\n"]);
    for n in 0..calls {
        let arguments = format!("{{\\\"i\\\":{n}}}");
        match wire {
            "openai_chat" => {
                say(format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{n},"id":"call_{n}","type":"function","function":{{"name":"step","arguments":""}}}}]}}}}]}}"#
                ));
                say(format!(
                    r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{n},"function":{{"arguments":"{arguments}"}}}}]}}}}]}}"#
                ));
            }
            "openai_responses" => {
                say(format!(
                    r#"{{"type":"response.output_item.added","output_index":{n},"item":{{"type":"function_call","id":"i{n}","call_id":"call_{n}","name":"step","arguments":""}}}}"#
                ));
                say(format!(
                    r#"{{"type":"response.function_call_arguments.delta","output_index":{n},"delta":"{arguments}"}}"#
                ));
                say(format!(
                    r#"{{"type":"response.output_item.done","output_index":{n},"item":{{"type":"function_call","id":"i{n}","call_id":"call_{n}","name":"step","arguments":"{arguments}"}}}}"#
                ));
            }
            "anthropic" => {
                say(format!(
                    r#"{{"type":"content_block_start","index":{n},"content_block":{{"type":"tool_use","id":"call_{n}","name":"step","input":{{}}}}}}"#
                ));
                say(format!(
                    r#"{{"type":"content_block_delta","index":{n},"delta":{{"type":"input_json_delta","partial_json":"{arguments}"}}}}"#
                ));
                say(format!(r#"{{"type":"content_block_stop","index":{n}}}"#));
            }
            _ => say(format!(
                r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"id":"call_{n}","name":"step","args":{{"i":{n}}}}}}}],"role":"model"}},"index":0}}]}}"#
            )),
        }
    }
    for end in match wire {
        "openai_chat" => {
            &[r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#, "[DONE]"][..]
        }
        "openai_responses" => &[r#"{"type":"response.completed","response":{"status":"completed"}}"#],
        "anthropic" => {
            &[r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#, r#"{"type":"message_stop"}"#]
        }
        _ => &[r#"{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}"#],
    } {
        say((*end).to_owned());
    }
    body.into_bytes()
}

/// Calls at once, decoded and sent back with their results: the time per call must
/// not grow with their number.
fn calls_at_once(c: &mut Criterion) {
    for (name, _) in wires() {
        let mut group = c.benchmark_group(format!("calls at once, {name}"));
        for calls in [100, 1_000, 10_000] {
            group.throughput(Throughput::Elements(calls as u64));
            let body = asking(name, calls);
            let wire = || wires().into_iter().find(|(other, _)| *other == name).unwrap().1;
            group.bench_function(BenchmarkId::new("decode", calls), |b| {
                b.iter(|| {
                    let (mut decoder, mut events) = (wire().decoder(), Vec::new());
                    for read in body.chunks(READ) {
                        decoder.feed(read, &mut events);
                    }
                    decoder.finish(&mut events);
                    let begun =
                        events.iter().filter(|event| matches!(event, Event::ToolCallStart { .. })).count();
                    assert_eq!(begun, calls);
                });
            });
            let given_back = request(&answered(calls));
            group.bench_function(BenchmarkId::new("encode", calls), |b| {
                b.iter_batched_ref(wire, |wire| black_box(wire.encode(&given_back)), BatchSize::SmallInput);
            });
        }
    }
}

fn call(turn: usize) -> ToolCallBlock {
    ToolCallBlock {
        call_id: format!("call_{turn}"),
        tool_name: "step".to_owned(),
        arguments: RawJson::parse(&format!("{{\"i\":{turn}}}")).unwrap(),
        metadata: None,
    }
}

/// An answer with these calls.
fn answer_with(calls: std::ops::Range<usize>) -> LlmMessage {
    let mut content = vec![ContentBlock::text("a few words before it")];
    content.extend(calls.map(|n| ContentBlock::ToolCall(call(n))));
    LlmMessage::Assistant(Rc::new(AssistantMessage {
        content,
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: MessageStopReason::ToolUse,
        error: None,
        timestamp: 0,
        id: None,
        foreign: None,
    }))
}

fn result_of(n: usize) -> LlmMessage {
    LlmMessage::ToolResult(Rc::new(ToolResultMessage {
        call_id: format!("call_{n}"),
        tool_name: "step".to_owned(),
        content: vec![ContentBlock::text("ok")],
        details: None,
        is_error: false,
        cause: None,
        timestamp: 0,
        foreign: None,
    }))
}

fn question() -> LlmMessage {
    AgentMessage::user("Do the work.").as_llm().unwrap()
}

/// A conversation with this many turns that call a tool.
fn history(turns: usize) -> Vec<LlmMessage> {
    let turns = (0..turns).flat_map(|turn| [answer_with(turn..turn + 1), result_of(turn)]);
    std::iter::once(question()).chain(turns).collect()
}

/// One turn with this many calls at once.
fn answered(calls: usize) -> Vec<LlmMessage> {
    [question(), answer_with(0..calls)].into_iter().chain((0..calls).map(result_of)).collect()
}

fn request(messages: &[LlmMessage]) -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system_prompt: "Be brief.".into(),
        messages: Rc::new(messages.to_vec()),
        tools: Rc::new([]),
        options: Rc::default(),
        api_key: None,
        session_id: None,
        output: None,
    }
}

/// `whole`: every message is new. `next`: one turn more than in the previous request.
fn encoders(c: &mut Criterion) {
    let messages = history(400);
    let (whole, before) = (request(&messages), request(&messages[..messages.len() - 2]));
    let mut group = c.benchmark_group("encode 400 turns");
    for (name, mut wire) in wires() {
        group.bench_function(BenchmarkId::new(name, "whole"), |b| {
            b.iter_batched_ref(
                || wires().into_iter().find(|(other, _)| *other == name).unwrap().1,
                |wire| black_box(wire.encode(&whole)),
                BatchSize::SmallInput,
            );
        });
        group.bench_function(BenchmarkId::new(name, "next"), |b| {
            b.iter(|| {
                wire.encode(&before);
                black_box(wire.encode(&whole))
            });
        });
    }
}

/// Asks for a tool in so many turns, so many times in each.
struct Scripted {
    turns: usize,
    calls: usize,
}

impl StreamFn for Scripted {
    fn stream(
        &self,
        request: ModelRequest,
        _: &AgentRunContext,
        _: CancelToken,
    ) -> LocalBoxStream<'static, Event> {
        let turn = request.messages.len() / (1 + self.calls);
        let mut events = vec![Event::Start, Event::TextStart { index: 0 }];
        events.extend((0..5).map(|_| Event::TextDelta { index: 0, delta: " word".to_owned() }));
        events.push(Event::TextEnd { index: 0, signature: None });
        let mut stop_reason = MessageStopReason::Stop;
        if turn < self.turns {
            for (index, number) in (1..).zip(0..self.calls) {
                let ToolCallBlock { call_id, tool_name, arguments, .. } = call(turn * self.calls + number);
                let delta = arguments.as_str().to_owned();
                events.push(Event::ToolCallStart { index, call_id, tool_name });
                events.push(Event::ToolCallDelta { index, delta });
                events.push(Event::ToolCallEnd { index, metadata: None });
            }
            stop_reason = MessageStopReason::ToolUse;
        }
        events.push(Event::Done { stop_reason, usage: None });
        stream::iter(events).boxed_local()
    }
}

struct Steps(ToolSpec);

impl AgentTool for Steps {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn execute(&self, _: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let content = vec![ContentBlock::text("ok")];
        Box::pin(async { ToolOutcome::Completed(AgentToolResult { content, ..AgentToolResult::default() }) })
    }
}

struct NoClock;

impl Timer for NoClock {
    fn now(&self) -> u64 {
        0
    }

    fn sleep(&self, _: u64) -> LocalBoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// A whole run.
fn run(turns: usize, calls: usize) {
    let model = Model::new("p", "m", Rc::new(Scripted { turns, calls }));
    let mut config = AgentLoopConfig::new(model, Rc::new(NoClock));
    let spec = ToolSpec::new("step", "", RawJson::empty_object());
    config.set_tools(vec![Rc::new(Steps(spec))]).unwrap();
    config.rules.max_turns = None;
    let context = AgentRunContext::new("r", "s");
    let run = agent_loop(vec![AgentMessage::user("Go.")], config, context, CancelToken::new());
    let result = block_on(run.finish());
    assert_eq!(result.turns as usize, turns + 1);
    assert_eq!(result.messages.len(), 2 + turns * (1 + calls));
}

/// The time per turn, and per call of many that start at once, tells whether it grows.
fn runs(c: &mut Criterion) {
    runs_of(c, "turns", [50, 400, 2_000], |turns| run(turns, 1));
    runs_of(c, "calls at once", [100, 1_000, 10_000], |calls| run(1, calls));
}

fn runs_of(c: &mut Criterion, name: &str, sizes: [usize; 3], run: fn(usize)) {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    for size in sizes {
        group.throughput(Throughput::Elements(size as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |b| b.iter(|| run(size)));
    }
}

criterion_group!(benches, sse, decoders, calls_at_once, encoders, runs);
criterion_main!(benches);
