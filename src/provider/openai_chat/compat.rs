//! What one server takes and another refuses. Known by address, settable by hand.

use crate::json::Value;
use crate::text::{contains, split_once};

/// The switches of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compat {
    /// `maxTokensField`: how the limit of the answer is called, `max_tokens` or `max_completion_tokens`.
    pub max_tokens_field: &'static str,
    /// `developerRole`: reasoning models get the system prompt in the role `developer`.
    pub developer_role: bool,
    /// `streamOptions`: usage must be asked for with `stream_options`.
    pub stream_options: bool,
    /// `store`: sends `store: false`.
    pub store: bool,
    /// `parallelToolCalls`: the server knows `parallel_tool_calls`.
    pub parallel_tool_calls: bool,
    /// `strict`: when schemas are marked as strict.
    pub strict: Strict,
    /// `reasoning`: how to say how much to think.
    pub reasoning: ReasoningStyle,
    /// `toolIds`: what the ids of calls must look like.
    pub tool_ids: ToolIds,
    /// `replayReasoning`: how thinking is given back.
    pub replay: Replay,
    /// `toolResultName`: tool messages carry the tool's `name`.
    pub tool_result_name: bool,
    /// `assistantAfterTool`: a user message may not follow a tool message.
    pub assistant_after_tool: bool,
    /// `cacheControl`: Claude behind this server takes `cache_control`.
    pub cache_control: bool,
}

/// When schemas are marked as strict. By hand: `true` is always, `false` never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// Never.
    Never,
    /// Where the schema has the form that strict schemas must have.
    Fitting,
    /// Always.
    Always,
}

/// How to say how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningStyle {
    /// `none`: not at all.
    None,
    /// `reasoning_effort`: a word.
    Effort,
    /// `openrouter`: `reasoning: {effort | max_tokens | enabled}`
    OpenRouter,
    /// `deepseek`: `thinking: {type}` and `reasoning_effort` low or high.
    DeepSeek,
    /// `thinking`: `thinking: {type}`
    Thinking,
    /// `enable_thinking`: `enable_thinking` and `thinking_budget`.
    EnableThinking,
    /// `chat_template_kwargs`: `chat_template_kwargs: {enable_thinking}`
    TemplateKwargs,
    /// `mistral`: `prompt_mode` for Magistral, else `reasoning_effort` none or high.
    Mistral,
}

/// What the ids of calls must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolIds {
    /// `any`
    Any,
    /// `short`: at most 40 characters, none of them unusual.
    Short,
    /// `mistral`: exactly 9 letters or digits.
    Mistral,
}

/// How thinking is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// `none`: not at all.
    None,
    /// `reasoning_content`: in that field; empty beside calls that were made without thinking.
    ReasoningContent,
    /// `reasoning`: in that field.
    Reasoning,
    /// `reasoning_details`: unchanged and in order.
    Details,
    /// `thinking`: as chunks of the content.
    ThinkingChunk,
}

impl Default for Compat {
    /// What every server takes.
    fn default() -> Self {
        Compat {
            max_tokens_field: "max_tokens",
            developer_role: false,
            stream_options: false,
            store: false,
            parallel_tool_calls: false,
            strict: Strict::Never,
            reasoning: ReasoningStyle::Effort,
            tool_ids: ToolIds::Short,
            replay: Replay::None,
            tool_result_name: false,
            assistant_after_tool: false,
            cache_control: false,
        }
    }
}

