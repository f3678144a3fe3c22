//! The group.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::{Id, JoinSet};

use super::error::GroupError;
use super::shared::Shared;
use crate::task::error::flatten;
use crate::task::panic::Caught;
use crate::task::{Panic, TaskError, in_caller_span};

/// A few tasks that start together and are awaited together.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use seawall::task::Group;
///
/// let mut group = Group::new().on_panic(|task, panic| eprintln!("{task} {panic}"));
/// group.spawn("mail", async { Ok::<_, std::io::Error>(()) });
/// group.spawn("invoice", async { panic!("no paper") });
/// let error = group.wait().await.unwrap_err();
/// assert_eq!(error.to_string(), "task `invoice` panicked: no paper");
/// # }
/// ```
///
/// The tasks are tokio tasks and run from the moment they are spawned. None of them outlives the group: a caller that drops
/// the group, or the future that waits for it, cancels all tasks.
pub struct Group<T, E> {
    running: JoinSet<(usize, Result<T, TaskError<E>>)>,
    /// By the order of `spawn`.
    tasks: Vec<Task>,
    shared: Arc<Shared>,
}

struct Task {
    name: Cow<'static, str>,
    /// One that was never started has none.
    id: Option<Id>,
}

/// Room for so many tasks is made with the first one: a group has a few.
pub(super) const A_FEW: usize = 8;

impl<T, E> Default for Group<T, E> {
    fn default() -> Self {
        Group { running: JoinSet::new(), tasks: Vec::new(), shared: Arc::default() }
    }
}

impl<T, E> Group<T, E> {
    /// Creates a group without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the first failure cancel all other tasks at once. A task that is spawned after the failure never starts.
    ///
    /// By default all tasks run to their end, and the group returns the first failure then.
    #[must_use]
    pub fn cancel_on_error(self) -> Self {
        self.shared.cancel_on_error.store(true, Ordering::Release);
        self
    }

    /// Calls `callback` for every panic, with the name of the task, inside that task and at once. Only the first callback that
    /// is set counts.
    #[must_use]
    pub fn on_panic(self, callback: impl Fn(&str, &Panic) + Send + Sync + 'static) -> Self {
        let _ = self.shared.on_panic.set(Box::new(callback));
        self
    }

    /// Returns the number of tasks that were spawned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns true if no task was spawned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

impl<T: Send + 'static, E: Send + 'static> Group<T, E> {
    /// Starts a task. Errors and log lines contain its name.
    ///
    /// # Panics
    /// Panics outside of a tokio runtime.
    pub fn spawn<F>(&mut self, name: impl Into<Cow<'static, str>>, task: F)
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        if self.tasks.is_empty() {
            self.tasks.reserve(A_FEW);
        }
        let (index, name) = (self.tasks.len(), name.into());
        self.tasks.push(Task { name: name.clone(), id: None });
        let shared = Arc::clone(&self.shared);
        let watched = async move {
            let result = flatten(Caught::new(task).await);
            if let Err(error) = &result {
                if let Some(panic) = error.panicked() {
                    shared.panicked(&name, panic);
                }
                shared.failed();
            }
            (index, result)
        };
        // Under the lock, so that a failure in this moment finds the handle of this task or keeps it from being started.
        let mut siblings = self.shared.siblings();
        if !siblings.cancelled {
            let handle = self.running.spawn(in_caller_span(watched));
            self.tasks[index].id = Some(handle.id());
            siblings.push(handle);
        }
    }

    /// Waits for all tasks and returns the name and the result of each, in the order of `spawn`. A task that a failure has
    /// cancelled is [`Cancelled`](TaskError::Cancelled).
    pub async fn results(mut self) -> Vec<(Cow<'static, str>, Result<T, TaskError<E>>)> {
        let (results, _) = self.join().await;
        self.tasks.into_iter().map(|task| task.name).zip(results).collect()
    }

    /// Waits for all tasks and returns their values in the order of `spawn`.
    ///
    /// # Errors
    /// Returns the failure that happened first.
    pub async fn values(mut self) -> Result<Vec<T>, GroupError<E>> {
        let (mut results, first) = self.join().await;
        match first {
            None => Ok(results.into_iter().flatten().collect()),
            Some(index) => {
                let task = self.tasks.swap_remove(index).name;
                let cause = results.swap_remove(index).err().unwrap_or(TaskError::Cancelled);
                Err(GroupError { task, cause })
            }
        }
    }

    /// Every result, by the order of `spawn`, and which was the first failure.
    async fn join(&mut self) -> (Vec<Result<T, TaskError<E>>>, Option<usize>) {
        // Whoever leaves no result was cancelled.
        let mut results: Vec<_> = self.tasks.iter().map(|_| Err(TaskError::Cancelled)).collect();
        let mut first = None;
        while let Some(joined) = self.running.join_next().await {
            let index = match joined {
                Ok((index, result)) => {
                    results[index] = result;
                    index
                }
                Err(error) => {
                    let index = self.tasks.iter().position(|task| task.id == Some(error.id()));
                    let index = index.expect("every task that runs is in the list");
                    results[index] = Err(error.into());
                    index
                }
            };
            // One that was cancelled by a sibling may be seen before the sibling, and is not what went wrong.
            let cancelled = |index: usize| matches!(results[index], Err(TaskError::Cancelled));
            if results[index].is_err() && first.is_none_or(|first| cancelled(first) && !cancelled(index)) {
                first = Some(index);
            }
        }
        (results, first)
    }
}

impl<E: Send + 'static> Group<(), E> {
    /// Waits for all tasks.
    ///
    /// # Errors
    /// Returns the failure that happened first.
    pub async fn wait(self) -> Result<(), GroupError<E>> {
        self.values().await.map(drop)
    }
}

impl<T, E> fmt::Debug for Group<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.tasks.iter().map(|task| &task.name).collect();
        f.debug_struct("Group").field("tasks", &names).finish_non_exhaustive()
    }
}
