//! One connection to one Redis server, shared by all that use it, made again when it breaks.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, Pipeline, RedisError, ScriptInvocation};
use seawall::{Clock, Tick};

use seawall_dist::StoreError;

use crate::fault::fault_of;

/// How long a connection may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the server may take to answer a command. Redis answers within a millisecond; a pause of the server or of the
/// network is noticed soon.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The pauses between attempts to connect, while the server is away: commands fail at once in between, and the server is not
/// flooded when it comes back.
pub const RECONNECT_PAUSES: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(50), Duration::from_millis(200), Duration::from_millis(500)];

/// A connection to one Redis server. A handle: clones share the connection, and commands of all of them are pipelined.
///
/// It connects with the first command. After the connection broke, the next command makes a new one; while the server stays
/// away, commands fail at once and one of them tries again after a pause.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Shared>,
}

struct Shared {
    client: Client,
    config: AsyncConnectionConfig,
    clock: Clock,
    state: Mutex<State>,
    /// Held by the command that connects; the others wait for it.
    connecting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    open: Option<(u64, MultiplexedConnection)>,
    generation: u64,
    /// The number of failed attempts to connect since the last success, and when the next may be made.
    failures: usize,
    not_before: Option<Tick>,
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
        let (generation, mut open) = self.open(action).await?;
        self.judge(action, generation, command.query_async(&mut open).await)
    }

    /// Runs several commands at once.
    pub async fn pipeline<T: FromRedisValue>(
        &self,
        action: &'static str,
        commands: &Pipeline,
    ) -> Result<T, StoreError> {
        let (generation, mut open) = self.open(action).await?;
        self.judge(action, generation, commands.query_async(&mut open).await)
    }

    /// Runs a script, which the server may know already by its hash.
    pub async fn script<T: FromRedisValue>(
        &self,
        action: &'static str,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let (generation, mut open) = self.open(action).await?;
        self.judge(action, generation, script.invoke_async(&mut open).await)
    }

    /// The client that the connection is made with, for connections of your own such as subscriptions.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.shared.client
    }

    async fn open(&self, action: &'static str) -> Result<(u64, MultiplexedConnection), StoreError> {
        if let Some(open) = self.state(|state| state.open.clone()) {
            return Ok(open);
        }
        let _turn = self.shared.connecting.lock().await;
        if let Some(open) = self.state(|state| state.open.clone()) {
            return Ok(open);
        }
        let now = self.shared.clock.now();
        if self.state(|state| state.not_before.is_some_and(|tick| now < tick)) {
            let fault = seawall::Fault::unreachable();
            return Err(StoreError::new(
                action,
                fault,
                "Redis is away, and the next attempt to connect is not due",
            ));
        }
        let result =
            self.shared.client.get_multiplexed_async_connection_with_config(&self.shared.config).await;
        let now = self.shared.clock.now();
        self.state(|state| match result {
            Ok(connection) => {
                let generation = state.generation + 1;
                *state =
                    State { open: Some((generation, connection.clone())), generation, ..State::default() };
                Ok((generation, connection))
            }
            Err(error) => {
                state.failures += 1;
                let pause = RECONNECT_PAUSES[state.failures.min(RECONNECT_PAUSES.len() - 1)];
                state.not_before = Some(now + pause);
                // Nothing was sent, whatever the attempt to connect ended with.
                let fault = fault_of(&error).ran(seawall::fault::Ran::No);
                Err(StoreError::new(action, fault, error))
            }
        })
    }

    /// Forgets a connection that is broken, and makes a store's error of the client's.
    fn judge<T>(
        &self,
        action: &'static str,
        generation: u64,
        result: Result<T, RedisError>,
    ) -> Result<T, StoreError> {
        result.map_err(|error| {
            if error.is_unrecoverable_error() || error.is_connection_dropped() {
                self.state(|state| {
                    if state.generation == generation {
                        state.open = None;
                    }
                });
            }
            StoreError::new(action, fault_of(&error), error)
        })
    }

    fn state<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.shared.state.lock().unwrap_or_else(PoisonError::into_inner))
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
                clock: Clock::system(),
                state: Mutex::default(),
                connecting: tokio::sync::Mutex::default(),
            }),
        })
    }
}
