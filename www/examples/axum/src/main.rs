//! A server with a chat for each id. The README has its routes.

mod agent;

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Json, Path, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Router, serve};
use futures::{Stream, TryStreamExt};
use serde::Deserialize;
use tokio::net::TcpListener;
use turnwheel::approval::ToolDecision;
use turnwheel::error::ErrorKind;
use turnwheel::spawn;
use turnwheel::spawn::{AgentHandle, SpawnError};

/// How many chats there may be, each with a thread.
const MOST_CHATS: usize = 100;

/// The chats by their ids.
#[derive(Clone, Default)]
struct Chats(Arc<Mutex<HashMap<String, AgentHandle>>>);

impl Chats {
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<String, AgentHandle>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The chat with this id, which begins if there is none.
    fn open(&self, id: String) -> Result<AgentHandle, Refusal> {
        self.with(|chats| {
            if let Some(chat) = chats.get(&id) {
                return Ok(chat.clone());
            }
            if chats.len() >= MOST_CHATS {
                return Err(Refusal(StatusCode::SERVICE_UNAVAILABLE, "there are too many chats".to_owned()));
            }
            let chat = spawn(agent::build)?;
            chats.insert(id, chat.clone());
            Ok(chat)
        })
    }

    fn find(&self, id: &str) -> Result<AgentHandle, Refusal> {
        let none = || Refusal(StatusCode::NOT_FOUND, format!("there is no chat {id}"));
        self.with(|chats| chats.get(id).cloned()).ok_or_else(none)
    }
}

/// Why a request is refused.
struct Refusal(StatusCode, String);

impl From<SpawnError> for Refusal {
    fn from(error: SpawnError) -> Self {
        let status = match error.code() {
            ErrorKind::Misuse => StatusCode::CONFLICT,
            ErrorKind::Throttled => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Refusal(status, error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

/// Starts a run, and streams its events. A reader that goes away stops it.
async fn prompt(
    State(chats): State<Chats>,
    Path(id): Path<String>,
    text: String,
) -> Result<Sse<impl Stream<Item = Result<Event, SpawnError>>>, Refusal> {
    let run = chats.open(id)?.prompt(text).await?;
    let events = run.map_ok(|event| Event::default().data(event.into_string()));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Interrupts the run. The answer comes when the model reads the message.
async fn steer(State(chats): State<Chats>, Path(id): Path<String>, text: String) -> Result<String, Refusal> {
    let receipt = chats.find(&id)?.steer(text).await?;
    Ok(format!("{receipt:?}\n"))
}

async fn abort(State(chats): State<Chats>, Path(id): Path<String>, reason: String) -> Result<(), Refusal> {
    Ok(chats.find(&id)?.abort(reason).await?)
}

/// What a person says about a call.
#[derive(Deserialize)]
struct Said {
    approved: bool,
    reason: Option<String>,
}

async fn answer(
    State(chats): State<Chats>,
    Path((id, call_id)): Path<(String, String)>,
    Json(Said { approved, reason }): Json<Said>,
) -> Result<(), Refusal> {
    let decision = if approved { ToolDecision::Accept } else { ToolDecision::Reject { reason } };
    match chats.find(&id)?.resolve_tool(call_id, decision).await? {
        true => Ok(()),
        false => Err(Refusal(StatusCode::CONFLICT, "it is not asked any more".to_owned())),
    }
}

/// Ends a chat: its thread ends with its last handle.
async fn end(State(chats): State<Chats>, Path(id): Path<String>) {
    chats.with(|chats| chats.remove(&id));
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new()
        .route("/chats/{id}", post(prompt).delete(end))
        .route("/chats/{id}/steer", post(steer))
        .route("/chats/{id}/abort", post(abort))
        .route("/chats/{id}/answers/{call_id}", post(answer))
        .with_state(Chats::default());
    let port = env::var("PORT").unwrap_or_else(|_| "8787".to_owned());
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(serve(listener, app).await?)
}
