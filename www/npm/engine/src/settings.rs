//! Builds the configuration of an agent from the plain settings of the facade: numbers, texts, and the
//! names of the functions that the host has.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use turnwheel::approval::{ApprovalGate, ApprovalOptions};
use turnwheel::budget::Budget;
use turnwheel::config::{
    AgentLoopConfig, CacheHints, EarlyDecisions, InFlight, Model, QueueMode, Rules, SteeringRules,
    SteeringTime, Timeouts, ToolExecutionPolicy, TurnOptions,
};
use turnwheel::error::{AgentError, ErrorKind};
use turnwheel::http::LastSecrets;
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::ports::{HookStages, StreamFn};
use turnwheel::price::Price;
use turnwheel::retry::RetryConfig;
use turnwheel::stream::{MAX_ANSWER, StreamOptions};
use turnwheel::summarize::Summarizer;
use turnwheel::tool::{AgentTool, ApprovalNeed, ToolSpec};
use turnwheel::wires::{self, Limits, Wire, WireOptions};

use super::http::FetchModel;
use super::ports::{
    JsApprover, JsCompaction, JsHooks, JsKeys, JsMessages, JsModel, JsTimer, JsTool, JsTransformer, JsTurns,
    Summaries,
};
use crate::protocol::{HookStage, OptionFunction, OptionPart};

use super::rules::{self, Cached, Host, ToolsVersion};

/// Models, each with the settings it was made from, and whether its secrets are known (see `known.rs`).
pub(super) type Models = RefCell<Vec<(String, Model, Cell<bool>)>>;

/// Builds the configuration. `settings.has` names the functions of the host. A model among the `known`
/// ones is reused, with what it has encoded.
pub(super) fn config(
    settings: &Value,
    host: &Host,
    cached: &Cached,
    known: &Rc<Models>,
) -> Result<AgentLoopConfig, AgentError> {
    let names = settings.list_at("has");
    let has = |name: &str| names.iter().any(|known| known.as_str() == Some(name));
    let before = known.take();
    let mut models = Vec::new();
    for entry in settings.list_at("models") {
        let json = entry.to_json();
        let model = match before.iter().find(|(known, ..)| *known == json) {
            Some((_, model, _)) => model.clone(),
            None => model(entry)?,
        };
        known.borrow_mut().push((json, model.clone(), Cell::default()));
        models.push(model);
    }
    let Some(first) = models.first().cloned() else {
        // The facade has checked this as well.
        return Err(misuse("there is no model; set `model`"));
    };
    let ids = host.clone();
    let mut config = AgentLoopConfig::with_ids(first, Rc::new(JsTimer), Rc::new(move || ids.id()));
    config.set_models(models);
    let number = u32_at(settings, "toolsVersion").unwrap_or_default();
    let version = Rc::new(ToolsVersion { host: host.clone(), number });
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    for entry in settings.list_at("tools") {
        tools.push(Rc::new(JsTool(tool(entry, &version)?)));
    }
    // The facade has checked them.
    config.offer_tools(tools);
    config.rules.validator = Some(Rc::new(rules::validate(version)));
    set_values(&mut config, settings)?;
    config.rules.cache = settings.get("cache").map(|entry| cache_hints(entry, cached));
    set_functions(&mut config, settings, host, cached, &has);
    #[cfg(feature = "server")]
    if let Some(steps) = settings.get("steps") {
        config.ports.steps = Some(Rc::new(crate::steps::JsSteps::of(steps)));
    }
    if has(OptionFunction::PrepareTurn.as_str()) {
        config.set_turn_preparer(Rc::new(JsTurns { models: known.clone() }));
    }
    Ok(config)
}

/// How many models an agent remembers, half of them the first ones.
const MOST_MODELS: usize = 64;

