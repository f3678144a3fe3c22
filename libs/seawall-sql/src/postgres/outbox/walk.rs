//! How a claim finds the lanes that have rows.
//!
//! Normally it walks through the index of ready rows, from lane to lane. Rows that were published drop out of the index as soon as
//! PostgreSQL can remove them. While a transaction is held open anywhere in the database, it can't, and the walk wades through all
//! that was published since. So after some walks in a row that took long, claims go the short way: they look only at known lanes, and only from
//! the time on before which the last walk found nothing. Walks go on beside the claims, for a tenth of the time at most, and find what
//! the short way misses: rows whose transaction was open for longer than a second, and lanes that are used for the first time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use seawall::{Clock, Tick};
use sqlx::postgres::PgPool;

use super::statements;

/// Walks that take longer make claims go the short way. Without dead rows a walk takes a millisecond or two.
pub const WALK_LIMIT: Duration = Duration::from_millis(20);
/// The number of slow walks in a row after which claims go the short way: one may be slow because the machine is busy.
const SLOW_WALKS: u32 = 5;
/// Walks beside the claims take one part in this many of the time.
const WALK_SHARE: u32 = 10;
/// The longest pause between two walks.
const WALK_PAUSE_MAX: Duration = Duration::from_secs(5);

/// How a claim looks for lanes that have rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LaneSearch {
    Walk,
    KnownOnly,
}

/// What the claims of a process know about walks. Clones share it.
#[derive(Clone)]
pub(super) struct Walks {
    pub(super) limit: Duration,
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// When the next walk may begin; `None` while walks are quick and every claim is one.
    next: Option<Tick>,
    is_under_way: bool,
    /// Walks in a row that took longer than the limit.
    slow_walks: u32,
}

impl Walks {
    pub(super) fn new() -> Self {
        Walks { limit: WALK_LIMIT, clock: Clock::system(), state: Arc::default() }
    }

    /// How the next claim looks. Begins a walk beside it if one is due.
    pub(super) fn next_search(&self, pool: &PgPool) -> LaneSearch {
        let mut state = self.state();
        let Some(next) = state.next else { return LaneSearch::Walk };
        if !state.is_under_way && self.clock.precise() >= next {
            state.is_under_way = true;
            drop(state);
            let (walk, pool) = (BackgroundWalk(self.clone()), pool.clone());
            #[expect(
                clippy::disallowed_methods,
                reason = "it is one statement, and the claim does not wait for it"
            )]
            tokio::spawn(async move { walk.run(&pool).await });
        }
        LaneSearch::KnownOnly
    }

    /// Notes how long a walk took.
    pub(super) fn took(&self, time: Duration) {
        let pause = time.saturating_mul(WALK_SHARE).min(WALK_PAUSE_MAX);
        let mut state = self.state();
        state.slow_walks = if time > self.limit { state.slow_walks.saturating_add(1) } else { 0 };
        state.next = (state.slow_walks >= SLOW_WALKS).then(|| self.clock.precise() + pause);
    }

    pub(super) fn now(&self) -> Tick {
        self.clock.precise()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A walk beside the claims.
struct BackgroundWalk(Walks);

impl BackgroundWalk {
    async fn run(&self, pool: &PgPool) {
        let began = self.0.now();
        let walked = walk(pool).await;
        let took = self.0.now().since(began);
        // A database that fails is asked again after a pause; the claims tell of it.
        self.0.took(if walked.is_ok() { took } else { took.max(self.0.limit.saturating_mul(2)) });
    }
}

/// Walks, and notes what it found.
async fn walk(pool: &PgPool) -> Result<(), sqlx::Error> {
    let found: Vec<(Option<i32>, i64)> =
        sqlx::query_as(statements::WALK).persistent(false).fetch_all(pool).await?;
    let others = found.iter().find(|(lane, _)| lane.is_none()).map_or(0, |(_, micros)| *micros);
    let (lanes, micros): (Vec<i32>, Vec<i64>) =
        found.iter().filter_map(|(lane, micros)| Some(((*lane)?, *micros))).unzip();
    sqlx::query(statements::NOTE_WALK).bind(lanes).bind(micros).bind(others).execute(pool).await.map(drop)
}

/// Also if the runtime ends in the middle of it.
impl Drop for BackgroundWalk {
    fn drop(&mut self) {
        self.0.state().is_under_way = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seawall::millis;

    /// CRD-3: a walk that is slow once, because the machine is busy, changes nothing; dead rows make all of them slow; and the first
    /// quick one ends it.
    #[test]
    fn crd_3_claims_go_the_short_way_while_all_walks_are_slow() {
        let walks = Walks::new();
        let is_short_after = |times: &[u64]| {
            times.iter().for_each(|&time| walks.took(millis(time)));
            walks.state().next.is_some()
        };
        assert!(!is_short_after(&[1_000, 1, 30, 30, 30, 30, 20]));
        assert!(!is_short_after(&[30, 30, 30, 30]));
        assert!(is_short_after(&[21]));
        assert!(is_short_after(&[9_000]));
        assert!(!is_short_after(&[2]));
        assert!(!is_short_after(&[30]));
    }
}
