//! The report of a shutdown.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::phase::Phase;
use crate::clock::Rounded;
use crate::task::Panic;

/// The exit code if every part has finished.
pub const EXIT_CLEAN: u8 = 0;
/// The exit code if a part has failed, panicked or not finished in time.
pub const EXIT_UNFINISHED: u8 = 1;
/// The exit code if a second signal has cut the shutdown short.
pub const EXIT_FORCED: u8 = 2;

/// The outcome of a shutdown: which parts have stopped, which have not, and how long each took.
#[derive(Clone, Debug)]
pub struct ShutdownReport {
    pub(super) parts: Vec<PartReport>,
    pub(super) took: Duration,
    pub(super) forced: bool,
}

/// The outcome of one part in a [`ShutdownReport`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartReport {
    /// The phase of the part.
    pub phase: Phase,
    /// The name of the part.
    pub name: Cow<'static, str>,
    /// The outcome of the part.
    pub outcome: PartOutcome,
    /// The time from the beginning of the phase until the part ended.
    pub took: Duration,
}

/// How a part of a shutdown ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PartOutcome {
    /// The part has stopped.
    Finished,
    /// The part has stopped with this error.
    Failed(String),
    /// The part has panicked. The panic is known if it happened while the part closed, and unknown if it happened in a task that
    /// held a token.
    Panicked(Option<Panic>),
    /// The part did not stop within the time limit of its phase.
    OutOfTime {
        /// The number of pieces of work that were still in progress, if the part counts them.
        left: Option<usize>,
    },
    /// A second signal came before the part had stopped.
    CutShort,
    /// A second signal came before the phase of the part.
    NotStarted,
}

impl ShutdownReport {
    /// Returns all parts in the order of their phases.
    #[must_use]
    pub fn parts(&self) -> &[PartReport] {
        &self.parts
    }

    /// Returns the parts that have failed, panicked or not stopped.
    pub fn unfinished(&self) -> impl Iterator<Item = &PartReport> {
        self.parts.iter().filter(|part| !matches!(part.outcome, PartOutcome::Finished))
    }

    /// Returns the duration of the shutdown, from "not ready" to the end.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Returns true if a second signal has cut the shutdown short.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// Returns true if every part has finished.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.forced && self.unfinished().next().is_none()
    }

    /// Returns the exit code for [`std::process::exit`]: [`EXIT_CLEAN`], [`EXIT_UNFINISHED`] or [`EXIT_FORCED`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (self.forced, self.is_clean()) {
            (true, _) => EXIT_FORCED,
            (false, false) => EXIT_UNFINISHED,
            (false, true) => EXIT_CLEAN,
        }
    }
}

/// Writes one line for the whole shutdown and one for each part.
impl fmt::Display for ShutdownReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finished = self.parts.len() - self.unfinished().count();
        let how = if self.forced { ", cut short by a second signal" } else { "" };
        write!(
            f,
            "shutdown: {finished} of {} parts finished in {}{how}",
            self.parts.len(),
            Rounded(self.took)
        )?;
        let width = self.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        for PartReport { phase, name, outcome, took } in &self.parts {
            write!(f, "\n  {phase:9}  {name:width$}  {outcome}")?;
            if !matches!(outcome, PartOutcome::NotStarted) {
                write!(f, " after {}", Rounded(*took))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for PartOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartOutcome::Finished => f.write_str("finished"),
            PartOutcome::Failed(error) => write!(f, "failed ({error})"),
            PartOutcome::Panicked(Some(panic)) => panic.fmt(f),
            PartOutcome::Panicked(None) => f.write_str("panicked"),
            PartOutcome::OutOfTime { left: Some(left) } => write!(f, "out of time, {left} under way,"),
            PartOutcome::OutOfTime { left: None } => f.write_str("out of time"),
            PartOutcome::CutShort => f.write_str("cut short"),
            PartOutcome::NotStarted => f.write_str("not started"),
        }
    }
}
