//! Structured output: the answer is JSON that fits a schema. Models that do not accept a schema directly
//! are offered a tool that takes the answer as its arguments; the engine itself implements that tool.

use std::rc::Rc;

use crate::data::json::{ObjectWriter, RawJson, Reader, ToJson, Value};
use crate::data::list::ListWriter;
use crate::data::text;
use crate::host::config::ModelName;
use crate::host::isolate::guard;
use crate::host::tool::{AgentToolResult, ToolSpec};
use crate::rules::stream::{ModelRequest, StreamOptions, ToolChoice, ToolSchema};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{
    AgentMessage, AssistantMessage, MessageStopReason, ToolCallBlock, ToolResultCause,
};

use super::batch::Batch;
use super::state::Offered;
use super::step::Step;

/// The tool whose arguments are the answer.
pub const OUTPUT_TOOL: &str = "__structured_output";

/// If the schema does not describe an object, the arguments have one member with the answer.
const WRAPPED: &str = "value";

const TOOL_TEXT: &str = "Gives the final answer. Call it exactly once, when everything else is done; its arguments are the answer.";

/// How a text answer is judged when JSON is requested.
pub(super) enum Answered {
    /// No JSON is requested, or the model refuses, or the answer is the one that is already there.
    AsItIs,
    /// The text is the requested JSON.
    Fits(RawJson),
    /// The text is not the requested JSON, for this reason.
    Misses(Miss),
}

/// Why an answer is not the requested JSON.
pub(super) enum Miss {
    /// It is JSON that does not fit.
    Unfitting(String),
    /// It is no JSON at all.
    Prose(String),
}

impl Step<'_> {
    /// Adds to a request what the model is offered: its tools, and the schema of the answer or the tool for
    /// it, which it then has to call.
    pub(super) fn fit_request(&mut self, request: &mut ModelRequest, model: usize) {
        let Some(model) = self.rules.models.get(model) else { return };
        request.model = model.id.clone();
        request.tools = if model.supports_tools { self.rules.schemas.clone() } else { Rc::new([]) };
        if let Some(schema) = self.rules.output.clone() {
            let model = model.clone();
            self.ask_for_output(request, schema, &model);
        }
    }

    fn ask_for_output(&mut self, request: &mut ModelRequest, schema: RawJson, model: &ModelName) {
        let (supports_tools, native) = (model.supports_tools, model.native_output());
        request.output = None;
        request.options = self.call_options().1;
        let native = native.filter(|native| native.any_root || !is_wrapped(&schema));
        let is_repair = self.state.structured.tries > 0;
        match native {
            Some(native) if native.with_tools || request.tools.is_empty() => request.output = Some(schema),
            // Whatever it could do with tools, what is missing now is the answer.
            Some(_) if is_repair => {
                request.tools = Rc::new([]);
                request.output = Some(schema);
            }
            _ if !supports_tools => request.output = Some(schema),
            _ => {
                let is_only = request.tools.is_empty() || is_repair || self.state.spending.is_wrapping_up;
                request.tools = self.offer(&schema);
                if self.state.structured.output.is_none() {
                    force(&mut request.options, is_only);
                }
            }
        }
    }

    /// Returns the tools plus the one for the answer: the same list as long as nothing changes.
    fn offer(&mut self, schema: &RawJson) -> Rc<[ToolSchema]> {
        if let Some(offered) = &self.state.structured.offered
            && Rc::ptr_eq(&offered.tools, &self.rules.schemas)
            && offered.schema == *schema
        {
            return offered.all.clone();
        }
        let parameters = if is_wrapped(schema) { wrap(schema) } else { schema.clone() };
        let tool = ToolSchema { name: OUTPUT_TOOL.into(), description: TOOL_TEXT.into(), parameters };
        let mut all = self.rules.schemas.to_vec();
        all.push(tool);
        let offered = Offered { tools: self.rules.schemas.clone(), schema: schema.clone(), all: all.into() };
        self.state.structured.offered.insert(offered).all.clone()
    }

    /// Answers calls of the answer tool right here: no policy, approver or other tool is involved.
    pub(super) fn answer_output_calls(&mut self, batch: &mut Batch) {
        let Some(schema) = self.rules.output.clone() else { return };
        for place in 0..batch.calls.len() {
            let Some(call) = batch.calls.get(place).filter(|call| call.block.tool_name == OUTPUT_TOOL) else {
                continue;
            };
            batch.is_answer = true;
            if !batch.is_open(place) {
                continue;
            }
            let (call_id, tool_name) = (call.block.call_id.clone(), call.block.tool_name.clone());
            let arguments = call.arguments.clone();
            match self.check_output(&schema, unwrap(&schema, &arguments)) {
                Ok(output) => {
                    self.emit(AgentEvent::ToolExecutionStart { call_id, tool_name, arguments, at: self.now });
                    self.resolve(batch, place, AgentToolResult::text(output.as_str()), None);
                    self.state.structured.output = Some(output);
                }
                Err(text) => self.settle(batch, place, ToolResultCause::InvalidArguments, &text),
            }
        }
    }

    /// Judges an answer without calls.
    pub(super) fn check_text(&self, message: &AssistantMessage) -> Answered {
        use MessageStopReason as S;
        let speaks = matches!(message.stop_reason, S::Stop | S::Length | S::ToolUse);
        match &self.rules.output {
            Some(schema) if speaks => {
                let judged = json_in(&message.text(), schema)
                    .map_err(Miss::Prose)
                    .and_then(|value| self.check_output(schema, value.to_value()).map_err(Miss::Unfitting));
                match judged {
                    Ok(output) => Answered::Fits(output),
                    Err(_) if self.state.structured.output.is_some() => Answered::AsItIs,
                    Err(miss) => Answered::Misses(miss),
                }
            }
            _ => Answered::AsItIs,
        }
    }

    /// The host's validator sees the answer as the arguments of the answer tool.
    fn check_output(&self, schema: &RawJson, value: Value) -> Result<RawJson, String> {
        let value = value.to_raw();
        let Some(check) = &self.rules.validator else { return Ok(value) };
        let spec = ToolSpec::new(OUTPUT_TOOL, TOOL_TEXT, schema.clone());
        let call = ToolCallBlock {
            call_id: String::new(),
            tool_name: OUTPUT_TOOL.to_owned(),
            arguments: value.clone(),
            metadata: None,
        };
        guard(|| check(&spec, &call, &self.state.about())).map(|()| value)
    }

    /// Handles an invalid answer. Returns what the model is told, or the error that ends the run. A model that answers
    /// with prose twice will do so again.
    pub(super) fn reject_output(&mut self, miss: &Miss) -> Result<AgentMessage, Box<ErrorInfo>> {
        let (why, is_prose) = match miss {
            Miss::Unfitting(why) => (why, false),
            Miss::Prose(why) => (why, true),
        };
        let structured = &mut self.state.structured;
        structured.tries += 1;
        let is_again = is_prose && structured.had_prose;
        structured.had_prose |= is_prose;
        if is_again || structured.tries > self.rules.output_retries {
            let tries = text::number(self.state.structured.tries);
            let text = ["the model gave no answer that fits the output schema in ", &tries, " tries: ", why];
            return Err(Box::new(ErrorInfo::new(ErrorKind::Unknown, text.concat()).in_phase("output")));
        }
        let by_tool = self.rules.models.first().is_some_and(|model| {
            model.supports_tools
                && !model.native_output().is_some_and(|native| {
                    native.any_root || !self.rules.output.as_ref().is_some_and(is_wrapped)
                })
        });
        let how =
            if by_tool { "Call the tool `__structured_output`." } else { "Answer with that JSON only." };
        let text = ["The answer does not fit the wanted JSON (", why, "). ", how].concat();
        Ok(AgentMessage::user(text))
    }
}

