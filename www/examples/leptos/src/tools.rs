//! What the model can do on this page.

use std::rc::Rc;

use leptos::prelude::document;
use turnwheel::json::RawJson;
use turnwheel::tool::{AgentTool, AgentToolResult, ApprovalNeed, ToolContext, ToolOutcome, ToolSpec, tool};
use wasm_bindgen::JsValue;

/// A tool that runs at once, and one that asks first.
pub fn all() -> Result<Vec<Rc<dyn AgentTool>>, String> {
    Ok(vec![local_time()?, paint()?])
}

fn spec(name: &str, description: &str, parameters: &str) -> Result<ToolSpec, String> {
    let parameters = RawJson::parse(parameters).map_err(|error| error.to_string())?;
    Ok(ToolSpec::new(name, description, parameters))
}

fn local_time() -> Result<Rc<dyn AgentTool>, String> {
    let spec = spec("local_time", "Tells the user's local time", r#"{"type":"object","properties":{}}"#)?;
    Ok(tool(spec, async |_: ToolContext| {
        let now = js_sys::Date::new_0().to_locale_time_string("en-GB");
        ToolOutcome::Completed(AgentToolResult::text(String::from(now)))
    }))
}

fn paint() -> Result<Rc<dyn AgentTool>, String> {
    let parameters = r#"{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}"#;
    let mut spec = spec("paint", "Paints the page in a CSS colour", parameters)?;
    spec.requires_approval = ApprovalNeed::Always;
    Ok(tool(spec, async |call: ToolContext| {
        let arguments = call.arguments.to_value();
        let Some(colour) = arguments.text_at("colour") else {
            return ToolOutcome::Invalid("`colour` must be a text".to_owned());
        };
        match set_background(colour) {
            Ok(()) => ToolOutcome::Completed(AgentToolResult::text(format!("the page is {colour} now"))),
            Err(error) => ToolOutcome::Failed(format!("{error:?}")),
        }
    }))
}

fn set_background(colour: &str) -> Result<(), JsValue> {
    let body = document().body().ok_or("the page has no body")?;
    body.set_attribute("style", &format!("background: {colour}"))
}
