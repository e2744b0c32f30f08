//! The tools of a run, encoded once.

use std::rc::Rc;

use crate::data::json::{Map, RawJson, ToJson, Value, fill, without_comma};
use crate::data::text::Put;
use crate::rules::stream::ToolSchema;
use crate::wires::compat::Strict;

/// The tools of a run as JSON for request bodies, written once.
#[derive(Debug, Default)]
pub(crate) struct EncodedTools(Option<(Rc<[ToolSchema]>, String)>);

/// How a wire writes tools.
pub(crate) struct ToolForm {
    /// The list around them.
    pub(crate) list: &'static str,
    /// One tool: its name, description, schema, and whether it is strict.
    pub(crate) tool: &'static str,
    /// The mark of a tool that is not strict, and of one that is.
    pub(crate) strict: [&'static str; 2],
}

impl EncodedTools {
    #[inline(never)]
    pub(crate) fn text(&mut self, tools: &Rc<[ToolSchema]>, form: &ToolForm, strict: Strict) -> &str {
        if self.0.as_ref().is_some_and(|(known, _)| !Rc::ptr_eq(known, tools)) {
            self.0 = None;
        }
        &self.0.get_or_insert_with(|| (tools.clone(), written(tools, form, strict))).1
    }
}

fn written(tools: &[ToolSchema], form: &ToolForm, strict: Strict) -> String {
    let mut list = String::new();
    for tool in tools {
        let [no, yes] = form.strict;
        let mark = if strict.marks(&tool.parameters) { yes } else { no };
        list.put(",");
        fill(
            form.tool,
            &[&tool.name, &tool.description, complete(&tool.parameters).as_str(), mark],
            &mut list,
        );
    }
    let mut text = String::with_capacity(list.len() + form.list.len());
    fill(form.list, &[without_comma(&list)], &mut text);
    text
}

/// Returns a schema with the members that providers require: Anthropic requires `type`, OpenAI `properties`
/// too.
fn complete(schema: &RawJson) -> RawJson {
    let mut value = schema.to_value();
    if let Value::Object(members) = &mut value {
        for (key, default) in [("type", Value::from("object")), ("properties", Value::Object(Map::new()))] {
            if members.get(key).is_none() {
                members.insert(key, default);
            }
        }
    }
    value.to_raw()
}
