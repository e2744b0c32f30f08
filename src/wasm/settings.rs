//! The configuration of an agent, made of the plain settings that the facade gives: numbers, texts and the names of
//! the functions that the host has.

use std::cell::RefCell;
use std::rc::Rc;

use crate::approval::{ApprovalGate, ApprovalOptions};
use crate::config::{
    AgentLoopConfig, CacheHints, Delivery, InFlight, Model, Rules, SteeringRules, SteeringTime, Timeouts,
    ToolExecutionPolicy,
};
use crate::error::{AgentError, ErrorKind};
use crate::json::{FromJson, ToJson, Value};
use crate::ports::{HookStages, StreamFn};
use crate::price::Price;
use crate::provider::{self, Limits, Wire, WireOptions};
use crate::retry::RetryConfig;
use crate::stream::StreamOptions;
use crate::summarize::Summarizer;
use crate::tool::{AgentTool, ApprovalNeed, ToolSpec};

use super::http::HttpModel;
use super::ports::{
    JsApprover, JsCompaction, JsHooks, JsKeys, JsMessages, JsModel, JsTimer, JsTool, JsTransformer,
};
use super::rules::{self, Cached, Host};

/// Makes the configuration. `settings.has` names the functions of the host.
pub(super) fn config(settings: &Value, host: &Host, cached: &Cached) -> Result<AgentLoopConfig, AgentError> {
    let names: Vec<&str> = list(settings, "has").iter().filter_map(Value::as_str).collect();
    let has = |name: &str| names.contains(&name);
    let mut models = Vec::new();
    for told in list(settings, "models") {
        models.push(model(told)?);
    }
    let Some(first) = models.first().cloned() else {
        return Err(misuse("there is no model; set `model`, for example openai(\"gpt-5-mini\", { apiKey })"));
    };
    let mut config =
        AgentLoopConfig::new(first, Rc::new(JsTimer { host: host.clone(), own_sleep: has("sleep") }));
    config.set_models(models);
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    for told in list(settings, "tools") {
        tools.push(Rc::new(JsTool(tool(told, host)?)));
    }
    // The facade has looked at them.
    config.offer_tools(tools);
    plain(&mut config, settings)?;
    config.rules.cache = settings.get("cache").map(|told| cache_hints(told, cached));
    functions(&mut config, settings, host, cached, &has);
    Ok(config)
}

fn plain(config: &mut AgentLoopConfig, settings: &Value) -> Result<(), AgentError> {
    let rules = &mut config.rules;
    let text = |key: &str| settings.get(key).and_then(Value::as_str);
    let whole = |key: &str| settings.get(key).and_then(Value::as_u64);
    rules.system_prompt = text("systemPrompt").unwrap_or_default().into();
    if let Some(options) = settings.get("streamOptions") {
        rules.stream_options = Rc::new(StreamOptions::from_json(options).map_err(misuse)?);
    }
    rules.max_turns = whole("maxTurns").map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    if let Some(retry) = settings.get("retry").filter(|retry| retry.as_object().is_some()) {
        rules.retry = Rc::new(retry_config(retry));
    }
    if let Some(approval) = settings.get("approval") {
        rules.approval = ApprovalOptions::from_json(approval).map_err(misuse)?;
    }
    rules.tool_execution = match text("toolExecution") {
        Some("sequential") => ToolExecutionPolicy::Sequential,
        Some("priority") => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Concurrent,
    };
    rules.max_concurrent_tools = whole("maxConcurrentTools").and_then(|most| usize::try_from(most).ok());
    rules.gate = if text("gate") == Some("prefix") { ApprovalGate::Prefix } else { ApprovalGate::Batch };
    let steering = settings.get("steering").unwrap_or(&Value::Null);
    let word = |key: &str| steering.get(key).and_then(Value::as_str);
    rules.steering = SteeringRules {
        when: if word("when") == Some("immediate") {
            SteeringTime::Immediate
        } else {
            SteeringTime::AfterTool
        },
        in_flight: if word("inFlight") == Some("finish") { InFlight::Finish } else { InFlight::Cancel },
        delivery: delivery(word("delivery")),
        before_first_call: word("atStart") == Some("before_first_call"),
    };
    rules.follow_up = delivery(settings.path(&["followUp", "delivery"]).and_then(Value::as_str));
    let limit = |key: &str| settings.path(&["timeouts", key]).and_then(Value::as_u64);
    rules.timeouts = Timeouts {
        first_chunk: limit("firstChunkMs"),
        chunk: limit("chunkMs"),
        tool: limit("toolMs"),
        total: limit("totalMs"),
    };
    if let Some(most) = whole("maxRecoveriesPerTurn") {
        rules.max_recoveries_per_turn = u32::try_from(most).unwrap_or(u32::MAX);
    }
    rules.include_requests = settings.get("includeRequests").and_then(Value::as_bool).unwrap_or(false);
    rules.output = settings.get("output").filter(|output| !output.is_null()).map(ToJson::to_raw);
    if let Some(Value::Object(state)) = settings.get("sessionState") {
        rules.session_state = state.clone();
    }
    if let Some(tries) = whole("outputRetries") {
        rules.output_retries = u32::try_from(tries).unwrap_or(u32::MAX);
    }
    if let Some(transfer) = settings.get("transfer") {
        transfers(rules, transfer);
    }
    Ok(())
}

