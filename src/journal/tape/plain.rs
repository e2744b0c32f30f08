//! The plain values of the rules, as JSON: everything that decides and is no function. Headers and fields of the body are not
//! among them, because they may be secret and the machine only hands them on.

use std::rc::Rc;

use crate::data::json::{FromJson, Map, ObjectWriter, ToJson, Value};
use crate::data::list::ListWriter;
use crate::data::table::Table;
use crate::host::config::{
    CacheHints, Caller, EarlyDecisions, InFlight, ModelName, QueueMode, Rules, SteeringRules, SteeringTime,
    Timeouts, ToolExecutionPolicy,
};
use crate::host::ports::HookStages;
use crate::host::tool::{ApprovalNeed, ToolSpec};
use crate::rules::approval::{
    ApprovalGate, ApprovalMode, ApprovalOptions, RuleNames, ToolApprovalAction, ToolApprovalPolicy,
};
use crate::rules::budget::Budget;
use crate::rules::stream::{NativeOutput, StreamOptions, ToolSchema};
use crate::words::price::Price;

/// The values of the rules by their names, each as JSON.
pub(super) fn values_of(rules: &Rules) -> Vec<(&'static str, String)> {
    let options = StreamOptions { headers: Vec::new(), body: Vec::new(), ..(*rules.stream_options).clone() };
    let mut values = vec![
        ("models", written(|out| write_each(&rules.models, write_model, out))),
        ("systemPrompt", rules.system_prompt.to_json()),
        ("streamOptions", options.to_json()),
        ("tools", written(|out| write_each(&rules.tools, write_tool, out))),
        ("maxTurns", rules.max_turns.to_json()),
        ("approval", written(|out| write_approval(&rules.approval, out))),
        ("toolExecution", execution_word(&rules.tool_execution).to_json()),
        ("maxConcurrentTools", rules.max_concurrent_tools.map(long).to_json()),
        ("hooks", written(|out| write_words(&stages(rules.hooks), out))),
        ("steering", written(|out| write_steering(&rules.steering, out))),
        ("timeouts", written(|out| write_timeouts(&rules.timeouts, out))),
        ("maxRecoveriesPerTurn", rules.max_recoveries_per_turn.to_json()),
        ("output", rules.output.to_json()),
        ("outputRetries", rules.output_retries.to_json()),
        ("cache", written(|out| write_cache(rules.cache.as_ref(), out))),
        ("agentName", rules.agent_name.to_json()),
        ("transferChain", rules.transfer_chain.to_json()),
        ("budget", written(|out| write_budget(rules.budget.as_ref(), out))),
        ("maxDepth", rules.max_depth.to_json()),
        ("maxTransferDepth", long(rules.max_transfer_depth).to_json()),
    ];
    let mut flags = Vec::new();
    let mut flag = |holds: bool, word: &'static str| flags.extend(holds.then_some(word));
    flag(rules.repeats_tool_choice, "repeats_tool_choice");
    flag(rules.prepares_turns, "prepares_turns");
    flag(rules.early_decisions == EarlyDecisions::Refuse, "refuses_early_decisions");
    flag(rules.has_approver, "has_approver");
    flag(rules.gate == ApprovalGate::Prefix, "starts_by_prefix");
    flag(rules.follow_up == QueueMode::OneAtATime, "one_follow_up_at_a_time");
    flag(rules.include_requests, "include_requests");
    values.push(("flags", written(|out| write_words(&flags, out))));
    values
}

