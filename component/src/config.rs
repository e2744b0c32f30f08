//! The configuration of an agent, read from the options of the npm package as JSON. Where an option is a function there, it is
//! the word `callback` here.

use std::rc::Rc;

use turnwheel::agent::subagent::SubAgent;
use turnwheel::approval::{ApprovalGate, ApprovalOptions};
use turnwheel::budget::Budget;
use turnwheel::config::{
    AgentLoopConfig, CacheHints, DEEPEST_NESTING, EarlyDecisions, InFlight, Model, QueueMode, Rules,
    SteeringRules, SteeringTime, Timeouts, ToolExecutionPolicy,
};
use turnwheel::http::HttpModel;
use turnwheel::json::{FromJson, RawJson, ToJson, Value};
use turnwheel::price::Price;
use turnwheel::retry::RetryConfig;
use turnwheel::stream::StreamOptions;
use turnwheel::summarize::Summarizer;
use turnwheel::tool::{AgentTool, ApprovalNeed, ToolSpec};
use turnwheel::wires::{WireOptions, wire};

use crate::desk::Desk;
use crate::ports::{Host, HostModel, HostTool};
use crate::rules;

const CALLBACK: &str = "callback";

/// The options. The others of the npm package have no form as data, or belong to its host.
const NAMES: &str = "model fallback systemPrompt streamOptions maxTurns maxDepth tools output outputRetries sessionState \
    includeRequests approval approveTool gate earlyDecisions policies toolExecution maxConcurrentTools steering followUp \
    timeouts budget retry cache compaction transfer transformContext asyncTransformContext dynamicSystemPrompt convertToLlm resultTexts \
    prepareTurn getApiKey getSteeringMessages getFollowUpMessages validate";

/// Those whose functions must answer inside a step.
const INSIDE: &str = "transformContext dynamicSystemPrompt convertToLlm resultTexts validate retry toolExecution \
    getSteeringMessages getFollowUpMessages";

/// Reads the options.
///
/// # Errors
/// If one is unknown or of the wrong form. The text names it.
pub(crate) fn config(options: &Value, desk: &Rc<Desk>) -> Result<AgentLoopConfig, String> {
    let Value::Object(members) = options else { return Err("the options must be an object".to_owned()) };
    if let Some((name, _)) =
        members.iter().find(|(name, _)| !NAMES.split_whitespace().any(|known| known == *name))
    {
        return Err(["unknown option `", name, "`; there are ", &words(NAMES)].concat());
    }
    if asks_inside(options) {
        desk.expect_questions();
    }
    let host = Host { desk: desk.clone(), cached: Rc::default() };
    let first = options.get("model").ok_or("the options need a `model`")?;
    let mut models = Vec::new();
    for (index, given) in (0..).zip(std::iter::once(first).chain(options.list_at("fallback"))) {
        models.push(model(given, index, &host)?);
    }
    let first = models.first().cloned().ok_or("there is no model")?;
    let ids = desk.clone();
    let new_id = move || [ids.random().to_json(), ids.random().to_json()].join("-");
    let mut config = AgentLoopConfig::with_ids(first, Rc::new(host.clone()), Rc::new(new_id));
    config.set_models(models);
    let mut tools: Vec<Rc<dyn AgentTool>> = Vec::new();
    for given in options.list_at("tools") {
        tools.push(tool(given, &host)?);
    }
    // The loop itself takes any tools, as in the npm package.
    config.offer_tools(tools);
    set_values(&mut config.rules, options)?;
    set_more_values(&mut config.rules, options)?;
    set_functions(&mut config, options, &host);
    Ok(config)
}

/// Whether a function of the host has to answer inside a step.
fn asks_inside(options: &Value) -> bool {
    let is = |name: &str| is_callback(options.get(name));
    let policies = options.get("policies").and_then(Value::as_object);
    let has_policies = policies.is_some_and(|slots| {
        slots.iter().any(|(_, list)| list.as_array().is_some_and(|list| !list.is_empty()))
    });
    let asks = |tool: &Value| is_callback(tool.get("requiresApproval"));
    INSIDE.split_whitespace().any(is) || has_policies || options.list_at("tools").iter().any(asks)
}

fn words(list: &str) -> String {
    list.split_whitespace().collect::<Vec<_>>().join(", ")
}

fn is_callback(value: Option<&Value>) -> bool {
    value.and_then(Value::as_str) == Some(CALLBACK)
}

