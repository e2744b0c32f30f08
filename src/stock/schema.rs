//! Arguments checked against the whole JSON Schema of their tool, by the crate `jsonschema`.

use std::cell::RefCell;
use std::rc::Rc;

use jsonschema::{PatternOptions, Validator};

use crate::data::table::Table;
use crate::host::config::ArgumentValidator;
use crate::host::tool::ToolSpec;
use crate::rules::policy::RunInfo;
use crate::words::message::ToolCallBlock;

/// Returns a check for [`Rules::validator`](crate::host::config::Rules::validator). The model reads where its arguments
/// do not fit. A schema that is none refuses every call, and says so.
///
/// Patterns run on the crate `regex`, in linear time: a schema whose pattern looks around or refers back to a group is none
/// here.
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
    Rc::new(move |spec: &ToolSpec, call: &ToolCallBlock, _: &RunInfo<'_>| {
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
        let faults = validator.iter_errors(&arguments).take(MAX_FAULTS).map(|fault| located(&fault));
        let faults: Vec<String> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
    })
}

/// How many faults are told.
const MAX_FAULTS: usize = 50;

fn compiled(schema: &str) -> Result<Validator, String> {
    jsonschema::options()
        .with_pattern_options(PatternOptions::regex())
        .build(&read(schema)?)
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
        validator()(&ToolSpec::parse("t", "", schema).unwrap(), &call, &RunInfo::default())
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

    #[test]
    fn a_pattern_is_checked_in_linear_time_or_not_at_all() {
        let with = |pattern: &str| {
            format!(
                r#"{{"type":"object","properties":{{"text":{{"type":"string","pattern":"{pattern}"}}}}}}"#
            )
        };
        let text = |text: &str| format!(r#"{{"text":"{text}"}}"#);
        for pattern in ["^(a+)+$", "^(a|a)*$", "^(.*a){12}$"] {
            let evil = ["a".repeat(50_000), "!".to_owned()].concat();
            assert!(check(&with(pattern), &text(&evil)).unwrap_err().contains("does not match"), "{pattern}");
            assert_eq!(check(&with(pattern), &text("aaaaaaaaaaaa")), Ok(()), "{pattern}");
        }
        for pattern in
            ["(?:){4294967295}x", "(?:|){4294967295}x", "(?:a{0}){999999999}x", "(?:^){4294967295}x"]
        {
            assert_eq!(check(&with(pattern), &text("x")), Ok(()), "{pattern}");
        }
        let nested = ["(?:".repeat(40), "){1000}".repeat(40)].concat();
        assert_eq!(check(&with(&nested), &text("x")), Ok(()));
        let nested = ["(?:".repeat(40), "a?".to_owned(), "){1000}".repeat(40)].concat();
        for pattern in [&nested, "(?:){9007199254740991}", "a{99999999999999999999}", "(?:a?){4294967295}"] {
            let error = check(&with(pattern), &text("x")).unwrap_err();
            assert!(error.starts_with("the tool's schema is not valid: "), "{pattern}: {error}");
        }
        for pattern in [r"^(a+)\\1$", "^(?=a)a$"] {
            let error = check(&with(pattern), &text("aa")).unwrap_err();
            assert!(error.starts_with("the tool's schema is not valid: "), "{error}");
        }
    }

    #[test]
    fn errors_by_the_thousand_are_not_all_told() {
        let list = ["[", &vec!["1"; 10_000].join(","), "]"].concat();
        let schema = r#"{"properties":{"list":{"items":{"type":"string"}}}}"#;
        let error = check(schema, &format!(r#"{{"list":{list}}}"#)).unwrap_err();
        assert_eq!(error.split("; ").count(), MAX_FAULTS);
    }
}
