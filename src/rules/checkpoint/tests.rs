use super::*;

fn decode(text: &str) -> Result<CheckpointEnvelopeV1, CheckpointError> {
    CheckpointEnvelopeV1::decode(text.as_bytes())
}

#[test]
fn what_is_not_understood_is_written_again() {
    let text = concat!(
        r#"{"version":1,"format":"stakai_message_v1","run_id":null,"messages":"#,
        r#"[{"role":"user","content":"q","mood":"good"}],"metadata":{"a":[1]},"extra":{"k":12345678901234567890123}}"#
    );
    assert_eq!(decode(text).unwrap().to_json(), text);
}

#[test]
fn a_version_is_judged_before_it_is_narrowed() {
    for version in ["0", "2", "65537", "4294967297", "18446744073709551615"] {
        let text = ["{\"version\":", version, "}"].concat();
        let Err(error) = decode(&text) else { panic!("{version} was taken for 1") };
        assert_eq!(error.to_string(), ["unsupported checkpoint version: ", version].concat());
    }
}

#[test]
fn the_version_is_judged_first_then_the_shape_then_the_format() {
    let kind = |text: &str| decode(text).map_err(|error| error.kind()).map(|_| ());
    assert_eq!(kind(r#"{"version":2,"format":"other"}"#), Err("unsupported_version"));
    assert_eq!(kind(r#"{"version":1,"format":"other","messages":[]}"#), Err("invalid_payload"));
    let other = r#"{"version":1,"format":"other","messages":[],"metadata":null}"#;
    assert_eq!(kind(other), Err("unsupported_format"));
    assert_eq!(decode(other).unwrap_err().to_string(), "unsupported checkpoint format: other");
}

#[test]
fn the_engine_keeps_its_own_state_beside_the_hosts() {
    let mut envelope = CheckpointEnvelopeV1::new(None, Vec::new(), Value::parse("{\"cwd\":\"/w\"}").unwrap());
    envelope.set_own_state(Value::from(true));
    let again = decode(&envelope.to_json()).unwrap();
    assert_eq!(again.own_state(), Some(&Value::Bool(true)));
    assert_eq!(again.metadata.get("cwd"), Some(&Value::from("/w")));
}

#[test]
fn run_ids_are_uuids_in_all_their_forms_and_nothing_else() {
    let canonical = "11111111-2222-4333-8444-5555555555af";
    for form in [
        canonical,
        "11111111-2222-4333-8444-5555555555AF",
        "1111111122224333844455555555 55af".replace(' ', "").as_str(),
        "{11111111-2222-4333-8444-5555555555af}",
        "urn:uuid:11111111-2222-4333-8444-5555555555af",
    ] {
        assert_eq!(uuid(form).as_deref(), Some(canonical), "{form}");
    }
    for form in ["", "run-1", "11111111-2222-4333-8444-5555555555ag", "11111111-2222-4333-84445555555555af"] {
        assert_eq!(uuid(form), None, "{form}");
    }
}

#[test]
fn an_older_shape_that_does_not_decode_says_what_is_wrong() {
    let Err(CheckpointError::MissingVersion(reason)) = decode(r#"[{"role":"nobody","content":"x"}]"#) else {
        panic!("it was taken");
    };
    assert_eq!(reason, "message 0: unknown role `nobody`");
}
