//! How effects start: each becomes a future or a stream of a host function.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::future::{FutureExt, LocalBoxFuture};
use futures::stream::{self, LocalBoxStream, Stream, StreamExt};

use crate::data::json::RawJson;
use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, Ports};
use crate::host::isolate::guard;
use crate::host::ports::{AgentRunContext, CompactionCall, HookCall};
use crate::host::tool::{ToolContext, ToolOutcome, Updates};
use crate::machine::{Effect, EffectId, Input, Queue, Reply};
use crate::rules::policy::Transform;
use crate::rules::stream::{AssistantMessageEvent, ModelRequest};
use crate::words::error::{ErrorInfo, ErrorKind};
use crate::words::message::AgentMessage;

use super::AgentStream;
use super::tasks::{EffectFuture, Polled};

impl AgentStream {
    #[inline(never)]
    pub(super) fn start(&mut self, id: EffectId, effect: Effect) {
        if let Effect::Prepare { overflow: false } = effect
            && self.state.is_turn_new()
        {
            // Changes by the host take effect together, from the next turn on.
            self.config = self.handover.config.borrow().clone();
        }
        let config = self.config.clone();
        let ports = &config.ports;
        if let Some(reply) = default_reply(ports, &effect) {
            return self.step(Input::Reply(id, reply));
        }
        let cancel = CancelToken::new();
        let is_poll = matches!(effect, Effect::Poll(_));
        let work = match effect {
            Effect::Prepare { overflow } => {
                let Some(transformer) = ports.transformer.clone() else { return };
                let messages: Rc<[AgentMessage]> = self.state.messages().into();
                let answer = guard(|| Ok(transformer.transform(messages, overflow, cancel.clone())));
                EffectFuture::once(answer, Reply::Prepared)
            }
            Effect::Poll(queue) => {
                let Some(provider) = ports.messages.clone() else { return };
                let answer = guard(|| {
                    let messages = match queue {
                        Queue::FollowUp => provider.poll_follow_up(),
                        _ => provider.poll_steering(),
                    };
                    Ok(Box::pin(async { Ok(messages.await) }) as LocalBoxFuture<'static, _>)
                });
                EffectFuture::once(answer, |messages| Reply::Polled(messages.unwrap_or_default()))
            }
            Effect::Compact { model } => {
                let Some(engine) = ports.compaction.clone() else { return };
                let messages: Rc<[AgentMessage]> = self.state.messages().into();
                let call = CompactionCall { messages, model, cancel: cancel.clone() };
                let answer = guard(|| Ok(engine.compact(&self.context, call)));
                EffectFuture::once(answer, |compaction| Reply::Compacted(Some(compaction)))
            }
            Effect::Approve(request) => {
                let Some(approver) = ports.approver.clone() else { return };
                let answer = guard(|| Ok(approver.decide(request, cancel.clone())));
                EffectFuture::once(answer, Reply::Approved)
            }
            Effect::Sleep { ms } => {
                let sleep = guard(|| Ok(ports.timer.sleep(ms)));
                // A timer that fails never completes.
                let sleep = sleep.unwrap_or_else(|_| Box::pin(std::future::pending()));
                EffectFuture::once(Ok(Box::pin(sleep.map(Ok))), |_| Reply::Slept)
            }
            Effect::Hook(call) => {
                let run = self.handover.cancel.clone();
                let calls = call_hooks(config.clone(), self.context.clone(), run, call);
                EffectFuture::once(Ok(calls), |result| Reply::Hook(result.map_err(hook_error)))
            }
            Effect::Execute { tool, call_id, arguments } => {
                self.execute(&config, tool, call_id, arguments, cancel.clone())
            }
            Effect::Infer { model, turn_index, request } => {
                EffectFuture::Model(self.infer(&config, model, turn_index, request, &cancel))
            }
        };
        self.tasks.insert(id, work, cancel);
        if is_poll {
            // A reply that is ready immediately takes effect before anything else starts.
            let polled = self.tasks.poll(id);
            if let Some(Polled::Last(Reply::Polled(messages))) = &polled
                && messages.is_empty()
            {
                // The polled code may itself have aborted or steered, and that takes precedence over an
                // empty reply.
                self.handle_commands();
            }
            polled.into_iter().for_each(|polled| self.take_polled(id, polled));
        }
    }

    fn execute(
        &self,
        config: &Rc<AgentLoopConfig>,
        tool: usize,
        call_id: Rc<str>,
        arguments: RawJson,
        cancel: CancelToken,
    ) -> EffectFuture {
        let updates = Updates::with_flag(self.has_progress.clone());
        let tool_name =
            config.rules.tools.get(tool).map_or_else(|| "".into(), |spec| spec.schema.name.clone());
        let Some(tool) = config.ports.tools.get(tool).cloned() else {
            let missing = ToolOutcome::Failed("the tool is not there any more".to_owned());
            return EffectFuture::tool(Box::pin(async { missing }), updates);
        };
        let context = ToolContext {
            call_id,
            tool_name,
            run_id: self.context.run_id.clone(),
            session_id: self.context.session_id.clone(),
            arguments,
            cancel,
            updates: updates.clone(),
            state: self.state.session().clone(),
        };
        let future = guard(|| Ok(tool.execute(context)));
        let future = future.unwrap_or_else(|text| Box::pin(async { ToolOutcome::Failed(text) }));
        EffectFuture::tool(future, updates)
    }

    /// Gets the key, once per turn, and then starts the call.
    fn infer(
        &self,
        config: &Rc<AgentLoopConfig>,
        model: usize,
        turn_index: u32,
        mut request: ModelRequest,
        cancel: &CancelToken,
    ) -> LocalBoxStream<'static, AssistantMessageEvent> {
        let place = model;
        let Some(model) = config.ports.models.get(place).cloned() else {
            return failed_stream(ErrorInfo::new(ErrorKind::Misuse, "there is no such model"));
        };
        let (context, cancel) = (self.context.clone(), cancel.clone());
        let provider = model.provider.clone();
        let call = move |mut request: ModelRequest, key: Option<Rc<str>>| {
            request.api_key = key;
            let stream = guard(|| Ok(model.stream_fn.stream(request, &context, cancel)));
            stream.unwrap_or_else(|text| failed_stream(ErrorInfo::new(ErrorKind::Unknown, text)))
        };
        let Some(keys) = config.ports.keys.clone() else { return call(request, None) };
        let is_same = |asked: usize| {
            let of_provider =
                || config.ports.models.get(asked).is_some_and(|other| other.provider == provider);
            asked == place || (!keys.is_by_model() && of_provider())
        };
        let known = self.key.borrow().clone();
        if let Some((turn, asked, key)) = known
            && turn == turn_index
            && is_same(asked)
        {
            return call(request, key);
        }
        let (key_of_turn, run) = (self.key.clone(), self.handover.cancel.clone());
        request.api_key = None;
        let asked = async move {
            let key = match guard(|| Ok(keys.key_of(place, &provider))) {
                Ok(future) => future.await,
                Err(text) => Err(text),
            };
            if run.is_cancelled() {
                // The key source has stopped the run, so no model may be called any more.
                return std::future::pending().await;
            }
            match key {
                Ok(key) => {
                    *key_of_turn.borrow_mut() = Some((turn_index, place, key.clone()));
                    call(request, key)
                }
                Err(text) => {
                    let text = ["the key could not be had: ", &text].concat();
                    failed_stream(ErrorInfo::new(ErrorKind::Auth, text))
                }
            }
        };
        Box::pin(KeyedStream::Opening(Box::pin(asked)))
    }
}

