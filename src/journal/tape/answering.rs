//! The rules of a run that is lived again: each answers what the tape says it answered.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value};
use crate::host::config::{Rules, ToolExecutionPolicy};
use crate::host::tool::{ApprovalNeed, ToolSpec};
use crate::rules::policy::RunInfo;
use crate::rules::policy::{
    ContextTransformer, DispatchCall, DispatchVerdict, PolicyContext, PostLoopPolicy, PostTurn,
    PostTurnPolicy, PreDispatchPolicy, PreTurnPolicy, Transform, Verdict,
};
use crate::rules::retry::{RetryStrategy, RetryVerdict};
use crate::words::error::ErrorInfo;
use crate::words::message::{AgentMessage, ToolCallBlock, ToolResultCause};

use super::input::read_transform;
use super::messages::read_shown;
use super::plain::has_groups;

/// An answer of a rule, and what it was asked.
#[derive(Clone, Debug)]
pub struct RuleAnswer {
    /// Which rule was asked, such as `preTurn`.
    pub rule: &'static str,
    /// Which of its kind, counted from 0.
    pub place: usize,
    /// What it was asked.
    pub asked: RawJson,
    /// What it answered.
    pub answer: RawJson,
}

/// The answers of one step.
#[derive(Default)]
pub(super) struct Answers {
    waiting: RefCell<VecDeque<Value>>,
    /// The first question to which the tape has no answer: what the tape has there, and what was asked.
    missed: RefCell<Option<(String, String)>>,
    /// Whether anybody wants to know what was asked.
    is_watched: Cell<bool>,
    given: RefCell<Vec<RuleAnswer>>,
}

impl Answers {
    pub(super) fn watch(&self) {
        self.is_watched.set(true);
    }

    /// Puts the lines with the answers of the next step here.
    pub(super) fn expect(&self, lines: impl IntoIterator<Item = Value>) {
        self.waiting.borrow_mut().extend(lines);
    }

    /// What was asked and answered since the last look.
    pub(super) fn take_given(&self) -> Vec<RuleAnswer> {
        self.given.take()
    }

    /// Returns what is wrong after a step, if anything is: what was expected, and what came.
    pub(super) fn fault(&self) -> Option<(String, String)> {
        let missed = self.missed.take();
        let left = self.waiting.borrow_mut().drain(..).next();
        missed.or_else(|| {
            let expected = ["a question to ", left?.text_at("ask").unwrap_or_default()].concat();
            Some((expected, "none".to_owned()))
        })
    }

    /// Takes the answer to a question.
    fn take(&self, rule: &'static str, place: usize, asked: impl FnOnce(&mut ObjectWriter<'_>)) -> Value {
        let line = self.waiting.borrow_mut().pop_front();
        let is_it = |line: &Value| {
            let of = line.number_at("of").unwrap_or_default();
            line.text_at("ask") == Some(rule) && usize::try_from(of) == Ok(place)
        };
        match line {
            Some(mut line) if is_it(&line) => {
                let answer = line.take("answer");
                if self.is_watched.get() {
                    let mut question = String::new();
                    let mut object = ObjectWriter::new(&mut question);
                    asked(&mut object);
                    object.end();
                    let asked = RawJson::parse(&question).unwrap_or_else(|_| RawJson::null());
                    let answer = answer.to_raw();
                    self.given.borrow_mut().push(RuleAnswer { rule, place, asked, answer });
                }
                answer
            }
            other => {
                let expected = match &other {
                    Some(line) => ["a question to ", line.text_at("ask").unwrap_or_default()].concat(),
                    None => "no more questions to rules".to_owned(),
                };
                let got = ["a question to ", rule].concat();
                self.missed.borrow_mut().get_or_insert((expected, got));
                Value::Null
            }
        }
    }
}

