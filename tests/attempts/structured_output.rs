//! Answers that a schema describes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures::stream::{self, StreamExt};
use rig::clock::Clock;
use rig::host::{
    ScriptedAnswer, Stage, asking_model, calls, config, model, native_model, quick, stage, text,
};
use turnwheel::json::RawJson;
use turnwheel::machine::OUTPUT_TOOL;
use turnwheel::message::MessageStopReason;
use turnwheel::stream::{ModelRequest, NativeOutput};

use super::kit::{crash, stopping};

fn schema(text: &str) -> Option<RawJson> {
    Some(RawJson::parse(text).unwrap())
}

/// A stage whose model must answer with an object that has a name.
fn asked(given: Vec<ScriptedAnswer>) -> Stage {
    stage(given, vec![quick("t")], |config| {
        config.rules.output = schema("{\"type\":\"object\",\"required\":[\"name\"]}");
        config.rules.validator = Some(Rc::new(|spec, call, _| {
            let named = call.arguments.to_value().get("name").is_some();
            if &*spec.schema.name == OUTPUT_TOOL && !named {
                Err("`name` is missing".to_owned())
            } else {
                Ok(())
            }
        }));
    })
}

fn result(stage: &Stage) -> (Option<String>, String) {
    let result = stage.result();
    (result.output.as_ref().map(|json| json.as_str().to_owned()), result.text.clone())
}

#[test]
fn a_valid_call_is_the_answer_and_ends_the_run() {
    let mut stage = asked(vec![calls(&[("s", OUTPUT_TOOL, "{\"name\": \"Ada\"}")])]);
    stage.prompt("who?").finish().check();
    let json = "{\"name\":\"Ada\"}";
    assert_eq!(result(&stage), (Some(json.to_owned()), json.to_owned()));
    assert_eq!(stage.history()[1..], ["assistant: [s]", &format!("s: {json}")]);
    assert_eq!(stage.lines()[6..], ["turn ends tools_executed", "run ends completed"]);
}

#[test]
fn a_text_that_is_the_json_is_taken_too_fenced_or_not() {
    for answer in ["{\"name\":\"Ada\"}", "```json\n{\"name\":\"Ada\"}\n```"] {
        let mut stage = asked(vec![text(answer)]);
        stage.prompt("who?").finish().check();
        assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":\"Ada\"}"));
    }
}

#[test]
fn an_answer_that_does_not_fit_is_followed_by_another_try() {
    let bad_call = calls(&[("s", OUTPUT_TOOL, "{}")]);
    let mut stage = asked(vec![text("Ada"), bad_call, calls(&[("s", OUTPUT_TOOL, "{\"name\":\"Ada\"}")])]);
    stage.prompt("who?").finish().check();
    let history = stage.history();
    assert!(
        history[2].starts_with("user: The answer does not fit the wanted JSON (it is no JSON"),
        "{}",
        history[2]
    );
    assert_eq!(
        history[3..],
        [
            "assistant: [s]",
            "s!: invalid arguments for `__structured_output`: `name` is missing",
            "assistant: [s#2]",
            "s#2: {\"name\":\"Ada\"}",
        ]
    );
}

#[test]
fn tries_are_bounded_and_prose_has_one_more() {
    let unfitting = || text("{\"nom\":\"Ada\"}");
    for (answers, turns) in [
        ((0..9).map(|_| text("no")).collect::<Vec<_>>(), 2),
        ((0..9).map(|_| unfitting()).collect(), 4),
        ([text("no")].into_iter().chain((0..9).map(|_| unfitting())).collect(), 4),
    ] {
        let mut stage = asked(answers);
        stage.prompt("who?").finish().check();
        assert_eq!(stage.count("turn_start"), turns);
        let end = stage.lines().pop().unwrap();
        let why =
            format!("run ends error: the model gave no answer that fits the output schema in {turns} tries");
        assert!(end.starts_with(&why), "{end}");
        assert_eq!(result(&stage).0, None);
    }
}

#[test]
fn json_between_sentences_is_found() {
    for answer in [
        "Here:\n```json\n{\"name\":\"Ada\"}\n```\nMore?",
        "It is {\"name\":\"Ada\"}.",
        "Of {these}, {\"name\":\"Ada\"} it is {indeed}.",
    ] {
        let mut stage = asked(vec![text(answer)]);
        stage.prompt("who?").finish().check();
        assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":\"Ada\"}"));
    }
}

