//! Two connections to one RabbitMQ, shared by all that use them, made again when they break.

use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lapin::tcp::OwnedTLSConfig;
use lapin::uri::AMQPUri;
use lapin::{Channel, Connection, ConnectionProperties, Error as ClientError};
use seawall::fault::Ran;
use seawall::{Backoff, Clock, ConfigError, Fault, Tick};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::AmqpError;
use crate::socket::{self, Socket};

/// How long a connection may take to be made, its handshake included.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// How long the server may take to answer: to open a channel, to declare a queue, to confirm messages. It is below the time limit
/// of the publisher's guard, so that the error says what was waited for.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);

/// The interval of heartbeats that is asked of the server, unless the address has one (`?heartbeat=30`). A peer that is gone
/// without a word is noticed after two of them.
pub const HEARTBEAT: Duration = Duration::from_secs(10);

/// The wait after the first failed attempt to connect; each further one doubles it.
pub const RECONNECT_WAIT: Duration = Duration::from_millis(100);

/// The longest wait between attempts to connect.
pub const RECONNECT_WAIT_MAX: Duration = Duration::from_secs(5);

/// Unanswered requests in a row before a connection is given up and made anew. One may be a slow disk of the server.
pub const TIMEOUTS_BEFORE_RECONNECT: u32 = 2;

/// RabbitMQ at one address. A handle: clones share everything.
///
/// It has up to two connections: one for publishers and one for consumers. A server that is short of memory or disk stops reading
/// from connections that publish, and consumers must still be able to acknowledge then, or the server would never recover.
///
/// Each connects with its first use. After it broke, the next use makes a new one; while the server stays away, uses fail at once
/// and one of them connects again after a wait. The attempt to connect belongs to nobody: one who is dropped while waiting leaves
/// it to the others.
#[derive(Clone)]
pub struct AmqpConnection {
    shared: Arc<Shared>,
}

struct Shared {
    uri: AMQPUri,
    name: String,
    tls: OwnedTLSConfig,
    connect_timeout: Duration,
    response_timeout: Duration,
    backoff: Backoff,
    clock: Clock,
    links: [Mutex<State>; 2],
}

/// What a connection is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    Publish,
    Consume,
}

#[derive(Default)]
struct State {
    open: Option<Arc<OpenConnection>>,
    /// The attempt to connect that is under way. Its sender is dropped with the attempt, also if the runtime ends.
    connecting: Option<watch::Receiver<Attempt>>,
    /// The number of failed attempts to connect since the last success, and when the next may be made.
    failures: u32,
    not_before: Option<Tick>,
    last_error: Option<AmqpError>,
}

/// What became of an attempt to connect; `None` while it is under way.
type Attempt = Option<Result<Arc<OpenConnection>, ClientError>>;

/// A connection that stands, or stood.
pub(crate) struct OpenConnection {
    connection: Connection,
    socket: Socket,
    timeouts: AtomicU32,
    response_timeout: Duration,
}

impl AmqpConnection {
    /// Makes a connection with default settings: `amqp://user:password@127.0.0.1:5672/%2f`, where `%2f` is the virtual host `/`.
    /// Fails if the address can't be read; a server that is away is noticed by the first use.
    pub fn new(url: &str) -> Result<AmqpConnection, ConfigError> {
        AmqpConnection::builder(url).build()
    }

    /// Chooses timeouts and the name of the connection.
    pub fn builder(url: &str) -> AmqpConnectionBuilder {
        AmqpConnectionBuilder {
            url: url.to_owned(),
            name: None,
            connect_timeout: CONNECT_TIMEOUT,
            response_timeout: RESPONSE_TIMEOUT,
            tls: OwnedTLSConfig::default(),
        }
    }

    /// Opens a channel of your own, on the connection for consumers. Declare with it what this crate does not know of; do not
    /// publish on it.
    pub async fn channel(&self) -> Result<Channel, AmqpError> {
        self.open(Purpose::Consume).await?.channel().await
    }

    /// How long the server may take to answer.
    #[must_use]
    pub fn response_timeout(&self) -> Duration {
        self.shared.response_timeout
    }

