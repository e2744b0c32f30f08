//! What the requests of all wires share: headers, fields that the user can override, tools that are encoded once, ids.

pub(super) mod history;
pub(super) mod strict;

use std::borrow::Cow;
use std::rc::Rc;

use crate::data::json::{Map, ObjectWriter, RawJson, ToJson, Value, bool_text, fill, without_comma};
use crate::data::text::{Put, contains, number, parse_u64, rsplit_once, split, split_once, without_end};
use crate::rules::stream::{ModelRequest, Reasoning, StreamOptions, ToolChoice, ToolSchema};
use crate::words::message::{ContentBlock, FileBlock, ImageBlock, ToolResultMessage};

use crate::wires::compat::Strict;

/// The headers of a request: those of the wire, then those of the options, then those of the call. Later ones override
/// earlier ones. `key` is the name of the header for the key, and the prefix of its value.
#[inline(never)]
pub(crate) fn headers(
    key: (&str, &str),
    wire: &[(&str, &str)],
    options: &[(String, String)],
    request: &ModelRequest,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| {
        let name = name.to_ascii_lowercase();
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some(header) => header.1 = value,
            None => headers.push((name, value)),
        }
    };
    if let Some(api_key) = &request.api_key {
        set(key.0, [key.1, api_key].concat());
    }
    for (name, value) in wire.iter().chain(&[("content-type", "application/json")]) {
        set(name, (*value).to_owned());
    }
    for (name, value) in options.iter().chain(&request.options.headers) {
        set(name, value.clone());
    }
    headers
}

/// An address without trailing slashes, and its query.
#[inline(never)]
pub(crate) fn split_query(base_url: &str) -> (&str, &str) {
    let (base, query) = split_once(base_url, "?").unwrap_or((base_url, ""));
    (without_end(base, "/"), query)
}

/// The header in which servers of OpenAI's wires expect the key, and the prefix of its value.
pub(crate) fn openai_key(provider: &str) -> (&'static str, &'static str) {
    if provider == "azure" { ("api-key", "") } else { ("authorization", "Bearer ") }
}

/// An address with its query.
#[inline(never)]
pub(crate) fn join_query(parts: &[&str], query: &str) -> String {
    let mut url = parts.concat();
    if !query.is_empty() {
        url.put("?");
        url.put(query);
    }
    url
}

/// The body: the user's own fields override those made here, and a `null` among them omits a field.
pub(crate) struct Body<'a> {
    object: ObjectWriter<'a>,
    own: &'a [(String, RawJson)],
    /// The user's tools have already been written after ours.
    has_tools: bool,
}

impl<'a> Body<'a> {
    pub(crate) fn new(out: &'a mut String, options: &'a StreamOptions) -> Self {
        Body::of(out, &options.body)
    }

    /// An object with these fields from the user.
    pub(crate) fn of(out: &'a mut String, own: &'a [(String, RawJson)]) -> Self {
        Body { object: ObjectWriter::new(out), own, has_tools: false }
    }

    #[inline(never)]
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
    #[inline(never)]
    pub(crate) fn fill(&mut self, key: &str, template: &str, values: &[&str]) {
        if let Some(out) = self.key(key) {
            fill(template, values, out);
        }
    }

    /// Writes the list of tools, with a mark in the last one. If the user's own fields have a list of tools (that the
    /// provider runs), it is appended.
    #[inline(never)]
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

