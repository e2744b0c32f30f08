//! The spans of runs, with the feature `tracing`.

#![cfg(feature = "tracing")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic here is a test that fails")]

use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures::executor::block_on;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use turnwheel::agent::subagent::SubAgent;
use turnwheel::config::Model;
use turnwheel::error::ErrorKind;
use turnwheel::retry::RetryConfig;
use turnwheel::{
    AgentLoopConfig, AgentRunContext, AgentTool, CancelToken, ToolOutcome, ToolSpec, agent_loop, scripted,
    tool,
};

#[derive(Clone, Debug, Default)]
struct Seen {
    id: u64,
    parent: Option<u64>,
    fields: BTreeMap<String, String>,
    events: Vec<String>,
    is_open: bool,
}

#[derive(Default)]
struct Log {
    spans: Vec<Seen>,
    /// The spans that are entered, the innermost last.
    entered: Vec<u64>,
    handles: BTreeMap<u64, usize>,
}

/// Writes down every span.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Log>>, Arc<AtomicU64>);

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.1.fetch_add(1, Ordering::Relaxed) + 1;
        let mut log = self.0.lock().unwrap();
        let contextual = if span.is_contextual() { log.entered.last().copied() } else { None };
        let mut seen = Seen { id, is_open: true, ..Seen::default() };
        seen.parent = span.parent().map(Id::into_u64).or(contextual);
        seen.fields.insert("name".to_owned(), span.metadata().name().to_owned());
        span.record(&mut Fields(&mut seen.fields));
        log.spans.push(seen);
        log.handles.insert(id, 1);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut log = self.0.lock().unwrap();
        let seen = log.spans.iter_mut().find(|seen| seen.id == span.into_u64()).unwrap();
        values.record(&mut Fields(&mut seen.fields));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut log = self.0.lock().unwrap();
        let parent = event.parent().map(Id::into_u64).or_else(|| log.entered.last().copied());
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        if let Some(seen) = log.spans.iter_mut().find(|seen| Some(seen.id) == parent) {
            seen.events.push(fields["message"].clone());
        }
    }

    fn enter(&self, span: &Id) {
        self.0.lock().unwrap().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut log = self.0.lock().unwrap();
        assert_eq!(
            log.entered.pop(),
            Some(span.into_u64()),
            "spans are left in the order in which they were entered"
        );
    }

    fn clone_span(&self, span: &Id) -> Id {
        *self.0.lock().unwrap().handles.get_mut(&span.into_u64()).unwrap() += 1;
        span.clone()
    }

    fn try_close(&self, span: Id) -> bool {
        let mut log = self.0.lock().unwrap();
        let handles = log.handles.get_mut(&span.into_u64()).unwrap();
        *handles -= 1;
        let is_closed = *handles == 0;
        if is_closed {
            log.spans.iter_mut().find(|seen| seen.id == span.into_u64()).unwrap().is_open = false;
        }
        is_closed
    }
}

impl Recorder {
    /// The name by which OpenTelemetry would know the span.
    fn name(seen: &Seen) -> &str {
        seen.fields.get("otel.name").or_else(|| seen.fields.get("name")).unwrap()
    }

    fn tree(&self) -> String {
        let mut text = String::new();
        self.under(None, 0, &mut text);
        text
    }

    fn under(&self, parent: Option<u64>, depth: usize, text: &mut String) {
        let spans = self.0.lock().unwrap().spans.clone();
        for seen in spans.iter().filter(|seen| seen.parent == parent) {
            writeln!(text, "{:depth$}{}", "", Self::name(seen), depth = depth * 2).unwrap();
            self.under(Some(seen.id), depth + 1, text);
        }
    }

    fn find(&self, name: &str) -> Seen {
        self.0.lock().unwrap().spans.iter().find(|seen| Self::name(seen) == name).cloned().unwrap()
    }

    fn open(&self) -> usize {
        self.0.lock().unwrap().spans.iter().filter(|seen| seen.is_open).count()
    }
}

fn configured(model: Model, tools: Vec<Rc<dyn AgentTool>>) -> AgentLoopConfig {
    let mut config = AgentLoopConfig::new(model, scripted::clock());
    config.set_tools(tools).unwrap();
    config
}

fn named(name: &str, run: impl Fn() -> ToolOutcome + 'static) -> Rc<dyn AgentTool> {
    let spec = ToolSpec::parse(name, "", r#"{"type":"object"}"#).unwrap();
    tool(spec, move |_| {
        tracing::info_span!("work").in_scope(|| {});
        let outcome = run();
        async { outcome }
    })
}

fn look() -> Rc<dyn AgentTool> {
    let spec = ToolSpec::parse("look", "", r#"{"type":"object"}"#).unwrap();
    tool(spec, async |_| {
        tracing::info_span!("work").in_scope(|| {});
        "seen"
    })
}

/// Plays a run to its end, under a subscriber of its own.
fn traced(config: impl FnOnce() -> AgentLoopConfig) -> Recorder {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        let who = AgentRunContext::new("run", "session");
        block_on(agent_loop(vec!["Go".into()], config(), who, CancelToken::new()).finish());
    });
    assert_eq!(recorder.open(), 0, "every span ends");
    recorder
}