/// A model call: the key first, then its events.
enum KeyedStream {
    Opening(LocalBoxFuture<'static, LocalBoxStream<'static, AssistantMessageEvent>>),
    Open(LocalBoxStream<'static, AssistantMessageEvent>),
}

impl Stream for KeyedStream {
    type Item = AssistantMessageEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<AssistantMessageEvent>> {
        if let KeyedStream::Opening(asked) = &mut *self {
            match asked.as_mut().poll(cx) {
                Poll::Ready(stream) => *self = KeyedStream::Open(stream),
                Poll::Pending => return Poll::Pending,
            }
        }
        match &mut *self {
            KeyedStream::Open(stream) => stream.as_mut().poll_next(cx),
            KeyedStream::Opening(_) => Poll::Pending,
        }
    }
}

async fn call_hooks_in_order(
    config: Rc<AgentLoopConfig>,
    context: AgentRunContext,
    run: CancelToken,
    call: HookCall,
) -> Result<(), String> {
    let is_error = matches!(call, HookCall::OnError { .. });
    for hook in &config.ports.hooks {
        if !hook.stages().has(&call) {
            continue;
        }
        if run.is_cancelled() && !is_after(&call) {
            // The previous hook has stopped the run, so no further hook is called.
            return std::future::pending().await;
        }
        let answer = match guard(|| Ok(hook.call(&context, call.clone()))) {
            Ok(mut future) => {
                std::future::poll_fn(move |cx| match guard(|| Ok(future.as_mut().poll(cx))) {
                    Ok(poll) => poll,
                    Err(text) => Poll::Ready(Err(text)),
                })
                .await
            }
            Err(text) => Err(text),
        };
        if !is_error {
            answer?;
        }
    }
    Ok(())
}

fn call_hooks(
    config: Rc<AgentLoopConfig>,
    context: AgentRunContext,
    run: CancelToken,
    call: HookCall,
) -> LocalBoxFuture<'static, Result<(), String>> {
    let mut calls: LocalBoxFuture<'static, _> = Box::pin(call_hooks_in_order(config, context, run, call));
    // Polled once right here, so that the hooks are called in the right order, even if the run is stopped
    // before they finish.
    match calls.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Box::pin(std::future::ready(answer)),
        Poll::Pending => calls,
    }
}

/// Returns the reply to an effect for which the host has provided no port.
fn default_reply(ports: &Ports, effect: &Effect) -> Option<Reply> {
    match effect {
        Effect::Prepare { .. } if ports.transformer.is_none() => {
            Some(Reply::Prepared(Ok(Transform::default())))
        }
        Effect::Poll(queue) if *queue == Queue::Posted || ports.messages.is_none() => {
            Some(Reply::Polled(Vec::new()))
        }
        Effect::Compact { .. } if ports.compaction.is_none() => Some(Reply::Compacted(None)),
        _ => None,
    }
}

pub(super) fn is_after_hook(effect: &Effect) -> bool {
    matches!(effect, Effect::Hook(call) if is_after(call))
}

fn is_after(call: &HookCall) -> bool {
    matches!(call, HookCall::AfterInference { .. } | HookCall::AfterToolExecution { .. })
}

fn hook_error(text: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Hook, ["a hook failed: ", &text].concat()).in_phase("hook")
}

fn failed_stream(error: ErrorInfo) -> LocalBoxStream<'static, AssistantMessageEvent> {
    stream::iter([AssistantMessageEvent::Error(error)]).boxed_local()
}