    #[inline(never)]
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

/// The tools of a run as JSON for request bodies, written once.
#[derive(Debug, Default)]
pub(crate) struct Tools(Option<(Rc<[ToolSchema]>, String)>);

/// How a wire writes tools.
pub(crate) struct ToolForm {
    /// The list around them.
    pub(crate) list: &'static str,
    /// One tool: its name, description, schema, and whether it is strict.
    pub(crate) tool: &'static str,
    /// The mark of a tool that is not strict, and of one that is.
    pub(crate) strict: [&'static str; 2],
}

impl Tools {
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

/// A schema with the members that providers require: Anthropic requires `type`, OpenAI `properties` too.
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

/// The tool choice and whether calls may be parallel, in OpenAI's form. `named` is the template for one tool; a model
/// that `is_free` cannot be forced.
#[inline(never)]
pub(crate) fn write_openai_choice(
    options: &StreamOptions,
    named: &str,
    is_free: bool,
    has_parallel: bool,
    body: &mut Body<'_>,
) {
    match &options.tool_choice {
        None => {}
        Some(ToolChoice::Tool(name)) if !is_free => body.fill("tool_choice", named, &[name]),
        Some(ToolChoice::None) => body.text("tool_choice", "none"),
        Some(ToolChoice::Required) if !is_free => body.text("tool_choice", "required"),
        Some(_) => body.text("tool_choice", "auto"),
    }
    if let Some(parallel) = options.parallel_tool_calls.filter(|_| has_parallel) {
        body.raw("parallel_tool_calls", bool_text(parallel));
    }
}

/// The cache key: the id of the session, shortened if necessary.
#[inline(never)]
pub(crate) fn write_cache_key(request: &ModelRequest, has_key: bool, body: &mut Body<'_>) {
    if let Some(session) = &request.session_id
        && has_key
        && request.options.cache != Some(false)
    {
        body.text("prompt_cache_key", &fitting_id(session, 64, |_| true));
    }
}

/// The word for how much to think. For a budget of tokens: the nearest word, for servers without budgets.
pub(crate) fn effort(reasoning: &Reasoning) -> &str {
    match reasoning {
        Reasoning::Effort(word) => word,
        Reasoning::Budget(0) => "off",
        Reasoning::Budget(..=2_048) => "low",
        Reasoning::Budget(..=16_384) => "medium",
        Reasoning::Budget(_) => "high",
    }
}

/// An id that a server takes, made of ours alone, so that call and result always agree: ours where it fits, else what
/// fits of it and a digest. What is usual may say nothing of characters beyond ASCII but one thing of them all.
pub(crate) fn fitting_id(call_id: &str, max_length: usize, is_allowed: fn(char) -> bool) -> Cow<'_, str> {
    if !call_id.is_empty()
        && call_id.len() <= max_length
        && call_id.bytes().all(|byte| is_allowed(byte.into()))
    {
        return Cow::Borrowed(call_id);
    }
    let mut id = String::new();
    call_id.chars().take(25).for_each(|c| id.put_char(if is_allowed(c) { c } else { '_' }));
    id.put("_");
    id.put(&digest(call_id, 11));
    Cow::Owned(id)
}

/// Whether the strictest servers allow a character in ids.
pub(crate) fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// A digest of a text, in letters and digits.
pub(crate) fn digest(text: &str, length: usize) -> String {
    in_digits(hash(text), ALPHANUMERIC, length)
}

const ALPHANUMERIC: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// FNV-1a with a final mixing step, so that all digits depend on all bytes.
fn hash(text: &str) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    state ^= state >> 33;
    state = state.wrapping_mul(0xff51_afd7_ed55_8ccd);
    state ^ (state >> 33)
}

fn in_digits(mut number: u64, digits: &str, length: usize) -> String {
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        let at = usize::try_from(number % 62).unwrap_or(0);
        text.put(digits.get(at..=at).unwrap_or("0"));
        number /= 62;
    }
    text
}

/// Whether this is an OpenAI model that thinks and knows the role `developer`.
pub(crate) fn is_reasoning_model(model: &str) -> bool {
    let name = model_name(model);
    let is_family = ["o1", "o3", "o4", "codex"].iter().any(|family| name.starts_with(family))
        || matches!(gpt_version(model), Some((5..=9, _)));
    is_family && !name.starts_with("o1-mini") && !contains(name, "-chat")
}

/// Whether a model of OpenAI thinks before this answer, and so refuses `temperature` and `top_p`. The sixth generation
/// refuses them always.
pub(crate) fn always_thinks(model: &str, options: &StreamOptions) -> bool {
    let effort = options.reasoning.as_ref().map(|reasoning| known_effort(effort(reasoning), model));
    is_reasoning_model(model) && (effort != Some("none") || gpt_version(model) >= Some((6, 0)))
}

/// The word for an effort that a model of OpenAI knows: only the first of the fifth generation know `minimal`, and only
/// later ones can do without. Codex knows neither, nor does the sixth generation, but for some.
pub(crate) fn known_effort<'a>(word: &'a str, model: &str) -> &'a str {
    let can_disable = ["gpt-6-sol", "gpt-6-luna", "gpt-6.1-terra"].iter().any(|name| contains(model, name));
    let is_gpt_6 = gpt_version(model) >= Some((6, 0));
    match word {
        "off" | "none" | "minimal" if contains(model, "codex") || (is_gpt_6 && !can_disable) => "low",
        "off" | "none" | "minimal" if gpt_version(model) == Some((5, 0)) => "minimal",
        "off" | "none" if !model_name(model).starts_with("o") => "none",
        "off" | "none" | "minimal" => "low",
        word => word,
    }
}

