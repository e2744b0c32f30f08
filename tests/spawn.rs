//! An agent on a thread of its own: what crosses, what a slow reader does, and what becomes of everybody when something fails.

#![cfg(feature = "spawn")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that fails here says where")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::Poll;

use futures::executor::block_on;
use futures::future::{LocalBoxFuture, pending, poll_fn};
use futures::{FutureExt, StreamExt, TryStreamExt};
use turnwheel::agent::Receipt;
use turnwheel::approval::ToolDecision;
use turnwheel::error::ErrorKind;
use turnwheel::event::RunStopReason;
use turnwheel::spawn::{AgentHandle, Reply, Run, Sent, SpawnError, SpawnOptions};
use turnwheel::tool::ApprovalNeed;
use turnwheel::{
    Agent, AgentEvent, AgentLoopConfig, AgentMessage, AgentRunContext, AgentTool, CancelToken,
    CheckpointEnvelopeV1, ToolSpec, scripted, spawn, tool,
};

type Answers = Vec<scripted::ScriptedAnswer>;

fn agent(answers: Answers, tools: Vec<std::rc::Rc<dyn AgentTool>>) -> Agent {
    let mut config = AgentLoopConfig::new(scripted::model(answers), scripted::clock());
    config.set_tools(tools).unwrap();
    Agent::new(config, Vec::new())
}

fn spec(name: &str) -> ToolSpec {
    ToolSpec::parse(name, name, r#"{"type":"object"}"#).unwrap()
}

/// An agent that gives these texts, one in each run.
fn speaker(texts: &'static [&'static str]) -> AgentHandle {
    spawn(move || Ok::<_, String>(agent(texts.iter().map(|text| scripted::text(text)).collect(), Vec::new())))
        .unwrap()
}

/// An answer of this many pieces.
fn long(pieces: usize) -> scripted::ScriptedAnswer {
    use turnwheel::stream::AssistantMessageEvent as E;
    let mut answer = scripted::text("x");
    let piece = || E::TextDelta { index: 0, delta: "x".to_owned() };
    answer.splice(2..3, (0..pieces).map(|_| piece()));
    answer
}

fn names(events: &[Sent<AgentEvent>]) -> Vec<&str> {
    events.iter().map(Sent::name).collect()
}

#[test]
fn everything_that_a_server_keeps_may_cross_threads() {
    fn crosses<T: Send + 'static>() {}
    fn is_shared<T: Sync + Clone>() {}
    crosses::<AgentHandle>();
    is_shared::<AgentHandle>();
    crosses::<Run>();
    crosses::<Reply<Run>>();
    crosses::<Sent<AgentEvent>>();
    crosses::<SpawnError>();
    fn future_crosses(future: impl Future + Send + 'static) -> impl Future + Send {
        future
    }
    let agent = speaker(&["Hello!"]);
    // A handler of a server with many threads.
    let handler = future_crosses(async move {
        let mut run = agent.prompt("Hi").await?;
        while let Some(event) = run.try_next().await? {
            let _ = event.name();
        }
        run.finish().await
    });
    drop(handler);
}

#[test]
fn the_events_of_a_run_are_those_of_the_package_with_the_id_of_the_run() {
    let agent = speaker(&["Hello!"]);
    let run = block_on(agent.prompt("Say hello.")).unwrap();
    let events: Vec<_> = block_on(run.try_collect()).unwrap();
    let expected = [
        "agent_start",
        "turn_start",
        "message_start",
        "message_update",
        "message_end",
        "turn_end",
        "agent_end",
    ];
    assert_eq!(names(&events), expected);
    let ids: Vec<_> = events
        .iter()
        .map(|event| serde_json::from_str::<serde_json::Value>(event.as_str()).unwrap()["runId"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0] && id.as_str().is_some_and(|id| id.len() > 20)), "{ids:?}");
    let text: String = events.iter().filter_map(|event| event.added_text().unwrap()).collect();
    assert_eq!(text, "Hello!");
    assert!(matches!(events[6].read().unwrap(), AgentEvent::AgentEnd { turns: 1, .. }));
}