/// Puts rules that answer from the tape where it had functions. `values` are the values of the rules on the tape.
pub(super) fn answer(rules: &mut Rules, values: &Value, answers: &Rc<Answers>) {
    let functions = values.get("functions").cloned().unwrap_or_default();
    let count = |kind: &str| {
        let n = functions.number_at(kind).unwrap_or_default();
        0..usize::try_from(n).unwrap_or_default()
    };
    answer_chance(rules, answers);
    rules.pre_turn = count("preTurn").map(|place| between_turns("preTurn", place, answers)).collect();
    rules.post_loop = count("postLoop").map(|place| after_loop(place, answers)).collect();
    rules.post_turn = count("postTurn").map(|place| after_turn(place, answers)).collect();
    rules.pre_dispatch = count("preDispatch").map(|place| before_call(place, answers)).collect();
    rules.transformers = count("transformContext").map(|place| transformer(place, answers)).collect();
    let has = |kind: &str| !count(kind).is_empty();
    let own = answers.clone();
    rules.convert_to_llm =
        has("convertToLlm").then_some(Rc::new(move |message: &AgentMessage, _: &RunInfo<'_>| {
            let answer = own.take("convertToLlm", 0, |asked| {
                asked.field("message", message);
            });
            failed(&answer)?;
            read_shown(message, &answer)
        }));
    let own = answers.clone();
    rules.dynamic_system_prompt = has("dynamicSystemPrompt").then_some(Rc::new(move |_: &RunInfo<'_>| {
        let answer = own.take("dynamicSystemPrompt", 0, |_| {});
        failed(&answer)?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }));
    answer_tools(rules, values, answers, &has);
}

/// What the host says of calls: whether their arguments fit, what they are told, how they run, who is asked.
fn answer_tools(rules: &mut Rules, values: &Value, answers: &Rc<Answers>, has: &dyn Fn(&str) -> bool) {
    let own = answers.clone();
    rules.validator =
        has("validator").then_some(Rc::new(move |_: &ToolSpec, call: &ToolCallBlock, _: &RunInfo<'_>| {
            failed(&own.take("validator", 0, |asked| {
                asked.field("call", call);
            }))
        }));
    let own = answers.clone();
    rules.result_texts = has("resultTexts").then_some(Rc::new(
        move |cause: ToolResultCause, call: &ToolCallBlock, detail: &str, _: &RunInfo<'_>| {
            let ask = |asked: &mut ObjectWriter<'_>| {
                asked.field("cause", cause.as_str()).field("call", call).field("detail", detail);
            };
            own.take("resultTexts", 0, ask).as_str().map(str::to_owned)
        },
    ));
    if has_groups(values) {
        let own = answers.clone();
        rules.tool_execution =
            ToolExecutionPolicy::Custom(Rc::new(move |calls: &[ToolCallBlock], _: &RunInfo<'_>| {
                let answer = own.take("toolExecution", 0, |asked| {
                    asked.field("calls", calls);
                });
                failed(&answer)?;
                let place = |place: &Value| usize::try_from(place.as_u64()?).ok();
                let groups = answer.as_array().unwrap_or_default().iter();
                Ok(groups
                    .map(|group| group.as_array().unwrap_or_default().iter().filter_map(place).collect())
                    .collect())
            }));
    }
    if rules.tools.iter().any(|tool| matches!(tool.requires_approval, ApprovalNeed::Depends(_))) {
        rules.tools =
            rules.tools.iter().enumerate().map(|(place, tool)| depends(tool, place, answers)).collect();
    }
}

fn answer_chance(rules: &mut Rules, answers: &Rc<Answers>) {
    let own = answers.clone();
    rules.random = Rc::new(move || {
        let answer = own.take("random", 0, |_| {});
        answer.as_u64().and_then(|bits| u32::try_from(bits).ok()).unwrap_or_default()
    });
    let own = answers.clone();
    rules.new_id = Rc::new(move || own.take("id", 0, |_| {}).as_str().unwrap_or_default().to_owned());
    rules.retry = Rc::new(Retry(answers.clone()));
}

/// The error that a rule gave, or the panic in it.
fn failed(answer: &Value) -> Result<(), String> {
    answer.owned_at("error").map_or(Ok(()), Err)
}

struct Retry(Rc<Answers>);

impl RetryStrategy for Retry {
    fn delay(&self, error: &ErrorInfo, attempt: u32, _: u32) -> RetryVerdict {
        let answer = self.0.take("retry", 0, |asked| {
            asked.field("error", error).field("attempt", &attempt);
        });
        match (answer.number_at("wait"), answer.number_at("asked")) {
            (Some(ms), _) => RetryVerdict::Wait(ms),
            (None, Some(ms)) => RetryVerdict::StopNaming(ms),
            (None, None) => RetryVerdict::Stop,
        }
    }
}

