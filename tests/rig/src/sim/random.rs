//! What is random in a world: answers of the host, rules, histories.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use turnwheel::approval::{ApprovalGate, ApprovalMode, ToolApprovalPolicy, ToolDecision};
use turnwheel::budget::{Budget, OnExceed};
use turnwheel::config::{
    AgentLoopConfig, CacheHints, InFlight, Model, QueueMode, Rules, SteeringRules, SteeringTime, Timeouts,
    ToolExecutionPolicy,
};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::event::CompactionReport;
use turnwheel::json::RawJson;
use turnwheel::message::{
    AgentMessage, AssistantMessage, ContentBlock, MessageStopReason, ToolCallBlock, Usage,
};
use turnwheel::policy::{DispatchCall, DispatchVerdict, PolicyContext, PostTurn, Transform, Verdict};
use turnwheel::ports::{AgentRunContext, Compaction, HookStages, StreamFn};
use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
use turnwheel::stream::{AssistantMessageEvent as E, ModelRequest};
use turnwheel::tool::{AgentToolResult, ApprovalNeed, ToolOutcome, ToolSpec, Transfer};

use crate::clock::Clock;
use crate::dice::Dice;

pub(super) fn error(dice: &Dice) -> ErrorInfo {
    use ErrorKind as K;
    let kinds = [
        K::Throttled,
        K::Network,
        K::Server,
        K::Auth,
        K::ContextOverflow,
        K::ContextOverflow,
        K::Unknown,
        K::Aborted,
    ];
    let text = dice.pick(&["it failed", "429", "context_length_exceeded"]);
    let mut error = ErrorInfo::new(*dice.pick(&kinds), *text);
    if dice.chance(20) {
        error.retry_after_ms = Some(*dice.pick(&[0, 50, 1_000_000]));
    }
    error
}

pub(super) fn decision(dice: &Dice) -> ToolDecision {
    match dice.below(8) {
        0 => ToolDecision::Reject { reason: None },
        1 => ToolDecision::Reject { reason: Some("no".to_owned()) },
        2 => ToolDecision::AcceptWith(raw("{\"n\":2}")),
        3 => ToolDecision::AcceptWith(raw("[]")),
        4 => ToolDecision::Result {
            content: vec![ContentBlock::text("mine")],
            details: None,
            is_error: dice.chance(50),
        },
        _ => ToolDecision::Accept,
    }
}

pub(super) fn outcome(dice: &Dice) -> ToolOutcome {
    match dice.below(20) {
        0 => ToolOutcome::Failed("broke".to_owned()),
        1 => ToolOutcome::Invalid("not so".to_owned()),
        2 => ToolOutcome::Cancelled,
        3 => {
            let transfer = Some(Transfer { to: (*dice.pick(&["other", "me"])).to_owned(), reason: None });
            ToolOutcome::Completed(AgentToolResult { transfer, ..AgentToolResult::default() })
        }
        4 => ToolOutcome::Completed(AgentToolResult::error("no luck")),
        5 => ToolOutcome::Completed(AgentToolResult::default()),
        _ => ToolOutcome::Completed(AgentToolResult::text("a long enough result")),
    }
}

/// Transforms only as a sound host would: a complete history stays complete.
pub(super) fn transform(dice: &Dice, messages: &[AgentMessage], overflow: bool) -> Result<Transform, String> {
    if !dice.chance(if overflow { 70 } else { 25 }) {
        return Ok(Transform::Unchanged);
    }
    let users: Vec<usize> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| matches!(message, AgentMessage::User(_)))
        .map(|(at, _)| at)
        .collect();
    let from = if users.is_empty() { 0 } else { *dice.pick(&users) };
    let kept = messages.get(from..).unwrap_or_default().to_vec();
    let report = CompactionReport { text: "shorter".to_owned(), ..CompactionReport::default() };
    Ok(match dice.below(10) {
        0 => return Err("the transformer failed".to_owned()),
        1..=3 => Transform::View(kept),
        4 => Transform::Replace { messages: kept, report: None },
        5 => {
            let summary = std::iter::once(AgentMessage::user("summary"));
            Transform::Replace { messages: summary.chain(kept).collect(), report: Some(report) }
        }
        _ => Transform::Replace { messages: kept, report: Some(report) },
    })
}

