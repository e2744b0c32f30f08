//! Random scenarios, in the format of the files.

use serde_json::{Value, json};

use crate::dice::Dice;

/// Makes a scenario. It may wait for ever, so it must be played bounded.
pub fn scenario(dice: &Dice) -> Value {
    let calls = 1 + dice.below(5);
    let model: Vec<Value> = (0..calls).map(|_| model_call(dice)).collect();
    let mut tools: Vec<Value> = ["t", "u", "v"].iter().map(|name| tool(dice, name)).collect();
    if dice.chance(10) {
        tools.remove(0);
    }
    let mut scenario = json!({
        "name": "random",
        "driver": *dice.pick(&["loop", "loop", "agent"]),
        "system_prompt": "x",
        "prompt": if dice.chance(80) { json!("go") } else { json!(["go", "on"]) },
        "model": model,
        "tools": tools,
        "steering": queued(dice),
        "follow_up": queued(dice),
        "policies": policies(dice),
        "options": options(dice),
    });
    if dice.chance(30) {
        scenario["abort"] = json!({ "at": trigger(dice) });
    }
    if dice.chance(20) {
        scenario["initial_messages"] = json!([
            { "role": "user", "text": "q" },
            { "role": "assistant", "text": "a", "tool_calls": [{ "id": "c0", "name": "t", "arguments": {} }] },
            { "role": "tool_result", "tool_call_id": "c0", "text": "r" },
        ]);
        if dice.chance(30) {
            scenario["mode"] = "continue".into();
        }
    }
    if dice.chance(25) {
        scenario["fallback"] = json!([[model_call(dice), model_call(dice)]]);
    }
    if dice.chance(40) {
        scenario["approval"] = json!({ "default": decision(dice), "by_call": { "a": decision(dice) } });
    }
    for key in ["transform", "async_transform"] {
        if dice.chance(20) {
            scenario[key] = transform(dice);
        }
    }
    if scenario["driver"] == "agent" {
        scenario["then"] = (0..dice.below(4)).map(|_| then(dice)).collect();
        if dice.chance(20) {
            scenario["panicking_subscriber"] = dice.below(9).into();
        }
        if dice.chance(15) {
            scenario["structured_output"] = json!({ "type": "object" });
            scenario["options"]["structured_output_max_retries"] = dice.below(3).into();
        }
    }
    scenario
}

fn model_call(dice: &Dice) -> Value {
    let events: Vec<Value> = (0..dice.below(4)).map(|_| item(dice)).collect();
    match dice.below(12) {
        0 => json!({ "events": events, "no_terminal": true }),
        1 | 2 => {
            let kinds = ["throttled", "network", "overflow", "auth", "content_filtered", "aborted", "none"];
            json!({ "events": events, "error": { "kind": *dice.pick(&kinds), "message": "failed" } })
        }
        _ => {
            let stop = *dice.pick(&["stop", "tool_use", "tool_use", "length"]);
            let mut call = json!({ "events": events, "stop": stop });
            if dice.chance(30) {
                call["usage"] =
                    json!({ "input": dice.below(90), "output": dice.below(9), "cache_read": dice.below(5) });
            }
            call
        }
    }
}

fn item(dice: &Dice) -> Value {
    match dice.below(8) {
        0 => json!({ "text": ["one ", "", "two"] }),
        1 => json!({ "thinking": "hm" }),
        2 => json!({ "delay_ms": 10 * dice.below(5) }),
        _ => {
            let mut call = json!({
                "id": *dice.pick(&["a", "b", "c", "d", ""]),
                "name": *dice.pick(&["t", "u", "v", "ghost"]),
            });
            match dice.below(6) {
                0 => call["arguments_chunks"] = json!(["{\"n\"", ": oops"]),
                1 => call["arguments"] = json!([1]),
                2 => call["incomplete"] = true.into(),
                _ => call["arguments"] = json!({ "n": 1 }),
            }
            json!({ "tool_call": call })
        }
    }
}

fn tool(dice: &Dice, name: &str) -> Value {
    let mut tool = json!({ "name": name, "behavior": behavior(dice), "requires_approval": dice.chance(25) });
    if dice.chance(30) {
        tool["by_call"] = json!({ "a": behavior(dice) });
    }
    if dice.chance(20) {
        tool["schema"] =
            json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    }
    tool
}

fn behavior(dice: &Dice) -> Value {
    let mut behavior = json!({ "delay_ms": 10 * dice.below(6) });
    match dice.below(14) {
        0 => behavior["forever"] = true.into(),
        1 => behavior["until_cancelled"] = true.into(),
        2 => behavior["panic"] = "boom".into(),
        3 => behavior["transfer_to"] = "other".into(),
        4 => behavior["error"] = "no".into(),
        5 => behavior["echo"] = true.into(),
        6 => behavior["set_state"] = json!({ "k": 1 }),
        7 => {
            behavior["updates"] = json!(["x", "y"]);
            behavior["update_gap_ms"] = (10 * dice.below(2)).into();
        }
        _ => {}
    }
    behavior
}

