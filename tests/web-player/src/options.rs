//! The options of the npm package's `Agent`, as far as scenarios use them.

use std::cell::Cell;
use std::rc::Rc;

use js_sys::{Array, Function, Reflect};
use turnwheel::approval::ApprovalOptions;
use turnwheel::config::{
    AgentLoopConfig, ArgumentValidator, CacheHints, Model, QueueMode, Rules, ToolExecutionPolicy,
};
use turnwheel::json::{FromJson, ToJson, Value};
use turnwheel::retry::{RetryConfig, RetryStrategy};
use turnwheel::tool::AgentTool;
use turnwheel_web::{JsApprover, JsModel, JsTool};
use wasm_bindgen::prelude::*;

use crate::ports::{Keys, Queues, Transformer};
use crate::rules::{self, HostRetry};

/// How many messages, from the start, the provider has cached.
pub(crate) type Cached = Rc<Cell<usize>>;

/// The members of the options: functions, and everything else as JSON.
struct Options<'a>(&'a JsValue);

impl Options<'_> {
    fn get(&self, name: &str) -> JsValue {
        Reflect::get(self.0, &name.into()).unwrap_or(JsValue::UNDEFINED)
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.get(name).dyn_into().ok()
    }

    fn functions(&self, name: &str) -> Vec<Function> {
        self.list(name).filter_map(|member| member.dyn_into().ok()).collect()
    }

    fn list(&self, name: &str) -> impl Iterator<Item = JsValue> {
        Array::from(&self.get(name)).to_vec().into_iter()
    }

    /// Null if it is no JSON.
    fn value(&self, name: &str) -> Value {
        crate::read(&self.get(name)).unwrap_or_default()
    }
}

pub(crate) fn config(options: &JsValue) -> Result<AgentLoopConfig, JsError> {
    let options = Options(options);
    let models: Vec<Model> = std::iter::once(options.get("model"))
        .chain(options.list("fallback"))
        .map(|given| model(&given))
        .collect();
    let first = models.first().cloned().ok_or_else(|| JsError::new("there is no model"))?;
    let mut config = turnwheel_web::config(first);
    config.set_models(models);
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    for given in options.list("tools") {
        tools.push(Rc::new(JsTool::new(given).map_err(|text| JsError::new(&text))?));
    }
    // The loop itself takes any tools; scenarios have two with one name.
    config.offer_tools(tools);
    let cached = Cached::default();
    set_values(&mut config.rules, &options, &cached)?;
    set_functions(&mut config, &options, &cached);
    Ok(config)
}

fn model(given: &JsValue) -> Model {
    let options = Options(given);
    let text = |name: &str| options.get(name).as_string().unwrap_or_default();
    let stream = options.function("streamFn").unwrap_or_default();
    let mut model = Model::new(&text("provider"), &text("id"), Rc::new(JsModel::new(stream)));
    model.supports_tools = options.get("supportsTools") != JsValue::FALSE;
    model
}

fn set_values(rules: &mut Rules, options: &Options<'_>, cached: &Cached) -> Result<(), JsError> {
    rules.system_prompt = options.get("systemPrompt").as_string().unwrap_or_default().into();
    rules.max_turns = None;
    rules.include_requests = options.get("includeRequests").is_truthy();
    rules.approval =
        ApprovalOptions::from_json(&options.value("approval")).map_err(|text| JsError::new(&text))?;
    rules.steering.delivery = delivery(&options.value("steering"));
    rules.follow_up = delivery(&options.value("followUp"));
    rules.tool_execution = tool_execution(&options.get("toolExecution"));
    rules.retry = retry(options);
    if let Value::Object(state) = options.value("sessionState") {
        rules.session_state = state;
    }
    let output = options.value("output");
    rules.output = (!output.is_null()).then(|| output.to_raw());
    rules.output_retries = number(&options.value("outputRetries")).unwrap_or(rules.output_retries);
    let transfer = options.value("transfer");
    rules.agent_name = transfer.text_at("agentName").unwrap_or_default().into();
    rules.transfer_chain =
        transfer.list_at("chain").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    rules.max_transfer_depth = transfer
        .number_at("maxDepth")
        .and_then(|depth| usize::try_from(depth).ok())
        .unwrap_or(rules.max_transfer_depth);
    let cache = options.value("cache");
    rules.cache = (!cache.is_null()).then(|| {
        let whole = |name: &str| cache.number_at(name).unwrap_or_default();
        let intervals = u32::try_from(whole("intervals")).unwrap_or(1);
        CacheHints {
            prefix: cached.clone(),
            ..CacheHints::new(whole("ttlMs"), whole("minTokens"), intervals)
        }
    });
    rules.validator = Some(validator());
    Ok(())
}

