//! What a shutdown has to say at its end.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use super::phase::Phase;
use crate::task::Panic;

/// The exit code where every part has finished.
pub const EXIT_CLEAN: u8 = 0;
/// The exit code where some part has failed, panicked or not finished in time.
pub const EXIT_UNFINISHED: u8 = 1;
/// The exit code where a second signal has cut the shutdown short.
pub const EXIT_FORCED: u8 = 2;

/// Which parts have stopped, how long each took, and which have not.
#[derive(Clone, Debug)]
pub struct Report {
    pub(super) parts: Vec<PartReport>,
    pub(super) took: Duration,
    pub(super) forced: bool,
}

/// How one part has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartReport {
    /// When it was to stop.
    pub phase: Phase,
    /// Which part it is.
    pub name: Cow<'static, str>,
    /// How it ended.
    pub ending: Ending,
    /// How long it took, from the beginning of its phase.
    pub took: Duration,
}

/// How a part has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// It has stopped.
    Finished,
    /// It has stopped with this error.
    Failed(String),
    /// It has panicked: while it was closed, which says with what, or earlier, in a task that held its token.
    Panicked(Option<Panic>),
    /// The phase was over before it.
    OutOfTime {
        /// How many pieces of work were still under way, where they are counted.
        left: Option<usize>,
    },
    /// A second signal came before it had stopped.
    CutShort,
    /// A second signal came before its phase.
    NotStarted,
}

impl Report {
    /// All parts, in the order in which they were to stop.
    #[must_use]
    pub fn parts(&self) -> &[PartReport] {
        &self.parts
    }

    /// Those that have not stopped as they should.
    pub fn unfinished(&self) -> impl Iterator<Item = &PartReport> {
        self.parts.iter().filter(|part| !matches!(part.ending, Ending::Finished))
    }

    /// How long it took, from "not ready" to the end.
    #[must_use]
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Whether a second signal has cut it short.
    #[must_use]
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// Whether every part has finished.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        !self.forced && self.unfinished().next().is_none()
    }

    /// What to give to [`std::process::exit`]: [`EXIT_CLEAN`], [`EXIT_UNFINISHED`] or [`EXIT_FORCED`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (self.forced, self.is_clean()) {
            (true, _) => EXIT_FORCED,
            (false, false) => EXIT_UNFINISHED,
            (false, true) => EXIT_CLEAN,
        }
    }
}

/// A line for the whole, and one for each part.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finished = self.parts.len() - self.unfinished().count();
        let how = if self.forced { ", cut short by a second signal" } else { "" };
        write!(f, "shutdown: {finished} of {} parts finished in {:?}{how}", self.parts.len(), self.took)?;
        let width = self.parts.iter().map(|part| part.name.chars().count()).max().unwrap_or(0);
        for PartReport { phase, name, ending, took } in &self.parts {
            write!(f, "\n  {phase:9}  {name:width$}  {ending}")?;
            if !matches!(ending, Ending::NotStarted) {
                write!(f, " after {took:?}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Finished => f.write_str("finished"),
            Ending::Failed(error) => write!(f, "failed ({error})"),
            Ending::Panicked(Some(panic)) => panic.fmt(f),
            Ending::Panicked(None) => f.write_str("panicked"),
            Ending::OutOfTime { left: Some(left) } => write!(f, "out of time, {left} under way,"),
            Ending::OutOfTime { left: None } => f.write_str("out of time"),
            Ending::CutShort => f.write_str("cut short"),
            Ending::NotStarted => f.write_str("not started"),
        }
    }
}