/// Puts the values of a tape into rules, as far as it has them.
///
/// # Errors
/// Names what cannot be read.
pub(super) fn read_values(values: &Value, rules: &mut Rules) -> Result<(), String> {
    let get = |key: &str| values.get(key).unwrap_or(&Value::Null);
    let list = |key: &str| values.list_at(key);
    rules.models = list("models").iter().map(read_model).collect();
    rules.system_prompt = values.text_at("systemPrompt").unwrap_or_default().into();
    rules.stream_options = Rc::new(StreamOptions::from_json(get("streamOptions"))?);
    let tools = list("tools").iter().map(read_tool).collect::<Result<Vec<_>, _>>()?;
    rules.schemas = tools.iter().map(|tool| tool.schema.clone()).collect();
    rules.tools = tools.into();
    rules.max_turns = small(values, "maxTurns");
    rules.approval = read_approval(get("approval"));
    rules.tool_execution = match values.text_at("toolExecution") {
        Some("sequential") => ToolExecutionPolicy::Sequential,
        Some("priority") => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Concurrent,
    };
    rules.max_concurrent_tools = place(values, "maxConcurrentTools");
    rules.hooks = read_stages(list("hooks"));
    rules.steering = read_steering(get("steering"));
    rules.timeouts = read_timeouts(get("timeouts"));
    rules.max_recoveries_per_turn = small(values, "maxRecoveriesPerTurn").unwrap_or_default();
    rules.output = values.get("output").filter(|output| !output.is_null()).map(ToJson::to_raw);
    rules.output_retries = small(values, "outputRetries").unwrap_or_default();
    rules.cache = read_cache(get("cache"));
    rules.agent_name = values.text_at("agentName").unwrap_or_default().into();
    rules.transfer_chain = words(list("transferChain"));
    let budget = values.get("budget").filter(|budget| !budget.is_null());
    rules.budget = budget.map(Budget::from_json).transpose()?;
    rules.max_depth = small(values, "maxDepth").unwrap_or_default();
    rules.max_transfer_depth = place(values, "maxTransferDepth").unwrap_or_default();
    let flag = |word: &str| list("flags").iter().any(|flag| flag.as_str() == Some(word));
    rules.repeats_tool_choice = flag("repeats_tool_choice");
    rules.prepares_turns = flag("prepares_turns");
    rules.early_decisions =
        if flag("refuses_early_decisions") { EarlyDecisions::Refuse } else { EarlyDecisions::Park };
    rules.has_approver = flag("has_approver");
    rules.gate = if flag("starts_by_prefix") { ApprovalGate::Prefix } else { ApprovalGate::Batch };
    rules.follow_up = if flag("one_follow_up_at_a_time") { QueueMode::OneAtATime } else { QueueMode::All };
    rules.include_requests = flag("include_requests");
    Ok(())
}

fn written(write: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    write(&mut out);
    out
}

fn write_each<T>(items: &[T], write: fn(&T, &mut String), out: &mut String) {
    let mut list = ListWriter::new(out);
    items.iter().for_each(|item| write(item, list.item()));
    list.end();
}

fn write_words(words: &[&str], out: &mut String) {
    let mut list = ListWriter::new(out);
    words.iter().for_each(|word| word.write_json(list.item()));
    list.end();
}

