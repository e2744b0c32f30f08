//! The headers of a request.

use crate::rules::stream::ModelRequest;

/// Returns the headers of a request: those of the wire, then those of the options, then those of the call.
/// Later ones override earlier ones. `key` is the name of the header for the key, and the prefix of its
/// value.
pub(crate) fn headers(
    key: (&str, &str),
    wire: &[(&str, &str)],
    options: &[(String, String)],
    request: &ModelRequest,
) -> Vec<(String, String)> {
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| {
        let name = name.to_ascii_lowercase();
        match headers.iter_mut().find(|(known, _)| *known == name) {
            Some(header) => header.1 = value,
            None => headers.push((name, value)),
        }
    };
    if let Some(api_key) = &request.api_key {
        set(key.0, [key.1, api_key].concat());
    }
    for (name, value) in wire.iter().chain(&[("content-type", "application/json")]) {
        set(name, (*value).to_owned());
    }
    for (name, value) in options.iter().chain(&request.options.headers) {
        set(name, value.clone());
    }
    headers
}

/// Returns the header in which servers of OpenAI's wires expect the key, and the prefix of its value.
pub(crate) fn openai_key(provider: &str) -> (&'static str, &'static str) {
    if provider == "azure" { ("api-key", "") } else { ("authorization", "Bearer ") }
}
