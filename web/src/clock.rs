//! The clock and the timers of the host.

use futures::future::LocalBoxFuture;
use gloo_timers::future::TimeoutFuture;
use turnwheel::ports::Timer;

/// A timer with a longer delay fires at once, in every browser and in Node.
const LONGEST_MS: u32 = i32::MAX.cast_unsigned();

/// `Date.now` and `setTimeout`, as the loop's [`Timer`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Timer for Clock {
    fn now(&self) -> u64 {
        now()
    }

    fn sleep(&self, ms: u64) -> LocalBoxFuture<'static, ()> {
        let until = now().saturating_add(ms);
        Box::pin(async move {
            // Timers may fire a little early, and long delays need several.
            while let left @ 1.. = until.saturating_sub(now()) {
                TimeoutFuture::new(u32::try_from(left).unwrap_or(LONGEST_MS).min(LONGEST_MS)).await;
            }
        })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "milliseconds since 1970")]
fn now() -> u64 {
    js_sys::Date::now() as u64
}
