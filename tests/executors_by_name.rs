//! The executors of docs/executors.md, each with the code of that page, word for word.

#![allow(clippy::unwrap_used, reason = "a panic here is a test that fails")]

use std::error::Error;
use std::future::poll_fn;
use std::task::Poll;

use turnwheel::{Agent, AgentLoopConfig, AgentRunContext, CancelToken, scripted, tool};

type Tested = Result<(), Box<dyn Error>>;

/// An agent that runs a tool, which gives way to others, and then says this.
fn agent(says: &str) -> Agent {
    let spec = turnwheel::ToolSpec::parse("wait", "Waits", r#"{"type":"object"}"#).unwrap();
    let answers = [scripted::calls([("c1", "wait", "{}")]), scripted::text(says)];
    let mut config = AgentLoopConfig::new(scripted::model(answers), scripted::clock());
    let wait = tool(spec, async |_| {
        for _ in 0..3 {
            give_way().await;
        }
        "waited"
    });
    config.set_tools(vec![wait]).unwrap();
    Agent::new(config, Vec::new())
}

/// Lets the executor poll its other tasks first.
async fn give_way() {
    let mut has_given_way = false;
    poll_fn(|cx| {
        if has_given_way {
            return Poll::Ready(());
        }
        has_given_way = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn the_executor_of_futures() -> Tested {
    let agent = agent("Hello!");
    let run = agent.prompt(vec!["Hi".into()], AgentRunContext::random(), CancelToken::new())?;
    let result = futures::executor::block_on(run.finish());
    assert_eq!(result.text, "Hello!");
    Ok(())
}

#[test]
fn tokio_with_a_local_set() -> Tested {
    let (kitchen, garden) = (agent("Dinner."), agent("Roses."));
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    for agent in [kitchen.clone(), garden.clone()] {
        let run = agent.prompt(vec!["Hi".into()], AgentRunContext::random(), CancelToken::new())?;
        local.spawn_local(run.finish());
    }
    tokio.block_on(local); // until both are over
    assert_eq!((kitchen.messages().len(), garden.messages().len()), (4, 4));
    Ok(())
}

#[test]
fn smol_with_its_local_executor() -> Tested {
    let agent = agent("Hello!");
    let local = async_executor::LocalExecutor::new(); // smol::LocalExecutor
    let run = agent.prompt(vec!["Hi".into()], AgentRunContext::random(), CancelToken::new())?;
    let task = local.spawn(run.finish());
    let result = futures::executor::block_on(local.run(task)); // smol::block_on
    assert_eq!(result.text, "Hello!");
    Ok(())
}

#[cfg(feature = "spawn")]
#[test]
fn a_thread_of_its_own_and_a_server_with_many() -> Tested {
    use futures::TryStreamExt;
    use turnwheel::spawn;
    use turnwheel::spawn::SpawnError;

    // `spawn` asks for a closure that is `Send`; the agent that it makes is not.
    let agent = spawn(|| Ok::<_, String>(agent("Hello!")))?;

    // A task of any executor, on any thread.
    let handler = async move {
        let mut run = agent.prompt("Hi").await?;
        while let Some(event) = run.try_next().await? {
            println!("data: {event}\n");
        }
        let result = run.finish().await?.read()?;
        Ok::<_, SpawnError>(result.text)
    };
    let server = std::thread::spawn(move || futures::executor::block_on(handler));
    assert_eq!(server.join().unwrap()?, "Hello!");
    Ok(())
}

#[cfg(feature = "spawn")]
#[test]
fn tools_that_use_tokio_on_a_thread_of_their_own() -> Tested {
    use turnwheel::spawn::SpawnOptions;

    let server = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let build = || {
        let spec = turnwheel::ToolSpec::parse("wait", "Waits", r#"{"type":"object"}"#).unwrap();
        let answers = [scripted::calls([("c1", "wait", "{}")]), scripted::text("Slept.")];
        let mut config = AgentLoopConfig::new(scripted::model(answers), scripted::clock());
        let wait = tool(spec, async |_| {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            "slept"
        });
        config.set_tools(vec![wait]).unwrap();
        Ok::<_, String>(Agent::new(config, Vec::new()))
    };
    let agent = server.block_on(async {
        let tokio = tokio::runtime::Handle::current();
        let executor = Some(Box::new(move |agent| tokio.block_on(agent)) as turnwheel::spawn::Executor);
        SpawnOptions { executor, ..SpawnOptions::default() }.spawn(build)
    })?;
    let messages = server.block_on(async {
        let run = agent.prompt("Hi").await?;
        assert_eq!(run.finish().await?.read()?.text, "Slept.");
        agent.messages().await?.read()
    })?;
    assert_eq!(messages.len(), 4);
    Ok(())
}
