//! What an answer refers to, in one form for all wires: a raw block `{type: "citations", citations: [{url, title, file,
//! text, start, end}]}` behind what cites. It is for those who show the answer, and is not sent back.

use crate::data::json::{Map, RawJson, ToJson, Value, fill, without_comma};
use crate::data::text::Put;
use crate::data::text::contains;

use super::answering::Answering;

/// The citations so far.
#[derive(Default)]
pub(crate) struct Citations {
    /// As JSON, each with a comma before it.
    list: String,
}

/// The members of a citation, and what providers call them.
const MEMBERS: [(&str, &[&str]); 6] = [
    ("url", &["url", "uri"]),
    ("title", &["title", "document_title", "filename"]),
    ("file", &["file_id"]),
    ("text", &["cited_text", "quote", "text"]),
    ("start", &["start_index", "startIndex", "start_char_index", "start_page_number", "start_block_index"]),
    ("end", &["end_index", "endIndex", "end_char_index", "end_page_number", "end_block_index"]),
];

/// Where the members stand inside of a citation.
const INNER: [&str; 5] = ["url_citation", "web", "retrievedContext", "maps", "segment"];

/// How a block of citations begins.
const BLOCK: &str = "{\"type\":\"citations\",";

impl Citations {
    /// Takes a citation in the form of any provider, with members from elsewhere. What is known already is not repeated.
    pub(crate) fn take(&mut self, citation: &[&Value], answering: &mut Answering) {
        let mut entry = Map::new();
        for (name, words) in MEMBERS {
            let places = citation.iter().flat_map(|value| {
                INNER.iter().filter_map(|inner| value.get(inner)).chain(std::iter::once(*value))
            });
            let found = places.flat_map(|place| words.iter().filter_map(|word| place.get(word)));
            if let Some(value) =
                found.into_iter().find(|value| !value.is_null() && value.as_object().is_none())
            {
                entry.insert(name, value.clone());
            }
        }
        if ["url", "title", "file", "text"].iter().all(|name| entry.get(name).is_none()) {
            return;
        }
        let mut text = String::from(",");
        Value::Object(entry).write_json(&mut text);
        if !contains(&self.list, &text) {
            answering.hold(&mut self.list, &text);
        }
    }

    /// Takes a page of which only the address is known.
    pub(crate) fn take_url(&mut self, url: &str, answering: &mut Answering) {
        let mut page = Map::new();
        page.insert("url", Value::from(url));
        self.take(&[&Value::Object(page)], answering);
    }

    /// The citations as JSON values, separated by commas.
    pub(crate) fn values(&self) -> &str {
        without_comma(&self.list)
    }

    /// Adds the block, if there is anything in it.
    pub(crate) fn keep(&mut self, answering: &mut Answering) {
        let list = std::mem::take(&mut self.list);
        if !list.is_empty() {
            let mut block = String::from(BLOCK);
            fill("\"citations\":[#]", &[without_comma(&list)], &mut block);
            block.put("}");
            answering.keep(&block);
        }
    }
}

/// Whether a block is one of citations, which no provider understands.
pub(crate) fn is_citations(block: &RawJson) -> bool {
    block.as_str().starts_with(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_citations_of_all_providers_have_one_form() {
        let mut citations = Citations::default();
        let mut answering = Answering::new(crate::wires::Limits::default());
        for written in [
            r#"{"type":"url_citation","url":"u","title":"t","start_index":0,"end_index":9}"#,
            r#"{"type":"url_citation","url_citation":{"url":"u","title":"t","start_index":0,"end_index":9}}"#,
            r#"{"type":"char_location","cited_text":"c","document_title":"d","start_char_index":1,"end_char_index":2}"#,
            r#"{"web":{"uri":"w","title":"g"}}"#,
            r#"{"type":"file_citation","file_id":"f","filename":"n"}"#,
            r#"{"type":"unknown"}"#,
        ] {
            citations.take(&[&Value::parse(written).unwrap()], &mut answering);
        }
        citations.take_url("p", &mut answering);
        let wanted = [
            r#"{"url":"u","title":"t","start":0,"end":9}"#,
            r#"{"title":"d","text":"c","start":1,"end":2}"#,
            r#"{"url":"w","title":"g"}"#,
            r#"{"title":"n","file":"f"}"#,
            r#"{"url":"p"}"#,
        ];
        assert_eq!(citations.values(), wanted.join(","));
    }
}