fn set_functions(config: &mut AgentLoopConfig, options: &Options<'_>, cached: &Cached) {
    let rules = &mut config.rules;
    if let Some(transform) = options.function("transformContext") {
        rules.transformers.push(Rc::new(rules::transform(transform, cached.clone())));
    }
    if let Some(prompt) = options.function("dynamicSystemPrompt") {
        rules.dynamic_system_prompt =
            Some(Rc::new(move |_| Ok(crate::ask(&prompt, &[])?.as_str().unwrap_or_default().to_owned())));
    }
    let policies = options.get("policies");
    let policies = Options(&policies);
    for policy in policies.functions("preTurn") {
        rules.pre_turn.push(Rc::new(rules::on_context(policy)));
    }
    for policy in policies.functions("preDispatch") {
        rules.pre_dispatch.push(Rc::new(rules::on_call(policy)));
    }
    for policy in policies.functions("postTurn") {
        rules.post_turn.push(Rc::new(rules::on_turn(policy)));
    }
    for policy in policies.functions("postLoop") {
        rules.post_loop.push(Rc::new(rules::on_context(policy)));
    }
    if let Some(approve) = options.function("approveTool") {
        config.set_approver(Rc::new(JsApprover::new(approve)));
    }
    if let Some(key) = options.function("getApiKey") {
        config.ports.keys = Some(Rc::new(Keys(key)));
    }
    if let Some(transform) = options.function("asyncTransformContext") {
        config.ports.transformer = Some(Rc::new(Transformer { transform, cached: cached.clone() }));
    }
    let queues = options.function("getSteeringMessages").zip(options.function("getFollowUpMessages"));
    if let Some((steering, follow_up)) = queues {
        config.set_message_provider(Rc::new(Queues { steering, follow_up }));
    }
}

fn delivery(value: &Value) -> QueueMode {
    if value.text_at("delivery") == Some("one_at_a_time") { QueueMode::OneAtATime } else { QueueMode::All }
}

fn number(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|number| u32::try_from(number).ok())
}

fn tool_execution(given: &JsValue) -> ToolExecutionPolicy {
    if let Some(groups) = given.dyn_ref::<Function>() {
        return ToolExecutionPolicy::Custom(Rc::new(rules::groups(groups.clone())));
    }
    match given.as_string().as_deref() {
        Some("sequential") => ToolExecutionPolicy::Sequential,
        Some("priority") => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Concurrent,
    }
}

fn retry(options: &Options<'_>) -> Rc<dyn RetryStrategy> {
    if let Some(judge) = options.function("retry") {
        return Rc::new(HostRetry(judge));
    }
    let (given, default) = (options.value("retry"), RetryConfig::default());
    let multiplier =
        Reflect::get(&options.get("retry"), &"multiplier".into()).ok().and_then(|value| value.as_f64());
    Rc::new(RetryConfig {
        max_attempts: given.get("maxAttempts").and_then(number).unwrap_or(default.max_attempts),
        initial_backoff_ms: given.number_at("initialBackoffMs").unwrap_or(default.initial_backoff_ms),
        max_backoff_ms: given.number_at("maxBackoffMs").unwrap_or(default.max_backoff_ms),
        multiplier: multiplier.unwrap_or(default.multiplier),
        jitter: given.flag_at("jitter").unwrap_or(default.jitter),
        ..default
    })
}

/// Checks arguments with the part of JSON Schema that scenarios use.
fn validator() -> Rc<ArgumentValidator> {
    Rc::new(|spec, call, _| {
        let value = |json: &str| serde_json::from_str(json).unwrap_or_default();
        let mut wrong = Vec::new();
        let (schema, arguments) = (value(spec.schema.parameters.as_str()), value(call.arguments.as_str()));
        rig::schema::violations(&schema, &arguments, "arguments", &mut wrong);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    })
}