    /// Host and port of the server.
    pub(crate) fn server(&self) -> String {
        let authority = &self.shared.uri.authority;
        format!("{}:{}", authority.host, authority.port)
    }

    /// The open connection, which is made if there is none.
    pub(crate) async fn open(&self, purpose: Purpose) -> Result<Arc<OpenConnection>, AmqpError> {
        let next = self.shared.next_step(purpose);
        let mut attempt = match next {
            NextStep::Use(open) => return Ok(open),
            NextStep::Wait(attempt) => attempt,
            NextStep::Fail(error) => return Err(error),
        };
        let result = attempt.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        match result {
            Some(Ok(open)) => Ok(open),
            // Nothing was sent, whatever the attempt to connect ended with.
            Some(Err(error)) => Err(AmqpError::of(CONNECTING, error).ran(Ran::No)),
            None => {
                let text = "the runtime that connected to RabbitMQ has ended";
                Err(AmqpError::new(CONNECTING, Fault::unreachable(), text))
            }
        }
    }
}

const CONNECTING: &str = "connecting to RabbitMQ";

/// What is done before a connection can be used.
enum NextStep {
    Use(Arc<OpenConnection>),
    Wait(watch::Receiver<Attempt>),
    Fail(AmqpError),
}

impl Shared {
    fn lock(&self, purpose: Purpose) -> MutexGuard<'_, State> {
        self.links[purpose as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_step(self: &Arc<Self>, purpose: Purpose) -> NextStep {
        let mut state = self.lock(purpose);
        if let Some(open) = &state.open {
            if open.is_connected() {
                return NextStep::Use(open.clone());
            }
            state.open = None;
        }
        // An attempt whose sender is gone without a result ended with its runtime.
        if let Some(attempt) = state.connecting.as_ref().filter(|attempt| attempt.has_changed().is_ok()) {
            return NextStep::Wait(attempt.clone());
        }
        if state.not_before.is_some_and(|tick| self.clock.now() < tick)
            && let Some(error) = &state.last_error
        {
            return NextStep::Fail(error.clone());
        }
        let (sender, attempt) = watch::channel(None);
        state.connecting = Some(attempt.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by the connect timeout, and belongs to all who wait for it"
        )]
        tokio::spawn(self.clone().connect(purpose, sender));
        NextStep::Wait(attempt)
    }

    async fn connect(self: Arc<Self>, purpose: Purpose, sender: watch::Sender<Attempt>) {
        let suffix = if purpose == Purpose::Publish { "publish" } else { "consume" };
        let name = format!("{} ({suffix})", self.name);
        let properties = ConnectionProperties::default().with_connection_name(name.into());
        let result =
            socket::connect(self.uri.clone(), properties, self.tls.clone(), self.connect_timeout).await;
        let now = self.clock.now();
        let mut state = self.lock(purpose);
        state.connecting = None;
        let result = match result {
            Ok((connection, socket)) => {
                let response_timeout = self.response_timeout;
                let timeouts = AtomicU32::new(0);
                let open = Arc::new(OpenConnection { connection, socket, timeouts, response_timeout });
                *state = State { open: Some(open.clone()), ..State::default() };
                Ok(open)
            }
            Err(error) => {
                let wait = self.backoff.wait(state.failures, Duration::ZERO, false, random_word());
                state.failures = state.failures.saturating_add(1);
                state.not_before = Some(now + wait);
                state.last_error = Some(AmqpError::of(CONNECTING, error.clone()).ran(Ran::No));
                Err(error)
            }
        };
        drop(state);
        sender.send_replace(Some(result));
    }
}

/// A number for jitter, from the keys that the operating system gave to the standard library's hasher.
pub(crate) fn random_word() -> u64 {
    RandomState::new().hash_one(0)
}

