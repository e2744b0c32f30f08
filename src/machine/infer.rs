//! Calling the model: the request, the attempts, the answer.

use std::rc::Rc;

use crate::data::json::RawJson;
use crate::data::table::Table;
use crate::data::text;
use crate::data::text::contains;
use crate::host::isolate::guard;
use crate::host::ports::HookCall;
use crate::rules::context::{SameRole, estimate_tokens, hygiene, shown};
use crate::rules::event::AgentEvent;
use crate::rules::overflow::is_context_overflow;
use crate::rules::retry::RetryVerdict;
use crate::rules::stream::{Assembled, Assembler, AssistantMessageEvent, CallFault, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::{
    AgentMessage, AssistantMessage, ContentBlock, LlmMessage, MessageStopReason, ToolCallBlock, Usage,
};

use super::state::{Answer, Ask, AskStep, CacheState, LoopState, Phase, Streaming};
use super::{Effect, EffectId, Output, Reply, Step};

impl Step<'_> {
    /// Calls the model, with a fresh count of attempts.
    pub(super) fn ask(&mut self) {
        if let Err(error) = self.evaluate_dynamic_prompt() {
            return self.cut_message(MessageStopReason::Error, *error);
        }
        self.hint_cache();
        self.ask_again();
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
        let cache = &mut self.state.cache;
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

    /// Calls the model again in the same turn after the context was shortened, with the same dynamic prompt
    /// and a fresh count of attempts.
    #[inline(never)]
    pub(super) fn ask_again(&mut self) {
        let Some(request) = self.new_request() else { return };
        if !self.state.turn.message_open {
            self.announce(&request);
        }
        self.state.turn.asked = 0;
        self.attempt(Box::new(Ask {
            request,
            model: 0,
            attempt: 1,
            last_error: None,
            step: AskStep::default(),
        }));
    }

    /// Returns the request to the first model, or `None` if there can be none and the turn was ended.
    fn new_request(&mut self) -> Option<ModelRequest> {
        let error = match self.request_messages() {
            Ok(_) if self.rules.models.is_empty() => {
                ErrorInfo::new(ErrorKind::Misuse, "there is no model; set `model`")
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

    /// Continues an attempt from a checkpoint: calls again, after the rest of the delay.
    pub(super) fn resume_ask(&mut self, model: usize, attempt: u32, until: Option<u64>) {
        let Some(mut request) = self.new_request() else { return };
        // The chain of models may be shorter now.
        let model = if model < self.rules.models.len() { model } else { 0 };
        self.fit_request(&mut request, model);
        self.state.turn.asked = model;
        let mut ask = Box::new(Ask { request, model, attempt, last_error: None, step: AskStep::default() });
        match until {
            None => self.attempt(ask),
            Some(until) => {
                let left = self.start(Effect::Sleep { ms: until.saturating_sub(self.now) });
                ask.step = AskStep::BackingOff(left, until);
                self.state.phase = Phase::Asking(ask);
            }
        }
    }

    /// Continues hooks from a checkpoint: they are called again for the answer.
    pub(super) fn resume_after_hook(&mut self, model: usize, attempt: u32, answer: Answer) {
        let call = HookCall::AfterInference {
            turn_index: self.state.turn_index,
            model: answer.message.model.as_str().into(),
            message: answer.message.clone(),
        };
        if !self.rules.hooks.has(&call) {
            return self.answered(answer);
        }
        let step = AskStep::AfterHook(self.start(Effect::Hook(call)), answer);
        let request = self.request(Rc::default());
        self.state.phase = Phase::Asking(Box::new(Ask { request, model, attempt, last_error: None, step }));
    }

    fn announce(&mut self, request: &ModelRequest) {
        let before = self.state.model.replace(request.model.clone());
        if let Some(before) = before.filter(|before| *before != request.model) {
            let (from, to) = (before.as_ref().to_owned(), request.model.as_ref().to_owned());
            self.emit(AgentEvent::ModelSwitched { from, to });
        }
        if self.rules.include_requests {
            self.emit(AgentEvent::BeforeLlmCall {
                system_prompt: request.system_prompt.clone(),
                messages: request.messages.clone(),
                model: request.model.clone(),
            });
        }
        self.state.turn.message_open = true;
        self.state.turns += 1;
        self.emit(AgentEvent::MessageStart);
    }

    fn evaluate_dynamic_prompt(&mut self) -> Result<(), Box<ErrorInfo>> {
        let Some(prompt) = &self.rules.dynamic_system_prompt else { return Ok(()) };
        let text = guard(|| prompt()).map_err(|text| {
            let text = ["the dynamic system prompt failed: ", &text].concat();
            Box::new(ErrorInfo::new(ErrorKind::Hook, text).in_phase("dynamic_system_prompt"))
        })?;
        if !text.is_empty() {
            self.state.turn.dynamic_prompt = Some(AgentMessage::user(text).stamped(self.now));
        }
        Ok(())
    }

    fn request(&mut self, messages: Rc<Vec<LlmMessage>>) -> ModelRequest {
        let mut request = ModelRequest {
            model: self.rules.models.first().map_or_else(|| "".into(), |model| model.id.clone()),
            system_prompt: self.rules.system_prompt.clone(),
            messages,
            tools: self.rules.schemas.clone(),
            options: self.rules.stream_options.clone(),
            api_key: None,
            output: None,
            session_id: None,
        };
        self.fit_request(&mut request, 0);
        request
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
            Some(convert) => guard(|| convert(message)),
            None => Ok(message.as_llm()),
        }
    }

    /// One attempt: the hooks, then the call.
    fn attempt(&mut self, mut ask: Box<Ask>) {
        let call = HookCall::BeforeInference {
            turn_index: self.state.turn_index,
            attempt: ask.attempt,
            model: ask.request.model.clone(),
            messages: ask.request.messages.clone(),
        };
        if !self.rules.hooks.has(&call) {
            return self.infer(ask);
        }
        ask.step = AskStep::BeforeHook(self.start(Effect::Hook(call)));
        self.state.phase = Phase::Asking(ask);
    }

    fn infer(&mut self, mut ask: Box<Ask>) {
        let effect = self.start(Effect::Infer {
            model: ask.model,
            turn_index: self.state.turn_index,
            request: ask.request.clone(),
        });
        let limits = &self.rules.timeouts;
        // A model that has begun early must not be allowed a silence as long as one that has not begun.
        let watchdog_ms = limits.first_chunk.into_iter().chain(limits.chunk).min();
        let watchdog = watchdog_ms.map(|ms| self.start(Effect::Sleep { ms }));
        ask.step = AskStep::Streaming(Streaming {
            effect,
            assembler: Assembler::default(),
            watchdog,
            last_activity: self.now,
            has_received: false,
        });
        self.state.phase = Phase::Asking(ask);
    }

    pub(super) fn reply_to_ask(&mut self, mut ask: Box<Ask>, id: EffectId, reply: Reply) {
        let step = std::mem::take(&mut ask.step);
        match (step, reply) {
            (AskStep::BeforeHook(effect), Reply::Hook(result)) if effect == id => match result {
                Ok(()) => self.infer(ask),
                Err(error) => self.cut_message(MessageStopReason::Error, error),
            },
            (AskStep::BackingOff(effect, _), Reply::Slept) if effect == id => self.attempt(ask),
            (AskStep::AfterHook(effect, answer), Reply::Hook(result)) if effect == id => match result {
                Ok(()) => self.answered(answer),
                Err(error) => self.interrupt_answer(answer, error),
            },
            (AskStep::Streaming(streaming), reply) => self.reply_to_stream(ask, streaming, id, reply),
            (step, _) => {
                ask.step = step;
                self.state.phase = Phase::Asking(ask);
            }
        }
    }

    /// Handles a piece of the streaming answer, which changes nothing but the answer. Returns any other
    /// event.
    pub(super) fn stream_in_place(&mut self, id: EffectId, reply: Reply) -> Option<Reply> {
        match self.state.apply_stream_event(self.now, id, reply) {
            Ok(event) => {
                self.out.extend(event.map(Output::Event));
                None
            }
            Err(reply) => Some(reply),
        }
    }

    #[inline(never)]
    fn reply_to_stream(&mut self, mut ask: Box<Ask>, mut streaming: Streaming, id: EffectId, reply: Reply) {
        if streaming.watchdog == Some(id) {
            return self.check_watchdog(ask, streaming);
        }
        if streaming.effect != id {
            ask.step = AskStep::Streaming(streaming);
            self.state.phase = Phase::Asking(ask);
            return;
        }
        streaming.last_activity = self.now;
        streaming.has_received = true;
        match reply {
            Reply::Stream(AssistantMessageEvent::Done { stop_reason, usage }) => {
                if let Some(usage) = usage {
                    streaming.assembler.usage = usage;
                }
                self.finish_message(ask, streaming, stop_reason);
            }
            Reply::Stream(AssistantMessageEvent::Error(error)) => self.failed(ask, streaming, error),
            Reply::StreamEnded => {
                let text = "the answer ended before it was complete";
                self.failed(ask, streaming, ErrorInfo::new(ErrorKind::Network, text));
            }
            other => {
                if matches!(other, Reply::Stream(AssistantMessageEvent::Start)) {
                    self.reset_message(&streaming.assembler, "the provider began the answer anew");
                    streaming.assembler.clear();
                }
                ask.step = AskStep::Streaming(streaming);
                self.state.phase = Phase::Asking(ask);
            }
        }
    }

    /// Handles the watchdog's timer. Silence is measured by the clock, because timers in hidden tabs fire
    /// late, and because frequent signs of life must not each cost a timer.
    fn check_watchdog(&mut self, mut ask: Box<Ask>, mut streaming: Streaming) {
        let limits = &self.rules.timeouts;
        let limit = if streaming.has_received { limits.chunk } else { limits.first_chunk.or(limits.chunk) };
        let silent = self.now.saturating_sub(streaming.last_activity);
        streaming.watchdog = None;
        match limit {
            Some(limit) if silent >= limit => {
                let text = ["the model was silent for ", &text::number(silent), " ms"].concat();
                self.failed(ask, streaming, ErrorInfo::new(ErrorKind::Network, text).in_phase("model"));
            }
            limit => {
                streaming.watchdog = limit.map(|limit| self.start(Effect::Sleep { ms: limit - silent }));
                ask.step = AskStep::Streaming(streaming);
                self.state.phase = Phase::Asking(ask);
            }
        }
    }

    /// The answer is complete: it is shown, stored, and the hooks are called.
    #[inline(never)]
    fn finish_message(&mut self, mut ask: Box<Ask>, streaming: Streaming, stop_reason: MessageStopReason) {
        if stop_reason == MessageStopReason::Error {
            // The answer is complete, so calling again would not be another attempt but another answer.
            let text = "the provider ended the answer with an error";
            return self.cut_by_provider(streaming, stop_reason, ErrorInfo::new(ErrorKind::Unknown, text));
        }
        if stop_reason == MessageStopReason::Aborted {
            let text = "the provider stopped the answer";
            return self.cut_by_provider(streaming, stop_reason, ErrorInfo::new(ErrorKind::Aborted, text));
        }
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        let usage = streaming.assembler.usage.totalled();
        let Assembled { content, faults } = streaming.assembler.finish(stop_reason);
        let shown = Rc::new(self.message(ask.model, content, &usage, stop_reason));
        let (stored, own_arguments) = without_faults(&shown, &faults);
        self.state.usage.add(&usage);
        self.state.turn.message_open = false;
        self.emit(AgentEvent::MessageEnd { message: shown });
        let place = self.state.history.messages().len();
        self.append(AgentMessage::Assistant(stored.clone()));
        let answer = Answer { message: stored, place, faults, own_arguments };
        let call = HookCall::AfterInference {
            turn_index: self.state.turn_index,
            model: ask.request.model.clone(),
            message: answer.message.clone(),
        };
        if !self.rules.hooks.has(&call) {
            return self.answered(answer);
        }
        ask.step = AskStep::AfterHook(self.start(Effect::Hook(call)), answer);
        self.state.phase = Phase::Asking(ask);
    }

    fn cut_by_provider(&mut self, streaming: Streaming, stop_reason: MessageStopReason, error: ErrorInfo) {
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        self.cut_stream(streaming, stop_reason, error.in_phase("model"));
    }

    /// Ends the turn with what has arrived of the streaming answer.
    #[inline(never)]
    pub(super) fn cut_stream(
        &mut self,
        streaming: Streaming,
        stop_reason: MessageStopReason,
        error: ErrorInfo,
    ) {
        let usage = streaming.assembler.usage;
        self.cut_message_with(streaming.assembler.partial(), usage, stop_reason, error);
    }

    /// An answer of one of the models.
    #[inline(never)]
    pub(super) fn message(
        &self,
        model: usize,
        content: Vec<ContentBlock>,
        usage: &Usage,
        stop_reason: MessageStopReason,
    ) -> AssistantMessage {
        let name = self.rules.models.get(model);
        AssistantMessage {
            content,
            provider: name.map_or("", |name| &name.provider).to_owned(),
            model: name.map_or("", |name| &name.id).to_owned(),
            usage: usage.totalled(),
            stop_reason,
            error: None,
            timestamp: self.now,
            foreign: None,
        }
    }

    /// Calls are taken from the content; the provider's stop reason is not trusted.
    #[inline(never)]
    fn answered(&mut self, answer: Answer) {
        if answer.message.tool_calls().next().is_some() {
            self.state.pauses = 0;
            self.begin_batch(answer);
        } else {
            self.finish_text_turn(&answer.message, answer.place);
        }
    }

    /// Handles a failed attempt: recovers, retries, falls back or gives up.
    #[inline(never)]
    fn failed(&mut self, mut ask: Box<Ask>, streaming: Streaming, error: ErrorInfo) {
        self.cancel(streaming.effect);
        self.cancel_some(streaming.watchdog);
        let mut error = error.in_phase("model");
        classify(&mut error);
        let verdict = match error.code {
            ErrorKind::Aborted => return self.cut_stream(streaming, MessageStopReason::Aborted, error),
            ErrorKind::ContextOverflow if self.state.turn.recoveries < self.rules.max_recoveries_per_turn => {
                return self.recover(streaming, error);
            }
            ErrorKind::ContextOverflow if self.rules.max_recoveries_per_turn > 0 => RetryVerdict::Stop,
            _ => {
                let (retry, random) = (&self.rules.retry, &self.rules.random);
                let verdict = guard(|| Ok(retry.delay(&error, ask.attempt, random())));
                verdict.unwrap_or(RetryVerdict::Stop)
            }
        };
        if let RetryVerdict::Wait(delay_ms) = verdict {
            self.discard_answer(streaming, &error.message);
            let reason = error.message.clone();
            ask.last_error = Some(error.code);
            self.emit(AgentEvent::RetryAttempt { attempt: ask.attempt, delay_ms, reason, error });
            ask.attempt += 1;
            ask.step = AskStep::BackingOff(
                self.start(Effect::Sleep { ms: delay_ms }),
                self.now.saturating_add(delay_ms),
            );
            self.state.phase = Phase::Asking(ask);
            return;
        }
        if let RetryVerdict::StopNaming(asked) = verdict {
            let text = [&error.message, " (the server asks to wait ", &text::number(asked), " ms)"].concat();
            error.message = text;
        }
        match self
            .rules
            .models
            .get(ask.model + 1)
            .filter(|_| error.retryable || ask.last_error == Some(error.code))
        {
            Some(_) => self.fall_back(ask, streaming, &error),
            None => self.cut_stream(streaming, MessageStopReason::Error, error),
        }
    }

    fn fall_back(&mut self, mut ask: Box<Ask>, streaming: Streaming, error: &ErrorInfo) {
        self.discard_answer(streaming, &error.message);
        let Some(next) = self.rules.models.get(ask.model + 1) else { return };
        let own = self.rules.models.first().map_or("", |model| &model.id);
        let (from, to) = (own.to_owned(), next.id.as_ref().to_owned());
        ask.model += 1;
        self.fit_request(&mut ask.request, ask.model);
        ask.attempt = 1;
        ask.last_error = None;
        self.state.turn.asked = ask.model;
        self.emit(AgentEvent::ModelFallback { from, to });
        self.attempt(ask);
    }

    /// What was shown of the attempt does not count.
    fn discard_answer(&mut self, streaming: Streaming, reason: &str) {
        self.state.usage.add(&streaming.assembler.usage.totalled());
        self.reset_message(&streaming.assembler, reason);
    }

    /// What was shown does not count.
    pub(super) fn reset_message(&mut self, shown: &Assembler, reason: &str) {
        if shown.is_empty() {
            return;
        }
        for call_id in shown.call_ids() {
            self.state.history.call_ids.release(call_id);
        }
        self.emit(AgentEvent::MessageReset { reason: reason.to_owned() });
    }

    /// The model refuses the conversation as too long: the transformers are told, in the same turn.
    fn recover(&mut self, streaming: Streaming, error: ErrorInfo) {
        self.state.turn.shown = streaming.assembler;
        self.state.turn.recoveries += 1;
        self.state.turn.overflow = Some(error);
        self.state.turn.view = None;
        self.prepare(true);
    }
}

impl LoopState {
    /// The hot path, which needs no rules: adds a piece to the streaming answer and returns the event to
    /// emit. Anything else is returned unchanged.
    #[allow(
        clippy::result_large_err,
        reason = "what comes back is handed on at once; a box would cost one per answer"
    )]
    pub(crate) fn apply_stream_event(
        &mut self,
        now: u64,
        id: EffectId,
        reply: Reply,
    ) -> Result<Option<AgentEvent>, Reply> {
        use AssistantMessageEvent as E;
        let Phase::Asking(ask) = &mut self.phase else { return Err(reply) };
        let AskStep::Streaming(streaming) = &mut ask.step else { return Err(reply) };
        match reply {
            Reply::Stream(mut event)
                if streaming.effect == id && !matches!(event, E::Start | E::Done { .. } | E::Error(_)) =>
            {
                streaming.last_activity = now;
                streaming.has_received = true;
                // The id of a call is made unique in the whole history when the call starts, so that every
                // event shows the same id.
                let original = match &mut event {
                    E::ToolCallStart { index, call_id, .. } => {
                        self.history.call_ids.claim_for(call_id).map(|original| (*index, original))
                    }
                    _ => None,
                };
                let pushed = streaming.assembler.push(event);
                if let Some((index, original)) = original {
                    streaming.assembler.note_original_id(index, original);
                }
                match pushed {
                    Ok(delta) => {
                        Ok(delta.filter(|delta| !delta.text.is_empty()).map(AgentEvent::MessageUpdate))
                    }
                    Err(text) => {
                        let text = ["stream error: ", &text].concat();
                        Err(Reply::Stream(E::Error(ErrorInfo::new(ErrorKind::Unknown, text))))
                    }
                }
            }
            reply => Err(reply),
        }
    }
}

/// Classifies an error that nobody classified, by its text.
fn classify(error: &mut ErrorInfo) {
    if error.code != ErrorKind::Unknown || error.retryable || error.provider.is_some() {
        return;
    }
    let message = error.message.to_ascii_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| contains(&message, phrase));
    error.code = if is_context_overflow(&message) {
        ErrorKind::ContextOverflow
    } else if has(&["rate limit", "rate_limit", "throttl", "too many requests"])
        || has_number(&message, "429")
    {
        ErrorKind::Throttled
    } else if has(&["content filter", "content_filter"]) {
        ErrorKind::ContentFiltered
    } else {
        return;
    };
    error.retryable = error.code.is_transient();
}

