//! The workers of a running consumer, and what is done with the messages that they have ended.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::AckKind;
use seawall_dist::messaging::Disposition;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::queue::{EndedMessage, MessageQueue};
use super::work::{Job, Worker};
use crate::pull::PullLoop;
use crate::settle::{settle, settle_now};

/// As many workers as handlers may run at the same time. A worker lives as long as the consumer runs.
pub(super) struct Crew {
    worker: Arc<Worker>,
    queue: Arc<MessageQueue>,
    workers: JoinSet<()>,
    /// What takes its time, and is no work of a handler: a dead letter, a message that waits, a confirmed acknowledgement.
    errands: JoinSet<()>,
    /// An empty list whose memory is used again and again.
    ended: Vec<EndedMessage>,
    stopped: watch::Receiver<bool>,
}

impl Crew {
    pub(super) fn new(worker: &Arc<Worker>, stopped: watch::Receiver<bool>) -> Self {
        let (queue, workers, errands) = (Arc::new(MessageQueue::new()), JoinSet::new(), JoinSet::new());
        let mut crew = Crew { worker: worker.clone(), queue, workers, errands, ended: Vec::new(), stopped };
        for _ in 0..worker.concurrency {
            crew.add_worker();
        }
        crew
    }

    pub(super) fn queue(&self) -> Arc<MessageQueue> {
        self.queue.clone()
    }

    /// Sees to the messages that workers have ended.
    pub(super) async fn run(&mut self) -> Infallible {
        loop {
            if self.step().await {
                // Panics of handlers are dispositions, so that a worker dies only of a bug. The server delivers its message again.
                self.add_worker();
            }
        }
    }

    /// Gives back what no handler has begun with, and waits for the others. Returns how many were given back, and how many had
    /// to be given up because their handlers took too long.
    pub(super) async fn stop(mut self, pull: PullLoop<'_>, limit: Duration) -> (usize, usize) {
        let mut jobs = self.queue.close();
        jobs.extend(pull.close(limit).await.into_iter().filter_map(|pulled| self.worker.job(pulled)));
        let returned = jobs.len();
        for job in jobs {
            self.settle(job, AckKind::Nak(None));
        }
        let all = async {
            while !self.workers.is_empty() || !self.errands.is_empty() || self.queue.has_ended() {
                self.step().await;
            }
        };
        if timeout(limit, all).await.is_ok() {
            return (returned, 0);
        }
        (returned, self.abort().await)
    }

    /// Ends the handlers that run, and gives their messages back.
    async fn abort(&mut self) -> usize {
        let replies = self.worker.held.replies();
        self.workers.shutdown().await;
        for (job, disposition) in self.queue.take_ended() {
            self.finish(job, disposition);
        }
        self.errands.shutdown().await;
        let connection = &self.worker.connection;
        let naks = async {
            for reply in &replies {
                let nak = AckKind::Nak(None);
                let _ = settle(connection, reply, nak, false, connection.request_timeout()).await;
            }
        };
        let _ = timeout(connection.request_timeout(), naks).await;
        replies.len()
    }

    fn add_worker(&mut self) {
        self.workers.spawn(self.worker.clone().work(self.queue.clone()));
    }

    /// Waits until something has ended. Returns true if that was a worker.
    async fn step(&mut self) -> bool {
        tokio::select! {
            biased;
            () = self.queue.ended(&mut self.ended) => {
                let mut ended = std::mem::take(&mut self.ended);
                for (job, disposition) in ended.drain(..) {
                    self.finish(job, disposition);
                }
                self.ended = ended;
                false
            }
            Some(_) = self.errands.join_next() => false,
            Some(_) = self.workers.join_next() => true,
        }
    }

    /// Does with a message what its handler made of it.
    fn finish(&mut self, job: Job, disposition: Disposition) {
        let (worker, stopped) = (&self.worker, &self.stopped);
        match disposition {
            Disposition::Acknowledge => {
                worker.failures.take(job.sequence);
                self.settle(job, AckKind::Ack);
            }
            Disposition::Retry { after, failure } => {
                worker.failures.remember(job.sequence, failure);
                self.settle(job, AckKind::Nak(Some(after)));
            }
            Disposition::Release { after } => {
                let errand = worker.clone().release(job, after, self.queue.clone(), stopped.clone());
                self.errands.spawn(errand);
            }
            Disposition::DeadLetter { reason, failure } => {
                let errand = worker.clone().bury(job, reason, failure, stopped.clone());
                self.errands.spawn(errand);
            }
            _ => self.settle(job, AckKind::Nak(None)),
        }
    }

    /// Tells the server what became of a message, here if that takes no time.
    fn settle(&mut self, job: Job, kind: AckKind) {
        let worker = &self.worker;
        let is_settled = !worker.is_confirmed(kind)
            && worker.connection.open_now().is_some_and(|open| settle_now(&open, &job.reply, kind));
        if !is_settled {
            let worker = worker.clone();
            self.errands.spawn(async move { worker.settle(&job, kind).await });
        }
    }
}
