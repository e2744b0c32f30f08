//! An agent in the terminal: calls OpenAI, or any server at `OPENAI_BASE_URL` that speaks the same API.
//!
//!     OPENAI_API_KEY=… cargo run -- "How many letters has Llanfairpwllgwyngyll?"
//!     OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_MODEL=qwen3 cargo run -- "…"

use std::env;
use std::error::Error;
use std::io::{Write, stdout};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::LocalBoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use turnwheel::http::{HttpResponse, Transport};
use turnwheel::ports::Timer;
use turnwheel::wires::{HttpRequest, WireOptions, wire};
use turnwheel::{
    AgentEvent, AgentLoopConfig, AgentRunContext, AgentTool, CancelToken, HttpModel, ToolSpec, agent_loop, tool,
};

/// Tokio's clock.
struct Clock;

impl Timer for Clock {
    fn now(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        tokio::time::sleep(Duration::from_millis(ms)).boxed_local()
    }
}

/// Sends requests with reqwest. The loop has its own time limits: see `rules.timeouts` below.
fn transport() -> impl Transport {
    let client = reqwest::Client::new();
    move |request: HttpRequest| {
        let post = request
            .headers
            .iter()
            .fold(client.post(&request.url), |post, (name, value)| post.header(name, value));
        let answer = post.body(request.body).send();
        async move {
            let answer = answer.await.map_err(error_text)?;
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Ok(HttpResponse {
                status: answer.status().as_u16(),
                headers: answer
                    .headers()
                    .iter()
                    .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
                    .collect(),
                body: answer.bytes_stream().map_ok(Vec::from).map_err(error_text).boxed_local(),
            })
        }
    }
}

/// The text of an error with its causes: the outermost error only says that a request failed.
fn error_text(error: reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

/// A tool that counts letters: models are bad at this.
fn letters() -> Result<Rc<dyn AgentTool>, Box<dyn Error>> {
    let parameters = r#"{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}"#;
    let spec = ToolSpec::parse("letters", "Counts the letters of a word", parameters)?;
    Ok(tool(spec, async |call| {
        let arguments = call.arguments.to_value();
        let word = arguments.text_at("word").ok_or("`word` must be a text")?;
        Ok::<_, &str>(word.chars().count().to_string())
    }))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let question = env::args().nth(1).ok_or("ask something: cargo run -- \"…\"")?;
    let base_url = env::var("OPENAI_BASE_URL").unwrap_or_default();
    let clock = Rc::new(Clock);
    let wire = wire("openai-chat", WireOptions { base_url, ..WireOptions::default() })?;
    let mut model = HttpModel::new(wire, Rc::new(transport()), clock.clone());
    if let Ok(key) = env::var("OPENAI_API_KEY") {
        model = model.with_key(&key);
    }
    let id = env::var("OPENAI_MODEL").unwrap_or_else(|_| "gpt-5-mini".to_owned());
    let mut config = AgentLoopConfig::new(model.model(&id), clock);
    config.set_tools(vec![letters()?])?;
    config.rules.timeouts.chunk = Some(60_000);

    let context = AgentRunContext::new("run-1", "session-1");
    let mut run = agent_loop(vec![question.as_str().into()], config, context, CancelToken::new());
    while let Some(event) = run.next().await {
        if let AgentEvent::ToolExecutionStart { tool_name, .. } = &event {
            println!("[{tool_name}]");
        }
        if let Some(text) = event.added_text() {
            print!("{text}");
            stdout().flush()?;
        }
    }
    println!();
    let result = run.result().ok_or("it did not end")?;
    match &result.error {
        Some(error) => Err(error.to_string().into()),
        None => Ok(()),
    }
}