pub(super) fn compaction(dice: &Dice, messages: &[AgentMessage]) -> Option<Result<Compaction, String>> {
    match dice.below(4) {
        0 => None,
        1 => Some(Err("no summary".to_owned())),
        _ => {
            let kept = messages.iter().rposition(|message| matches!(message, AgentMessage::User(_)));
            let messages = messages.get(kept.unwrap_or(0)..).unwrap_or_default().to_vec();
            Some(Ok(Compaction {
                messages,
                report: dice.chance(50).then(CompactionReport::default),
                ..Compaction::default()
            }))
        }
    }
}

pub(super) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).expect("JSON")
}

/// Returns a complete history, or an empty one.
pub(super) fn history(dice: &Dice) -> Vec<AgentMessage> {
    if dice.chance(60) {
        return Vec::new();
    }
    let call = ToolCallBlock {
        call_id: "a".to_owned(),
        tool_name: "t0".to_owned(),
        arguments: RawJson::empty_object(),
        metadata: None,
    };
    let asked = AssistantMessage {
        content: vec![ContentBlock::text("let me see"), ContentBlock::ToolCall(call)],
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: MessageStopReason::ToolUse,
        error: None,
        timestamp: 1,
        id: None,
        foreign: None,
    };
    let result = turnwheel::message::ToolResultMessage {
        call_id: "a".to_owned(),
        tool_name: "t0".to_owned(),
        content: vec![ContentBlock::text("seen")],
        details: None,
        is_error: false,
        cause: None,
        timestamp: 1,
        foreign: None,
    };
    vec![AgentMessage::user("before"), asked.into(), result.into()]
}

/// The name of a tool without an implementation.
pub(super) const ELSEWHERE: &str = "elsewhere";

/// A tool whose calls somebody else answers, in some worlds.
fn elsewhere(aside: &Dice) -> Option<ToolSpec> {
    let mut spec = ToolSpec::new(ELSEWHERE, "", raw("{\"type\":\"object\"}"));
    spec.is_external = true;
    spec.timeout_ms = aside.chance(30).then_some(50);
    if aside.chance(20) {
        spec.requires_approval = ApprovalNeed::Always;
    }
    aside.chance(40).then_some(spec)
}

struct NoModel;

impl StreamFn for NoModel {
    fn stream(
        &self,
        _: ModelRequest,
        _: &AgentRunContext,
        _: turnwheel::cancel::CancelToken,
    ) -> futures::stream::LocalBoxStream<'static, E> {
        Box::pin(futures::stream::empty())
    }
}

struct Impatient(Dice);

impl RetryStrategy for Impatient {
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        if self.0.chance(10) {
            return RetryVerdict::StopNaming(90_000);
        }
        RetryConfig::default().delay(error, attempt, random)
    }
}

