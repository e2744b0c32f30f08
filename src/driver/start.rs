//! How effects start: each becomes a future or a stream of a host function.

use std::rc::Rc;

use futures::future::{FutureExt, LocalBoxFuture};

use crate::data::json::RawJson;
use crate::host::cancel::CancelToken;
use crate::host::config::{AgentLoopConfig, DEEPEST_NESTING, Ports};
use crate::host::isolate::guard;
use crate::host::ports::{
    AgentRunContext, CompactionCall, HookCall, MessageProvider, Timer, ToolLayer, TurnCall,
};
use crate::host::tool::{AgentTool, Nesting, ToolContext, ToolOutcome};
use crate::journal::Answers;
use crate::machine::{Effect, EffectId, Input, Queue, Reply};
use crate::rules::policy::Transform;
use crate::words::message::AgentMessage;

use super::AgentStream;
use super::hooks::{call_hooks, hook_error};
use super::tasks::{EffectFuture, Polled};

impl AgentStream {
    pub(super) fn start(&mut self, id: EffectId, effect: Effect) {
        let own = self.own_reply(&effect);
        let by = if own.is_some() { Answers::Driver } else { Answers::Host };
        let Some(effect) = self.would_start(id, effect, by) else { return };
        match own {
            Some(reply) => self.step(Input::Reply(id, reply)),
            None => self.carry_out(id, effect),
        }
    }

    /// The reply to an effect that the host is not asked for.
    fn own_reply(&mut self, effect: &Effect) -> Option<Reply> {
        if self.begins_turn(effect) {
            // Changes by the host take effect together, from the next turn on.
            if let Err(text) = self.take_config(None) {
                return Some(refusal(effect, text));
            }
        }
        if !self.is_paired(effect) {
            return Some(Reply::Hook(Ok(())));
        }
        default_reply(&self.config.ports, effect)
    }

    /// Calls the host.
    pub(super) fn carry_out(&mut self, id: EffectId, effect: Effect) {
        let config = self.config.clone();
        let is_poll = matches!(effect, Effect::Poll(_));
        let cancel = CancelToken::new();
        let future = match effect {
            Effect::Execute { tool, call_id, arguments } => {
                self.execute(&config, tool, call_id, arguments, cancel.clone())
            }
            Effect::Sleep { ms } => sleep(&*config.ports.timer, ms, self.state.is_backing_off(id)),
            effect => match self.future_of(effect, &config, &cancel) {
                Some(future) => future,
                None => return,
            },
        };
        self.round.tasks.insert(id, future, cancel);
        if self.state.has_child_questions() {
            self.answer_early(id);
        }
        if is_poll {
            self.take_ready_poll(id);
        }
    }

    /// Whether this is the first effect of a turn. Who is asked what holds for the turn is asked first.
    fn begins_turn(&self, effect: &Effect) -> bool {
        match effect {
            Effect::Choose => true,
            Effect::Prepare { overflow: false } => {
                self.state.is_turn_new() && !self.config.rules.prepares_turns
            }
            _ => false,
        }
    }

    /// An attempt ends for the hooks once, if it has begun: the effect that was to begin it may have been cancelled.
    fn is_paired(&mut self, effect: &Effect) -> bool {
        match effect {
            Effect::Infer { .. } | Effect::Hook(HookCall::BeforeInference { .. }) => self.has_attempt = true,
            Effect::Hook(HookCall::AfterInference { .. }) => return std::mem::take(&mut self.has_attempt),
            _ => {}
        }
        true
    }

    /// Calls the host. `None` if it has no such port; then the reply is the default one.
    fn future_of(
        &self,
        effect: Effect,
        config: &Rc<AgentLoopConfig>,
        cancel: &CancelToken,
    ) -> Option<EffectFuture> {
        let ports = &config.ports;
        Some(match effect {
            Effect::Choose => {
                let turns = ports.turns.clone()?;
                let call = TurnCall {
                    context: self.context().clone(),
                    turn_index: self.state.turn_index(),
                    messages: self.state.messages().into(),
                    usage: *self.state.usage(),
                    cancel: cancel.clone(),
                };
                EffectFuture::once(guard(|| Ok(turns.prepare(call))), |choice| {
                    Reply::Chosen(choice.map(Box::new))
                })
            }
            Effect::Prepare { overflow } => {
                let transformer = ports.transformer.clone()?;
                let messages: Rc<[AgentMessage]> = self.state.chosen_messages().into();
                let (context, turn) = (self.context(), self.state.turn_index());
                let answer =
                    guard(|| Ok(transformer.transform_in(context, turn, messages, overflow, cancel.clone())));
                EffectFuture::once(answer, Reply::Prepared)
            }
            Effect::Poll(queue) => poll(&ports.messages.clone()?, self.context(), queue),
            Effect::Compact { model } => {
                let engine = ports.compaction.clone()?;
                let messages: Rc<[AgentMessage]> = self.state.messages().into();
                let call = CompactionCall { messages, model, cancel: cancel.clone() };
                let answer = guard(|| Ok(engine.compact(self.context(), call)));
                EffectFuture::once(answer, |compaction| Reply::Compacted(Some(compaction)))
            }
            Effect::Approve(request) => {
                let approver = ports.approver.clone()?;
                let answer = guard(|| {
                    Ok(approver.decide_in(self.context(), self.state.turn_index(), request, cancel.clone()))
                });
                EffectFuture::once(answer, Reply::Approved)
            }
            Effect::Hook(call) => {
                let run = self.handover.cancel.clone();
                let calls = call_hooks(config.clone(), self.context().clone(), run, call);
                EffectFuture::once(Ok(calls), |result| Reply::Hook(result.map_err(hook_error)))
            }
            // These start in [`AgentStream::start`].
            Effect::Execute { .. } | Effect::Sleep { .. } => return None,
            Effect::Infer { model, turn_index, request } => {
                EffectFuture::Model(self.spans.answer(self.infer(config, model, turn_index, request, cancel)))
            }
        })
    }

