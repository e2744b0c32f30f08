//! Feeds recorded provider responses to the wires and compares the output with expectations.
//!
//! A case is a file `NAME.expect.json` next to `NAME.sse`, the body of a 200 response, or
//! `NAME.http.json`, a response with another status. Directories may be laid out in any way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use turnwheel::error::{ErrorInfo, ErrorKind};
use turnwheel::message::{ContentBlock, MessageStopReason, ThinkingBlock, ToolCallBlock, Usage};
use turnwheel::stream::{Assembler, AssistantMessageEvent};
use turnwheel::wires::{Remarks, Wire, WireOptions};

/// Bodies are fed whole, and in pieces of these sizes in bytes.
const PIECES: [usize; 4] = [1, 7, 17, 4096];

/// The file endings of a case: the expectation, the body of a 200 response, another response.
const EXTENSIONS: [&str; 3] = [".expect.json", ".sse", ".http.json"];

/// Fields of an expectation that do not describe a decoder's output.
const NOTES: [&str; 8] = [
    "wire",
    "fixture",
    "provenance",
    "exercises",
    "checked_by",
    "clients_that_differ",
    "note",
    // If the deltas of a recording give less than its whole text, the whole is compared.
    "text_from_deltas",
];

/// Fields that must be absent unless they are expected.
const OPTIONAL_FIELDS: [&str; 11] = [
    "error",
    "refusal",
    "text_signature",
    "phases",
    "stop_details",
    "stop_sequence",
    "stop_message",
    "provider_tool_calls",
    "other_blocks",
    "other_parts",
    "usage_billed",
];

/// Returns the wire of that name; `None` if it is not built.
fn wire(name: &str) -> Option<Box<dyn Wire>> {
    turnwheel::wires::wire(name, WireOptions::default()).ok()
}

/// The results of all cases in a directory.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Cases with the expected output for every piece size.
    pub passed: usize,
    /// Cases with a wrong output for some piece size.
    pub failed: usize,
    /// One line for each failed case and piece size.
    pub complaints: Vec<String>,
    /// Cases for wires that are not built, by wire.
    pub not_built: BTreeMap<String, usize>,
}

/// Plays the directory and prints the results. Returns whether nothing failed.
pub fn run(dir: &Path) -> bool {
    let outcome = match play(dir) {
        Ok(outcome) => outcome,
        Err(error) => {
            eprintln!("{}: {error}", dir.display());
            return false;
        }
    };
    for complaint in &outcome.complaints {
        println!("{complaint}");
    }
    for (wire, cases) in &outcome.not_built {
        println!("not yet built: {cases} cases ({wire})");
    }
    if outcome.passed + outcome.failed == 0 {
        println!("no case in {}: one is NAME.expect.json beside NAME.sse or NAME.http.json", dir.display());
    }
    println!("{} passed, {} failed", outcome.passed, outcome.failed);
    outcome.failed == 0 && outcome.passed > 0
}

/// Plays every case below a directory. A file that cannot be played counts as a failed case.
///
/// # Errors
/// If a directory cannot be read.
pub fn play(dir: &Path) -> std::io::Result<Outcome> {
    let mut stems = BTreeSet::new();
    find(dir, &mut stems)?;
    let mut outcome = Outcome::default();
    for stem in stems {
        let shown = Path::new(&stem).strip_prefix(dir).unwrap_or(Path::new(&stem)).display().to_string();
        let before = outcome.complaints.len();
        match case(&stem) {
            Ok(Case::Played(cuttings)) => {
                for (cutting, differences) in cuttings {
                    if !differences.is_empty() {
                        outcome.complaints.push(format!("{shown} ({cutting}): {}", differences.join("; ")));
                    }
                }
            }
            Ok(Case::NotBuilt(wire)) => {
                *outcome.not_built.entry(wire).or_default() += 1;
                continue;
            }
            Err(error) => outcome.complaints.push(format!("{shown}{error}")),
        }
        let counter =
            if outcome.complaints.len() == before { &mut outcome.passed } else { &mut outcome.failed };
        *counter += 1;
    }
    Ok(outcome)
}