/// Makes the model call a tool, unless the host has said which: the one for the answer, or any.
fn force(options: &mut Rc<StreamOptions>, is_only: bool) {
    if matches!(options.tool_choice, None | Some(ToolChoice::Auto)) {
        let choice = if is_only { ToolChoice::Tool(OUTPUT_TOOL.to_owned()) } else { ToolChoice::Required };
        Rc::make_mut(options).tool_choice = Some(choice);
    }
}

/// Whether a schema describes something else than an object, or one of several things.
fn is_wrapped(schema: &RawJson) -> bool {
    let schema = schema.to_value();
    let is_union = schema.get("anyOf").or(schema.get("oneOf")).is_some();
    schema.text_at("type").map_or(is_union, |kind| kind != "object")
}

fn wrap(schema: &RawJson) -> RawJson {
    let mut text = String::new();
    let mut wrapped = ObjectWriter::new(&mut text);
    wrapped.field("type", "object");
    // What references refer to stays at the root.
    wrapped.optional("$defs", &schema.to_value().get("$defs").map(ToJson::to_raw));
    let mut members = ObjectWriter::new(wrapped.key("properties"));
    members.field(WRAPPED, schema);
    members.end();
    let mut required = ListWriter::new(wrapped.key("required"));
    WRAPPED.write_json(required.item());
    required.end();
    wrapped.field("additionalProperties", &false);
    wrapped.end();
    RawJson::parse(&text).unwrap_or_else(|_| schema.clone())
}

fn unwrap(schema: &RawJson, arguments: &RawJson) -> Value {
    let value = arguments.to_value();
    if is_wrapped(schema) { value.get(WRAPPED).cloned().unwrap_or_default() } else { value }
}

/// How many places in a text are tried.
const PLACES: usize = 16;

/// Returns the JSON in a text. Models often put it between code fences, or between sentences.
fn json_in(text: &str, schema: &RawJson) -> Result<RawJson, String> {
    let whole = RawJson::parse(text.trim());
    whole.or_else(|error| {
        let open = if schema.to_value().text_at("type") == Some("array") { b'[' } else { b'{' };
        let places = text.bytes().enumerate().filter(|(_, byte)| *byte == open).take(PLACES);
        let mut values = places.filter_map(|(at, _)| {
            let value = Reader::new(text.get(at..)?).skip().ok()?;
            RawJson::parse(value).ok()
        });
        values.next().ok_or_else(|| ["it is no JSON: ", &error.text()].concat())
    })
}
