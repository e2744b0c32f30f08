//! The agent of a chat: its model, and a tool that asks first.

use std::env;
use std::error::Error;

use serde::Deserialize;
use turnwheel::reqwest::Client;
use turnwheel::tool::ApprovalNeed;
use turnwheel::wires::{WireOptions, wire};
use turnwheel::{Agent, AgentLoopConfig, ToolSpec, typed_tool};

#[derive(Deserialize)]
struct Note {
    note: String,
}

/// Makes the agent of a chat, on the thread of that chat.
pub fn build() -> Result<Agent, Box<dyn Error>> {
    let client = Client::new()?;
    let base_url = env::var("OPENAI_BASE_URL").unwrap_or_default();
    let model = client.over(wire("openai-chat", WireOptions { base_url, ..WireOptions::default() })?);
    let model = match env::var("OPENAI_API_KEY") {
        Ok(key) => model.with_key(&key),
        Err(_) => model, // a server on this machine needs none
    };
    let id = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5-mini".to_owned());

    let schema = r#"{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}"#;
    let spec = ToolSpec::parse("delete_note", "Deletes the note about something", schema)?;
    let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec };
    let delete = typed_tool(spec, async |Note { note }, _call| format!("The note about {note} is gone."));

    let mut config = AgentLoopConfig::new(model.model(&id), client.timer());
    config.rules.system_prompt = "You keep notes. You are brief.".into();
    config.rules.timeouts.chunk = Some(60_000);
    config.set_tools(vec![delete])?;
    Ok(Agent::new(config, Vec::new()))
}