#[test]
fn the_same_conversation_goes_on_with_another_run() {
    let agent = speaker(&["One.", "Two."]);
    let texts = ["a", "b"].map(|text| {
        let run = block_on(agent.prompt(text)).unwrap();
        block_on(run.finish()).unwrap().read().unwrap().text
    });
    assert_eq!(texts, ["One.", "Two."]);
    assert_eq!(block_on(agent.messages()).unwrap().read().unwrap().len(), 4);
    assert_eq!(block_on(agent.with(|agent| agent.messages().len())).unwrap(), 4);
}

#[test]
fn a_second_run_is_refused_while_one_is_active() {
    // The first one waits for its reader.
    let options = SpawnOptions { waiting_events: 1, ..SpawnOptions::default() };
    let answers = || vec![scripted::text("One."), scripted::text("Two.")];
    let agent = options.spawn(move || Ok::<_, String>(agent(answers(), Vec::new()))).unwrap();
    let run = block_on(agent.prompt("a")).unwrap();
    let refused = block_on(agent.prompt("b")).err().unwrap();
    assert_eq!(refused.code(), ErrorKind::Misuse);
    assert!(refused.to_string().starts_with("the agent is already running"), "{refused}");
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "One.");
}

#[test]
fn a_call_is_approved_and_a_run_is_steered_from_another_thread() {
    let handle = spawn(|| {
        let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec("delete") };
        let answers =
            vec![scripted::calls([("c1", "delete", "{}")]), scripted::text("Done."), scripted::text("Ok.")];
        Ok::<_, String>(agent(answers, vec![tool(spec, async |_| "it is gone")]))
    })
    .unwrap();
    let mut run = block_on(handle.prompt("Tidy up.")).unwrap();
    let (result, receipt) = block_on(async {
        while run.try_next().await.unwrap().unwrap().name() != "tool_approval_requested" {}
        let questions = handle.questions().await.unwrap().read().unwrap();
        assert_eq!(questions[0].call_id(), Some("c1"));
        assert!(!handle.resolve("no such id", ToolDecision::Accept).await.unwrap());
        let receipt = handle.follow_up("And the cellar?");
        assert!(handle.resolve(&questions[0].id, ToolDecision::Accept).await.unwrap());
        (run.finish().await.unwrap().read().unwrap(), receipt.await.unwrap())
    });
    assert_eq!(result.text, "Ok.");
    assert_eq!(receipt, Receipt::Delivered { turn_index: 2 });
}

/// An agent that calls a tool which never ends, and then says this.
fn waiter(text: &'static str) -> AgentHandle {
    let build = move || {
        let wait = tool(spec("wait"), async |_| {
            pending::<()>().await;
            "never"
        });
        let answers = vec![scripted::calls([("c1", "wait", "{}")]), scripted::text(text)];
        Ok::<_, String>(agent(answers, vec![wait]))
    };
    spawn(build).unwrap()
}

#[test]
fn an_abort_ends_the_run_with_its_events() {
    let handle = waiter("never");
    let mut run = block_on(handle.prompt("Wait.")).unwrap();
    let result = block_on(async {
        while run.try_next().await.unwrap().unwrap().name() != "tool_execution_start" {}
        handle.abort("enough").await.unwrap();
        run.finish().await.unwrap().read().unwrap()
    });
    assert_eq!(result.stop_reason, RunStopReason::Aborted);
    assert_eq!(result.error.unwrap().to_string(), "enough");
}

#[test]
fn a_run_waits_for_a_slow_reader_and_an_abort_does_not() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = seen.clone();
    let options = SpawnOptions { waiting_events: 8, ..SpawnOptions::default() };
    let handle = options
        .spawn(move || {
            let agent = agent(vec![long(500)], Vec::new());
            agent.subscribe(move |_| {
                let _ = count.fetch_add(1, Ordering::SeqCst);
            });
            Ok::<_, String>(agent)
        })
        .unwrap();
    let mut run = block_on(handle.prompt("Go on.")).unwrap();
    // Between two commands the thread may go an event further, if it may go further at all.
    let stops_at = |events: usize| {
        while seen.load(Ordering::SeqCst) < events {
            block_on(handle.with(|_| ())).unwrap();
        }
        (0..20).for_each(|_| block_on(handle.with(|_| ())).unwrap());
        assert_eq!(seen.load(Ordering::SeqCst), events);
    };
    stops_at(8);
    block_on(run.try_next()).unwrap();
    block_on(run.try_next()).unwrap();
    stops_at(10);
    block_on(handle.abort("enough")).unwrap();
    // Nobody reads, and yet it ends.
    while block_on(handle.with(Agent::is_running)).unwrap() {}
    let rest: Vec<_> = block_on(run.by_ref().try_collect()).unwrap();
    assert_eq!(names(&rest).last(), Some(&"agent_end"));
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().stop_reason, RunStopReason::Aborted);
}

