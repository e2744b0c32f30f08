//! The tools of a run, encoded once.

use std::rc::Rc;

use crate::data::json::{Map, ToJson, Value, fill, without_comma};
use crate::data::text::Put;
use crate::rules::stream::ToolSchema;
use crate::wires::compat::Strict;

use super::schemas::{SchemaRules, add_description, fitted, is_fit, split_description};

/// The tools of a run as JSON for request bodies, written once.
#[derive(Debug, Default)]
pub(crate) struct EncodedTools {
    written: Option<(Rc<[ToolSchema]>, String)>,
    warnings: Vec<String>,
}

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
    pub(crate) fn text(
        &mut self,
        tools: &Rc<[ToolSchema]>,
        form: &ToolForm,
        (strict, server): (Strict, &str),
    ) -> &str {
        if self.written.as_ref().is_some_and(|(known, _)| !Rc::ptr_eq(known, tools)) {
            self.written = None;
        }
        let warnings = &mut self.warnings;
        let write = || (tools.clone(), written(tools, form, strict, server, warnings));
        &self.written.get_or_insert_with(write).1
    }

    /// Returns what the tools lost since it was asked last.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}

fn written(
    tools: &[ToolSchema],
    form: &ToolForm,
    strict: Strict,
    server: &str,
    warnings: &mut Vec<String>,
) -> String {
    let rules = SchemaRules::of(server);
    let mut list = String::new();
    for tool in tools {
        let [no, yes] = form.strict;
        let mut schema = tool.parameters.to_value();
        if !is_fit(&schema, rules) {
            let (fitted, lost) = fitted(&schema, rules);
            if !lost.is_empty() {
                warnings.push(warning(&tool.name, server, &lost));
            }
            schema = fitted;
        }
        let mark = if strict.marks(&schema) { yes } else { no };
        complete(&mut schema);
        let mut description = &*tool.description;
        if let Some((head, rest)) = split_description(description, rules) {
            add_description(&mut schema, rest);
            description = head;
        }
        list.put(",");
        fill(form.tool, &[&tool.name, description, &schema.to_json(), mark], &mut list);
    }
    let mut text = String::with_capacity(list.len() + form.list.len());
    fill(form.list, &[without_comma(&list)], &mut text);
    text
}

#[cold]
fn warning(tool: &str, server: &str, lost: &[&str]) -> String {
    let parts = ["the schema of the tool `", tool, "` is sent to ", server, " without ", &lost.join(" and ")];
    [&parts.concat(), ", which this server refuses; the arguments are checked by the whole schema"].concat()
}

/// Adds the members that providers require: Anthropic requires `type`, OpenAI `properties` too.
fn complete(schema: &mut Value) {
    if let Value::Object(members) = schema {
        for (key, default) in [("type", Value::from("object")), ("properties", Value::Object(Map::new()))] {
            if members.get(key).is_none() {
                members.insert(key, default);
            }
        }
    }
}
