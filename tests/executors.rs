//! The loop on any executor that polls it on one thread: that of `futures`, one that is made by hand, several one after the
//! other. A run is a future like any other: it spawns nothing, and counts on nothing but its waker.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, ready};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, ThreadId};

use futures::StreamExt;
use futures::executor::{LocalPool, block_on};
use futures::future::LocalBoxFuture;
use futures::task::LocalSpawnExt;
use rig::clock::Clock;
use rig::host::{answers, brief, calls, config, context, spec, text, tool};
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::AgentLoopConfig;
use turnwheel::event::AgentEvent;
use turnwheel::policy::{PostTurn, Verdict};
use turnwheel::tool::{AgentTool, AgentToolResult, ToolOutcome};

/// What a run has noted, in order.
type Notes = Rc<RefCell<Vec<String>>>;

/// Gives way to the other tasks of its executor, this many times.
struct Yields(u32);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A tool that yields a given number of times, and notes its beginning and its end.
fn patient(name: &'static str, times: u32, notes: &Notes) -> Rc<dyn AgentTool> {
    let notes = notes.clone();
    tool(spec(name), move |_| {
        notes.borrow_mut().push(format!("{name} begins"));
        let notes = notes.clone();
        async move {
            Yields(times).await;
            notes.borrow_mut().push(format!("{name} ends"));
            ToolOutcome::Completed(AgentToolResult::text(name))
        }
    })
}

const CALLS: [(&str, &str, &str); 3] = [("1", "slow", "{}"), ("2", "quick", "{}"), ("3", "middle", "{}")];

/// An agent whose model calls three tools at once, and then answers.
fn agent(notes: &Notes) -> Agent {
    Agent::new(three_tools(notes), Vec::new())
}

fn three_tools(notes: &Notes) -> AgentLoopConfig {
    let tools = [("slow", 9), ("quick", 1), ("middle", 5)].map(|(name, times)| patient(name, times, notes));
    config(&Clock::default(), answers(vec![calls(&CALLS), text("so")]), tools.to_vec())
}

/// The history that every run of [`agent`] must have.
const HISTORY: [&str; 6] =
    ["user: go", "assistant: [1 2 3]", "1: slow", "2: quick", "3: middle", "assistant: so"];
/// All tools begin before one of them ends, and the quickest ends first.
const OVERLAP: [&str; 6] =
    ["slow begins", "quick begins", "middle begins", "quick ends", "middle ends", "slow ends"];

fn history(agent: &Agent) -> Vec<String> {
    agent.messages().iter().map(brief).collect()
}

fn run(agent: &Agent) -> impl Future<Output = ()> + use<> {
    let run = agent.prompt(vec!["go".into()], context(), CancelToken::new()).unwrap();
    async { drop(run.finish().await) }
}

#[test]
fn futures_of_one_task_run_concurrently_on_the_local_pool() {
    let (mut pool, notes) = (LocalPool::new(), Notes::default());
    let agent = agent(&notes);
    pool.spawner().spawn_local(run(&agent)).unwrap();
    pool.run();
    assert_eq!(*notes.borrow(), OVERLAP);
    assert_eq!(history(&agent), HISTORY);
}

#[test]
fn two_agents_share_an_executor_and_neither_waits_for_the_other() {
    let (mut pool, notes) = (LocalPool::new(), Notes::default());
    let agents = [agent(&notes), agent(&notes)];
    for agent in &agents {
        pool.spawner().spawn_local(run(agent)).unwrap();
    }
    pool.run();
    for agent in &agents {
        assert_eq!(history(agent), HISTORY);
    }
    // Both have begun before one of them ends anything.
    let begun = notes.borrow().iter().take_while(|note| note.ends_with("begins")).count();
    assert_eq!(begun, 6);
}

/// A task of [`Hands`]: what wakes it puts it into the queue.
struct Ticket {
    number: usize,
    queue: Arc<Mutex<VecDeque<usize>>>,
    is_queued: AtomicBool,
}

impl Wake for Ticket {
    fn wake(self: Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::Relaxed) {
            self.queue.lock().unwrap().push_back(self.number);
        }
    }
}

/// An executor in thirty lines. It polls a task that was woken, with a waker of its own each time, and nothing else.
#[derive(Default)]
struct Hands {
    queue: Arc<Mutex<VecDeque<usize>>>,
    tasks: Vec<Option<LocalBoxFuture<'static, ()>>>,
    polls: usize,
}

