//! Mistakes in a configuration, all of them at once.

use std::fmt;

/// Why a guard or a policy could not be built: every mistake, each with where it is and what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    what: String,
    problems: Vec<Problem>,
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    path: &'static str,
    reason: String,
}

impl ConfigError {
    /// The mistakes.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Problem {
    /// The setting, like `breaker.cooldown`.
    #[must_use]
    pub fn path(&self) -> &'static str {
        self.path
    }

    /// What is wrong with it and what to write instead.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} can't work", self.what)?;
        for problem in &self.problems {
            write!(f, "\n  {}: {}", problem.path, problem.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Collects mistakes, so that a user sees all of them in one go.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, path: &'static str, reason: impl Into<String>) {
        self.0.push(Problem { path, reason: reason.into() });
    }

    pub(crate) fn refuse_if(&mut self, wrong: bool, path: &'static str, reason: impl FnOnce() -> String) {
        if wrong {
            self.add(path, reason());
        }
    }

    pub(crate) fn into_result<T>(self, what: impl Into<String>, value: T) -> Result<T, ConfigError> {
        if self.0.is_empty() { Ok(value) } else { Err(self.into_error(what)) }
    }

    pub(crate) fn into_error(self, what: impl Into<String>) -> ConfigError {
        ConfigError { what: what.into(), problems: self.0 }
    }
}

/// A share in percent. Checked when what it belongs to is built.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
pub struct Percent(f64);

impl Percent {
    /// The share in millionths, in which the machines count.
    pub(crate) fn millionths(self) -> u64 {
        (self.0 * 10_000.0).round() as u64
    }

    pub(crate) fn is_share(self) -> bool {
        (0.0..=100.0).contains(&self.0)
    }
}

impl From<u8> for Percent {
    fn from(percent: u8) -> Self {
        Percent(f64::from(percent))
    }
}

impl From<i32> for Percent {
    fn from(percent: i32) -> Self {
        Percent(f64::from(percent))
    }
}

impl From<f64> for Percent {
    fn from(percent: f64) -> Self {
        Percent(percent)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}
