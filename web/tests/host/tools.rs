//! Tools in Rust and in JavaScript, and approval.

use std::rc::Rc;

use js_sys::Function;
use turnwheel::cancel::CancelToken;
use turnwheel::config::AgentLoopConfig;
use turnwheel::driver::agent_loop;
use turnwheel::event::{AgentEvent, RunStopReason};
use turnwheel::json::RawJson;
use turnwheel::message::ToolResultCause;
use turnwheel::scripted;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome, ToolSpec, tool};
use turnwheel_web::{JsApprover, JsTool, new_context};
use wasm_bindgen::prelude::*;
use wasm_bindgen_test::wasm_bindgen_test as test;

use crate::scene::{at, config, js, json, play, result_of};

/// A run in which the model calls these tools (id, name, arguments) and then says that it is done.
fn calling<const N: usize>(calls: [(&str, &str, &str); N], tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let mut config = config(scripted::model([scripted::calls(calls), scripted::text("done")]));
    config.set_tools(tools).unwrap();
    config
}

/// A JavaScript tool with this function.
fn js_tool(name: &str, execute: &str) -> Rc<dyn AgentTool> {
    let definition = format!("{{ name: '{name}', description: 'A test', execute: {execute} }}");
    Rc::new(JsTool::new(js(&definition)).unwrap())
}