#[test]
fn an_agent_inside_a_call_is_inside_its_span() {
    let recorder = traced(|| {
        let clerk = || {
            configured(
                scripted::model([scripted::calls([("c1", "look", "{}")]), scripted::text("Seen.")]),
                vec![look()],
            )
        };
        let clerk = SubAgent::new("clerk", "", clerk);
        let calls = [("s1", "clerk", r#"{"prompt":"Look"}"#)];
        configured(scripted::model([scripted::calls(calls), scripted::text("Done.")]), vec![Rc::new(clerk)])
    });
    let expected = "\
invoke_agent
  chat scripted
  execute_tool clerk
    invoke_agent
      chat scripted
      execute_tool look
        work
      chat scripted
  chat scripted
";
    assert_eq!(recorder.tree(), expected);
    let run = recorder.find("invoke_agent").fields;
    let of = |name: &str| run.get(name).map(String::as_str);
    assert_eq!(of("gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(of("gen_ai.provider.name"), Some("scripted"));
    assert_eq!(of("gen_ai.conversation.id"), Some("session"));
    assert_eq!(of("gen_ai.response.finish_reasons"), Some("completed"));
    assert!(of("gen_ai.usage.output_tokens").is_some());
    assert_eq!(of("error.type"), None);
    let call = recorder.find("execute_tool clerk").fields;
    assert_eq!(call["gen_ai.tool.call.id"], "s1");
    assert_eq!(recorder.find("chat scripted").fields["gen_ai.response.finish_reasons"], "tool_call");
}

#[test]
fn retries_are_events_on_one_span_of_the_answer() {
    let recorder = traced(|| {
        let busy = || scripted::failure(ErrorKind::Overloaded, "busy");
        let mut config = configured(scripted::model([busy(), busy(), scripted::text("Hi.")]), vec![]);
        config.rules.retry = Rc::new(RetryConfig { initial_backoff_ms: 0, ..RetryConfig::default() });
        config
    });
    assert_eq!(recorder.tree(), "invoke_agent\n  chat scripted\n");
    assert_eq!(recorder.find("chat scripted").events, ["turnwheel.retry_attempt", "turnwheel.retry_attempt"]);
}

#[test]
fn failures_have_their_kind_and_calls_that_no_tool_ran_are_events() {
    let recorder = traced(|| {
        let calls = [("c1", "fail", "{}"), ("c2", "nope", "{}")];
        let model = scripted::model([scripted::calls(calls), scripted::failure(ErrorKind::Auth, "no key")]);
        configured(model, vec![named("fail", || ToolOutcome::Failed("no luck".to_owned()))])
    });
    let call = recorder.find("execute_tool fail").fields;
    assert_eq!((&*call["error.type"], &*call["otel.status_code"]), ("threw", "ERROR"));
    let run = recorder.find("invoke_agent");
    assert_eq!((&*run.fields["error.type"], &*run.fields["otel.status_code"]), ("auth", "ERROR"));
    assert_eq!(run.events, ["turnwheel.tool_not_run"]);
}

#[test]
fn an_abort_is_no_error_and_ends_every_span() {
    let stop = CancelToken::new();
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        let model = scripted::model([scripted::calls([("c1", "wait", "{}")])]);
        let spec = ToolSpec::parse("wait", "", r#"{"type":"object"}"#).unwrap();
        let stopping = stop.clone();
        let wait = tool(spec, move |_| {
            stopping.cancel("stop");
            std::future::pending::<&str>()
        });
        let who = AgentRunContext::new("run", "session");
        block_on(agent_loop(vec!["Go".into()], configured(model, vec![wait]), who, stop.clone()).finish());
    });
    assert_eq!(recorder.open(), 0);
    let run = recorder.find("invoke_agent").fields;
    assert_eq!(run["error.type"], "aborted");
    assert!(!run.contains_key("otel.status_code"));
}

#[test]
fn a_run_that_is_dropped_leaves_no_span_open() {
    let recorder = Recorder::default();
    tracing::subscriber::with_default(recorder.clone(), || {
        let model = scripted::model([scripted::calls([("c1", "look", "{}")]), scripted::text("Done.")]);
        let who = AgentRunContext::new("run", "session");
        let mut run = agent_loop(vec!["Go".into()], configured(model, vec![look()]), who, CancelToken::new());
        for _ in 0..5 {
            block_on(run.next());
        }
        assert!(recorder.open() > 0);
        drop(run);
    });
    assert_eq!(recorder.open(), 0);
}
