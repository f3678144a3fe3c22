//! What all log lines of this crate have in common.

use seawall::GuardBuilder;

/// The maximum number of characters of a name in a line. A name from outside is short, but it may be refused for not being so.
#[cfg(feature = "tracing")]
const SHOWN_MAX: usize = 256;

/// The maximum number of characters of a cause. Its end says what the operating system said.
#[cfg(feature = "tracing")]
const SHOWN_CAUSE_MAX: usize = 800;

/// A name as it stands in a line: of bounded length and without line breaks.
#[cfg(feature = "tracing")]
pub(crate) fn shown(text: &str) -> String {
    shortened(text, SHOWN_MAX)
}

/// A cause as it stands in a line.
#[cfg(feature = "tracing")]
pub(crate) fn shown_cause(cause: &dyn std::fmt::Display) -> String {
    shortened(&cause.to_string(), SHOWN_CAUSE_MAX)
}

#[cfg(feature = "tracing")]
fn shortened(text: &str, chars_max: usize) -> String {
    let short: String = text.chars().take(chars_max).collect();
    let short = if short.len() < text.len() { short + "…" } else { short };
    if short.contains(char::is_control) { short.escape_default().to_string() } else { short }
}

/// Writes a line for each retry and when the circuit moves. The guard's own log would write several for every part of a file.
#[cfg(feature = "tracing")]
pub(crate) fn watch_guard(guard: GuardBuilder) -> GuardBuilder {
    use seawall::breaker::State;
    use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler, current_trace_id};
    let (sampler, clock) = (Sampler::new(LINES_PER_SECOND), seawall::Clock::system());
    guard
        .on_retry(move |event| {
            let Some(suppressed) = sampler.pass(clock.now()) else { return };
            tracing::warn!(target: "seawall", traceId = current_trace_id(), operation = event.operation,
                key = event.about.map(shown), attempt = event.attempt, delay = %Millis(event.wait), cause = %event.fault,
                suppressed, "[{}][Request] Retry triggered.", event.guard);
        })
        .on_transition(|event| match event.to {
            State::Open | State::ForcedOpen => {
                let cooldown = event.cooldown.map(|cooldown| tracing::field::display(Millis(cooldown)));
                tracing::error!(target: "seawall", cooldown, action = "QueueForRetry", "[{}][circuit] Open!", event.guard);
            }
            State::HalfOpen => tracing::warn!(target: "seawall", "[{}][circuit] Half-open.", event.guard),
            State::Closed => tracing::info!(target: "seawall", "[{}][circuit] Closed.", event.guard),
            _ => {}
        })
}

#[cfg(not(feature = "tracing"))]
pub(crate) fn watch_guard(guard: GuardBuilder) -> GuardBuilder {
    guard
}
