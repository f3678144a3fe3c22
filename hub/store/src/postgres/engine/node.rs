//! The process as a node of the database: its epoch, and the proof that it lives.
//!
//! # Why a row and a lock?
//! A node writes every half second until when it counts as live. The lock of its session is free as soon as the server knows that
//! the connection is gone, which is at once when the process was killed: whoever comes next need not wait for the rest of its
//! time. Both are judged by the clock of the database, and by nobody else's.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime};

use seawall::{Clock, Tick};
use seawall_hub_core::sync::Lock;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::Error;

use super::locks::{self, NAMESPACE};
use super::schema::lock_start;
use super::session::{Session, Timeline};
use super::writer::{begin, commit, roll_back};
use super::{fault, schema};
use crate::OpenError;
use crate::postgres::write::applier::{ApplyError, NodeId, UnitApplier};
use crate::sql::sql;
use crate::steps;

/// How often a start looks whether the node before it is gone.
const LOOK: Duration = Duration::from_millis(100);

/// The nodes that count as live, what speaks against it, and until when. A node whose lock is free is judged a second after its
/// last beat; one that still has it, when its time is over.
const LIVE: &str = sql!(
    "SELECT epoch, name, until, until < clock_timestamp() AS is_over,
        until < clock_timestamp() + interval '2 s' AS missed_a_beat,
        extract(epoch FROM clock_timestamp() - until + interval '3 s')::float8 AS seen
    FROM nodes WHERE state = " NODE_LIVE " ORDER BY epoch"
);

/// The writers of a process: one for what comes and goes all the time, one for what people change.
pub(in crate::postgres) const SLOTS: [i16; 2] = [0, 1];

/// A node that may be live.
struct Rival {
    epoch: i64,
    name: String,
    until: SystemTime,
    /// How long ago it was seen, in seconds.
    seen: f64,
}

/// The longest time that a unit waits for a database that does not answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest time that a unit waits for an answer while the database answers others: its own limit for statements ends them.
const PATIENCE_WITH_LIFE: Duration = Duration::from_secs(12);
/// How long ago the last beat may have begun while the database counts as answering.
const IN_TOUCH: Duration = Duration::from_millis(1_500);
/// How often whoever waits for an answer looks whether the database answers others.
const WAIT: Duration = Duration::from_millis(100);

/// The node that this process is.
pub(in crate::postgres) struct HubNode {
    state: Lock<NodeState>,
    /// Asks for another epoch, because the server is on another timeline.
    moved: Notify,
    clock: Clock,
}

struct NodeState {
    id: NodeId,
    timeline: Timeline,
    /// The epochs of this process, the newest last.
    epochs: Vec<i64>,
    /// When the last beat began that succeeded.
    beat: Tick,
    /// How long that beat took.
    round_trip: Duration,
}

/// How well the database answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::postgres) struct Contact {
    /// False if the last beats had no answer.
    pub(in crate::postgres) is_there: bool,
    /// How long ago the last beat began that succeeded.
    pub(in crate::postgres) beat_age: Duration,
    /// How long that beat took.
    pub(in crate::postgres) round_trip: Duration,
}

impl HubNode {
    pub(in crate::postgres) fn new(id: NodeId, timeline: Timeline, clock: Clock) -> Self {
        let (epochs, beat) = (vec![id.epoch.cast_signed()], clock.precise());
        let state = NodeState { id, timeline, epochs, beat, round_trip: Duration::ZERO };
        HubNode { state: Lock::new(state), moved: Notify::new(), clock }
    }

    pub(in crate::postgres) fn id(&self) -> NodeId {
        self.state.lock().id
    }

    /// Whether the node has an epoch on this timeline.
    pub(in crate::postgres) fn is_on(&self, timeline: Timeline) -> bool {
        self.state.lock().timeline == timeline
    }

    /// Returns the time, for beats.
    pub(in crate::postgres) fn now(&self) -> Tick {
        self.clock.precise()
    }

    /// Records that a beat has succeeded that began then.
    pub(in crate::postgres) fn beaten(&self, began: Tick) {
        let round_trip = self.now().since(began);
        let mut state = self.state.lock();
        (state.beat, state.round_trip) = (began, round_trip);
    }

    /// Returns how well the database answers. Nobody is asked for this.
    pub(in crate::postgres) fn contact(&self) -> Contact {
        let (beat, round_trip) = {
            let state = self.state.lock();
            (state.beat, state.round_trip)
        };
        let beat_age = self.now().since(beat);
        Contact { is_there: beat_age < IN_TOUCH, beat_age, round_trip }
    }

    /// Waits until somebody has found the server on another timeline.
    pub(in crate::postgres) async fn moved(&self) {
        self.moved.notified().await;
    }

    fn epochs(&self) -> Vec<i64> {
        self.state.lock().epochs.clone()
    }

