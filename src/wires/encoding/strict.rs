//! Which schemas may be marked as strict. A server that is told `strict` refuses schemas of any other form.

use crate::data::json::{Map, Value};
use crate::data::text::split;

/// The keywords that strict schemas may have.
const KNOWN: &str = "\
    type properties required additionalProperties items enum const anyOf $ref $defs \
    description title pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf \
    minItems maxItems";

/// Whether a schema has the form of strict schemas: it describes an object, every object in it is closed and
/// requires all its members, everything has a type, nothing stands beside a reference, and there is no
/// unusual keyword.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let is_object = schema.text_at("type") == Some("object");
    is_object && schema.get("anyOf").is_none() && fits(schema) && Size::default().takes(schema, 0)
}

/// The size of a strict schema. OpenAI's page of structured outputs has the limits: 10 objects inside each other, 5,000
/// properties, 1,000 words of enumerations, 120,000 characters in all names and words, and 15,000 in an enumeration of more
/// than 250 words. A schema beyond them is refused if it is marked, and taken if it is not.
#[derive(Default)]
struct Size {
    properties: usize,
    words: usize,
    characters: usize,
}

impl Size {
    /// Adds a schema. Returns whether all of it is within the limits.
    fn takes(&mut self, schema: &Value, depth: usize) -> bool {
        let members = schema.get("properties").and_then(Value::as_object);
        let depth = depth + usize::from(members.is_some());
        let words = schema.list_at("enum");
        let letters =
            words.iter().chain(schema.get("const")).map(|word| word.as_str().map_or(0, str::len)).sum();
        self.words += words.len();
        self.characters = self.characters.saturating_add(letters);
        let mut is_within = depth <= 10 && (words.len() <= 250 || letters <= 15_000);
        for (name, member) in
            members.into_iter().chain(schema.get("$defs").and_then(Value::as_object)).flat_map(Map::iter)
        {
            self.properties += 1;
            self.characters = self.characters.saturating_add(name.len());
            is_within = is_within && self.takes(member, depth);
        }
        let mut others = schema.list_at("anyOf").iter().chain(schema.get("items"));
        is_within
            && others.all(|other| self.takes(other, depth))
            && self.properties <= 5_000
            && self.words <= 1_000
            && self.characters <= 120_000
    }
}

/// The strict form of a schema for the answer: as it is, or with its objects closed. `None` if it has none.
pub(crate) fn strict_form(schema: &Value) -> Option<Value> {
    closed(schema, usize::MAX).filter(is_strict)
}

fn fits(schema: &Value) -> bool {
    let Some(map) = schema.as_object() else {
        return false;
    };
    let all_fit = |key: &str| {
        schema.get(key).and_then(Value::as_object).is_none_or(|members| members.iter().all(|(_, s)| fits(s)))
    };
    let has = |key: &str| map.get(key).is_some();
    let is_typed = if has("$ref") { map.len() == 1 } else { has("type") || has("anyOf") };
    is_typed
        && map.iter().all(|(key, _)| split(KNOWN, " ").any(|known| known == key))
        && (!is_object(schema) || is_closed(schema))
        && all_fit("properties")
        && all_fit("$defs")
        && schema.get("items").is_none_or(fits)
        && schema.list_at("anyOf").iter().all(fits)
}

/// How many of the known keywords, from the first, Anthropic takes of a schema for the answer.
pub(crate) const BY_ANTHROPIC: usize = 12;

/// Returns a schema for the answer in which every object is closed, and which has only the first known keywords: what
/// the others narrow is checked when the answer comes. `None` if there are objects with members of any name.
pub(crate) fn closed(schema: &Value, keywords: usize) -> Option<Value> {
    let Value::Object(map) = schema else {
        return None;
    };
    let mut taken = Map::new();
    for (key, value) in
        map.iter().filter(|(key, _)| split(KNOWN, " ").take(keywords).any(|known| known == *key))
    {
        let value = match (key, value) {
            ("properties" | "$defs", Value::Object(members)) => {
                let mut all = Map::new();
                for (name, member) in members.iter() {
                    all.insert(name, closed(member, keywords)?);
                }
                Value::Object(all)
            }
            ("items", item) => closed(item, keywords)?,
            ("anyOf", Value::Array(options)) => Value::Array(
                options.iter().map(|option| closed(option, keywords)).collect::<Option<Vec<_>>>()?,
            ),
            ("additionalProperties", open) if open.as_bool() != Some(false) => return None,
            _ => value.clone(),
        };
        taken.insert(key, value);
    }
    if is_object(schema) {
        schema.get("properties")?;
        taken.insert("additionalProperties", Value::from(false));
    }
    Some(Value::Object(taken))
}