/// Whether a number occurs in a text as a word of its own.
fn has_number(text: &str, number: &str) -> bool {
    text.as_bytes().split(|byte| !byte.is_ascii_alphanumeric()).any(|word| word == number.as_bytes())
}

/// Returns the message as it is stored, in which faulty calls have `{}`, and the arguments that they had
/// instead.
fn without_faults(
    shown: &Rc<AssistantMessage>,
    faults: &[(String, CallFault)],
) -> (Rc<AssistantMessage>, Table<String, RawJson>) {
    let mut own = Table::new();
    if faults.is_empty() {
        return (shown.clone(), own);
    }
    let mut stored = shown.as_ref().clone();
    for block in &mut stored.content {
        if let ContentBlock::ToolCall(call) = block
            && faults.iter().any(|(id, _)| *id == call.call_id)
        {
            let given = std::mem::replace(&mut call.arguments, RawJson::empty_object());
            own.insert(call.call_id.clone(), given);
        }
    }
    (Rc::new(stored), own)
}

/// Returns the call as a tool receives it.
pub(super) fn with_arguments(call: &ToolCallBlock, arguments: &RawJson) -> ToolCallBlock {
    ToolCallBlock { arguments: arguments.clone(), ..call.clone() }
}

/// Returns the text argument named `command`, for rules about shells.
pub(super) fn command_of(arguments: &RawJson) -> Option<String> {
    let written = arguments.as_str();
    // A key may be written with escapes: `"\u0063ommand"`.
    if !contains(written, "command") && !contains(written, "\\u") {
        return None;
    }
    arguments.to_value().owned_at("command")
}
