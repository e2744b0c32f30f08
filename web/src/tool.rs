//! JavaScript functions as tools.

use std::cell::Cell;
use std::rc::Rc;

use futures::future::LocalBoxFuture;
use js_sys::{Function, Symbol};
use serde::{Deserialize, Serialize};
use turnwheel::json::RawJson;
use turnwheel::state::SessionState;
use turnwheel::tool::{ApprovalNeed, Updates};
use turnwheel::{AgentTool, ToolContext, ToolOutcome, ToolSpec};
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use crate::flaw::flaw_of;
use crate::{abort, call, output, thrown, value};

/// A tool whose work is done by a JavaScript function, synchronous or not: `execute(arguments, context)`.
///
/// `arguments` is the object that the model gave, after approval and policies. `context` has `callId`, `toolName`,
/// `runId`, `sessionId`; `signal`, an `AbortSignal` that is aborted when nobody wants the result any more;
/// `update(value)`, which reports progress as a `tool_execution_update` event; and `state` with `get(key)`,
/// `set(key, value)` and `delete(key)`, which the tools of a session share.
///
/// What the function returns becomes the result: a string is the text that the model is shown; another JSON value is
/// shown as its JSON; `undefined` is an empty text; `{ content, details?, isError? }` has blocks of its own;
/// `{ transfer: { to, reason? } }` hands the conversation over. What it throws, or what its promise is rejected with,
/// becomes an error result, and so does a value that is no JSON (a `Map`, a cycle, a function).
/// `Symbol.for("turnwheel.cancelled")` ends the run as if it had been aborted.
pub struct JsTool {
    spec: ToolSpec,
    /// `this` of the function.
    owner: JsValue,
    execute: Function,
}

/// A definition as the npm package takes them. Numbers and flags may be missing or `undefined`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: String,
    #[serde(default, with = "serde_wasm_bindgen::preserve")]
    parameters: JsValue,
    #[serde(default, with = "serde_wasm_bindgen::preserve")]
    requires_approval: JsValue,
    timeout_ms: Option<u64>,
    max_result_bytes: Option<u64>,
    idempotent: Option<bool>,
    fatal: Option<bool>,
    priority: Option<i32>,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    execute: Function,
}

impl JsTool {
    /// Makes a tool of a definition written in JavaScript: `{ name, description, parameters?, execute }`, and
    /// optionally `requiresApproval` (a flag, or a function of the arguments), `timeoutMs`, `maxResultBytes`,
    /// `idempotent`, `fatal`, `priority`, as in the npm package. `parameters` is JSON Schema.
    ///
    /// # Errors
    /// If a member is missing or of the wrong kind. The text names it.
    pub fn new(definition: JsValue) -> Result<Self, String> {
        let read: Result<Definition, _> = serde_wasm_bindgen::from_value(definition.clone());
        let read = read.map_err(|error| format!("this is no tool: {error}"))?;
        let parameters = match value::raw_of(&read.parameters) {
            Ok(None) => RawJson::parse(r#"{"type":"object","properties":{}}"#)
                .unwrap_or_else(|_| RawJson::empty_object()),
            Ok(Some(schema)) => schema,
            Err(error) => return Err(format!("the parameters of tool `{}` are no JSON: {error}", read.name)),
        };
        let mut spec = ToolSpec::new(&read.name, &read.description, parameters);
        spec.requires_approval = approval_need(&definition, &read.requires_approval);
        spec.timeout_ms = read.timeout_ms;
        spec.max_result_bytes = read.max_result_bytes;
        spec.idempotent = read.idempotent.unwrap_or_default();
        spec.fatal = read.fatal.unwrap_or_default();
        spec.priority = read.priority.unwrap_or_default();
        Ok(JsTool { spec, owner: definition, execute: read.execute })
    }

    /// Makes a tool of a description written in Rust and a function.
    pub fn from_function(spec: ToolSpec, execute: Function) -> Self {
        JsTool { spec, owner: JsValue::UNDEFINED, execute }
    }
}

fn approval_need(owner: &JsValue, given: &JsValue) -> ApprovalNeed {
    let (owner, Some(asked)) = (owner.clone(), given.dyn_ref::<Function>().cloned()) else {
        return if given.is_truthy() { ApprovalNeed::Always } else { ApprovalNeed::Never };
    };
    ApprovalNeed::Depends(Rc::new(move |arguments, _| {
        let answer = asked.call1(&owner, &value::plain(&arguments.to_value()));
        // Anything but a plain no counts as yes.
        answer.map(|answer| answer != JsValue::FALSE).map_err(|error| thrown::text_of(&error))
    }))
}

impl AgentTool for JsTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn execute(&self, context: ToolContext) -> LocalBoxFuture<'static, ToolOutcome> {
        let (owner, execute) = (self.owner.clone(), self.execute.clone());
        Box::pin(async move {
            let call = Live(Rc::new(Cell::new(true)));
            let arguments = value::plain(&context.arguments.to_value());
            let returned = match context_object(&context, &call.0) {
                Ok(context) => call::call(&execute, &owner, &arguments, &context).await,
                Err(error) => Err(error),
            };
            match returned {
                Ok(cancelled) if cancelled == *Symbol::for_("turnwheel.cancelled") => ToolOutcome::Cancelled,
                Ok(output) => ToolOutcome::Completed(output::result_of(&output)),
                Err(error) => ToolOutcome::Failed(thrown::text_of(&error)),
            }
        })
    }
}