/// Reads what holds for a run or a turn: `{ model?, streamOptions?, activeTools?, systemPrompt? }`.
pub(super) fn turn_options(value: &Value, known: &Models) -> Result<TurnOptions, AgentError> {
    let mut options = TurnOptions::from_json(value).map_err(misuse)?;
    if let Some(entry) = value.get("model") {
        let json = entry.to_json();
        let made =
            known.borrow().iter().find(|(known, ..)| *known == json).map(|(_, model, _)| model.clone());
        let made = match made {
            Some(model) => model,
            None => {
                let model = model(entry)?;
                let mut known = known.borrow_mut();
                // Those that the agent was made with stay, and the latest: a host may name another one for each turn.
                if known.len() >= MOST_MODELS {
                    known.remove(MOST_MODELS / 2);
                }
                known.push((json, model.clone(), Cell::default()));
                model
            }
        };
        options.model = Some(made);
    }
    Ok(options)
}

fn set_values(config: &mut AgentLoopConfig, settings: &Value) -> Result<(), AgentError> {
    let rules = &mut config.rules;
    let none = &Value::Null;
    let part = |key: &str| settings.get(key).unwrap_or(none);
    rules.system_prompt = text(settings, "systemPrompt").into();
    if let Some(options) = settings.get("streamOptions") {
        rules.stream_options = Rc::new(StreamOptions::from_json(options).map_err(misuse)?);
    }
    let budget = settings.get("budget").map(Budget::from_json).transpose();
    rules.budget = budget.map_err(misuse)?;
    rules.max_turns = u32_at(settings, "maxTurns");
    if let retry @ Value::Object(_) = part("retry") {
        rules.retry = Rc::new(retry_config(retry));
    }
    if let Some(approval) = settings.get("approval") {
        rules.approval = ApprovalOptions::from_json(approval).map_err(misuse)?;
    }
    let parks = text(settings, "earlyDecisions") == "park";
    rules.early_decisions = if parks { EarlyDecisions::Park } else { EarlyDecisions::Refuse };
    rules.tool_execution = match text(settings, "toolExecution") {
        "sequential" => ToolExecutionPolicy::Sequential,
        "priority" => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Concurrent,
    };
    rules.max_concurrent_tools = usize_at(settings, "maxConcurrentTools");
    let is = |value: &Value, key: &str, word: &str| text(value, key) == word;
    rules.gate = if is(settings, "gate", "prefix") { ApprovalGate::Prefix } else { ApprovalGate::Batch };
    let steering = part("steering");
    rules.steering = SteeringRules {
        when: SteeringTime::of_word(text(steering, "when")).unwrap_or_default(),
        in_flight: if is(steering, "inFlight", "finish") { InFlight::Finish } else { InFlight::Cancel },
        delivery: delivery(steering),
        before_first_call: is(steering, "atStart", "before_first_call"),
    };
    rules.follow_up = delivery(part("followUp"));
    let timeouts = part("timeouts");
    rules.timeouts = Timeouts {
        first_chunk: timeouts.number_at("firstChunkMs"),
        chunk: timeouts.number_at("chunkMs"),
        // Without a limit, the facade says 2^53, because JSON has no Infinity.
        model: timeouts.number_at("modelMs").map(|ms| if ms < 1 << 53 { ms } else { u64::MAX }),
        tool: timeouts.number_at("toolMs"),
        total: timeouts.number_at("totalMs"),
    };
    if let Some(limit) = u32_at(settings, "maxRecoveriesPerTurn") {
        rules.max_recoveries_per_turn = limit;
    }
    rules.include_requests = flag(settings, "includeRequests", false);
    rules.output = settings.get("output").filter(|output| !output.is_null()).map(ToJson::to_raw);
    if let Value::Object(state) = part("sessionState") {
        rules.session_state = state.clone();
    }
    if let Some(tries) = u32_at(settings, "outputRetries") {
        rules.output_retries = tries;
    }
    if let Some(transfer) = settings.get("transfer") {
        set_transfer(rules, transfer);
    }
    Ok(())
}

/// Reads `{ ttlMs?, minTokens?, intervals? }`. The defaults are what providers commonly do:
/// five minutes, 1,024 tokens.
fn cache_hints(value: &Value, cached: &Cached) -> CacheHints {
    CacheHints {
        ttl_ms: value.number_at("ttlMs").unwrap_or(300_000),
        min_tokens: value.number_at("minTokens").unwrap_or(1_024),
        intervals: u32_at(value, "intervals").unwrap_or(1),
        prefix: cached.clone(),
    }
}