/// Plays one call of a tool with this function, and returns its events and the text and flag of its result.
async fn call(execute: &str) -> (String, bool) {
    let (events, _) = play(calling([("a", "t", r#"{"n":1}"#)], vec![js_tool("t", execute)]), "go").await;
    let result = result_of(&events, "a");
    (result.text(), result.is_error)
}

#[test]
async fn tools_in_rust_and_in_javascript_run_in_one_batch() {
    let spec = ToolSpec::new("rust", "A test", RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let rust = tool(spec, async |context: ToolContext| {
        ToolOutcome::Completed(AgentToolResult::text(format!("rust {}", context.arguments.as_str())))
    });
    let script = js_tool("script", "async ({ n }) => { await null; return `script ${n}`; }");
    let calls = [("a", "rust", r#"{"n":1}"#), ("b", "script", r#"{"n":2}"#)];
    let (events, result) = play(calling(calls, vec![rust, script]), "go").await;
    assert_eq!(result_of(&events, "a").text(), r#"rust {"n":1}"#);
    assert_eq!(result_of(&events, "b").text(), "script 2");
    assert_eq!(result.text, "done");
}

#[test]
async fn what_a_function_returns_becomes_the_result() {
    for (execute, text, is_error) in [
        ("() => 'text'", "text", false),
        ("() => undefined", "", false),
        ("() => null", "null", false),
        ("({ n }) => n + 1", "2", false),
        ("() => ({ rows: [1, { a: 'x' }], gone: undefined })", r#"{"rows":[1,{"a":"x"}]}"#, false),
        ("async () => [1, 2]", "[1,2]", false),
        ("() => ({ content: [], of: 'a page' })", r#"{"content":[],"of":"a page"}"#, false),
        ("() => ({ content: [{ type: 'text', text: 'bad' }], isError: true })", "bad", true),
        ("() => ({ toJSON: () => 'seen' })", r#""seen""#, false),
        ("() => { throw new Error('broken') }", "tool `t` failed: broken", true),
        ("async () => { throw 'a text' }", "tool `t` failed: a text", true),
        ("() => ({ then: (_, no) => no(new RangeError('late')) })", "tool `t` failed: late", true),
        ("() => new Map([[1, 2]])", "the tool's result is no JSON: the result is an object (Map)", true),
        ("() => ({ f: [() => 1] })", "the tool's result is no JSON: the result.f[0] is a function", true),
        (
            "() => { const a = {}; a.a = a; return a; }",
            "the tool's result is no JSON: the result.a contains itself",
            true,
        ),
        (
            "() => { let a = 1; for (let i = 0; i < 1e6; i++) a = { a }; return a; }",
            "the tool's result is no JSON: the result is nested too deeply",
            true,
        ),
        ("() => 1n", "the tool's result is no JSON: the result is a bigint", true),
        ("() => ({ n: NaN })", "the tool's result is no JSON: the result.n is NaN", true),
        (
            "() => new Error('not thrown')",
            "the tool's result is no JSON: the result is an object (Error)",
            true,
        ),
    ] {
        assert_eq!(call(execute).await, (text.to_owned(), is_error), "{execute}");
    }
}

#[test]
async fn details_and_a_transfer_arrive() {
    let details =
        js_tool("t", "() => ({ content: [{ type: 'text', text: '1 file' }], details: { files: ['x'] } })");
    let (events, _) = play(calling([("a", "t", "{}")], vec![details]), "go").await;
    assert_eq!(result_of(&events, "a").details, Some(RawJson::parse(r#"{"files":["x"]}"#).unwrap()));
    let made = "[Symbol.for('turnwheel.made')]: true";
    let transfer =
        format!("() => ({{ {made}, transfer: {{ to: 'sales', reason: 'a question of money' }} }})");
    let transfer = js_tool("t", &transfer);
    let (_, result) = play(calling([("a", "t", "{}")], vec![transfer]), "go").await;
    assert_eq!(result.stop_reason, RunStopReason::Transfer);
    let stop = js_tool("t", "() => Symbol.for('turnwheel.cancelled')");
    let (_, result) = play(calling([("a", "t", "{}")], vec![stop]), "go").await;
    assert_eq!(result.stop_reason, RunStopReason::Aborted);
}

#[test]
async fn a_function_is_told_of_its_call_and_reports_progress() {
    let execute = "async function (args, context) {
        const { callId, toolName, runId, sessionId, signal, update, state } = context;
        update('half'); update({ done: 0.5 }); update(() => 1); update(undefined);
        state.set('seen', [args.n]); state.set('gone', 1); state.delete('gone');
        globalThis.lateUpdate = update;
        globalThis.lateState = state;
        let thrown = ''; try { state.set('seen', new Map()) } catch (error) { thrown = error.message }
        return { callId, toolName, ids: runId.length + sessionId.length, aborted: signal.aborted, self: this.name, seen: state.get('seen'), none: state.get('none') === undefined, thrown };
    }";
    let (events, _) = play(calling([("a", "t", r#"{"n":1}"#)], vec![js_tool("t", execute)]), "go").await;
    assert_eq!(
        result_of(&events, "a").text(),
        r#"{"callId":"a","toolName":"t","ids":72,"aborted":false,"self":"t","seen":[1],"none":true,"thrown":"the session state takes JSON only: the value is an object (Map)"}"#
    );
    let updates = events.iter().filter_map(|event| match event {
        AgentEvent::ToolExecutionUpdate { update, .. } => Some(update.as_str()),
        _ => None,
    });
    let expected = [
        r#""half""#,
        r#"{"done":0.5}"#,
        r#""the tool's update is no JSON: the update is a function""#,
        r#""""#,
    ];
    assert_eq!(updates.collect::<Vec<_>>(), expected);
    let changes = events.iter().find_map(|event| match event {
        AgentEvent::StateChanged { changes } => Some(changes.as_str()),
        _ => None,
    });
    assert_eq!(changes, Some(r#"{"seen":[1],"gone":null}"#));
    // What a function does with its context after its call has no effect, and does no harm.
    js::<JsValue>(
        "(lateUpdate('late'), lateState.set('seen', 2), lateState.delete('seen'), lateState.get('seen')[0])",
    );
}

#[test]
async fn the_signal_of_a_tool_is_aborted_when_nobody_wants_its_result() {
    let execute = "(_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => { globalThis.whyAborted = signal.reason; resolve('stopped'); }))";
    let config = calling([("a", "t", "{}")], vec![js_tool("t", execute)]);
    let cancel = CancelToken::new();
    let mut run = agent_loop(vec!["go".into()], config, new_context(), cancel.clone());
    while let Some(event) = run.next().await {
        if matches!(event, AgentEvent::ToolExecutionStart { .. }) {
            let cancel = cancel.clone();
            gloo_timers::callback::Timeout::new(1, move || cancel.cancel("the user left")).forget();
        }
    }
    let reason: JsValue = js("globalThis.whyAborted");
    assert_eq!(at(&reason, "name"), "AbortError");
    assert_eq!(at(&reason, "message"), "not wanted any more");
}

#[test]
async fn a_definition_is_checked() {
    for (definition, wrong) in [
        ("{ description: '', execute() {} }", "name"),
        ("{ name: 't', description: '' }", "execute"),
        ("{ name: 't', description: '', execute: 1 }", "Function"),
        ("{ name: 't', description: '', execute() {}, timeoutMs: 'soon' }", "invalid"),
        ("5", "invalid"),
    ] {
        let error = JsTool::new(js(definition)).err().expect(definition);
        assert!(error.starts_with("this is no tool: ") && error.contains(wrong), "{definition}: {error}");
    }
    let whole = "{ name: 't', description: 'd', parameters: { type: 'object', properties: {} }, requiresApproval: true, timeoutMs: 5,
        maxResultBytes: 6, idempotent: true, fatal: undefined, priority: -1, execute() {} }";
    let whole = JsTool::new(js(whole)).unwrap();
    let spec = whole.spec();
    assert_eq!(spec.schema.parameters.as_str(), r#"{"type":"object","properties":{}}"#);
    assert_eq!((spec.timeout_ms, spec.max_result_bytes, spec.priority), (Some(5), Some(6), -1));
    assert!(spec.idempotent && !spec.fatal);
}

/// Plays a call with this approver, and returns the result's text, cause, and the arguments that the tool saw.
async fn approved(approve: &str) -> (String, Option<ToolResultCause>) {
    let definition = "{ name: 't', description: '', requiresApproval: ({ n }) => n > 0, execute: (args) => JSON.stringify(args) }";
    let mut config = calling([("a", "t", r#"{"n":1}"#)], vec![Rc::new(JsTool::new(js(definition)).unwrap())]);
    config.set_approver(Rc::new(JsApprover::new(js(approve))));
    let (events, _) = play(config, "go").await;
    let result = result_of(&events, "a");
    (result.text(), result.cause)
}

#[test]
async fn a_javascript_function_decides_about_calls() {
    use ToolResultCause::Rejected;
    assert_eq!(approved("() => 'approve'").await, (r#"{"n":1}"#.to_owned(), None));
    assert_eq!(approved("async () => ({ action: 'approve', arguments: { n: 2 } })").await.0, r#"{"n":2}"#);
    let (text, cause) = approved("async () => ({ action: 'reject', reason: 'not today' })").await;
    assert!(text.contains("not today") && cause == Some(Rejected), "{text}");
    assert_eq!(approved("() => 'reject'").await.1, Some(Rejected));
    assert_eq!(approved("() => { throw new Error('away') }").await.1, Some(Rejected));
    assert_eq!(approved("async () => { throw new Error('away') }").await.1, Some(Rejected));
    assert_eq!(approved("() => true").await.1, Some(Rejected), "yes is not a decision");
    assert_eq!(approved("() => ({ action: 'result', content: 'from memory' })").await.0, "from memory");
    let saw = "(request, { signal }) => { globalThis.askedOfTest = { ...request, open: !signal.aborted }; return 'approve'; }";
    approved(saw).await;
    let asked: JsValue = js("globalThis.askedOfTest");
    assert_eq!(
        json(&asked),
        r#"{"callId":"a","toolName":"t","arguments":{"n":1},"requiresApproval":true,"open":true}"#
    );
}

#[test]
async fn a_call_that_needs_no_approval_is_not_asked_about() {
    let definition =
        "{ name: 't', description: '', requiresApproval: ({ n }) => n > 0, execute: () => 'ran' }";
    let mut config = calling([("a", "t", r#"{"n":0}"#)], vec![Rc::new(JsTool::new(js(definition)).unwrap())]);
    config.set_approver(Rc::new(JsApprover::new(js("() => 'reject'"))));
    let (events, _) = play(config, "go").await;
    assert_eq!(result_of(&events, "a").text(), "ran");
}

#[test]
async fn a_function_and_a_description_in_rust_make_a_tool() {
    let spec = ToolSpec::new("t", "A test", RawJson::parse(r#"{"type":"object"}"#).unwrap());
    let execute: Function = js("({ n }) => `n is ${n}`");
    let (events, _) =
        play(calling([("a", "t", r#"{"n":1}"#)], vec![Rc::new(JsTool::from_function(spec, execute))]), "go")
            .await;
    assert_eq!(result_of(&events, "a").text(), "n is 1");
}
