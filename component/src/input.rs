//! What the host says about an effect, read from JSON.

use turnwheel::json::Value;

use crate::desk::Said;

/// Reads an input about an effect.
///
/// # Errors
/// If its kind is unknown, or it has not what it needs.
pub(crate) fn said(kind: &str, input: &Value) -> Result<Said, String> {
    let value = |key: &str| input.get(key).cloned().unwrap_or_default();
    Ok(match kind {
        "head" => {
            let status = input.number_at("status").and_then(|status| u16::try_from(status).ok());
            let headers = input.members_at("headers").iter();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            Said::Head {
                status: status.ok_or("`head` needs a `status`")?,
                headers: headers.map(|(name, value)| (name.clone(), text(value))).collect(),
            }
        }
        "body" => Said::Body(match (input.text_at("text"), input.text_at("base64")) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(text)) => decoded(text).ok_or("`base64` is no base64")?,
            (None, None) => return Err("`body` needs a `text` or `base64`".to_owned()),
        }),
        "progress" => Said::Progress(value("value")),
        "answered" => Said::Done(value("value")),
        // The whole input, for `value` and `result` are different things.
        "returned" => Said::Done(input.clone()),
        "end" | "woke" => Said::Done(Value::Null),
        "failed" => Said::Failed(input.owned_at("message").unwrap_or_else(|| "it failed".to_owned())),
        other => return Err(["there is no input `", other, "` about an effect"].concat()),
    })
}

/// Decodes base64, with or without padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
