//! Two of a kind: one first, the other when it fails.
#![doc = ""]
#![doc = include_str!("../docs/failover.md")]

use std::fmt;
use std::future::Future;

use crate::config::{ConfigError, Problems};
use crate::error::{Error, Kind};
use crate::fault::{Causes, Classify, Ran};
use crate::guard::{Attempt, Guard};
use crate::retry::Safety;

/// A primary and a secondary of the same kind: two databases, two regions. Made by [`Failover::new`].
#[derive(Clone)]
pub struct Failover {
    primary: Guard,
    secondary: Guard,
    #[cfg(feature = "tracing")]
    log: Option<crate::telemetry::PairLog>,
}

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// The one that is asked first.
    Primary,
    /// The one that is asked when the first fails.
    Secondary,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Primary => "primary",
            Side::Secondary => "secondary",
        })
    }
}

/// A value, and who gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served<T> {
    /// The value.
    pub value: T,
    /// Who gave it.
    pub by: Side,
}

impl Failover {
    /// Each side has a guard of its own; the primary's needs a breaker, or a dead primary would be tried every time.
    pub fn new(primary: Guard, secondary: Guard) -> Result<Self, ConfigError> {
        let mut problems = Problems::default();
        problems.refuse_if(primary.breaker().is_none(), "failover.primary", || {
            "its guard has no breaker, so a dead primary would be waited for every time; add `.breaker(..)`".into()
        });
        problems.into_result(format!("failover from `{}` to `{}`", primary.name(), secondary.name()), ())?;
        Ok(Failover {
            primary,
            secondary,
            #[cfg(feature = "tracing")]
            log: None,
        })
    }

    /// Writes a log under this name: who answered, each switch to the secondary (a warning), and that both failed (an
    /// error). Beside it each guard can write its own.
    #[cfg(feature = "tracing")]
    #[must_use]
    pub fn log(mut self, name: &str, log: &crate::telemetry::Log) -> Self {
        self.log = Some(crate::telemetry::PairLog::new(name, self.primary.clock().clone(), log));
        self
    }

    /// The guard of a side.
    #[must_use]
    pub fn guard(&self, side: Side) -> &Guard {
        match side {
            Side::Primary => &self.primary,
            Side::Secondary => &self.secondary,
        }
    }

    /// For reads, and for what is the same if it runs twice.
    pub async fn idempotent<F, Fut, T, E>(&self, operation: F) -> Result<Served<T>, FailoverError<E>>
    where
        F: FnMut(Side, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Classify<T, E>,
    {
        self.call(Safety::Idempotent, operation).await
    }

    /// For what must not run twice: the secondary is asked only if the primary certainly did nothing.
    pub async fn once<F, Fut, T, E>(&self, operation: F) -> Result<Served<T>, FailoverError<E>>
    where
        F: FnMut(Side, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Classify<T, E>,
    {
        self.call(Safety::Once, operation).await
    }

    async fn call<F, Fut, T, E>(
        &self,
        safety: Safety,
        mut operation: F,
    ) -> Result<Served<T>, FailoverError<E>>
    where
        F: FnMut(Side, Attempt) -> Fut,
        Fut: Future<Output = Result<T, E>>,
        Causes: Classify<T, E>,
    {
        let diary = self.diary();
        let request = self.primary.classify(Causes).safety(safety);
        let primary = match request.call(|attempt| operation(Side::Primary, attempt)).await {
            Ok(value) => {
                diary.answered(Side::Primary);
                return Ok(Served { value, by: Side::Primary });
            }
            Err(error) => error,
        };
        if !is_worth_asking_the_other(&primary, safety) {
            return Err(FailoverError { primary, secondary: None });
        }
        diary.switches(&primary);
        let request = self.secondary.classify(Causes).safety(safety);
        match request.call(|attempt| operation(Side::Secondary, attempt)).await {
            Ok(value) => {
                diary.answered(Side::Secondary);
                Ok(Served { value, by: Side::Secondary })
            }
            Err(secondary) => {
                let error = FailoverError { primary, secondary: Some(secondary) };
                diary.failed(&error);
                Err(error)
            }
        }
    }

    fn diary(&self) -> Diary<'_> {
        #[cfg(feature = "tracing")]
        return Diary(self.log.as_ref().map(|log| (log, log.now())));
        #[cfg(not(feature = "tracing"))]
        Diary(std::marker::PhantomData)
    }
}

/// What is written down about one call: nothing, unless somebody asked for a log.
#[cfg(feature = "tracing")]
struct Diary<'a>(Option<(&'a crate::telemetry::PairLog, crate::clock::Tick)>);

#[cfg(feature = "tracing")]
impl Diary<'_> {
    fn answered(&self, by: Side) {
        if let Some((log, began)) = self.0 {
            log.answered(by, began);
        }
    }

    fn switches<E>(&self, cause: &Error<E>) {
        if let Some((log, began)) = self.0 {
            log.switches(began, cause);
        }
    }

    fn failed<E>(&self, cause: &FailoverError<E>) {
        if let Some((log, began)) = self.0 {
            log.failed(began, cause);
        }
    }
}

/// Without `tracing` there is no log.
#[cfg(not(feature = "tracing"))]
struct Diary<'a>(std::marker::PhantomData<&'a ()>);

#[cfg(not(feature = "tracing"))]
#[expect(clippy::unused_self, reason = "it is the same as with a log")]
impl Diary<'_> {
    fn answered(&self, _: Side) {}

    fn switches<E>(&self, _: &Error<E>) {}

    fn failed<E>(&self, _: &FailoverError<E>) {}
}

impl fmt::Debug for Failover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failover")
            .field("primary", &self.primary)
            .field("secondary", &self.secondary)
            .finish_non_exhaustive()
    }
}

/// Whether the other side may know better: the fault is not the question's, and asking twice is safe.
fn is_worth_asking_the_other<E>(error: &Error<E>, safety: Safety) -> bool {
    let safe = safety != Safety::Once || error.ran() == Ran::No;
    safe && (error.kind() == Kind::Rejected || error.last_fault().is_transient())
}

/// Why neither side gave a value: the causes of both, where both were asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailoverError<E> {
    primary: Error<E>,
    secondary: Option<Error<E>>,
}

impl<E> FailoverError<E> {
    /// Why the primary failed.
    #[must_use]
    pub fn primary(&self) -> &Error<E> {
        &self.primary
    }

    /// Why the secondary failed, if it was asked.
    #[must_use]
    pub fn secondary(&self) -> Option<&Error<E>> {
        self.secondary.as_ref()
    }
}

impl<E> fmt::Display for FailoverError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "primary: {}", self.primary)?;
        match &self.secondary {
            Some(secondary) => write!(f, "; secondary: {secondary}"),
            None => f.write_str("; the secondary was not asked"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for FailoverError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.secondary.as_ref().unwrap_or(&self.primary))
    }
}
