//! What a tool's function returned, as a result.

use js_sys::{Array, Reflect, Symbol};
use turnwheel::AgentToolResult;
use turnwheel::json::{FromJson, Map, ToJson, Value};
use turnwheel::message::ContentBlock;
use turnwheel::tool::Transfer;
use wasm_bindgen::{JsCast, JsValue};

use crate::flaw::flaw_of;
use crate::value;

/// The members of a result. A value with others is JSON for the model.
const MEMBERS: [&str; 4] = ["transfer", "content", "details", "isError"];

/// Returns the result that a tool's return value stands for; [`JsTool`](crate::JsTool) lists the forms.
pub(crate) fn result_of(output: &JsValue) -> AgentToolResult {
    if let Some(text) = output.as_string() {
        return AgentToolResult::text(text);
    }
    let no_json = |flaw: String| AgentToolResult::error(format!("the tool's result is no JSON: {flaw}"));
    if let Some(flaw) = flaw_of(output, "the result") {
        return no_json(flaw);
    }
    match value::raw_of(output) {
        Ok(None) => AgentToolResult::text(""),
        Ok(Some(json)) => result(&json.to_value(), Marks::of(output)),
        Err(flaw) => no_json(flaw),
    }
}

/// What in an output was marked as made on purpose. An address and a transfer act, and count only with the mark: a tool may
/// pass on what a stranger wrote.
struct Marks {
    output: bool,
    links: bool,
}

impl Marks {
    fn of(output: &JsValue) -> Self {
        let content = Reflect::get(output, &JsValue::from_str("content")).unwrap_or_default();
        let has_url = |block: &JsValue| Reflect::has(block, &JsValue::from_str("url")).unwrap_or(true);
        let mut blocks = content.dyn_ref::<Array>().into_iter().flat_map(Array::iter);
        Marks { output: is_made(output), links: blocks.all(|block| !has_url(&block) || is_made(&block)) }
    }
}

/// The mark is that of the npm package: `imageAt`, `fileAt` and `transferTo` set it.
fn is_made(value: &JsValue) -> bool {
    let mark = Symbol::for_("turnwheel.made");
    value.is_object() && Reflect::get(value, &mark).is_ok_and(|mark| mark == JsValue::TRUE)
}

fn result(output: &Value, marks: Marks) -> AgentToolResult {
    let Value::Object(members) = output else { return AgentToolResult::text(output.to_json()) };
    let transfer = if marks.output { transfer(members) } else { None };
    match (blocks(members, marks.links), transfer) {
        (Some(content), transfer) => AgentToolResult {
            content,
            details: members.get("details").map(ToJson::to_raw),
            is_error: output.flag_at("isError") == Some(true),
            transfer,
        },
        (None, transfer @ Some(_)) => AgentToolResult { transfer, ..AgentToolResult::default() },
        (None, None) => AgentToolResult::text(output.to_json()),
    }
}

/// Returns the blocks of `content`. With other members present, an empty list is just another member.
fn blocks(members: &Map, takes_links: bool) -> Option<Vec<ContentBlock>> {
    let list = members.get("content")?.as_array()?;
    if list.is_empty() && !has_only(members, &MEMBERS) {
        return None;
    }
    let is_shown = |block: &Value| matches!(block.text_at("type"), Some("text" | "image"));
    if !list.iter().all(is_shown) || (!takes_links && list.iter().any(|block| block.get("url").is_some())) {
        return None;
    }
    list.iter().map(ContentBlock::from_json).collect::<Result<_, _>>().ok()
}

/// Reads `{ transfer: { to, reason? } }` and nothing else: other values merely have a member of that name.
fn transfer(members: &Map) -> Option<Transfer> {
    let transfer = members.get("transfer")?;
    let is_transfer = has_only(members, &MEMBERS) && has_only(transfer.as_object()?, &["to", "reason"]);
    let to = transfer.text_at("to").filter(|_| is_transfer)?;
    Some(Transfer { to: to.to_owned(), reason: transfer.owned_at("reason") })
}

fn has_only(members: &Map, names: &[&str]) -> bool {
    members.iter().all(|(name, _)| names.contains(&name))
}
