//! An agent on `turnwheel-web` with the options of the npm package, as far as scenarios use them: the players of
//! tests/js give both the same JavaScript models, tools, approvers and policies, and compare what comes out. Its
//! JavaScript half is tests/js/rig/web.mjs.

mod options;
mod ports;
mod rules;

use js_sys::{Function, Promise, Reflect};
use turnwheel::json::{FromJson, ObjectWriter, Value};
use turnwheel::{Agent, AgentMessage, AgentRunContext, AgentStream, CancelToken};
use turnwheel_web::{event_to_js, from_js, spawn, to_js, uuid};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;

/// An agent, whose options are those of the npm package.
#[wasm_bindgen]
pub struct Player {
    agent: Agent,
}

#[wasm_bindgen]
impl Player {
    /// Makes an agent of its options and its history.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &JsValue, messages: &JsValue) -> Result<Player, JsError> {
        let messages: Vec<AgentMessage> = from_js(messages).map_err(|text| JsError::new(&text))?;
        Ok(Player { agent: Agent::new(options::config(options)?, messages) })
    }

    /// Starts a run with these messages. Returns a promise of its result.
    pub fn prompt(&self, run_id: &str, messages: &JsValue, on_event: Function) -> Result<Promise, JsError> {
        let messages: Vec<AgentMessage> = from_js(messages).map_err(|text| JsError::new(&text))?;
        let context = AgentRunContext::new(run_id, &uuid());
        Ok(play(self.agent.prompt(messages, context, CancelToken::new())?, on_event))
    }

    /// Continues from the history. Returns a promise of the result.
    #[wasm_bindgen(js_name = continueRun)]
    pub fn continue_run(&self, run_id: &str, on_event: Function) -> Result<Promise, JsError> {
        let context = AgentRunContext::new(run_id, &uuid());
        Ok(play(self.agent.continue_run(context, CancelToken::new())?, on_event))
    }

    /// Calls the function with every event of every run. If it throws, the other listeners are still called.
    pub fn subscribe(&self, listener: Function) {
        self.agent.subscribe(move |event| {
            let _ = listener.call1(&JsValue::UNDEFINED, &to_js(event));
        });
    }

    /// Posts a message that interrupts the run.
    pub fn steer(&self, text: &str) {
        drop(self.agent.steer(text.into()));
    }

    /// Posts a message that is read when the run would end.
    #[wasm_bindgen(js_name = followUp)]
    pub fn follow_up(&self, text: &str) {
        drop(self.agent.follow_up(text.into()));
    }

    /// Stops the run.
    pub fn abort(&self, reason: &str) {
        self.agent.abort(reason);
    }

    /// Clears the history and the queues.
    pub fn reset(&self) {
        self.agent.reset();
    }

    /// Forgets the schema of structured answers.
    #[wasm_bindgen(js_name = clearOutput)]
    pub fn clear_output(&self) {
        self.agent.configure(|config| config.rules.output = None);
    }

    /// The history.
    #[wasm_bindgen(getter)]
    pub fn messages(&self) -> JsValue {
        to_js(&self.agent.messages())
    }
}

/// Plays a run in the background, as a page would.
fn play(run: AgentStream, on_event: Function) -> Promise {
    let run_id = run.context().run_id.clone();
    let result = spawn(run, move |event| {
        let _ = on_event.call1(&JsValue::UNDEFINED, &event_to_js(&event, &run_id));
    });
    future_to_promise(async move { Ok(to_js(&result.await)) })
}

/// The text of what JavaScript threw.
fn thrown(error: &JsValue) -> String {
    let message = Reflect::get(error, &"message".into()).ok().and_then(|message| message.as_string());
    message.unwrap_or_else(|| format!("{error:?}"))
}

/// Calls a function, and reads its answer as JSON; null if there is none.
fn ask(function: &Function, arguments: &[&JsValue]) -> Result<Value, String> {
    let list: js_sys::Array = arguments.iter().copied().collect();
    read(&function.apply(&JsValue::UNDEFINED, &list).map_err(|error| thrown(&error))?)
}

/// Any JSON.
struct Json(Value);

impl FromJson for Json {
    fn from_json(value: &Value) -> Result<Self, String> {
        Ok(Json(value.clone()))
    }
}

/// Reads any JSON; `undefined` counts as null.
fn read(value: &JsValue) -> Result<Value, String> {
    if value.is_undefined() { Ok(Value::Null) } else { from_js(value).map(|Json(value)| value) }
}

/// Writes one object, and returns it as a JavaScript value.
fn object(write: impl FnOnce(&mut ObjectWriter<'_>)) -> JsValue {
    let mut json = String::new();
    let mut object = ObjectWriter::new(&mut json);
    write(&mut object);
    object.end();
    Value::parse(&json).map_or(JsValue::NULL, |value| to_js(&value))
}

/// A count as a member.
fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
