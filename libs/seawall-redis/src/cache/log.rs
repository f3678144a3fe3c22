//! The log lines of the cache: `[Cache-Adapter][Get] Cache miss. key=…`.

#[cfg(feature = "tracing")]
use std::borrow::Cow;
use std::fmt::Display;

use seawall::GuardBuilder;
#[cfg(feature = "tracing")]
use seawall::{
    Clock,
    breaker::State,
    telemetry::{Millis, Sampler, current_trace_id},
};
#[cfg(feature = "tracing")]
use tracing::{Level, debug, enabled, error, info, warn};

/// The default number of lines per second of each kind.
pub const LINES_PER_SECOND: u32 = 100;

/// The maximum number of characters of a key in a line. A key from outside may be as long as somebody wants.
#[cfg(feature = "tracing")]
const SHOWN_KEY_MAX: usize = 64;
/// The maximum number of characters of a cause in a line.
#[cfg(feature = "tracing")]
const SHOWN_CAUSE_MAX: usize = 300;

/// The kinds of lines, each with its own allowance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    GetInvalid,
    GetUndecodable,
    GetConnection,
    GetTimeout,
    GetUnexpected,
    GetFallback,
    PutInvalid,
    PutEncoding,
    PutConnection,
    PutUnexpected,
    PutFallback,
    DeleteFailed,
}

/// The log of one cache.
#[derive(Debug)]
pub(super) struct CacheLog {
    #[cfg(feature = "tracing")]
    clock: Clock,
    #[cfg(feature = "tracing")]
    samplers: [Sampler; Line::DeleteFailed as usize + 1],
}

/// A key or a cause as it stands in a line: of bounded length and without line breaks.
#[cfg(feature = "tracing")]
fn shown(text: &str, max: usize) -> Cow<'_, str> {
    let plain = |text: &str| !text.contains(char::is_control);
    match text.char_indices().nth(max) {
        None if plain(text) => Cow::Borrowed(text),
        None => Cow::Owned(text.escape_default().to_string()),
        Some((end, _)) => {
            let (start, chars) = (&text[..end], text.chars().count());
            let start =
                if plain(start) { Cow::Borrowed(start) } else { start.escape_default().to_string().into() };
            Cow::Owned(format!("{start}… ({chars} characters)"))
        }
    }
}

#[cfg(feature = "tracing")]
impl Line {
    fn text(self) -> &'static str {
        match self {
            Line::GetInvalid => "[Cache-Adapter][Get] Invalid key format!",
            Line::GetUndecodable => "[Cache-Adapter][Get] Deserialization failed, treating as miss.",
            Line::GetConnection => "[Cache-Adapter][Get] Connection failed, cache unavailable.",
            Line::GetTimeout => "[Cache-Adapter][Get] Query timeout.",
            Line::GetUnexpected => "[Cache-Adapter][Get] Unexpected error, degrading gracefully.",
            Line::GetFallback => "[Cache-Adapter][Fallback] Get fallback triggered.",
            Line::PutInvalid => "[Cache-Adapter][Put] Invalid request!",
            Line::PutEncoding => "[Cache-Adapter][Put] Serialization failed!",
            Line::PutConnection => "[Cache-Adapter][Put] Connection failed, cache put skipped.",
            Line::PutUnexpected => "[Cache-Adapter][Put] Unexpected error, cache write skipped.",
            Line::PutFallback => "[Cache-Adapter][Fallback] Put fallback triggered.",
            Line::DeleteFailed => "[Cache-Adapter][Delete] Failed, cache invalidation skipped.",
        }
    }

    /// Whether the program has a mistake. All else is an outage, which passes.
    fn is_mistake(self) -> bool {
        matches!(self, Line::GetInvalid | Line::PutInvalid | Line::PutEncoding)
    }

    /// What is done instead, in lines about a fallback.
    fn action(self) -> Option<&'static str> {
        match self {
            Line::GetFallback => Some("QueryDB"),
            Line::PutFallback => Some("SkipCache"),
            _ => None,
        }
    }
}

/// Writes a line about a key.
#[cfg(feature = "tracing")]
macro_rules! line {
    ($write:ident, $key:expr, $($fields_and_text:tt)+) => {
        $write!(target: "seawall", traceId = current_trace_id(), key = &*shown($key, SHOWN_KEY_MAX), $($fields_and_text)+)
    };
}

#[cfg(feature = "tracing")]
impl CacheLog {
    pub(super) fn new(lines_per_second: u32) -> Self {
        CacheLog { clock: Clock::system(), samplers: std::array::from_fn(|_| Sampler::new(lines_per_second)) }
    }

    pub(super) fn lookup(&self, key: &str) {
        line!(debug, key, "[Cache-Adapter][Get] Lookup.");
    }

