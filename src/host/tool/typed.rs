//! A tool whose arguments are a type of serde.

use std::rc::Rc;

use serde::de::DeserializeOwned;

use super::{AgentTool, ToolContext, ToolOutcome, ToolSpec, tool};

/// Makes a tool of an asynchronous closure that takes the arguments as a type, and the call. Arguments that do not fit the type
/// become the result `invalid_arguments`, which says where and why, and which the model reads. What the closure returns is what
/// that of [`tool`] returns.
///
/// The request shows the schema to the model; nothing compares the schema with the type. The crate `schemars` makes one of the type:
/// `serde_json::to_string(&schemars::schema_for!(Zone))`.
///
/// ```
/// use serde::Deserialize;
/// use turnwheel::{ToolSpec, typed_tool};
///
/// #[derive(Deserialize)]
/// struct Zone { zone: String }
///
/// let schema = r#"{"type":"object","properties":{"zone":{"type":"string"}},"required":["zone"]}"#;
/// let time = typed_tool(ToolSpec::parse("time", "Tells the time", schema)?, async |Zone { zone }, _call| {
///     if zone == "Europe/Oslo" { Ok("noon") } else { Err("only Europe/Oslo is known here") }
/// });
/// assert_eq!(&*time.spec().schema.name, "time");
/// # Ok::<(), turnwheel::json::JsonError>(())
/// ```
pub fn typed_tool<T, F>(spec: ToolSpec, run: impl Fn(T, ToolContext) -> F + 'static) -> Rc<dyn AgentTool>
where
    T: DeserializeOwned,
    F: Future<Output: Into<ToolOutcome>> + 'static,
{
    tool(spec, move |call| {
        let running = call.arguments.read().map(|arguments| run(arguments, call));
        async {
            match running {
                Ok(running) => running.await.into(),
                Err(misfit) => ToolOutcome::Invalid(misfit.to_string()),
            }
        }
    })
}