pub(super) fn rules(dice: &Dice) -> Rules {
    let aside = dice.aside();
    let window = aside.chance(25).then(|| u64::try_from(aside.below(60)).unwrap_or(0));
    let model = |id: &str, supports_tools| Model {
        provider: "p".into(),
        id: id.into(),
        supports_tools,
        context_window: window,
        number: 0,
        stream_fn: Rc::new(NoModel),
    };
    let mut config = AgentLoopConfig::new(model("m", true), Rc::new(Clock::default()));
    let spare = (0..dice.below(3)).map(|n| model(&format!("spare-{n}"), dice.chance(80)));
    config.set_models(std::iter::once(model("m", dice.chance(95))).chain(spare).collect());
    let mut rules = config.rules;
    rules.prepares_turns = aside.chance(20);
    let tools = ["t0", "asks", "fatal", "slow", "denied"].map(|name| {
        let mut spec = ToolSpec::new(name, "", raw("{\"type\":\"object\"}"));
        spec.fatal = name == "fatal";
        spec.idempotent = name == "slow";
        spec.priority = i32::try_from(dice.below(3)).unwrap_or(0);
        spec.timeout_ms = (name == "slow").then_some(50);
        spec.max_result_bytes = dice.chance(20).then_some(3);
        if name == "asks" {
            spec.requires_approval = ApprovalNeed::Always;
        }
        if name == "slow" && dice.chance(50) {
            spec.requires_approval = ApprovalNeed::Depends(Rc::new(|_, _| Err("undecided".to_owned())));
        }
        spec
    });
    rules.tools = tools.into_iter().chain(elsewhere(&aside)).collect();
    rules.schemas = rules.tools.iter().map(|spec| spec.schema.clone()).collect();
    rules.max_turns = Some(u32::try_from(1 + dice.below(6)).unwrap_or(1));
    rules.retry = Rc::new(Impatient(dice.clone()));
    rules.approval.mode = *dice.pick(&[ApprovalMode::Smart, ApprovalMode::Enabled, ApprovalMode::Bypassed]);
    use turnwheel::approval::ToolApprovalAction as A;
    let denied = BTreeMap::from([
        ("denied".to_owned(), A::Deny),
        ("t0".to_owned(), *dice.pick(&[A::Approve, A::Ask])),
    ]);
    rules.approval.policy = Some(ToolApprovalPolicy::Custom {
        rules: denied.into_iter().collect(),
        default: *dice.pick(&[A::Approve, A::Ask, A::Deny]),
    });
    if dice.chance(50) {
        // Without rules nothing is denied by name.
        rules.approval.policy = None;
        rules.tools = rules.tools.iter().filter(|spec| &*spec.schema.name != "denied").cloned().collect();
        rules.schemas = rules.tools.iter().map(|spec| spec.schema.clone()).collect();
    }
    rules.has_approver = dice.chance(60);
    rules.gate = *dice.pick(&[ApprovalGate::Batch, ApprovalGate::Prefix]);
    rules.tool_execution = execution(dice);
    rules.max_concurrent_tools = dice.chance(30).then(|| 1 + dice.below(2));
    rules.steering = SteeringRules {
        when: *dice.pick(&SteeringTime::ALL),
        in_flight: *dice.pick(&[InFlight::Cancel, InFlight::Finish]),
        delivery: *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]),
        before_first_call: dice.chance(20),
    };
    rules.follow_up = *dice.pick(&[QueueMode::All, QueueMode::OneAtATime]);
    let some = |ms: u64| dice.chance(15).then_some(ms);
    rules.timeouts =
        Timeouts { first_chunk: some(100), chunk: some(50), tool: some(60), total: some(2_000), model: None };
    rules.max_recoveries_per_turn = u32::try_from(dice.below(3)).unwrap_or(0);
    rules.include_requests = dice.chance(20);
    rules.output = dice.chance(15).then(|| {
        let schemas = ["object", "number"].map(|kind| raw(&format!("{{\"type\":\"{kind}\"}}")));
        dice.pick(&schemas).clone()
    });
    rules.output_retries = 1;
    rules.cache = dice.chance(20).then(|| CacheHints::new(500, 3, 2));
    rules.agent_name = "me".into();
    if dice.chance(30) {
        rules.hooks = HookStages {
            before_inference: dice.chance(50),
            after_inference: dice.chance(50),
            before_tool_execution: dice.chance(50),
            after_tool_execution: dice.chance(50),
            on_error: dice.chance(50),
        };
    }
    rules.budget = budget(&aside);
    add_functions(dice, &mut rules);
    rules
}

pub(super) fn budget(dice: &Dice) -> Option<Budget> {
    if !dice.chance(40) {
        return None;
    }
    let some = |most| dice.chance(40).then(|| u64::try_from(dice.below(most)).unwrap_or(0));
    let on_exceed = *dice.pick(&[OnExceed::Stop, OnExceed::WrapUp, OnExceed::Ask]);
    Some(Budget {
        tokens: some(120),
        tool_calls: some(5),
        turns: some(5),
        ms: some(3_000),
        on_exceed,
        ..Budget::default()
    })
}