fn words(list: &[Value]) -> Vec<String> {
    list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

fn long(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn small(values: &Value, key: &str) -> Option<u32> {
    values.number_at(key).map(|n| u32::try_from(n).unwrap_or(u32::MAX))
}

fn place(values: &Value, key: &str) -> Option<usize> {
    values.number_at(key).map(|n| usize::try_from(n).unwrap_or(usize::MAX))
}

fn write_model(model: &ModelName, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    object.field("provider", &model.provider).field("id", &model.id);
    object.field("supportsTools", &model.supports_tools);
    object.optional("contextWindow", &model.context_window);
    object.field("maxAnswerBytes", &long(model.max_answer_bytes));
    object.field("estimatesUsage", &model.estimates_usage);
    if let Some(NativeOutput { with_tools, any_root }) = model.native_output() {
        let mut native = ObjectWriter::new(object.key("nativeOutput"));
        native.field("withTools", &with_tools).field("anyRoot", &any_root);
        native.end();
    }
    if let Some(price) = &model.price {
        price.write_parts(object.key("price"));
    }
    object.end();
}

fn read_model(value: &Value) -> ModelName {
    let flag = |key: &str| value.flag_at(key).unwrap_or_default();
    ModelName {
        provider: value.text_at("provider").unwrap_or_default().into(),
        id: value.text_at("id").unwrap_or_default().into(),
        supports_tools: flag("supportsTools"),
        context_window: value.number_at("contextWindow"),
        max_answer_bytes: place(value, "maxAnswerBytes").unwrap_or(usize::MAX),
        estimates_usage: flag("estimatesUsage"),
        price: value.get("price").map(Price::of_parts),
        caller: Caller::recorded(value.get("nativeOutput").map(|native| NativeOutput {
            with_tools: native.flag_at("withTools").unwrap_or_default(),
            any_root: native.flag_at("anyRoot").unwrap_or_default(),
        })),
    }
}

fn write_tool(tool: &ToolSpec, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    object.field("name", &tool.schema.name).field("description", &tool.schema.description);
    object.field("parameters", &tool.schema.parameters);
    match tool.requires_approval {
        ApprovalNeed::Never => {}
        ApprovalNeed::Always => drop(object.field("requiresApproval", &true)),
        ApprovalNeed::Depends(_) => drop(object.field("requiresApproval", "depends")),
    }
    object.optional("timeoutMs", &tool.timeout_ms).optional("maxResultBytes", &tool.max_result_bytes);
    object.optional("idempotent", &tool.idempotent.then_some(true));
    object.optional("subAgent", &tool.is_sub_agent.then_some(true));
    object.optional("external", &tool.is_external.then_some(true));
    object.optional("fatal", &tool.fatal.then_some(true));
    if tool.priority != 0 {
        let key = if tool.priority < 0 { "lowPriority" } else { "priority" };
        object.field(key, &tool.priority.unsigned_abs());
    }
    object.end();
}

fn read_tool(value: &Value) -> Result<ToolSpec, String> {
    let flag = |key: &str| value.flag_at(key).unwrap_or_default();
    let schema = ToolSchema::from_json(value)?;
    let priority = |key: &str| value.number_at(key).and_then(|n| i32::try_from(n).ok()).unwrap_or_default();
    Ok(ToolSpec {
        schema,
        requires_approval: match value.get("requiresApproval") {
            Some(Value::Bool(true)) => ApprovalNeed::Always,
            // The tape has the answers; whoever plays it puts them here.
            Some(Value::String(_)) => ApprovalNeed::Depends(Rc::new(|_, _| Ok(true))),
            _ => ApprovalNeed::Never,
        },
        timeout_ms: value.number_at("timeoutMs"),
        max_result_bytes: value.number_at("maxResultBytes"),
        idempotent: flag("idempotent"),
        is_sub_agent: flag("subAgent"),
        is_external: flag("external"),
        fatal: flag("fatal"),
        priority: priority("priority") - priority("lowPriority"),
    })
}

fn write_approval(approval: &ApprovalOptions, out: &mut String) {
    let mut object = ObjectWriter::new(out);
    object.field(
        "mode",
        match approval.mode {
            ApprovalMode::Smart => "smart",
            ApprovalMode::Enabled => "enabled",
            ApprovalMode::Bypassed => "bypassed",
        },
    );
    object.optional("anyServer", &(approval.names == RuleNames::AnyServer).then_some(true));
    match &approval.policy {
        None => {}
        Some(ToolApprovalPolicy::None) => drop(object.field("policy", "none")),
        Some(ToolApprovalPolicy::All) => drop(object.field("policy", "all")),
        Some(ToolApprovalPolicy::Custom { rules, default }) => {
            let mut policy = ObjectWriter::new(object.key("policy"));
            policy.field("default", default.as_str());
            let mut by_name = ObjectWriter::new(policy.key("rules"));
            for (name, action) in rules.iter() {
                by_name.field(name, action.as_str());
            }
            by_name.end();
            policy.end();
        }
    }
    object.end();
}

fn read_approval(value: &Value) -> ApprovalOptions {
    let action = |value: &Value| {
        value.as_str().and_then(ToolApprovalAction::from_word).unwrap_or(ToolApprovalAction::Deny)
    };
    ApprovalOptions {
        mode: match value.text_at("mode") {
            Some("enabled") => ApprovalMode::Enabled,
            Some("bypassed") => ApprovalMode::Bypassed,
            _ => ApprovalMode::Smart,
        },
        policy: value.get("policy").map(|policy| match policy.as_str() {
            Some("none") => ToolApprovalPolicy::None,
            Some(_) => ToolApprovalPolicy::All,
            None => {
                let rules = policy.get("rules").and_then(Value::as_object).map(Map::iter);
                let rules = rules.into_iter().flatten();
                ToolApprovalPolicy::Custom {
                    rules: rules.map(|(name, rule)| (name.to_owned(), action(rule))).collect::<Table<_, _>>(),
                    default: action(policy.get("default").unwrap_or(&Value::Null)),
                }
            }
        }),
        names: match value.flag_at("anyServer") {
            Some(true) => RuleNames::AnyServer,
            _ => RuleNames::Exact,
        },
    }
}

/// Groups that the host makes are answers of a rule.
fn execution_word(policy: &ToolExecutionPolicy) -> &'static str {
    match policy {
        ToolExecutionPolicy::Concurrent => "concurrent",
        ToolExecutionPolicy::Sequential => "sequential",
        ToolExecutionPolicy::Priority => "priority",
        ToolExecutionPolicy::Custom(_) => "custom",
    }
}

/// Whether the host makes the groups.
pub(super) fn has_groups(values: &Value) -> bool {
    values.text_at("toolExecution") == Some("custom")
}

const STAGES: [&str; 5] =
    ["before_inference", "after_inference", "before_tool_execution", "after_tool_execution", "on_error"];

fn stages(hooks: HookStages) -> Vec<&'static str> {
    let HookStages {
        before_inference,
        after_inference,
        before_tool_execution,
        after_tool_execution,
        on_error,
    } = hooks;
    let flags = [before_inference, after_inference, before_tool_execution, after_tool_execution, on_error];
    STAGES.into_iter().zip(flags).filter_map(|(word, has)| has.then_some(word)).collect()
}