/// What each request asks for: the tools, the choice among them, and whether the schema is in it.
fn requests(
    native: Option<NativeOutput>,
    tools: &[&'static str],
    kind: &str,
    given: Vec<ScriptedAnswer>,
) -> Vec<String> {
    let clock = Clock::default();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let (seen, given) = (asked.clone(), RefCell::new(VecDeque::from(given)));
    let ask = move |request: ModelRequest, _| {
        let mut words: Vec<&str> = request.tools.iter().map(|tool| &*tool.name).collect();
        let choice = request.options.tool_choice.as_ref().map(|choice| format!("{choice:?}"));
        words.extend(choice.as_deref());
        words.extend(request.output.as_ref().map(|_| "schema"));
        seen.borrow_mut().push(words.join(" "));
        stream::iter(given.borrow_mut().pop_front().unwrap_or_default()).boxed_local()
    };
    let tools = tools.iter().map(|name| quick(name)).collect();
    let mut config = config(&clock, asking_model("m", native, ask), tools);
    config.rules.output = schema(&format!("{{\"type\":\"{kind}\"}}"));
    let mut stage = Stage::new(clock, config);
    stage.prompt("who?").finish().check();
    asked.take()
}

#[test]
fn the_answer_is_asked_for_the_strictest_way_the_model_has() {
    let forced = "__structured_output Tool(\"__structured_output\")";
    let native = |with_tools, any_root| Some(NativeOutput { with_tools, any_root });
    let (bare, fits) = (|| text("no"), || text("{}"));
    let call = || calls(&[("a", "t", "{}")]);
    // A tool: alone, it must be called; beside others, one of them must be.
    assert_eq!(requests(None, &[], "object", vec![fits()]), [forced]);
    assert_eq!(
        requests(None, &["t"], "object", vec![call(), bare(), fits()]),
        ["t __structured_output Required", "t __structured_output Required", &format!("t {forced}")]
    );
    // The schema itself, beside tools where that is possible.
    assert_eq!(requests(native(true, true), &["t"], "object", vec![call(), fits()]), ["t schema"; 2]);
    assert_eq!(requests(native(false, true), &[], "array", vec![text("[]")]), ["schema"]);
    assert_eq!(
        requests(native(false, true), &["t"], "object", vec![bare(), fits()]),
        ["t __structured_output Required", "schema"]
    );
    // Where the schema must describe an object, a list is wrapped, for the tool.
    let wrapped = || vec![calls(&[("s", OUTPUT_TOOL, "{\"value\":[]}")])];
    assert_eq!(requests(native(true, false), &[], "array", wrapped()), [forced]);
}

#[test]
fn other_tools_may_be_used_before_and_their_schema_stays_the_same_object() {
    let clock = Clock::default();
    let lists = Rc::new(RefCell::new(Vec::new()));
    let seen = lists.clone();
    let given = RefCell::new(VecDeque::from([
        calls(&[("a", "t", "{}")]),
        calls(&[("s", OUTPUT_TOOL, "{\"name\":1}")]),
    ]));
    let asks = model("m", move |request: ModelRequest, _| {
        seen.borrow_mut().push(request.tools);
        stream::iter(given.borrow_mut().pop_front().unwrap_or_default()).boxed_local()
    });
    let mut config = config(&clock, asks, vec![quick("t")]);
    config.rules.output = schema("{\"type\":\"object\"}");
    let mut stage = Stage::new(clock, config);
    stage.prompt("who?").finish().check();
    assert_eq!(result(&stage).0.as_deref(), Some("{\"name\":1}"));
    let lists = lists.borrow();
    assert_eq!(lists[0].iter().map(|tool| &*tool.name).collect::<Vec<_>>(), ["t", OUTPUT_TOOL]);
    assert!(Rc::ptr_eq(&lists[0], &lists[1]));
}

#[test]
fn a_schema_that_is_none_of_an_object_is_wrapped_for_the_tool() {
    let mut stage = stage(vec![calls(&[("s", OUTPUT_TOOL, "{\"value\":[1,2]}")])], Vec::new(), |config| {
        config.rules.output = schema("{\"type\":\"array\"}");
    });
    stage.prompt("which?").finish().check();
    assert_eq!(result(&stage).0.as_deref(), Some("[1,2]"));
}

#[test]
fn a_model_that_heeds_the_schema_itself_is_told_it_and_offered_no_tool() {
    let mut stage = stage(Vec::new(), Vec::new(), |config| {
        config.set_models(vec![native_model("n", vec![text("oops"), text("7")])]);
        config.rules.output = schema("{\"type\":\"number\"}");
    });
    stage.prompt("how many?").finish().check();
    assert_eq!(result(&stage), (Some("7".to_owned()), "7".to_owned()));
    assert!(stage.history()[2].ends_with("Answer with that JSON only."));
}

#[test]
fn the_newest_answer_that_fits_is_the_one() {
    for (second, last) in [("{\"name\":\"Bob\"}", "Bob"), ("You are welcome.", "Ada")] {
        let mut stage = asked(vec![text("{\"name\":\"Ada\"}"), text(second)]);
        drop(stage.agent.follow_up("and now?".into()));
        stage.prompt("who?").finish().check();
        assert_eq!(result(&stage).0, Some(format!("{{\"name\":\"{last}\"}}")));
        assert_eq!(stage.count("turn_start"), 2);
    }
}

#[test]
fn a_refusal_is_not_asked_again() {
    let mut stage = asked(vec![stopping("no", MessageStopReason::Refusal)]);
    stage.prompt("who?").finish().check();
    assert_eq!((stage.count("turn_start"), result(&stage).0), (1, None));
}

#[test]
fn neither_policies_nor_approval_have_a_say_in_the_answer() {
    let mut stage = asked(vec![calls(&[("s", OUTPUT_TOOL, "{\"name\":\"Ada\"}")])]);
    stage.agent.configure(|config| {
        config.rules.approval.mode = turnwheel::approval::ApprovalMode::Enabled;
        config.rules.pre_dispatch.push(Rc::new(|_: &mut turnwheel::policy::DispatchCall<'_>| crash()));
    });
    stage.prompt("who?").finish().check();
    assert!(result(&stage).0.is_some());
}