#[test]
fn a_run_that_nobody_holds_is_stopped_and_the_next_may_begin() {
    let handle = waiter("Here.");
    let mut run = block_on(handle.prompt("Wait.")).unwrap();
    block_on(async { while run.try_next().await.unwrap().unwrap().name() != "tool_execution_start" {} });
    drop(run);
    let messages = block_on(handle.messages()).unwrap().read().unwrap();
    assert_eq!(messages.len(), 3, "the call has its result: {messages:?}");
    let run = block_on(handle.prompt("Again.")).unwrap();
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "Here.");
}

#[test]
fn the_thread_ends_when_nobody_is_left() {
    struct Tells(mpsc::Sender<()>);
    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (ends, ended) = mpsc::channel();
    let handle = spawn(move || {
        let tells = Tells(ends);
        let agent = agent(vec![scripted::text("Hello!")], Vec::new());
        agent.subscribe(move |_| {
            let _ = &tells;
        });
        Ok::<_, String>(agent)
    })
    .unwrap();
    let run = block_on(handle.prompt("Hi")).unwrap();
    drop(handle);
    // A run alone keeps it.
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "Hello!");
    ended.recv().unwrap();
}

#[test]
fn an_agent_that_cannot_be_built_is_the_error_of_everything() {
    let handle = spawn(|| Err::<Agent, _>("OPENAI_API_KEY is not set")).unwrap();
    let expected = "the agent could not be built: OPENAI_API_KEY is not set";
    assert_eq!(block_on(handle.prompt("Hi")).err().unwrap().to_string(), expected);
    assert_eq!(block_on(handle.checkpoint()).unwrap_err().to_string(), expected);
    assert_eq!(block_on(handle.steer("Hi")).unwrap_err().to_string(), expected);
}

#[test]
fn a_panic_while_the_agent_is_built_is_an_error() {
    let handle = spawn(|| -> Result<Agent, String> { panic!("no such model") }).unwrap();
    let error = block_on(handle.prompt("Hi")).err().unwrap();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (ErrorKind::Internal, "the agent's thread panicked: no such model")
    );
}

#[test]
fn a_panic_in_the_middle_of_a_run_is_the_last_item_of_its_stream() {
    let fuel = Arc::new(AtomicUsize::new(1));
    let burned = fuel.clone();
    let executor = move |mut agent: LocalBoxFuture<'static, ()>| {
        block_on(poll_fn(|cx| {
            assert!(fuel.load(Ordering::SeqCst) > 0, "out of fuel");
            agent.poll_unpin(cx)
        }));
    };
    let options = SpawnOptions { executor: Some(Box::new(executor)), ..SpawnOptions::default() };
    let build = move || {
        let burns = tool(spec("burn"), move |_| {
            burned.store(0, Ordering::SeqCst);
            poll_fn(|cx| {
                cx.waker().wake_by_ref();
                Poll::<&str>::Pending
            })
        });
        Ok::<_, String>(agent(vec![scripted::calls([("c1", "burn", "{}")])], vec![burns]))
    };
    let handle = options.spawn(build).unwrap();
    let run = block_on(handle.prompt("Hi")).unwrap();
    let items: Vec<_> = block_on(run.collect());
    let (last, events) = items.split_last().unwrap();
    assert!(events.iter().all(Result::is_ok));
    assert_eq!(last.as_ref().unwrap_err().to_string(), "the agent's thread panicked: out of fuel");
    assert_eq!(
        block_on(handle.messages()).unwrap_err().to_string(),
        "the agent's thread panicked: out of fuel"
    );
}

#[test]
fn a_closure_that_panics_fails_alone() {
    let agent = speaker(&["Hello!"]);
    let error = block_on(agent.with(|_| -> u8 { panic!("of its own") })).unwrap_err();
    assert_eq!(error.to_string(), "the closure panicked: of its own");
    let run = block_on(agent.prompt("Hi")).unwrap();
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "Hello!");
}

