//! What is measured: rows in groups, each with the row that is subtracted from it.

use std::fmt;
use std::sync::Arc;

use crate::body::{AsyncCalls, BatchCalls, Body, PlainCalls, WindowCalls};
use crate::footprint::Footprint;
use crate::op::{Kind, MEASURED};

/// A heading of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Bare,
    Limits,
    Timeouts,
    Retry,
    Admission,
    BreakerCount,
    BreakerBlocking,
    BreakerTime,
    BreakerTimeByEntries,
    Rejection,
    Stack,
    Watched,
    Caches,
    Tasks,
}

impl Group {
    /// In the order of the table.
    pub const ALL: [Self; 14] = [
        Self::Bare,
        Self::Limits,
        Self::Timeouts,
        Self::Retry,
        Self::Admission,
        Self::BreakerCount,
        Self::BreakerBlocking,
        Self::BreakerTime,
        Self::BreakerTimeByEntries,
        Self::Rejection,
        Self::Stack,
        Self::Watched,
        Self::Caches,
        Self::Tasks,
    ];

    /// The row whose cost is subtracted from the rows of this group; `None` where the raw cost is shown.
    pub fn base(self) -> Option<&'static str> {
        match self {
            // Items of a batch overlap, so no single call can be taken away from them.
            Self::Bare | Self::Tasks => None,
            Self::Limits => Some(EMPTY_LOOP),
            Self::BreakerBlocking => Some(BARE_BLOCKING),
            // A rejected call never starts the operation.
            Self::Rejection => Some(NO_OPERATION),
            _ => Some(BARE_CALL),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bare => "bare (raw ns: what the others are measured above)",
            Self::Limits => "limits (above an empty loop)",
            Self::Timeouts => "timeouts",
            Self::Retry => "retry",
            Self::Admission => "rate limit and bulkhead",
            Self::BreakerCount => "breaker, count window",
            Self::BreakerBlocking => "breaker, count window, blocking (above a plain function call)",
            Self::BreakerTime => "breaker, time window",
            Self::BreakerTimeByEntries => "breaker, time window, by the calls that it holds",
            Self::Rejection => "breaker, rejection (above an async call without operation)",
            Self::Stack => "guard / stack",
            Self::Caches => "caches and shared work",
            Self::Watched => "full guard, and who listens to it",
            Self::Tasks => "tasks (raw ns per item of a batch, or per task of a group)",
        })
    }
}

pub const BARE_CALL: &str = "bare call";
pub const NO_OPERATION: &str = "bare call without operation";
pub const BARE_BLOCKING: &str = "bare blocking call";
pub const EMPTY_LOOP: &str = "empty loop";

/// One line of the table.
pub struct Row {
    pub group: Group,
    pub name: String,
    pub kinds: &'static [Kind],
    /// Whether two threads share what the row calls.
    pub shared: bool,
    /// What a call has to give for the row to measure what it says.
    pub succeeds: bool,
    pub body: Arc<dyn Body>,
}

/// Every row and every footprint, filled by the modules of the peers and by [`crate::ours`].
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<Row>,
    pub footprints: Vec<Footprint>,
}

impl Rows {
    /// Adds a row of guarded calls that succeed. `make` is called once per thread and loop, and gives the async closure
    /// that makes one call:
    ///
    /// ```ignore
    /// rows.calls(Group::BreakerCount, "name", move || {
    ///     let breaker = breaker.clone();
    ///     async move |kind| breaker.call(op(kind)).await
    /// });
    /// ```
    pub fn calls<M, C, T, E>(&mut self, group: Group, name: &str, make: M)
    where
        M: Fn() -> C + Send + Sync + 'static,
        C: AsyncFnMut(Kind) -> Result<T, E>,
        T: 'static,
        E: 'static,
    {
        self.add(group, name, &MEASURED, true, true, AsyncCalls::new(make));
    }

    /// Adds a row of calls that never start the operation, and succeed.
    pub fn calls_without_operation<M, C, T, E>(&mut self, group: Group, name: &str, make: M)
    where
        M: Fn() -> C + Send + Sync + 'static,
        C: AsyncFnMut(Kind) -> Result<T, E>,
        T: 'static,
        E: 'static,
    {
        self.add(group, name, &MEASURED[..1], true, true, AsyncCalls::new(make));
    }

    /// Adds a row of calls that are refused: every call has to give an error, although the operation would succeed.
    pub fn rejections<M, C, T, E>(&mut self, name: &str, make: M)
    where
        M: Fn() -> C + Send + Sync + 'static,
        C: AsyncFnMut(Kind) -> Result<T, E>,
        T: 'static,
        E: 'static,
    {
        self.add(Group::Rejection, name, &MEASURED[..1], true, false, AsyncCalls::new(make));
    }

    /// Adds the rows of a time window that holds 100, 10 000 and 50 000 calls. `make` gives a breaker whose window holds
    /// as many as it is told, and has to be long enough to forget none of them during the run.
    pub fn by_entries<M, C, T, E>(&mut self, name: &str, make: M)
    where
        M: Fn(u64) -> C + Clone + Send + Sync + 'static,
        C: AsyncFnMut(Kind) -> Result<T, E> + Send + 'static,
        T: 'static,
        E: 'static,
    {
        for held in [100, 10_000, 50_000] {
            let body = WindowCalls::new(held, make.clone());
            self.add(Group::BreakerTimeByEntries, &by_entries(name, held), &MEASURED[..1], false, true, body);
        }
    }

    /// Adds a row of calls that are made together: `run` is told how many items it has to work on, and gives back how many
    /// succeeded. What it costs is measured per item.
    pub fn batches<M>(&mut self, group: Group, name: &str, run: M)
    where
        M: AsyncFn(Kind, u64) -> u64 + Send + Sync + 'static,
    {
        self.add(group, name, &MEASURED, false, true, BatchCalls(run));
    }

    /// Adds a row of a plain function.
    pub fn plain<T>(&mut self, group: Group, name: &str, call: impl Fn() -> T + Send + Sync + 'static) {
        self.add(group, name, &MEASURED[..1], true, true, PlainCalls(call));
    }

    fn add(
        &mut self,
        group: Group,
        name: &str,
        kinds: &'static [Kind],
        shared: bool,
        succeeds: bool,
        body: impl Body + 'static,
    ) {
        assert!(self.rows.iter().all(|row| row.name != name), "two rows are called `{name}`");
        self.rows.push(Row { group, name: name.to_owned(), kinds, shared, succeeds, body: Arc::new(body) });
    }
}

/// The name of the row of `name` whose window holds `held` calls.
pub fn by_entries(name: &str, held: u64) -> String {
    format!("{name}, holding {held}")
}
