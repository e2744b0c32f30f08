//! Journals that move: a random run of the loop goes on in turns in Rust and in the package, each time for one more record. At the end
//! its journal is replayed by both, and gives the same.

use std::cell::{Cell, RefCell};
use std::future::pending;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use anyhow::{Context as _, Result, bail, ensure};
use futures::Stream;
use futures::StreamExt;
use futures::stream;
use rig::dice::Dice;
use rig::host::{calls, model, spec, tool};
use serde_json::{Value, json};
use turnwheel::agent::subagent::SubAgent;
use turnwheel::approval::ToolDecision;
use turnwheel::cancel::CancelToken;
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::json::{RawJson, ToJson};
use turnwheel::message::LlmMessage;
use turnwheel::ports::{AgentRunContext, ApprovalRequest, Approver, Step};
use turnwheel::stream::{AssistantMessageEvent, ModelRequest};
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome};
use turnwheel::{Agent, AgentLoopConfig, scripted};

/// More records than any of these runs has.
const MOST: usize = 200;

/// A life: what was stored after it, and how it ended, if the run is over.
struct Life {
    records: Vec<(String, Value)>,
    /// The stop reason and the history.
    ended: Option<(String, Value)>,
    /// The calls that began and must not begin twice.
    begun: Vec<String>,
}

/// Plays so many runs. What failed is written to the folder.
pub fn exchange(number: u64, dir: &Path) -> Result<bool> {
    std::fs::create_dir_all(dir)?;
    let mut package = Package::start()?;
    let (mut failed, mut records) = (0, 0);
    for seed in 0..number {
        match exchange_one(seed, &mut package) {
            Ok(stored) => records += stored,
            Err(why) => {
                failed += 1;
                println!("FAILED journal {seed}: {why:#}");
                std::fs::write(dir.join(format!("{seed}.json")), world(seed).to_string())?;
            }
        }
    }
    println!("{records} records, each followed by a move");
    println!("{} passed, {failed} failed", number - failed);
    Ok(failed == 0)
}

fn exchange_one(seed: u64, package: &mut Package) -> Result<usize> {
    let world = world(seed);
    let mut live = |at: usize, records: Vec<(String, Value)>, more: usize| {
        if at.is_multiple_of(2) {
            Ok(live_natively(&world, records, more))
        } else {
            package.live(&world, records, more)
        }
    };
    let (mut records, mut begun) = (Vec::new(), Vec::new());
    // Which one begins is a matter of the seed.
    let first = usize::try_from(seed % 2)?;
    for at in 0..MOST {
        let before = records.len();
        let life = live(first + at, records, 1)?;
        records = life.records;
        begun.extend(life.begun);
        if life.ended.is_none() {
            ensure!(records.len() > before, "the life {at} stored nothing and ended nothing");
            continue;
        }
        let count = records.len();
        let mut ends = Vec::new();
        for which in 0..2 {
            let replay = live(which, records.clone(), 0)?;
            ensure!(replay.records.len() == count, "a replay has stored more");
            ensure!(replay.begun.is_empty(), "a replay has begun {:?}", replay.begun);
            ends.push(replay.ended.context("a replay has not come to its end")?);
        }
        ensure!(ends[0] == ends[1], "replays differ:\n{}\n{}", ends[0].1, ends[1].1);
        begun.sort();
        let twice = begun.windows(2).find(|pair| pair[0] == pair[1]);
        ensure!(twice.is_none(), "{twice:?} has begun twice");
        return Ok(count);
    }
    bail!("it never ends")
}

/// What is asked in each turn, and what else there is.
fn world(seed: u64) -> Value {
    let dice = Dice::new(seed);
    let name = || ["pay", "look", "research", "look"][dice.below(4)];
    let turn = || (0..=dice.below(3)).map(|_| name()).collect::<Vec<_>>();
    let turns: Vec<_> = (0..=dice.below(3)).map(|_| turn()).collect();
    let inside: Vec<_> = (0..=dice.below(2)).map(|_| ["pay", "look"][dice.below(2)]).collect();
    json!({ "turns": turns, "inside": inside, "approver": dice.chance(40), "fallback": dice.chance(30), "id": format!("run-{seed}") })
}

// ---- the package