fn depends(tool: &ToolSpec, place: usize, answers: &Rc<Answers>) -> ToolSpec {
    let mut tool = tool.clone();
    if let ApprovalNeed::Depends(_) = &tool.requires_approval {
        let own = answers.clone();
        tool.requires_approval =
            ApprovalNeed::Depends(Rc::new(move |arguments: &RawJson, _: &RunInfo<'_>| {
                let answer = own.take("requiresApproval", place, |asked| {
                    asked.field("arguments", arguments);
                });
                failed(&answer)?;
                Ok(answer.as_bool().unwrap_or(true))
            }));
    }
    tool
}

fn write_context(context: &PolicyContext<'_>, asked: &mut ObjectWriter<'_>) {
    asked.field("turnIndex", &context.turn_index).field("usage", context.usage);
    asked.field("messageCount", &u64::try_from(context.message_count).unwrap_or(u64::MAX));
    asked.field("newMessages", context.new_messages).field("overflowSignal", &context.overflow_signal);
}

fn read_verdict(answer: &Value) -> Result<Verdict, String> {
    failed(answer)?;
    if let Some(reason) = answer.owned_at("stop") {
        return Ok(Verdict::Stop(reason));
    }
    match answer.get("inject") {
        Some(messages) => Ok(Verdict::Inject(Vec::from_json(messages)?)),
        None => Ok(Verdict::Continue),
    }
}

fn between_turns(rule: &'static str, place: usize, answers: &Rc<Answers>) -> Rc<dyn PreTurnPolicy> {
    let own = answers.clone();
    Rc::new(move |context: &PolicyContext<'_>| {
        read_verdict(&own.take(rule, place, |asked| write_context(context, asked)))
    })
}

fn after_loop(place: usize, answers: &Rc<Answers>) -> Rc<dyn PostLoopPolicy> {
    let own = answers.clone();
    Rc::new(move |context: &PolicyContext<'_>| {
        read_verdict(&own.take("postLoop", place, |asked| write_context(context, asked)))
    })
}

fn after_turn(place: usize, answers: &Rc<Answers>) -> Rc<dyn PostTurnPolicy> {
    let own = answers.clone();
    Rc::new(move |turn: &PostTurn<'_>| {
        read_verdict(&own.take("postTurn", place, |asked| {
            write_context(&turn.context, asked);
            asked.field("message", turn.message).field("toolResults", turn.tool_results);
            asked.field("contextCount", &u64::try_from(turn.messages.len()).unwrap_or(u64::MAX));
        }))
    })
}

fn before_call(place: usize, answers: &Rc<Answers>) -> Rc<dyn PreDispatchPolicy> {
    let own = answers.clone();
    Rc::new(move |call: &mut DispatchCall<'_>| {
        let answer = own.take("preDispatch", place, |asked| {
            asked.field("callId", call.call_id).field("toolName", call.tool_name);
            asked.field("arguments", &call.arguments);
        });
        if let Some(arguments) = answer.get("arguments") {
            call.arguments = arguments.to_raw();
        }
        if let Some(text) = answer.owned_at("skip") {
            return Ok(DispatchVerdict::Skip(text));
        }
        Ok(match read_verdict(&answer)? {
            Verdict::Continue => DispatchVerdict::Continue,
            Verdict::Stop(reason) => DispatchVerdict::Stop(reason),
            Verdict::Inject(messages) => DispatchVerdict::Inject(messages),
        })
    })
}

fn transformer(place: usize, answers: &Rc<Answers>) -> Rc<dyn ContextTransformer> {
    let own = answers.clone();
    Rc::new(move |messages: &[AgentMessage], overflow: bool| -> Result<Transform, String> {
        let answer = own.take("transformContext", place, |asked| {
            asked.field("overflow", &overflow);
            asked.field("count", &u64::try_from(messages.len()).unwrap_or(u64::MAX));
        });
        read_transform(messages, &answer)?
    })
}
