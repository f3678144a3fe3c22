//! What a storage does as log lines and as numbers.

use std::sync::Arc;

use seawall::{Clock, Tick};

use super::upload::{StoredBy, StoredFile};
use crate::error::{FileError, FileErrorKind};
use crate::name::FileId;

#[cfg(feature = "tracing")]
use crate::log::{shown, shown_cause};
#[cfg(feature = "tracing")]
use seawall::telemetry::{LINES_PER_SECOND, Millis, Sampler, current_trace_id};

/// The metrics of storages; the label beside those in the list is `storage`.
#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::FileMetric] = &[
    (
        "seawall.files.operation.duration",
        seawall::telemetry::Measure::Histogram,
        &["operation", "outcome"],
        "time of an operation, in seconds; of a download until its first byte",
    ),
    (
        "seawall.files.bytes",
        seawall::telemetry::Measure::Counter,
        &["operation"],
        "bytes of files that were stored or found",
    ),
    (
        "seawall.files.failovers",
        seawall::telemetry::Measure::Counter,
        &[],
        "uploads that went to the second store because the first one was away",
    ),
    (
        "seawall.files.data_loss_risks",
        seawall::telemetry::Measure::Counter,
        &[],
        "uploads that neither a store nor the spool took",
    ),
];

/// An operation of a storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Upload,
    Download,
    Delete,
}

impl Operation {
    #[cfg(feature = "metrics")]
    fn name(self) -> &'static str {
        match self {
            Operation::Upload => "upload",
            Operation::Download => "download",
            Operation::Delete => "delete",
        }
    }
}

/// An operation between its begin and its end.
pub(super) struct Span<'a> {
    operation: Operation,
    /// The name of the file, or its id.
    file: &'a str,
    declared: Option<u64>,
    begin: Tick,
}

/// Writes the lines and counts the numbers of one storage.
#[derive(Debug)]
pub(super) struct Reporter {
    name: Arc<str>,
    clock: Clock,
    /// Lines of the critical path, of failures that pass, and of failures that need a person: none uses up the others'
    /// allowance.
    #[cfg(feature = "tracing")]
    samplers: [Sampler; 3],
}

