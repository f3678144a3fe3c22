//! How the calls of a row are run: one loop per row, compiled for its types, behind a pointer that is followed once per
//! loop and never per call.

use std::cell::OnceCell;
use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::task::unconstrained;

use crate::op::Kind;

/// The calls of one row.
pub trait Body: Send + Sync {
    /// Runs `calls` calls one after another on this thread, and says how long they took.
    fn run(&self, kind: Kind, calls: u64) -> Duration;

    /// Runs one call and says whether it succeeded.
    fn succeeds(&self, kind: Kind) -> bool;
}

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

/// Gives this thread's own runtime: single-threaded, with a timer.
pub fn with_runtime<T>(f: impl FnOnce(&Runtime) -> T) -> T {
    RUNTIME.with(|cell| {
        f(cell.get_or_init(|| {
            Builder::new_current_thread()
                .enable_time()
                .build()
                .expect("a runtime without I/O opens nothing that can fail")
        }))
    })
}

/// Calls of an async closure. `make` gives one closure per thread and loop: what a caller keeps for itself, such as its
/// clone of a tower service, is made there and not once per call.
pub struct AsyncCalls<M, T, E> {
    make: M,
    answer: PhantomData<fn() -> Result<T, E>>,
}

impl<M, T, E> AsyncCalls<M, T, E> {
    pub fn new(make: M) -> Self {
        Self { make, answer: PhantomData }
    }
}

impl<M, C, T, E> Body for AsyncCalls<M, T, E>
where
    M: Fn() -> C + Send + Sync,
    C: AsyncFnMut(Kind) -> Result<T, E>,
{
    fn run(&self, kind: Kind, calls: u64) -> Duration {
        with_runtime(|runtime| runtime.block_on(unconstrained(timed(&mut (self.make)(), kind, calls))))
    }

    fn succeeds(&self, kind: Kind) -> bool {
        with_runtime(|runtime| runtime.block_on((self.make)()(kind)).is_ok())
    }
}

// Unconstrained by its callers: tokio's budget of 128 polls is meant for a task, and the whole loop is one poll.
async fn timed<C, T, E>(call: &mut C, kind: Kind, calls: u64) -> Duration
where
    C: AsyncFnMut(Kind) -> Result<T, E>,
{
    let start = Instant::now();
    for _ in 0..calls {
        let _ = black_box(call(black_box(kind)).await);
    }
    start.elapsed()
}

/// Calls of an async closure whose cost depends on how many calls its window holds. `make` gives a breaker whose window
/// holds the number it is told; it is made anew, off the clock, before the calls have moved that number too far.
pub struct WindowCalls<M, C, T, E> {
    make: M,
    held: u64,
    current: Mutex<Option<(C, u64)>>,
    answer: PhantomData<fn() -> Result<T, E>>,
}

impl<M, C, T, E> WindowCalls<M, C, T, E> {
    pub fn new(held: u64, make: M) -> Self {
        Self { make, held, current: Mutex::new(None), answer: PhantomData }
    }

    /// How many calls one breaker takes: a fifth of the window, or the whole of a small one, where a fifth would be too
    /// short to time.
    fn span(&self) -> u64 {
        if self.held >= 1000 { self.held / 5 } else { self.held }
    }
}

impl<M, C, T, E> WindowCalls<M, C, T, E>
where
    M: Fn(u64) -> C,
{
    /// A breaker that holds as many calls on average over its span; what it allocates to get there is not counted.
    fn fresh(&self) -> C {
        let mut fresh = None;
        allocation_counter::opt_out(|| fresh = Some((self.make)(self.held - self.span() / 2)));
        fresh.expect("opt_out runs what it is given")
    }
}

impl<M, C, T, E> Body for WindowCalls<M, C, T, E>
where
    M: Fn(u64) -> C + Send + Sync,
    C: AsyncFnMut(Kind) -> Result<T, E> + Send,
{
    fn run(&self, kind: Kind, calls: u64) -> Duration {
        let mut current = self.current.lock().expect("a call that panics ends the run");
        let mut elapsed = Duration::ZERO;
        let mut left = calls;
        while left > 0 {
            let (call, used) = current.get_or_insert_with(|| (self.fresh(), 0));
            let piece = left.min(self.span() - *used);
            elapsed += with_runtime(|runtime| runtime.block_on(unconstrained(timed(call, kind, piece))));
            left -= piece;
            *used += piece;
            if *used == self.span() {
                *current = None;
            }
        }
        elapsed
    }

    fn succeeds(&self, kind: Kind) -> bool {
        with_runtime(|runtime| runtime.block_on((self.make)(1)(kind)).is_ok())
    }
}

/// Calls that are made together, a batch at a time; a call is one item of a batch.
pub struct BatchCalls<M>(pub M);

/// Large enough for what a batch costs by itself to disappear.
const BATCH: u64 = 1000;

impl<M> Body for BatchCalls<M>
where
    M: AsyncFn(Kind, u64) -> u64 + Send + Sync,
{
    fn run(&self, kind: Kind, calls: u64) -> Duration {
        let batches = async {
            let start = Instant::now();
            let mut left = calls;
            while left > 0 {
                let batch = left.min(BATCH);
                black_box((self.0)(black_box(kind), batch).await);
                left -= batch;
            }
            start.elapsed()
        };
        with_runtime(|runtime| runtime.block_on(unconstrained(batches)))
    }

    fn succeeds(&self, kind: Kind) -> bool {
        with_runtime(|runtime| runtime.block_on((self.0)(kind, BATCH))) == BATCH
    }
}

/// Calls of a plain function: the limits.
pub struct PlainCalls<F>(pub F);

impl<F, T> Body for PlainCalls<F>
where
    F: Fn() -> T + Send + Sync,
{
    fn run(&self, _: Kind, calls: u64) -> Duration {
        let start = Instant::now();
        for _ in 0..calls {
            black_box((self.0)());
        }
        start.elapsed()
    }

    fn succeeds(&self, _: Kind) -> bool {
        black_box((self.0)());
        true
    }
}