/// Reads a model: `{ id, wire, baseUrl?, apiKey?, headers?, compat?, price? }`, or without a wire one that the host streams.
fn model(given: &Value, index: u64, host: &Host) -> Result<Model, String> {
    let id = given.text_at("id").ok_or("a model needs an `id`")?;
    let price = given.get("price").and_then(Price::read);
    let mut model = match given.text_at("wire") {
        Some(name) => {
            let text = |value: &Value| value.as_str().map(str::to_owned);
            let headers = given.members_at("headers").iter();
            let options = WireOptions {
                base_url: given.owned_at("baseUrl").unwrap_or_default(),
                headers: headers.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect(),
                compat: given.get("compat").cloned().unwrap_or_default(),
                dangerously_allow_browser: given.flag_at("dangerouslyAllowBrowser").unwrap_or_default(),
                ..WireOptions::default()
            };
            let mut model =
                HttpModel::new(wire(name, options)?, Rc::new(host.clone()), Rc::new(host.clone()));
            if let Some(key) = given.text_at("apiKey") {
                model = model.with_key(key);
            }
            if let Some(price) = price {
                model = model.with_price(price);
            }
            model.model(id)
        }
        None => {
            let estimates = given.flag_at("estimatesUsage").unwrap_or_default();
            let stream = HostModel { host: host.clone(), index, price, estimates };
            Model::new(given.text_at("provider").unwrap_or("custom"), id, Rc::new(stream))
        }
    };
    model.supports_tools = given.flag_at("supportsTools").unwrap_or(true);
    model.context_window = given.number_at("contextWindow");
    Ok(model)
}

/// Reads a tool, which the host executes, or with `agent` an agent inside this one.
fn tool(given: &Value, host: &Host) -> Result<Rc<dyn AgentTool>, String> {
    let name = given.text_at("name").ok_or("a tool needs a `name`")?;
    let description = given.text_at("description").unwrap_or_default();
    if let Some(options) = given.get("agent") {
        return sub_agent(name, description, options, given.text_at("approvals") == Some("own"), &host.desk);
    }
    let parameters = match given.get("parameters") {
        Some(schema @ Value::Object(_)) => schema.to_raw(),
        None => RawJson::empty_object(),
        Some(_) => return Err(["the parameters of tool `", name, "` must be a JSON Schema object"].concat()),
    };
    let number = |key: &str| given.number_at(key);
    let flag = |key: &str| given.flag_at(key).unwrap_or_default();
    let priority = given.get("priority").map(ToJson::to_json);
    let spec = ToolSpec {
        requires_approval: match given.get("requiresApproval") {
            Some(Value::Bool(true)) => ApprovalNeed::Always,
            asks if is_callback(asks) => rules::depends(host.desk.clone(), name),
            _ => ApprovalNeed::Never,
        },
        timeout_ms: number("timeoutMs"),
        max_result_bytes: number("maxResultBytes"),
        idempotent: flag("idempotent"),
        is_external: flag("external"),
        fatal: flag("fatal"),
        priority: priority.and_then(|text| text.parse().ok()).unwrap_or_default(),
        ..ToolSpec::new(name, description, parameters)
    };
    Ok(Rc::new(HostTool { host: host.clone(), spec }))
}

fn sub_agent(
    name: &str,
    description: &str,
    options: &Value,
    keeps_questions: bool,
    desk: &Rc<Desk>,
) -> Result<Rc<dyn AgentTool>, String> {
    let inside =
        config(options, desk).map_err(|text| ["the agent of tool `", name, "`: ", &text].concat())?;
    let agent = SubAgent::new(name, description, move || inside.clone());
    Ok(Rc::new(if keeps_questions { agent.with_own_approvals() } else { agent }))
}

fn set_values(rules: &mut Rules, options: &Value) -> Result<(), String> {
    rules.system_prompt = options.text_at("systemPrompt").unwrap_or_default().into();
    if let Some(given) = options.get("streamOptions") {
        rules.stream_options = Rc::new(StreamOptions::from_json(given)?);
    }
    rules.budget = options.get("budget").map(Budget::from_json).transpose()?;
    match options.get("maxTurns") {
        None => {}
        Some(Value::Null) => rules.max_turns = None,
        Some(_) => {
            rules.max_turns =
                Some(small(options, "maxTurns").ok_or("`maxTurns` must be a whole number, or null")?)
        }
    }
    if let Some(depth) = small(options, "maxDepth") {
        if usize::try_from(depth).unwrap_or(usize::MAX) > DEEPEST_NESTING {
            return Err("`maxDepth` is too large; agents may be nested 16 deep".to_owned());
        }
        rules.max_depth = depth;
    }
    rules.output = options.get("output").filter(|output| !output.is_null()).map(ToJson::to_raw);
    rules.output_retries = small(options, "outputRetries").unwrap_or(rules.output_retries);
    if let Some(Value::Object(state)) = options.get("sessionState") {
        rules.session_state = state.clone();
    }
    rules.include_requests = options.flag_at("includeRequests").unwrap_or_default();
    if let Some(given) = options.get("approval") {
        rules.approval = ApprovalOptions::from_json(given)?;
    }
    if options.text_at("gate") == Some("prefix") {
        rules.gate = ApprovalGate::Prefix;
    }
    if options.text_at("earlyDecisions") == Some("refuse") {
        rules.early_decisions = EarlyDecisions::Refuse;
    }
    if let Some(given @ Value::Object(_)) = options.get("retry") {
        rules.retry = Rc::new(retry(given));
    }
    Ok(())
}

