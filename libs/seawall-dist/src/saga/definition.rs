//! A saga as code: its name, its version, its steps.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use seawall::secs;

use super::journal::JournalEntry;
use super::progress::{JournalReplayError, NextAction, Progress, StepOutline};
use super::step::SagaStep;

/// How long a saga may go forward. After that it is compensated.
pub const SAGA_TIMEOUT: Duration = secs(300);

/// The name and the version of a definition. An instance keeps those that it was started with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DefinitionId {
    /// The name of the definition.
    pub name: String,
    /// The version of the definition.
    pub version: u32,
}

/// `transfer@2`
impl fmt::Display for DefinitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// The definition of a saga. Clones share it.
///
/// A definition never changes under its version: add, remove, rename or reorder steps under a new version, and keep the old
/// one registered until no instance of it is active.
#[derive(Clone, Debug)]
pub struct Saga(Arc<Definition>);

#[derive(Debug)]
struct Definition {
    id: DefinitionId,
    steps: Vec<SagaStep>,
    timeout: Duration,
    continue_compensation: bool,
}

/// Chooses the steps of a [`Saga`].
#[derive(Clone, Debug)]
#[must_use = "a saga is made by `build`"]
pub struct SagaBuilder {
    definition: DefinitionId,
    steps: Vec<SagaStep>,
    timeout: Duration,
    continue_compensation: bool,
}

impl Saga {
    /// Begins the definition with this name and version.
    pub fn builder(name: &str, version: u32) -> SagaBuilder {
        SagaBuilder {
            definition: DefinitionId { name: name.to_owned(), version },
            steps: Vec::new(),
            timeout: SAGA_TIMEOUT,
            continue_compensation: true,
        }
    }

    /// The name and the version.
    #[must_use]
    pub fn id(&self) -> &DefinitionId {
        &self.0.id
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[SagaStep] {
        &self.0.steps
    }

    /// How long an instance may go forward.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.0.timeout
    }

    /// Reads a journal and says what an instance with this journal does next. For tests over recorded journals: they find a
    /// definition that was changed under its old version.
    ///
    /// # Errors
    /// Fails if the journal can't come from this definition.
    pub fn replay(&self, journal: &[JournalEntry]) -> Result<NextAction, JournalReplayError> {
        self.progress(journal).map(|progress| self.next(&progress))
    }

    pub(super) fn progress(&self, journal: &[JournalEntry]) -> Result<Progress, JournalReplayError> {
        Progress::replay(&self.outline(), journal)
    }

    pub(super) fn next(&self, progress: &Progress) -> NextAction {
        progress.next(&self.outline(), self.0.continue_compensation)
    }

    pub(super) fn outline(&self) -> Vec<StepOutline<'_>> {
        let steps = self.0.steps.iter();
        steps
            .map(|step| StepOutline {
                name: &step.name,
                compensable: step.compensation.is_some(),
                effective: step.effective,
            })
            .collect()
    }
}

impl SagaBuilder {
    /// Adds a step after the others.
    pub fn step(mut self, step: SagaStep) -> Self {
        self.steps.push(step);
        self
    }

    /// Sets how long an instance may go forward before it is compensated; [`SAGA_TIMEOUT`] unless told.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Stops at the first compensation that is given up, and leaves the steps before it as they are.
    ///
    /// By default the other steps are compensated all the same, because each is wrong for as long as it stands.
    pub fn stop_at_failed_compensation(mut self) -> Self {
        self.continue_compensation = false;
        self
    }

    /// Makes the definition.
    ///
    /// # Errors
    /// Fails with every mistake: no steps, a name twice or not usable in a key, no attempts, no time.
    pub fn build(self) -> Result<Saga, DefinitionError> {
        let mut problems = Vec::new();
        let mut refuse_if = |wrong: bool, problem: String| {
            if wrong {
                problems.push(problem);
            }
        };
        let unusable = |name: &str| {
            name.is_empty() || name.contains(|c: char| c == ':' || c == '@' || c.is_whitespace())
        };
        let rule = "has characters that are not allowed: use no colon, no @, no white space";
        let name = &self.definition.name;
        refuse_if(unusable(name), format!("the name `{name}` is empty or {rule}"));
        refuse_if(self.steps.is_empty(), "there are no steps".to_owned());
        refuse_if(self.timeout.is_zero(), "the timeout is zero".to_owned());
        for (index, step) in self.steps.iter().enumerate() {
            let name = &step.name;
            refuse_if(unusable(name), format!("the name of step `{name}` is empty or {rule}"));
            let twice = self.steps[..index].iter().any(|other| other.name == *name);
            refuse_if(twice, format!("there are two steps named `{name}`"));
            let attempts = step.attempts == 0 || step.compensation_attempts == 0;
            refuse_if(attempts, format!("step `{name}` has no attempts: write at least 1"));
            let both = step.compensation.is_some() && !step.effective;
            refuse_if(both, format!("step `{name}` has a compensation and no effect: write one of them"));
            refuse_if(step.timeout.is_zero(), format!("step `{name}` has no time: its timeout is zero"));
        }
        if !problems.is_empty() {
            return Err(DefinitionError { definition: self.definition.to_string(), problems });
        }
        Ok(Saga(Arc::new(Definition {
            id: self.definition,
            steps: self.steps,
            timeout: self.timeout,
            continue_compensation: self.continue_compensation,
        })))
    }
}

/// A definition can't work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefinitionError {
    pub(super) definition: String,
    pub(super) problems: Vec<String>,
}

impl DefinitionError {
    /// Every mistake, in the order of the steps.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "saga `{}` can't work: {}", self.definition, self.problems.join("; "))
    }
}

impl std::error::Error for DefinitionError {}
