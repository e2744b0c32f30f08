//! The blocks that messages are made of.

use std::borrow::Cow;
use std::rc::Rc;

use super::json::text_field;
use crate::data::json::{FromJson, ObjectWriter, RawJson, ToJson, Value};

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
    /// The MIME type, such as `image/png`; may be empty if `data` is an address.
    pub mime_type: String,
    /// The content in Base64; or its address, see [`is_address`].
    pub data: Rc<str>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileBlock {
    /// The MIME type, such as `application/pdf`.
    pub mime_type: String,
    /// The content in Base64; or its address, see [`is_address`].
    pub data: Rc<str>,
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
            ContentBlock::Image(ImageBlock { data, .. }) | ContentBlock::File(FileBlock { data, .. }) => {
                is_address(data)
            }
            _ => false,
        }
    }
}

/// Whether the `data` of an image or a file is an address, `https://…` or `http://…`, and not Base64, which has no
/// colon.
#[inline(never)]
pub fn is_address(data: &str) -> bool {
    data.starts_with("https://") || data.starts_with("http://")
}

/// Returns all text of the blocks, concatenated.
pub fn text_of(content: &[ContentBlock]) -> String {
    text_in(content).into_owned()
}

/// Like [`text_of`], but copies only if the text is in several blocks.
#[inline(never)]
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

impl ToJson for ContentBlock {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        match self {
            ContentBlock::Text(block) => {
                object.fill(r#""type":"text","text":"$""#, &[&block.text]);
                object.optional("signature", &block.signature);
            }
            ContentBlock::Thinking(block) => {
                object.fill(r#""type":"thinking","thinking":"$""#, &[&block.thinking]);
                object.optional("signature", &block.signature);
                if block.redacted {
                    object.field("redacted", &true);
                }
            }
            ContentBlock::ToolCall(call) => write_call(call, &mut object),
            ContentBlock::Image(image) => write_media("image", &image.mime_type, &image.data, &mut object),
            ContentBlock::File(file) => {
                write_media("file", &file.mime_type, &file.data, &mut object);
                object.optional("name", &file.name);
            }
            ContentBlock::Raw(data) => drop(object.fill(r#""type":"raw","data":#"#, &[data.as_str()])),
        }
        object.end();
    }
}

#[inline(never)]
fn write_media(kind: &str, mime_type: &str, data: &str, object: &mut ObjectWriter<'_>) {
    object.fill(r#""type":"$""#, &[kind]);
    let is_link = is_address(data);
    // Of an image that is elsewhere, the type need not be known.
    if !is_link || !mime_type.is_empty() {
        object.fill(r#""mimeType":"$""#, &[mime_type]);
    }
    object.fill(r#""$":"$""#, &[if is_link { "url" } else { "data" }, data]);
}

/// Reads the type and the content of an image or a file; of one that is elsewhere, the type need not be known.
#[inline(never)]
fn read_media(value: &Value) -> Result<(String, Rc<str>), String> {
    match value.text_at("url") {
        Some(url) if is_address(url) => Ok((value.owned_at("mimeType").unwrap_or_default(), url.into())),
        _ => Ok((text_field(value, "mimeType")?, text_field(value, "data")?.into())),
    }
}

fn write_call(call: &ToolCallBlock, object: &mut ObjectWriter<'_>) {
    let template = r#""type":"tool_call","callId":"$","toolName":"$","arguments":#"#;
    object.fill(template, &[&call.call_id, &call.tool_name, call.arguments.as_str()]);
    object.optional("metadata", &call.metadata);
}

impl ToJson for ToolCallBlock {
    fn write_json(&self, out: &mut String) {
        let mut object = ObjectWriter::new(out);
        write_call(self, &mut object);
        object.end();
    }
}

impl FromJson for ToolCallBlock {
    fn from_json(value: &Value) -> Result<Self, String> {
        let arguments = value.get("arguments").unwrap_or(&Value::Null);
        Ok(ToolCallBlock {
            call_id: text_field(value, "callId")?,
            tool_name: text_field(value, "toolName")?,
            arguments: if arguments.is_null() { RawJson::empty_object() } else { arguments.to_raw() },
            metadata: value.get("metadata").map(ToJson::to_raw),
        })
    }
}

impl FromJson for ContentBlock {
    fn from_json(value: &Value) -> Result<Self, String> {
        let optional = |key: &str| value.owned_at(key);
        Ok(match value.text_at("type") {
            Some("text") => ContentBlock::Text(TextBlock {
                text: text_field(value, "text")?,
                signature: optional("signature"),
            }),
            Some("thinking") => ContentBlock::Thinking(ThinkingBlock {
                thinking: text_field(value, "thinking")?,
                signature: optional("signature"),
                redacted: value.flag_at("redacted").unwrap_or(false),
            }),
            Some("tool_call") => ContentBlock::ToolCall(ToolCallBlock::from_json(value)?),
            Some("image") => {
                let (mime_type, data) = read_media(value)?;
                ContentBlock::Image(ImageBlock { mime_type, data })
            }
            Some("file") => {
                let (mime_type, data) = read_media(value)?;
                ContentBlock::File(FileBlock { mime_type, data, name: optional("name") })
            }
            Some("raw") => ContentBlock::Raw(value.get("data").unwrap_or(&Value::Null).to_raw()),
            Some(other) => return Err(["unknown block type `", other, "`"].concat()),
            None => {
                let got = ["a block must be an object with a `type`, got ", value.kind()];
                return Err(got.concat());
            }
        })
    }
}
