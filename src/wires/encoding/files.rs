//! Pictures and files, and the results of tools that hold them.

use std::borrow::Cow;

use crate::data::text::Put;
use crate::words::message::{ContentBlock, FileBlock, Media, MediaSource, ToolResultMessage};

/// Returns the text of a tool's result, and what in it is no text, for wires that cannot mark a result as an error: the
/// text says it instead.
pub(crate) fn result_parts(message: &ToolResultMessage) -> (Cow<'_, str>, Vec<&ContentBlock>) {
    if let ([ContentBlock::Text(block)], false) = (message.content.as_slice(), message.is_error) {
        return (Cow::Borrowed(&block.text), Vec::new());
    }
    let (mut text, media) = text_and_media(message);
    let is_marked = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if message.is_error && !is_marked {
        text = ["error: ", &text].concat();
    }
    (Cow::Owned(text), media)
}

/// Returns the texts of a tool's result, files that are text among them, and what is no text.
pub(crate) fn text_and_media(message: &ToolResultMessage) -> (String, Vec<&ContentBlock>) {
    let (mut text, mut media) = (String::new(), Vec::new());
    for block in &message.content {
        let form = match block {
            ContentBlock::File(file) => form_of(file),
            _ => FileForm::Other,
        };
        let words = match (block, &form) {
            (ContentBlock::Text(block), _) => &block.text,
            (_, FileForm::Text(words)) => words,
            _ => {
                media.push(block);
                continue;
            }
        };
        if !text.is_empty() {
            text.put("\n");
        }
        text.put(words);
    }
    (text, media)
}

/// The words before the pictures and files of a result, where they follow it in another place.
pub(crate) fn caption(media: &[&ContentBlock]) -> &'static str {
    let is_image = |block: &&ContentBlock| matches!(block, ContentBlock::Image(_));
    if media.iter().all(is_image) { "Image from the result of `" } else { "File from the result of `" }
}

/// Returns an image or file as a data URL; one that is elsewhere by its address.
pub(crate) fn data_url(media: &Media) -> String {
    match media.source() {
        MediaSource::Data(data) => ["data:", media.mime_type(), ";base64,", data].concat(),
        MediaSource::Url(url) => url.to_owned(),
    }
}

/// How to send a file on wires that accept files in few forms.
pub(crate) enum FileForm {
    Image,
    /// The text, with the name of the file before it.
    Text(String),
    Other,
}

/// Returns how to send a file. Images and texts are sent as such, because every server accepts them.
pub(crate) fn form_of(file: &FileBlock) -> FileForm {
    if file.media.mime_type().starts_with("image/") {
        return FileForm::Image;
    }
    match decoded_text(file) {
        Some(text) => FileForm::Text([file.name.as_deref().unwrap_or("file"), ":\n\n", &text].concat()),
        None => FileForm::Other,
    }
}

/// Returns the text of a file that is text; `None` for any other file.
pub(crate) fn decoded_text(file: &FileBlock) -> Option<String> {
    let mime_type = file.media.mime_type();
    let is_text = mime_type.starts_with("text/") || mime_type.starts_with("application/json");
    let MediaSource::Data(data) = file.media.source() else { return None };
    if is_text { String::from_utf8(decoded(data)?).ok() } else { None }
}

/// Decodes Base64, with or without padding, in both alphabets.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut held, mut bits) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| *byte != b'=') {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        held = held << 6 | u32::from(digit);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).unwrap_or(0));
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        let texts = [
            ("", ""),
            ("YQ==", "a"),
            ("YWI", "ab"),
            ("YWJj", "abc"),
            ("w6k=", "\u{e9}"),
            ("Pz8/Pj4+", "???>>>"),
            ("Pz8_Pj4-", "???>>>"),
        ];
        for (text, wanted) in texts {
            assert_eq!(decoded(text).unwrap(), wanted.as_bytes());
        }
        assert_eq!(decoded("a b"), None);
    }
}
