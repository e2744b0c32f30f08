//! Whether and when to retry a failed model call. There is no clock, timer or source of randomness here:
//! the caller passes all three in.

mod dates;
mod delay;

pub use dates::{parse_date, parse_rfc3339};
pub use delay::{DelaySource, RequestedDelay, delay_from_headers, delay_from_rate_limits, delay_in_text};

use crate::rules::policy::RunInfo;
use crate::words::error::{ErrorInfo, ErrorKind};

/// What to do after a failed model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryVerdict {
    /// Call again after this many milliseconds.
    Wait(u64),
    /// Do not call again; fall back to another model or fail.
    Stop,
    /// The server asks for a longer delay (in milliseconds) than is allowed. An earlier call would be
    /// refused, so fall back or fail, and name the delay in the error.
    StopNaming(u64),
}

/// Decides about failed model calls. Called once per failed attempt; must be pure.
pub trait RetryStrategy {
    /// Returns what to do. `attempt` is the number of the failed attempt, counted from 1. `random` is a
    /// random number over the full range of `u32`, for jitter.
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict;

    /// The same, with whose run it is. This is what is called; by default it forgets that.
    fn delay_in(&self, _: &RunInfo<'_>, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        self.delay(error, attempt, random)
    }
}

/// The stock [`RetryStrategy`]: exponential backoff with jitter, or the delay that the server asked for.
///
/// ```
/// use turnwheel::error::{ErrorInfo, ErrorKind};
/// use turnwheel::retry::{RetryConfig, RetryStrategy, RetryVerdict};
///
/// let retry = RetryConfig { jitter: false, ..RetryConfig::default() };
/// let mut busy = ErrorInfo::new(ErrorKind::Overloaded, "busy");
/// assert_eq!(retry.delay(&busy, 1, 0), RetryVerdict::Wait(1_000));
/// assert_eq!(retry.delay(&busy, 2, 0), RetryVerdict::Wait(2_000));
/// assert_eq!(retry.delay(&busy, 3, 0), RetryVerdict::Stop);
///
/// busy.retry_after_ms = Some(120_000);
/// assert_eq!(retry.delay(&busy, 1, 0), RetryVerdict::StopNaming(120_000));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RetryConfig {
    /// The maximum number of calls, including the first. 0 and 1 mean no retry.
    pub max_attempts: u32,
    /// The backoff after the first failed call, in milliseconds.
    pub initial_backoff_ms: u64,
    /// The maximum backoff, in milliseconds, before jitter.
    pub max_backoff_ms: u64,
    /// The factor from each backoff to the next.
    pub multiplier: f64,
    /// Whether to multiply each backoff by a random factor in [0.5, 1.5), so that clients do not all return
    /// at once.
    pub jitter: bool,
    /// Whether to retry errors of an unknown kind.
    pub retry_unknown: bool,
    /// The longest delay that a server may ask for, in milliseconds. If it asks for more, there is no
    /// retry.
    pub max_retry_delay_ms: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        RetryConfig {
            max_attempts: 3,
            initial_backoff_ms: 1_000,
            max_backoff_ms: 60_000,
            multiplier: 2.0,
            jitter: true,
            retry_unknown: false,
            max_retry_delay_ms: 60_000,
        }
    }
}

impl RetryStrategy for RetryConfig {
    fn delay(&self, error: &ErrorInfo, attempt: u32, random: u32) -> RetryVerdict {
        if attempt >= self.max_attempts || !self.is_retryable(error) {
            return RetryVerdict::Stop;
        }
        // Jitter would only make the server's own delay too short, or longer than necessary.
        match error.retry_after_ms {
            Some(asked) if asked > self.max_retry_delay_ms => RetryVerdict::StopNaming(asked),
            Some(asked) => RetryVerdict::Wait(asked),
            None if self.jitter => RetryVerdict::Wait(jittered(self.backoff_ms(attempt), random)),
            None => RetryVerdict::Wait(self.backoff_ms(attempt)),
        }
    }
}

impl RetryConfig {
    /// Returns the backoff after failed attempt `attempt` (counted from 1), in whole milliseconds, without
    /// jitter: `initial x multiplier^(attempt - 1)`, at most `max`. An invalid multiplier (NaN, or one that
    /// gives a negative delay) counts as 1.
    pub fn backoff_ms(&self, attempt: u32) -> u64 {
        let first = self.initial_backoff_ms.min(self.max_backoff_ms);
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        if exponent == 0 {
            return first;
        }
        let grown = to_float(self.initial_backoff_ms) * self.multiplier.powi(exponent);
        // Also of a negative delay that is too small for a number nothing is left but its sign.
        if grown.is_nan() || grown.is_sign_negative() {
            return first;
        }
        to_whole(grown).min(self.max_backoff_ms)
    }

