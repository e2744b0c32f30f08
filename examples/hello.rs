//! An agent that looks at the clock, with a scripted model: `cargo run --example hello`.

use turnwheel::{
    AgentEvent, AgentLoopConfig, AgentRunContext, CancelToken, ToolSpec, agent_loop, scripted, tool,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let time = ToolSpec::parse("time", "Tells the time", r#"{ "type": "object" }"#)?;
    let time = tool(time, async |_| "noon");
    let model = scripted::model([scripted::calls([("a", "time", "{}")]), scripted::text("It is noon.")]);
    let mut config = AgentLoopConfig::new(model, scripted::clock());
    config.set_tools(vec![time])?;

    let who = AgentRunContext::new("run-1", "session-1");
    let mut run = agent_loop(vec!["What time is it?".into()], config, who, CancelToken::new());
    futures::executor::block_on(async {
        while let Some(event) = run.next().await {
            match &event {
                AgentEvent::ToolExecutionStart { tool_name, .. } => println!("[{tool_name}]"),
                event => print!("{}", event.added_text().unwrap_or_default()),
            }
        }
    });
    println!();
    Ok(())
}

#[test]
fn it_says_hello() {
    assert!(main().is_ok());
}
