//! A dispatcher beside `buffer_unordered`, and a group beside `JoinSet`: what an item and a task cost.

use futures::{Stream, StreamExt, stream};
use seawall::task::{Dispatcher, Group as Tasks};
use tokio::task::JoinSet;

use crate::op::{Kind, op};
use crate::ratio::{Bound, Column, Ratio};
use crate::row::{Group, Rows};

pub const RUN: &str = "seawall Dispatcher::run";
pub const STREAM: &str = "seawall Dispatcher::stream";
pub const IN_ORDER: &str = "seawall Dispatcher::stream, in order";
pub const ON_TASKS: &str = "seawall Dispatcher::run, on tasks";
pub const GROUP: &str = "seawall Group, 8 tasks";
pub const UNORDERED: &str = "futures buffer_unordered";
pub const UNORDERED_STREAM: &str = "futures buffer_unordered, as a stream";
pub const BUFFERED: &str = "futures buffered, as a stream";
pub const SPAWNED: &str = "futures buffer_unordered of tokio tasks";
pub const JOIN_SET: &str = "tokio JoinSet, 8 tasks";

/// So many at once in every row of a batch.
const WORKERS: usize = 16;
/// So many tasks in every group.
const TASKS: u64 = 8;

pub fn add(rows: &mut Rows) {
    dispatchers(rows);
    groups(rows);
}

fn dispatchers(rows: &mut Rows) {
    rows.batches(Group::Tasks, RUN, async |kind, items| {
        good(&Dispatcher::new(|_| op(kind)).workers(WORKERS).run(0..items).await)
    });
    rows.batches(Group::Tasks, UNORDERED, async |kind, items| {
        let all: Vec<_> = stream::iter(0..items).map(|_| op(kind)).buffer_unordered(WORKERS).collect().await;
        good(&all)
    });
    rows.batches(Group::Tasks, STREAM, async |kind, items| {
        let mut results = Dispatcher::new(|_| op(kind)).workers(WORKERS).stream(0..items);
        let mut good = 0;
        while let Some(done) = results.next().await {
            good += u64::from(done.result.is_ok());
        }
        good
    });
    rows.batches(Group::Tasks, UNORDERED_STREAM, async |kind, items| {
        count(stream::iter(0..items).map(|_| op(kind)).buffer_unordered(WORKERS)).await
    });
    rows.batches(Group::Tasks, IN_ORDER, async |kind, items| {
        let mut results = Dispatcher::new(|_| op(kind)).workers(WORKERS).in_order().stream(0..items);
        let mut good = 0;
        while let Some(done) = results.next().await {
            good += u64::from(done.result.is_ok());
        }
        good
    });
    rows.batches(Group::Tasks, BUFFERED, async |kind, items| {
        count(stream::iter(0..items).map(|_| op(kind)).buffered(WORKERS)).await
    });
    rows.batches(Group::Tasks, ON_TASKS, async |kind, items| {
        good(&Dispatcher::new(move |_| op(kind)).workers(WORKERS).on_tasks().run(0..items).await)
    });
    rows.batches(Group::Tasks, SPAWNED, async |kind, items| {
        let spawned = stream::iter(0..items).map(|_| tokio::spawn(op(kind)));
        let all: Vec<_> = spawned.buffer_unordered(WORKERS).collect().await;
        all.iter().filter(|joined| matches!(joined, Ok(Ok(_)))).count() as u64
    });
}

fn groups(rows: &mut Rows) {
    rows.batches(Group::Tasks, GROUP, async |kind, items| {
        let mut good = 0;
        for from in (0..items).step_by(TASKS as usize) {
            let tasks = TASKS.min(items - from);
            let mut group = Tasks::new();
            for _ in 0..tasks {
                group.spawn("task", async move { op(kind).await.map(drop) });
            }
            good += if group.wait().await.is_ok() { tasks } else { 0 };
        }
        good
    });
    rows.batches(Group::Tasks, JOIN_SET, async |kind, items| {
        let mut good = 0;
        for from in (0..items).step_by(TASKS as usize) {
            let mut set = JoinSet::new();
            for _ in 0..TASKS.min(items - from) {
                set.spawn(async move { op(kind).await.map(drop) });
            }
            while let Some(joined) = set.join_next().await {
                good += u64::from(matches!(joined, Ok(Ok(()))));
            }
        }
        good
    });
}

/// The targets: no dearer than what people use, or little.
pub fn ratios() -> Vec<Ratio> {
    let pairs = [
        ("dispatcher, ready at once", RUN, UNORDERED, Kind::Ready, 1.3),
        ("dispatcher, suspending", RUN, UNORDERED, Kind::Suspending, 1.3),
        ("dispatcher as a stream, ready at once", STREAM, UNORDERED_STREAM, Kind::Ready, 1.3),
        ("dispatcher as a stream, suspending", STREAM, UNORDERED_STREAM, Kind::Suspending, 1.3),
        ("dispatcher in order, ready at once", IN_ORDER, BUFFERED, Kind::Ready, 1.3),
        ("dispatcher in order, suspending", IN_ORDER, BUFFERED, Kind::Suspending, 1.3),
        ("dispatcher on tasks, suspending", ON_TASKS, SPAWNED, Kind::Suspending, 1.3),
        ("group, ready at once", GROUP, JOIN_SET, Kind::Ready, 1.5),
        ("group, suspending", GROUP, JOIN_SET, Kind::Suspending, 1.5),
    ];
    let ratio = |(what, ours, peer, kind, limit): (_, &str, &str, _, _)| Ratio {
        what,
        ours: ours.to_owned(),
        peers: vec![peer.to_owned()],
        column: Column::Nanoseconds(kind),
        bound: Bound::AtMost(limit),
    };
    pairs.map(ratio).into()
}

async fn count<T, E>(results: impl Stream<Item = Result<T, E>>) -> u64 {
    let (mut results, mut good) = (std::pin::pin!(results), 0);
    while let Some(result) = results.next().await {
        good += u64::from(result.is_ok());
    }
    good
}

fn good<T, E>(results: &[Result<T, E>]) -> u64 {
    results.iter().filter(|result| result.is_ok()).count() as u64
}