/// Writes a line if there is an allowance for it.
#[cfg(feature = "tracing")]
macro_rules! line {
    ($reporter:expr, $level:ident, $($fields:tt)+) => {
        if let Some(suppressed) = $reporter.passes(Level::$level) {
            tracing::$level!(target: "seawall", traceId = current_trace_id(), suppressed, $($fields)+);
        }
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! line {
    ($reporter:expr, $($rest:tt)+) => {{}};
}

/// The index of a sampler.
#[cfg(feature = "tracing")]
#[expect(non_camel_case_types, reason = "they are the names of tracing's macros")]
#[derive(Clone, Copy)]
enum Level {
    info,
    warn,
    error,
}

impl Reporter {
    pub(super) fn new(name: &str, clock: Clock) -> Self {
        Reporter {
            name: name.into(),
            clock,
            #[cfg(feature = "tracing")]
            samplers: [(); 3].map(|()| Sampler::new(LINES_PER_SECOND)),
        }
    }

    #[cfg(feature = "tracing")]
    fn passes(&self, level: Level) -> Option<Option<u64>> {
        self.samplers[level as usize].pass(self.clock.now())
    }

    /// The trace of the current span, for what is sent later.
    #[cfg(feature = "tracing")]
    #[expect(clippy::unused_self, reason = "it is the same as without a log")]
    pub(super) fn trace_id(&self) -> Option<String> {
        current_trace_id().map(|id| id.to_string())
    }

    #[cfg(not(feature = "tracing"))]
    #[expect(clippy::unused_self, reason = "it is the same as with a log")]
    pub(super) fn trace_id(&self) -> Option<String> {
        None
    }

    pub(super) fn begin<'a>(&self, operation: Operation, file: &'a str, declared: Option<u64>) -> Span<'a> {
        match operation {
            Operation::Upload => {
                line!(self, info, fileName = shown(file), size = declared, "[{}][Upload] Start.", self.name);
            }
            Operation::Download => {
                line!(self, info, fileId = shown(file), "[{}][Download] Start.", self.name);
            }
            Operation::Delete => {}
        }
        Span { operation, file, declared, begin: self.clock.now() }
    }

    pub(super) fn uploaded(&self, span: &Span<'_>, stored: &StoredFile) {
        let outcome = match stored.by {
            StoredBy::Store(side) if side == seawall::failover::Side::PRIMARY => "primary",
            StoredBy::Store(_) => "secondary",
            StoredBy::Spool => "spool",
        };
        self.measure(span, outcome, stored.bytes);
        line!(self, info, fileId = shown(stored.id.as_str()), fileName = shown(span.file), size = stored.bytes, by = outcome,
            duration = %self.took(span), "[{}][Upload] Success.", self.name);
    }

    pub(super) fn upload_failed(&self, span: &Span<'_>, error: &FileError) {
        self.measure(span, outcome_of(error), 0);
        match error.kind() {
            FileErrorKind::Invalid(_) => line!(
                self,
                error,
                fileName = shown(span.file),
                size = span.declared,
                cause = shown_cause(error),
                "[{}][Upload] Validation failed!",
                self.name
            ),
            FileErrorKind::Permission => line!(
                self,
                error,
                fileName = shown(span.file),
                cause = shown_cause(error),
                "[{}][Upload] Access denied!",
                self.name
            ),
            FileErrorKind::Source => line!(
                self,
                error,
                fileName = shown(span.file),
                cause = shown_cause(error),
                "[{}][Upload] File I/O error!",
                self.name
            ),
            FileErrorKind::Connection
            | FileErrorKind::Timeout
            | FileErrorKind::Server
            | FileErrorKind::Rejected => {
                line!(self, warn, fileName = shown(span.file), duration = %self.took(span), cause = shown_cause(error),
                    "[{}][Upload] Store unavailable.", self.name);
            }
            // Its line is written where it happens, with both causes.
            FileErrorKind::DataLossRisk => {}
            _ => line!(
                self,
                error,
                fileName = shown(span.file),
                size = span.declared,
                cause = shown_cause(error),
                "[{}][Upload] Unexpected error!",
                self.name
            ),
        }
    }

    pub(super) fn failing_over(&self, span: &Span<'_>, trigger: &FileError) {
        let _ = (span, trigger);
        self.count("seawall.files.failovers");
        line!(
            self,
            warn,
            fileName = shown(span.file),
            triggerCause = shown_cause(trigger),
            action = "UseSecondary",
            "[{}][Fallback] Store unavailable, using the second one.",
            self.name
        );
    }

    pub(super) fn spooling(&self, span: &Span<'_>, trigger: &FileError) {
        let _ = (span, trigger);
        line!(
            self,
            error,
            fileName = shown(span.file),
            triggerCause = shown_cause(trigger),
            action = "QueueForRetry",
            "[{}][Fallback] Store unavailable, saving to spool.",
            self.name
        );
    }

    pub(super) fn spooled(&self, span: &Span<'_>, id: &FileId) {
        let _ = (span, id);
        line!(
            self,
            info,
            fileId = shown(id.as_str()),
            action = "QueueForRetry",
            "[{}][Spool] Saved.",
            self.name
        );
    }

    /// Neither a store nor the spool took the file. The line is written however many there are.
    pub(super) fn lost(&self, span: &Span<'_>, trigger: &FileError, disk: &FileError) -> FileError {
        let _ = span;
        self.count("seawall.files.data_loss_risks");
        #[cfg(feature = "tracing")]
        tracing::error!(target: "seawall", traceId = current_trace_id(), fileName = shown(span.file), size = span.declared,
            triggerCause = shown_cause(trigger), cause = shown_cause(disk), action = "ManualReview",
            "[{}][Fallback] Failed to save to spool! Data loss risk!", self.name);
        let text = format!("{trigger}; and {disk}");
        FileError::new(FileErrorKind::DataLossRisk, "uploading a file", trigger.fault()).with_cause(text)
    }

    pub(super) fn found(&self, span: &Span<'_>, bytes: u64) {
        self.measure(span, "success", bytes);
        line!(self, info, fileId = shown(span.file), size = bytes, duration = %self.took(span),
            "[{}][Download] Success.", self.name);
    }

    pub(super) fn not_found(&self, span: &Span<'_>, error: &FileError) {
        self.measure(span, outcome_of(error), 0);
        match error.kind() {
            FileErrorKind::NotFound => {
                line!(self, warn, fileId = shown(span.file), "[{}][Download] File not found.", self.name);
            }
            FileErrorKind::Permission => line!(
                self,
                error,
                fileId = shown(span.file),
                cause = shown_cause(error),
                "[{}][Download] Access denied!",
                self.name
            ),
            _ if error.is_store_away() => {
                line!(self, warn, fileId = shown(span.file), duration = %self.took(span),
                cause = shown_cause(error), "[{}][Download] Store unavailable.", self.name);
            }
            _ => line!(
                self,
                error,
                fileId = shown(span.file),
                cause = shown_cause(error),
                "[{}][Download] Unexpected error!",
                self.name
            ),
        }
    }

    pub(super) fn deleted(&self, span: &Span<'_>, failure: Option<&FileError>) {
        self.measure(span, failure.map_or("success", outcome_of), 0);
        match failure {
            None => line!(self, info, fileId = shown(span.file), "[{}][Delete] Success.", self.name),
            Some(_error) => line!(
                self,
                warn,
                fileId = shown(span.file),
                cause = shown_cause(_error),
                "[{}][Delete] Failed, operation skipped.",
                self.name
            ),
        }
    }

    #[cfg(feature = "tracing")]
    fn took(&self, span: &Span<'_>) -> Millis {
        Millis(self.clock.now().since(span.begin))
    }

    #[cfg(feature = "metrics")]
    fn measure(&self, span: &Span<'_>, outcome: &'static str, bytes: u64) {
        let (storage, operation) = (|| Arc::clone(&self.name), span.operation.name());
        let took = self.clock.now().since(span.begin);
        let _ = (span.file, span.declared);
        metrics::histogram!("seawall.files.operation.duration", "storage" => storage(), "operation" => operation, "outcome" => outcome)
            .record(took.as_secs_f64());
        if bytes > 0 {
            metrics::counter!("seawall.files.bytes", "storage" => storage(), "operation" => operation)
                .increment(bytes);
        }
    }

    #[cfg(not(feature = "metrics"))]
    fn measure(&self, span: &Span<'_>, _: &'static str, _: u64) {
        let _ = (&self.clock, span.operation, span.begin, span.file, span.declared);
    }

    #[cfg(feature = "metrics")]
    fn count(&self, name: &'static str) {
        metrics::counter!(name, "storage" => Arc::clone(&self.name)).increment(1);
    }

    #[cfg(not(feature = "metrics"))]
    fn count(&self, _: &'static str) {
        let _ = &self.name;
    }
}

/// The label of an error.
fn outcome_of(error: &FileError) -> &'static str {
    match error.kind() {
        FileErrorKind::Invalid(_) => "invalid",
        FileErrorKind::NotFound => "not_found",
        FileErrorKind::Permission => "permission",
        FileErrorKind::Source => "source",
        FileErrorKind::Disk => "disk",
        FileErrorKind::Connection => "connection",
        FileErrorKind::Timeout => "timeout",
        FileErrorKind::Server => "server",
        FileErrorKind::Rejected => "rejected",
        FileErrorKind::DataLossRisk => "data_loss_risk",
        FileErrorKind::Other => "other",
    }
}
