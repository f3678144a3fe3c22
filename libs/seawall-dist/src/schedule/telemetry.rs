//! What jobs do as log lines and numbers. Without the features `tracing` and `metrics` these functions do nothing.

use std::time::Duration;

#[cfg(feature = "metrics")]
use seawall::telemetry::Measure;

use crate::{Millis, StoreError};

#[cfg(feature = "metrics")]
pub(crate) const METRICS: &[crate::telemetry::Metric] = &[
    (
        "seawall.job.runs",
        Measure::Counter,
        &["job", "outcome"],
        "runs that ended, by outcome: success, failed, lost",
    ),
    ("seawall.job.run.duration", Measure::Histogram, &["job"], "how long runs took, in seconds"),
    ("seawall.job.missed", Measure::Counter, &["job"], "ticks at which the job did not run"),
];

macro_rules! log {
    ($level:ident, $($line:tt)+) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "seawall", $($line)+);
    };
}

macro_rules! count {
    ($number:expr, $name:literal $(, $label:literal => $value:expr)*) => {
        #[cfg(feature = "metrics")]
        metrics::counter!($name $(, $label => $value)*).increment($number);
    };
}

pub(super) fn ended(job: &str, tick: Millis, took: Duration, error: Option<&str>) {
    let _ = (job, tick, took);
    #[cfg(feature = "tracing")]
    let duration = seawall::telemetry::Millis(took);
    match error {
        None => {
            log!(info, job, %tick, %duration, "[Job][Run] Success.");
            count!(1, "seawall.job.runs", "job" => job.to_owned(), "outcome" => "success");
        }
        Some(cause) => {
            let _ = cause;
            log!(error, job, %tick, %duration, cause, "[Job][Run] Failed!");
            count!(1, "seawall.job.runs", "job" => job.to_owned(), "outcome" => "failed");
        }
    }
    #[cfg(feature = "metrics")]
    metrics::histogram!("seawall.job.run.duration", "job" => job.to_owned()).record(took);
}

pub(super) fn missed(job: &str, tick: Millis, missed: u64) {
    let _ = (job, tick);
    if missed > 0 {
        log!(warn, job, %tick, missed, "[Job][Missed] Failed!");
        count!(missed, "seawall.job.missed", "job" => job.to_owned());
    }
}

pub(super) fn lease_lost(job: &str, tick: Millis) {
    let _ = (job, tick);
    log!(error, job, %tick, cause = "the lease was lost", "[Job][Run] Failed!");
    count!(1, "seawall.job.runs", "job" => job.to_owned(), "outcome" => "lost");
}

pub(super) fn store_failed(job: &str, error: &StoreError) {
    let _ = (job, error);
    log!(warn, job, cause = %error, "[Job][Claim] Failed!");
}

pub(super) fn panicked(job: &str, cause: &str) {
    let _ = (job, cause);
    log!(error, job, cause, action = "Restart", "[Job][Loop] Failed!");
}