fn trigger(dice: &Dice) -> Value {
    match dice.below(6) {
        0 => "before_start".into(),
        1 => json!({ "model_call": { "n": 1 + dice.below(3), "before_item": dice.below(3) } }),
        2 => json!({ "tool": { "id": *dice.pick(&["a", "b", "c"]), "when": *dice.pick(&["start", "end"]) } }),
        3 => json!({ "approval": *dice.pick(&["a", "b"]) }),
        4 => json!({ "transform": 1 + dice.below(2) }),
        _ => json!({ "ms": 5 + 10 * dice.below(12) }),
    }
}

fn queued(dice: &Dice) -> Vec<Value> {
    (0..dice.below(3)).map(|n| json!({ "text": format!("m{n}"), "at": trigger(dice) })).collect()
}

fn decision(dice: &Dice) -> Value {
    match dice.below(8) {
        0 => "reject".into(),
        1 => json!({ "approve_with": { "n": 2 } }),
        2 => json!({ "panic": "ui" }),
        3 => json!({ "panic_sync": "ui" }),
        4 => "forever".into(),
        5 => json!({ "after": { "ms": 30, "then": "approve" } }),
        _ => "approve".into(),
    }
}

fn policies(dice: &Dice) -> Vec<Value> {
    let policy = |_| {
        let slot = *dice.pick(&["pre_turn", "pre_dispatch", "post_turn", "post_loop"]);
        let verdict = match dice.below(9) {
            0 => json!({ "stop": "enough" }),
            1 | 2 => json!({ "inject": ["note"] }),
            3 => json!({ "panic": "oops" }),
            4 if slot == "pre_dispatch" => json!({ "skip": "no" }),
            5 if slot == "pre_dispatch" => json!({ "set_arguments": { "m": 2 } }),
            6 if slot == "pre_dispatch" => json!({ "set_arguments_then_panic": { "m": 2 } }),
            7 if slot == "post_turn" => json!({ "replace_text": "redacted" }),
            8 if slot == "post_turn" => json!({ "replace_dropping_calls": "nothing" }),
            _ => "continue".into(),
        };
        // Only once: an injection after every turn would never end.
        json!({ "slot": slot, "name": "p", "on_calls": [1 + dice.below(2)], "verdict": verdict })
    };
    (0..dice.below(3)).map(policy).collect()
}

fn transform(dice: &Dice) -> Value {
    match dice.below(5) {
        0 => "noop".into(),
        1 => json!({ "prepend": "remember" }),
        2 => json!({ "sliding_window": { "normal_budget": 100, "overflow_budget": 2, "anchor": 2 } }),
        3 => json!({ "sliding_window": { "normal_budget": 20, "overflow_budget": 5, "anchor": 1 } }),
        _ => json!({ "sliding_window": { "normal_budget": 1_000, "overflow_budget": 1, "anchor": 0 } }),
    }
}

fn then(dice: &Dice) -> Value {
    match dice.below(6) {
        0 => "continue".into(),
        1 => json!({ "steer": "s" }),
        2 => json!({ "follow_up": "f" }),
        3 => "reset".into(),
        _ => json!({ "prompt": "again" }),
    }
}

fn options(dice: &Dice) -> Value {
    let mut options = json!({
        "steering_mode": *dice.pick(&["all", "one_at_a_time"]),
        "follow_up_mode": *dice.pick(&["all", "one_at_a_time"]),
        "approval_mode": *dice.pick(&["smart", "enabled", "bypassed"]),
        "metrics": dice.chance(30),
    });
    options["tool_execution"] = match dice.below(5) {
        0 => "sequential".into(),
        1 => json!({ "priority": { "t": 2, "u": 1 } }),
        2 => json!({ "groups": [[0], [1]] }),
        _ => "concurrent".into(),
    };
    if dice.chance(20) {
        options["dynamic_system_prompts"] = json!(["p1", "p2"]);
    }
    if dice.chance(20) {
        options["api_keys"] = json!(["k1", "k2"]);
    }
    if dice.chance(20) {
        options["cache"] = json!({ "ttl_s": 300, "min_tokens": 1, "intervals": 2 });
    }
    if dice.chance(10) {
        options["model_supports_tools"] = false.into();
    }
    if dice.chance(20) {
        options["agent_name"] = "me".into();
        options["transfer_chain"] = json!([*dice.pick(&["first", "other"])]);
        options["transfer_max_depth"] = (1 + dice.below(4)).into();
    }
    if dice.chance(20) {
        options["session_state"] = json!({ "k": 0 });
    }
    if dice.chance(20) {
        options["retry"] = json!({ "max_attempts": 2, "base_delay_ms": 20 });
    }
    options
}
