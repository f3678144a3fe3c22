//! The thread that receives records and takes part in the group.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::Message as _;
use rdkafka::Statistics;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::commit::{commit, list_of};
use super::handover::Commit;
use super::marker::Marker;
use super::state::{Phase, Shared};
use super::task::Place;
use crate::client::ClientEvents;
use crate::fault::{is_fatal, is_refused_credential};
use crate::record::RawRecord;

/// How long a look for the next record takes at most. Resumed partitions and an orderly stop wait for it.
const POLL: Duration = Duration::from_millis(50);

/// How long the thread waits for room in a full partition before it pauses it. A pause throws away what the client has fetched
/// ahead, which a short wait spares; all the while no other partition is served.
const FULL_WAIT: Duration = Duration::from_millis(200);

/// How many records are received before workers hear of them.
const BATCH_MAX: usize = 64;

/// How long the cluster may take to say what was committed before.
const COMMITTED_TIMEOUT: Duration = Duration::from_secs(5);

/// What the client tells while it is polled.
pub(crate) struct Hooks {
    pub(crate) shared: Arc<Shared>,
    pub(crate) events: Arc<ClientEvents>,
    pub(crate) revoke_wait: Duration,
    /// Only the thread that polls has it, in its loop or in a hook.
    pub(crate) batch: Mutex<Batch>,
    #[cfg(feature = "metrics")]
    pub(crate) group: String,
}

/// Records of one partition that were received, and that no worker knows of. It spares locks and wake-ups, which cost more than
/// receiving does.
#[derive(Default)]
pub(crate) struct Batch {
    place: Place,
    /// How many records the batch may have.
    room: usize,
    records: Vec<RawRecord>,
}

/// The client of a consumer.
pub(crate) type Client = BaseConsumer<Hooks>;

impl ClientContext for Hooks {
    fn log(&self, level: RDKafkaLogLevel, _facility: &str, text: &str) {
        self.events.log().library(level, text);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        self.events.failed(error, reason);
    }

    fn stats(&self, statistics: Statistics) {
        #[cfg(feature = "metrics")]
        crate::metrics::lag(&self.group, &statistics);
        drop(statistics);
    }
}

impl ConsumerContext for Hooks {
    fn pre_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        self.hand_over();
        match rebalance {
            Rebalance::Assign(list) => {
                self.events.connected();
                self.shared.assign(self.places(list));
                self.count("assigned", list);
                self.events.log().info("Rebalance", "Partitions assigned.", &text_of(list));
            }
            Rebalance::Revoke(list) => {
                self.revoke(client, &self.places(list));
                self.count("revoked", list);
                self.events.log().info("Rebalance", "Partitions revoked.", &text_of(list));
            }
            Rebalance::Error(error) => self.events.log().warn("Rebalance", "Rebalance failed.", error),
        }
    }

    fn post_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        // A partition that was paused when it was taken away is still paused when it comes back, and would stay so for ever.
        if let Rebalance::Assign(list) = rebalance {
            let _ = client.resume(list);
        }
    }
}

impl Hooks {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands the batch over to the workers, and wakes as many as can run at once; each wakes a next one when it has to wait.
    fn hand_over(&self) {
        let mut batch = self.batch();
        let (place, count) = (batch.place, batch.records.len());
        self.shared.receive(place, batch.records.drain(..));
        for _ in 0..count.min(self.shared.parallel) {
            self.shared.ready.notify_one();
        }
    }

    fn places(&self, list: &TopicPartitionList) -> Vec<Place> {
        let elements = list.elements();
        let place = |element: &rdkafka::topic_partition_list::TopicPartitionListElem<'_>| {
            Some((self.shared.topic_index(element.topic())?, element.partition()))
        };
        elements.iter().filter_map(place).collect()
    }

    #[cfg_attr(
        not(feature = "metrics"),
        expect(clippy::unused_self, reason = "there are counters with the feature")
    )]
    fn count(&self, kind: &'static str, list: &TopicPartitionList) {
        let _ = (kind, list);
        #[cfg(feature = "metrics")]
        crate::metrics::rebalanced(&self.group, kind, list.count());
    }

    /// Gives up partitions: drops what waits, lets what runs end for a while, and commits what is done.
    fn revoke(&self, client: &Client, places: &[Place]) {
        self.shared.begin_revoke(places);
        // Partitions that were lost have another owner already, and a commit would be refused.
        if !client.assignment_lost() {
            self.shared.wait(self.revoke_wait, |state| Shared::is_idle(state, places));
            if let Err(error) = commit(client, &self.shared, || self.shared.last_commits(Some(places))) {
                self.events.log().warn("Commit", "The last commit of revoked partitions failed.", &error);
            }
        }
        self.shared.forget(places);
    }
}

fn text_of(list: &TopicPartitionList) -> String {
    let elements = list.elements();
    let parts = elements.iter().map(|element| format!("{}/{}", element.topic(), element.partition()));
    parts.collect::<Vec<_>>().join(",")
}

