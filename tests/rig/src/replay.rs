//! The trace of a scenario, made from its tape: there is no script here, no model and no tool.

use serde_json::{Value, json};
use turnwheel::AgentEvent;
use turnwheel::json::{FromJson, ToJson, Value as Json};
use turnwheel::machine::Effect;
use turnwheel::message::AgentMessage;
use turnwheel::tape::{Divergence, Player, RuleAnswer, Seen, Tape};

use crate::clock::BEGINNING;
use crate::play::{RunResult, outcome};
use crate::scenario::{Driver, Scenario, Slot};
use crate::trace::{self, Log};

/// What the host of a scenario notes at the beginning of a tape: what a trace shows and no machine knows.
pub fn description(scenario: &Scenario, initial: &[AgentMessage]) -> Value {
    let slot = |slot: Slot| match slot {
        Slot::PreTurn => "preTurn",
        Slot::PreDispatch => "preDispatch",
        Slot::PostTurn => "postTurn",
        Slot::PostLoop => "postLoop",
    };
    let policies = scenario
        .policies
        .iter()
        .map(|policy| json!({ "name": policy.name, "slot": slot(policy.slot), "tools": policy.tools }));
    let initial: Vec<Value> = initial.iter().map(|message| trace::value_of(&message.to_raw())).collect();
    json!({
        "scenario": scenario.name,
        "divergences": scenario.divergences,
        "tells_time": scenario.driver == Driver::Loop,
        "metrics": scenario.options.metrics,
        "policies": policies.collect::<Vec<_>>(),
        "async_transform": scenario.async_transform.is_some(),
        "initial": initial,
    })
}

/// Returns the trace of the scenario that a tape was made of.
///
/// # Errors
/// If the replay differs from the tape.
pub fn trace_of(tape: &Tape) -> Result<Value, Divergence> {
    let mut world = Replayed::default();
    // The host may have described it after the run began.
    let mut player = Player::new(tape);
    while let Some(seen) = player.advance()? {
        if let Seen::Note(note) = &seen
            && note.starts_with("{\"scenario\"")
        {
            world.note(serde_json::from_str(note).unwrap_or_default());
        }
    }
    let mut player = Player::new(tape).watching();
    while let Some(seen) = player.advance()? {
        world.take(&seen, &player);
    }
    let divergences: Vec<String> =
        serde_json::from_value(world.about["divergences"].take()).unwrap_or_default();
    let name = world.about["scenario"].as_str().unwrap_or_default().to_owned();
    Ok(world.log.trace(&name, &divergences, &world.history))
}

/// What a tape shows of a scenario.
#[derive(Default)]
struct Replayed {
    log: Log,
    /// What the host has noted.
    about: Value,
    history: Vec<AgentMessage>,
    end: Option<RunResult>,
    tools: Vec<(String, String)>,
    /// The messages that the asynchronous transformer was given.
    given: usize,
    /// The policies that a host with one function for all of a slot has asked, by slot.
    asked: Vec<(String, String)>,
}

impl Replayed {
    fn take(&mut self, seen: &Seen, player: &Player) {
        let t = (player.now() - BEGINNING) / 10 * 10;
        match seen {
            Seen::Event(event) => self.event(event, t, player),
            Seen::Start { effect, .. } => self.effect(effect, t, player),
            Seen::Reply { reply, .. } => self.reply(&reply.to_value()),
            Seen::Rule(answer) => self.rule(answer),
            Seen::Note(note) if note.starts_with("{\"scenario\"") => {}
            Seen::Note(note) => self.note(serde_json::from_str(note).unwrap_or_default()),
            Seen::Run(_) | Seen::Input(_) | Seen::Cancel { .. } | Seen::Answer { .. } => {}
        }
        if let Some(state) = player.state()
            && !matches!(seen, Seen::Note(_))
        {
            self.history = state.messages().to_vec();
        }
    }

    fn event(&mut self, event: &AgentEvent, t: u64, player: &Player) {
        let t = (self.about["tells_time"] == true).then_some(t);
        self.log.event(event, t, self.about["metrics"] == true);
        match event {
            AgentEvent::ToolExecutionStart { call_id, tool_name, .. } => {
                self.tools.push((call_id.clone(), tool_name.clone()));
            }
            AgentEvent::AgentEnd { messages, usage, error, .. } => {
                self.end = Some(RunResult {
                    messages: messages.clone(),
                    usage: *usage,
                    output: player.state().and_then(|state| state.output().cloned()),
                    error: error.clone().map(|error| turnwheel::AgentError::from(error).to_string()),
                });
            }
            _ => {}
        }
    }

    fn effect(&mut self, effect: &Effect, t: u64, player: &Player) {
        match effect {
            Effect::Infer { request, .. } => {
                let tools: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
                let n = self.log.model_calls.len() + 1;
                self.log.model_calls.push(json!({
                    "n": n,
                    "t": t,
                    "model": *request.model,
                    "system_prompt": *request.system_prompt,
                    "messages": trace::request_messages(&request.messages),
                    "tools": tools,
                }));
            }
            Effect::Execute { call_id, arguments, .. } => {
                let name = self.tools.iter().rev().find(|(id, _)| **id == **call_id);
                let name = name.map(|(_, name)| name.clone()).unwrap_or_default();
                let arguments = trace::sorted(&trace::value_of(arguments));
                let execution = json!({ "id": **call_id, "name": name, "arguments": arguments, "t": t });
                self.log.executions.push(execution);
            }
            Effect::Approve(request) => self.log.approvals.push(json!({
                "id": request.call_id,
                "name": request.tool_name,
                "arguments": trace::value_of(&request.arguments),
                "requires_approval": request.requires_approval,
            })),
            Effect::Prepare { overflow } if self.about["async_transform"] == true => {
                self.given = player.messages().len();
                let given = self.given;
                self.log
                    .transforms
                    .push(json!({ "kind": "async", "overflow": overflow, "before": given, "after": given }));
            }
            _ => {}
        }
    }

