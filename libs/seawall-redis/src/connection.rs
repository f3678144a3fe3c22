//! One connection to one Redis server, shared by all that use it, made again when it breaks.

use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisError, ScriptInvocation};
use seawall::fault::Ran;
use seawall::{Clock, Fault, Tick};
use seawall_dist::StoreError;
use tokio::sync::watch;

use crate::fault::{fault_of, is_read_only};

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the server may take to answer a command. Redis answers within a millisecond; a pause of the server or of the
/// network is noticed soon.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The pauses between attempts to connect, while the server is away: commands fail at once in between, and the server is not
/// flooded when it comes back.
pub const RECONNECT_PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(500)];

/// Commands in a row that time out before the connection is given up and made anew. One or two are a slow server; a connection
/// whose peer is gone without a word (a dropped route, a dead firewall entry) would stay silent for ever.
pub const TIMEOUTS_BEFORE_RECONNECT: u32 = 3;

/// A command that its caller dropped without an answer counts as one that timed out if the server has owed an answer for this
/// long: to that command, or to earlier ones.
pub const ABANDONED_AFTER: Duration = Duration::from_millis(100);

/// A connection to one Redis server. A handle: clones share the connection, and commands of all of them are pipelined.
///
/// It connects with the first command. After the connection broke, the next command makes a new one; while the server stays
/// away, commands fail at once and one of them tries again after a pause. The attempt to connect belongs to no command: one
/// that is dropped while it waits leaves the attempt to the others.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    config: AsyncConnectionConfig,
    connect_timeout: Duration,
    response_timeout: Duration,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Arc<OpenConnection>>,
    /// The attempt to connect that is under way. Its sender is dropped with the attempt, also if the runtime ends.
    connecting: Option<watch::Receiver<Attempt>>,
    /// The number of failed attempts to connect since the last success, and when the next may be made.
    failures: usize,
    not_before: Option<Tick>,
}

/// What became of an attempt to connect; `None` while it is under way.
type Attempt = Option<Result<Arc<OpenConnection>, RedisError>>;

struct OpenConnection {
    commands: MultiplexedConnection,
    /// The number of timeouts in a row. Commands that were sent together and timed out together count as one.
    timeouts: AtomicU32,
    /// When the first command was sent since the last answer, in nanoseconds of the clock; [`NOTHING_OWED`] after an answer.
    owed_since: AtomicU64,
}

/// No command was sent since the last answer.
const NOTHING_OWED: u64 = u64::MAX;

impl OpenConnection {
    fn new(commands: MultiplexedConnection) -> Self {
        OpenConnection { commands, timeouts: AtomicU32::new(0), owed_since: AtomicU64::new(NOTHING_OWED) }
    }
}

impl Connection {
    /// Makes a connection with default timeouts to a server: `redis://127.0.0.1:6379/0`. Fails if the address can't be read;
    /// a server that is away is noticed by the first command.
    pub fn new(url: &str) -> Result<Connection, RedisError> {
        Connection::builder(url)?.build()
    }

    /// Chooses timeouts.
    pub fn builder(url: &str) -> Result<ConnectionBuilder, RedisError> {
        Ok(ConnectionBuilder::of(Client::open(url)?))
    }

    /// Runs a command.
    pub async fn query<T: FromRedisValue>(
        &self,
        action: &'static str,
        command: &Cmd,
    ) -> Result<T, StoreError> {
        let mut sent = self.open(action).await?;
        let result = command.query_async(&mut sent.open.commands.clone()).await;
        sent.judge(action, result)
    }

    /// Runs several commands at once.
    pub async fn pipeline<T: FromRedisValue>(
        &self,
        action: &'static str,
        commands: &Pipeline,
    ) -> Result<T, StoreError> {
        let mut sent = self.open(action).await?;
        let result = commands.query_async(&mut sent.open.commands.clone()).await;
        sent.judge(action, result)
    }

    /// Runs a script, which the server may know already by its hash.
    pub async fn script<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut sent = self.open(action).await?;
        let result = script.invoke_async(&mut sent.open.commands.clone()).await;
        sent.judge(action, result)
    }

    /// The client that the connection is made with, for connections of your own such as subscriptions.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    /// How long a connection may take to be made.
    #[must_use]
    pub fn connect_timeout(&self) -> Duration {
        self.shared.connect_timeout
    }

    /// How long the server may take to answer a command.
    #[must_use]
    pub fn response_timeout(&self) -> Duration {
        self.shared.response_timeout
    }

    async fn open(&self, action: &'static str) -> Result<SentCommand<'_>, StoreError> {
        let next = self.shared.next_step(&mut self.shared.lock());
        let mut attempt = match next {
            NextStep::Send(open) => return Ok(SentCommand::new(&self.shared, open)),
            NextStep::Wait(attempt) => attempt,
            NextStep::Fail => {
                return Err(StoreError::new(
                    action,
                    Fault::unreachable(),
                    "Redis is away, and the next attempt to connect is not due",
                ));
            }
        };
        let result = attempt.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        match result {
            Some(Ok(open)) => Ok(SentCommand::new(&self.shared, open)),
            // Nothing was sent, whatever the attempt to connect ended with.
            Some(Err(error)) => Err(StoreError::new(action, fault_of(&error).ran(Ran::No), error)),
            None => Err(StoreError::new(
                action,
                Fault::unreachable(),
                "the runtime that connected to Redis has ended",
            )),
        }
    }
}

