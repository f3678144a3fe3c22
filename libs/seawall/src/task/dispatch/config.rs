//! The settings of a dispatcher, and how a run begins.

use std::fmt;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use futures_core::Stream;

use super::pool::Rules;
use super::results::{ItemStream, ResultStream};
use super::workers::{InlineWorkers, TaskWorkers, Workers};
use crate::task::TaskError;

/// The default number of items that may wait for each worker with [`by_key`](Dispatcher::by_key). An item can't go to another
/// worker there, so without a buffer one busy key would stop all others.
pub const KEYED_BUFFER: usize = 8;

/// The maximum number of workers in one run. A higher setting is reduced to this number.
pub const WORKERS_MAX: usize = 65_536;

/// A pool of workers over a batch ([`run`](Dispatcher::run)) or a stream ([`stream`](Dispatcher::stream)) of items.
///
/// ```
/// # #[tokio::main] async fn main() {
/// use seawall::task::Dispatcher;
///
/// let prices = [("apple", "3"), ("pear", "4"), ("plum", "dear")];
/// let results = Dispatcher::new(async |(_, price): (&str, &str)| price.parse::<u32>()).workers(2).run(prices).await;
/// assert_eq!(results[1].as_ref().ok(), Some(&4));
/// assert!(results[2].as_ref().unwrap_err().failed().is_some());
/// # }
/// ```
///
/// `T` is the type of an item. `W` decides where its handler runs: [`InlineWorkers`], or [`TaskWorkers`] after
/// [`on_tasks`](Dispatcher::on_tasks).
#[must_use = "a dispatcher does nothing until it runs"]
pub struct Dispatcher<'a, T, W> {
    work: W,
    workers: Option<usize>,
    buffer: Option<usize>,
    in_order: bool,
    share: Share<'a, T>,
    progress: Option<Progress<'a>>,
}

/// Who gets the next item.
pub(super) enum Share<'a, T> {
    InTurn,
    LeastBusy,
    ByKey(Box<dyn Fn(&T) -> u64 + Send + 'a>),
}

/// Is told how many are done, and of how many.
pub(super) type Progress<'a> = Box<dyn FnMut(usize, Option<usize>) + Send + 'a>;

impl<'a, T, H> Dispatcher<'a, T, InlineWorkers<H>> {
    /// Creates a dispatcher that calls this handler for each item. By default it has one worker per CPU, and all workers run in
    /// the task that awaits the results.
    pub fn new<F, R, E>(handler: H) -> Self
    where
        H: Fn(T) -> F,
        F: Future<Output = Result<R, E>>,
    {
        Dispatcher {
            work: InlineWorkers(handler),
            workers: None,
            buffer: None,
            in_order: false,
            share: Share::InTurn,
            progress: None,
        }
    }

    /// Runs every item as a task of its own, so that the workers use all threads of the runtime. This helps handlers that
    /// compute, and not those that wait for I/O. Handler and items must be `'static` then.
    pub fn on_tasks(self) -> Dispatcher<'a, T, TaskWorkers<H>> {
        let Dispatcher { work, workers, buffer, in_order, share, progress } = self;
        Dispatcher { work: TaskWorkers(Arc::new(work.0)), workers, buffer, in_order, share, progress }
    }
}

impl<'a, T, W> Dispatcher<'a, T, W> {
    /// Sets the number of workers: at least one, at most [`WORKERS_MAX`]. Each works on one item at a time.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers.clamp(1, WORKERS_MAX));
        self
    }

    /// Sets how many items may wait for each worker, beside the one in work. The default is 0, or [`KEYED_BUFFER`] with
    /// [`by_key`](Dispatcher::by_key).
    ///
    /// This bound is the back-pressure: the dispatcher never holds more than `workers × (1 + buffer)` items that it has taken
    /// from the input and whose results the caller has not taken yet.
    pub fn buffer(mut self, waiting: usize) -> Self {
        self.buffer = Some(waiting);
        self
    }

    /// Yields the results of a stream in the order of the items. A slow item delays the results of the items after it, and no
    /// new item starts once [`buffer`](Dispatcher::buffer) results wait.
    ///
    /// The results of [`run`](Dispatcher::run) are always in order.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Assigns every key to one worker, so that items with the same key run one after another and in their order.
    pub fn by_key<K: Hash>(mut self, key: impl Fn(&T) -> K + Send + 'a) -> Self {
        self.share = Share::ByKey(Box::new(move |item| {
            let mut hasher = DefaultHasher::new();
            key(item).hash(&mut hasher);
            hasher.finish()
        }));
        self
    }

    /// Assigns each item to the worker with the fewest items, instead of to the next worker in turn that has room. This makes
    /// a difference only with a [`buffer`](Dispatcher::buffer).
    pub fn least_busy(mut self) -> Self {
        self.share = Share::LeastBusy;
        self
    }

    /// Calls `progress` after each item with the number of finished items and the total, if the total is known. The call
    /// happens in the task that awaits the results.
    pub fn progress(mut self, progress: impl FnMut(usize, Option<usize>) + Send + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Runs the handler for all items and returns a result for each, in the order of the items.
    ///
    /// Nothing happens before the future is awaited. Dropping it cancels the items in progress.
    pub async fn run<I>(mut self, items: I) -> Vec<Result<W::Output, TaskError<W::Error>>>
    where
        I: IntoIterator<Item = T>,
        W: Workers<T>,
    {
        // Each result goes to its place, so holding some back for others would only cost room.
        self.in_order = false;
        let results = self.stream(items);
        let mut places = Vec::with_capacity(results.expected().min(ROOM_AHEAD));
        let mut results = pin!(results);
        while let Some(done) = std::future::poll_fn(|cx| results.as_mut().poll_next(cx)).await {
            if done.index == places.len() {
                places.push(Some(done.result));
                continue;
            }
            if done.index > places.len() {
                places.resize_with(done.index + 1, || None);
            }
            places[done.index] = Some(done.result);
        }
        places.into_iter().map(|result| result.expect("every item has ended")).collect()
    }

    /// Runs the handler as fast as the caller takes results, and yields each result when it is ready.
    ///
    /// Dropping the stream cancels the items in progress.
    pub fn stream<I>(self, items: I) -> ResultStream<'a, ItemStream<I::IntoIter>, T, W>
    where
        I: IntoIterator<Item = T>,
        W: Workers<T>,
    {
        self.stream_of(ItemStream(items.into_iter()))
    }

    /// Works like [`stream`](Dispatcher::stream) with a stream of items as input.
    pub fn stream_of<S>(self, items: S) -> ResultStream<'a, S, T, W>
    where
        S: Stream<Item = T>,
        W: Workers<T>,
    {
        let by_key = matches!(self.share, Share::ByKey(_));
        let buffer = self.buffer.unwrap_or(if by_key { KEYED_BUFFER } else { 0 });
        let rules = Rules { workers: self.workers.unwrap_or_else(cpus), buffer, in_order: self.in_order };
        ResultStream::new(items, self.work, rules, self.share, self.progress)
    }
}

/// As many as the machine has. Asked once: it reads files to find out.
fn cpus() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

/// What an iterator says about its length is not worth more memory than this before the first item has come.
const ROOM_AHEAD: usize = 65_536;

impl<T, W> fmt::Debug for Dispatcher<'_, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatcher")
            .field("workers", &self.workers)
            .field("buffer", &self.buffer)
            .field("in_order", &self.in_order)
            .finish_non_exhaustive()
    }
}
