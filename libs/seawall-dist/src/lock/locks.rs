//! The handle that a program has.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seawall::ConfigError;

use super::telemetry::LockTelemetry;
use super::{
    BootClock, FencingSource, Lease, LockError, LockKey, LockOptions, LockStore, Wait, acquire, hold, scope,
};

/// The name in metrics, unless another is given.
const NAME: &str = "locks";

/// Runs work under locks that several processes share. A handle: clones are the same.
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use seawall_dist::lock::{Locks, MemoryLocks};
///
/// let locks = Locks::new(Arc::new(MemoryLocks::new()));
/// let total = locks.with_lock("lock:order:create:buyer:456", |lease| async move {
///     println!("this order is number {}", lease.fence());
///     3 + 4
/// }).await?;
/// assert_eq!(total, 7);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Locks {
    inner: Arc<Inner>,
}

/// What all handles of the same locks share.
pub(super) struct Inner {
    pub(super) store: Arc<dyn LockStore>,
    pub(super) fencing: Option<Arc<dyn FencingSource>>,
    pub(super) clock: BootClock,
    pub(super) options: LockOptions,
    pub(super) telemetry: LockTelemetry,
}

impl Locks {
    /// Locks in this store with the default options.
    #[must_use]
    pub fn new(store: Arc<dyn LockStore>) -> Locks {
        Locks::builder(store).build().expect("the default options are in range")
    }

    /// Chooses the options of all locks in this store.
    pub fn builder(store: Arc<dyn LockStore>) -> LocksBuilder {
        LocksBuilder {
            name: NAME.into(),
            store,
            fencing: None,
            clock: BootClock::system(),
            options: LockOptions::default(),
        }
    }

    /// Takes the lock, runs the work while it renews the lock, and gives the lock back.
    ///
    /// The work is dropped, and the error is [`Lost`](LockError::Lost), when the lock can't be renewed: shortly before the
    /// lease ends, so that nobody else has the lock while the work still runs. Inside work that holds the same lock already
    /// it runs at once, under the same lease and with its options. A call that is dropped gives the lock back in a task.
    pub async fn with_lock<K, F, Fut>(&self, key: K, work: F) -> Result<Fut::Output, LockError>
    where
        K: TryInto<LockKey>,
        K::Error: Into<LockError>,
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        self.key(key).with(work).await
    }

    /// Takes the lock of all transactions of a user, `lock:transaction:user:{id}`, and runs the work under it.
    pub async fn with_user_transaction<F, Fut>(
        &self,
        user: impl fmt::Display,
        work: F,
    ) -> Result<Fut::Output, LockError>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        let key = LockKey::user_transaction(user);
        LockCall { locks: self, key: key.map_err(LockError::from), options: self.inner.options }
            .with(work)
            .await
    }

    /// Chooses options for one lock.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use std::sync::Arc;
    /// # use seawall_dist::lock::{Locks, MemoryLocks, Wait};
    /// # let locks = Locks::new(Arc::new(MemoryLocks::new()));
    /// use seawall::secs;
    /// locks.key("lock:inventory:sku:ABC-001").lease(secs(5)).wait(Wait::UntilLocked).max_hold(secs(60))
    ///     .with(|_lease| async { /* count the shelf */ })
    ///     .await?;
    /// # Ok(()) }
    /// ```
    pub fn key<K>(&self, key: K) -> LockCall<'_>
    where
        K: TryInto<LockKey>,
        K::Error: Into<LockError>,
    {
        LockCall { locks: self, key: key.try_into().map_err(Into::into), options: self.inner.options }
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locks").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

/// One lock with options of its own.
#[derive(Debug)]
#[must_use = "nothing is locked until `with` is awaited"]
pub struct LockCall<'a> {
    locks: &'a Locks,
    key: Result<LockKey, LockError>,
    options: LockOptions,
}

macro_rules! options {
    () => {
        /// Sets the length of the lease; [`LEASE`](super::LEASE) unless told. A dead holder's lock is free after that long,
        /// and the lease is renewed every third of it.
        pub fn lease(mut self, lease: Duration) -> Self {
            self.options.lease = lease;
            self
        }

        /// Sets what to do while somebody else has the lock; [`ATTEMPTS`](super::ATTEMPTS) attempts with
        /// [`RETRY_DELAY`](super::RETRY_DELAY) between them unless told.
        pub fn wait(mut self, wait: Wait) -> Self {
            self.options.wait = wait;
            self
        }

        /// Sets how long giving the lock back may take; [`RELEASE_LIMIT`](super::RELEASE_LIMIT) unless told.
        pub fn release_limit(mut self, limit: Duration) -> Self {
            self.options.release_limit = limit;
            self
        }

        /// Sets the longest time that the lock is held: work that takes longer is cancelled. No limit unless told.
        pub fn max_hold(mut self, hold: Duration) -> Self {
            self.options.max_hold = Some(hold);
            self
        }
    };
}

impl LockCall<'_> {
    options!();

    /// Takes the lock, runs the work while it renews the lock, and gives the lock back. See
    /// [`with_lock`](Locks::with_lock).
    pub async fn with<F, Fut>(self, work: F) -> Result<Fut::Output, LockError>
    where
        F: FnOnce(Lease) -> Fut,
        Fut: Future,
    {
        let (inner, key) = (&self.locks.inner, self.key?);
        self.options.check()?;
        if let Some(lease) = scope::held().find(&inner.store, &key) {
            let work = work(lease.clone());
            return scope::while_held(&lease, work).await;
        }
        let grant = acquire::acquire(inner, &key, &self.options).await?;
        hold::run(inner, grant, &self.options, work).await
    }
}

/// Chooses the options of [`Locks`].
#[must_use = "nothing is made until `build` is called"]
pub struct LocksBuilder {
    name: Arc<str>,
    store: Arc<dyn LockStore>,
    fencing: Option<Arc<dyn FencingSource>>,
    clock: BootClock,
    options: LockOptions,
}

impl LocksBuilder {
    options!();

    /// Sets the name that metrics carry in the label `locks`.
    pub fn name(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// Takes the fencing tokens from elsewhere than from the store of the locks.
    pub fn fencing(mut self, source: Arc<dyn FencingSource>) -> Self {
        self.fencing = Some(source);
        self
    }

    /// Sets the clock that leases are measured with.
    pub fn clock(mut self, clock: BootClock) -> Self {
        self.clock = clock;
        self
    }

    /// Checks the options.
    pub fn build(self) -> Result<Locks, ConfigError> {
        self.options.check()?;
        let LocksBuilder { name, store, fencing, clock, options } = self;
        let telemetry = LockTelemetry::new(&name, &clock);
        Ok(Locks { inner: Arc::new(Inner { store, fencing, clock, options, telemetry }) })
    }
}

impl fmt::Debug for LocksBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocksBuilder")
            .field("name", &self.name)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
