//! The hub, put together: the store, the client and the keyring of one folder.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use seawall::{Clock, Registry, Tick};
use seawall_hub_core::domain::slug::Slug;
use seawall_hub_core::domain::source::Source;
use seawall_hub_core::domain::time::Millis;
use seawall_hub_core::port::store::{StoreError, UnitStore};
use seawall_hub_core::render::WebhookNaming;
use seawall_hub_core::service::{
    AlertHandle, BridgeHandle, Context, DeadLetterHandle, GatewayHandle, Handles, HubRuntime, OpsHandle,
    RegistryHandle,
};
use seawall_hub_core::sync::RwLock;
use seawall_hub_store::AnyStore;
use tokio::sync::Notify;

use crate::demo::DemoServices;
use crate::history::History;
use crate::http::RequestTelemetry;
use crate::liveness::Liveness;
use crate::log::Log;
use crate::metric_store::MetricStore;
use crate::responses::{self, ResponseMemory};
use crate::seal::Keyring;
use crate::source::ReplayCache;
use crate::source::verify::Verifier;
use crate::spans::{Exporter, Spans};
use crate::start::{
    MetricsAccess, StartError, StartOptions, WRITE_TIMEOUT_USUAL, claim_key, client, keyring, open_store,
};
use crate::transport::{HttpTransport, TracedTransport};

/// A timeout that fires so much later than it was set to was missed by the hub itself, and charges no peer.
const PAUSE_TOLERANCE: Duration = Duration::from_secs(2);

/// The transport of the hub: HTTP, with a span for each attempt.
pub(crate) type HubTransport = TracedTransport<HttpTransport>;

/// The hub, put together: what it knows is kept in one folder.
#[derive(Debug)]
pub struct Server {
    pub registry: RegistryHandle<AnyStore, HubTransport>,
    pub bridge: BridgeHandle<AnyStore, HubTransport>,
    pub gateway: GatewayHandle<AnyStore, HubTransport>,
    pub dead_letters: DeadLetterHandle<AnyStore, HubTransport>,
    pub alerts: AlertHandle<AnyStore, HubTransport>,
    pub ops: OpsHandle<AnyStore, HubTransport>,
    pub runtime: HubRuntime<AnyStore, HubTransport>,
    store: AnyStore,
    /// Held for as long as the hub runs, if the store does not hold it.
    _folder_lock: Option<File>,
    /// Where everything is kept.
    pub(crate) folder: PathBuf,
    pub(crate) transport: HttpTransport,
    pub(crate) keyring: Keyring,
    pub(crate) spans: Spans,
    exporter: Option<Exporter>,
    /// What happened lately.
    pub(crate) history: History,
    pulse: Arc<Liveness>,
    /// The log lines about requests.
    pub(crate) request_telemetry: RequestTelemetry,
    demo: Option<Arc<DemoServices>>,
    /// The memory for responses.
    pub(crate) responses: ResponseMemory,
    /// For how long a client may take nothing of its response.
    pub(crate) write_timeout: Duration,
    metrics: MetricsAccess,
    /// How many files and connections the system lets the process have, if that is known.
    pub(crate) open_files: Option<u64>,
    clock: Clock,
    pub(crate) log: Option<Log>,
    /// The metrics of the process.
    pub(crate) metric_store: MetricStore,
    /// The text of the metrics, if it was made a moment ago and is a long one.
    pub(crate) metrics_text: tokio::sync::Mutex<Option<(Tick, Bytes)>>,
    /// What checks the webhooks of each source.
    pub(crate) gates: RwLock<HashMap<Slug, Arc<SourceVerifier>>>,
    /// Services that the egress rules forbade when they were last checked, and why.
    forbidden: RwLock<HashMap<Slug, String>>,
    /// Notified when the egress rules have changed.
    egress_changed: Notify,
}

/// The longest time that registering a service waits for its host name to be resolved.
const RESOLVED_WITHIN: Duration = Duration::from_millis(300);

/// What checks the webhooks of a source.
#[derive(Debug)]
pub(crate) struct SourceVerifier {
    /// Of the source as it was then. A version alone may come again when a source was deleted.
    pub(crate) source: Source,
    pub(crate) verifier: Verifier,
    pub(crate) naming: WebhookNaming,
    pub(crate) replays: Arc<ReplayCache>,
}

