//! What goes on in a shutdown, as log lines.

use super::phase::Phase;
use super::report::PartReport;

#[cfg(feature = "tracing")]
pub(super) fn not_ready() {
    tracing::info!(target: "seawall", "[shutdown][readiness] Not ready.");
}

#[cfg(feature = "tracing")]
pub(super) fn phase(phase: Phase) {
    tracing::info!(target: "seawall", "[shutdown][{phase}] Start.");
}

#[cfg(feature = "tracing")]
pub(super) fn part(part: &PartReport) {
    use super::report::PartOutcome;

    let (name, duration) = (part.name.as_ref(), part.took);
    match &part.outcome {
        PartOutcome::Finished => {
            tracing::info!(target: "seawall", phase = %part.phase, ?duration, "[shutdown][{name}] Success.");
        }
        outcome => {
            tracing::warn!(
                target: "seawall", phase = %part.phase, ?duration, cause = %outcome, "[shutdown][{name}] Failed!"
            );
        }
    }
}

#[cfg(not(feature = "tracing"))]
pub(super) fn not_ready() {}

#[cfg(not(feature = "tracing"))]
pub(super) fn phase(_: Phase) {}

#[cfg(not(feature = "tracing"))]
pub(super) fn part(_: &PartReport) {}