impl OpenConnection {
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.status().connected()
    }

    /// Whether the server has stopped reading from this connection, because it is short of memory or disk.
    pub(crate) fn is_blocked(&self) -> bool {
        self.connection.status().blocked()
    }

    pub(crate) fn response_timeout(&self) -> Duration {
        self.response_timeout
    }

    /// Opens a channel.
    pub(crate) async fn channel(&self) -> Result<Channel, AmqpError> {
        self.within("opening a channel", self.connection.create_channel()).await
    }

    /// Waits for an answer of the server, at most for the response timeout.
    pub(crate) async fn within<T>(
        &self,
        action: &'static str,
        work: impl Future<Output = Result<T, ClientError>>,
    ) -> Result<T, AmqpError> {
        match timeout(self.response_timeout, work).await {
            Ok(result) => {
                self.answered();
                result.map_err(|error| AmqpError::of(action, error))
            }
            Err(_) => {
                self.unanswered();
                Err(AmqpError::timed_out(action))
            }
        }
    }

    /// Takes note that the server answers.
    pub(crate) fn answered(&self) {
        self.timeouts.store(0, Ordering::Relaxed);
    }

    /// Counts a request without an answer, and cuts a connection that has been silent too often. One that is blocked is silent
    /// for a reason, and a new one would be blocked too.
    pub(crate) fn unanswered(&self) {
        let timeouts = self.timeouts.fetch_add(1, Ordering::Relaxed) + 1;
        if timeouts >= TIMEOUTS_BEFORE_RECONNECT && !self.is_blocked() {
            self.cut();
        }
    }

    /// Ends the connection without a word to the server.
    pub(crate) fn cut(&self) {
        self.socket.cut();
    }
}

impl fmt::Debug for AmqpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("AmqpConnection").field("server", &self.server()).finish_non_exhaustive()
    }
}

/// Chooses the settings of an [`AmqpConnection`].
#[must_use = "call `build` to get the connection"]
pub struct AmqpConnectionBuilder {
    url: String,
    name: Option<String>,
    connect_timeout: Duration,
    response_timeout: Duration,
    tls: OwnedTLSConfig,
}

impl AmqpConnectionBuilder {
    /// Names the connection. The name stands in the server's list of connections; the name of the program unless told.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets how long a connection may take to be made; [`CONNECT_TIMEOUT`] unless told.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the server may take to answer; [`RESPONSE_TIMEOUT`] unless told.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets the certificates that are trusted beside the usual ones, and those of this program, for `amqps` addresses.
    ///
    /// TLS is a matter of the program: it needs `lapin` among its own dependencies with the feature `rustls` and its choice of
    /// certificates. Without it a connection to an `amqps` address is refused.
    pub fn tls(mut self, tls: OwnedTLSConfig) -> Self {
        self.tls = tls;
        self
    }

    /// Makes the connection, which is opened by its first use, or says everything that is wrong at once.
    pub fn build(self) -> Result<AmqpConnection, ConfigError> {
        let mut problems = Vec::new();
        for (setting, time) in
            [("connect_timeout", self.connect_timeout), ("response_timeout", self.response_timeout)]
        {
            if time.is_zero() {
                problems.push((setting, format!("it is zero; write a time such as {RESPONSE_TIMEOUT:?}")));
            }
        }
        // What the parser says may hold the address, and the address a password.
        let uri = self.url.parse::<AMQPUri>().ok();
        if uri.is_none() {
            problems.push((
                "url",
                "it can't be read; write it like `amqp://user:password@host:5672/%2f`, special characters as `%40`"
                    .to_owned(),
            ));
        }
        let Some(mut uri) = uri.filter(|_| problems.is_empty()) else {
            return Err(ConfigError::new("the connection to RabbitMQ", problems));
        };
        uri.query.heartbeat.get_or_insert(HEARTBEAT.as_secs() as u16);
        Ok(AmqpConnection {
            shared: Arc::new(Shared {
                uri,
                name: self.name.unwrap_or_else(program_name),
                tls: self.tls,
                connect_timeout: self.connect_timeout,
                response_timeout: self.response_timeout,
                backoff: Backoff::exponential(RECONNECT_WAIT)
                    .cap(RECONNECT_WAIT_MAX)
                    .jitter(seawall::backoff::Jitter::Equal),
                clock: Clock::system(),
                links: [Mutex::default(), Mutex::default()],
            }),
        })
    }
}

fn program_name() -> String {
    let program = std::env::current_exe().ok();
    let name = program.as_deref().and_then(|path| path.file_stem()?.to_str());
    name.unwrap_or("seawall").to_owned()
}

impl fmt::Debug for AmqpConnectionBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpConnectionBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