impl Server {
    /// Opens the hub in this folder.
    pub async fn open(folder: &Path, options: &StartOptions) -> Result<Self, StartError> {
        // Before anybody counts.
        let metric_store = MetricStore::of_process().clone();
        // One clock for all, because deadlines of two can't be compared.
        let clock = &options.clock;
        let client = client(&options.allow_egress)?;
        let (store, folder_lock) = open_store(folder, options).await?;
        let keyring = keyring(folder, &store, options.new_secret_key).await?;
        let exporting = options.otlp_endpoint.as_deref().map(|endpoint| Exporter::new(endpoint, clock));
        let exporting = exporting.transpose().map_err(StartError)?;
        // It is there from the start, and not only when there was something to count.
        metrics::counter!(seawall_hub_core::metric_names::SPANS, "outcome" => "sent").increment(0);
        let (spans, exporter) = exporting.unzip();
        let spans = spans.unwrap_or_default();
        let responses = ResponseMemory::new(options.response_memory.unwrap_or(responses::BYTES_USUAL));
        let transport = HttpTransport::new(client, keyring.clone()).holding(responses.clone());
        // The guards count, and do not log: what is worth a line is the delivery, and the hub knows its name.
        let registry =
            Registry::builder().clock(clock.clone()).metrics().pause_tolerance(PAUSE_TOLERANCE).build();
        let traced = TracedTransport::new(transport.clone(), spans.clone());
        let observer = Arc::new(spans.clone());
        let handles = Handles::open(store.clone(), traced, registry, clock.clone(), observer).await;
        let Handles { registry, bridge, gateway, dead_letters, alerts, ops, runtime } =
            handles.map_err(|error| StartError(error.to_string()))?;
        let history = History::new(&metric_store, runtime.now());
        let (folder, pulse, gates) = (folder.to_owned(), Arc::default(), RwLock::default());
        let (demo, write_timeout) =
            (options.demo.clone(), options.write_timeout.unwrap_or(WRITE_TIMEOUT_USUAL));
        let forbidden = RwLock::default();
        let hub = Server {
            registry,
            bridge,
            gateway,
            dead_letters,
            alerts,
            ops,
            runtime,
            store,
            _folder_lock: folder_lock,
            folder,
            transport,
            keyring,
            spans,
            exporter,
            history,
            pulse,
            request_telemetry: RequestTelemetry::new(clock.clone()),
            demo,
            responses,
            write_timeout,
            metrics: options.metrics,
            open_files: options.open_files,
            clock: clock.clone(),
            log: options.log.clone(),
            metric_store,
            metrics_text: tokio::sync::Mutex::default(),
            gates,
            forbidden,
            egress_changed: Notify::new(),
        };
        hub.finish_rotation_before().await.map_err(|error| StartError(error.to_string()))?;
        claim_key(&hub.store, &hub.keyring).await?;
        hub.take_over_the_end().await;
        Ok(hub)
    }

    /// From now on requests go to public addresses, and to these ranges of private ones. What is under way ends as it began.
    pub fn allow_egress(&self, ranges: &[String]) -> Result<(), StartError> {
        self.transport.change_client(client(ranges)?);
        self.egress_changed.notify_one();
        Ok(())
    }

    /// Looks at the start, and whenever the egress rules have changed, which services they forbid: one after the other, because nobody
    /// waits for it.
    pub(crate) async fn keep_egress_checked(&self) {
        loop {
            for service in self.registry.services() {
                self.check_egress(&service.name, &service.address).await;
            }
            self.egress_changed.notified().await;
        }
    }

    /// Looks whether the egress rules allow a service, and remembers the answer. A name that can't be resolved at once may well
    /// be resolved later, so nothing is said of it.
    pub(crate) async fn check_egress(&self, name: &Slug, address: &str) {
        let forbidden = tokio::time::timeout(RESOLVED_WITHIN, self.transport.forbids(address)).await;
        if self.registry.service(name).is_none_or(|service| service.address != address) {
            // It was changed or deleted meanwhile.
            return;
        }
        let mut all = self.forbidden.write();
        match forbidden.ok().flatten() {
            Some(why) => all.insert(name.clone(), why),
            None => all.remove(name),
        };
    }

    /// What somebody should know who has registered this service.
    pub(crate) fn warnings_of(&self, name: &Slug) -> Vec<String> {
        let all = self.forbidden.read();
        all.get(name).cloned().into_iter().collect()
    }

    /// Whether the process gets on with its work.
    #[must_use]
    pub fn pulse(&self) -> &Arc<Liveness> {
        &self.pulse
    }

    /// Waits until the store can't be trusted any more, also while nothing is delivered.
    pub async fn broken(&self) -> StoreError {
        self.store.broken().await
    }

    /// How often the store was opened, this time included.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.store.epoch()
    }

    /// The wall time.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.runtime.now()
    }

    /// The context of a change that the hub makes by itself now.
    #[must_use]
    pub fn own_context(&self) -> Context {
        self.runtime.own_context()
    }

    /// Returns the store of the hub.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
        &self.store
    }

    /// Looks at the counters again and again, so that there is something to show.
    pub(crate) async fn keep_history(&self) {
        self.history.run(&self.metric_store, || self.now()).await;
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

    /// The sample services, if it is the hub of a demo.
    pub(crate) fn demo(&self) -> Option<&Arc<DemoServices>> {
        self.demo.as_ref()
    }

    /// Whether everybody may read the metrics.
    pub(crate) fn are_metrics_open(&self) -> bool {
        self.metrics == MetricsAccess::Open
    }

    /// The clock of the process.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }
}
