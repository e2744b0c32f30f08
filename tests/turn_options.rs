//! What holds for one turn or one run: who chooses, in which order, and for how long.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that fails here says where")]

use std::cell::RefCell;
use std::rc::Rc;

use futures::StreamExt;
use futures::executor::block_on;
use futures::stream;
use rig::clock::Clock;
use rig::host::{ScriptedAnswer, calls, config, model, quick, text};
use turnwheel::agent::Agent;
use turnwheel::cancel::CancelToken;
use turnwheel::config::{AgentLoopConfig, Model, TurnOptions};
use turnwheel::error::ErrorKind;
use turnwheel::json::{RawJson, ToJson};
use turnwheel::ports::{AgentRunContext, TurnCall, TurnChoice};
use turnwheel::stream::{ModelRequest, StreamOptions, ToolChoice};

/// What was asked for, in order: the model, its options, its tools, its prompt, the number of messages.
type Seen = Rc<RefCell<Vec<String>>>;

fn noting(id: &str, seen: &Seen, answers: Vec<ScriptedAnswer>) -> Model {
    let (seen, answers) = (seen.clone(), RefCell::new(std::collections::VecDeque::from(answers)));
    let id = id.to_owned();
    model(&id.clone(), move |request: ModelRequest, _| {
        let tools: Vec<&str> = request.tools.iter().map(|tool| tool.name.as_ref()).collect();
        let (options, length) = (request.options.to_json(), request.messages.len());
        let line = format!("{id} {options} [{}] {:?} {length}", tools.join(" "), request.system_prompt);
        seen.borrow_mut().push(line);
        let answer = answers.borrow_mut().pop_front().unwrap_or_else(|| text("done"));
        stream::iter(answer).boxed_local()
    })
}

fn setup(seen: &Seen, answers: Vec<ScriptedAnswer>) -> AgentLoopConfig {
    let clock = Clock::default();
    config(&clock, noting("m", seen, answers), vec![quick("one"), quick("two")])
}

fn who() -> AgentRunContext {
    let metadata = RawJson::parse("{\"user\":\"u\"}").ok();
    AgentRunContext { metadata, ..AgentRunContext::new("r", "s") }
}

fn forced(choice: ToolChoice) -> StreamOptions {
    StreamOptions { tool_choice: Some(choice), ..StreamOptions::default() }
}

fn of(stream_options: StreamOptions) -> TurnOptions {
    TurnOptions { stream_options: Some(stream_options), ..TurnOptions::default() }
}

#[test]
fn a_forced_tool_choice_holds_for_the_first_call_of_each_run() {
    let seen = Seen::default();
    let one = || calls(&[("a", "one", "{}")]);
    let mut config = setup(&seen, vec![one(), one(), text("done"), text("again")]);
    config.rules.stream_options = Rc::new(forced(ToolChoice::Required));
    let agent = Agent::new(config, Vec::new());
    for _ in 0..2 {
        block_on(agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap().finish());
    }
    let choices: Vec<String> =
        seen.borrow().iter().map(|line| line.split(' ').nth(1).unwrap_or_default().to_owned()).collect();
    let (forced, auto) = ("{\"toolChoice\":\"required\"}", "{\"toolChoice\":\"auto\"}");
    assert_eq!(choices, [forced, auto, auto, forced]);
}

#[test]
fn who_prepares_a_turn_chooses_before_the_agent_and_after_the_run() {
    let seen = Seen::default();
    let mut config = setup(&seen, vec![calls(&[("a", "one", "{}")]), text("not asked")]);
    config.rules.stream_options = Rc::new(StreamOptions { max_tokens: Some(1), ..forced(ToolChoice::None) });
    let other = noting("other", &seen, vec![text("done")]);
    let asked = Rc::new(RefCell::new(Vec::new()));
    let (noted, chosen) = (asked.clone(), other.clone());
    config.set_turn_preparer(Rc::new(move |turn: TurnCall| {
        let metadata = turn.context.metadata.as_ref().map(ToJson::to_json);
        noted.borrow_mut().push(format!("{} {} {metadata:?}", turn.turn_index, turn.messages.len()));
        let is_first = turn.turn_index == 0;
        let options = TurnOptions {
            model: (!is_first).then(|| chosen.clone()),
            active_tools: Some(vec!["one".to_owned()]),
            system_prompt: Some("turn".into()),
            ..of(forced(ToolChoice::Tool("one".to_owned())))
        };
        let messages = (!is_first).then(|| turn.messages[1..].to_vec());
        async move { Ok(TurnChoice { options, messages }) }
    }));
    let agent = Agent::new(config, Vec::new());
    let run = agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap();
    let own = TurnOptions { system_prompt: Some("run".into()), ..TurnOptions::default() };
    let result = block_on(run.with_options(own).unwrap().finish());
    assert_eq!(result.text, "done");
    let options = "{\"maxTokens\":1,\"toolChoice\":{\"toolName\":\"one\"}}";
    assert_eq!(
        *seen.borrow(),
        [format!("m {options} [one] \"run\" 1"), format!("other {options} [one] \"run\" 2")]
    );
    assert_eq!(
        *asked.borrow(),
        ["0 1 Some(\"{\\\"user\\\":\\\"u\\\"}\")", "1 3 Some(\"{\\\"user\\\":\\\"u\\\"}\")"]
    );
}