    pub(super) fn hit(&self, key: &str) {
        line!(debug, key, "[Cache-Adapter][Get] Cache hit.");
    }

    pub(super) fn miss(&self, key: &str) {
        line!(debug, key, "[Cache-Adapter][Get] Cache miss.");
    }

    pub(super) fn put_start(&self, key: &str, ttl: std::time::Duration) {
        line!(debug, key, ttl = %Millis(ttl), "[Cache-Adapter][Put] Start.");
    }

    pub(super) fn put_success(&self, key: &str) {
        line!(debug, key, "[Cache-Adapter][Put] Success.");
    }

    pub(super) fn delete_success(&self, key: &str) {
        line!(debug, key, "[Cache-Adapter][Delete] Success.");
    }

    /// Writes what went wrong, if the sampler lets the line pass.
    pub(super) fn failed(&self, line: Line, key: &str, cause: &dyn Display) {
        let (text, action) = (line.text(), line.action());
        let is_heard = if line.is_mistake() {
            enabled!(target: "seawall", Level::ERROR)
        } else {
            enabled!(target: "seawall", Level::WARN)
        };
        let sampler = &self.samplers[line as usize];
        let Some(suppressed) = is_heard.then(|| sampler.pass(self.clock.now())).flatten() else { return };
        let cause = cause.to_string();
        let cause = Some(&*shown(&cause, SHOWN_CAUSE_MAX));
        let (cause, trigger) = if action.is_some() { (None, cause) } else { (cause, None) };
        if line.is_mistake() {
            line!(error, key, cause, suppressed, "{text}");
        } else {
            line!(warn, key, action, cause, triggerCause = trigger, suppressed, "{text}");
        }
    }
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "there are lines with the feature `tracing`")]
impl CacheLog {
    pub(super) fn new(_: u32) -> Self {
        CacheLog {}
    }

    pub(super) fn lookup(&self, _: &str) {}

    pub(super) fn hit(&self, _: &str) {}

    pub(super) fn miss(&self, _: &str) {}

    pub(super) fn put_start(&self, _: &str, _: std::time::Duration) {}

    pub(super) fn put_success(&self, _: &str) {}

    pub(super) fn delete_success(&self, _: &str) {}

    pub(super) fn failed(&self, _: Line, _: &str, _: &dyn Display) {}
}

/// Writes a line when the circuit of a guard moves. The guard's own log would write a line for every lookup.
#[cfg(feature = "tracing")]
pub(super) fn log_transitions(guard: GuardBuilder) -> GuardBuilder {
    guard.on_transition(|event| match event.to {
        State::Open | State::ForcedOpen => {
            let cooldown = event.cooldown.map(|cooldown| tracing::field::display(Millis(cooldown)));
            error!(target: "seawall", cooldown, action = "QueryDB", "[{}][circuit] Open!", event.guard);
        }
        State::HalfOpen => warn!(target: "seawall", "[{}][circuit] Half-open.", event.guard),
        State::Closed => info!(target: "seawall", "[{}][circuit] Closed.", event.guard),
        _ => {}
    })
}

#[cfg(not(feature = "tracing"))]
pub(super) fn log_transitions(guard: GuardBuilder) -> GuardBuilder {
    guard
}

/// Writes that the subscription to deletions stands.
pub(super) fn subscribed(channel: &str) {
    #[cfg(feature = "tracing")]
    info!(target: "seawall", channel, "[Cache-Listener][Subscribe] Success.");
    #[cfg(not(feature = "tracing"))]
    let _ = channel;
}

/// Writes that the subscription to deletions was lost or refused, and when the next attempt is made.
pub(super) fn unsubscribed(channel: &str, wait: std::time::Duration, cause: &dyn Display) {
    #[cfg(feature = "tracing")]
    warn!(target: "seawall", channel, wait = %Millis(wait), cause = &*shown(&cause.to_string(), SHOWN_CAUSE_MAX), "[Cache-Listener][Subscribe] Retry triggered.");
    #[cfg(not(feature = "tracing"))]
    let _ = (channel, wait, cause);
}

#[cfg(all(test, feature = "tracing"))]
mod tests {
    use super::*;

    /// OBS-1: a key from outside neither fills the log nor forges a line of it.
    #[test]
    fn obs_1_keys_in_lines_are_short_and_in_one_line() {
        assert_eq!(shown("goods:7", 64), "goods:7");
        assert_eq!(shown("a\nb", 64), "a\\nb");
        assert_eq!(shown(&"k".repeat(600), 4), "kkkk… (600 characters)");
        assert_eq!(shown("ab\ncd", 3), "ab\\n… (5 characters)");
    }
}
