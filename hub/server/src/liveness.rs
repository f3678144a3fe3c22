//! Whether the process gets on with its work, and an end to it if it does not.
//!
//! A handling that never gives its thread back (a loop without an end, a lock that nobody opens) is invisible from inside: nobody
//! panics, and timeouts need a thread to run on. So a plain thread looks at the runtime from outside. A thread of the runtime
//! that has something to do and has not come back from it for too long stands still, and so does the main task if its timer
//! does not beat. Then the process writes one line and aborts, its supervisor starts it again, and who was in hand counts a
//! crash: see `seawall_hub_core::domain::delivery::suspects`.
//!
//! # A machine that sleeps
//! A laptop that is closed, SIGSTOP or a debugger stop this thread like all others. So what counts is not how late it is, but how
//! often this thread has looked and found nothing moved: between two looks no more time passes than it meant to wait, twice
//! over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use seawall::Clock;
use seawall_hub_core::sync::RwLock;
use tokio::runtime::{Handle, RuntimeMetrics};

/// How long a thread may stand still before the process ends, unless somebody says otherwise.
pub const USUAL: Duration = Duration::from_secs(60);
/// The main task shows so often that it is alive.
const BEAT_EVERY: Duration = Duration::from_millis(200);
/// So often it is looked at, at least.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Whether the process gets on with its work.
#[derive(Debug)]
pub struct Liveness {
    beats: AtomicU64,
    /// For how long the one that has stood still the longest has, in milliseconds.
    still: AtomicU64,
    limit: RwLock<Duration>,
}

