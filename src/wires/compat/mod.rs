//! What one server accepts and another rejects. Known from the address, and can be set by hand: `server` names a server
//! whose switches apply whatever the address, the other names set one switch each.

use crate::data::json::{RawJson, Value};
use crate::data::text::{contains, rsplit_once, split, split_once, split_while};

use super::encoding::strict::is_strict;

/// The switches of one server. Not every wire has all of them; a wire rejects those it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compat {
    /// `maxTokensField`: the name of the field for the limit of the answer, `max_tokens` or `max_completion_tokens`.
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
    /// `toolIds`: the form that the ids of calls must have.
    pub tool_ids: ToolIds,
    /// `replayReasoning`: how thinking is sent back.
    pub replay: Replay,
    /// `toolResultName`: tool messages carry the tool's `name`.
    pub tool_result_name: bool,
    /// `assistantAfterTool`: a user message may not follow a tool message.
    pub assistant_after_tool: bool,
    /// `cacheControl`: the server accepts `cache_control`; on Chat, only for Claude.
    pub cache_control: bool,
    /// `cacheTtl`: how long Anthropic keeps its cache, `5m` or `1h`.
    pub cache_ttl: &'static str,
    /// `promptCacheKey`: the server separates caches by `prompt_cache_key`, which is the id of the session.
    pub prompt_cache_key: bool,
}

/// When schemas are marked as strict. Set by hand, `true` means always and `false` never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// Never.
    Never,
    /// If the schema has the form that strict schemas must have.
    Fitting,
    /// Always.
    Always,
}

impl Strict {
    /// Whether a schema is marked.
    pub fn marks(self, schema: &RawJson) -> bool {
        match self {
            Strict::Never => false,
            Strict::Always => true,
            Strict::Fitting => is_strict(&schema.to_value()),
        }
    }
}

/// How to say how much to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReasoningStyle {
    /// `none`: not at all.
    None,
    /// `reasoning_effort`: a word. On Anthropic and Gemini: whatever the name of the model suggests.
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
    /// `adaptive`: Claude decides how much, and is told a word.
    Adaptive,
    /// `budget`: Claude or Gemini is told how many tokens it may think.
    Budget,
    /// `level`: a word for Gemini.
    Level,
}

/// The form that the ids of calls must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolIds {
    /// `any`
    Any,
    /// `short`: at most 40 characters, none of them unusual.
    Short,
    /// `mistral`: exactly 9 letters or digits.
    Mistral,
}

/// How thinking is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    /// `none`: not at all.
    None,
    /// `reasoning_content`: in that field; empty for answers without thinking.
    ReasoningContent,
    /// `reasoning`: in that field.
    Reasoning,
    /// `reasoning_details`: unchanged and in order.
    Details,
    /// `thinking`: as chunks of the content.
    ThinkingChunk,
}

impl Default for Compat {
    /// What every server accepts.
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
            cache_ttl: "5m",
            prompt_cache_key: false,
        }
    }
}

/// The provider's name and its switches: those of the server named by hand, otherwise those known from the address.
///
/// # Errors
/// If the named server is unknown.
pub fn server(base_url: &str, switches: &Value) -> Result<(&'static str, Compat), String> {
    match switches.get("server") {
        None => Ok(known(base_url)),
        Some(name) => {
            let (_, name) = word("server", name, SERVERS)?;
            Ok((name, of(name)))
        }
    }
}

/// The servers that are known.
const SERVERS: &str = "\
    openai azure openrouter groq mistral deepseek xai together moonshot zai minimax alibaba workers-ai ollama \
    llama.cpp lmstudio vllm openai-compatible";

/// Host name suffixes, and the server behind each.
const HOSTS: &str = "\
    openai.com=openai openai.azure.com=azure ai.azure.com=azure cognitiveservices.azure.com=azure \
    openrouter.ai=openrouter groq.com=groq mistral.ai=mistral deepseek.com=deepseek x.ai=xai \
    together.xyz=together together.ai=together moonshot.ai=moonshot moonshot.cn=moonshot z.ai=zai \
    bigmodel.cn=zai minimax.io=minimax minimaxi.com=minimax aliyuncs.com=alibaba ollama.com=ollama";