/// What a command does before it can be sent.
enum NextStep {
    Send(Arc<OpenConnection>),
    Wait(watch::Receiver<Attempt>),
    Fail,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_step(self: &Arc<Self>, state: &mut State) -> NextStep {
        if let Some(open) = &state.open {
            return NextStep::Send(open.clone());
        }
        // An attempt whose sender is gone without a result ended with its runtime.
        if let Some(attempt) = state.connecting.as_ref().filter(|attempt| attempt.has_changed().is_ok()) {
            return NextStep::Wait(attempt.clone());
        }
        if state.not_before.is_some_and(|tick| self.clock.now() < tick) {
            return NextStep::Fail;
        }
        let (sender, attempt) = watch::channel(None);
        state.connecting = Some(attempt.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by the connect timeout, and belongs to all who wait for it"
        )]
        tokio::spawn(self.clone().connect(sender));
        NextStep::Wait(attempt)
    }

    async fn connect(self: Arc<Self>, sender: watch::Sender<Attempt>) {
        let result = self.client.get_multiplexed_async_connection_with_config(&self.config).await;
        let now = self.clock.now();
        let mut state = self.lock();
        state.connecting = None;
        let result = match result {
            Ok(commands) => {
                let open = Arc::new(OpenConnection::new(commands));
                *state = State { open: Some(open.clone()), ..State::default() };
                Ok(open)
            }
            Err(error) => {
                state.failures += 1;
                let pause = RECONNECT_PAUSES[state.failures.min(RECONNECT_PAUSES.len() - 1)];
                state.not_before = Some(now + pause);
                Err(error)
            }
        };
        drop(state);
        sender.send_replace(Some(result));
    }
}

/// A command between its request and its answer.
struct SentCommand<'a> {
    shared: &'a Shared,
    open: Arc<OpenConnection>,
    timeouts_before: u32,
    ended: bool,
}

impl<'a> SentCommand<'a> {
    fn new(shared: &'a Shared, open: Arc<OpenConnection>) -> Self {
        let timeouts_before = open.timeouts.load(Ordering::Relaxed);
        let now = shared.clock.now().as_nanos();
        let _ = open.owed_since.compare_exchange(NOTHING_OWED, now, Ordering::Relaxed, Ordering::Relaxed);
        SentCommand { shared, open, timeouts_before, ended: false }
    }

    /// Makes a store's error of the client's, and forgets a connection that is broken.
    fn judge<T>(&mut self, action: &'static str, result: Result<T, RedisError>) -> Result<T, StoreError> {
        self.ended = true;
        match &result {
            Err(error) if error.is_timeout() => self.unanswered(),
            Err(error) if error.is_unrecoverable_error() || error.is_connection_dropped() => self.forget(),
            // The server has become a replica. Its name may lead to the new master by now.
            Err(error) if is_read_only(error) => self.forget(),
            // An error of the server is an answer too.
            _ => {
                self.open.owed_since.store(NOTHING_OWED, Ordering::Relaxed);
                if self.timeouts_before > 0 {
                    self.open.timeouts.store(0, Ordering::Relaxed);
                }
            }
        }
        result.map_err(|error| StoreError::new(action, fault_of(&error), error))
    }

    /// Whether the server has owed an answer for too long.
    fn is_silent(&self) -> bool {
        let since = self.open.owed_since.load(Ordering::Relaxed);
        self.shared.clock.now().as_nanos().saturating_sub(since) >= ABANDONED_AFTER.as_nanos() as u64
    }

    /// Counts a timeout, and forgets a connection that has been silent too often.
    fn unanswered(&self) {
        let next = self.timeouts_before + 1;
        let (old, timeouts) = (self.timeouts_before, &self.open.timeouts);
        let _ = timeouts.compare_exchange(old, next, Ordering::Relaxed, Ordering::Relaxed);
        if next >= TIMEOUTS_BEFORE_RECONNECT {
            self.forget();
        }
    }

    fn forget(&self) {
        let mut state = self.shared.lock();
        if state.open.as_ref().is_some_and(|current| Arc::ptr_eq(current, &self.open)) {
            state.open = None;
        }
    }
}

/// A caller whose own time limit is shorter drops the command. Without this a silent connection would never be noticed.
impl Drop for SentCommand<'_> {
    fn drop(&mut self) {
        if !self.ended && self.is_silent() {
            self.unanswered();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("Connection")
            .field("server", &self.shared.client.get_connection_info().addr())
            .finish()
    }
}

/// Chooses the timeouts of a [`Connection`].
#[derive(Debug)]
pub struct ConnectionBuilder {
    client: Client,
    connect_timeout: Duration,
    response_timeout: Duration,
}

impl ConnectionBuilder {
    /// Begins with a client of your own, with TLS or a user.
    #[must_use]
    pub fn of(client: Client) -> Self {
        ConnectionBuilder { client, connect_timeout: CONNECT_TIMEOUT, response_timeout: RESPONSE_TIMEOUT }
    }

    /// Sets how long a connection may take to be made; [`CONNECT_TIMEOUT`] unless told.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the server may take to answer a command; [`RESPONSE_TIMEOUT`] unless told.
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Makes the connection, which is opened by its first command.
    pub fn build(self) -> Result<Connection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(Some(self.response_timeout));
        Ok(Connection {
            shared: Arc::new(Shared {
                client: self.client,
                config,
                connect_timeout: self.connect_timeout,
                response_timeout: self.response_timeout,
                clock: Clock::system(),
                state: Mutex::default(),
            }),
        })
    }
}
