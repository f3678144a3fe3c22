//! One step of a saga: an action, its compensation, and how often each is attempted.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use seawall::backoff::{Backoff, Jitter};
use seawall::{Fault, millis, secs};

/// Attempts at a step before the saga is compensated. With [`STEP_BACKOFF`] the waits between them are 71 to 143 s together, so
/// that an outage of a minute is bridged, and the attempts end within the [default deadline](super::SAGA_TIMEOUT) of a saga.
pub const STEP_ATTEMPTS: u32 = 20;

/// Attempts at a compensation before the saga needs attention. With [`COMPENSATION_BACKOFF`] the waits between them are 11 to
/// 22 minutes together, so that an outage of ten minutes is bridged: nothing else is left to do.
pub const COMPENSATION_ATTEMPTS: u32 = 30;

/// How long one attempt may take. Its outcome is unknown after that.
pub const STEP_TIMEOUT: Duration = secs(30);

/// The back-off between attempts at a step. At least half of each wait is kept, so that the attempts last as long as they
/// should.
pub const STEP_BACKOFF: Backoff = Backoff::exponential(millis(200)).cap(secs(10)).jitter(Jitter::Equal);

/// The back-off between attempts at a compensation: like that of a step, with a longer bound for a longer outage.
pub const COMPENSATION_BACKOFF: Backoff =
    Backoff::exponential(millis(200)).cap(secs(60)).jitter(Jitter::Equal);

type Work = Arc<dyn Fn(StepContext) -> WorkFuture + Send + Sync>;
type WorkFuture = Pin<Box<dyn Future<Output = Result<Vec<u8>, StepFailure>> + Send>>;

/// What an action and a compensation get to know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepContext {
    /// The id of the saga.
    pub saga_id: Arc<str>,
    /// The name of the step.
    pub step: Arc<str>,
    /// `saga_id:step_name`, the same for every attempt and for the compensation. Send it to the peer as idempotency key.
    pub key: Arc<str>,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
    /// The input of the saga.
    pub input: Arc<[u8]>,
    pub(super) results: Arc<Vec<(Arc<str>, Vec<u8>)>>,
}

impl StepContext {
    /// The result of an earlier step. A compensation also sees the result of its own step, unless the step's outcome is
    /// unknown.
    #[must_use]
    pub fn result(&self, step: &str) -> Option<&[u8]> {
        self.results.iter().find(|(name, _)| **name == *step).map(|(_, result)| result.as_slice())
    }
}

/// The result of an action: nothing, or bytes that later steps can read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StepOutput(pub Vec<u8>);

impl From<()> for StepOutput {
    fn from((): ()) -> Self {
        StepOutput::default()
    }
}

impl From<Vec<u8>> for StepOutput {
    fn from(bytes: Vec<u8>) -> Self {
        StepOutput(bytes)
    }
}

impl From<String> for StepOutput {
    fn from(text: String) -> Self {
        StepOutput(text.into_bytes())
    }
}

/// An error of a step that says by itself whether another attempt may help.
///
/// An action may fail with any error; what it means is then read from its chain of causes, as a guard does. This one is for
/// actions that know better.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepError {
    fault: Fault,
    message: String,
}

impl StepError {
    /// Creates an error after which another attempt changes nothing: the saga is compensated.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        StepError { fault: Fault::business(), message: message.into() }
    }

    /// Creates an error after which another attempt may help.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        StepError { fault: Fault::protocol(), message: message.into() }
    }

    /// Creates an error that means this fault.
    #[must_use]
    pub fn new(fault: Fault, message: impl Into<String>) -> Self {
        StepError { fault, message: message.into() }
    }
}

impl fmt::Display for StepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StepError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}

/// How an attempt failed.
#[derive(Clone, Debug)]
pub(super) struct StepFailure {
    pub(super) fault: Fault,
    pub(super) message: String,
}

impl StepFailure {
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause.filter(|cause| !cause.is::<Fault>()) {
            message = format!("{message}: {error}");
            cause = error.source();
        }
        StepFailure { fault: Fault::of_error(error), message }
    }
}

/// One step of a [`Saga`](super::Saga).
#[derive(Clone)]
pub struct SagaStep {
    pub(super) name: Arc<str>,
    pub(super) action: Work,
    pub(super) compensation: Option<Work>,
    /// True when the action changes something.
    pub(super) effective: bool,
    pub(super) attempts: u32,
    pub(super) compensation_attempts: u32,
    pub(super) timeout: Duration,
    pub(super) backoff: Backoff,
    pub(super) compensation_backoff: Backoff,
}

impl SagaStep {
    /// Creates a step without compensation: for what can't be undone and comes last, or [changes
    /// nothing](SagaStep::without_effect).
    ///
    /// Once a step that can't be undone may have taken effect, the saga does not undo the steps before it by itself: it needs
    /// attention if it can't go on.
    ///
    /// The action may run more than once under the same [key](StepContext::key), and must have one effect all the same.
    #[must_use]
    pub fn new<F, Fut, T, E>(name: &str, action: F) -> Self
    where
        F: Fn(StepContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<StepOutput>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        SagaStep {
            name: name.into(),
            action: work(action),
            compensation: None,
            effective: true,
            attempts: STEP_ATTEMPTS,
            compensation_attempts: COMPENSATION_ATTEMPTS,
            timeout: STEP_TIMEOUT,
            backoff: STEP_BACKOFF,
            compensation_backoff: COMPENSATION_BACKOFF,
        }
    }

    /// Sets the compensation. It must succeed when there is nothing to undo, and must keep a late call of the action under
    /// the same key from taking effect.
    #[must_use]
    pub fn compensate<F, Fut, T, E>(mut self, compensation: F) -> Self
    where
        F: Fn(StepContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<StepOutput>,
        E: Into<Box<dyn Error + Send + Sync>>,
    {
        self.compensation = Some(work(compensation));
        self
    }

    /// Declares that the action changes nothing, such as a look at a balance: whatever its outcome, there is nothing to undo.
    #[must_use]
    pub fn without_effect(mut self) -> Self {
        self.effective = false;
        self
    }

    /// Sets how often the action is attempted; [`STEP_ATTEMPTS`] unless told.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets how often the compensation is attempted before the saga needs attention; [`COMPENSATION_ATTEMPTS`] unless told.
    #[must_use]
    pub fn compensation_attempts(mut self, attempts: u32) -> Self {
        self.compensation_attempts = attempts;
        self
    }

    /// Sets how long one attempt at the action or the compensation may take; [`STEP_TIMEOUT`] unless told.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the back-off between attempts at the action; [`STEP_BACKOFF`] unless told.
    #[must_use]
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }

    /// Sets the back-off between attempts at the compensation; [`COMPENSATION_BACKOFF`] unless told.
    #[must_use]
    pub fn compensation_backoff(mut self, backoff: Backoff) -> Self {
        self.compensation_backoff = backoff;
        self
    }

    /// The name of the step.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Debug for SagaStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("name", &self.name)
            .field("compensable", &self.compensation.is_some())
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}

fn work<F, Fut, T, E>(function: F) -> Work
where
    F: Fn(StepContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Into<StepOutput>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let function = Arc::new(function);
    // The closure is called inside of the future, so that its own panic is caught with those of the future.
    Arc::new(move |context| {
        let function = function.clone();
        Box::pin(async move {
            match function(context).await {
                Ok(output) => Ok(output.into().0),
                Err(error) => {
                    let error: Box<dyn Error + Send + Sync> = error.into();
                    Err(StepFailure::of(&*error))
                }
            }
        })
    })
}
