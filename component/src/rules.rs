//! Rules that must answer inside a step. The host answers them as any callback; until it has, the step is taken back
//! (`rollback`), and made again with the answer.

use std::cell::Cell;
use std::rc::Rc;

use turnwheel::config::Rules;
use turnwheel::error::ErrorInfo;
use turnwheel::event::CompactionReport;
use turnwheel::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, write_list};
use turnwheel::message::{AgentMessage, LlmMessage, ToolCallBlock};
use turnwheel::policy::{
    DispatchCall, DispatchVerdict, PolicyContext, PostTurn, RunInfo, Transform, Verdict,
};
use turnwheel::retry::{RetryStrategy, RetryVerdict};
use turnwheel::tool::{ApprovalNeed, ToolSpec};

use crate::desk::{Desk, object};

/// How many messages, from the start, the provider has cached.
pub(crate) type Cached = Rc<Cell<usize>>;

/// Sets the rules that the host answers: functions by their names, and policies by their number.
pub(crate) fn install(rules: &mut Rules, desk: &Rc<Desk>, cached: &Cached, has: &dyn Fn(&str) -> bool) {
    let ask = |name: &'static str| {
        let desk = desk.clone();
        move |argument: &str| desk.ask(name, argument)
    };
    if has("transformContext") {
        let (ask, cached) = (ask("transformContext"), cached.clone());
        rules.transformers.push(Rc::new(move |messages: &[AgentMessage], overflow: bool| {
            read_transform(&ask(&transform_input(messages, overflow, &cached))?)
        }));
    }
    if has("dynamicSystemPrompt") {
        let ask = ask("dynamicSystemPrompt");
        rules.dynamic_system_prompt = Some(Rc::new(move |run: &RunInfo<'_>| {
            Ok(ask(&about(run))?.as_str().unwrap_or_default().to_owned())
        }));
    }
    if has("convertToLlm") {
        let ask = ask("convertToLlm");
        rules.convert_to_llm =
            Some(Rc::new(move |message: &AgentMessage, _: &RunInfo<'_>| match ask(&message.to_json())? {
                Value::Null => Ok(None),
                other => LlmMessage::from_json(&other).map(Some),
            }));
    }
    if has("resultTexts") {
        let ask = ask("resultTexts");
        rules.result_texts =
            Some(Rc::new(move |cause, call: &ToolCallBlock, detail: &str, _: &RunInfo<'_>| {
                let argument = object(|out| {
                    out.field("cause", cause.as_str()).field("call", call).field("detail", detail);
                });
                ask(&argument).ok()?.as_str().map(str::to_owned)
            }));
    }
    if has("validate") {
        let ask = ask("validate");
        rules.validator = Some(Rc::new(move |spec: &ToolSpec, call: &ToolCallBlock, _: &RunInfo<'_>| {
            let argument = object(|out| {
                out.field("call", call).field("parameters", &spec.schema.parameters);
            });
            ask(&argument)?.as_str().map_or(Ok(()), |wrong| Err(wrong.to_owned()))
        }));
    }
    if has("retry") {
        rules.retry = Rc::new(HostRetry(desk.clone()));
    }
}

/// Sets so many policies of each slot. Each is asked by itself, because the engine combines their verdicts.
pub(crate) fn install_policies(rules: &mut Rules, desk: &Rc<Desk>, count: &dyn Fn(&str) -> u64) {
    for policy in 0..count("preTurn") {
        let desk = desk.clone();
        rules.pre_turn.push(Rc::new(move |context: &PolicyContext<'_>| {
            verdict(&desk.ask("policies.preTurn", &policy_input(policy, context, &|_| {}))?)
        }));
    }
    for policy in 0..count("preDispatch") {
        let desk = desk.clone();
        rules
            .pre_dispatch
            .push(Rc::new(move |call: &mut DispatchCall<'_>| pre_dispatch(&desk, policy, call)));
    }
    for policy in 0..count("postTurn") {
        let desk = desk.clone();
        rules.post_turn.push(Rc::new(move |turn: &PostTurn<'_>| {
            let input = policy_input(policy, &turn.context, &|out| {
                out.field("message", turn.message).field("toolResults", turn.tool_results);
                out.field("messages", turn.messages);
            });
            verdict(&desk.ask("policies.postTurn", &input)?)
        }));
    }
    for policy in 0..count("postLoop") {
        let desk = desk.clone();
        rules.post_loop.push(Rc::new(move |context: &PolicyContext<'_>| {
            verdict(&desk.ask("policies.postLoop", &policy_input(policy, context, &|_| {}))?)
        }));
    }
}

fn about(run: &RunInfo<'_>) -> String {
    object(|out| {
        out.field("runId", run.run_id).field("sessionId", run.session_id).field("turnIndex", &run.turn_index);
    })
}

fn policy_input(policy: u64, context: &PolicyContext<'_>, more: &dyn Fn(&mut ObjectWriter<'_>)) -> String {
    object(|out| {
        out.field("policy", &policy).field("runId", context.run_id).field("sessionId", context.session_id);
        out.field("turnIndex", &context.turn_index).field("usage", context.usage);
        out.field("messageCount", &count(context.message_count)).field("newMessages", context.new_messages);
        out.field("overflowSignal", &context.overflow_signal).field("state", context.state);
        more(out);
    })
}

