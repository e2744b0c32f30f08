//! Arguments checked against the whole JSON Schema of their tool, by the crate `jsonschema`.

use std::cell::RefCell;
use std::rc::Rc;

use jsonschema::Validator;

use crate::data::table::Table;
use crate::host::config::ArgumentValidator;
use crate::host::tool::ToolSpec;
use crate::words::message::ToolCallBlock;

/// Returns a check for [`Rules::validator`](crate::host::config::Rules::validator). The model reads where its arguments
/// do not fit. A schema that is none refuses every call, and says so.
///
/// ```
/// use turnwheel::{AgentLoopConfig, schema, scripted};
///
/// let mut config = AgentLoopConfig::new(scripted::model([]), scripted::clock());
/// config.rules.validator = Some(schema::validator());
/// ```
pub fn validator() -> Rc<ArgumentValidator> {
    // Each schema is compiled once.
    let known: RefCell<Table<String, Rc<Validator>>> = RefCell::default();
    Rc::new(move |spec: &ToolSpec, call: &ToolCallBlock| {
        let schema = spec.schema.parameters.as_str();
        let found = known.borrow().get(schema).cloned();
        let validator = match found {
            Some(validator) => validator,
            None => {
                let validator = Rc::new(compiled(schema)?);
                known.borrow_mut().insert(schema.to_owned(), validator.clone());
                validator
            }
        };
        let arguments = read(call.arguments.as_str())?;
        let faults: Vec<String> = validator.iter_errors(&arguments).map(|fault| located(&fault)).collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    })
}

fn compiled(schema: &str) -> Result<Validator, String> {
    jsonschema::validator_for(&read(schema)?)
        .map_err(|error| format!("the tool's schema is not valid: {error}"))
}

fn read(json: &str) -> Result<serde_json::Value, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}

/// The error, with its place in the arguments.
fn located(fault: &jsonschema::ValidationError<'_>) -> String {
    match fault.instance_path().to_string().as_str() {
        "" => fault.to_string(),
        place => format!("{place}: {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::RawJson;

    fn check(schema: &str, arguments: &str) -> Result<(), String> {
        let call = ToolCallBlock {
            call_id: "a".to_owned(),
            tool_name: "t".to_owned(),
            arguments: RawJson::parse(arguments).unwrap(),
            metadata: None,
        };
        validator()(&ToolSpec::parse("t", "", schema).unwrap(), &call)
    }

    #[test]
    fn arguments_that_do_not_fit_are_refused_with_their_place() {
        let schema =
            r#"{"type":"object","properties":{"n":{"type":"integer","minimum":1}},"required":["n"]}"#;
        assert_eq!(check(schema, r#"{"n":1}"#), Ok(()));
        assert_eq!(check(schema, "{}"), Err("\"n\" is a required property".to_owned()));
        assert_eq!(check(schema, r#"{"n":0}"#), Err("/n: 0 is less than the minimum of 1".to_owned()));
    }

    #[test]
    fn a_schema_that_is_none_refuses_every_call() {
        let error = check(r#"{"type":"text"}"#, "{}").unwrap_err();
        assert!(error.starts_with("the tool's schema is not valid: "), "{error}");
    }
}