/// Whether a call still runs: after it, what its function does with its context has no effect.
struct Live(Rc<Cell<bool>>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ContextObject<'a> {
    call_id: &'a str,
    tool_name: &'a str,
    run_id: &'a str,
    session_id: &'a str,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    signal: AbortSignal,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    update: JsValue,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    state: JsValue,
}

#[derive(Serialize)]
struct StateObject {
    #[serde(with = "serde_wasm_bindgen::preserve")]
    get: JsValue,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    set: JsValue,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    delete: JsValue,
}

fn context_object(context: &ToolContext, live: &Rc<Cell<bool>>) -> Result<JsValue, JsValue> {
    call::object(&ContextObject {
        call_id: &context.call_id,
        tool_name: &context.tool_name,
        run_id: &context.run_id,
        session_id: &context.session_id,
        signal: abort::signal_of(&context.cancel)?,
        update: update_function(&context.updates),
        state: state_object(&context.state, live)?,
    })
}

// The functions below belong to JavaScript, which may keep them for longer than the call: its garbage collector frees
// them.

fn update_function(updates: &Updates) -> JsValue {
    let updates = updates.clone();
    let update = move |partial: JsValue| match flaw_of(&partial, "the update") {
        Some(flaw) => updates.text(&format!("the tool's update is no JSON: {flaw}")),
        None => match value::raw_of(&partial) {
            Ok(update) => updates.send(update.unwrap_or_else(|| RawJson::string(""))),
            Err(error) => updates.text(&format!("the tool's update is no JSON: {error}")),
        },
    };
    Closure::<dyn Fn(JsValue)>::new(update).into_js_value()
}

fn state_object(state: &SessionState, live: &Rc<Cell<bool>>) -> Result<JsValue, JsValue> {
    let (read, written, deleted) = (state.clone(), state.clone(), state.clone());
    let (may_set, may_delete) = (live.clone(), live.clone());
    let get = move |key: String| read.get(&key).map_or(JsValue::UNDEFINED, |found| value::plain(&found));
    let set = move |key: String, given: JsValue| -> Result<(), JsValue> {
        let refused =
            |flaw: String| js_sys::Error::new(&format!("the session state takes JSON only: {flaw}"));
        if let Some(flaw) = flaw_of(&given, "the value") {
            return Err(refused(flaw).into());
        }
        let json = value::raw_of(&given).map_err(refused)?;
        match json {
            _ if !may_set.get() => {}
            Some(json) => written.set(&key, json.to_value()),
            None => written.delete(&key),
        }
        Ok(())
    };
    let delete = move |key: String| {
        if may_delete.get() {
            deleted.delete(&key);
        }
    };
    call::object(&StateObject {
        get: Closure::<dyn Fn(String) -> JsValue>::new(get).into_js_value(),
        set: Closure::<dyn Fn(String, JsValue) -> Result<(), JsValue>>::new(set).into_js_value(),
        delete: Closure::<dyn Fn(String)>::new(delete).into_js_value(),
    })
}