/// The version of a GPT by its name, such as `gpt-5.4-mini`.
pub(crate) fn gpt_version(model: &str) -> Option<(u32, u32)> {
    version(model_name(model).strip_prefix("gpt-")?)
}

/// The version at the start of a name.
pub(crate) fn version(name: &str) -> Option<(u32, u32)> {
    let word = split(name, "-").next()?;
    let (major, minor) = split_once(word, ".").unwrap_or((word, "0"));
    Some((parse_u32(major)?, parse_u32(minor).unwrap_or(0)))
}

/// A number in a version.
pub(crate) fn parse_u32(digits: &str) -> Option<u32> {
    u32::try_from(parse_u64(digits)?).ok()
}

/// The name of a model without the path before it.
fn model_name(model: &str) -> &str {
    rsplit_once(model, b'/').map_or(model, |(_, name)| name)
}

/// The sampling parameters.
#[inline(never)]
pub(crate) fn write_sampling(options: &StreamOptions, top_p: &str, body: &mut Body<'_>) {
    for (key, number) in [("temperature", &options.temperature), (top_p, &options.top_p)] {
        if let Some(number) = number {
            body.raw(key, number.as_str());
        }
    }
}

/// The stop sequences.
#[inline(never)]
pub(crate) fn write_stop(options: &StreamOptions, key: &str, body: &mut Body<'_>) {
    if !options.stop.is_empty() {
        body.raw(key, &options.stop.to_json());
    }
}

/// The limit on the length of the answer.
pub(crate) fn write_max_tokens(tokens: Option<u64>, key: &str, body: &mut Body<'_>) {
    if let Some(tokens) = tokens {
        body.raw(key, &number(tokens));
    }
}

/// The text and the pictures of a tool's result, for wires that have no mark for errors.
pub(crate) fn result_parts(message: &ToolResultMessage) -> (Cow<'_, str>, Vec<&ImageBlock>) {
    if let ([ContentBlock::Text(block)], false) = (message.content.as_slice(), message.is_error) {
        return (Cow::Borrowed(&block.text), Vec::new());
    }
    let (mut text, mut pictures) = (String::new(), Vec::new());
    for block in &message.content {
        match block {
            ContentBlock::Text(block) => {
                if !text.is_empty() {
                    text.put("\n");
                }
                text.put(&block.text);
            }
            ContentBlock::Image(image) => pictures.push(image),
            _ => {}
        }
    }
    let is_marked = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if message.is_error && !is_marked {
        text = ["error: ", &text].concat();
    }
    (Cow::Owned(text), pictures)
}

/// An image or file as a data URL.
pub(crate) fn data_url(mime_type: &str, data: &str) -> String {
    ["data:", mime_type, ";base64,", data].concat()
}

/// How to send a file on wires that accept files in few forms.
pub(crate) enum FileForm {
    Image,
    /// The text, with the name of the file before it.
    Text(String),
    Other,
}

/// Images and texts are sent as such: every server accepts them.
pub(crate) fn form_of(file: &FileBlock) -> FileForm {
    if file.mime_type.starts_with("image/") {
        return FileForm::Image;
    }
    match decoded_text(file) {
        Some(text) => FileForm::Text([file.name.as_deref().unwrap_or("file"), ":\n\n", &text].concat()),
        None => FileForm::Other,
    }
}

/// The text of a file that is text; `None` for any other.
pub(crate) fn decoded_text(file: &FileBlock) -> Option<String> {
    let is_text = file.mime_type.starts_with("text/") || file.mime_type.starts_with("application/json");
    if is_text { String::from_utf8(decoded(&file.data)?).ok() } else { None }
}

/// The bytes of a Base64 text.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or(0));
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        let texts = [
            ("", ""),
            ("YQ==", "a"),
            ("YWI", "ab"),
            ("YWJj", "abc"),
            ("w6k=", "\u{e9}"),
            ("Pz8/Pj4+", "???>>>"),
            ("Pz8_Pj4-", "???>>>"),
        ];
        for (text, wanted) in texts {
            assert_eq!(decoded(text).unwrap(), wanted.as_bytes());
        }
        assert_eq!(decoded("a b"), None);
    }

    #[test]
    fn an_id_that_just_fits_is_kept() {
        let id = |id: &str| fitting_id(id, 12, is_plain).into_owned();
        assert_eq!(id("toolu-01_abc"), "toolu-01_abc");
        assert_eq!(id("toolu-01_abcd").get(..14), Some("toolu-01_abcd_"));
        assert_eq!(id("a.b").get(..4), Some("a_b_"));
        assert_eq!(id("").len(), 12);
    }
}
