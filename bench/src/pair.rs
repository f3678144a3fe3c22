//! Two threads that share what a row calls, and their throughput together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::body::Body;
use crate::op::Kind;

/// What two threads reached together in one round.
#[derive(Clone, Copy, Debug)]
pub struct Together {
    /// Million calls a second, the sum of both.
    pub mops: f64,
    /// The smaller share of its time that one of the two had a core. Where it is far below one, either the machine was
    /// busy and the other ran alone, or the row makes its callers sleep.
    pub core_share: f64,
}

/// The calling thread and one more, which lives as long as the run: each keeps its runtime and whatever a library keeps
/// per thread.
pub struct Pair {
    orders: SyncSender<Order>,
    shares: Receiver<Share>,
}

struct Order {
    body: Arc<dyn Body>,
    kind: Kind,
    chunk: u64,
    length: Duration,
    gate: Arc<AtomicUsize>,
}

struct Share {
    calls_per_second: f64,
    core_share: f64,
}

impl Pair {
    pub fn start() -> Self {
        let (orders, inbox) = sync_channel::<Order>(1);
        let (outbox, shares) = sync_channel(1);
        let work = move || {
            // Both ends are dropped with the pair, which ends the thread.
            while let Ok(order) = inbox.recv() {
                if outbox.send(order.work()).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new()
            .name("second".to_owned())
            .spawn(work)
            .expect("a benchmark needs its second thread");
        Self { orders, shares }
    }

    /// Lets both threads call for `length`, looking at the clock every `chunk` calls.
    pub fn run(&self, body: &Arc<dyn Body>, kind: Kind, chunk: u64, length: Duration) -> Together {
        let gate = Arc::new(AtomicUsize::new(0));
        let order = || Order { body: Arc::clone(body), kind, chunk, length, gate: Arc::clone(&gate) };
        self.orders.send(order()).expect("the second thread outlives the pair");
        let first = order().work();
        let second = self.shares.recv().expect("the second thread answers every order");
        Together {
            mops: (first.calls_per_second + second.calls_per_second) / 1e6,
            core_share: first.core_share.min(second.core_share),
        }
    }
}

impl Order {
    fn work(&self) -> Share {
        // Wakes up what sleeps per thread before the clock runs.
        self.body.run(self.kind, self.chunk);

        self.gate.fetch_add(1, Ordering::AcqRel);
        while self.gate.load(Ordering::Acquire) < 2 {
            std::hint::spin_loop();
        }

        let core = core_time();
        let start = Instant::now();
        let mut calls = 0;
        while start.elapsed() < self.length {
            self.body.run(self.kind, self.chunk);
            calls += self.chunk;
        }
        let elapsed = start.elapsed().as_secs_f64();
        Share {
            calls_per_second: calls as f64 / elapsed,
            core_share: (core_time() - core).as_secs_f64() / elapsed,
        }
    }
}

fn core_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("below a second"))
}
