//! `[guard][operation] Status. key=value …`, through `tracing`.

use std::sync::Arc;

use tracing::{Level, enabled, error, info, warn};

use super::sampler::{Millis, OneLine, Sampler};
use super::trace::TraceIdSource;
use crate::clock::Clock;
use crate::error::Kind;
use crate::event::{EventKind, FallbackKind, Labels, Listener};
use crate::fault::{Class, Code, Fault, Grpc};

/// So many lines of each kind a guard writes in a second, if nothing else is said: enough to see what goes on, too few to
/// be the next thing that breaks in an outage.
pub const LINES_PER_SECOND: u32 = 100;

/// How a guard writes its log.
///
/// ```
/// use seawall::{Guard, telemetry::Log};
/// let payments = Guard::builder("payments").log(Log::default().lines_per_second(20)).build()?;
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Log {
    pub(super) lines_per_second: u32,
    pub(super) trace_ids: TraceIdSource,
    /// Of a family of guards, which is sampled as one.
    shared: Option<Arc<Samplers>>,
}

impl Default for Log {
    fn default() -> Self {
        Log { lines_per_second: LINES_PER_SECOND, trace_ids: TraceIdSource::default(), shared: None }
    }
}

impl Log {
    /// At most so many lines of each kind (started, succeeded, failed, failed and in need of a person, panicked,
    /// abandoned, retried, fallback) in a second. How many were left
    /// out stands in the next line that is written, as `suppressed`. The circuit's lines are always written.
    #[must_use]
    pub fn lines_per_second(mut self, lines: u32) -> Self {
        self.lines_per_second = lines;
        self
    }

    /// Where its lines find their `traceId`: `find` is asked for each line that is written, on the thread and in the span of
    /// the caller. An id that is not one word of letters, digits, `-`, `_`, `.` and `:` is left out.
    ///
    /// Without it, and where it has none, the id is the one that [`TraceIdLayer`](super::TraceIdLayer) has found in the
    /// fields of the current span (feature `tracing-subscriber`).
    ///
    /// ```
    /// use seawall::{Guard, telemetry::{Log, trace_id_of}};
    /// # thread_local!(static TRACEPARENT: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) });
    /// let find = || TRACEPARENT.with_borrow(|header| trace_id_of(header).map(str::to_owned));
    /// let payments = Guard::builder("payments").log(Log::default().trace_id(find)).build()?;
    /// # Ok::<(), seawall::ConfigError>(())
    /// ```
    #[must_use]
    pub fn trace_id(mut self, find: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.trace_ids = TraceIdSource::function(find);
        self
    }
}

impl Log {
    /// The same log for many guards: together they write as much as one.
    pub(super) fn shared(mut self) -> Self {
        self.shared = Some(Samplers::new(self.lines_per_second));
        self
    }
}

/// How much of each kind is written. What needs a person is apart from what does not: a storm of refusals must not hide
/// the one expired password.
#[derive(Debug)]
pub(super) struct Samplers {
    started: Sampler,
    succeeded: Sampler,
    failed: Sampler,
    alarming: Sampler,
    panicked: Sampler,
    abandoned: Sampler,
    retried: Sampler,
    fell_back: Sampler,
}

impl Samplers {
    fn new(lines_per_second: u32) -> Arc<Self> {
        let sampler = || Sampler::new(lines_per_second);
        Arc::new(Samplers {
            started: sampler(),
            succeeded: sampler(),
            failed: sampler(),
            alarming: sampler(),
            panicked: sampler(),
            abandoned: sampler(),
            retried: sampler(),
            fell_back: sampler(),
        })
    }
}

/// The log of one guard.
pub(super) struct GuardLog {
    guard: Box<str>,
    clock: Clock,
    samplers: Arc<Samplers>,
    trace_ids: TraceIdSource,
}

impl GuardLog {
    pub(super) fn new(log: &Log, guard: &str, clock: Clock) -> Self {
        let samplers = log.shared.clone().unwrap_or_else(|| Samplers::new(log.lines_per_second));
        let trace_ids = log.trace_ids.clone();
        GuardLog { guard: OneLine(guard).to_string().into(), clock, samplers, trace_ids }
    }

    fn sample(&self, sampler: &Sampler) -> Option<Option<u64>> {
        sampler.pass(self.clock.now())
    }
}