/// Reads `null`, `{ stop: reason }` or `{ inject: messages }`.
fn verdict(answer: &Value) -> Result<Verdict, String> {
    if let Some(reason) = answer.get("stop") {
        return Ok(Verdict::Stop(reason.as_str().unwrap_or_default().to_owned()));
    }
    answer.get("inject").map_or(Ok(Verdict::Continue), |list| Vec::from_json(list).map(Verdict::Inject))
}

/// Reads a verdict, or `{ skip: text }`, each of them perhaps with `arguments`.
fn pre_dispatch(desk: &Desk, policy: u64, call: &mut DispatchCall<'_>) -> Result<DispatchVerdict, String> {
    let input = object(|out| {
        out.field("policy", &policy).field("runId", call.run_id).field("callId", call.call_id);
        out.field("toolName", call.tool_name).field("arguments", &call.arguments);
        out.field("state", call.state);
    });
    let answer = desk.ask("policies.preDispatch", &input)?;
    if let Some(arguments) = answer.get("arguments") {
        call.arguments = arguments.to_raw();
    }
    if let Some(text) = answer.text_at("skip") {
        return Ok(DispatchVerdict::Skip(text.to_owned()));
    }
    Ok(match verdict(&answer)? {
        Verdict::Continue => DispatchVerdict::Continue,
        Verdict::Stop(reason) => DispatchVerdict::Stop(reason),
        Verdict::Inject(messages) => DispatchVerdict::Inject(messages),
    })
}

/// The host judges failed calls: it gives a number of milliseconds, or anything else to stop.
struct HostRetry(Rc<Desk>);

impl RetryStrategy for HostRetry {
    fn delay(&self, error: &ErrorInfo, attempt: u32, _: u32) -> RetryVerdict {
        let argument = object(|out| {
            out.field("error", error).field("attempt", &attempt);
        });
        let answer = self.0.ask("retry", &argument).unwrap_or_default();
        answer.as_u64().map_or(RetryVerdict::Stop, RetryVerdict::Wait)
    }
}

/// The host divides the calls of a batch into groups.
pub(crate) fn partition(
    desk: Rc<Desk>,
) -> impl Fn(&[ToolCallBlock], &RunInfo<'_>) -> Result<Vec<Vec<usize>>, String> {
    const WRONG: &str = "`toolExecution` must give a list of lists of indices";
    move |calls, _| {
        let mut argument = String::new();
        write_list(calls, &mut argument);
        let answer = desk.ask("toolExecution", &argument)?;
        let index = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or(WRONG);
        let group = |value: &Value| value.as_array().ok_or(WRONG)?.iter().map(index).collect();
        Ok(answer.as_array().ok_or(WRONG)?.iter().map(group).collect::<Result<_, &str>>()?)
    }
}

/// The host says whether a call of a tool needs approval.
pub(crate) fn depends(desk: Rc<Desk>, tool: &str) -> ApprovalNeed {
    let tool = tool.to_owned();
    ApprovalNeed::Depends(Rc::new(move |arguments: &RawJson, _: &RunInfo<'_>| {
        let argument = object(|out| {
            out.field("tool", &tool).field("arguments", arguments);
        });
        Ok(desk.ask("requiresApproval", &argument)?.as_bool().unwrap_or(true))
    }))
}

pub(crate) fn transform_input(messages: &[AgentMessage], overflow: bool, cached: &Cached) -> String {
    object(|out| {
        out.field("messages", messages).field("overflow", &overflow);
        out.field("cachedMessages", &count(cached.get()));
    })
}

/// Reads `null`, `{ view, report? }` for this request alone, or `{ messages, report? }` in place of the history.
pub(crate) fn read_transform(answer: &Value) -> Result<Transform, String> {
    let report = answer.get("report").filter(|report| !report.is_null()).map(read_report);
    if let Some(view) = answer.get("view") {
        let view = read_messages(view)?;
        return Ok(match report {
            Some(report) => Transform::Reduced { view, report },
            None => Transform::View(view),
        });
    }
    let Some(messages) = answer.get("messages") else { return Ok(Transform::Unchanged) };
    Ok(Transform::Replace { messages: read_messages(messages)?, report })
}

pub(crate) fn read_messages(list: &Value) -> Result<Vec<AgentMessage>, String> {
    list.as_array().ok_or("a list of messages was expected")?;
    Vec::from_json(list)
}

pub(crate) fn read_report(value: &Value) -> CompactionReport {
    let whole = |key: &str| value.number_at(key).unwrap_or(0);
    CompactionReport {
        text: value.text_at("text").unwrap_or_default().to_owned(),
        dropped_count: whole("droppedCount"),
        tokens_before: whole("tokensBefore"),
        tokens_after: whole("tokensAfter"),
        overflow: value.flag_at("overflow").unwrap_or(false),
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
