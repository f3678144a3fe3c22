//! The hub, put together: the store, the client and the keyring of one folder.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use seawall::{Clock, Registry, Tick};
use seawall_http::egress::{BadCidr, Cidr};
use seawall_http::{Egress, HttpClient};
use seawall_hub_core::domain::delivery::DeliveryId;
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::port::store::Store;
use seawall_hub_core::render::Naming;
use seawall_hub_core::service::{self, Accepted, Again, Incoming, NotAccepted, Refused};
use seawall_hub_store::Sqlite;
use tokio::sync::Notify;

use crate::demo::Demo;
use crate::history::History;
use crate::numbers::Numbers;
use crate::pulse::Pulse;
use crate::responses::{self, ResponseMemory};
use crate::seal::Keyring;
use crate::source::Replays;
use crate::source::verify::Verifier;
use crate::spans::{Exporter, Open, Spans};
use crate::transport::Http;

/// A timeout that fires so much later than it was set to was missed by the hub itself, and charges no peer.
const PAUSE_TOLERANCE: Duration = Duration::from_secs(2);

/// The hub, put together: what it knows is kept in one folder.
#[derive(Debug)]
pub struct Hub {
    inner: service::Hub<Sqlite, Http>,
    folder: PathBuf,
    transport: Http,
    keyring: Keyring,
    spans: Spans,
    exporter: Option<Exporter>,
    history: History,
    pulse: Arc<Pulse>,
    demo: Option<Arc<Demo>>,
    responses: ResponseMemory,
    write_timeout: Duration,
    metrics: MetricsAccess,
    open_files: Option<u64>,
    /// The text of the metrics, if it was made a moment ago and is a long one.
    metrics_text: tokio::sync::Mutex<Option<(Tick, Bytes)>>,
    /// What checks the webhooks of each source.
    pub(crate) gates: RwLock<HashMap<Slug, Arc<Gate>>>,
    /// Services that the egress rules forbade when they were last checked, and why.
    forbidden: RwLock<HashMap<Slug, String>>,
    /// Notified when the egress rules have changed.
    egress_changed: Notify,
}

/// Whoever registers a service waits so long at most for its name to be resolved.
const RESOLVED_WITHIN: Duration = Duration::from_millis(300);

/// What checks the webhooks of a source.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Of the source as it was then. A version alone may come again when a source was deleted.
    pub(crate) source: Source,
    pub(crate) verifier: Verifier,
    pub(crate) naming: Naming,
    pub(crate) replays: Arc<Replays>,
}

/// How a hub is opened.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Requests go to public addresses, and to these ranges of private ones.
    pub allow_egress: Vec<String>,
    /// Whether a new key is made although there are secrets that need the one that is missing.
    pub new_secret_key: bool,
    /// The collector that traces go to, such as `http://127.0.0.1:4318`.
    pub otlp_endpoint: Option<String>,
    /// The sample services, if it is the hub of a demo.
    pub demo: Option<Arc<Demo>>,
    /// How many bytes of responses may be in memory at once; the default is [`responses::BYTES_USUAL`].
    pub response_memory: Option<u64>,
    /// For how long a client may take nothing of its response; the default is [`WRITE_TIMEOUT_USUAL`].
    pub write_timeout: Option<Duration>,
    /// Who may read the metrics.
    pub metrics: MetricsAccess,
    /// How many files and connections the system lets the process have, if that is known.
    pub open_files: Option<u64>,
}

/// Who may read the metrics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MetricsAccess {
    /// Whoever has a key that may read.
    #[default]
    Key,
    /// Everybody who reaches the port.
    Open,
}

/// For how long a client may take nothing of its response, if nobody says otherwise.
pub const WRITE_TIMEOUT_USUAL: Duration = Duration::from_secs(30);

/// Why a hub could not be opened.
#[derive(Debug)]
pub struct CannotOpen(String);

impl fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotOpen {}