    /// Asks for an epoch on the timeline that the server is on now.
    pub(in crate::postgres) fn rejoin(&self) {
        self.moved.notify_one();
    }

    /// Waits for an answer: two seconds since that time, and longer only while the database answers the beats of the node.
    pub(in crate::postgres) async fn answer<F: Future>(&self, since: Tick, answer: F) -> Option<F::Output> {
        let mut answer = pin!(answer);
        loop {
            match timeout(WAIT, &mut answer).await {
                Ok(answer) => return Some(answer),
                Err(_) if self.is_over(since) => return None,
                Err(_) => {}
            }
        }
    }

    /// Whether the time of a unit is over that waits since then.
    pub(in crate::postgres) fn is_over(&self, since: Tick) -> bool {
        let now = self.clock.precise();
        let waited = now.since(since);
        let in_touch = now.since(self.state.lock().beat) < IN_TOUCH;
        waited >= PATIENCE_WITH_LIFE || waited >= PATIENCE && !in_touch
    }
}

/// Makes the process a node: refuses while another one lives, takes over from those that are gone, and takes a new epoch.
pub(in crate::postgres) async fn join(
    session: &Session,
    name: &str,
    data_folder: &Path,
) -> Result<NodeId, OpenError> {
    schema::migrate(session).await?;
    wait_for_rivals(session).await?;
    let joined = take_over(session, name, data_folder).await;
    let failed = |error: &Error| OpenError(format!("can't join the database: {}", fault::text(error)));
    match joined {
        Ok(id) => commit(session).await.map(|()| id).map_err(|error| failed(&error)),
        Err(ApplyError::Refused(error)) => Err(OpenError(format!("can't join the database: {error}"))),
        Err(ApplyError::Database(error)) => Err(failed(&error)),
    }
}

/// Begins the transaction in which no other node is live. One that was killed is waited for; one that beats is a reason to refuse.
pub(in crate::postgres) async fn wait_for_rivals(session: &Session) -> Result<(), OpenError> {
    let failed = |error: Error| OpenError(format!("can't join the database: {}", fault::text(&error)));
    let mut first_seen: HashMap<i64, SystemTime> = HashMap::new();
    loop {
        lock_start(session).await?;
        let rivals = rivals(session).await.map_err(failed)?;
        if rivals.is_empty() {
            return Ok(());
        }
        roll_back(session).await.map_err(failed)?;
        for rival in rivals {
            let before = *first_seen.entry(rival.epoch).or_insert(rival.until);
            if rival.until > before {
                return Err(OpenError(format!(
                    "this database is in use by the hub `{}` (epoch {}, seen {:.1} s ago); stop it first, or use another \
                     database",
                    rival.name,
                    rival.epoch,
                    rival.seen.max(0.0)
                )));
            }
        }
        sleep(LOOK).await;
    }
}

/// Returns the nodes that may still live.
async fn rivals(session: &Session) -> Result<Vec<Rival>, Error> {
    let mut rivals = Vec::new();
    for row in session.rows(LIVE, &[]).await? {
        let (epoch, is_over, missed): (i64, bool, bool) =
            (row.get("epoch"), row.get("is_over"), row.get("missed_a_beat"));
        let free = "SELECT pg_try_advisory_xact_lock($1, $2)";
        let free = session.find(free, &[&NAMESPACE, &locks::of_node(epoch)]).await?;
        let is_free = free.is_some_and(|row| row.get(0));
        let is_gone = is_over || is_free && missed;
        if !is_gone {
            let (name, until, seen) = (row.get("name"), row.get("until"), row.get("seen"));
            rivals.push(Rival { epoch, name, until, seen });
        }
    }
    Ok(rivals)
}

/// Declares all other nodes dead, gives back what they had claimed, and takes an epoch.
///
/// Without its row in `writers` a node commits nothing any more, whatever it believes. Taking that away waits for its last
/// transaction, so what is given back is all that it had.
async fn take_over(session: &Session, name: &str, data_folder: &Path) -> Result<NodeId, ApplyError> {
    session.run("SET LOCAL statement_timeout = 0", &[]).await?;
    session.run("SET LOCAL lock_timeout = '5s'", &[]).await?;
    session.run(sql!("UPDATE nodes SET state = " NODE_DEAD " WHERE state = " NODE_LIVE), &[]).await?;
    session.run("DELETE FROM writers", &[]).await?;
    let era = era(session).await?;
    let insert = "INSERT INTO nodes (epoch, name, state, until, reclaimed)
        VALUES (nextval('node_epochs'), $1, 0, clock_timestamp() + interval '3 s', false) RETURNING epoch";
    let row = session.find(insert, &[&name]).await?;
    let epoch: i64 = row.map_or(0, |row| row.get(0));
    session.find("SELECT pg_try_advisory_lock($1, $2)", &[&NAMESPACE, &locks::of_node(epoch)]).await?;
    let id = NodeId { epoch: epoch.cast_unsigned(), era };
    let gone = session
        .find(sql!("SELECT 1 FROM nodes WHERE state <> " NODE_LIVE " AND NOT reclaimed LIMIT 1"), &[])
        .await?;
    if gone.is_some() {
        UnitApplier::new(session, id).reclaim(&steps::left(data_folder)).await?;
    }
    add_writers(session, epoch).await?;
    Ok(id)
}

