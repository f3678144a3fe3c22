//! Mistakes, all of them at once.

use std::borrow::Cow;
use std::fmt;

use super::Place;

/// Why a guard, a policy or a file of them could not be built: every mistake, each with where it is and what to write
/// instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// What can't work, or nothing where every mistake names its file.
    what: String,
    problems: Vec<Problem>,
}

/// One mistake, or something in a file that loads but deserves a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    path: Cow<'static, str>,
    reason: Cow<'static, str>,
    remedy: Option<String>,
    place: Option<Place>,
}

impl ConfigError {
    /// Creates the error of settings that can't work, for crates that build on this one: what they belong to ("the lock"),
    /// and for each mistake the setting and the reason.
    pub fn new<P: Into<Cow<'static, str>>>(
        what: impl Into<String>,
        problems: impl IntoIterator<Item = (P, String)>,
    ) -> ConfigError {
        let problem = |(path, reason): (P, String)| Problem {
            path: path.into(),
            reason: reason.into(),
            remedy: None,
            place: None,
        };
        ConfigError { what: what.into(), problems: problems.into_iter().map(problem).collect() }
    }

    /// The mistakes, in the order of the files.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The mistakes of files: in order, and each once, however many guards share it.
    #[cfg(feature = "config")]
    pub(super) fn in_files(mut problems: Vec<Problem>) -> Self {
        sort(&mut problems);
        ConfigError { what: String::new(), problems }
    }

    /// The same mistakes in a file that has the guards below this path.
    #[cfg(feature = "config")]
    pub(super) fn lying_below(mut self, path: &str) -> Self {
        self.problems.iter_mut().for_each(|problem| problem.lies_below(path));
        self
    }
}

/// By position. The same words about the same place are said once.
#[cfg(feature = "config")]
pub(super) fn sort(problems: &mut Vec<Problem>) {
    problems.sort_by(|a, b| a.place.cmp(&b.place));
    let mut kept: Vec<Problem> = Vec::new();
    for problem in problems.drain(..) {
        let same = |other: &Problem| other.place == problem.place && other.reason == problem.reason;
        if !kept.iter().rev().take_while(|other| other.place == problem.place).any(same) {
            kept.push(problem);
        }
    }
    *problems = kept;
}

impl Problem {
    #[cfg(feature = "config")]
    pub(super) fn new(
        place: &Place,
        path: impl Into<Cow<'static, str>>,
        reason: impl Into<Cow<'static, str>>,
    ) -> Self {
        Problem { path: path.into(), reason: reason.into(), remedy: None, place: Some(place.clone()) }
    }

    #[cfg(feature = "config")]
    pub(super) fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Says that the path is one below another.
    #[cfg(feature = "config")]
    pub(super) fn lies_below(&mut self, path: &str) {
        if !self.path.is_empty() && !path.is_empty() {
            self.path = format!("{path}.{}", self.path).into();
        }
    }

    /// The setting, like `breaker.cooldown`, or `guards.payments.breaker.cooldown` in a file. Empty where a whole file
    /// is meant.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong with it, in most cases with what to write instead.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What to write instead, where the reason does not say so itself.
    #[must_use]
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref()
    }

    /// Where it stands, if it comes from a file or from the environment.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The file that it stands in, or the variable.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.place.as_ref().map(Place::file)
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.place.as_ref().and_then(Place::line)
    }

    /// The column in characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        self.place.as_ref().and_then(Place::column)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.reason)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.what.is_empty() {
            write!(f, "{} can't work", self.what)?;
        }
        for (index, problem) in self.problems.iter().enumerate() {
            match (self.what.is_empty(), index) {
                (true, 0) => write!(f, "{problem}")?,
                (true, _) => write!(f, "\n{problem}")?,
                (false, _) => write!(f, "\n  {problem}")?,
            }
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
        let reason = Cow::Owned(reason.into());
        self.0.push(Problem { path: Cow::Borrowed(path), reason, remedy: None, place: None });
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