#[test]
fn a_tool_that_panics_is_a_result() {
    let handle = spawn(|| {
        let answers = vec![scripted::calls([("c1", "bad", "{}")]), scripted::text("I see.")];
        let bad = tool(spec("bad"), async |_| -> String { panic!("of the tool") });
        Ok::<_, String>(agent(answers, vec![bad]))
    })
    .unwrap();
    let run = block_on(handle.prompt("Hi")).unwrap();
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "I see.");
}

#[test]
fn more_commands_than_may_wait_are_refused() {
    let (goes, go) = mpsc::channel::<()>();
    let options = SpawnOptions { waiting_commands: 2, ..SpawnOptions::default() };
    let handle = options
        .spawn(move || {
            let _ = go.recv();
            Ok::<_, String>(agent(Vec::new(), Vec::new()))
        })
        .unwrap();
    let (one, two, three) = (handle.messages(), handle.messages(), handle.messages());
    let refused = block_on(three).unwrap_err();
    assert_eq!(refused.code(), ErrorKind::Throttled);
    assert_eq!(refused.to_string(), "2 commands wait for the agent's thread already; wait for their replies");
    goes.send(()).unwrap();
    block_on(one).unwrap();
    block_on(two).unwrap();
    block_on(handle.messages()).unwrap();
}

#[test]
fn a_checkpoint_of_an_active_run_goes_on_in_another_thread() {
    let build = || {
        let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec("delete") };
        (
            vec![tool(spec, async |_| "it is gone")],
            scripted::calls([("c1", "delete", "{}")]),
            scripted::text("Done."),
        )
    };
    let first = spawn(move || {
        let (tools, calls, _) = build();
        Ok::<_, String>(agent(vec![calls], tools))
    })
    .unwrap();
    let mut run = block_on(first.prompt("Tidy up.")).unwrap();
    block_on(async { while run.try_next().await.unwrap().unwrap().name() != "tool_approval_requested" {} });
    let stored = block_on(first.checkpoint()).unwrap();
    drop((run, first));

    let second = spawn(move || {
        let (tools, _, done) = build();
        let mut config = AgentLoopConfig::new(scripted::model([done]), scripted::clock());
        config.set_tools(tools).unwrap();
        Agent::restore(config, &CheckpointEnvelopeV1::decode(stored.as_bytes()).unwrap())
    })
    .unwrap();
    let run = block_on(second.go_on()).unwrap();
    assert!(block_on(second.resolve_tool("c1", ToolDecision::Accept)).unwrap());
    assert_eq!(block_on(run.finish()).unwrap().read().unwrap().text, "Done.");
    // Between two runs, too.
    let rest = block_on(second.checkpoint()).unwrap();
    assert_eq!(CheckpointEnvelopeV1::decode(rest.as_bytes()).unwrap().messages.len(), 4);
}

#[test]
fn what_agent_offers_and_the_handle_does_not_is_reached_by_start() {
    let agent = speaker(&["Hello!"]);
    let run = agent.start(|agent, who| {
        let who = AgentRunContext { run_id: "run-7".into(), ..who };
        agent.prompt(vec!["a".into(), AgentMessage::from("b".to_owned())], who, CancelToken::new())
    });
    let result = block_on(block_on(run).unwrap().finish()).unwrap().read().unwrap();
    assert_eq!((&*result.run_id, result.text.as_str()), ("run-7", "Hello!"));
    let refused = agent.start(|agent, who| agent.prompt(Vec::new(), who, CancelToken::new()));
    assert_eq!(block_on(refused).err().unwrap().to_string(), "a prompt needs at least one message");
}

#[test]
fn an_executor_that_lets_go_is_an_error() {
    let options = SpawnOptions { executor: Some(Box::new(drop)), ..SpawnOptions::default() };
    let handle = options.spawn(|| Ok::<_, String>(agent(Vec::new(), Vec::new()))).unwrap();
    let error = block_on(handle.prompt("Hi")).err().unwrap();
    assert_eq!(error.to_string(), "the agent's thread is over: its executor has let go of it");
    assert!(block_on(handle.checkpoint()).is_err());
}