/// Reads `{ agentName?, chain?, maxDepth? }`.
fn set_transfer(rules: &mut Rules, value: &Value) {
    rules.agent_name = text(value, "agentName").into();
    for name in value.list_at("chain").iter().filter_map(Value::as_str) {
        rules.transfer_chain.push(name.to_owned());
    }
    rules.max_transfer_depth = usize_at(value, "maxDepth").unwrap_or(rules.max_transfer_depth);
}

fn set_functions(
    config: &mut AgentLoopConfig,
    settings: &Value,
    host: &Host,
    cached: &Cached,
    has: &dyn Fn(&str) -> bool,
) {
    rules::install(&mut config.rules, host, cached, has);
    rules::install_pre_dispatch(&mut config.rules, host, settings.number_at("preDispatch").unwrap_or(0));
    if has(OptionPart::ToolExecution.as_str()) {
        config.rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(rules::partition(host.clone())));
    }
    if has(OptionFunction::GetApiKey.as_str()) {
        config.ports.keys = Some(Rc::new(JsKeys));
    }
    let (steering, follow_up) = (
        has(OptionFunction::GetSteeringMessages.as_str()),
        has(OptionFunction::GetFollowUpMessages.as_str()),
    );
    if steering || follow_up {
        config.set_message_provider(Rc::new(JsMessages { host: host.clone(), steering, follow_up }));
    }
    if has(OptionFunction::AsyncTransformContext.as_str()) {
        config.ports.transformer = Some(Rc::new(JsTransformer { cached: cached.clone() }));
    }
    if has(OptionPart::Compaction.as_str()) {
        config.ports.compaction = Some(Rc::new(JsCompaction));
    }
    if has(OptionPart::Summarize.as_str())
        && let Some(engine) = Summarizer::of(config)
    {
        config.ports.compaction = Some(Rc::new(Summaries(engine)));
    }
    if has(OptionFunction::ApproveTool.as_str()) {
        config.set_approver(Rc::new(JsApprover));
    }
    let hooks = settings.list_at("hooks");
    let stage = |stage: HookStage| hooks.iter().any(|hook| hook.as_str() == Some(stage.as_str()));
    let stages = HookStages {
        before_inference: stage(HookStage::BeforeInference),
        after_inference: stage(HookStage::AfterInference),
        before_tool_execution: stage(HookStage::BeforeToolExecution),
        after_tool_execution: stage(HookStage::AfterToolExecution),
        on_error: stage(HookStage::OnError),
    };
    if stages != HookStages::default() {
        config
            .set_hooks(vec![Rc::new(JsHooks { stages, wraps_models: flag(settings, "wrapsModels", false) })]);
    }
}

fn delivery(value: &Value) -> QueueMode {
    if text(value, "delivery") == "one_at_a_time" { QueueMode::OneAtATime } else { QueueMode::All }
}

fn retry_config(value: &Value) -> RetryConfig {
    let default = RetryConfig::default();
    let multiplier = u32_at(value, "multiplierThousandths");
    RetryConfig {
        max_attempts: u32_at(value, "maxAttempts").unwrap_or(default.max_attempts),
        initial_backoff_ms: value.number_at("initialBackoffMs").unwrap_or(default.initial_backoff_ms),
        max_backoff_ms: value.number_at("maxBackoffMs").unwrap_or(default.max_backoff_ms),
        multiplier: multiplier.map_or(default.multiplier, |thousandths| f64::from(thousandths) / 1000.0),
        jitter: flag(value, "jitter", default.jitter),
        retry_unknown: flag(value, "retryUnknown", default.retry_unknown),
        max_retry_delay_ms: value.number_at("maxRetryDelayMs").unwrap_or(default.max_retry_delay_ms),
    }
}