    fn reply(&mut self, reply: &Json) {
        if reply.text_at("kind") == Some("prepared")
            && self.about["async_transform"] == true
            && let Some(last) = self.log.transforms.iter_mut().rev().find(|entry| entry["kind"] == "async")
        {
            last["after"] = after(reply, self.given).into();
        }
    }

    fn rule(&mut self, answer: &RuleAnswer) {
        let RuleAnswer { rule, place, asked, answer } = answer;
        let asked = asked.to_value();
        if *rule == "transformContext" {
            let before = count(&asked, "count");
            self.log.transforms.push(json!({
                "kind": "sync",
                "overflow": asked.flag_at("overflow"),
                "before": before,
                "after": after(&answer.to_value(), before),
            }));
        }
        let policies = self.about["policies"].as_array().cloned().unwrap_or_default();
        let of_slot = policies.iter().filter(|policy| policy["slot"] == **rule);
        let noted: Vec<String> =
            self.asked.extract_if(.., |(slot, _)| slot == rule).map(|(_, name)| name).collect();
        let asked_policies: Vec<&Value> = if noted.is_empty() {
            of_slot.skip(*place).take(1).collect()
        } else {
            let named = |name: &String| of_slot.clone().find(|policy| policy["name"] == name.as_str());
            noted.iter().filter_map(named).collect()
        };
        for policy in asked_policies {
            self.log.policy_log.extend(policy_entry(policy, &asked));
        }
    }

    fn note(&mut self, note: Value) {
        if note.get("scenario").is_some() {
            let initial = Json::parse(&note["initial"].to_string()).unwrap_or_default();
            self.history = Vec::from_json(&initial).unwrap_or_default();
            self.about = note;
        } else if let Some(call) = note["ran"].as_str() {
            let result = self.end.take();
            self.log.outcomes.push(result.map_or_else(
                || json!({ "call": call, "error": "no result" }),
                |result| outcome(call, &result),
            ));
        } else if let Some(did) = note.get("did") {
            if did["call"] == "reset" {
                self.history.clear();
            }
            self.log.outcomes.push(did.clone());
        } else if let Some(key) = note.get("key")
            && let Some(call) = self.log.model_calls.last_mut()
        {
            call["api_key"] = key.clone();
        } else if let (Some(name), Some(slot)) = (note["policy"].as_str(), note["slot"].as_str()) {
            self.asked.push((slot.to_owned(), name.to_owned()));
        } else if note.get("hangs").is_some() {
            self.log.events.push(json!({ "type": "oracle_hang" }));
        }
    }
}

/// How many messages there are after a transformer.
fn after(answer: &Json, before: usize) -> usize {
    let Some(messages) = answer.get("messages").and_then(Json::as_array) else { return before };
    messages
        .iter()
        .map(|item| match item.as_array() {
            Some([from, to]) => {
                usize::try_from(to.as_u64().unwrap_or(0) - from.as_u64().unwrap_or(0)).unwrap_or(0)
            }
            _ => 1,
        })
        .sum()
}

fn count(asked: &Json, key: &str) -> usize {
    asked.number_at(key).and_then(|n| usize::try_from(n).ok()).unwrap_or_default()
}

/// What a policy of a scenario writes down when it is asked, unless the call is of a tool that it does not look at.
fn policy_entry(policy: &Value, asked: &Json) -> Option<Value> {
    let number = |key: &str| asked.number_at(key).unwrap_or_default();
    if policy["slot"] == "preDispatch" {
        let tool = asked.text_at("toolName").unwrap_or_default();
        let tools = policy["tools"].as_array().cloned().unwrap_or_default();
        if !tools.is_empty() && !tools.iter().any(|name| name == tool) {
            return None;
        }
        return Some(json!({
            "tool": tool,
            "id": asked.text_at("callId"),
            "arguments": trace::value_of(&asked.get("arguments").map(ToJson::to_raw)?),
            "policy": policy["name"],
            "slot": "pre_dispatch",
        }));
    }
    let messages = asked.get("newMessages").map(Vec::from_json).and_then(Result::ok).unwrap_or_default();
    let mut entry = json!({
        "turn_index": number("turnIndex"),
        "message_count": number("messageCount"),
        "usage_total": asked.get("usage").and_then(|usage| usage.number_at("total")).unwrap_or_default(),
        "new_messages": trace::messages(&messages),
    });
    if policy["slot"] == "postTurn" {
        let message = asked.get("message").map(AgentMessage::from_json).and_then(Result::ok);
        if let Some(AgentMessage::Assistant(message)) = message {
            entry["text"] = message.text().into();
            entry["stop_reason"] = message.stop_reason.as_str().into();
        }
        entry["tool_result_count"] = asked.list_at("toolResults").len().into();
        entry["context_count"] = number("contextCount").into();
    }
    entry["policy"] = policy["name"].clone();
    entry["slot"] = match policy["slot"].as_str() {
        Some("preTurn") => "pre_turn",
        Some("postTurn") => "post_turn",
        _ => "post_loop",
    }
    .into();
    Some(entry)
}