/// Receives records until the consumer stops. Returns the error that ended it.
pub(crate) fn poll_until_stopped(client: &Client, shared: &Shared) -> Result<(), KafkaError> {
    let hooks = client.context();
    let (mut has_received, mut is_waiting) = (false, true);
    while !is_waiting || shared.phase() != Phase::Stopped {
        if is_waiting {
            resume(client, shared);
        }
        // Workers get what there is before this thread waits for more.
        let polled = client.poll(if is_waiting { POLL } else { Duration::ZERO });
        is_waiting = !matches!(polled, Some(Ok(_)));
        match polled {
            Some(Ok(record)) => {
                has_received = true;
                is_waiting = receive(client, shared, &record);
            }
            None => hooks.hand_over(),
            Some(Err(error)) => {
                hooks.hand_over();
                receive_error(client, error, has_received)?;
            }
        }
    }
    Ok(())
}

/// Reports an error, and returns it if no further record can come.
fn receive_error(client: &Client, error: KafkaError, has_received: bool) -> Result<(), KafkaError> {
    let events = &client.context().events;
    events.failed(error.clone(), "while receiving records");
    // Credentials may be exchanged while a consumer runs; one that was never let in has wrong ones.
    if is_fatal(&error) || (is_refused_credential(&error) && !has_received) {
        return Err(error);
    }
    if error.rdkafka_error_code() == Some(RDKafkaErrorCode::PollExceeded) {
        events.log().error("Poll", "The group took the partitions away: polled too late.", &error);
    }
    Ok(())
}

/// Takes a record, and returns whether the workers have everything. Waits for room if its partition is full.
fn receive(client: &Client, shared: &Shared, record: &BorrowedMessage<'_>) -> bool {
    let (hooks, Some(place)) = (client.context(), place_of(shared, record)) else { return false };
    let is_other = |batch: &Batch| batch.records.is_empty() || batch.place != place;
    let mut deaths = 0;
    if is_other(&hooks.batch()) {
        hooks.hand_over();
        if shared.is_new(place) {
            deaths = begin_partition(client, shared, place, record.offset());
        }
        let mut batch = hooks.batch();
        (batch.place, batch.room) = (place, shared.room_of(place).min(BATCH_MAX));
    }
    let mut batch = hooks.batch();
    batch.records.push(RawRecord::of(record, deaths));
    if batch.records.len() < batch.room {
        return false;
    }
    drop(batch);
    hooks.hand_over();
    wait_for_room(client, shared, place);
    true
}

fn place_of(shared: &Shared, record: &BorrowedMessage<'_>) -> Option<Place> {
    Some((shared.topic_index(record.topic())?, record.partition()))
}

/// Waits until the partition has room, and pauses it if that takes too long.
fn wait_for_room(client: &Client, shared: &Shared, place: Place) {
    // Records of retry topics wait until they are due, which may take long.
    let wait = if place.0 == 0 { FULL_WAIT } else { Duration::ZERO };
    let has_room = shared.wait(wait, |state| !shared.is_full(state, place) || state.phase != Phase::Running);
    if !has_room && shared.pause(place) {
        let _ = client.pause(&places_list(shared, &[place]));
    }
}

/// Looks at the mark beside the committed offset, and leaves one. Returns how many consumers died with this first record.
///
/// Without an answer of the cluster the partition begins without a mark: that loses no record, it only forgets a death.
fn begin_partition(client: &Client, shared: &Shared, place: Place, offset: i64) -> u32 {
    let found = committed_mark(client, shared, place);
    let (committed, mark) = found.unwrap_or((offset, String::new()));
    let marker = Marker::begin(&mark, committed.max(0), shared.window as i64);
    shared.begin_partition(place, marker);
    let first = Commit { place, offset, mark: marker.text() };
    if let Err(error) = commit(client, shared, || vec![first]) {
        client.context().events.log().warn("Commit", "The first commit of a partition failed.", &error);
    }
    // The record that ran alone may be gone from the topic by now, and the first one that is left is innocent.
    if committed == offset { marker.deaths() } else { 0 }
}

fn committed_mark(client: &Client, shared: &Shared, place: Place) -> Option<(i64, String)> {
    let list = places_list(shared, &[place]);
    let list = client.committed_offsets(list, COMMITTED_TIMEOUT).ok()?;
    let elements = list.elements();
    let element = elements.first()?;
    let Offset::Offset(offset) = element.offset() else { return None };
    // The library panics over a text of somebody else that is not UTF-8.
    let mark = catch_unwind(AssertUnwindSafe(|| element.metadata().to_owned())).unwrap_or_default();
    Some((offset, mark))
}

fn resume(client: &Client, shared: &Shared) {
    let places = shared.take_resumable();
    if !places.is_empty() {
        let _ = client.resume(&places_list(shared, &places));
    }
}

fn places_list(shared: &Shared, places: &[Place]) -> TopicPartitionList {
    let commits: Vec<Commit> =
        places.iter().map(|place| Commit { place: *place, offset: -1, mark: String::new() }).collect();
    list_of(shared, &commits)
}