fn is_object(schema: &Value) -> bool {
    schema.get("properties").is_some()
        || schema.text_at("type") == Some("object")
        || schema.list_at("type").iter().any(|t| t.as_str() == Some("object"))
}

fn is_closed(schema: &Value) -> bool {
    let required = schema.list_at("required");
    schema.flag_at("additionalProperties") == Some(false)
        && schema.get("properties").and_then(Value::as_object).is_some_and(|properties| {
            properties.iter().all(|(name, _)| required.iter().any(|r| r.as_str() == Some(name)))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::json::ToJson;

    fn strict(schema: &str) -> bool {
        is_strict(&Value::parse(schema).unwrap())
    }

    #[test]
    fn a_schema_is_closed_for_the_answer_unless_it_says_that_it_is_open() {
        let closed = |schema: &str| {
            closed(&Value::parse(schema).unwrap(), BY_ANTHROPIC).map(|schema| schema.to_json())
        };
        let of = |members: &str| [r#"{"type":"object","properties":{"a":"#, members, "}"].concat();
        let wanted = |members: &str| [&of(members), r#","additionalProperties":false}"#].concat();
        for (given, taken) in [
            (r#"{"type":"string","minLength":2,"default":"x"}"#, r#"{"type":"string"}"#),
            (
                r#"{"type":"array","items":{"type":"integer","minimum":1}}"#,
                r#"{"type":"array","items":{"type":"integer"}}"#,
            ),
            (r#"{"anyOf":[{"const":1},{"type":"null"}]}"#, r#"{"anyOf":[{"const":1},{"type":"null"}]}"#),
        ] {
            assert_eq!(closed(&[&of(given), "}"].concat()), Some(wanted(taken)));
        }
        assert_eq!(
            closed(&[&of(r#"{"type":"object","additionalProperties":{"type":"string"}}"#), "}"].concat()),
            None
        );
        assert_eq!(closed(r#"{"type":"object"}"#), None);
    }

    #[test]
    fn a_schema_beyond_the_limits_is_not_strict() {
        let of = |members: &str, required: &str| {
            [
                r#"{"type":"object","properties":{"#,
                members,
                r#"},"required":["#,
                required,
                r#"],"additionalProperties":false}"#,
            ]
            .concat()
        };
        let deep = |levels: usize| {
            (1..levels).fold(of("", ""), |inner, _| of(&[r#""a":"#, &inner].concat(), r#""a""#))
        };
        assert!(strict(&deep(10)) && !strict(&deep(11)));
        let list =
            |count: usize, each: &dyn Fn(usize) -> String| (0..count).map(each).collect::<Vec<_>>().join(",");
        let wide = |count: usize| {
            of(
                &list(count, &|i| format!(r#""p{i}":{{"type":"string"}}"#)),
                &list(count, &|i| format!(r#""p{i}""#)),
            )
        };
        assert!(strict(&wide(5_000)) && !strict(&wide(5_001)));
        let words = |count: usize, length: usize| {
            let word = |i: usize| format!("\"{i:0>length$}\"");
            of(&[r#""a":{"type":"string","enum":["#, &list(count, &word), "]}"].concat(), r#""a""#)
        };
        assert!(strict(&words(1_000, 9)) && !strict(&words(1_001, 9)));
        assert!(strict(&words(250, 400)) && !strict(&words(251, 400)));
        assert!(!strict(&words(200, 700)), "140,000 characters");
    }

    #[test]
    fn only_closed_objects_with_all_members_required_are_strict() {
        let closed = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}"#;
        assert!(strict(closed));
        assert!(strict(r#"{"type":"object","properties":{},"additionalProperties":false}"#));
        assert!(!strict(r#"{"type":"object","properties":{}}"#));
        assert!(!strict(r#"{"type":"object","additionalProperties":false}"#));
        assert!(!strict(&closed.replace("[\"a\"]", "[]")));
        assert!(!strict(&closed.replace("\"string\"", "\"string\",\"default\":\"x\"")));
        assert!(!strict(&closed.replace("{\"type\":\"string\"}", "{\"type\":\"object\"}")));
        assert!(strict(&closed.replace("{\"type\":\"string\"}", closed)));
        assert!(!strict(r#"{"type":"string"}"#));
        let with = |member: &str| strict(&closed.replace("{\"type\":\"string\"}", member));
        assert!(!with("{}") && !with(r#"{"description":"any"}"#) && !with(r#"{"enum":["a"]}"#));
        assert!(
            with(r##"{"$ref":"#"}"##)
                && with(r##"{"anyOf":[{"$ref":"#"},{"type":"null"}],"description":"d"}"##)
        );
        assert!(!with(r##"{"$ref":"#","description":"d"}"##));
    }
}
