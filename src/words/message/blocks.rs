//! The blocks that messages are made of.

use std::borrow::Cow;

use super::media::{Media, MediaSource};
use crate::data::json::members::{any, maybe, needed, rare};
use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value, members};

/// A block of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// The provider's signature, returned to it unchanged.
    pub signature: Option<String>,
}

/// The model's thinking before it answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingBlock {
    /// The text; empty if the provider does not reveal it.
    pub thinking: String,
    /// The provider's signature, returned to it unchanged.
    pub signature: Option<String>,
    /// Whether the signature is an opaque block of its own.
    pub redacted: bool,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallBlock {
    /// The id of the call, unique in the whole history.
    pub call_id: String,
    /// The tool name as given by the model.
    pub tool_name: String,
    /// The arguments: always a JSON object in the history; in `message_end`, the value as the model gave
    /// it.
    pub arguments: RawJson,
    /// What the wire needs to get back: the provider's own id, signatures.
    pub metadata: Option<RawJson>,
}

impl ToolCallBlock {
    /// Returns the arguments in the form that providers accept. A history from elsewhere may contain other
    /// JSON, and providers would refuse it in every request.
    pub(crate) fn object(&self) -> &str {
        if self.arguments.is_object() { self.arguments.as_str() } else { "{}" }
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageBlock {
    /// Its content or its address.
    pub media: Media,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// Its content or its address.
    pub media: Media,
    /// The file's name.
    pub name: Option<String>,
}

/// One block of a message. For the kinds allowed in each role, see [`UserMessage`](super::UserMessage), [`AssistantMessage`](super::AssistantMessage)
/// and [`ToolResultMessage`](super::ToolResultMessage).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentBlock {
    /// Text, in any role.
    Text(TextBlock),
    /// Thinking, from the assistant.
    Thinking(ThinkingBlock),
    /// A tool call, from the assistant.
    ToolCall(ToolCallBlock),
    /// An image, from the user or in a tool result.
    Image(ImageBlock),
    /// A file, from the user.
    File(FileBlock),
    /// A block from the assistant that only its provider understands, kept as received: calls that the
    /// provider ran itself, their results, kinds of block not known yet. Returned unchanged to the same
    /// provider.
    Raw(RawJson),
}

impl ContentBlock {
    /// Creates a text block without a signature.
    pub fn text(text: impl Into<String>) -> Self {
        ContentBlock::Text(TextBlock { text: text.into(), signature: None })
    }

    /// Whether it is an image or a file that is elsewhere.
    pub(crate) fn is_link(&self) -> bool {
        match self {
            ContentBlock::Image(ImageBlock { media }) | ContentBlock::File(FileBlock { media, .. }) => {
                matches!(media.source(), MediaSource::Url(_))
            }
            _ => false,
        }
    }
}

/// Returns all text of the blocks, concatenated.
pub fn text_of(content: &[ContentBlock]) -> String {
    text_in(content).into_owned()
}

/// Like [`text_of`], but copies only if the text is in several blocks.
pub(crate) fn text_in(content: &[ContentBlock]) -> Cow<'_, str> {
    let mut all = Cow::Borrowed("");
    for block in content {
        match block {
            ContentBlock::Text(block) if all.is_empty() => all = Cow::Borrowed(&block.text),
            ContentBlock::Text(block) => all.to_mut().push_str(&block.text),
            _ => {}
        }
    }
    all
}

members!(TextBlock {
    "type" = "text",
    "text" =>? text: needed,
    "signature" => signature: maybe,
});

members!(ThinkingBlock {
    "type" = "thinking",
    "thinking" =>? thinking: needed,
    "signature" => signature: maybe,
    "redacted" => redacted: rare,
});

members!(ToolCallBlock {
    "type" = "tool_call",
    "callId" =>? call_id: needed,
    "toolName" =>? tool_name: needed,
    "arguments" => arguments: arguments,
    "metadata" => metadata: maybe,
});

/// The arguments of a call; an empty object if they are missing.
mod arguments {
    pub(super) use crate::data::json::members::any::write;

    use super::{RawJson, ToJson, Value};

    pub(super) fn read(value: &Value, key: &str) -> RawJson {
        let given = value.get(key).filter(|given| !given.is_null());
        given.map_or_else(RawJson::empty_object, ToJson::to_raw)
    }
}

impl ToJson for ContentBlock {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            ContentBlock::Text(block) => block.write_members(&mut object),
            ContentBlock::Thinking(block) => block.write_members(&mut object),
            ContentBlock::ToolCall(call) => call.write_members(&mut object),
            ContentBlock::Image(image) => image.media.write("image", &mut object),
            ContentBlock::File(file) => {
                file.media.write("file", &mut object);
                object.optional("name", &file.name);
            }
            ContentBlock::Raw(data) => drop(object.fill(r#""type":"raw","data":#"#, &[data.as_str()])),
        }
        object.end();
    }
}

impl FromJson for ContentBlock {
    fn from_json(value: &Value) -> Result<Self, String> {
        Ok(match value.text_at("type") {
            Some("text") => ContentBlock::Text(TextBlock::from_json(value)?),
            Some("thinking") => ContentBlock::Thinking(ThinkingBlock::from_json(value)?),
            Some("tool_call") => ContentBlock::ToolCall(ToolCallBlock::from_json(value)?),
            Some("image") => ContentBlock::Image(ImageBlock { media: Media::read(value)? }),
            Some("file") => {
                ContentBlock::File(FileBlock { media: Media::read(value)?, name: value.owned_at("name") })
            }
            Some("raw") => ContentBlock::Raw(any::read(value, "data")),
            Some(other) => return Err(["unknown block type `", other, "`"].concat()),
            None => {
                let got = ["a block must be an object with a `type`, got ", value.kind()];
                return Err(got.concat());
            }
        })
    }
}