impl Hub {
    /// Opens the hub in this folder.
    pub async fn open(folder: &Path, options: &Options) -> Result<Self, CannotOpen> {
        // Before anybody counts.
        let _ = Numbers::of_process();
        let client = client(&options.allow_egress)?;
        let store = Sqlite::open(folder).map_err(|error| CannotOpen(error.to_string()))?;
        let keyring = keyring(folder, &store, options.new_secret_key).await?;
        let exporting =
            options.otlp_endpoint.as_deref().map(Exporter::new).transpose().map_err(CannotOpen)?;
        // It is there from the start, and not only when there was something to count.
        metrics::counter!(service::numbers::SPANS, "outcome" => "sent").increment(0);
        let (spans, exporter) = exporting.unzip();
        let spans = spans.unwrap_or_default();
        let responses = ResponseMemory::new(options.response_memory.unwrap_or(responses::BYTES_USUAL));
        let transport = Http::new(client, keyring.clone()).telling(spans.clone()).holding(responses.clone());
        // The guards count, and do not log: what is worth a line is the delivery, and the hub knows its name.
        // One clock for all, because deadlines of two can't be compared.
        let clock = Clock::default();
        let registry =
            Registry::builder().clock(clock.clone()).metrics().pause_tolerance(PAUSE_TOLERANCE).build();
        let inner = service::Hub::open(store, transport.clone(), registry, clock);
        let mut inner = inner.await.map_err(|error| CannotOpen(error.to_string()))?;
        if spans.are_wanted() {
            inner.time_rules();
        }
        let history = History::new(Numbers::of_process(), inner.now());
        let (folder, pulse, gates) = (folder.to_owned(), Arc::default(), RwLock::default());
        let (demo, write_timeout) =
            (options.demo.clone(), options.write_timeout.unwrap_or(WRITE_TIMEOUT_USUAL));
        let forbidden = RwLock::default();
        let hub = Hub {
            inner,
            folder,
            transport,
            keyring,
            spans,
            exporter,
            history,
            pulse,
            demo,
            responses,
            write_timeout,
            metrics: options.metrics,
            open_files: options.open_files,
            metrics_text: tokio::sync::Mutex::default(),
            gates,
            forbidden,
            egress_changed: Notify::new(),
        };
        hub.finish_rotation_before().await.map_err(|error| CannotOpen(error.to_string()))?;
        hub.take_over_the_end().await;
        Ok(hub)
    }

    /// From now on requests go to public addresses, and to these ranges of private ones. What is under way ends as it began.
    pub fn allow_egress(&self, ranges: &[String]) -> Result<(), CannotOpen> {
        self.transport.change_client(client(ranges)?);
        self.egress_changed.notify_one();
        Ok(())
    }

    /// Looks at the start, and whenever the egress rules have changed, which services they forbid: one after the other, because nobody
    /// waits for it.
    pub(crate) async fn keep_egress_checked(&self) {
        loop {
            for service in self.services() {
                self.check_egress(&service.name, &service.address).await;
            }
            self.egress_changed.notified().await;
        }
    }

    /// Looks whether the egress rules allow a service, and remembers the answer. A name that can't be resolved at once may well
    /// be resolved later, so nothing is said of it.
    pub(crate) async fn check_egress(&self, name: &Slug, address: &str) {
        let forbidden = tokio::time::timeout(RESOLVED_WITHIN, self.transport.forbids(address)).await;
        if self.service(name).is_none_or(|service| service.address != address) {
            // It was changed or deleted meanwhile.
            return;
        }
        let mut all = self.forbidden.write().unwrap_or_else(PoisonError::into_inner);
        match forbidden.ok().flatten() {
            Some(why) => all.insert(name.clone(), why),
            None => all.remove(name),
        };
    }

    /// What somebody should know who has registered this service.
    pub(crate) fn warnings_of(&self, name: &Slug) -> Vec<String> {
        let all = self.forbidden.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().into_iter().collect()
    }

    /// Whether the process gets on with its work.
    #[must_use]
    pub fn pulse(&self) -> &Arc<Pulse> {
        &self.pulse
    }

    /// Waits until the store can't be trusted any more, also while nothing is delivered.
    pub async fn broken(&self) -> seawall_hub_core::port::store::StoreError {
        self.store().broken().await
    }

    /// What happened lately.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// Looks at the counters again and again, so that there is something to show.
    pub(crate) async fn keep_history(&self) {
        self.history.run(Numbers::of_process(), || self.now()).await;
    }

    /// Sends spans to the collector, if there is one, again and again.
    pub async fn export_traces(&self) {
        match &self.exporter {
            Some(exporter) => exporter.run().await,
            None => std::future::pending().await,
        }
    }

