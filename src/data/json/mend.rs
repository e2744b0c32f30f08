//! Repairs of JSON that change no meaning. Readers refuse what is repaired here, so that only who asks for it gets it.

use super::{RawJson, Reader, Value};

/// Returns a text with the raw control characters in its strings written as escapes; `None` if there are none. Gateways
/// that write JSON by hand leave tabs and line ends as they are.
#[cold]
pub(crate) fn escaped_controls(text: &str) -> Option<String> {
    let mut out = String::new();
    let (mut begun, mut is_inside, mut is_escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'"' => is_inside = !is_inside,
            b'\\' => is_escaped = is_inside,
            ..0x20 if is_inside => {
                out.push_str(text.get(begun..at).unwrap_or_default());
                let control = char::from(byte).to_string();
                super::fill("$", &[&control], &mut out);
                begun = at + 1;
            }
            _ => {}
        }
    }
    if begun == 0 {
        return None;
    }
    out.push_str(text.get(begun..).unwrap_or_default());
    Some(out)
}

/// How often arguments may be wrapped in a string.
const MAX_WRAPPINGS: usize = 3;

/// Returns the object that a text means which is no object as it stands; `None` if that is not certain. Understood are
/// raw control characters in strings, an empty value before the object, the same object again, and an object that is
/// written as a JSON string. All of that is the server's doing: the model cannot correct it.
#[cold]
pub(crate) fn mended_object(text: &str) -> Option<RawJson> {
    let escaped = escaped_controls(text);
    let mut object = only_value(escaped.as_deref().unwrap_or(text))?;
    for _ in 0..MAX_WRAPPINGS {
        if object.is_object() {
            return Some(object);
        }
        let Value::String(inner) = object.to_value() else { return None };
        object = only_value(&escaped_controls(&inner).unwrap_or(inner))?;
    }
    None
}

/// Returns the one value of a text, which may be repeated, and may have empty values before it.
fn only_value(text: &str) -> Option<RawJson> {
    let mut reader = Reader::new(text);
    let mut only = "";
    let mut has_empty = false;
    while reader.peek().is_some() {
        let value = reader.skip().ok()?;
        match value {
            "{}" | "\"\"" | "null" if only.is_empty() => has_empty = true,
            _ if only.is_empty() || value == only => only = value,
            // `{}` and then an empty text is what some servers write for no arguments.
            _ => return None,
        }
    }
    if only.is_empty() && has_empty { Some(RawJson::empty_object()) } else { RawJson::parse(only).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_do_to_an_object_is_undone() {
        let city = r#"{"city":"Oslo"}"#;
        for text in [
            city,
            r#"{}{"city":"Oslo"}"#,
            r#" {} {"city":"Oslo"}"#,
            r#"{}{}{"city":"Oslo"}"#,
            r#"""{"city":"Oslo"}"#,
            r#"null{"city":"Oslo"}"#,
            r#"{"city":"Oslo"}{"city":"Oslo"}"#,
            r#""{\"city\":\"Oslo\"}""#,
            r#""\"{\\\"city\\\":\\\"Oslo\\\"}\"""#,
            r#"{}"{\"city\":\"Oslo\"}""#,
            r#""{}{\"city\":\"Oslo\"}""#,
        ] {
            assert_eq!(mended_object(text).unwrap().as_str(), city, "{text}");
        }
        for text in ["{}\"\"", "{}{}", "\"{}\"", "\"\"", "null", "\"null\""] {
            assert_eq!(mended_object(text).unwrap().as_str(), "{}", "{text}");
        }
        let lines = "{\"code\":\"a\n\tb\\\"\u{1}\",\n \"n\": 1}";
        let mended = mended_object(lines).unwrap().to_value();
        assert_eq!(mended.text_at("code"), Some("a\n\tb\"\u{1}"));
        assert_eq!(mended.number_at("n"), Some(1));
        let twice = "\"{\\\"code\\\":\\\"a\\nb\\\"}\"";
        assert_eq!(mended_object(twice).unwrap().to_value().text_at("code"), Some("a\nb"));
    }

    #[test]
    fn what_may_mean_something_else_is_refused() {
        for text in [
            "",
            "Oslo",
            "\"Oslo\"",
            "\"[1]\"",
            "[1]",
            "7",
            r#"[{"city":"Oslo"}]"#,
            r#"{}[1]"#,
            r#"{}{"city":"Oslo""#,
            r#"{}{"city":"Oslo"}}"#,
            r#"{"city":"Oslo"}{"city":"Bergen"}"#,
            r#"{"city":"Oslo"}{}"#,
            r#"{"city":"Oslo"} and more"#,
            r#""{\"city\":\"Os""#,
            r#"{"city":"Oslo",}"#,
            r#"{city:"Oslo"}"#,
            "{\"city\":\u{1}\"Oslo\"}",
            "{\"city\":\"Os\nlo",
        ] {
            assert_eq!(mended_object(text), None, "{text}");
        }
    }
}