/// Reads `{ index, wire, id, provider, baseUrl?, headers?, compat?, apiKey?, price?, supportsTools?,
/// estimatesUsage?, dangerouslyAllowBrowser? }`. Without a wire, the host streams the model itself.
fn model(value: &Value) -> Result<Model, AgentError> {
    let index = value.number_at("index").and_then(|index| u32::try_from(index).ok()).unwrap_or_default();
    let price = value.get("price").and_then(Price::read);
    let (provider, stream_fn): (Rc<str>, Rc<dyn StreamFn>) = if text(value, "wire").is_empty() {
        let limit = usize_at(limits_of(value), "answer").unwrap_or(MAX_ANSWER);
        let estimates = flag(value, "estimatesUsage", false);
        (text(value, "provider").into(), Rc::new(JsModel { index, limit, estimates, price }))
    } else {
        let wire = wire(value, text(value, "wire"))?;
        let key = value.text_at("apiKey").map(Rc::from);
        let name = wire.provider().into();
        (
            name,
            Rc::new(FetchModel {
                index,
                wire: Rc::new(RefCell::new(wire)),
                key,
                price,
                last: Cell::new(0),
                secrets: LastSecrets::default(),
            }),
        )
    };
    let supports_tools = flag(value, "supportsTools", true);
    let context_window = value.number_at("contextWindow");
    Ok(Model {
        provider,
        id: text(value, "id").into(),
        supports_tools,
        context_window,
        number: index,
        stream_fn,
    })
}

fn wire(value: &Value, name: &str) -> Result<Box<dyn Wire>, AgentError> {
    let mut headers = Vec::new();
    for (name, value) in value.members_at("headers") {
        headers.extend(value.as_str().map(|value| (name.to_owned(), value.to_owned())));
    }
    let limits = limits_of(value);
    let limit = |key: &str, default: usize| usize_at(limits, key).unwrap_or(default);
    let default = Limits::default();
    let options = WireOptions {
        base_url: text(value, "baseUrl").to_owned(),
        headers,
        compat: value.get("compat").cloned().unwrap_or_default(),
        dangerously_allow_browser: flag(value, "dangerouslyAllowBrowser", false),
        limits: Limits {
            answer: limit("answer", default.answer),
            line: limit("line", default.line),
            calls: limit("calls", default.calls),
            arguments: limit("arguments", default.arguments),
        },
    };
    wires::wire(name, options).map_err(misuse)
}

fn limits_of(value: &Value) -> &Value {
    value.get("limits").unwrap_or(&Value::Null)
}

fn tool(value: &Value, version: &Rc<ToolsVersion>) -> Result<ToolSpec, AgentError> {
    let parameters = value.get("parameters").map_or_else(RawJson::null, ToJson::to_raw);
    let name = text(value, "name");
    let mut spec = ToolSpec::new(name, text(value, "description"), parameters);
    spec.requires_approval = match value.get("requiresApproval") {
        Some(Value::Bool(true)) => ApprovalNeed::Always,
        Some(Value::String(_)) => {
            ApprovalNeed::Depends(Rc::new(rules::requires_approval(version.clone(), name.to_owned())))
        }
        _ => ApprovalNeed::Never,
    };
    spec.timeout_ms = value.number_at("timeoutMs");
    spec.max_result_bytes = value.number_at("maxResultBytes");
    spec.idempotent = flag(value, "idempotent", false);
    spec.is_sub_agent = flag(value, "subAgent", false);
    spec.is_external = flag(value, "external", false);
    spec.fatal = flag(value, "fatal", false);
    let priority = i32::try_from(value.number_at("priority").unwrap_or(0)).unwrap_or(i32::MAX);
    spec.priority = if flag(value, "lowPriority", false) { -priority } else { priority };
    Ok(spec)
}

/// Reads a text; empty if there is none.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.text_at(key).unwrap_or_default()
}

/// Reads a number; one that is too large becomes the largest there is.
fn u32_at(value: &Value, key: &str) -> Option<u32> {
    value.number_at(key).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// Reads a number as [`u32_at`] does.
fn usize_at(value: &Value, key: &str) -> Option<usize> {
    value.number_at(key).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

fn flag(value: &Value, key: &str, default: bool) -> bool {
    value.flag_at(key).unwrap_or(default)
}

fn misuse(text: impl Into<String>) -> AgentError {
    AgentError::new(ErrorKind::Misuse, text)
}