fn execution(dice: &Dice) -> ToolExecutionPolicy {
    let dice = dice.clone();
    match dice.below(4) {
        0 => ToolExecutionPolicy::Concurrent,
        1 => ToolExecutionPolicy::Sequential,
        2 => ToolExecutionPolicy::Priority,
        _ => ToolExecutionPolicy::Custom(Rc::new(move |calls, _| match dice.below(5) {
            0 => Err("no idea".to_owned()),
            1 => Ok(vec![vec![0], vec![0]]),
            2 => Ok(vec![(0..calls.len()).rev().collect()]),
            _ => Ok((0..calls.len()).map(|at| vec![at]).collect()),
        })),
    }
}

fn add_functions(dice: &Dice, rules: &mut Rules) {
    if dice.chance(30) {
        let dice = dice.clone();
        rules.validator =
            Some(Rc::new(
                move |_, _, _| if dice.chance(15) { Err("does not fit".to_owned()) } else { Ok(()) },
            ));
    }
    if dice.chance(20) {
        let dice = dice.clone();
        rules.dynamic_system_prompt = Some(Rc::new(move |_| match dice.below(12) {
            0 => Err("no prompt".to_owned()),
            1 => Ok(String::new()),
            _ => Ok("now".to_owned()),
        }));
    }
    if dice.chance(20) {
        let (dice, seen) = (dice.clone(), RefCell::new(BTreeSet::new()));
        rules.convert_to_llm = Some(Rc::new(move |message, _| {
            if dice.chance(1) {
                return Err("cannot convert".to_owned());
            }
            let _ = seen.borrow_mut().insert(0);
            Ok(message.as_llm())
        }));
    }
    if dice.chance(20) {
        let dice = dice.clone();
        let transformer =
            move |messages: &[AgentMessage], overflow: bool| transform(&dice, messages, overflow);
        rules.transformers.push(Rc::new(transformer));
    }
    if dice.chance(20) {
        let text = |_: turnwheel::message::ToolResultCause,
                    _: &ToolCallBlock,
                    _: &str,
                    _: &turnwheel::policy::RunInfo<'_>| Some("mine".to_owned());
        rules.result_texts = Some(Rc::new(text));
    }
    if dice.chance(40) {
        add_policies(dice, rules);
    }
}

fn add_policies(dice: &Dice, rules: &mut Rules) {
    let between = |dice: &Dice| {
        let dice = dice.clone();
        move |_: &PolicyContext<'_>| verdict(&dice)
    };
    rules.pre_turn.push(Rc::new(between(dice)));
    rules.post_loop.push(Rc::new(between(dice)));
    let judge = dice.clone();
    rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
        if judge.chance(10) {
            let mut other = (**turn.message).clone();
            if judge.chance(50) {
                other.content.retain(|block| matches!(block, ContentBlock::ToolCall(_)));
            } else {
                other.content.clear();
            }
            return Ok(Verdict::Inject(vec![other.into()]));
        }
        verdict(&judge)
    }));
    let judge = dice.clone();
    rules.pre_dispatch.push(Rc::new(move |call: &mut DispatchCall<'_>| {
        Ok(match judge.below(25) {
            0 => DispatchVerdict::Stop("enough".to_owned()),
            1 => DispatchVerdict::Skip("not this one".to_owned()),
            2 => DispatchVerdict::Inject(vec![AgentMessage::user("by the way")]),
            3 => {
                call.arguments = raw("{\"n\":3}");
                DispatchVerdict::Continue
            }
            4 => return Err("no policy".to_owned()),
            _ => DispatchVerdict::Continue,
        })
    }));
}

fn verdict(dice: &Dice) -> Result<Verdict, String> {
    Ok(match dice.below(25) {
        0 => Verdict::Stop("enough".to_owned()),
        1 => Verdict::Inject(vec![AgentMessage::user("remember")]),
        2 => return Err("no policy".to_owned()),
        _ => Verdict::Continue,
    })
}