/// `{ ttlMs?, minTokens?, intervals? }`; without them what providers commonly do: five minutes, 1,024 tokens.
fn cache_hints(told: &Value, cached: &Cached) -> CacheHints {
    let whole = |key: &str| told.get(key).and_then(Value::as_u64);
    let intervals = whole("intervals").map(|turns| u32::try_from(turns).unwrap_or(u32::MAX));
    CacheHints {
        ttl_ms: whole("ttlMs").unwrap_or(300_000),
        min_tokens: whole("minTokens").unwrap_or(1_024),
        intervals: intervals.unwrap_or(1),
        prefix: cached.clone(),
    }
}

/// `{ agentName?, chain?, maxDepth? }`
fn transfers(rules: &mut Rules, told: &Value) {
    rules.agent_name = told.get("agentName").and_then(Value::as_str).unwrap_or_default().into();
    let names = list(told, "chain").iter().filter_map(Value::as_str);
    rules.transfer_chain = names.map(str::to_owned).collect();
    let depth = told.get("maxDepth").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
    rules.max_transfer_depth = depth.unwrap_or(rules.max_transfer_depth);
}

fn functions(
    config: &mut AgentLoopConfig,
    settings: &Value,
    host: &Host,
    cached: &Cached,
    has: &dyn Fn(&str) -> bool,
) {
    rules::install(&mut config.rules, host, cached, has);
    let pre_dispatch = settings.get("preDispatch").and_then(Value::as_u64);
    rules::install_pre_dispatch(&mut config.rules, host, pre_dispatch.unwrap_or(0));
    config.rules.validator = Some(Rc::new(rules::validate(host.clone())));
    if has("toolExecution") {
        config.rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(rules::partition(host.clone())));
    }
    if has("getApiKey") {
        config.ports.keys = Some(Rc::new(JsKeys));
    }
    let (steering, follow_up) = (has("getSteeringMessages"), has("getFollowUpMessages"));
    if steering || follow_up {
        config.set_message_provider(Rc::new(JsMessages { host: host.clone(), steering, follow_up }));
    }
    if has("asyncTransformContext") {
        config.ports.transformer = Some(Rc::new(JsTransformer { cached: cached.clone() }));
    }
    if has("compaction") {
        config.ports.compaction = Some(Rc::new(JsCompaction));
    }
    if has("summarize")
        && let Some(engine) = Summarizer::of(config)
    {
        config.ports.compaction = Some(Rc::new(engine));
    }
    if has("approveTool") {
        config.set_approver(Rc::new(JsApprover));
    }
    let hooks = list(settings, "hooks");
    let stage = |name: &str| hooks.iter().any(|hook| hook.as_str() == Some(name));
    let stages = HookStages {
        before_inference: stage("beforeInference"),
        after_inference: stage("afterInference"),
        before_tool_execution: stage("beforeToolExecution"),
        after_tool_execution: stage("afterToolExecution"),
        on_error: stage("onError"),
    };
    if stages != HookStages::default() {
        config.set_hooks(vec![Rc::new(JsHooks(stages))]);
    }
}

fn delivery(word: Option<&str>) -> Delivery {
    if word == Some("one_at_a_time") { Delivery::OneAtATime } else { Delivery::All }
}