    /// Sends the spans that are left, if the collector takes them soon.
    pub async fn flush_traces(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.flush_last().await;
        }
    }

    /// Keeps an event, and takes in hand what it leads to.
    pub async fn accept(&self, incoming: Incoming) -> Result<Accepted, NotAccepted> {
        let span = self.spans.arrival(&incoming);
        let accepted = self.inner.accept(incoming).await;
        arrived(span, &accepted);
        accepted
    }

    /// Keeps several events, each for itself.
    pub async fn accept_all(&self, incoming: Vec<Incoming>) -> Vec<Result<Accepted, NotAccepted>> {
        let spans: Vec<_> = incoming.iter().map(|event| self.spans.arrival(event)).collect();
        let all = self.inner.accept_all(incoming).await;
        spans.into_iter().zip(&all).for_each(|(span, accepted)| arrived(span, accepted));
        all
    }

    /// Sends a dead letter again.
    pub async fn replay(&self, replay: &Again) -> Result<DeliveryId, Refused> {
        let dead = if self.spans.are_wanted() { self.store().delivery(replay.dead).await? } else { None };
        let span = dead.and_then(|(dead, _)| self.spans.replay(dead.id, &dead.event, dead.trace));
        let replayed = self.inner.replay(replay).await;
        match (span, &replayed) {
            (Some(span), Ok(delivery)) => span.replayed_as(*delivery),
            (Some(span), Err(_)) => span.forget(),
            (None, _) => {}
        }
        replayed
    }

    pub(crate) fn spans(&self) -> &Spans {
        &self.spans
    }

    /// Where everything is kept.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn transport(&self) -> &Http {
        &self.transport
    }

    /// The sample services, if it is the hub of a demo.
    pub(crate) fn demo(&self) -> Option<&Arc<Demo>> {
        self.demo.as_ref()
    }

    /// The memory for responses.
    pub(crate) fn responses(&self) -> &ResponseMemory {
        &self.responses
    }

    /// Whether everybody may read the metrics.
    pub(crate) fn are_metrics_open(&self) -> bool {
        self.metrics == MetricsAccess::Open
    }

    /// How many files and connections the system lets the process have, if that is known.
    pub(crate) fn open_files(&self) -> Option<u64> {
        self.open_files
    }

    /// The text of the metrics, if it was made a moment ago.
    pub(crate) fn metrics_text(&self) -> &tokio::sync::Mutex<Option<(Tick, Bytes)>> {
        &self.metrics_text
    }

    /// For how long a client may take nothing of its response.
    pub(crate) fn write_timeout(&self) -> Duration {
        self.write_timeout
    }

    pub(crate) fn keyring(&self) -> &Keyring {
        &self.keyring
    }
}

impl Deref for Hub {
    type Target = service::Hub<Sqlite, Http>;

    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

/// An event that was there before has arrived already.
fn arrived(span: Option<Open>, accepted: &Result<Accepted, NotAccepted>) {
    match (span, accepted) {
        (Some(span), Ok(accepted)) if !accepted.deduplicated => span.accepted(accepted),
        (Some(span), _) => span.forget(),
        (None, _) => {}
    }
}

/// Whether this is a range of addresses, like `10.1.0.0/16`.
pub fn is_range(text: &str) -> Result<(), String> {
    range(text).map(drop)
}

fn range(text: &str) -> Result<Cidr, String> {
    text.parse().map_err(|error: BadCidr| error.to_string())
}

/// A client that reaches public addresses, and these ranges of private ones.
fn client(allowed: &[String]) -> Result<HttpClient, CannotOpen> {
    let mut egress = Egress::default();
    for text in allowed {
        egress = egress.allow(range(text).map_err(CannotOpen)?);
    }
    HttpClient::builder().egress(egress).build().map_err(|error| CannotOpen(error.to_string()))
}

/// The keys of this folder. At the first start they are made; later they must not be missing, because a new one would open
/// nothing of what is there, and every delivery to a service with a secret would be given up.
async fn keyring(folder: &Path, store: &Sqlite, anew: bool) -> Result<Keyring, CannotOpen> {
    let failed = |error: &dyn fmt::Display| CannotOpen(format!("can't use `secret.key`: {error}"));
    if let Some(keyring) = Keyring::read(folder).map_err(|error| failed(&error))? {
        return Ok(keyring);
    }
    let registered = store.registered().await.map_err(|error| failed(&error))?;
    let needed = registered.services.iter().any(|service| service.auth.is_some())
        || !registered.sources.is_empty()
        || !registered.channels.is_empty();
    if needed && !anew {
        return Err(CannotOpen(format!(
            "`secret.key` is missing in `{}`, and there are secrets that only it opens; bring it back, or, if it is lost, \
             start once with `--new-secret-key` and register the secrets of services, sources and channels again",
            folder.display()
        )));
    }
    Keyring::make(folder).map_err(|error| failed(&error))
}
