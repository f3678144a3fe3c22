//! One connection to one NATS server or cluster, shared by all that use it, made again when it breaks.

mod config;
mod events;
mod log;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use async_nats::{Client, ConnectOptions, ServerAddr};
use seawall::{Clock, ConfigError, Fault, Tick};
use tokio::sync::watch;
use tokio::time::timeout;

pub(crate) use config::reconnect_pause;
pub use config::{CONNECT_TIMEOUT, NatsConnectionBuilder, PING_INTERVAL, RECONNECT_PAUSES, REQUEST_TIMEOUT};
use events::Problems;

use crate::NatsError;

/// The maximum number of acknowledgements that the client library waits for. Publishers have a limit of their own below it.
const ACKS_IN_FLIGHT_MAX: usize = 1 << 16;

/// A connection to a NATS server or cluster. A handle: clones share the connection.
///
/// It connects with the first request. After the connection broke, the client library makes it again in the background, with
/// growing pauses; requests fail at once in between, and are not queued. Queued requests would be sent when the server is back,
/// long after their callers gave up.
#[derive(Clone)]
pub struct NatsConnection {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Vec<ServerAddr>,
    options: ConnectOptions,
    connect_timeout: Duration,
    request_timeout: Duration,
    domain: Option<String>,
    clock: Clock,
    problems: Arc<Problems>,
    state: Mutex<Opening>,
}

#[derive(Default)]
struct Opening {
    open: Option<Arc<OpenConnection>>,
    /// The attempt to connect that is under way. Its sender is dropped with the attempt, also if the runtime ends.
    connecting: Option<watch::Receiver<Attempt>>,
    /// The number of failed attempts to connect since the last success, and when the next may be made.
    failures: usize,
    not_before: Option<Tick>,
}

/// The client with its JetStream context. It is shared, because a copy of a client costs a dozen counters.
pub(crate) struct OpenConnection {
    pub(crate) client: Client,
    pub(crate) jetstream: Context,
    /// What the subjects of the JetStream API begin with.
    pub(crate) prefix: String,
}

/// What became of an attempt to connect; `None` while it is under way.
type Attempt = Option<Result<Arc<OpenConnection>, NatsError>>;

/// What a request does before it can be sent.
enum NextStep {
    Send(Arc<OpenConnection>),
    Wait(watch::Receiver<Attempt>),
    Fail,
}

pub(crate) const CONNECTING: &str = "connecting to NATS";

impl NatsConnection {
    /// Makes a connection with default settings: `nats://127.0.0.1:4222`, or several addresses of one cluster with commas
    /// between them. Fails if an address can't be read; a server that is away is noticed by the first request.
    pub fn new(url: &str) -> Result<NatsConnection, ConfigError> {
        NatsConnection::builder(url).build()
    }

    /// Chooses credentials, certificates and time limits.
    pub fn builder(url: &str) -> NatsConnectionBuilder {
        NatsConnectionBuilder::new(url)
    }

    /// The JetStream context of the client library, for requests that this crate has no method for. Connects if it must.
    ///
    /// Fails at once while the server is away.
    pub async fn jetstream(&self) -> Result<Context, NatsError> {
        Ok(self.open().await?.jetstream.clone())
    }

    /// The client of the client library. Connects if it must, and fails at once while the server is away.
    pub async fn client(&self) -> Result<Client, NatsError> {
        Ok(self.open().await?.client.clone())
    }

    /// How long the server may take to answer a request.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.shared.request_timeout
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// What the server said about permissions for a subject since a moment. It says so beside the request, which is then never
    /// answered.
    pub(crate) fn violation_since(&self, begin: Tick, subject: &str) -> Option<String> {
        self.shared.problems.violation_since(begin, subject)
    }

    pub(crate) async fn open(&self) -> Result<Arc<OpenConnection>, NatsError> {
        let next = self.shared.next_step(&mut self.shared.lock());
        let mut attempt = match next {
            NextStep::Send(open) => return self.shared.check(open),
            NextStep::Wait(attempt) => attempt,
            NextStep::Fail => return Err(self.shared.away("the next attempt to connect is not due")),
        };
        let ended = attempt.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
        ended.unwrap_or_else(|| Err(self.shared.away("the runtime that connected has ended")))
    }