fn set_more_values(rules: &mut Rules, options: &Value) -> Result<(), String> {
    let part = |key: &str| options.get(key).unwrap_or(&Value::Null);
    let steering = part("steering");
    let when = steering.text_at("when").map(|word| {
        SteeringTime::of_word(word).ok_or_else(|| ["`steering.when` is no time: `", word, "`"].concat())
    });
    rules.steering = SteeringRules {
        when: when.transpose()?.unwrap_or_default(),
        in_flight: if steering.text_at("inFlight") == Some("finish") {
            InFlight::Finish
        } else {
            InFlight::Cancel
        },
        delivery: delivery(steering),
        before_first_call: steering.text_at("atStart") == Some("before_first_call"),
    };
    rules.follow_up = delivery(part("followUp"));
    let timeouts = part("timeouts");
    rules.timeouts = Timeouts {
        first_chunk: timeouts.number_at("firstChunkMs"),
        chunk: timeouts.number_at("chunkMs"),
        model: timeouts.number_at("modelMs"),
        tool: timeouts.number_at("toolMs"),
        total: timeouts.number_at("totalMs"),
    };
    rules.tool_execution = match options.text_at("toolExecution") {
        None | Some("concurrent" | CALLBACK) => ToolExecutionPolicy::Concurrent,
        Some("sequential") => ToolExecutionPolicy::Sequential,
        Some("priority") => ToolExecutionPolicy::Priority,
        Some(other) => return Err(["`toolExecution` is no order of calls: `", other, "`"].concat()),
    };
    rules.max_concurrent_tools =
        options.number_at("maxConcurrentTools").map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    if let Some(most) = small(part("compaction"), "maxRecoveriesPerTurn") {
        rules.max_recoveries_per_turn = most;
    }
    let transfer = part("transfer");
    rules.agent_name = transfer.text_at("agentName").unwrap_or_default().into();
    rules.transfer_chain =
        transfer.list_at("chain").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    if let Some(depth) = transfer.number_at("maxDepth") {
        rules.max_transfer_depth = usize::try_from(depth).unwrap_or(usize::MAX);
    }
    Ok(())
}

fn set_functions(config: &mut AgentLoopConfig, options: &Value, host: &Host) {
    let has = |name: &str| is_callback(options.get(name));
    let desk = &host.desk;
    if let Some(given) = options.get("cache") {
        let whole = |key: &str, default: u64| given.number_at(key).unwrap_or(default);
        let hints = CacheHints::new(
            whole("ttlMs", 300_000),
            whole("minTokens", 1_024),
            small(given, "intervals").unwrap_or(1),
        );
        config.rules.cache = Some(CacheHints { prefix: host.cached.clone(), ..hints });
    }
    rules::install(&mut config.rules, desk, &host.cached, &has);
    let count = |slot: &str| {
        let list = options.get("policies").map_or(&[][..], |policies| policies.list_at(slot));
        u64::try_from(list.len()).unwrap_or_default()
    };
    rules::install_policies(&mut config.rules, desk, &count);
    if has("toolExecution") {
        config.rules.tool_execution = ToolExecutionPolicy::Custom(Rc::new(rules::partition(desk.clone())));
    }
    if has("approveTool") {
        config.set_approver(Rc::new(host.clone()));
    }
    if has("getApiKey") {
        config.ports.keys = Some(Rc::new(host.clone()));
    }
    if has("getSteeringMessages") || has("getFollowUpMessages") {
        config.set_message_provider(Rc::new(host.clone()));
    }
    if has("asyncTransformContext") {
        config.ports.transformer = Some(Rc::new(host.clone()));
    }
    if has("prepareTurn") {
        config.set_turn_preparer(Rc::new(host.clone()));
    }
    match options.get("compaction") {
        Some(Value::String(word)) if word == "summarize" => {
            config.ports.compaction = Summarizer::of(config).map(|engine| Rc::new(engine) as _);
        }
        Some(given) if is_callback(given.get("engine")) => {
            config.ports.compaction = Some(Rc::new(host.clone()))
        }
        _ => {}
    }
}

fn delivery(value: &Value) -> QueueMode {
    if value.text_at("delivery") == Some("one_at_a_time") { QueueMode::OneAtATime } else { QueueMode::All }
}

fn retry(given: &Value) -> RetryConfig {
    let default = RetryConfig::default();
    let multiplier = given.get("multiplier").and_then(|number| number.to_json().parse().ok());
    RetryConfig {
        max_attempts: small(given, "maxAttempts").unwrap_or(default.max_attempts),
        initial_backoff_ms: given.number_at("initialBackoffMs").unwrap_or(default.initial_backoff_ms),
        max_backoff_ms: given.number_at("maxBackoffMs").unwrap_or(default.max_backoff_ms),
        multiplier: multiplier.unwrap_or(default.multiplier),
        jitter: given.flag_at("jitter").unwrap_or(default.jitter),
        retry_unknown: given.flag_at("retryUnknown").unwrap_or(default.retry_unknown),
        max_retry_delay_ms: given.number_at("maxRetryDelayMs").unwrap_or(default.max_retry_delay_ms),
    }
}

/// Reads a number; one that is too large becomes the largest there is.
fn small(value: &Value, key: &str) -> Option<u32> {
    value.number_at(key).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}
