//! Where the secrets of a request stand: in its headers and in its address.

use crate::data::text::{has_any, lossy, rsplit_once, split, split_once, without_end};

use super::Secrets;
use super::base64::decode;
use super::unit::escaped;

/// What stands in the names of headers and parameters that say who is calling.
const TELLING: &str = "auth|key|token|secret|cookie|password|credential|signature";

impl Secrets {
    /// Adds what a request holds of secrets, in its headers and in its address.
    pub fn add_request(&mut self, url: &str, headers: &[(String, String)]) {
        for (name, value) in headers {
            if has_any(&name.to_ascii_lowercase(), TELLING) {
                self.add_header(value);
            }
        }
        let (base, query) = split_once(url, "?").unwrap_or((url, ""));
        let after = split_once(base, "://").map_or("", |(_, after)| after);
        let host = split_once(after, "/").map_or(after, |(host, _)| host);
        if let Some((both, _)) = rsplit_once(host, b'@') {
            self.add_name_and_password(&unescaped(both));
        }
        for (name, value) in split(query, "&").filter_map(|part| split_once(part, "=")) {
            if has_any(&name.to_ascii_lowercase(), TELLING) || name == "sig" || name == "code" {
                self.add(&unescaped(value));
            }
        }
    }

    /// Adds a header: `Bearer SECRET`, `Basic SECRET`, `NAME=SECRET; NAME=SECRET`, or the secret alone.
    fn add_header(&mut self, value: &str) {
        let is_basic = value.to_ascii_lowercase().starts_with("basic ");
        for word in split(value, " ") {
            for part in split(word, "=") {
                self.add(without_end(part, ";"));
            }
            if is_basic && let Some(both) = decode(word) {
                self.add_name_and_password(&both);
            }
        }
    }

    fn add_name_and_password(&mut self, both: &str) {
        self.add(both);
        self.add(split_once(both, ":").map_or("", |(_, password)| password));
    }
}

/// Undoes the percent encoding of an address.
fn unescaped(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, length) = match escaped(b'%', after) {
            Ok((code, length)) if byte == b'%' => (code, length),
            _ => (byte, 0),
        };
        bytes.push(byte);
        rest = after.get(length..).unwrap_or_default();
    }
    lossy(&bytes)
}
