//! What is said about a run before it begins.

use std::fmt;
use std::future::Future;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::thread::available_parallelism;

use futures_core::Stream;

use super::pool::Rules;
use super::results::{Items, Results};
use super::work::{InPlace, OnTasks, Work};
use crate::task::TaskError;

/// So many items may wait for their worker where every key has its own, if nothing else is said: an item can't go to
/// another worker that happens to be free, so without room to wait one busy key would hold up all.
pub const KEYED_BUFFER: usize = 8;

/// The most workers that one run has; who asks for more gets so many.
pub const WORKERS_MAX: usize = 65_536;

/// A pool of workers over a batch ([`run`](Dispatcher::run)) or a stream ([`stream`](Dispatcher::stream)) of items.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use seawall::task::Dispatcher;
///
/// let prices = [("apple", "3"), ("pear", "4"), ("plum", "dear")];
/// let results = Dispatcher::new(async |(_, price): (&str, &str)| price.parse::<u32>()).workers(2).run(prices).await;
/// assert_eq!(results[1].as_ref().ok(), Some(&4));
/// assert!(results[2].as_ref().unwrap_err().failed().is_some());
/// # }
/// ```
///
/// `T` is an item, `W` says where it is worked on: [`InPlace`], or [`OnTasks`] after [`on_tasks`](Dispatcher::on_tasks).
#[must_use = "it does nothing until it is run"]
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

impl<'a, T, H> Dispatcher<'a, T, InPlace<H>> {
    /// Begins one that calls this handler for each item, with as many workers as the machine has CPUs, in the task that
    /// waits for it.
    pub fn new<F, R, E>(handler: H) -> Self
    where
        H: Fn(T) -> F,
        F: Future<Output = Result<R, E>>,
    {
        Dispatcher {
            work: InPlace(handler),
            workers: None,
            buffer: None,
            in_order: false,
            share: Share::InTurn,
            progress: None,
        }
    }

    /// Every item is a task, so that the workers run on all threads of a runtime that has several. For handlers that
    /// compute; those that wait for others gain nothing by it. Handler and items can't borrow then.
    pub fn on_tasks(self) -> Dispatcher<'a, T, OnTasks<H>> {
        let Dispatcher { work, workers, buffer, in_order, share, progress } = self;
        Dispatcher { work: OnTasks(Arc::new(work.0)), workers, buffer, in_order, share, progress }
    }
}

impl<'a, T, W> Dispatcher<'a, T, W> {
    /// So many items are worked on at once; at least one, at most [`WORKERS_MAX`].
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers.clamp(1, WORKERS_MAX));
        self
    }

    /// So many items may wait for each worker, beside the one that it works on; 0, or [`KEYED_BUFFER`] with
    /// [`by_key`](Dispatcher::by_key).
    ///
    /// This is the back-pressure: at no time have more than `workers × (1 + buffer)` items been taken from the input whose
    /// results were not yet given out.
    pub fn buffer(mut self, waiting: usize) -> Self {
        self.buffer = Some(waiting);
        self
    }

    /// A stream gives its results in the order of the items. A slow item holds back the results of those after it, and
    /// once as many as [`buffer`](Dispatcher::buffer) allows are held back, no new item is started.
    ///
    /// The results of [`run`](Dispatcher::run) are in order anyway.
    pub fn in_order(mut self) -> Self {
        self.in_order = true;
        self
    }

    /// Items of one key run one after another, in their order: every key has its worker.
    pub fn by_key<K: Hash>(mut self, key: impl Fn(&T) -> K + Send + 'a) -> Self {
        self.share = Share::ByKey(Box::new(move |item| {
            let mut hasher = DefaultHasher::new();
            key(item).hash(&mut hasher);
            hasher.finish()
        }));
        self
    }

    /// An item goes to the worker with the fewest items, instead of to the next in turn that has room. Makes a difference
    /// only where items may wait for a worker: see [`buffer`](Dispatcher::buffer).
    pub fn least_busy(mut self) -> Self {
        self.share = Share::LeastBusy;
        self
    }

    /// Is told after each item how many are done, and of how many if that is known. Runs in the task that waits.
    pub fn progress(mut self, progress: impl FnMut(usize, Option<usize>) + Send + 'a) -> Self {
        self.progress = Some(Box::new(progress));
        self
    }

    /// Works on all items and gives a result for each, in the order of the items.
    ///
    /// Nothing happens before it is awaited. Dropped before its end, it cancels what is under way.
    pub async fn run<I>(mut self, items: I) -> Vec<Result<W::Output, TaskError<W::Error>>>
    where
        I: IntoIterator<Item = T>,
        W: Work<T>,
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

    /// Works on the items as fast as the results are taken, and gives each result when it is there.
    ///
    /// Dropping the stream cancels what is under way.
    pub fn stream<I>(self, items: I) -> Results<'a, Items<I::IntoIter>, T, W>
    where
        I: IntoIterator<Item = T>,
        W: Work<T>,
    {
        self.stream_of(Items(items.into_iter()))
    }

    /// The same over a stream of items.
    pub fn stream_of<S>(self, items: S) -> Results<'a, S, T, W>
    where
        S: Stream<Item = T>,
        W: Work<T>,
    {
        let by_key = matches!(self.share, Share::ByKey(_));
        let buffer = self.buffer.unwrap_or(if by_key { KEYED_BUFFER } else { 0 });
        let rules = Rules { workers: self.workers.unwrap_or_else(cpus), buffer, in_order: self.in_order };
        Results::new(items, self.work, rules, self.share, self.progress)
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