/// The provider's name and its switches, from the address of the server.
pub fn known(base_url: &str) -> (&'static str, Compat) {
    let (host, port, path) = address(base_url);
    let is = |domain: &str| {
        host.strip_suffix(domain).is_some_and(|front| front.is_empty() || front.ends_with("."))
    };
    let is_local = matches!(host, "localhost" | "0.0.0.0" | "[::1]" | "host.docker.internal")
        || ["127.", "192.168.", "10."].iter().any(|start| host.starts_with(start));
    let local_server = match port {
        "11434" => "ollama",
        "8080" => "llama.cpp",
        "1234" => "lmstudio",
        "8000" => "vllm",
        _ => "",
    };
    let name = if host == "gateway.ai.cloudflare.com" {
        // `/v1/ACCOUNT/GATEWAY/PROVIDER`: the server behind the gateway counts.
        match split(path, "/").nth(4).unwrap_or_default() {
            "grok" => "xai",
            "azure-openai" => "azure",
            segment => split(SERVERS, " ").find(|name| *name == segment).unwrap_or_default(),
        }
    } else if is("cloudflare.com") && contains(path, "/ai/") {
        "workers-ai"
    } else if is_local {
        local_server
    } else {
        let mut known = split(HOSTS, " ").filter_map(|entry| split_once(entry, "="));
        known.find(|(domain, _)| is(domain)).map_or("", |(_, name)| name)
    };
    let name = if name.is_empty() { "openai-compatible" } else { name };
    let mut compat = of(name);
    // Any local server, on any port: none of them rejects the request for usage.
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
            prompt_cache_key: true,
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
            assistant_after_tool: true,
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
    let (authority, path) = split_while(rest, |byte| !b"/?".contains(&byte));
    let authority = rsplit_once(authority, b'@').map_or(authority, |(_, host)| host);
    match rsplit_once(authority, b':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port, path),
        _ => (authority, "", path),
    }
}

impl Compat {
    /// Sets switches by hand: an object with the names that stand at the fields. Null sets none.
    ///
    /// # Errors
    /// Where a name or a value is unknown, or the switch is not among those that the wire `has`.
    pub fn apply(&mut self, switches: &Value, has: &str) -> Result<(), String> {
        let Some(switches) = switches.as_object() else {
            return if switches.is_null() {
                Ok(())
            } else {
                Err(["`compat` must be an object, got ", switches.kind()].concat())
            };
        };
        for (name, value) in switches.iter().filter(|(name, _)| *name != "server") {
            if !split(has, " ").any(|known| known == name) {
                return Err(
                    ["unknown `compat` switch `", name, "` of this wire; it has", &quoted_list(has)].concat()
                );
            }
            self.set(name, value)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let flag = match name {
            "developerRole" => &mut self.developer_role,
            "streamOptions" => &mut self.stream_options,
            "store" => &mut self.store,
            "parallelToolCalls" => &mut self.parallel_tool_calls,
            "toolResultName" => &mut self.tool_result_name,
            "assistantAfterTool" => &mut self.assistant_after_tool,
            "cacheControl" => &mut self.cache_control,
            "promptCacheKey" => &mut self.prompt_cache_key,
            "strict" => {
                self.strict = if read_flag(name, value)? { Strict::Always } else { Strict::Never };
                return Ok(());
            }
            _ => return self.set_word(name, value),
        };
        *flag = read_flag(name, value)?;
        Ok(())
    }

    fn set_word(&mut self, name: &str, value: &Value) -> Result<(), String> {
        match name {
            "maxTokensField" => {
                self.max_tokens_field = word(name, value, "max_tokens max_completion_tokens")?.1;
            }
            "reasoning" => {
                use ReasoningStyle as R;
                let allowed = "none reasoning_effort openrouter deepseek thinking enable_thinking \
                    chat_template_kwargs mistral adaptive budget level";
                self.reasoning = match word(name, value, allowed)?.0 {
                    0 => R::None,
                    1 => R::Effort,
                    2 => R::OpenRouter,
                    3 => R::DeepSeek,
                    4 => R::Thinking,
                    5 => R::EnableThinking,
                    6 => R::TemplateKwargs,
                    7 => R::Mistral,
                    8 => R::Adaptive,
                    9 => R::Budget,
                    _ => R::Level,
                };
            }
            "cacheTtl" => self.cache_ttl = word(name, value, "5m 1h")?.1,
            "toolIds" => {
                self.tool_ids = match word(name, value, "any short mistral")?.0 {
                    0 => ToolIds::Any,
                    1 => ToolIds::Short,
                    _ => ToolIds::Mistral,
                };
            }
            "replayReasoning" => {
                let allowed = "none reasoning_content reasoning reasoning_details thinking";
                self.replay = match word(name, value, allowed)?.0 {
                    0 => Replay::None,
                    1 => Replay::ReasoningContent,
                    2 => Replay::Reasoning,
                    3 => Replay::Details,
                    _ => Replay::ThinkingChunk,
                };
            }
            // `apply` knows the names.
            _ => {}
        }
        Ok(())
    }
}

fn read_flag(name: &str, value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| ["`compat.", name, "` must be a boolean, got ", value.kind()].concat())
}

