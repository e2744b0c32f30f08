//! The content of images and files: either Base64 or an address, and never one where the other is expected.

use std::rc::Rc;

use crate::data::json::members::needed;
use crate::data::json::{ObjectWriter, Value};

/// The content of an image or a file, checked when it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Media {
    mime_type: String,
    is_url: bool,
    text: Rc<str>,
}

/// Where the content of an image or a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaSource<'a> {
    /// Here, in Base64, with or without padding, in either alphabet.
    Data(&'a str),
    /// At this address, which begins with `https://` or `http://`.
    Url(&'a str),
}

impl Media {
    /// Takes content in Base64.
    ///
    /// # Errors
    ///
    /// If the type is not a MIME type such as `image/png`, or the content is not Base64.
    pub fn data(mime_type: impl Into<String>, data: impl Into<Rc<str>>) -> Result<Self, String> {
        let (mime_type, text) = (mime_type.into(), data.into());
        if !is_mime_type(&mime_type) {
            return Err(["`mimeType` must be a type such as `image/png`, got `", &mime_type, "`"].concat());
        }
        if !is_base64(&text) {
            return Err("`data` must be base64; an address goes into `url`".to_owned());
        }
        Ok(Media { mime_type, is_url: false, text })
    }

    /// Takes an address. An empty type means that the type is not known.
    ///
    /// # Errors
    ///
    /// If the address does not begin with `https://` or `http://`, or the type is not a MIME type.
    pub fn url(mime_type: impl Into<String>, url: impl Into<Rc<str>>) -> Result<Self, String> {
        let (mime_type, text) = (mime_type.into(), url.into());
        if !mime_type.is_empty() && !is_mime_type(&mime_type) {
            return Err(["`mimeType` must be a type such as `image/png`, got `", &mime_type, "`"].concat());
        }
        if !text.starts_with("https://") && !text.starts_with("http://") {
            return Err("`url` must begin with https://; base64 goes into `data`".to_owned());
        }
        Ok(Media { mime_type, is_url: true, text })
    }

    /// The MIME type, such as `image/png`; empty if it is not known, which it may only be of an address.
    pub fn mime_type(&self) -> &str {
        &self.mime_type
    }

    /// The content or the address.
    pub fn source(&self) -> MediaSource<'_> {
        if self.is_url { MediaSource::Url(&self.text) } else { MediaSource::Data(&self.text) }
    }

    /// Writes the members of an image or a file.
    pub(super) fn write(&self, kind: &str, object: &mut ObjectWriter<'_>) {
        object.fill(r#""type":"$""#, &[kind]);
        if !self.mime_type.is_empty() {
            object.fill(r#""mimeType":"$""#, &[&self.mime_type]);
        }
        object.fill(r#""$":"$""#, &[if self.is_url { "url" } else { "data" }, &self.text]);
    }

    /// Reads the members of an image or a file.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        match (value.text_at("url"), value.get("data")) {
            (Some(_), Some(_)) => Err("a block has either `data` or `url`, not both".to_owned()),
            (Some(url), None) => Media::url(value.owned_at("mimeType").unwrap_or_default(), url),
            (None, _) => Media::data(needed::read(value, "mimeType")?, needed::read(value, "data")?),
        }
    }
}

/// Whether it is `type/subtype`, with or without parameters such as `;charset=utf-8` (RFC 9110, section 8.3.1; parameters
/// in quotes are refused, because the type becomes part of a `data:` address).
pub(crate) fn is_mime_type(text: &str) -> bool {
    let is_pair = |pair: Option<(&str, &str)>| pair.is_some_and(|(a, b)| is_name(a) && is_name(b));
    let mut pieces = text.split(';');
    text.len() < 256
        && is_pair(pieces.next().and_then(|essence| essence.split_once('/')))
        && pieces.all(|parameter| is_pair(parameter.trim_start_matches(' ').split_once('=')))
}

/// Whether it is a restricted name of RFC 6838, section 4.2.
fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
}

/// Whether it is Base64, with or without padding, in either alphabet.
pub(crate) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && digits.len() % 4 != 1
        && (text.is_empty() || !digits.is_empty())
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_types_and_nothing_else() {
        let odd = [
            "",
            " ",
            "image",
            "image/",
            "/png",
            "*/*",
            "image/*",
            "image/png ",
            " image/png",
            "image/png,a/b",
        ];
        let odder =
            ["image/png\n", "a/b;", "a/b;c", "a/b;c=", "a/b;c=\"d\"", "\u{fc}/b", "a b/c", "text/html,<b>"];
        for text in odd.iter().chain(&odder) {
            assert!(!is_mime_type(text), "{text:?}");
            assert!(Media::data(*text, "AAAA").is_err(), "{text:?}");
            assert_eq!(Media::url(*text, "https://a.example/").is_err(), !text.is_empty(), "{text:?}");
        }
        for text in
            ["image/png", "image/svg+xml", "text/plain;charset=utf-8", "text/plain; charset=utf-8; a=b"]
        {
            assert!(is_mime_type(text), "{text}");
        }
        assert!(!is_mime_type(&["a/", &"b".repeat(256)].concat()));
    }

    #[test]
    fn content_is_no_address_and_an_address_is_no_content() {
        let texts = [
            "https://a.example/",
            "http://a",
            "data:image/png;base64,AAAA",
            "AA A",
            "AA\n",
            "=",
            "A=A",
            "AA===",
            "A",
        ];
        for text in texts {
            assert!(Media::data("image/png", text).is_err(), "{text:?}");
        }
        for text in ["", "AAAA", "AA==", "AAA=", "AA", "-_+/"] {
            assert!(Media::data("image/png", text).is_ok(), "{text:?}");
            assert!(Media::url("image/png", text).is_err(), "{text:?}");
        }
        for text in
            ["data:image/png;base64,AAAA", "ftp://a", "file:///etc/passwd", "javascript:a", " https://a"]
        {
            assert!(Media::url("", text).is_err(), "{text:?}");
        }
    }
}
