//! How long a server asks to wait, read from headers, from the text of an error, and from dates of several
//! formats.
//!
//! In order of precedence: [`delay_from_headers`], then a delay in the body, then [`delay_in_text`], then
//! [`delay_from_rate_limits`]. Use them only on errors: some servers also send `retry-after` with
//! successful answers.

use super::dates::{parse_date, parse_rfc3339};
use crate::data::text::{parse_u64, replace, split, split_while};

/// Where a delay was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelaySource {
    /// The `retry-after-ms` header.
    RetryAfterMs,
    /// The `retry-after` header, with seconds or a date.
    RetryAfter,
}

/// A delay that a server asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedDelay {
    /// The delay in milliseconds.
    pub delay_ms: u64,
    /// The header it came from.
    pub source: DelaySource,
}

/// Returns the delay in `retry-after-ms` or `retry-after`. `header` looks up a header by its lower-case
/// name, regardless of the case it was sent in; `now_ms` is the time since 1970, needed for dates. A date
/// in the past gives 0. A `retry-after-ms` of zero next to a longer `retry-after` is ignored.
pub fn delay_from_headers(header: &dyn Fn(&str) -> Option<String>, now_ms: u64) -> Option<RequestedDelay> {
    let in_ms: Option<u64> = header("retry-after-ms").and_then(|value| unsigned(value.trim()));
    let in_seconds = header("retry-after").and_then(|value| seconds_or_date(value.trim(), now_ms));
    match (in_ms, in_seconds) {
        (Some(0), Some(delay_ms @ 1..)) | (None, Some(delay_ms)) => {
            Some(RequestedDelay { delay_ms, source: DelaySource::RetryAfter })
        }
        (Some(delay_ms), _) => Some(RequestedDelay { delay_ms, source: DelaySource::RetryAfterMs }),
        (None, None) => None,
    }
}

/// Returns the longest reset among the exhausted rate limits: `x-ratelimit-reset-requests` and `-tokens`
/// ("6m0s"), `anthropic-ratelimit-…-reset` (RFC 3339). A limit is exhausted if its `remaining` is 0.
/// `header` works as in [`delay_from_headers`].
pub fn delay_from_rate_limits(header: &dyn Fn(&str) -> Option<String>, now_ms: u64) -> Option<u64> {
    let reset_of = |limit: &str| {
        let limit_header = |word: &str| header(&replace(limit, "#", word));
        if limit_header("remaining")?.trim() != "0" {
            return None;
        }
        let reset = limit_header("reset")?;
        if limit.starts_with("x-") {
            duration(reset.trim())
        } else {
            parse_rfc3339(reset.trim()).map(|at| until(at, now_ms))
        }
    };
    split(RATE_LIMITS, " ").filter_map(reset_of).max()
}

/// Returns the delay in the text of an error ("Please try again in 1.5s", "retry after 20 seconds", "wait 1
/// minute"), or in a text that is nothing but a duration ("48s", "6m0s", "250ms"). A unit is required. In
/// milliseconds, rounded up.
pub fn delay_in_text(text: &str) -> Option<u64> {
    if let Some(delay) = duration(text.trim()) {
        return Some(delay);
    }
    let lower = text.to_ascii_lowercase();
    // The first match in the text wins, whichever phrase it is.
    (0..lower.len()).find_map(|at| {
        let rest = lower.get(at..)?;
        let mut rest = ["again", "retry", "wait"].iter().find_map(|word| rest.strip_prefix(word))?;
        for filler in ["in", "after", "for", "at least", "another"] {
            rest = split_while(rest, |byte| b" :-".contains(&byte)).1;
            rest = rest.strip_prefix(filler).unwrap_or(rest);
        }
        Some(leading_duration(split_while(rest, |byte| b" :".contains(&byte)).1)?.0)
    })
}

/// The rate-limit headers; `#` stands for `remaining` or `reset`.
const RATE_LIMITS: &str = "\
    x-ratelimit-#-requests x-ratelimit-#-tokens anthropic-ratelimit-requests-# anthropic-ratelimit-tokens-# \
    anthropic-ratelimit-input-tokens-# anthropic-ratelimit-output-tokens-#";

/// The words for each unit, from the shortest to the longest unit, and the units in milliseconds.
const UNITS: &str = "\
    ms millisecond milliseconds|s sec secs second seconds|m min mins minute minutes|h hr hrs hour hours|d day days";
const UNITS_IN_MS: [u64; 5] = [1, 1_000, 60_000, 3_600_000, 86_400_000];

fn seconds_or_date(value: &str, now_ms: u64) -> Option<u64> {
    if let Some(seconds) = unsigned(value) {
        return Some(seconds.saturating_mul(1_000));
    }
    if let Some((delay, "")) = decimal_times(value, 1_000) {
        return Some(delay);
    }
    parse_date(value).map(|at| until(at, now_ms))
}

/// Parses a whole number, optionally with a plus sign.
fn unsigned(value: &str) -> Option<u64> {
    parse_u64(value.strip_prefix("+").unwrap_or(value))
}

