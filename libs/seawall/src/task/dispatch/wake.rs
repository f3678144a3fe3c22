//! Which workers can go on, and who has to be told.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use super::bits::{Bits, WORD};

/// The workers that were woken since somebody looked, and the task that looks.
///
/// Each worker has a waker of its own, so that a wake-up polls one of them and not all. A wake-up while the task is
/// looking costs one atomic operation; only one that finds it asleep wakes it.
pub(super) struct Wakeups {
    woken: Box<[AtomicU64]>,
    /// Whether the task waits to be woken, with its waker below. Set after the waker is put there, and before the last look
    /// at `woken`; whoever wakes sets `woken` first and looks here afterwards. All of it is sequentially consistent, so one
    /// of the two always sees the other and no wake-up is lost.
    asleep: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wakeups {
    pub(super) fn new(workers: usize) -> Arc<Self> {
        let woken = std::iter::repeat_with(AtomicU64::default).take(workers.div_ceil(WORD)).collect();
        Arc::new(Wakeups { woken, asleep: AtomicBool::new(false), task: Mutex::new(None) })
    }

    /// The waker of one worker.
    pub(super) fn waker(self: &Arc<Self>, worker: usize) -> Waker {
        Waker::from(Arc::new(WorkerWaker { wakeups: Arc::clone(self), worker }))
    }

    /// Takes those that were woken.
    pub(super) fn take(&self, into: &mut Bits) {
        for (word, into) in self.woken.iter().zip(into.words_mut()) {
            // A plain look first: most of the time there is nothing, and a look leaves the line where it is.
            if word.load(Ordering::SeqCst) != 0 {
                *into |= word.swap(0, Ordering::SeqCst);
            }
        }
    }

    /// Says who is to be woken. False if somebody was woken meanwhile: look again.
    pub(super) fn sleep(&self, waker: &Waker) -> bool {
        {
            let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
            match &mut *task {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
        self.asleep.store(true, Ordering::SeqCst);
        let quiet = self.woken.iter().all(|word| word.load(Ordering::SeqCst) == 0);
        if !quiet {
            self.asleep.store(false, Ordering::SeqCst);
        }
        quiet
    }

    /// Nobody needs to be woken: the task is looking.
    pub(super) fn awake(&self) {
        if self.asleep.load(Ordering::SeqCst) {
            self.asleep.store(false, Ordering::SeqCst);
        }
    }

    fn wake(&self, worker: usize) {
        let bit = 1 << (worker % WORD);
        self.woken[worker / WORD].fetch_or(bit, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) && self.asleep.swap(false, Ordering::SeqCst) {
            let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some(task) = task {
                task.wake();
            }
        }
    }
}

struct WorkerWaker {
    wakeups: Arc<Wakeups>,
    worker: usize,
}

impl Wake for WorkerWaker {
    fn wake(self: Arc<Self>) {
        self.wakeups.wake(self.worker);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wakeups.wake(self.worker);
    }
}
