//! Tools, stages and what is read of a batch.

use std::rc::Rc;

use rig::clock::Clock;
use rig::host::{ScriptedAnswer, Stage, answers, calls, config, deaf, quick, spec, tool};
use turnwheel::config::AgentLoopConfig;
use turnwheel::json::RawJson;
use turnwheel::tool::{AgentTool, AgentToolResult, ToolContext, ToolOutcome};

pub(crate) const STEERED: &str = "tool call cancelled: user requested steering interrupt";

pub(crate) const ABORTED: &str = "tool call cancelled: operation aborted";

pub(crate) fn three(tool: &str) -> ScriptedAnswer {
    calls(&[("a", tool, "{}"), ("b", tool, "{}"), ("c", tool, "{}")])
}

/// A tool that takes as many milliseconds as its argument `ms` says.
pub(crate) fn timed(clock: &Clock) -> Rc<dyn AgentTool> {
    let clock = clock.clone();
    tool(spec("timed"), move |context: ToolContext| {
        let ms = context.arguments.to_value().get("ms").and_then(turnwheel::json::Value::as_u64).unwrap_or(0);
        let pause = clock.pause(ms);
        async move {
            pause.await;
            ToolOutcome::Completed(AgentToolResult::text(format!("{ms} ms")))
        }
    })
}

pub(crate) fn timed_stage(given: &[(&str, &str, &str)], change: impl FnOnce(&mut AgentLoopConfig)) -> Stage {
    let clock = Clock::default();
    let mut config =
        config(&clock, answers(vec![calls(given)]), vec![timed(&clock), deaf("deaf"), quick("quick")]);
    change(&mut config);
    Stage::new(clock, config)
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// The lines between the answer and the end of the first turn.
pub(crate) fn batch(stage: &Stage) -> Vec<String> {
    let lines = stage.lines();
    let from = lines.iter().position(|line| line.starts_with("assistant")).unwrap() + 1;
    let to = lines.iter().position(|line| line.starts_with("turn ends")).unwrap();
    lines[from..to].to_vec()
}