/// Collects the paths of all cases, without their file endings.
fn find(dir: &Path, found: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
            continue;
        }
        let name = path.to_string_lossy();
        found.extend(EXTENSIONS.iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned));
    }
    Ok(())
}

/// The result of one case.
enum Case {
    /// For each piece size, the differences from the expectation.
    Played(Vec<(String, Vec<String>)>),
    /// The wire of this name is not built.
    NotBuilt(String),
}

/// Plays one case. An error begins with the ending of the file concerned.
fn case(stem: &str) -> Result<Case, String> {
    let file = |end: &str| fs::read(format!("{stem}{end}")).map_err(|error| format!("{end}: {error}"));
    let json = |end: &str| -> Result<Value, String> {
        serde_json::from_slice(&file(end)?).map_err(|error| format!("{end} is no JSON: {error}"))
    };
    let [expectation, recording, answer] = EXTENSIONS;
    let expected = json(expectation)?;
    let name = expected["wire"].as_str().ok_or_else(|| format!("{expectation} names no `wire`"))?;
    let Some(wire) = wire(name) else { return Ok(Case::NotBuilt(name.to_owned())) };
    if !Path::new(&format!("{stem}{recording}")).exists() {
        let differences = compare(&expected, &of_answer(wire.as_ref(), &json(answer)?));
        return Ok(Case::Played(vec![("answer".to_owned(), differences)]));
    }
    let body = file(recording)?;
    let played = |size: usize| compare(&expected, &of_stream((name, wire.as_ref()), &body, size));
    let mut all = vec![("whole".to_owned(), played(body.len().max(1)))];
    all.extend(PIECES.map(|size| (format!("pieces of {size}"), played(size))));
    Ok(Case::Played(all))
}

/// A wire's output for a response, in the terms of an expectation, and the rules it broke.
struct Seen {
    fields: Map<String, Value>,
    faults: Vec<String>,
}

