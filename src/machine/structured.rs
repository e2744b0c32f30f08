//! Structured output: the answer is JSON that fits a schema. Models that do not accept a schema directly
//! are offered a tool that takes the answer as its arguments; the engine itself implements that tool.

use std::rc::Rc;

use crate::data::json::{ObjectWriter, RawJson, ToJson, Value};
use crate::data::list::ListWriter;
use crate::data::text;
use crate::host::isolate::guard;
use crate::host::tool::{AgentToolResult, ToolSpec};
use crate::rules::stream::{ModelRequest, ToolSchema};
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
    Misses(String),
}

impl Step<'_> {
    /// Adds to a request what the model is offered: its tools, and the schema of the answer or the tool for
    /// it.
    pub(super) fn fit_request(&mut self, request: &mut ModelRequest, model: usize) {
        let Some(model) = self.rules.models.get(model) else { return };
        let schema = self.rules.output.clone();
        let by_tool = model.supports_tools && !model.native_output;
        request.model = model.id.clone();
        request.tools = match &schema {
            _ if !model.supports_tools => Rc::new([]),
            Some(schema) if by_tool => self.offer(schema),
            _ => self.rules.schemas.clone(),
        };
        request.output = schema.filter(|_| !by_tool);
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
                    self.emit(AgentEvent::ToolExecutionStart { call_id, tool_name, arguments });
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
                let parsed = RawJson::parse(without_fence(&message.text()));
                let judged = parsed.map_err(|error| ["it is no JSON: ", &error.text()].concat());
                match judged.and_then(|value| self.check_output(schema, value.to_value())) {
                    Ok(output) => Answered::Fits(output),
                    Err(_) if self.state.structured.output.is_some() => Answered::AsItIs,
                    Err(text) => Answered::Misses(text),
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
        guard(|| check(&spec, &call)).map(|()| value)
    }

    /// Handles an invalid answer. Returns what the model is told, or the error that ends the run.
    pub(super) fn reject_output(&mut self, why: &str) -> Result<AgentMessage, Box<ErrorInfo>> {
        self.state.structured.tries += 1;
        if self.state.structured.tries > self.rules.output_retries {
            let tries = text::number(self.state.structured.tries);
            let text = ["the model gave no answer that fits the output schema in ", &tries, " tries: ", why];
            return Err(Box::new(ErrorInfo::new(ErrorKind::Unknown, text.concat()).in_phase("output")));
        }
        let by_tool =
            self.rules.models.first().is_some_and(|model| !model.native_output && model.supports_tools);
        let how =
            if by_tool { "Call the tool `__structured_output`." } else { "Answer with that JSON only." };
        let text = ["The answer does not fit the wanted JSON (", why, "). ", how].concat();
        Ok(AgentMessage::user(text))
    }
}

fn is_wrapped(schema: &RawJson) -> bool {
    let schema = schema.to_value();
    let kind = schema.text_at("type");
    kind.is_some_and(|kind| kind != "object")
}

fn wrap(schema: &RawJson) -> RawJson {
    let mut text = String::new();
    let mut wrapped = ObjectWriter::new(&mut text);
    wrapped.field("type", "object");
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

/// Returns the JSON in a text, which models often put between code fences.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let Some(fenced) = text.strip_prefix("```").and_then(|text| text.strip_suffix("```")) else {
        return text;
    };
    text::split_once(fenced, "\n").map_or(fenced, |(_, json)| json)
}
