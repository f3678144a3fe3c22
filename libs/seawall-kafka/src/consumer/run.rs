//! Starts records, and ends in an orderly way.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::commit::{commit, commit_until_stopped};
use super::error::KafkaConsumerError;
use super::poll::{Client, Hooks, poll_until_stopped};
use super::state::{Phase, Shared};
use super::task::RecordTask;
use super::worker::Worker;

/// How long the client may take to leave the group at the end. A group whose coordinator is away can't be left.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// A consumer that runs: the threads, and the workers that process records.
pub(crate) struct Engine {
    shared: Arc<Shared>,
    worker: Worker,
    workers: JoinSet<()>,
    ended: oneshot::Receiver<Result<(), KafkaError>>,
}

impl Engine {
    /// Joins the group and starts the threads.
    pub(crate) fn start(
        config: &ClientConfig,
        hooks: Hooks,
        task: Arc<RecordTask>,
    ) -> Result<Engine, KafkaError> {
        let shared = hooks.shared.clone();
        let client: Arc<Client> = Arc::new(config.create_with_context(hooks)?);
        let topics: Vec<&str> = shared.topics.iter().map(|topic| &**topic).collect();
        client.subscribe(&topics)?;
        let (sender, ended) = oneshot::channel();
        // The thread owns the client, because dropping it blocks until the group is left.
        let worker = Worker { shared: shared.clone(), task, client: Arc::downgrade(&client) };
        let state = shared.clone();
        let threads = thread::Builder::new().name("kafka-consumer".to_owned());
        let spawned = threads.spawn(move || drop(sender.send(run_threads(client, &state))));
        spawned
            .map_err(|error| KafkaError::ClientCreation(format!("no thread for the consumer: {error}")))?;
        let mut workers = JoinSet::new();
        for _ in 0..shared.concurrency {
            workers.spawn(worker.clone().run());
        }
        Ok(Engine { shared, worker, workers, ended })
    }

    /// Processes records until `shutdown`, then ends what runs within `stop_wait`, commits and leaves the group.
    pub(crate) async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
        stop_wait: Duration,
    ) -> Result<(), KafkaConsumerError> {
        let mut shutdown = pin!(shutdown);
        let result = loop {
            let due = self.shared.next_due();
            self.shared.wake_worker();
            let clock = self.shared.clock.clone();
            let wait = async move {
                match due {
                    Some(due) => tokio::time::sleep(due.since(clock.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                ended = &mut self.ended => break Some(ended.unwrap_or(Err(KafkaError::Canceled))),
                () = &mut shutdown => break None,
                Some(_) = self.workers.join_next() => self.replace_worker(),
                () = self.shared.looked_after.notified() => {}
                () = wait => {}
            }
        };
        if let Some(Err(error)) = result {
            return Err(KafkaConsumerError::of_client("the consumer ended", error));
        }
        self.stop(stop_wait).await;
        Ok(())
    }

    /// Starts another worker in place of one that broke. Its record has been given back.
    fn replace_worker(&mut self) {
        self.workers.spawn(self.worker.clone().run());
    }

    async fn stop(mut self, stop_wait: Duration) {
        self.shared.set_phase(Phase::Stopping);
        let finish = async {
            while !self.shared.is_drained() {
                tokio::select! {
                    () = self.shared.looked_after.notified() => {}
                    Some(_) = self.workers.join_next() => self.replace_worker(),
                }
            }
        };
        let _ = tokio::time::timeout(stop_wait, finish).await;
        self.workers.shutdown().await;
        self.shared.set_phase(Phase::Stopped);
        let (never, nothing) = oneshot::channel();
        let ended = std::mem::replace(&mut self.ended, nothing);
        drop(never);
        drop(self);
        let _ = tokio::time::timeout(LEAVE_LIMIT, ended).await;
    }
}

/// A consumer whose future is dropped stops too. What runs is ended, and what is done is committed by the thread.
impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.set_phase(Phase::Stopped);
    }
}

/// Polls and commits until the consumer stops, commits what is done, and leaves the group.
fn run_threads(client: Arc<Client>, shared: &Arc<Shared>) -> Result<(), KafkaError> {
    let (committer, state) = (client.clone(), shared.clone());
    let threads = thread::Builder::new().name("kafka-commits".to_owned());
    let commits = threads
        .spawn(move || commit_until_stopped(&committer, &state))
        .map_err(|error| KafkaError::ClientCreation(format!("no thread for commits: {error}")))?;
    let result = poll_until_stopped(&client, shared);
    shared.set_phase(Phase::Stopped);
    let _ = commits.join();
    if let Err(error) = commit(&client, shared, || shared.last_commits(None)) {
        client.context().events.log().warn("Commit", "The last commit failed.", &error);
    }
    drop(client);
    result
}
