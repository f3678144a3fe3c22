//! What passes between the task that talks to the server and the workers that run handlers.
//!
//! # Why do workers not acknowledge by themselves?
//! The task that was woken last runs next on the thread that woke it, and tokio lets no other thread take it over. A worker that
//! acknowledged a message would wake the connection. If its next handler blocked the thread, the connection would stand still,
//! and all other handlers with it. So a worker puts down what it has ended, and wakes one task: the crew. Then it gives way
//! once, and so does the crew. With that the crew waits where every thread can take it over, and finds all that was ended in the
//! meantime, which it acknowledges in one go.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use seawall_dist::messaging::Disposition;
use tokio::sync::{Notify, Semaphore};

use super::work::Job;

/// The messages that wait for a worker, and those whose handler has ended.
#[derive(Debug)]
pub(super) struct MessageQueue {
    waiting: Mutex<WaitingMessages>,
    /// A permit for each message that waits.
    count: Semaphore,
    ended: Mutex<Vec<EndedMessage>>,
    has_ended: Notify,
}

/// A message with what its handler made of it.
pub(super) type EndedMessage = (Job, Disposition);

#[derive(Debug, Default)]
struct WaitingMessages {
    jobs: VecDeque<Job>,
    is_closed: bool,
}

impl MessageQueue {
    pub(super) fn new() -> Self {
        MessageQueue {
            waiting: Mutex::default(),
            count: Semaphore::new(0),
            ended: Mutex::default(),
            has_ended: Notify::new(),
        }
    }

    /// Adds messages at the end.
    pub(super) fn put(&self, jobs: impl Iterator<Item = Job>) {
        let mut waiting = lock(&self.waiting);
        let before = waiting.jobs.len();
        waiting.jobs.extend(jobs);
        let count = waiting.jobs.len() - before;
        drop(waiting);
        self.count.add_permits(count);
    }

    /// Adds a message that waited elsewhere. Returns it if the queue is closed.
    pub(super) fn put_back(&self, job: Job) -> Option<Job> {
        let mut waiting = lock(&self.waiting);
        if waiting.is_closed {
            return Some(job);
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.count.add_permits(1);
        None
    }

    /// Waits for a message to work on; `None` when the queue is closed.
    pub(super) async fn next(&self) -> Option<Job> {
        loop {
            self.count.acquire().await.ok()?.forget();
            let job = lock(&self.waiting).jobs.pop_front();
            if job.is_some() {
                return job;
            }
        }
    }

    /// Closes the queue, and returns the messages that no worker has begun with.
    pub(super) fn close(&self) -> Vec<Job> {
        let mut waiting = lock(&self.waiting);
        waiting.is_closed = true;
        let rest = std::mem::take(&mut waiting.jobs);
        drop(waiting);
        self.count.close();
        rest.into()
    }

    /// Puts down a message whose handler has ended.
    pub(super) async fn end(&self, job: Job, disposition: Disposition) {
        let is_first = {
            let mut ended = lock(&self.ended);
            ended.push((job, disposition));
            ended.len() == 1
        };
        if is_first {
            self.has_ended.notify_one();
            give_way().await;
        }
    }

    /// Waits until a handler has ended, and takes what is there in exchange for an empty list. The messages stay here if the
    /// future is dropped.
    pub(super) async fn ended(&self, empty: &mut Vec<EndedMessage>) {
        while lock(&self.ended).is_empty() {
            self.has_ended.notified().await;
        }
        give_way().await;
        std::mem::swap(&mut *lock(&self.ended), empty);
    }

    pub(super) fn take_ended(&self) -> Vec<EndedMessage> {
        std::mem::take(&mut *lock(&self.ended))
    }

    pub(super) fn has_ended(&self) -> bool {
        !lock(&self.ended).is_empty()
    }
}

/// Lets the other tasks of this thread run first. In contrast to `yield_now` of tokio, another thread may take the task over.
async fn give_way() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if has_waited {
            return Poll::Ready(());
        }
        has_waited = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