struct Package {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Package {
    fn start() -> Result<Package> {
        let mut node = Command::new("node");
        node.arg(crate::tests().join("js/journals.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = node.spawn().context("cannot start node")?;
        let to = child.stdin.take().context("node has no input")?;
        let from = BufReader::new(child.stdout.take().context("node has no output")?);
        Ok(Package { child, to, from })
    }

    fn live(&mut self, world: &Value, records: Vec<(String, Value)>, more: usize) -> Result<Life> {
        writeln!(self.to, "{}", json!({ "world": world, "records": records, "more": more }))?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let (records, ended, begun) =
            serde_json::from_str(&line).with_context(|| format!("the player said {line:?}"))?;
        Ok(Life { records, ended, begun })
    }
}

impl Drop for Package {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

// ---- Rust

/// Approves every call but each second one.
struct EveryOther;

impl Approver for EveryOther {
    fn decide(
        &self,
        request: ApprovalRequest,
        _: CancelToken,
    ) -> futures::future::LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let decision = if request.call_id.ends_with('1') {
            ToolDecision::Reject { reason: Some("no".to_owned()) }
        } else {
            ToolDecision::Accept
        };
        Box::pin(async { Ok(decision) })
    }
}

fn live_natively(world: &Value, records: Vec<(String, Value)>, more: usize) -> Life {
    let stored = Rc::new(RefCell::new(records));
    let most = stored.borrow().len() + more;
    let begun = Rc::new(RefCell::new(Vec::new()));
    let mut config = config(&Rc::new(world.clone()), 0, &begun);
    let own = stored.clone();
    config.ports.steps = Some(Rc::new(move |step: Step| {
        let stored = own.clone();
        async move {
            let known = stored
                .borrow()
                .iter()
                .find(|(name, _)| name == step.name())
                .map(|(_, record)| record.to_string());
            if let Some(record) = known {
                return Ok(RawJson::parse(&record).unwrap_or_else(|_| RawJson::null()));
            }
            if stored.borrow().len() >= most {
                return pending().await;
            }
            let record = step.work().await;
            if stored.borrow().len() >= most {
                return pending().await;
            }
            let json = serde_json::from_str(record.as_str()).unwrap_or_default();
            stored.borrow_mut().push((step.name().to_owned(), json));
            Ok(record)
        }
    }));
    let agent = Agent::new(config, Vec::new());
    let who = AgentRunContext::new(world["id"].as_str().unwrap_or_default(), "session");
    let mut ended = None;
    if let Ok(mut run) = agent.prompt(vec!["Go on.".into()], who, CancelToken::new())
        && until_it_waits(&mut run)
        && let Some(result) = run.result()
    {
        let reason = serde_json::from_str(&result.stop_reason.to_json()).unwrap_or_default();
        let messages = serde_json::from_str(&agent.messages().to_json()).unwrap_or_default();
        ended = Some((reason, messages));
    }
    Life { records: stored.take(), ended, begun: begun.take() }
}

/// Polls a run as long as something wakes it. Returns whether it came to its end.
fn until_it_waits(run: &mut (impl Stream + Unpin)) -> bool {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(flag.clone());
    while flag.0.swap(false, Ordering::Relaxed) {
        loop {
            match run.poll_next_unpin(&mut Context::from_waker(&waker)) {
                Poll::Ready(Some(_)) => {}
                Poll::Ready(None) => return true,
                Poll::Pending => break,
            }
        }
    }
    false
}

fn config(world: &Rc<Value>, level: usize, begun: &Rc<RefCell<Vec<String>>>) -> AgentLoopConfig {
    let models: Vec<_> = (0..2)
        .map(|which| {
            let world = world.clone();
            model(&format!("model-{which}"), move |request, _| {
                stream::iter(answer(&world, level, which, &request)).boxed_local()
            })
        })
        .collect();
    let mut config = AgentLoopConfig::new(models[0].clone(), scripted::clock());
    config.set_models(models);
    let mut tools: Vec<Rc<dyn AgentTool>> = vec![pay(begun, level == 0 && world["approver"] == true), look()];
    if level == 0 {
        let (world, begun) = (world.clone(), begun.clone());
        tools.push(Rc::new(SubAgent::new("research", "", move || config_inside(&world, &begun))));
    }
    drop(config.set_tools(tools));
    if level == 0 && world["approver"] == true {
        config.set_approver(Rc::new(EveryOther));
    }
    config
}

fn config_inside(world: &Rc<Value>, begun: &Rc<RefCell<Vec<String>>>) -> AgentLoopConfig {
    config(world, 1, begun)
}

fn pay(begun: &Rc<RefCell<Vec<String>>>, needs_approval: bool) -> Rc<dyn AgentTool> {
    let begun = begun.clone();
    let mut spec = spec("pay");
    if needs_approval {
        spec.requires_approval = ApprovalNeed::Always;
    }
    tool(spec, move |context: ToolContext| {
        begun.borrow_mut().push(format!("{}/{}", context.run_id, context.call_id));
        let paid = context.state.get("paid").and_then(|paid| paid.as_u64()).unwrap_or_default() + 1;
        context.state.set("paid", paid.into());
        async { ToolOutcome::Completed(AgentToolResult::text("paid")) }
    })
}

fn look() -> Rc<dyn AgentTool> {
    let mut spec = spec("look");
    spec.idempotent = true;
    let seen = Rc::new(Cell::new(0));
    tool(spec, move |_| {
        seen.set(seen.get() + 1);
        async { ToolOutcome::Completed(AgentToolResult::text("looked")) }
    })
}

/// What the model says: it goes by what it is shown, so that it may be asked again.
fn answer(world: &Value, level: usize, which: usize, request: &ModelRequest) -> scripted::ScriptedAnswer {
    let is_answer = |message: &&LlmMessage| matches!(message, LlmMessage::Assistant(_));
    let turn = request.messages.iter().filter(is_answer).count();
    if which == 0 && level == 0 && turn == 1 && world["fallback"] == true {
        let error = ErrorInfo::new(ErrorKind::Auth, "no more of this model");
        return vec![AssistantMessageEvent::Error(error)];
    }
    let names = match level {
        0 => world["turns"][turn].as_array(),
        _ => world["inside"].as_array().filter(|_| turn == 0),
    };
    let Some(names) = names else { return scripted::text("done") };
    let asked: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(i, name)| (format!("c{turn}-{i}"), name.as_str().unwrap_or_default().to_owned()))
        .collect();
    let asked: Vec<_> =
        asked.iter().map(|(id, name)| (id.as_str(), name.as_str(), r#"{"prompt":"look"}"#)).collect();
    calls(&asked)
}