/// Returns the time from now until `at_ms`; 0 if it has passed.
fn until(at_ms: i64, now_ms: u64) -> u64 {
    u64::try_from(at_ms).unwrap_or(0).saturating_sub(now_ms)
}

/// Parses a text that is a duration and nothing else.
fn duration(text: &str) -> Option<u64> {
    let (delay, rest) = leading_duration(text)?;
    if rest.is_empty() { Some(delay) } else { None }
}

/// Returns the duration at the start of a text, such as `1m30s`, and the rest of the text.
fn leading_duration(text: &str) -> Option<(u64, &str)> {
    let (mut total, mut rest) = leading_unit(text)?;
    while let Some((more, after)) = leading_unit(rest.trim_start()) {
        total = total.saturating_add(more);
        rest = after;
    }
    Some((total, rest))
}

fn leading_unit(text: &str) -> Option<(u64, &str)> {
    let (number, rest) = split_while(text, |byte| byte.is_ascii_digit() || byte == b'.');
    let (unit, after) = split_while(rest.trim_start(), |byte| byte.is_ascii_alphabetic());
    let at = split(UNITS, "|").position(|names| position(names, unit).is_some())?;
    let (delay, rest) = decimal_times(number, *UNITS_IN_MS.get(at)?)?;
    if rest.is_empty() { Some((delay, after)) } else { None }
}

/// Returns a decimal number such as `1.5` times a whole number, rounded up, and the rest of the text.
fn decimal_times(text: &str, factor: u64) -> Option<(u64, &str)> {
    let (number, mut rest) = split_while(text, |byte| byte.is_ascii_digit());
    let mut total = parse_u64(number)?.saturating_mul(factor);
    if let Some(fraction) = rest.strip_prefix(".") {
        let (digits, after) = split_while(fraction, |byte| byte.is_ascii_digit());
        let (mut share, mut scale, mut lost) = (0_u64, 1_u64, false);
        for (at, digit) in digits.bytes().enumerate() {
            if at < 9 {
                share = share * 10 + u64::from(digit - b'0');
                scale *= 10;
            } else {
                lost |= digit != b'0';
            }
        }
        // Less than 10^9 times the milliseconds in a day, so this cannot overflow.
        let exact = share.saturating_mul(factor);
        let up = u64::from(lost && exact.is_multiple_of(scale));
        total = total.saturating_add(exact.div_ceil(scale) + up);
        rest = after;
    }
    Some((total, rest))
}

pub(super) fn position(names: &str, name: &str) -> Option<i64> {
    let at = split(names, " ").position(|known| known.eq_ignore_ascii_case(name))?;
    i64::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_found_in_the_words_of_providers() {
        let texts = [
            ("Rate limit reached. Please try again in 1.5s. Visit …", Some(1_500)),
            ("Please retry in 48.912345678s.", Some(48_913)),
            ("Please try again in 6m0s.", Some(360_000)),
            ("try again in 250ms", Some(250)),
            ("Please retry after 20 seconds", Some(20_000)),
            ("please wait 1 minute and try again", Some(60_000)),
            ("Try again in: 2h 30m", Some(9_000_000)),
            ("48s", Some(48_000)),
            ("1m30s", Some(90_000)),
            ("0.0001ms", Some(1)),
            ("try again later", None),
            ("try again in 20", None),
            ("20 seconds have passed", None),
            ("retry in 1.5.2s", None),
            ("wait 5 moons", None),
            ("", None),
        ];
        for (text, delay) in texts {
            assert_eq!(delay_in_text(text), delay, "{text}");
        }
    }

    #[test]
    fn the_first_delay_in_a_text_wins() {
        assert_eq!(delay_in_text("wait 2s, then try again in 9s"), Some(2_000));
        assert_eq!(delay_in_text("try again in 9s, or wait 2s"), Some(9_000));
    }

    fn lookup<'a>(headers: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |wanted| headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn zero_milliseconds_beside_a_longer_delay_are_not_believed() {
        let both = lookup(&[("retry-after-ms", "0"), ("retry-after", "1")]);
        assert_eq!(delay_from_headers(&both, 0).map(|delay| delay.delay_ms), Some(1_000));
        let alone = lookup(&[("retry-after-ms", "0")]);
        assert_eq!(delay_from_headers(&alone, 0).map(|delay| delay.delay_ms), Some(0));
    }

    #[test]
    fn only_a_limit_that_is_used_up_says_how_long_to_wait() {
        let now = u64::try_from(parse_date("02 Jan 2026 03:04:05 GMT").unwrap()).unwrap();
        let headers = [
            ("x-ratelimit-remaining-requests", "7"),
            ("x-ratelimit-reset-requests", "1h"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("anthropic-ratelimit-requests-remaining", "0"),
            ("anthropic-ratelimit-requests-reset", "2026-01-02T04:11:05+01:00"),
        ];
        assert_eq!(delay_from_rate_limits(&lookup(&headers), now), Some(420_000));
        assert_eq!(delay_from_rate_limits(&lookup(&headers[..4]), now), Some(360_000));
        assert_eq!(delay_from_rate_limits(&lookup(&headers[..2]), now), None);
    }
}