/// The place of a value among some words, and the word.
fn word(name: &str, value: &Value, allowed: &'static str) -> Result<(usize, &'static str), String> {
    let found = split(allowed, " ").enumerate().find(|(_, word)| value.as_str() == Some(*word));
    found.ok_or_else(|| ["`compat.", name, "` must be one of", &quoted_list(allowed)].concat())
}

fn quoted_list(allowed: &str) -> String {
    let mut list = String::new();
    for word in split(allowed, " ") {
        list.push_str(" `");
        list.push_str(word);
        list.push_str("`");
    }
    list
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
            ("https://gateway.ai.cloudflare.com/v1/a/g/groq", "groq"),
            ("https://gateway.ai.cloudflare.com/v1/a/g/grok/v1", "xai"),
            ("https://gateway.ai.cloudflare.com/v1/a/g/workers-ai/v1", "workers-ai"),
            ("https://gateway.ai.cloudflare.com/v1/a/g/compat", "openai-compatible"),
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
    fn a_server_can_be_named_wherever_it_is() {
        let named = |json: &str| server("https://example.com/v1", &Value::parse(json).unwrap());
        let (name, compat) = named(r#"{"server":"mistral"}"#).unwrap();
        assert_eq!((name, compat.tool_ids), ("mistral", ToolIds::Mistral));
        assert_eq!(named("{}").unwrap().0, "openai-compatible");
        assert!(named(r#"{"server":"olama"}"#).unwrap_err().contains("`ollama`"));
        for name in SERVERS.split(' ') {
            assert!(
                name == "openai-compatible" || name == "workers-ai" || of(name) != Compat::default(),
                "{name}"
            );
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
        let has = "strict reasoning toolIds store";
        let set = |json: &str| Compat::default().apply(&Value::parse(json).unwrap(), has);
        assert_eq!(set(r#"{"strict":true,"reasoning":"thinking","toolIds":"mistral"}"#), Ok(()));
        for other in ["stricct", "cacheTtl"] {
            let wrong = set(&format!(r#"{{"{other}":true}}"#)).unwrap_err();
            let names = "it has `strict` `reasoning` `toolIds` `store`";
            assert_eq!(wrong, format!("unknown `compat` switch `{other}` of this wire; {names}"));
        }
        assert_eq!(set("null"), Ok(()));
        assert_eq!(set(r#"{"store":1}"#), Err("`compat.store` must be a boolean, got a number".into()));
        let wrong = set(r#"{"toolIds":"long"}"#).unwrap_err();
        assert_eq!(wrong, "`compat.toolIds` must be one of `any` `short` `mistral`");
    }
}
