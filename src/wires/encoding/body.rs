//! The body of a request.

use crate::data::json::{ObjectWriter, RawJson, fill};
use crate::rules::stream::StreamOptions;

/// Writes the body of a request. The user's own fields override those written here, and a `null` among them
/// omits a field.
pub(crate) struct RequestBody<'a> {
    object: ObjectWriter<'a>,
    own: &'a [(String, RawJson)],
    /// The user's tools have already been written after ours.
    has_tools: bool,
}

impl<'a> RequestBody<'a> {
    pub(crate) fn new(out: &'a mut String, options: &'a StreamOptions) -> Self {
        RequestBody::of(out, &options.body)
    }

    /// Begins an object with these fields of the user.
    pub(crate) fn of(out: &'a mut String, own: &'a [(String, RawJson)]) -> Self {
        RequestBody { object: ObjectWriter::new(out), own, has_tools: false }
    }

    pub(crate) fn key(&mut self, key: &str) -> Option<&mut String> {
        if self.own.iter().any(|(own, _)| own == key) {
            return None;
        }
        Some(self.object.key(key))
    }

    /// Writes a text field.
    pub(crate) fn text(&mut self, key: &str, text: &str) {
        self.fill(key, "\"$\"", &[text]);
    }

    /// Writes a field whose JSON exists already.
    pub(crate) fn raw(&mut self, key: &str, json: &str) {
        self.fill(key, "#", &[json]);
    }

    /// Writes a field from a template, see [`fill`].
    pub(crate) fn fill(&mut self, key: &str, template: &str, values: &[&str]) {
        if let Some(out) = self.key(key) {
            fill(template, values, out);
        }
    }

    /// Writes the list of tools, with a mark in the last one. If the user's own fields have a list of tools
    /// (that the provider runs), it is appended.
    pub(crate) fn tools(&mut self, tools: &str, mark: &str) {
        let tools = tools.strip_suffix("}]").unwrap_or(tools);
        let own = self.own.iter().find(|(key, _)| key == "tools");
        let Some(more) = own.and_then(|(_, tools)| tools.as_str().strip_prefix("[")) else {
            return self.fill("tools", "##}]", &[tools, mark]);
        };
        let separator = if more.trim_start().starts_with("]") { "" } else { "," };
        fill("##}##", &[tools, mark, separator, more], self.object.key("tools"));
        self.has_tools = true;
    }

    pub(crate) fn end(mut self) {
        let has_tools = self.has_tools;
        let is_left =
            |(key, value): &&(String, RawJson)| value.as_str() != "null" && !(has_tools && key == "tools");
        for (key, value) in self.own.iter().filter(is_left) {
            self.object.field(key, value);
        }
        self.object.end();
    }
}
