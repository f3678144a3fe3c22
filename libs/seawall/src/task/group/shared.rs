//! What the tasks of a group have in common.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::task::AbortHandle;

use super::policy::A_FEW;
use crate::task::Panic;
use crate::task::panic::catch;

/// What is told of every panic.
pub(super) type Callback = Box<dyn Fn(&str, &Panic) + Send + Sync>;

#[derive(Default)]
pub(super) struct Shared {
    pub(super) on_panic: OnceLock<Callback>,
    pub(super) cancel_on_error: AtomicBool,
    siblings: Mutex<Siblings>,
}

#[derive(Default)]
pub(super) struct Siblings {
    /// One has failed and the others were cancelled: whoever comes later is not started.
    pub(super) cancelled: bool,
    handles: Vec<AbortHandle>,
}

impl Siblings {
    pub(super) fn push(&mut self, handle: AbortHandle) {
        if self.handles.is_empty() {
            self.handles.reserve(A_FEW);
        }
        self.handles.push(handle);
    }
}

impl Shared {
    pub(super) fn siblings(&self) -> MutexGuard<'_, Siblings> {
        self.siblings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task has failed. Runs in that task, so that siblings are cancelled now and not when somebody waits for them.
    pub(super) fn failed(&self) {
        if !self.cancel_on_error.load(Ordering::Acquire) {
            return;
        }
        let handles = {
            let mut siblings = self.siblings();
            siblings.cancelled = true;
            std::mem::take(&mut siblings.handles)
        };
        // The one that failed is among them. It is about to end, and a task that ends keeps its result.
        handles.iter().for_each(AbortHandle::abort);
    }

    /// A task has panicked. Runs in that task.
    pub(super) fn panicked(&self, task: &str, panic: &Panic) {
        log(task, panic);
        if let Some(callback) = self.on_panic.get() {
            // The callback's own panic must not hide the one that it was told of.
            let _ = catch(|| callback(task, panic));
        }
    }
}

#[cfg(feature = "tracing")]
fn log(task: &str, panic: &Panic) {
    let backtrace = panic.backtrace().map(ToString::to_string);
    tracing::error!(
        target: "seawall",
        traceId = crate::telemetry::current_trace_id(),
        cause = panic.message(),
        location = panic.location(),
        backtrace,
        "[group][{task}] Panicked!"
    );
}

#[cfg(not(feature = "tracing"))]
fn log(_: &str, _: &Panic) {}