fn retry_config(told: &Value) -> RetryConfig {
    let stock = RetryConfig::default();
    let whole = |key: &str, otherwise: u64| told.get(key).and_then(Value::as_u64).unwrap_or(otherwise);
    let flag = |key: &str, otherwise: bool| told.get(key).and_then(Value::as_bool).unwrap_or(otherwise);
    let multiplier = told.get("multiplierThousandths").and_then(Value::as_u64);
    RetryConfig {
        max_attempts: u32::try_from(whole("maxAttempts", u64::from(stock.max_attempts))).unwrap_or(u32::MAX),
        initial_backoff_ms: whole("initialBackoffMs", stock.initial_backoff_ms),
        max_backoff_ms: whole("maxBackoffMs", stock.max_backoff_ms),
        multiplier: multiplier.map_or(stock.multiplier, |thousandths| {
            f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 1000.0
        }),
        jitter: flag("jitter", stock.jitter),
        retry_unknown: flag("retryUnknown", stock.retry_unknown),
        max_retry_delay_ms: whole("maxRetryDelayMs", stock.max_retry_delay_ms),
    }
}

/// `{ index, wire, id, provider, baseUrl?, headers?, compat?, apiKey?, price?, supportsTools?, dangerouslyAllowBrowser? }`;
/// without a wire the host streams.
fn model(told: &Value) -> Result<Model, AgentError> {
    let index = told.get("index").and_then(Value::as_u64).and_then(|index| u32::try_from(index).ok());
    let index = index.unwrap_or_default();
    let text = |key: &str| told.get(key).and_then(Value::as_str).unwrap_or_default();
    let (provider, stream_fn): (Rc<str>, Rc<dyn StreamFn>) = if text("wire").is_empty() {
        (text("provider").into(), Rc::new(JsModel { index }))
    } else {
        let wire = wire(told, text("wire"))?;
        let key = told.get("apiKey").and_then(Value::as_str).map(Rc::from);
        let price = told.get("price").and_then(Price::read);
        let name = wire.provider().into();
        (name, Rc::new(HttpModel { index, wire: Rc::new(RefCell::new(wire)), key, price }))
    };
    let supports_tools = told.get("supportsTools").and_then(Value::as_bool).unwrap_or(true);
    Ok(Model { provider, id: text("id").into(), supports_tools, stream_fn })
}

fn wire(told: &Value, name: &str) -> Result<Box<dyn Wire>, AgentError> {
    let headers = told.get("headers").and_then(Value::as_object).into_iter().flat_map(|h| h.iter());
    let headers = headers.filter_map(|(k, v)| Some((k.to_owned(), v.as_str()?.to_owned()))).collect();
    let base_url = told.get("baseUrl").and_then(Value::as_str).unwrap_or_default().to_owned();
    let compat = told.get("compat").cloned().unwrap_or_default();
    let dangerously_allow_browser =
        told.get("dangerouslyAllowBrowser").and_then(Value::as_bool).unwrap_or(false);
    let limit = |key: &str, usual: usize| {
        let told = told.path(&["limits", key]).and_then(Value::as_u64);
        told.and_then(|most| usize::try_from(most).ok()).unwrap_or(usual)
    };
    let usual = Limits::default();
    let limits = Limits {
        line: limit("line", usual.line),
        calls: limit("calls", usual.calls),
        arguments: limit("arguments", usual.arguments),
    };
    let options = WireOptions { base_url, headers, compat, dangerously_allow_browser, limits };
    provider::wire(name, options).map_err(misuse)
}

fn tool(told: &Value, host: &Host) -> Result<ToolSpec, AgentError> {
    let text = |key: &str| told.get(key).and_then(Value::as_str).unwrap_or_default();
    let whole = |key: &str| told.get(key).and_then(Value::as_u64);
    let flag = |key: &str| told.get(key).and_then(Value::as_bool).unwrap_or(false);
    let parameters = told.get("parameters").cloned().unwrap_or_default();
    let mut spec = ToolSpec::new(text("name"), text("description"), parameters.to_raw());
    spec.requires_approval = match told.get("requiresApproval") {
        Some(Value::Bool(true)) => ApprovalNeed::Always,
        Some(Value::String(_)) => {
            ApprovalNeed::Depends(Rc::new(rules::requires_approval(host.clone(), text("name").to_owned())))
        }
        _ => ApprovalNeed::Never,
    };
    spec.timeout_ms = whole("timeoutMs");
    spec.max_result_bytes = whole("maxResultBytes");
    spec.idempotent = flag("idempotent");
    spec.fatal = flag("fatal");
    let lowered = flag("lowPriority");
    let priority = i32::try_from(whole("priority").unwrap_or(0)).unwrap_or(i32::MAX);
    spec.priority = if lowered { -priority } else { priority };
    Ok(spec)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).unwrap_or_default()
}

fn misuse(text: impl Into<String>) -> AgentError {
    AgentError::new(ErrorKind::Misuse, text)
}