/// The thread that looks. It ends with this.
#[derive(Debug)]
pub struct Watchdog {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Default for Liveness {
    fn default() -> Self {
        Liveness { beats: AtomicU64::new(0), still: AtomicU64::new(0), limit: RwLock::new(USUAL) }
    }
}

impl Liveness {
    /// Beats, for as long as it is polled by the main task.
    pub async fn beat(&self) {
        loop {
            tokio::time::sleep(BEAT_EVERY).await;
            self.beats.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether everything moves. It says so long before the process is ended.
    #[must_use]
    pub fn is_well(&self) -> bool {
        let limit = *self.limit.read();
        Duration::from_millis(self.still.load(Ordering::Relaxed)) < limit / 2
    }

    /// Looks at the runtime that this is called in. When something has stood still for as long as the limit says, `end` is called
    /// once; never, if the limit is zero.
    pub fn watch(
        self: &Arc<Self>,
        limit: Duration,
        clock: Clock,
        end: impl FnOnce(Duration) + Send + 'static,
    ) -> std::io::Result<Watchdog> {
        let end = Some(end).filter(|_| !limit.is_zero());
        let limit = if limit.is_zero() { USUAL } else { limit };
        *self.limit.write() = limit;
        let over = Arc::new(AtomicBool::new(false));
        let (pulse, stop, metrics) = (self.clone(), over.clone(), Handle::current().metrics());
        let thread = std::thread::Builder::new()
            .name("seawall watchdog".into())
            .spawn(move || pulse.look_for_ever(&metrics, (limit, &clock), &stop, end))?;
        Ok(Watchdog { over, thread: Some(thread) })
    }

    fn look_for_ever(
        &self,
        metrics: &RuntimeMetrics,
        (limit, clock): (Duration, &Clock),
        over: &AtomicBool,
        mut end: Option<impl FnOnce(Duration)>,
    ) {
        let every = (limit / 8).min(LOOK_EVERY);
        let (mut signs, mut before) = (Heartbeats::default(), clock.precise());
        loop {
            std::thread::park_timeout(every);
            if over.load(Ordering::Acquire) {
                return;
            }
            let now = clock.precise();
            let passed = now.since(before).min(every * 2);
            before = now;
            let still = signs.look(self.signs(metrics), passed);
            self.still.store(u64::try_from(still.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
            if still >= limit
                && let Some(end) = end.take()
            {
                end(still);
            }
        }
    }

    /// The main task, and each thread of the runtime.
    fn signs(&self, metrics: &RuntimeMetrics) -> Vec<Heartbeat> {
        let main = Heartbeat { moved: self.beats.load(Ordering::Relaxed), rests: false };
        let threads = (0..metrics.num_workers()).map(|thread| {
            let parked = metrics.worker_park_unpark_count(thread);
            let busy = metrics.worker_total_busy_duration(thread);
            // It is told when it goes to rest and when it gets up, and every so many tasks if it never rests.
            let moved = parked.wrapping_add(u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX));
            Heartbeat { moved, rests: parked % 2 == 1 }
        });
        std::iter::once(main).chain(threads).collect()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It looks at atomics and ends. If it panicked, there is nobody to tell.
            let _ = thread.join();
        }
    }
}

/// What is seen of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Heartbeat {
    /// Another number, if it has moved.
    moved: u64,
    /// It has nothing to do.
    rests: bool,
}

/// What was seen the last time, and for how long it has been so.
#[derive(Debug, Default)]
struct Heartbeats(Vec<(Heartbeat, Duration)>);

impl Heartbeats {
    /// Looks again after so long; for how long the one that has stood still the longest has.
    fn look(&mut self, seen: Vec<Heartbeat>, passed: Duration) -> Duration {
        let mut before = std::mem::take(&mut self.0).into_iter();
        self.0 = seen
            .into_iter()
            .map(|sign| match before.next() {
                Some((same, still)) if same == sign && !sign.rests => (sign, still + passed),
                _ => (sign, Duration::ZERO),
            })
            .collect();
        self.0.iter().map(|(_, still)| *still).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn sign(moved: u64, rests: bool) -> Heartbeat {
        Heartbeat { moved, rests }
    }

    /// HUB-9. Trap "a hung thread looks like an idle one": who rests or moves is well; who does neither stands still, and only the
    /// time counts that somebody has looked.
    #[test]
    fn hub_9_who_neither_moves_nor_rests_stands_still() {
        let second = Duration::from_secs(1);
        let mut signs = Heartbeats::default();
        assert_eq!(signs.look(vec![sign(0, false), sign(0, true)], second), Duration::ZERO, "the first look");
        assert_eq!(signs.look(vec![sign(1, false), sign(0, true)], second), Duration::ZERO, "moves, rests");
        assert_eq!(signs.look(vec![sign(2, false), sign(1, false)], second), Duration::ZERO, "got up");
        assert_eq!(signs.look(vec![sign(3, false), sign(1, false)], second), second);
        assert_eq!(signs.look(vec![sign(4, false), sign(1, false)], second), second * 2, "stands still");
        assert_eq!(signs.look(vec![sign(5, false), sign(2, false)], second), Duration::ZERO, "came back");
    }

    fn beating(work: impl FnOnce(Arc<Liveness>) + Send + 'static, limit: Duration) -> Option<Duration> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let (ended, told) = sync_channel(1);
        let (pulse, working) = (Arc::new(Liveness::default()), Arc::new(tokio::sync::Notify::new()));
        runtime.block_on(async {
            let _watchdog =
                pulse.watch(limit, Clock::system(), move |still| ended.send(still).unwrap()).unwrap();
            let (of, done) = (pulse.clone(), working.clone());
            let mut tasks = tokio::task::JoinSet::new();
            tasks.spawn(async move {
                work(of);
                done.notify_one();
            });
            tokio::select! {
                () = pulse.beat() => {}
                () = working.notified() => {}
            }
        });
        told.try_recv().ok()
    }

    /// HUB-9: one thread that does not come back is noticed, while the others go on, and long before the end it is said.
    #[test]
    fn hub_9_a_thread_that_does_not_come_back_is_noticed() {
        let limit = Duration::from_millis(400);
        let (clock, patience) = (Clock::system(), Duration::from_secs(30));
        let waits = move |pulse: Arc<Liveness>| {
            let began = clock.precise();
            let mut unwell = false;
            while clock.precise().since(began) < patience {
                unwell |= !pulse.is_well();
                if unwell && pulse.still.load(Ordering::Relaxed) >= 400 {
                    std::thread::park_timeout(Duration::from_millis(100));
                    return;
                }
            }
        };
        assert!(beating(waits, limit).is_some_and(|still| still >= limit));
    }

    /// HUB-9: an idle runtime and a busy one are well.
    #[test]
    fn hub_9_rest_and_work_are_well() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
        let pulse = Arc::new(Liveness::default());
        runtime.block_on(async {
            let watchdog = pulse
                .watch(Duration::from_secs(2), Clock::system(), |still| unreachable!("{still:?}"))
                .unwrap();
            let busy = async {
                let mut tasks = tokio::task::JoinSet::new();
                for _ in 0..4 {
                    tasks.spawn(async {
                        for _ in 0..200_000 {
                            tokio::task::yield_now().await;
                        }
                    });
                }
                tasks.join_all().await;
                tokio::time::sleep(Duration::from_millis(2_500)).await;
            };
            tokio::select! {
                () = busy => {}
                () = pulse.beat() => {}
            }
            assert!(pulse.is_well());
            drop(watchdog);
        });
    }
}