fn read_stages(list: &[Value]) -> HookStages {
    let has = |word: &str| list.iter().any(|stage| stage.as_str() == Some(word));
    let [before_inference, after_inference, before_tool_execution, after_tool_execution, on_error] =
        STAGES.map(has);
    HookStages { before_inference, after_inference, before_tool_execution, after_tool_execution, on_error }
}

fn write_steering(steering: &SteeringRules, out: &mut String) {
    let SteeringRules { when, in_flight, delivery, before_first_call } = steering;
    let mut object = ObjectWriter::new(out);
    object.field("when", when.as_str());
    object.optional("finishes", &(*in_flight == InFlight::Finish).then_some(true));
    object.optional("oneAtATime", &(*delivery == QueueMode::OneAtATime).then_some(true));
    object.optional("beforeFirstCall", &before_first_call.then_some(true));
    object.end();
}

fn read_steering(value: &Value) -> SteeringRules {
    let flag = |key: &str| value.flag_at(key).unwrap_or_default();
    SteeringRules {
        when: value.text_at("when").and_then(SteeringTime::of_word).unwrap_or_default(),
        in_flight: if flag("finishes") { InFlight::Finish } else { InFlight::Cancel },
        delivery: if flag("oneAtATime") { QueueMode::OneAtATime } else { QueueMode::All },
        before_first_call: flag("beforeFirstCall"),
    }
}

fn write_timeouts(timeouts: &Timeouts, out: &mut String) {
    let Timeouts { first_chunk, chunk, model, tool, total } = timeouts;
    let mut object = ObjectWriter::new(out);
    object.optional("firstChunkMs", first_chunk).optional("chunkMs", chunk).optional("modelMs", model);
    object.optional("toolMs", tool).optional("totalMs", total);
    object.end();
}

fn read_timeouts(value: &Value) -> Timeouts {
    Timeouts {
        first_chunk: value.number_at("firstChunkMs"),
        chunk: value.number_at("chunkMs"),
        model: value.number_at("modelMs"),
        tool: value.number_at("toolMs"),
        total: value.number_at("totalMs"),
    }
}

fn write_cache(hints: Option<&CacheHints>, out: &mut String) {
    let Some(CacheHints { ttl_ms, min_tokens, intervals, .. }) = hints else { return out.push_str("null") };
    let mut object = ObjectWriter::new(out);
    object.field("ttlMs", ttl_ms).field("minTokens", min_tokens).field("intervals", intervals);
    object.end();
}

fn read_cache(value: &Value) -> Option<CacheHints> {
    value.as_object()?;
    let number = |key: &str| value.number_at(key).unwrap_or_default();
    Some(CacheHints::new(number("ttlMs"), number("minTokens"), small(value, "intervals").unwrap_or_default()))
}

fn write_budget(budget: Option<&Budget>, out: &mut String) {
    match budget {
        Some(budget) => budget.write_json(out),
        None => out.push_str("null"),
    }
}

/// The values of a line of rules, put over those before.
pub(super) fn merge_rules(before: &mut Value, line: &Value) {
    if !matches!(before, Value::Object(_)) {
        *before = Map::new().into();
    }
    if let (Value::Object(all), Some(changed)) = (before, line.as_object()) {
        changed.iter().for_each(|(key, value)| all.insert(key, value.clone()));
    }
}