#[test]
fn an_unknown_tool_is_misuse_for_a_run_and_ends_a_run_that_is_going_on() {
    let unknown = || TurnOptions { active_tools: Some(vec!["three".to_owned()]), ..TurnOptions::default() };
    let seen = Seen::default();
    let mut config = setup(&seen, Vec::new());
    let agent = Agent::new(config.clone(), Vec::new());
    let run = agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap();
    let error = run.with_options(unknown()).err().unwrap();
    assert_eq!((error.info().code, error.info().message.contains("`three`")), (ErrorKind::Misuse, true));
    config.set_turn_preparer(Rc::new(move |_: TurnCall| {
        let options = unknown();
        async move { Ok(TurnChoice { options, messages: None }) }
    }));
    let agent = Agent::new(config, Vec::new());
    let result = block_on(agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap().finish());
    let error = result.error.unwrap();
    assert_eq!((error.info().code, error.info().message.contains("`three`")), (ErrorKind::Hook, true));
    assert!(seen.borrow().is_empty());
}

#[test]
fn a_restored_run_has_its_options_and_metadata_and_asks_again_what_holds_for_its_turn() {
    let seen = Seen::default();
    let asked = Rc::new(RefCell::new(Vec::new()));
    let make = |answers: Vec<ScriptedAnswer>| {
        let mut config = setup(&seen, answers);
        let noted = asked.clone();
        config.set_turn_preparer(Rc::new(move |turn: TurnCall| {
            noted.borrow_mut().push((turn.turn_index, turn.context.metadata.is_some()));
            let options = TurnOptions { system_prompt: Some("turn".into()), ..TurnOptions::default() };
            async move { Ok(TurnChoice { options, messages: None }) }
        }));
        config
    };
    let agent = Agent::new(make(vec![calls(&[("a", "one", "{}")]), text("lost")]), Vec::new());
    let run = agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap();
    let headers = vec![("x-key".to_owned(), "secret".to_owned())];
    let own = of(StreamOptions { max_tokens: Some(7), headers, ..StreamOptions::default() });
    let mut run =
        run.with_options(TurnOptions { active_tools: Some(vec!["one".to_owned()]), ..own }).unwrap();
    // Up to the announcement of the second answer.
    let mut begun = 0;
    while begun < 2 {
        let event = block_on(run.next()).unwrap();
        begun += usize::from(event.name() == "message_start");
    }
    let checkpoint = run.checkpoint();
    assert!(!checkpoint.to_json().contains("secret"));
    drop(run);
    seen.borrow_mut().clear();
    asked.borrow_mut().clear();
    let restored = Agent::restore(make(vec![text("done")]), &checkpoint).unwrap();
    let run = restored.continue_run(restored.resumable().unwrap(), CancelToken::new()).unwrap();
    assert_eq!(block_on(run.finish()).text, "done");
    assert_eq!(*seen.borrow(), ["m {\"maxTokens\":7} [one] \"turn\" 3"]);
    assert_eq!(*asked.borrow(), [(1, true)]);
}

#[test]
fn tools_that_are_gone_do_not_keep_a_restored_run_from_going_on() {
    let seen = Seen::default();
    let agent = Agent::new(setup(&seen, vec![calls(&[("a", "two", "{}")]), text("lost")]), Vec::new());
    let run = agent.prompt(vec!["go".into()], who(), CancelToken::new()).unwrap();
    let both = vec!["one".to_owned(), "two".to_owned()];
    let own = TurnOptions { active_tools: Some(both), ..TurnOptions::default() };
    let mut run = run.with_options(own).unwrap();
    while block_on(run.next()).unwrap().name() != "turn_end" {}
    let checkpoint = run.checkpoint();
    drop(run);
    seen.borrow_mut().clear();
    let mut fewer = setup(&seen, vec![text("done")]);
    fewer.set_tools(vec![quick("one")]).unwrap();
    let restored = Agent::restore(fewer, &checkpoint).unwrap();
    let run = restored.continue_run(restored.resumable().unwrap(), CancelToken::new()).unwrap();
    assert_eq!(block_on(run.finish()).text, "done");
    assert_eq!(*seen.borrow(), ["m {} [one] \"\" 3"]);
}

#[test]
fn a_view_with_nothing_for_the_model_is_an_error_and_no_empty_request() {
    let seen = Seen::default();
    let mut config = setup(&seen, vec![calls(&[("a", "one", "{}")])]);
    // From the second turn on, the result alone.
    config.set_turn_preparer(Rc::new(|turn: TurnCall| {
        let messages = (turn.turn_index > 0).then(|| turn.messages[turn.messages.len() - 1..].to_vec());
        async move { Ok(TurnChoice { messages, ..TurnChoice::default() }) }
    }));
    let agent = Agent::new(config, Vec::new());
    let run = agent.prompt(vec!["Go.".into()], who(), CancelToken::new()).unwrap();
    let result = block_on(run.finish());
    let error = result.error.unwrap();
    let error = error.info();
    assert_eq!((error.code, error.phase.as_deref()), (ErrorKind::Hook, Some("prepare_turn")));
    assert!(
        error.message.contains("a tool's result goes with the answer that has its call"),
        "{}",
        error.message
    );
    assert_eq!(seen.borrow().len(), 1, "nothing was asked for");
}
