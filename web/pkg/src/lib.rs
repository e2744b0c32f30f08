//! An agent on `turnwheel-web` as an npm package that the tool wasm-pack makes: `fetch` streams the model, calls of tools
//! are futures that run at once, and events reach a JavaScript function. It is a thin layer over the crate and shows how such a
//! package is made; the package `turnwheel` has the whole API, and another boundary.

use std::rc::Rc;

use js_sys::{Function, Promise};
use serde::Deserialize;
use turnwheel::wires::{WireOptions, wire};
use turnwheel::{Agent, AgentLoopConfig, AgentTool, CancelToken, HttpModel};
use turnwheel_web::{Clock, Fetch, JsTool, cancel_by, config, event_to_js, new_context, spawn, to_js};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::future_to_promise;
use web_sys::AbortSignal;

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = r#"
export interface Options {
  /** The model's id. */
  model: string;
  /** The root of the API, as in `https://api.example.com/v1`. By default that of the wire's provider. */
  baseUrl?: string;
  /** `openai-chat` (the default), `openai-responses`, `anthropic` or `gemini`. */
  wire?: string;
  /** Everybody who opens a page can read it. */
  apiKey?: string;
  systemPrompt?: string;
  tools?: Tool[];
}

export interface Tool {
  name: string;
  description: string;
  /** JSON Schema. */
  parameters?: object;
  execute(args: any, context: { callId: string; signal: AbortSignal; update(value: unknown): void }): unknown;
}

export type Event = { type: string; runId: string } & Record<string, any>;
export type Result = { stopReason: string; messages: any[] } & Record<string, any>;
"#;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    model: String,
    base_url: Option<String>,
    wire: Option<String>,
    api_key: Option<String>,
    system_prompt: Option<String>,
    #[serde(default, with = "serde_wasm_bindgen::preserve")]
    tools: JsValue,
}

/// An agent: it keeps the history of its runs.
#[wasm_bindgen(js_name = Agent)]
pub struct PackedAgent {
    agent: Agent,
}

#[wasm_bindgen(js_class = Agent)]
impl PackedAgent {
    /// Makes an agent of its options. Throws if one is missing or of the wrong kind, and names it.
    #[wasm_bindgen(constructor)]
    pub fn new(
        #[wasm_bindgen(unchecked_param_type = "Options")] options: JsValue,
    ) -> Result<PackedAgent, JsError> {
        let options: Options = serde_wasm_bindgen::from_value(options)
            .map_err(|error| JsError::new(&format!("the options of an agent: {error}")))?;
        Ok(PackedAgent { agent: Agent::new(config_of(options)?, Vec::new()) })
    }

    /// Runs the loop on a text, and calls `onEvent` with every event, in order. The promise has the result; a run that fails
    /// ends with the stop reason `error` and does not reject it. `signal` stops the run.
    #[wasm_bindgen(unchecked_return_type = "Promise<Result>")]
    pub fn prompt(
        &self,
        text: &str,
        #[wasm_bindgen(js_name = onEvent, unchecked_param_type = "(event: Event) => void")]
        on_event: Function,
        signal: Option<AbortSignal>,
    ) -> Result<Promise, JsError> {
        let cancel = signal.as_ref().map_or_else(CancelToken::new, cancel_by);
        let run = self.agent.prompt(vec![text.into()], new_context(), cancel)?;
        let run_id = run.context().run_id.clone();
        let result = spawn(run, move |event| {
            // A listener that throws does not end the run.
            let _ = on_event.call1(&JsValue::UNDEFINED, &event_to_js(&event, &run_id));
        });
        Ok(future_to_promise(async move { Ok(to_js(&result.await)) }))
    }

    /// Posts a message that the run reads before it asks the model again.
    pub fn steer(&self, text: &str) {
        drop(self.agent.steer(text.into()));
    }

    /// The history.
    #[wasm_bindgen(getter, unchecked_return_type = "any[]")]
    pub fn messages(&self) -> JsValue {
        to_js(&self.agent.messages())
    }
}

fn config_of(options: Options) -> Result<AgentLoopConfig, JsError> {
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    for definition in definitions(&options.tools)? {
        tools.push(Rc::new(JsTool::new(definition).map_err(|text| JsError::new(&text))?));
    }
    let wire_options =
        WireOptions { base_url: options.base_url.unwrap_or_default(), ..WireOptions::default() };
    let wire = wire(options.wire.as_deref().unwrap_or("openai-chat"), wire_options);
    let mut model =
        HttpModel::new(wire.map_err(|text| JsError::new(&text))?, Rc::new(Fetch::new()), Rc::new(Clock));
    if let Some(key) = options.api_key {
        model = model.with_key(&key);
    }
    let mut config = config(model.model(&options.model));
    config.rules.system_prompt = options.system_prompt.unwrap_or_default().into();
    config.set_tools(tools)?;
    Ok(config)
}

/// Returns the members of the list of tools; without a list there are none.
fn definitions(tools: &JsValue) -> Result<Vec<JsValue>, JsError> {
    if tools.is_undefined() {
        return Ok(Vec::new());
    }
    let list = tools.dyn_ref::<js_sys::Array>();
    list.map(js_sys::Array::to_vec).ok_or_else(|| JsError::new("`tools` of an agent must be an array"))
}
