//! An outbox in memory, for tests and for programs without a database.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use seawall::{Clock, Tick};

use super::store::{
    Batch, BatchLease, BatchRequest, LANES_PER_TOPIC, OutboxRow, OutboxStore, OutcomeKind, Retention,
    RowOutcome, Stats, batch_limit, lane_of,
};
use crate::{Message, Millis, StoreFuture};

/// An outbox in memory. Clones share it. It is lost with the process.
#[derive(Clone, Debug, Default)]
pub struct MemoryOutbox {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Ids are given when a message is enqueued, not when its transaction commits, as a sequence of a database does.
    last_id: i64,
    last_token: i64,
    rows: BTreeMap<i64, Row>,
    leases: HashMap<i32, LaneLease>,
}

#[derive(Debug)]
struct Row {
    row: OutboxRow,
    lane: i32,
    status: Status,
    due_at: Tick,
    stored_at: Tick,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Pending,
    Published(Tick),
    Dead,
}

#[derive(Clone, Copy, Debug)]
struct LaneLease {
    token: i64,
    until: Tick,
    served_at: Tick,
}

impl MemoryOutbox {
    /// Creates an empty outbox.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty outbox whose time is that of the clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        MemoryOutbox { clock, state: Arc::default() }
    }

    /// Begins a transaction: what is enqueued in it is there when it commits, and never if it is dropped.
    #[must_use]
    pub fn begin(&self) -> MemoryTransaction {
        MemoryTransaction { outbox: self.clone(), rows: Vec::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transaction of a [`MemoryOutbox`].
#[derive(Debug)]
pub struct MemoryTransaction {
    outbox: MemoryOutbox,
    rows: Vec<(i64, Message)>,
}

impl MemoryTransaction {
    /// Writes a message.
    pub fn enqueue(&mut self, message: &Message) {
        let mut state = self.outbox.state();
        state.last_id += 1;
        self.rows.push((state.last_id, message.clone()));
    }

    /// Makes all messages visible at once.
    pub fn commit(self) {
        let now = self.outbox.clock.now();
        let wall = self.outbox.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        let created_at = Millis(0) + wall;
        let mut state = self.outbox.state();
        for (id, message) in self.rows {
            let lane = lane_of(message.topic(), message.aggregate_id());
            let row = OutboxRow::new(id, message, created_at);
            state.rows.insert(id, Row { row, lane, status: Status::Pending, due_at: now, stored_at: now });
        }
    }
}

impl State {
    /// The places of pending rows that may be published now, by their ids: due, and the first of their aggregate.
    fn ready(&self, now: Tick) -> Vec<(i64, i32)> {
        let mut held_up: HashSet<(&str, &str)> = HashSet::new();
        let mut ready = Vec::new();
        for (&id, row) in self.rows.iter().filter(|(_, row)| row.status == Status::Pending) {
            let key = (row.row.message.topic(), row.row.message.aggregate_id());
            if row.due_at > now {
                held_up.insert(key);
            }
            if !held_up.contains(&key) {
                ready.push((id, row.lane));
            }
        }
        ready
    }

    fn is_free(&self, lane: i32, now: Tick) -> bool {
        self.leases.get(&lane).is_none_or(|lease| lease.until <= now)
    }

    fn claim(&mut self, request: &BatchRequest, now: Tick) -> Option<Batch> {
        let ready: Vec<(i64, i32)> =
            self.ready(now).into_iter().filter(|&(_, lane)| self.is_free(lane, now)).collect();
        let served_at = |lane: i32| self.leases.get(&lane).map(|lease| lease.served_at);
        let topic = ready.iter().min_by_key(|&&(id, lane)| (served_at(lane), id))?.1 / LANES_PER_TOPIC;
        let mut lanes: Vec<i32> =
            ready.iter().map(|&(_, lane)| lane).filter(|lane| lane / LANES_PER_TOPIC == topic).collect();
        lanes.sort_by_key(|&lane| (served_at(lane), lane));
        lanes.dedup();
        lanes.truncate(request.lanes_max as usize);
        self.last_token += 1;
        let lease = LaneLease { token: self.last_token, until: now + request.lease, served_at: now };
        self.leases.extend(lanes.iter().map(|&lane| (lane, lease)));
        let (mut rows, mut lost) = (Vec::new(), 0);
        for (id, _) in ready.into_iter().filter(|(_, lane)| lanes.contains(lane)) {
            let Some(row) = self.rows.get_mut(&id).map(|row| &mut row.row) else { continue };
            lost = lost.max(row.attempts - row.failures);
            if rows.len() >= batch_limit(request.rows_max, lost) as usize && !rows.is_empty() {
                break;
            }
            row.attempts += 1;
            rows.push(row.clone());
        }
        Some(Batch::new(BatchLease::new(lease.token, lanes), rows))
    }

    fn holds(&self, lease: &BatchLease, lane: i32) -> bool {
        self.leases.get(&lane).is_some_and(|held| held.token == lease.token)
    }

    fn record(
        &mut self,
        lease: &BatchLease,
        outcomes: &[RowOutcome],
        retention: Retention,
        now: Tick,
    ) -> Vec<i64> {
        let mut recorded = Vec::new();
        for outcome in outcomes {
            let pending = self.rows.get(&outcome.id).filter(|row| row.status == Status::Pending);
            if !pending.is_some_and(|row| self.holds(lease, row.lane)) {
                continue;
            }
            recorded.push(outcome.id);
            if outcome.kind == OutcomeKind::Published && retention == Retention::Delete {
                self.rows.remove(&outcome.id);
            } else if let Some(row) = self.rows.get_mut(&outcome.id) {
                row.apply(&outcome.kind, now);
            }
        }
        for held in self.leases.values_mut().filter(|held| held.token == lease.token) {
            (held.token, held.until) = (0, Tick::ZERO);
        }
        recorded
    }

    fn dead(&mut self, ids: &[i64]) -> Vec<&mut Row> {
        let is_one = |(id, row): &(&i64, &mut Row)| ids.contains(id) && row.status == Status::Dead;
        self.rows.iter_mut().filter(is_one).map(|(_, row)| row).collect()
    }
}

impl Row {
    fn apply(&mut self, kind: &OutcomeKind, now: Tick) {
        match kind {
            OutcomeKind::Published => self.status = Status::Published(now),
            OutcomeKind::Failed { delay, error, outage } => {
                self.row.failures += 1;
                self.row.outages += u32::from(*outage);
                self.row.last_error = Some(error.clone());
                self.due_at = now + *delay;
            }
            OutcomeKind::Returned { delay } => {
                self.row.attempts = self.row.attempts.saturating_sub(1);
                self.due_at = now + *delay;
            }
            OutcomeKind::Dead { error } => {
                self.row.last_error = Some(error.clone());
                self.status = Status::Dead;
            }
        }
    }
}

impl OutboxStore for MemoryOutbox {
    fn store<'a>(&'a self, messages: &'a [Message]) -> StoreFuture<'a, ()> {
        Box::pin(async {
            let mut transaction = self.begin();
            messages.iter().for_each(|message| transaction.enqueue(message));
            transaction.commit();
            Ok(())
        })
    }

    fn claim<'a>(&'a self, request: &'a BatchRequest) -> StoreFuture<'a, Option<Batch>> {
        Box::pin(async { Ok(self.state().claim(request, self.clock.now())) })
    }

    fn renew<'a>(&'a self, lease: &'a BatchLease, duration: Duration) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (mut state, now) = (self.state(), self.clock.now());
            let held = lease.lanes.iter().all(|&lane| state.holds(lease, lane));
            for lane in lease.lanes.iter().filter(|_| held) {
                if let Some(lane) = state.leases.get_mut(lane) {
                    lane.until = now + duration;
                }
            }
            Ok(held)
        })
    }

    fn record<'a>(
        &'a self,
        lease: &'a BatchLease,
        outcomes: &'a [RowOutcome],
        retention: Retention,
    ) -> StoreFuture<'a, Vec<i64>> {
        Box::pin(async move { Ok(self.state().record(lease, outcomes, retention, self.clock.now())) })
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        Box::pin(async {
            let (state, now) = (self.state(), self.clock.now());
            let pending = || state.rows.values().filter(|row| row.status == Status::Pending);
            let lag = pending().map(|row| now.since(row.stored_at)).max().unwrap_or_default();
            let dead = state.rows.values().filter(|row| row.status == Status::Dead).count();
            Ok(Stats::new(pending().count() as u64, lag, dead as u64))
        })
    }

    fn list_dead(&self, after: i64, limit: u32) -> StoreFuture<'_, Vec<OutboxRow>> {
        Box::pin(async move {
            let state = self.state();
            let dead =
                state.rows.range(after.saturating_add(1)..).filter(|(_, row)| row.status == Status::Dead);
            Ok(dead.take(limit as usize).map(|(_, row)| row.row.clone()).collect())
        })
    }

    fn release<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        Box::pin(async {
            let (now, mut state) = (self.clock.now(), self.state());
            let mut rows = state.dead(ids);
            for row in &mut rows {
                (row.status, row.due_at) = (Status::Pending, now);
                (row.row.attempts, row.row.failures, row.row.outages) = (0, 0, 0);
            }
            Ok(rows.len() as u64)
        })
    }

    fn discard<'a>(&'a self, ids: &'a [i64]) -> StoreFuture<'a, u64> {
        Box::pin(async {
            let mut state = self.state();
            let before = state.rows.len();
            state.rows.retain(|id, row| !(ids.contains(id) && row.status == Status::Dead));
            Ok((before - state.rows.len()) as u64)
        })
    }

    fn clean_up(&self, age: Duration, limit: u32) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let (now, mut state) = (self.clock.now(), self.state());
            let is_old = |row: &Row| matches!(row.status, Status::Published(at) if now.since(at) > age);
            let old: Vec<i64> = state
                .rows
                .iter()
                .filter(|(_, row)| is_old(row))
                .map(|(&id, _)| id)
                .take(limit as usize)
                .collect();
            old.iter().for_each(|id| drop(state.rows.remove(id)));
            Ok(old.len() as u64)
        })
    }
}