/// The provider's name and its switches, by the address of the server.
pub fn known(base_url: &str) -> (&'static str, Compat) {
    let (host, port, path) = address(base_url);
    let is = |domain: &str| {
        host.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    let is_local = matches!(host, "localhost" | "0.0.0.0" | "[::1]" | "host.docker.internal")
        || host.starts_with("127.")
        || host.starts_with("192.168.")
        || host.starts_with("10.");
    let name = match (host, port) {
        _ if is("openai.com") => "openai",
        _ if is("openai.azure.com") || is("ai.azure.com") || is("cognitiveservices.azure.com") => "azure",
        _ if is("openrouter.ai") => "openrouter",
        _ if is("groq.com") => "groq",
        _ if is("mistral.ai") => "mistral",
        _ if is("deepseek.com") => "deepseek",
        _ if is("x.ai") => "xai",
        _ if is("together.xyz") || is("together.ai") => "together",
        _ if is("moonshot.ai") || is("moonshot.cn") => "moonshot",
        _ if is("z.ai") || is("bigmodel.cn") => "zai",
        _ if is("minimax.io") || is("minimaxi.com") => "minimax",
        _ if is("aliyuncs.com") => "alibaba",
        _ if is("ollama.com") => "ollama",
        _ if is("cloudflare.com") && contains(path, "/ai/") => "workers-ai",
        (_, "11434") if is_local => "ollama",
        (_, "8080") if is_local => "llama.cpp",
        (_, "1234") if is_local => "lmstudio",
        (_, "8000") if is_local => "vllm",
        _ => "openai-compatible",
    };
    let mut compat = of(name);
    // Whatever runs at home, on whatever port: none of these servers refuses the question for its usage.
    compat.stream_options |= is_local;
    (name, compat)
}

fn of(name: &str) -> Compat {
    let plain = Compat::default();
    let asking = Compat { stream_options: true, ..Compat::default() };
    let parallel = Compat { parallel_tool_calls: true, ..asking.clone() };
    match name {
        "openai" => Compat {
            max_tokens_field: "max_completion_tokens",
            developer_role: true,
            store: true,
            strict: Strict::Fitting,
            ..parallel
        },
        "azure" => Compat { max_tokens_field: "max_completion_tokens", ..parallel },
        "openrouter" => Compat {
            reasoning: ReasoningStyle::OpenRouter,
            replay: Replay::Details,
            cache_control: true,
            ..parallel
        },
        "groq" | "xai" | "together" => parallel,
        "mistral" => Compat {
            parallel_tool_calls: true,
            reasoning: ReasoningStyle::Mistral,
            tool_ids: ToolIds::Mistral,
            replay: Replay::ThinkingChunk,
            ..plain
        },
        "deepseek" => {
            Compat { reasoning: ReasoningStyle::DeepSeek, replay: Replay::ReasoningContent, ..asking }
        }
        "moonshot" | "zai" => {
            Compat { reasoning: ReasoningStyle::Thinking, replay: Replay::ReasoningContent, ..asking }
        }
        "minimax" => Compat { replay: Replay::ReasoningContent, ..asking },
        "alibaba" => Compat { reasoning: ReasoningStyle::EnableThinking, ..asking },
        "llama.cpp" | "vllm" => Compat { reasoning: ReasoningStyle::TemplateKwargs, ..parallel },
        "ollama" | "lmstudio" => asking,
        _ => plain,
    }
}

/// Host, port and path of an address, in lower case where case does not matter.
fn address(url: &str) -> (&str, &str, &str) {
    let rest = split_once(url, "://").map_or(url, |(_, rest)| rest);
    let (authority, path) = match rest.find(['/', '?']).and_then(|at| rest.split_at_checked(at)) {
        Some((authority, path)) => (authority, path),
        None => (rest, ""),
    };
    let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port, path),
        _ => (authority, "", path),
    }
}

impl Compat {
    /// Sets switches by hand: an object with the names that stand at the fields.
    ///
    /// # Errors
    /// Where a name or a value is unknown.
    pub fn apply(&mut self, switches: &Value) -> Result<(), String> {
        let Some(switches) = switches.as_object() else {
            return Err(["`compat` must be an object, got ", switches.kind()].concat());
        };
        switches.iter().try_for_each(|(name, value)| self.set(name, value))
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "developerRole" => self.developer_role = flag(name, value)?,
            "streamOptions" => self.stream_options = flag(name, value)?,
            "store" => self.store = flag(name, value)?,
            "parallelToolCalls" => self.parallel_tool_calls = flag(name, value)?,
            "toolResultName" => self.tool_result_name = flag(name, value)?,
            "assistantAfterTool" => self.assistant_after_tool = flag(name, value)?,
            "cacheControl" => self.cache_control = flag(name, value)?,
            "strict" => self.strict = if flag(name, value)? { Strict::Always } else { Strict::Never },
            "maxTokensField" => {
                let words =
                    [("max_tokens", "max_tokens"), ("max_completion_tokens", "max_completion_tokens")];
                self.max_tokens_field = word(name, value, &words)?;
            }
            "reasoning" => self.reasoning = word(name, value, &REASONING_STYLES)?,
            "toolIds" => self.tool_ids = word(name, value, &TOOL_IDS)?,
            "replayReasoning" => self.replay = word(name, value, &REPLAYS)?,
            _ => return Err(["unknown `compat` switch `", name, "`"].concat()),
        }
        Ok(())
    }
}

