//! How the models of this wire are told to think.

use crate::data::text::contains;
use crate::rules::stream::{ModelRequest, Reasoning};
use crate::wires::encoding::body::RequestBody;
use crate::wires::encoding::models::{always_thinks, is_reasoning_model, known_effort};
use crate::wires::encoding::options::effort;

/// What a request says of thinking.
pub(super) struct ResponsesThinking<'a> {
    reasoning: Option<&'a Reasoning>,
    thinks_unasked: bool,
    /// The model thinks, and refuses to be told how freely to choose its words.
    pub(super) excludes_sampling: bool,
}

impl<'a> ResponsesThinking<'a> {
    pub(super) fn of(request: &'a ModelRequest, provider: &str) -> Self {
        let is_xai = provider == "xai";
        let is_checked = is_xai || matches!(provider, "openai" | "azure");
        let thinks = is_reasoning_model(&request.model);
        let can_disable = thinks || !is_checked || contains(&request.model, "grok-4.3");
        // Models that do not think refuse to be asked for it, and to be told not to.
        let is_accepted =
            |reasoning: &&Reasoning| can_disable || !matches!(effort(reasoning), "off" | "none");
        ResponsesThinking {
            reasoning: request.options.reasoning.as_ref().filter(is_accepted),
            thinks_unasked: thinks || is_xai,
            excludes_sampling: is_checked && always_thinks(&request.model, &request.options),
        }
    }

    /// Whether there may be thinking, which must then be sent back encrypted.
    pub(super) fn is_possible(&self) -> bool {
        self.thinks_unasked || self.reasoning.is_some()
    }

    pub(super) fn write(&self, model: &str, body: &mut RequestBody<'_>) {
        if let Some(reasoning) = self.reasoning {
            let word = effort(reasoning);
            let summary = if matches!(word, "off" | "none") { "" } else { ",\"summary\":\"auto\"" };
            body.fill("reasoning", "{\"effort\":\"$\"#}", &[known_effort(word, model), summary]);
        }
    }
}