    fn is_retryable(&self, error: &ErrorInfo) -> bool {
        match error.code {
            // Handled elsewhere: by overflow recovery, or by ending the run.
            ErrorKind::ContextOverflow | ErrorKind::Aborted => false,
            ErrorKind::Unknown => error.retryable || self.retry_unknown,
            // The adapter has the last word: an exhausted quota is throttled, but not retryable.
            _ => error.retryable,
        }
    }
}

/// Returns the delay times a factor in [0.5, 1.5), which `random` determines over the full range of `u32`.
pub fn jittered(delay_ms: u64, random: u32) -> u64 {
    let share = (u128::from(delay_ms) * u128::from(random)) >> 32;
    (delay_ms / 2).saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
}

/// `f64` does not implement `From<u64>`. Above 2^53 the low bits are lost, which makes no difference to a
/// delay.
fn to_float(whole: u64) -> f64 {
    whole as f64
}

/// Truncates and saturates; `TryFrom<f64>` does not exist.
fn to_whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(error: &ErrorInfo, attempt: u32) -> RetryVerdict {
        RetryConfig { jitter: false, ..RetryConfig::default() }.delay(error, attempt, 0)
    }

    #[test]
    fn transient_errors_are_tried_three_times_in_all() {
        let error = ErrorInfo::new(ErrorKind::Network, "cut");
        assert_eq!(verdict(&error, 1), RetryVerdict::Wait(1_000));
        assert_eq!(verdict(&error, 2), RetryVerdict::Wait(2_000));
        assert_eq!(verdict(&error, 3), RetryVerdict::Stop);
    }

    #[test]
    fn permanent_errors_and_a_spent_quota_are_not_tried_again() {
        for kind in
            [ErrorKind::Auth, ErrorKind::InvalidRequest, ErrorKind::ContextOverflow, ErrorKind::Unknown]
        {
            assert_eq!(verdict(&ErrorInfo::new(kind, "no"), 1), RetryVerdict::Stop);
        }
        let mut quota = ErrorInfo::new(ErrorKind::Throttled, "quota");
        quota.retryable = false;
        assert_eq!(verdict(&quota, 1), RetryVerdict::Stop);
    }

    #[test]
    fn an_unknown_error_is_tried_again_where_the_host_says_so() {
        let config = RetryConfig { retry_unknown: true, jitter: false, ..RetryConfig::default() };
        assert_eq!(config.delay(&ErrorInfo::new(ErrorKind::Unknown, "?"), 1, 0), RetryVerdict::Wait(1_000));
        assert_eq!(config.delay(&ErrorInfo::new(ErrorKind::Auth, "?"), 1, 0), RetryVerdict::Stop);
    }

    #[test]
    fn the_servers_delay_replaces_back_off_and_is_never_cut_short() {
        let mut error = ErrorInfo::new(ErrorKind::Throttled, "slow down");
        error.retry_after_ms = Some(60_000);
        let config = RetryConfig::default();
        assert_eq!(config.delay(&error, 1, 0), RetryVerdict::Wait(60_000));
        error.retry_after_ms = Some(60_001);
        assert_eq!(config.delay(&error, 1, 0), RetryVerdict::StopNaming(60_001));
        assert_eq!(config.delay(&error, 3, 0), RetryVerdict::Stop);
    }

    #[test]
    fn jitter_stays_between_half_and_one_and_a_half() {
        assert_eq!(jittered(1_000, 0), 500);
        assert_eq!(jittered(1_000, 1 << 31), 1_000);
        assert_eq!(jittered(1_000, u32::MAX), 1_499);
        assert_eq!(jittered(u64::MAX, u32::MAX), u64::MAX);
        assert_eq!(jittered(0, u32::MAX), 0);
    }

    #[test]
    fn a_huge_attempt_does_not_overflow() {
        let config = RetryConfig::default();
        assert_eq!(config.backoff_ms(u32::MAX), 60_000);
        assert_eq!(config.backoff_ms(0), 1_000);
    }
}
