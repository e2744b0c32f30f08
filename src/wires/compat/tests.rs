use crate::data::json::Value;

use super::servers::{SERVERS, of};
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
        asks("http://127.0.0.1:37129/v1") && asks("http://localhost/v1") && asks("http://192.168.0.7:9/v1")
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
