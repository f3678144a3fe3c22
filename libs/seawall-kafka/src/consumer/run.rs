//! Starts records, and ends in an orderly way.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::Consumer;
use rdkafka::error::KafkaError;
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::commit::{commit, commit_until_stopped};
use super::error::KafkaConsumerError;
use super::handover::Commit;
use super::lanes::Lane;
use super::poll::{Client, Hooks, poll_until_stopped};
use super::state::{Phase, Shared, Start};
use super::task::{Job, Outcome, RecordTask};

/// How long a record waits whose mark could not be written, or whose task broke.
const AGAIN_WAIT: Duration = Duration::from_millis(500);

/// How long the client may take to leave the group at the end. A group whose coordinator is away can't be left.
const LEAVE_LIMIT: Duration = Duration::from_secs(10);

/// A consumer that runs: the threads, and the records that are being processed.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) task: Arc<dyn RecordTask>,
    /// The thread owns the client, because dropping it blocks until the group is left.
    client: Weak<Client>,
    running: JoinSet<Outcome>,
    jobs: HashMap<Id, (Lane, Arc<Job>, AbortHandle)>,
    ended: oneshot::Receiver<Result<(), KafkaError>>,
}

impl Engine {
    /// Joins the group and starts the threads.
    pub(crate) fn start(
        config: &ClientConfig,
        hooks: Hooks,
        task: Arc<dyn RecordTask>,
    ) -> Result<Engine, KafkaError> {
        let shared = hooks.shared.clone();
        let client: Arc<Client> = Arc::new(config.create_with_context(hooks)?);
        let topics: Vec<&str> = shared.topics.iter().map(String::as_str).collect();
        client.subscribe(&topics)?;
        let (sender, ended) = oneshot::channel();
        let (weak, state) = (Arc::downgrade(&client), shared.clone());
        let threads = thread::Builder::new().name("kafka-consumer".to_owned());
        let spawned = threads.spawn(move || drop(sender.send(run_threads(client, &state))));
        spawned
            .map_err(|error| KafkaError::ClientCreation(format!("no thread for the consumer: {error}")))?;
        Ok(Engine { shared, task, client: weak, running: JoinSet::new(), jobs: HashMap::new(), ended })
    }

    /// Processes records until `shutdown`, then ends what runs within `stop_wait`, commits and leaves the group.
    pub(crate) async fn run(
        mut self,
        shutdown: impl Future<Output = ()>,
        stop_wait: Duration,
    ) -> Result<(), KafkaConsumerError> {
        let mut shutdown = pin!(shutdown);
        let result = loop {
            self.start_records();
            let due = self.shared.next_due();
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
                Some(done) = self.running.join_next_with_id() => {
                    self.end_record(done);
                    while let Some(done) = self.running.try_join_next_with_id() {
                        self.end_record(done);
                    }
                }
                () = self.shared.wake.notified() => self.cancel_revoked(),
                () = wait => {}
            }
        };
        if let Some(Err(error)) = result {
            return Err(KafkaConsumerError::of_client("the consumer ended", error));
        }
        self.stop(stop_wait).await;
        Ok(())
    }

    fn start_records(&mut self) {
        while let Some(Start { lane, job, alone }) = self.shared.next() {
            let (task, started) = (self.task.clone(), job.clone());
            let handle = match alone {
                None => self.running.spawn(task.run(started)),
                Some(mark) => {
                    let (client, shared) = (self.client.clone(), self.shared.clone());
                    self.running.spawn(run_alone(client, shared, task, started, mark))
                }
            };
            self.jobs.insert(handle.id(), (lane, job, handle));
        }
    }

    fn end_record(&mut self, done: Result<(Id, Outcome), tokio::task::JoinError>) {
        let (id, outcome) = match done {
            Ok(done) => done,
            // Handlers that panic are caught further in; what broke here has not run to its end.
            Err(error) => (error.id(), Outcome::Again(AGAIN_WAIT)),
        };
        if let Some((lane, job, _)) = self.jobs.remove(&id) {
            self.shared.end(lane, job, outcome);
        }
    }

    /// Ends records of partitions that others have by now.
    fn cancel_revoked(&mut self) {
        let cancelled = self.shared.take_cancelled();
        if cancelled.is_empty() {
            return;
        }
        for (_, job, handle) in self.jobs.values() {
            if cancelled.contains(&job.assignment) {
                handle.abort();
            }
        }
    }

    async fn stop(mut self, stop_wait: Duration) {
        self.shared.set_phase(Phase::Stopping);
        let finish = async {
            loop {
                self.start_records();
                match self.running.join_next_with_id().await {
                    Some(done) => self.end_record(done),
                    None => break,
                }
            }
        };
        if tokio::time::timeout(stop_wait, finish).await.is_err() {
            self.running.shutdown().await;
        }
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

/// Writes the mark of a record that may kill the process, then runs it.
async fn run_alone(
    client: Weak<Client>,
    shared: Arc<Shared>,
    task: Arc<dyn RecordTask>,
    job: Arc<Job>,
    mark: String,
) -> Outcome {
    let first = Commit { place: job.place, offset: job.offset, mark };
    let write = move || client.upgrade().map(|client| commit(&client, &shared, || vec![first]));
    match tokio::task::spawn_blocking(write).await {
        Ok(Some(Ok(()))) => task.run(job).await,
        _ => Outcome::Again(AGAIN_WAIT),
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
