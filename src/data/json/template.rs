//! JSON from templates.

use super::strings::write_plain;

/// Appends JSON from a template. Each `$`, which stands in quotes, is replaced with the next value, escaped
/// as in a JSON string; each `#` with the next value as it is.
pub(crate) fn fill(template: &str, values: &[&str], out: &mut String) {
    let mut from = 0;
    for value in values {
        let mut at = from;
        let mark = loop {
            match template.as_bytes().get(at) {
                Some(b'$') => break true,
                Some(b'#') => break false,
                Some(_) => at += 1,
                None => return out.push_str(template.get(from..).unwrap_or_default()),
            }
        };
        out.push_str(template.get(from..at).unwrap_or_default());
        if mark {
            write_plain(value, out);
        } else {
            out.push_str(value);
        }
        from = at + 1;
    }
    out.push_str(template.get(from..).unwrap_or_default());
}

/// Items of a list, each written with a comma before it.
pub(crate) fn without_comma(items: &str) -> &str {
    items.strip_prefix(",").unwrap_or(items)
}
