//! What the model can do on this page.

use std::rc::Rc;

use leptos::prelude::document;
use turnwheel::json::JsonError;
use turnwheel::tool::ApprovalNeed;
use turnwheel::{AgentTool, ToolSpec, tool};
use wasm_bindgen::JsValue;

/// A tool that runs at once, and one that asks first.
pub fn all() -> Result<Vec<Rc<dyn AgentTool>>, JsonError> {
    Ok(vec![local_time()?, paint()?])
}

fn local_time() -> Result<Rc<dyn AgentTool>, JsonError> {
    let spec = ToolSpec::parse("local_time", "Tells the user's local time", r#"{ "type": "object" }"#)?;
    Ok(tool(spec, async |_| String::from(js_sys::Date::new_0().to_locale_time_string("en-GB"))))
}

fn paint() -> Result<Rc<dyn AgentTool>, JsonError> {
    let parameters =
        r#"{ "type": "object", "properties": { "colour": { "type": "string" } }, "required": ["colour"] }"#;
    let spec = ToolSpec::parse("paint", "Paints the page in a CSS colour", parameters)?;
    let spec = ToolSpec { requires_approval: ApprovalNeed::Always, ..spec };
    Ok(tool(spec, async |call| {
        let arguments = call.arguments.to_value();
        let colour = arguments.text_at("colour").ok_or("`colour` must be a text")?;
        set_background(colour).map_err(|error| format!("{error:?}"))?;
        Ok::<_, String>(format!("the page is {colour} now"))
    }))
}

fn set_background(colour: &str) -> Result<(), JsValue> {
    let body = document().body().ok_or("the page has no body")?;
    body.set_attribute("style", &format!("background: {colour}"))
}
