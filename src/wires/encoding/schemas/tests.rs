use super::*;
use crate::data::json::ToJson;

fn sent(schema: &str, server: &str) -> String {
    let (schema, rules) = (Value::parse(schema).unwrap(), SchemaRules::of(server));
    if is_fit(&schema, rules) {
        return "as it is".to_owned();
    }
    let (fitted, _) = fitted(&schema, rules);
    assert!(is_fit(&fitted, rules), "{}", fitted.to_json());
    fitted.to_json()
}

#[test]
fn ordinary_schemas_are_sent_as_they_are() {
    for schema in [
        "{}",
        r#"{"type":"object"}"#,
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"l":{"type":"array","items":{"type":"string","pattern":"^[a-z]+$","format":"email"}},"enum":{"type":"string","enum":["a"]},"n":{"type":["integer","null"],"minimum":0}},"required":["a"],"additionalProperties":false}"##,
        r##"{"type":"object","properties":{"t":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"c":{"type":"array","items":{"$ref":"#/$defs/t"}}}}}}"##,
    ] {
        for server in ["openai", "anthropic", "gemini", "moonshot", "openai-compatible"] {
            assert_eq!(sent(schema, server), "as it is", "{server}");
        }
    }
}

#[test]
fn a_union_at_the_root_becomes_one_object() {
    let a = r#"{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"string"},"c":{"type":"string"}},"required":["k","n","c"]}"#;
    let b = r#"{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"string"}},"required":["k","n"],"additionalProperties":false}"#;
    let members = r#""properties":{"k":{"type":"string","enum":["a","b"]},"n":{"type":"string"},"c":{"type":"string"}}"#;
    for key in ["anyOf", "oneOf"] {
        let schema = [r#"{"type":"object",""#, key, "\":[", a, ",", b, "]}"].concat();
        let sent = sent(&schema, "anthropic");
        assert!(sent.contains(members) && sent.contains(r#""required":["k","n"]"#), "{sent}");
        assert!(sent.contains("Has the members of one of: k, n, c; k, n") && !sent.contains(key), "{sent}");
    }
    let all = [r#"{"allOf":["#, a, r#",{"$ref":"\u0023/$defs/m"}],"$defs":{"m":{"type":"object","properties":{"m":{"type":"number"}},"required":["m"]}}}"#].concat();
    let sent = sent(&all, "openai");
    assert!(
        sent.contains(r#""required":["k","n","c","m"]"#) && sent.contains(r#""m":{"type":"number"}"#),
        "{sent}"
    );
}

#[test]
fn what_no_provider_takes_is_left_out() {
    let of = |member: &str| [r#"{"type":"object","properties":{"a":"#, member, "}}"].concat();
    for (member, taken) in [
        (r#"{"type":"string","pattern":"^(?=.*@).+$"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","pattern":"\\p{L}+"}"#, r#"{"type":"string"}"#),
        (r#"{"type":"array"}"#, r#"{"type":"array","items":{}}"#),
        (
            r#"{"type":"array","items":[{"type":"string"},{"type":"number"}]}"#,
            r#"{"type":"array","items":{"anyOf":[{"type":"string"},{"type":"number"}]}}"#,
        ),
        (
            r#"{"type":"number","minimum":0,"exclusiveMinimum":true}"#,
            r#"{"type":"number","minimum":0,"exclusiveMinimum":0}"#,
        ),
        (
            r#"{"type":"object","patternProperties":{"^(.*)$":{"type":"string"}}}"#,
            r#"{"type":"object","additionalProperties":{"type":"string"}}"#,
        ),
        (r#"{"type":"string","enum":[]}"#, r#"{"type":"string"}"#),
        (r#"{"type":"string","required":true}"#, r#"{"type":"string"}"#),
    ] {
        let sent = sent(&of(member), "gemini");
        assert!(sent.contains(&[r#""a":"#, taken, "}"].concat()), "{sent}");
    }
    assert!(sent(r#"{"type":["object","null"],"properties":{}}"#, "xai").contains(r#""type":"object""#));
    let union = of(r#"{"type":"string","anyOf":[{"format":"date"},{"type":"null"}]}"#);
    assert!(
        sent(&union, "moonshot").contains(r#"{"anyOf":[{"format":"date","type":"string"},{"type":"null"}]}"#)
    );
    assert_eq!(sent(&union, "openai"), "as it is");
}

#[test]
fn names_that_a_provider_refuses_are_others_in_the_request_and_back() {
    let schema = r#"{"type":"object","properties":{"$filter":{"type":"string"},"of":{"type":"array","items":{"type":"object","properties":{"größe":{"type":"number"}}}}},"required":["$filter"]}"#;
    assert_eq!(sent(schema, "openai"), "as it is");
    assert!(has_odd_names(schema) && !has_odd_names(r##"{"$ref":"#/$defs/a","properties":{"a.b":{}}}"##));
    let sent = Value::parse(&sent(schema, "anthropic")).unwrap();
    let names: Vec<&str> =
        sent.get("properties").unwrap().as_object().unwrap().iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| is_taken_name(name)), "{names:?}");
    assert_eq!(sent.list_at("required")[0].as_str(), Some(names[0]));
    let inner = wire_name("größe");
    let given = ["{\"", names[0], r#"":"x","of":[{""#, &inner, r#"":2}],"other":1}"#].concat();
    let schema = Value::parse(schema).unwrap();
    let own = with_own_names(&Value::parse(&given).unwrap(), &schema).unwrap();
    assert_eq!(own.to_json(), r#"{"$filter":"x","of":[{"größe":2}],"other":1}"#);
    assert_eq!(with_own_names(&own, &schema), None);
}

#[test]
fn the_rest_of_a_long_description_goes_into_the_schema() {
    let text = "word ".repeat(400);
    assert_eq!(split_description(&text, SchemaRules::of("anthropic")), None);
    assert_eq!(split_description("short", SchemaRules::of("openai")), None);
    let (head, rest) = split_description(&text, SchemaRules::of("openai")).unwrap();
    assert!(head.len() <= MAX_DESCRIPTION && [head, rest].concat() == text);
    let mut schema = Value::parse("{}").unwrap();
    add_description(&mut schema, rest);
    assert!(schema.text_at("description").unwrap().ends_with("word word"));
}

fn lost(schema: &str, server: &str) -> Vec<&'static str> {
    fitted(&Value::parse(schema).unwrap(), SchemaRules::of(server)).1
}

#[test]
fn a_reference_that_leads_nowhere_is_left_out() {
    let of = |path: &str| {
        let member = [r#"{"$ref":""#, path, r#"","description":"d"}"#].concat();
        [r#"{"type":"object","properties":{"a":"#, &member, r#"},"$defs":{"b":{"type":"string"}}}"#].concat()
    };
    for path in ["#/$defs/missing", "https://example.com/schema.json", "other.json#/a", ""] {
        let sent = sent(&of(path), "openai");
        assert!(sent.contains(r#""a":{"description":"d"}"#), "{sent}");
        assert_eq!(lost(&of(path), "openai"), ["a `$ref` to what is not in it"]);
    }
    for path in ["#", "#/$defs/b", "#/$defs/a~1b"] {
        assert_eq!(sent(&of(path), "openai"), "as it is");
    }
    // A property may have that name.
    assert_eq!(sent(r#"{"type":"object","properties":{"$ref":{"type":"string"}}}"#, "openai"), "as it is");
}

#[test]
fn what_is_too_deep_for_gemini_becomes_a_text() {
    // A list is a level, and so is an object.
    let inside = |levels: usize| {
        (1..levels).fold(
            r#"{"type":"object","properties":{"x":{"type":"string"}}}"#.to_owned(),
            |inner, level| match level % 2 {
                0 => [r#"{"type":"object","properties":{"x":"#, &inner, "}}"].concat(),
                _ => [r#"{"type":"array","items":"#, &inner, "}"].concat(),
            },
        )
    };
    let tool = |levels: usize| [r#"{"type":"object","properties":{"x":"#, &inside(levels), "}}"].concat();
    assert_eq!(sent(&tool(3), "gemini"), "as it is");
    for levels in 4..12 {
        let sent = sent(&tool(levels), "gemini");
        assert!(sent.contains(r#""description":"It fits this JSON Schema: {\"type\":"#), "{sent}");
        assert_eq!(lost(&tool(levels), "gemini"), ["what is nested deeper than 4 levels"]);
        assert_eq!(self::sent(&tool(levels), "openai"), "as it is");
    }
    // Empty objects and lists of anything contain nothing.
    assert_eq!(
        sent(&tool(3).replace(r#"{"type":"string"}"#, r#"{"type":"object","properties":{}}"#), "gemini"),
        "as it is"
    );
}

#[test]
fn what_a_schema_lost_is_named_once() {
    let two = r#"{"type":"object","properties":{"a":{"type":"string","pattern":"(?=x)"},"b":{"type":"string","pattern":"(?!x)"}}}"#;
    assert_eq!(lost(two, "openai"), ["a `pattern`"]);
    // Nothing is lost by another form of the same.
    assert!(
        lost(r#"{"type":"object","properties":{"a":{"type":"array"}},"required":true}"#, "openai").is_empty()
    );
}