fn of_answer(wire: &dyn Wire, answer: &Value) -> Seen {
    let body = match &answer["body"] {
        Value::String(text) => text.clone(),
        body => body.to_string(),
    };
    let headers: BTreeMap<String, String> = answer["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.to_lowercase(), value.as_str().map_or(value.to_string(), str::to_owned)))
        .collect();
    let status = answer["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
    let error = wire.error(status, &|name| headers.get(name).cloned(), body.as_bytes(), 0);
    let fields = Map::from_iter([("error".to_owned(), error_fields(&error, &Remarks::default()))]);
    Seen { fields, faults: Vec::new() }
}

fn of_stream(wire: (&str, &dyn Wire), body: &[u8], piece: usize) -> Seen {
    let (name, wire) = wire;
    let mut decoder = wire.decoder();
    let mut events = Vec::new();
    for bytes in body.chunks(piece) {
        decoder.feed(bytes, &mut events);
    }
    decoder.finish(&mut events);
    let mut seen = Seen { fields: Map::new(), faults: Vec::new() };
    if !decoder.is_done() {
        seen.faults.push("the decoder is not done at the end".to_owned());
    }
    seen.take(name, events, &decoder.remarks());
    seen
}

impl Seen {
    fn take(&mut self, wire: &str, events: Vec<AssistantMessageEvent>, remarks: &Remarks) {
        use AssistantMessageEvent as Event;
        let mut assembler = Assembler::default();
        let mut raw_arguments: BTreeMap<u32, String> = BTreeMap::new();
        let mut closed = Vec::new();
        let (mut end, mut usage, mut starts) = (None, None, 0);
        for event in events {
            if end.is_some() {
                self.faults.push("an event after the end".to_owned());
            }
            match &event {
                Event::Start => starts += 1,
                Event::ToolCallStart { index, .. } => drop(raw_arguments.insert(*index, String::new())),
                Event::ToolCallDelta { index, delta } => {
                    raw_arguments.entry(*index).or_default().push_str(delta);
                }
                Event::ToolCallEnd { index, .. } => closed.push(*index),
                Event::Usage(reported) => usage = Some(*reported),
                Event::Done { stop_reason, usage: reported } => {
                    end = Some((*stop_reason, None));
                    usage = reported.or(usage);
                }
                Event::Error(error) => end = Some((MessageStopReason::Error, Some(error.clone()))),
                _ => {}
            }
            if let Err(fault) = assembler.push(event) {
                self.faults.push(fault);
            }
        }
        let Some((stop_reason, error)) = end else {
            return self.faults.push("no end".to_owned());
        };
        // A refused prompt is an error with a code of its own.
        let is_filtered = error.as_ref().is_some_and(|error| error.code == ErrorKind::ContentFiltered);
        let shown = if is_filtered { MessageStopReason::ContentFilter } else { stop_reason };
        if starts > 1 || (starts == 0 && error.is_none()) {
            self.faults.push(format!("{starts} starts"));
        }
        self.take_blocks(wire, assembler, stop_reason, (&raw_arguments, &closed), remarks);
        self.take_remarks(remarks);
        self.set("stop_reason", json!(shown.as_str()));
        self.set("raw_stop_reason", json!(remarks.raw_stop_reason));
        self.set("saw_done", json!(remarks.saw_done));
        self.set("usage", usage.as_ref().map_or(Value::Null, usage_fields));
        if let Some(error) = error {
            self.set("error", error_fields(&error, remarks));
        }
    }

    fn take_remarks(&mut self, remarks: &Remarks) {
        if let Some(details) = &remarks.stop_details {
            let details: Value = serde_json::from_str(details.as_str()).unwrap_or_default();
            self.set(if details.is_string() { "stop_message" } else { "stop_details" }, details);
        }
        if let Some(text) = &remarks.stop_sequence {
            self.set("stop_sequence", json!(text));
        }
        if let Some(billed) = &remarks.billed {
            let mut billed = usage_fields(billed);
            billed.as_object_mut().map(|fields| fields.remove("reasoning"));
            self.set("usage_billed", billed);
        }
    }

    fn take_blocks(
        &mut self,
        wire: &str,
        assembler: Assembler,
        stop_reason: MessageStopReason,
        (raw_arguments, closed): (&BTreeMap<u32, String>, &[u32]),
        remarks: &Remarks,
    ) {
        let assembled = assembler.finish(stop_reason);
        let mut answer = Answer::default();
        for (index, block) in (0_u32..).zip(&assembled.content) {
            let word = kind_of(wire, block);
            let is_refusal = remarks.refusals.contains(&index);
            // A text and a refusal are parts of one item.
            let is_part = word == "message" && answer.was_refusal.is_some_and(|was| was != is_refusal);
            answer.was_refusal = (word == "message").then_some(is_refusal);
            if !is_part {
                answer.order.push(word);
            }
            match block {
                ContentBlock::Text(block) => {
                    let text = if is_refusal { &mut answer.refusal } else { &mut answer.text };
                    text.push_str(&block.text);
                    answer.take_signature(block.signature.as_deref());
                }
                ContentBlock::Thinking(block) => answer.thinking.push(thinking(block)),
                ContentBlock::ToolCall(block) => {
                    let raw = raw_arguments.get(&index).cloned().unwrap_or_default();
                    let is_broken = serde_json::from_str::<Value>(&raw).is_err() && !raw.is_empty();
                    let is_cut =
                        !closed.contains(&index) || (stop_reason == MessageStopReason::Length && is_broken);
                    let mut entry = call(block, if is_cut { Some(raw) } else { None });
                    if let Some((_, id)) = remarks.items.iter().find(|(block, _)| *block == index)
                        && is_cut
                    {
                        entry["item_id"] = json!(id);
                    }
                    answer.calls.push(entry);
                }
                ContentBlock::Raw(data) => {
                    answer.take_raw(serde_json::from_str(data.as_str()).unwrap_or_default());
                }
                ContentBlock::Image(_) | ContentBlock::File(_) => {
                    self.faults.push("an assistant message with a picture or a file".to_owned());
                }
            }
        }
        self.set("order", json!(answer.order));
        self.set("text", json!(answer.text));
        self.set("thinking", Value::Array(answer.thinking));
        self.set("tool_calls", Value::Array(answer.calls));
        let optional = [
            ("phases", answer.phases),
            ("provider_tool_calls", answer.provider_calls),
            (if wire == "gemini" { "other_parts" } else { "other_blocks" }, answer.others.clone()),
            ("other_items", answer.others),
        ];
        for (field, list) in optional {
            if !list.is_empty() {
                self.set(field, Value::Array(list));
            }
        }
        if let Some(signature) = answer.text_signature {
            self.set("text_signature", json!(signature));
        }
        if !answer.refusal.is_empty() {
            self.set("refusal", json!(answer.refusal));
        }
    }

    fn set(&mut self, field: &str, value: Value) {
        self.fields.insert(field.to_owned(), value);
    }
}

/// The contents of the blocks of a message.
#[derive(Default)]
struct Answer {
    text: String,
    refusal: String,
    thinking: Vec<Value>,
    calls: Vec<Value>,
    provider_calls: Vec<Value>,
    others: Vec<Value>,
    order: Vec<String>,
    phases: Vec<Value>,
    /// Set if the last block is part of a Responses message: whether it is a refusal.
    was_refusal: Option<bool>,
    text_signature: Option<String>,
}

impl Answer {
    /// For Responses, the item that the text belongs to. For Gemini, a signature.
    fn take_signature(&mut self, signature: Option<&str>) {
        let Some(signature) = signature else {
            return;
        };
        match object(signature) {
            Some(item) => self.phases.extend(item.get("phase").cloned()),
            None => self.text_signature = Some(signature.to_owned()),
        }
    }

    fn take_raw(&mut self, block: Value) {
        let kind = block["type"].as_str().unwrap_or_default().to_owned();
        if kind.ends_with("tool_use") {
            self.provider_calls
                .push(json!({"id": block["id"], "name": block["name"], "arguments": block["input"]}));
        } else if kind.is_empty() {
            self.others.extend(block.as_object().and_then(|part| part.keys().next()).map(|key| json!(key)));
        } else {
            self.others.push(json!(kind));
        }
    }
}

/// The wire's own word for a block.
fn kind_of(wire: &str, block: &ContentBlock) -> String {
    let is_item = wire == "openai-responses";
    match block {
        ContentBlock::Text(_) if is_item => "message".to_owned(),
        ContentBlock::Thinking(_) if is_item => "reasoning".to_owned(),
        ContentBlock::ToolCall(call) if is_item => {
            let is_custom = metadata(call).is_some_and(|metadata| metadata.contains_key("custom"));
            if is_custom { "custom_tool_call" } else { "function_call" }.to_owned()
        }
        ContentBlock::Text(_) => "text".to_owned(),
        ContentBlock::Thinking(block) if block.redacted => "redacted_thinking".to_owned(),
        ContentBlock::Thinking(_) => "thinking".to_owned(),
        ContentBlock::ToolCall(_) => "tool_use".to_owned(),
        ContentBlock::Raw(data) => object(data.as_str())
            .and_then(|data| data["type"].as_str().map(str::to_owned))
            .unwrap_or_default(),
        ContentBlock::Image(_) | ContentBlock::File(_) => "file".to_owned(),
    }
}

fn thinking(block: &ThinkingBlock) -> Value {
    if block.redacted {
        return json!({"text": block.thinking, "redacted": true, "data": block.signature});
    }
    let mut entry = json!({"text": block.thinking});
    match block.signature.as_deref().map(|signature| (signature, object(signature))) {
        // For Responses, the item without its texts.
        Some((_, Some(item))) => {
            for (field, key) in [("id", "id"), ("signature", "encrypted_content")] {
                if let Some(value) = item.get(key) {
                    entry[field] = value.clone();
                }
            }
        }
        Some((signature, None)) => entry["signature"] = json!(signature),
        None => {}
    }
    entry
}

/// A call. `cut` describes the arguments of a call that must not run.
fn call(call: &ToolCallBlock, cut: Option<String>) -> Value {
    let id = if call.call_id.is_empty() { Value::Null } else { json!(call.call_id) };
    let mut entry = json!({"id": id, "name": call.tool_name});
    let metadata = metadata(call).unwrap_or_default();
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    match cut {
        Some(raw) => {
            entry["arguments"] = Value::Null;
            entry["arguments_raw"] = json!(raw);
            entry["complete"] = json!(false);
        }
        None if metadata.contains_key("custom") => entry["input_text"] = arguments["input"].clone(),
        None => entry["arguments"] = arguments,
    }
    for (field, key) in [("item_id", "item_id"), ("signature", "thoughtSignature")] {
        if let Some(value) = metadata.get(key) {
            entry[field] = value.clone();
        }
    }
    entry
}

fn metadata(call: &ToolCallBlock) -> Option<Map<String, Value>> {
    object(call.metadata.as_ref()?.as_str())
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok()
}

fn usage_fields(usage: &Usage) -> Value {
    let mut fields = json!({
        "input": usage.input,
        "output": usage.output,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
    });
    if let Some(reasoning) = usage.reasoning {
        fields["reasoning"] = json!(reasoning);
    }
    fields
}

fn error_fields(error: &ErrorInfo, remarks: &Remarks) -> Value {
    let mut fields = json!({
        "kind": error.code.as_str(),
        "retryable": error.retryable,
        "message": error.message,
    });
    if error.provider.is_none() {
        fields["is_ours"] = json!(true);
    }
    let provider = error.provider.clone().unwrap_or_default();
    let optional = [
        ("provider_type", provider.kind.map(Value::from)),
        ("provider_code", provider.code.map(Value::from)),
        ("retry_after_ms", error.retry_after_ms.map(Value::from)),
        ("failed_generation", remarks.failed_generation.clone().map(Value::from)),
    ];
    for (field, value) in optional {
        if let Some(value) = value {
            fields[field] = value;
        }
    }
    fields
}

/// Lists how the output differs from the expectation. A field that is unknown
/// here counts as a difference.
fn compare(expected: &Value, seen: &Seen) -> Vec<String> {
    let mut differences = seen.faults.clone();
    for (field, wanted) in expected.as_object().into_iter().flatten() {
        if NOTES.contains(&field.as_str()) {
            continue;
        }
        match seen.fields.get(field) {
            None => differences.push(format!("`{field}` is not there, expected {wanted}")),
            Some(got) if is_same(field, wanted, got) => {}
            Some(got) => differences.push(format!("`{field}` is {got}, expected {wanted}")),
        }
    }
    for field in OPTIONAL_FIELDS {
        if let (Some(got), None) = (seen.fields.get(field), expected.get(field)) {
            differences.push(format!("`{field}` is {got}, none was expected"));
        }
    }
    differences
}

fn is_same(field: &str, wanted: &Value, got: &Value) -> bool {
    match field {
        // Numbers among the provider's codes are kept as text.
        "error" => is_same_error(&with_text_codes(wanted), &with_text_codes(got)),
        // An unknown word has no stop reason of its own.
        "stop_reason" if wanted == "unknown" => got == "stop",
        _ => equal(wanted, got),
    }
}

/// Compares the expected fields; a delay that is not expected must be absent.
fn is_same_error(wanted: &Value, got: &Value) -> bool {
    // If the provider sent no message, it is our own.
    let is_ours = got.get("is_ours").is_some();
    let fields = wanted.as_object().into_iter().flatten();
    fields.into_iter().all(|(field, value)| (is_ours && field == "message") || got.get(field) == Some(value))
        && wanted.get("retry_after_ms") == got.get("retry_after_ms")
}

fn with_text_codes(error: &Value) -> Value {
    let mut error = error.clone();
    for field in ["provider_type", "provider_code"] {
        if let Some(Value::Number(number)) = error.get(field) {
            error[field] = json!(number.to_string());
        }
    }
    error
}

/// Equality in which 1 and 1.0 are the same number.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}