impl Hands {
    fn spawn(&mut self, task: impl Future<Output = ()> + 'static) {
        self.queue.lock().unwrap().push_back(self.tasks.len());
        self.tasks.push(Some(Box::pin(task)));
    }

    /// Polls until nobody has been woken. Returns whether all tasks are over.
    fn run(&mut self) -> bool {
        loop {
            let Some(number) = self.queue.lock().unwrap().pop_front() else { break };
            let ticket = Ticket { number, queue: self.queue.clone(), is_queued: AtomicBool::new(false) };
            let waker = Waker::from(Arc::new(ticket));
            let Some(slot) = self.tasks.get_mut(number) else { continue };
            let Some(task) = slot else { continue };
            self.polls += 1;
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                *slot = None;
            }
        }
        self.tasks.iter().all(Option::is_none)
    }
}

#[test]
fn an_executor_made_by_hand_is_enough() {
    let (mut hands, notes) = (Hands::default(), Notes::default());
    let agents = [agent(&notes), agent(&notes)];
    for agent in &agents {
        hands.spawn(run(agent));
    }
    assert!(hands.run(), "a run was not woken");
    for agent in &agents {
        assert_eq!(history(agent), HISTORY);
    }
}

#[test]
fn a_run_that_waits_is_not_polled_until_it_is_woken() {
    let (notes, (answer, answered)) = (Notes::default(), futures::channel::oneshot::channel::<&str>());
    let answered = RefCell::new(Some(answered));
    let waiting = tool(spec("wait"), move |_| {
        let answered = answered.borrow_mut().take().unwrap();
        async move { ToolOutcome::Completed(AgentToolResult::text(answered.await.unwrap())) }
    });
    let mut config = three_tools(&notes);
    config.set_models(vec![answers(vec![calls(&[("1", "wait", "{}")]), text("so")])]);
    config.set_tools(vec![waiting]).unwrap();
    let agent = Agent::new(config, Vec::new());
    let mut hands = Hands::default();
    hands.spawn(run(&agent));
    assert!(!hands.run());
    let polls = hands.polls;
    assert!(!hands.run());
    assert_eq!(hands.polls, polls);
    answer.send("late").unwrap();
    assert!(hands.run());
    assert_eq!(history(&agent), ["user: go", "assistant: [1]", "1: late", "assistant: so"]);
}

#[test]
fn a_run_moves_from_one_executor_to_another_in_its_middle() {
    let notes = Notes::default();
    let agent = agent(&notes);
    let mut run = agent.prompt(vec!["go".into()], context(), CancelToken::new()).unwrap();
    // Its first waker is gone when the tools end.
    let begun = block_on(
        run.by_ref()
            .take_while(|event| {
                ready(!matches!(event, AgentEvent::ToolExecutionStart { call_id, .. } if call_id == "3"))
            })
            .count(),
    );
    assert!(begun > 0);
    let mut hands = Hands::default();
    hands.spawn(async { drop(run.finish().await) });
    assert!(hands.run(), "the waker of the second executor was not woken");
    assert_eq!(history(&agent), HISTORY);
}

#[test]
fn everything_happens_on_the_thread_that_polls() {
    let threads: Rc<RefCell<Vec<(&str, ThreadId)>>> = Rc::default();
    let note = |what: &'static str| {
        let threads = threads.clone();
        move || threads.borrow_mut().push((what, thread::current().id()))
    };
    let (in_tool, in_policy, in_model, in_subscriber) =
        (note("tool"), note("policy"), note("model"), note("subscriber"));
    let called = Cell::new(false);
    let model = rig::host::model("m", move |_, _| {
        in_model();
        let answer = if called.replace(true) { text("so") } else { calls(&[("1", "t", "{}")]) };
        futures::stream::iter(answer).boxed_local()
    });
    let seen = tool(spec("t"), move |_| {
        in_tool();
        ready(ToolOutcome::Completed(AgentToolResult::text("t")))
    });
    let mut config = config(&Clock::default(), model, vec![seen]);
    config.rules.post_turn.push(Rc::new(move |_: &PostTurn<'_>| {
        in_policy();
        Ok(Verdict::Continue)
    }));
    let agent = Agent::new(config, Vec::new());
    agent.subscribe(move |_| in_subscriber());
    block_on(run(&agent));
    let here = thread::current().id();
    let threads = threads.borrow();
    assert!(threads.iter().all(|(_, thread)| *thread == here));
    for what in ["tool", "policy", "model", "subscriber"] {
        assert!(threads.iter().any(|(noted, _)| *noted == what), "{what} did not run");
    }
}
