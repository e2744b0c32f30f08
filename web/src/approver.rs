//! JavaScript functions as approvers.

use futures::future::LocalBoxFuture;
use js_sys::Function;
use serde::Serialize;
use turnwheel::CancelToken;
use turnwheel::approval::ToolDecision;
use turnwheel::ports::{ApprovalRequest, Approver};
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

use crate::{abort, call, thrown, value};

/// Asks a JavaScript function about tool calls, synchronous or not: `approve(request, { signal })`.
///
/// `request` has `callId`, `toolName`, `arguments` and `requiresApproval`. The function returns `"approve"`, `"reject"`,
/// `{ action: "approve", arguments }` for other arguments, `{ action: "reject", reason }`, or
/// `{ action: "result", content }` to answer in the tool's place. If it throws, its promise is rejected, or it returns
/// anything else, that call is rejected. `signal` is aborted when no decision is needed any more.
pub struct JsApprover(Function);

impl JsApprover {
    /// Makes an approver of a function; see the type.
    pub fn new(approve: Function) -> Self {
        JsApprover(approve)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    call_id: &'a str,
    tool_name: &'a str,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    arguments: JsValue,
    requires_approval: bool,
}

#[derive(Serialize)]
struct Options {
    #[serde(with = "serde_wasm_bindgen::preserve")]
    signal: AbortSignal,
}

impl Approver for JsApprover {
    fn decide(
        &self,
        request: ApprovalRequest,
        cancel: CancelToken,
    ) -> LocalBoxFuture<'static, Result<ToolDecision, String>> {
        let approve = self.0.clone();
        Box::pin(async move {
            let decision = ask(&approve, &request, &cancel).await.map_err(|error| thrown::text_of(&error))?;
            value::from_js(&decision)
        })
    }
}

async fn ask(
    approve: &Function,
    request: &ApprovalRequest,
    cancel: &CancelToken,
) -> Result<JsValue, JsValue> {
    let request = call::object(&Request {
        call_id: &request.call_id,
        tool_name: &request.tool_name,
        arguments: value::plain(&request.arguments.to_value()),
        requires_approval: request.requires_approval,
    })?;
    let options = call::object(&Options { signal: abort::signal_of(cancel)? })?;
    call::call(approve, &JsValue::UNDEFINED, &request, &options).await
}
