use turnwheel::json::Value;
use turnwheel::retry::{DelaySource, RequestedDelay, RetryConfig, delay_from_headers, parse_rfc3339};

use super::{Case, Player, object, same, text_of};

pub(super) const PLAYER: Player = Player { set: "retry", play, meets: same, meets_recommendation };

fn play(input: &Value) -> Result<Value, String> {
    match text_of(input, "op")? {
        "headers" => Ok(requested(input)?.map_or(Value::Null, shown)),
        "backoff" => Ok(object([("delay_ms", backoff(input)?.into())])),
        "resolve" => Ok(match requested(input)? {
            Some(delay) => shown(delay),
            None => object([("delay_ms", backoff(input)?.into()), ("source", "exponential_backoff".into())]),
        }),
        other => Err(format!("unknown op `{other}`")),
    }
}

fn requested(input: &Value) -> Result<Option<RequestedDelay>, String> {
    let now = parse_rfc3339(text_of(input, "now")?).ok_or("`now` is no date")?;
    let headers = input.get("headers").and_then(Value::as_object);
    let header = |wanted: &str| {
        let mut headers = headers?.iter();
        let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        value.as_str().map(str::to_owned)
    };
    Ok(delay_from_headers(&header, u64::try_from(now).unwrap_or(0)))
}

fn backoff(input: &Value) -> Result<u64, String> {
    let config = input.get("config").ok_or("no `config`")?;
    let number = |key: &str, default: u64| config.get(key).and_then(Value::as_u64).unwrap_or(default);
    let multiplier = match config.get("multiplier") {
        Some(Value::Number(number)) => number.as_str(),
        Some(Value::String(word)) => word,
        _ => "2",
    };
    let config = RetryConfig {
        max_attempts: u32::try_from(number("max_attempts", 3)).unwrap_or(u32::MAX),
        initial_backoff_ms: number("initial_backoff_ms", 2_000),
        max_backoff_ms: number("max_backoff_ms", 30_000),
        multiplier: multiplier.parse().map_err(|_| format!("`{multiplier}` is no number"))?,
        jitter: false,
        ..RetryConfig::default()
    };
    let attempt = input.get("attempt").and_then(Value::as_u64).ok_or("no `attempt`")?;
    Ok(config.backoff_ms(u32::try_from(attempt).unwrap_or(u32::MAX)))
}

fn shown(delay: RequestedDelay) -> Value {
    let source = match delay.source {
        DelaySource::RetryAfterMs => "retry_after_ms_header",
        DelaySource::RetryAfter => "retry_after_header",
    };
    object([("delay_ms", delay.delay_ms.into()), ("source", source.into())])
}

/// The one recommendation that differs from the observed behaviour: decimal seconds,
/// rounded up to milliseconds.
fn meets_recommendation(case: &Case<'_>, actual: &Value) -> bool {
    let headers = case.input.get("headers").and_then(Value::as_object);
    let mut values =
        headers.into_iter().flat_map(|headers| headers.iter()).filter_map(|(_, value)| value.as_str());
    let got = actual.get("delay_ms").and_then(Value::as_u64);
    case.recommended.is_some()
        && values.any(|value| match value.trim().parse::<f64>() {
            Ok(seconds) => got == Some((seconds * 1_000.0).ceil() as u64),
            Err(_) => false,
        })
}