const REASONING_STYLES: [(&str, ReasoningStyle); 8] = [
    ("none", ReasoningStyle::None),
    ("reasoning_effort", ReasoningStyle::Effort),
    ("openrouter", ReasoningStyle::OpenRouter),
    ("deepseek", ReasoningStyle::DeepSeek),
    ("thinking", ReasoningStyle::Thinking),
    ("enable_thinking", ReasoningStyle::EnableThinking),
    ("chat_template_kwargs", ReasoningStyle::TemplateKwargs),
    ("mistral", ReasoningStyle::Mistral),
];

const TOOL_IDS: [(&str, ToolIds); 3] =
    [("any", ToolIds::Any), ("short", ToolIds::Short), ("mistral", ToolIds::Mistral)];

const REPLAYS: [(&str, Replay); 5] = [
    ("none", Replay::None),
    ("reasoning_content", Replay::ReasoningContent),
    ("reasoning", Replay::Reasoning),
    ("reasoning_details", Replay::Details),
    ("thinking", Replay::ThinkingChunk),
];

fn flag(name: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| ["`compat.", name, "` must be a boolean, got ", value.kind()].concat())
}

fn word<T: Copy>(name: &str, value: &Value, words: &[(&str, T)]) -> Result<T, String> {
    if let Some((_, found)) = words.iter().find(|(known, _)| value.as_str() == Some(*known)) {
        return Ok(*found);
    }
    let mut message = ["`compat.", name, "` must be one of"].concat();
    for (known, _) in words {
        message.push_str(" `");
        message.push_str(known);
        message.push('`');
    }
    Err(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_known_by_their_address() {
        let servers = [
            ("https://api.openai.com/v1", "openai"),
            ("https://eu.api.openai.com/v1/", "openai"),
            ("https://r.openai.azure.com/openai/deployments/d?api-version=1", "azure"),
            ("https://r.services.ai.azure.com/models", "azure"),
            ("https://openrouter.ai/api/v1", "openrouter"),
            ("https://api.groq.com/openai/v1", "groq"),
            ("https://api.mistral.ai/v1", "mistral"),
            ("https://api.deepseek.com", "deepseek"),
            ("https://api.x.ai/v1", "xai"),
            ("https://api.together.xyz/v1", "together"),
            ("http://localhost:11434/v1", "ollama"),
            ("http://127.0.0.1:8080/v1", "llama.cpp"),
            ("http://user:pw@localhost:1234/v1", "lmstudio"),
            ("http://[::1]:8000/v1", "vllm"),
            ("https://api.cloudflare.com/client/v4/accounts/a/ai/v1", "workers-ai"),
            ("https://notopenai.com/v1", "openai-compatible"),
            ("https://example.com:8000/v1", "openai-compatible"),
            ("/api/chat", "openai-compatible"),
            ("", "openai-compatible"),
        ];
        for (url, name) in servers {
            assert_eq!(known(url).0, name, "{url}");
        }
    }

    #[test]
    fn a_server_at_home_is_asked_for_its_usage_on_any_port() {
        let asks = |url: &str| known(url).1.stream_options;
        assert!(
            asks("http://127.0.0.1:37129/v1")
                && asks("http://localhost/v1")
                && asks("http://192.168.0.7:9/v1")
        );
        assert!(!asks("https://example.com/v1"));
    }

    #[test]
    fn a_switch_that_nobody_knows_is_refused_by_name() {
        let set = |json: &str| Compat::default().apply(&Value::parse(json).unwrap());
        assert_eq!(set(r#"{"strict":true,"reasoning":"thinking","toolIds":"mistral"}"#), Ok(()));
        assert_eq!(set(r#"{"stricct":true}"#), Err("unknown `compat` switch `stricct`".into()));
        assert_eq!(set(r#"{"store":1}"#), Err("`compat.store` must be a boolean, got a number".into()));
        let wrong = set(r#"{"toolIds":"long"}"#).unwrap_err();
        assert_eq!(wrong, "`compat.toolIds` must be one of `any` `short` `mistral`");
    }
}