    /// The connection if it is there; never waits for it.
    pub(crate) fn open_now(&self) -> Option<Arc<OpenConnection>> {
        let open = self.shared.lock().open.clone()?;
        (open.client.connection_state() == State::Connected).then_some(open)
    }

    /// Forgets a client whose tasks have ended, which happens when the runtime that made it ends.
    pub(crate) fn forget_if_ended(&self, error: &NatsError) {
        if error.cause().to_string().contains("channel closed") {
            self.shared.lock().open = None;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Opening> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn away(&self, reason: &str) -> NatsError {
        let text = match self.problems.last() {
            Some(problem) => format!("the server is away, and {reason} (last problem: {problem})"),
            None => format!("the server is away, and {reason}"),
        };
        let fault = if self.problems.is_refused() { Fault::business() } else { Fault::unreachable() };
        NatsError::new(CONNECTING, fault.ran(seawall::Ran::No), text)
    }

    /// Refuses to send while the client library reconnects.
    fn check(&self, open: Arc<OpenConnection>) -> Result<Arc<OpenConnection>, NatsError> {
        match open.client.connection_state() {
            State::Connected => Ok(open),
            State::Disconnected | State::Pending => Err(self.away("the client reconnects")),
        }
    }

    fn next_step(self: &Arc<Self>, opening: &mut Opening) -> NextStep {
        if let Some(open) = &opening.open {
            return NextStep::Send(open.clone());
        }
        // An attempt whose sender is gone without a result ended with its runtime.
        if let Some(attempt) = opening.connecting.as_ref().filter(|attempt| attempt.has_changed().is_ok()) {
            return NextStep::Wait(attempt.clone());
        }
        if opening.not_before.is_some_and(|tick| self.clock.now() < tick) {
            return NextStep::Fail;
        }
        let (sender, attempt) = watch::channel(None);
        opening.connecting = Some(attempt.clone());
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends by the connect timeout, and belongs to all who wait for it"
        )]
        tokio::spawn(self.clone().connect(sender));
        NextStep::Wait(attempt)
    }

    async fn connect(self: Arc<Self>, sender: watch::Sender<Attempt>) {
        // The client's own limit is per address; a name may have several.
        let limit = self.connect_timeout * u32::try_from(self.servers.len()).unwrap_or(1).max(1);
        let connecting = self.options.clone().connect(self.servers.clone());
        let result = match timeout(limit, connecting).await {
            Ok(Ok(client)) => Ok(self.opened(client)),
            Ok(Err(error)) => Err(NatsError::of(CONNECTING, error)),
            Err(_) => Err(NatsError::new(
                CONNECTING,
                Fault::timeout().ran(seawall::Ran::No),
                "no server answered in time",
            )),
        };
        let now = self.clock.now();
        let mut opening = self.lock();
        opening.connecting = None;
        match &result {
            Ok(open) => *opening = Opening { open: Some(open.clone()), ..Opening::default() },
            Err(error) => {
                let pause = reconnect_pause(opening.failures);
                opening.failures += 1;
                opening.not_before = Some(now + pause);
                self.problems.failed_to_connect(error, pause);
            }
        }
        drop(opening);
        sender.send_replace(Some(result));
    }

    fn opened(&self, client: Client) -> Arc<OpenConnection> {
        self.problems.connected();
        let (settings, prefix) = match &self.domain {
            Some(domain) => (
                ContextBuilder::new().domain(domain).max_ack_inflight(ACKS_IN_FLIGHT_MAX),
                format!("$JS.{domain}.API"),
            ),
            None => (ContextBuilder::new().max_ack_inflight(ACKS_IN_FLIGHT_MAX), "$JS.API".to_owned()),
        };
        let settings = settings.ack_timeout(self.request_timeout).timeout(self.request_timeout);
        let jetstream = settings.build(client.clone());
        Arc::new(OpenConnection { client, jetstream, prefix })
    }
}

impl fmt::Debug for NatsConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        let servers: Vec<String> =
            self.shared.servers.iter().map(|server| format!("{}:{}", server.host(), server.port())).collect();
        f.debug_struct("NatsConnection").field("servers", &servers).finish()
    }
}
