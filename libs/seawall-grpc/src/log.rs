//! The log lines of calls: `[Grpc-Client][Call] Retry triggered. …`, at most so many of each kind in a second.

use std::error::Error as StdError;
use std::time::Duration;

use tonic::Code;

#[cfg(feature = "tracing")]
use crate::{fault::is_alarming, span::name};
#[cfg(feature = "tracing")]
use seawall::{
    Clock,
    telemetry::{Millis, Sampler, current_trace_id},
};
#[cfg(feature = "tracing")]
use tracing::{debug, error, field::display, warn};

/// The default number of lines per second of each kind: an outage shows at once, and does not fill a disk.
pub const LINES_PER_SECOND: u32 = 100;

/// The maximum number of characters of a cause in a line. A server may write as much as it wants.
#[cfg(feature = "tracing")]
const SHOWN_CAUSE_MAX: usize = 300;

/// What a line says.
#[cfg_attr(
    not(feature = "tracing"),
    expect(dead_code, reason = "lines are written with the feature `tracing`")
)]
#[derive(Debug)]
pub(crate) enum Line<'a> {
    Retry {
        method: &'a str,
        attempt: u32,
        wait: Duration,
        code: Code,
    },
    Resend {
        method: &'a str,
        wait: Duration,
        code: Code,
    },
    Hedge {
        method: &'a str,
        attempt: u32,
    },
    Throttled {
        method: &'a str,
        code: Option<Code>,
    },
    Outgrown {
        method: &'a str,
    },
    Failed {
        method: &'a str,
        code: Code,
        attempts: u32,
        duration: Duration,
        cause: Option<&'a (dyn StdError + 'static)>,
    },
}

/// The log of one channel.
#[derive(Debug)]
pub(crate) struct ChannelLog {
    #[cfg(feature = "tracing")]
    server: String,
    #[cfg(feature = "tracing")]
    clock: Clock,
    /// One for each kind of line.
    #[cfg(feature = "tracing")]
    samplers: [Sampler; 6],
}

#[cfg(feature = "tracing")]
impl ChannelLog {
    pub(crate) fn new(server: &str, per_second: u32) -> Self {
        let samplers = std::array::from_fn(|_| Sampler::new(per_second));
        ChannelLog { server: server.to_owned(), clock: Clock::default(), samplers }
    }

    pub(crate) fn write(&self, line: &Line<'_>) {
        let sampler = match line {
            Line::Retry { .. } => 0,
            Line::Resend { .. } => 1,
            Line::Hedge { .. } => 2,
            Line::Throttled { .. } => 3,
            Line::Outgrown { .. } => 4,
            Line::Failed { .. } => 5,
        };
        let Some(suppressed) = self.samplers[sampler].pass(self.clock.now()) else { return };
        let (server, trace) = (self.server.as_str(), current_trace_id());
        match *line {
            Line::Retry { method, attempt, wait, code } => {
                let wait = display(Millis(wait));
                warn!(target: "seawall", traceId = trace, server, method, attempt, wait, cause = name(code), suppressed, "[Grpc-Client][Call] Retry triggered.");
            }
            Line::Resend { method, wait, code } => {
                let wait = display(Millis(wait));
                warn!(target: "seawall", traceId = trace, server, method, wait, cause = name(code), suppressed, "[Grpc-Client][Call] Not seen by the server, sending it again.");
            }
            Line::Hedge { method, attempt } => {
                debug!(target: "seawall", traceId = trace, server, method, attempt, suppressed, "[Grpc-Client][Call] Hedge sent.");
            }
            Line::Throttled { method, code } => {
                let cause = code.map(name);
                warn!(target: "seawall", traceId = trace, server, method, cause, suppressed, "[Grpc-Client][Call] Retries throttled.");
            }
            Line::Outgrown { method } => {
                debug!(target: "seawall", traceId = trace, server, method, suppressed, "[Grpc-Client][Call] Request too large to be sent again.");
            }
            Line::Failed { method, code, attempts, duration, cause } => {
                let (duration, status) = (display(Millis(duration)), name(code));
                let cause = cause.map(|cause| display(shown(&cause.to_string())));
                if is_alarming(code) {
                    error!(target: "seawall", traceId = trace, server, method, code = status, attempts, duration, cause, suppressed, "[Grpc-Client][Call] Failed!");
                } else {
                    warn!(target: "seawall", traceId = trace, server, method, code = status, attempts, duration, cause, suppressed, "[Grpc-Client][Call] Failed!");
                }
            }
        }
    }
}

/// A cause as it stands in a line: of bounded length and without line breaks.
#[cfg(feature = "tracing")]
fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CAUSE_MAX).flat_map(char::escape_debug).collect()
}

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "there are lines with the feature `tracing`")]
impl ChannelLog {
    pub(crate) fn new(_: &str, _: u32) -> Self {
        ChannelLog {}
    }

    pub(crate) fn write(&self, _: &Line<'_>) {}
}