/// Adds the rows in which the writers of an epoch count their transactions.
async fn add_writers(session: &Session, epoch: i64) -> Result<(), Error> {
    let insert =
        "INSERT INTO writers (epoch, slot, number) SELECT $1, slot, 0 FROM unnest($2::smallint[]) AS slot";
    session.run(insert, &[&epoch, &SLOTS.as_slice()]).await.map(drop)
}

/// Returns the era of a timeline. One that was never seen gets a new one.
async fn era(session: &Session) -> Result<u64, Error> {
    let Timeline { system, number } = session.info().timeline;
    let insert = "INSERT INTO eras (system, timeline, era)
        VALUES ($1, $2, ('x' || left(md5(gen_random_uuid()::text), 16))::bit(64)::bigint) ON CONFLICT DO NOTHING";
    session.run(insert, &[&system, &number]).await?;
    let era = "SELECT era FROM eras WHERE system = $1 AND timeline = $2";
    let row = session.find(era, &[&system, &number]).await?;
    Ok(row.map_or(0, |row| row.get::<_, i64>(0).cast_unsigned()))
}

/// Shows that the node lives. Returns false if another process has declared it dead.
pub(in crate::postgres) async fn beat(session: &Session, node: &HubNode) -> Result<bool, Error> {
    let epochs = node.epochs();
    let update = sql!("UPDATE nodes SET until = clock_timestamp() + interval '3 s' WHERE epoch = ANY($1) AND state <> " NODE_DEAD);
    let beaten = session.run(update, &[&epochs]).await?;
    Ok(usize::try_from(beaten).is_ok_and(|beaten| beaten == epochs.len()))
}

/// Says that the time of the node is over.
pub(in crate::postgres) async fn leave(session: &Session, node: &HubNode) -> Result<(), Error> {
    let update =
        sql!("UPDATE nodes SET until = clock_timestamp() WHERE epoch = ANY($1) AND state <> " NODE_DEAD);
    session.run(update, &[&node.epochs()]).await.map(drop)
}

/// Goes on with a connection after the one before was lost. Takes another epoch if the server is on another timeline. An error
/// without a reason means that it has to be tried again.
pub(in crate::postgres) async fn return_to(
    session: &Session,
    node: &HubNode,
    name: &str,
) -> Result<(), Option<String>> {
    for epoch in node.epochs() {
        let lock =
            session.find("SELECT pg_try_advisory_lock($1, $2)", &[&NAMESPACE, &locks::of_node(epoch)]).await;
        // The server may not have noticed yet that the connection before is gone, which has the lock then.
        lock.map_err(|_| None)?;
    }
    if node.is_on(session.info().timeline) {
        return Ok(());
    }
    let moved = move_to_timeline(session, node, name).await;
    moved.map_err(|_| None)
}

/// Takes an epoch and an era on the timeline that the server is on now. What the node has claimed under the epochs before stays
/// claimed under them.
async fn move_to_timeline(session: &Session, node: &HubNode, name: &str) -> Result<(), Error> {
    begin(session).await?;
    let era = era(session).await?;
    let least = node.epochs().into_iter().max().unwrap_or(0) + 1;
    let epoch = "SELECT setval('node_epochs', greatest(nextval('node_epochs'), $1))";
    let epoch: i64 = session.find(epoch, &[&least]).await?.map_or(least, |row| row.get(0));
    let insert = "INSERT INTO nodes (epoch, name, state, until, reclaimed)
        VALUES ($1, $2, 0, clock_timestamp() + interval '3 s', false)";
    session.run(insert, &[&epoch, &name]).await?;
    session.find("SELECT pg_try_advisory_lock($1, $2)", &[&NAMESPACE, &locks::of_node(epoch)]).await?;
    add_writers(session, epoch).await?;
    // A standby that was promoted may not know the last of them; then it knows nothing that was claimed under it either.
    let known = session.rows("SELECT epoch FROM nodes WHERE epoch = ANY($1)", &[&node.epochs()]).await?;
    commit(session).await?;
    let mut state = node.state.lock();
    state.id = NodeId { epoch: epoch.cast_unsigned(), era };
    state.timeline = session.info().timeline;
    state.epochs = known.iter().map(|row| row.get(0)).chain([epoch]).collect();
    Ok(())
}
