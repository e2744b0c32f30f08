//! The servers that are known, by their address or by name.

use crate::data::json::Value;
use crate::data::text::{contains, rsplit_once, split, split_once, split_while};

use super::switches::word;
use super::{Compat, ReasoningStyle, Replay, Strict, ToolIds};

/// Returns the provider's name and its switches: those of the server named by hand, or those known from the
/// address.
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
pub(super) const SERVERS: &str = "\
    openai azure openrouter groq mistral deepseek xai together moonshot zai minimax alibaba workers-ai ollama \
    llama.cpp lmstudio vllm openai-compatible";

/// Host name suffixes, and the server behind each.
const HOSTS: &str = "\
    openai.com=openai openai.azure.com=azure ai.azure.com=azure cognitiveservices.azure.com=azure \
    openrouter.ai=openrouter groq.com=groq mistral.ai=mistral deepseek.com=deepseek x.ai=xai \
    together.xyz=together together.ai=together moonshot.ai=moonshot moonshot.cn=moonshot z.ai=zai \
    bigmodel.cn=zai minimax.io=minimax minimaxi.com=minimax aliyuncs.com=alibaba ollama.com=ollama";

/// Returns the provider's name and its switches, as known from the address of the server.
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
        // `/v1/ACCOUNT/GATEWAY/PROVIDER`: the switches are those of the server behind the gateway.
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

pub(super) fn of(name: &str) -> Compat {
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

/// Returns the host, the port and the path of an address.
fn address(url: &str) -> (&str, &str, &str) {
    let rest = split_once(url, "://").map_or(url, |(_, rest)| rest);
    let (authority, path) = split_while(rest, |byte| !b"/?".contains(&byte));
    let authority = rsplit_once(authority, b'@').map_or(authority, |(_, host)| host);
    match rsplit_once(authority, b':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port, path),
        _ => (authority, "", path),
    }
}