    /// How deep this run is inside others.
    fn nesting(&self) -> Nesting {
        let nesting = self.context().nesting;
        let limit = self.config.rules.max_depth.min(u32::try_from(DEEPEST_NESTING).unwrap_or(u32::MAX));
        if nesting.depth > 0 { nesting } else { Nesting { limit, ..nesting } }
    }

    /// A reply of a poll that is ready immediately takes effect before anything else starts.
    fn take_ready_poll(&mut self, id: EffectId) {
        let polled = self.round.tasks.poll(id);
        if let Some(Polled::Last(Reply::Polled(messages))) = &polled
            && messages.is_empty()
        {
            // The polled code may itself have aborted or steered, and that takes precedence over an empty
            // reply.
            self.handle_commands();
        }
        polled.into_iter().for_each(|polled| self.take_polled(id, polled));
    }

    fn execute(
        &mut self,
        config: &Rc<AgentLoopConfig>,
        tool: usize,
        call_id: Rc<str>,
        arguments: RawJson,
        cancel: CancelToken,
    ) -> EffectFuture {
        let updates = self.round.new_updates();
        let tool_name =
            config.rules.tools.get(tool).map_or_else(|| "".into(), |spec| spec.schema.name.clone());
        let Some(tool) = config.ports.tools.get(tool).cloned() else {
            let missing = ToolOutcome::Failed("the tool is not there any more".to_owned());
            return EffectFuture::tool(call_id, Box::pin(async { missing }), updates);
        };
        let checkpoint = self.state.checkpoint_of_child(&call_id);
        let (id, name) = (call_id.clone(), tool_name.clone());
        let mut context = ToolContext {
            call_id,
            tool_name,
            run_id: self.context().run_id.clone(),
            session_id: self.context().session_id.clone(),
            turn_index: self.state.turn_index(),
            metadata: self.context().metadata.clone(),
            nesting: self.nesting(),
            accounts: self.state.shared_accounts.clone(),
            layers: config.ports.layers.clone(),
            checkpoint,
            arguments,
            cancel,
            updates: updates.clone(),
            state: self.state.session().clone(),
            #[cfg(feature = "durable")]
            durable: None,
        };
        self.seam.place_call(&mut context);
        let future = guard(|| Ok(execute_in(config.ports.layers.tool.as_ref(), tool, context)));
        let future = future.unwrap_or_else(|text| Box::pin(async { ToolOutcome::Failed(text) }));
        let future = self.spans.tool(&id, &name, future);
        EffectFuture::tool(id, future, updates)
    }
}

/// Executes a call inside a layer, if there is one.
fn execute_in(
    layer: Option<&Rc<dyn ToolLayer>>,
    tool: Rc<dyn AgentTool>,
    context: ToolContext,
) -> LocalBoxFuture<'static, ToolOutcome> {
    let Some(layer) = layer else { return tool.execute(context) };
    let cancel = context.cancel.clone();
    let next = move |context: ToolContext| -> LocalBoxFuture<'static, ToolOutcome> {
        // Nobody wants the outcome any more.
        if cancel.is_cancelled() { Box::pin(std::future::pending()) } else { tool.execute(context) }
    };
    layer.execute(context, Box::new(next))
}

fn poll(provider: &Rc<dyn MessageProvider>, context: &AgentRunContext, queue: Queue) -> EffectFuture {
    let answer = guard(|| {
        let messages = provider.poll_in(context, matches!(queue, Queue::FollowUp));
        Ok(Box::pin(async { Ok(messages.await) }) as LocalBoxFuture<'static, _>)
    });
    EffectFuture::once(answer, |messages| Reply::Polled(messages.unwrap_or_default()))
}

fn sleep(timer: &dyn Timer, ms: u64, is_back_off: bool) -> EffectFuture {
    let sleep = guard(|| Ok(if is_back_off { timer.back_off(ms) } else { timer.sleep(ms) }));
    // A timer that fails never completes.
    let sleep = sleep.unwrap_or_else(|_| Box::pin(std::future::pending()));
    EffectFuture::once(Ok(Box::pin(sleep.map(Ok))), |_| Reply::Slept)
}

/// The reply to the first effect of a turn that cannot begin.
fn refusal(effect: &Effect, text: String) -> Reply {
    match effect {
        Effect::Choose => Reply::Chosen(Err(text)),
        _ => Reply::Prepared(Err(text)),
    }
}

/// Returns the reply to an effect for which the host has provided no port.
fn default_reply(ports: &Ports, effect: &Effect) -> Option<Reply> {
    match effect {
        Effect::Choose if ports.turns.is_none() => Some(Reply::Chosen(Ok(Box::default()))),
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