/// Writes one line at a level, if anybody listens at that level and the sampler lets it pass. The sampler is asked last,
/// so that a level that is off uses up nothing.
macro_rules! line {
    ($write:ident at $level:ident, $self:ident.$sampler:ident, $labels:ident, $status:literal $(, $($fields:tt)+)?) => {
        if enabled!(target: "seawall", Level::$level)
            && let Some(suppressed) = $self.sample(&$self.samplers.$sampler)
        {
            $write!(
                target: "seawall",
                traceId = $self.trace_ids.field(),
                key = some($labels.about),
                $($($fields)+,)?
                suppressed,
                "[{}][{}] {}", $self.guard, OneLine(some($labels.operation).unwrap_or("call")), $status
            );
        }
    };
}

/// Writes one line about the guard itself. There are few of these, and each is written.
macro_rules! of_guard {
    ($write:ident, $self:ident, $status:literal) => {
        $write!(target: "seawall", traceId = $self.trace_ids.field(), concat!("[{}]", $status), $self.guard)
    };
}

impl Listener for GuardLog {
    fn hear(&self, labels: Labels<'_>, what: EventKind) {
        match what {
            EventKind::Started => line!(info at INFO, self.started, labels, "Start."),
            EventKind::Succeeded { attempts, took } => {
                line!(info at INFO, self.succeeded, labels, "Success.", attempts, duration = %Millis(took));
            }
            EventKind::GivenUp { kind, by, attempts, fault, took } => {
                let duration = Millis(took);
                if needs_a_person(kind, fault) {
                    line!(error at ERROR, self.alarming, labels, "Failed!", attempts, %duration, policy = %by, cause = %fault);
                } else {
                    line!(warn at WARN, self.failed, labels, "Failed!", attempts, %duration, policy = %by, cause = %fault);
                }
            }
            EventKind::Retry { number, after, fault } => {
                let (attempt, wait) = (number, Millis(after));
                line!(warn at WARN, self.retried, labels, "Retry triggered.", attempt, %wait, cause = %fault);
            }
            EventKind::Fallback { fault, kind, dead_lettered } => {
                let (action, fallback) = (action_of(kind, dead_lettered), kind.name());
                line!(warn at WARN, self.fell_back, labels, "Fallback activated.", triggerCause = %fault, action, fallback);
            }
            EventKind::Panicked => line!(error at ERROR, self.panicked, labels, "Failed!", cause = "panic"),
            EventKind::Abandoned { took, panicked: false } => {
                let (duration, cause) = (Millis(took), "abandoned by its caller");
                line!(warn at WARN, self.abandoned, labels, "Failed!", %duration, cause);
            }
            EventKind::Opened { cooldown } => {
                let cooldown = cooldown.map(|cooldown| Millis(cooldown).to_string());
                error!(target: "seawall", traceId = self.trace_ids.field(), cooldown, "[{}][circuit] Open!", self.guard);
            }
            EventKind::HalfOpened => of_guard!(warn, self, "[circuit] Half-open."),
            EventKind::Closed => of_guard!(info, self, "[circuit] Closed."),
            EventKind::Bypassed => of_guard!(warn, self, "[circuit] Bypassed."),
            EventKind::Reconfigured => of_guard!(info, self, "[config] Changed."),
            // Attempts, timeouts, rejections and denials end in one of the lines above; the rest is for metrics.
            _ => {}
        }
    }
}

/// Whether somebody has to do something about it: the peer says that our own request is wrong or that data is lost, or
/// nobody knows what happened. What is retried, degraded or refused, and what a business fault answers, is expected to happen.
fn needs_a_person(kind: Kind, fault: Fault) -> bool {
    let named = match fault.code {
        Code::Http(status) => matches!(status, 400 | 401 | 403 | 405 | 406 | 411 | 413..=415 | 431),
        Code::Grpc(code) => matches!(
            code,
            Grpc::InvalidArgument
                | Grpc::PermissionDenied
                | Grpc::Unauthenticated
                | Grpc::Unimplemented
                | Grpc::DataLoss
        ),
        _ => false,
    };
    kind != Kind::Rejected && (named || fault.class() == Class::System)
}

/// What is done about a call that a fallback answered.
fn action_of(kind: FallbackKind, dead_lettered: bool) -> &'static str {
    match kind {
        _ if dead_lettered => "QueueForRetry",
        FallbackKind::Value | FallbackKind::Function => "ServeDefault",
        FallbackKind::LastGood => "ServeLastGood",
        FallbackKind::Other => "AskOther",
    }
}

fn some(label: &str) -> Option<&str> {
    (!label.is_empty()).then_some(label)
}
