//! The request: what the model is shown of the history.

use std::rc::Rc;

use crate::host::isolate::guard;
use crate::rules::budget::Amounts;
use crate::rules::context::{SameRole, estimate_tokens, hygiene, shown};
use crate::rules::stream::{ModelRequest, StreamOptions, ToolChoice};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::event::AgentEvent;
use crate::words::message::{AgentMessage, LlmMessage, MessageStopReason};

use super::phase::{AttemptStage, Inference};
use super::state::CacheState;
use super::step::Step;

impl Step<'_> {
    /// Calls the model, with a fresh count of attempts.
    pub(super) fn call_model(&mut self) {
        if let Err(error) = self.evaluate_dynamic_prompt() {
            return self.cut_message(MessageStopReason::Error, *error);
        }
        self.hint_cache();
        self.call_model_again();
    }

    /// Reports whether the provider's cache is to be written or read, because its content changes only at
    /// intervals.
    fn hint_cache(&mut self) {
        let Some(hints) = &self.rules.cache else { return };
        let (tokens, messages) = match &self.state.turn.view {
            Some(view) => (view.iter().map(estimate_tokens).sum(), view.len()),
            None => (self.state.history.tokens().0, self.state.history.messages().len()),
        };
        if tokens < hints.min_tokens {
            return;
        }
        let cache = &mut self.state.provider.cache;
        let expired = self.now.saturating_sub(cache.written) > hints.ttl_ms;
        let write = cache.turns == 0 || cache.turns >= hints.intervals || expired;
        if write {
            hints.prefix.set(messages);
            *cache = CacheState { turns: 0, written: self.now, prefix_tokens: tokens };
        }
        cache.turns += 1;
        let prefix_tokens = cache.prefix_tokens;
        self.emit(AgentEvent::CacheAction { write, prefix_tokens });
    }

    fn evaluate_dynamic_prompt(&mut self) -> Result<(), Box<ErrorInfo>> {
        let Some(prompt) = &self.rules.dynamic_system_prompt else { return Ok(()) };
        let text = guard(|| prompt(&self.state.about())).map_err(|text| {
            let text = ["the dynamic system prompt failed: ", &text].concat();
            Box::new(ErrorInfo::new(ErrorKind::Hook, text).in_phase("dynamic_system_prompt"))
        })?;
        if !text.is_empty() {
            self.state.turn.dynamic_prompt = Some(AgentMessage::user(text).stamped(self.now));
        }
        Ok(())
    }

    /// Calls the model again in the same turn after the context was shortened, with the same dynamic prompt
    /// and a fresh count of attempts.
    pub(super) fn call_model_again(&mut self) {
        if self.state.turn.message_open && !self.may_pay_again(ErrorKind::ContextOverflow) {
            return;
        }
        let Some(request) = self.new_request() else { return };
        if !self.state.turn.message_open {
            self.announce(&request);
        }
        self.state.turn.model = 0;
        self.attempt(Box::new(Inference {
            request,
            model: 0,
            attempt: 1,
            last_error: None,
            stage: AttemptStage::default(),
        }));
    }

    /// Whether messages were chosen that are none for a model, or only results are left without their calls.
    fn has_lost_all(&self) -> bool {
        let is_result = |message: &AgentMessage| matches!(message, AgentMessage::ToolResult(_));
        self.state.turn.chosen_view.is_some() || self.shown_list().iter().any(is_result)
    }

    /// Returns the request to the first model, or `None` if there can be none and the turn was ended.
    pub(super) fn new_request(&mut self) -> Option<ModelRequest> {
        let error = match self.request_messages() {
            Ok(_) if self.rules.models.is_empty() => {
                ErrorInfo::new(ErrorKind::Misuse, "there is no model; set `model`")
            }
            // An empty history may be what a host wants; what was chosen for a turn, or left of it, has something to say.
            Ok(messages) if messages.is_empty() && self.has_lost_all() => {
                let (whose, phase) = match self.state.turn.chosen_view {
                    Some(_) => ("chosen for this turn", "prepare_turn"),
                    None => ("that are left", "transform_context"),
                };
                let text = "have none for the model; a tool's result goes with the answer that has its call";
                ErrorInfo::new(ErrorKind::Hook, ["the messages ", whose, " ", text].concat()).in_phase(phase)
            }
            Ok(messages) => return Some(self.request(messages)),
            Err(text) => {
                let text = ["convert_to_llm failed: ", &text].concat();
                ErrorInfo::new(ErrorKind::Hook, text).in_phase("convert_to_llm")
            }
        };
        self.cut_message(MessageStopReason::Error, error);
        None
    }

    /// Returns the turn's view of the history as the model receives it: converted, cleaned, the dynamic
    /// prompt in front.
    fn request_messages(&mut self) -> Result<Rc<Vec<LlmMessage>>, String> {
        let mut messages = match self.state.turn.view.take() {
            None => {
                self.convert_history()?;
                self.state.history.all_shown()
            }
            Some(view) => {
                let converted = self.convert_view(&view);
                self.state.turn.view = Some(view);
                Rc::new(hygiene(converted?, SameRole::Keep))
            }
        };
        if let Some(prompt) = self.state.turn.dynamic_prompt.as_ref().and_then(AgentMessage::as_llm) {
            Rc::make_mut(&mut messages).insert(0, prompt);
        }
        Ok(messages)
    }

    /// Converts the messages added since the last time. Each message is converted once, and the result is
    /// kept.
    fn convert_history(&mut self) -> Result<(), String> {
        while let Some(message) = self.state.history.unconverted() {
            let shown = self.convert(&message)?;
            self.state.history.keep_conversion(shown);
        }
        Ok(())
    }

    fn convert_view(&mut self, view: &[AgentMessage]) -> Result<Vec<LlmMessage>, String> {
        if self.rules.convert_to_llm.is_none() {
            return Ok(shown(view));
        }
        self.convert_history()?;
        let mut converted = Vec::with_capacity(view.len());
        let mut from = 0;
        for message in view {
            match self.state.history.place_of(message, from) {
                Some(place) => {
                    from = place + 1;
                    converted.extend(self.state.history.shown(place));
                }
                None => converted.extend(self.convert(message)?),
            }
        }
        Ok(converted)
    }

    fn convert(&self, message: &AgentMessage) -> Result<Option<LlmMessage>, String> {
        match &self.rules.convert_to_llm {
            Some(convert) => guard(|| convert(message, &self.state.about())),
            None => Ok(message.as_llm()),
        }
    }

    pub(super) fn request(&mut self, messages: Rc<Vec<LlmMessage>>) -> ModelRequest {
        let (system_prompt, options) = self.call_options();
        let mut request = ModelRequest {
            model: self.rules.models.first().map_or_else(|| "".into(), |model| model.id.clone()),
            system_prompt,
            messages,
            tools: self.rules.schemas.clone(),
            options,
            api_key: None,
            output: None,
            session_id: None,
        };
        self.fit_request(&mut request, 0);
        request
    }

    /// The system prompt and the options of this call.
    pub(super) fn call_options(&self) -> (Rc<str>, Rc<StreamOptions>) {
        let options = self.stream_options();
        if self.state.spending.is_wrapping_up {
            return self.wrap_up(options);
        }
        (self.rules.system_prompt.clone(), options)
    }

    /// The options of this call. A choice that forces a call of a tool holds for the first call of a run.
    fn stream_options(&self) -> Rc<StreamOptions> {
        let options = &self.rules.stream_options;
        let is_forced = matches!(options.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool(_)));
        let is_first = self.state.tally.turns == u32::from(self.state.turn.message_open);
        if !is_forced || is_first || self.rules.repeats_tool_choice {
            return options.clone();
        }
        Rc::new(StreamOptions { tool_choice: Some(ToolChoice::Auto), ..options.as_ref().clone() })
    }

    /// Tells the listeners if the host has switched the model since the last request.
    pub(super) fn note_model(&mut self, request: &ModelRequest) {
        let before = self.state.provider.model.replace(request.model.clone());
        if let Some(before) = before.filter(|before| *before != request.model) {
            let (from, to) = (before.as_ref().to_owned(), request.model.as_ref().to_owned());
            self.emit(AgentEvent::ModelSwitched { from, to });
        }
    }

    fn announce(&mut self, request: &ModelRequest) {
        self.note_model(request);
        if self.rules.include_requests {
            self.emit(AgentEvent::BeforeLlmCall {
                system_prompt: request.system_prompt.clone(),
                messages: request.messages.clone(),
                model: request.model.clone(),
            });
        }
        self.state.turn.message_open = true;
        self.state.tally.turns += 1;
        self.spend(&Amounts { turns: 1, ..Amounts::default() });
        self.emit(AgentEvent::MessageStart { at: self.now });
    }
}
