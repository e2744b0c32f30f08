//! How hooks are called: one after the other, the first of them at once.

use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures::future::LocalBoxFuture;

use crate::host::cancel::CancelToken;
use crate::host::config::AgentLoopConfig;
use crate::host::isolate::guard;
use crate::host::ports::{AgentRunContext, HookCall};
use crate::machine::Effect;
use crate::words::error::{ErrorInfo, ErrorKind};

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

pub(super) fn call_hooks(
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

pub(super) fn is_after_hook(effect: &Effect) -> bool {
    matches!(effect, Effect::Hook(call) if is_after(call))
}

fn is_after(call: &HookCall) -> bool {
    matches!(call, HookCall::AfterInference { .. } | HookCall::AfterToolExecution { .. })
}

pub(super) fn hook_error(text: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Hook, ["a hook failed: ", &text].concat()).in_phase("hook")
}
