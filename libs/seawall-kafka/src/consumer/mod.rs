//! Processes records of a topic, with retries that do not hold up others.

mod commit;
mod config;
mod ended;
mod error;
mod forward;
mod handover;
mod intake;
mod lanes;
mod marker;
mod offsets;
mod poll;
mod run;
mod state;
mod task;
mod worker;

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::error::KafkaError;
use seawall::Clock;
use seawall_dist::messaging::{MessageHandler, MessageProcessor};

use crate::KafkaCluster;
use crate::client::ClientEvents;
use crate::fault::fault_of;
use crate::producer::SharedProducer;
use crate::telemetry::ClientLog;
use crate::topics::{EVIDENCE_BYTES_MAX, TopicFamily, TopicSettings};
use config::{FORWARD_TIMEOUT, GroupSettings};
use forward::Forwarder;
use poll::Hooks;
use run::Engine;
use state::Shared;
use task::{HandlerTask, RecordTask};

pub use config::{
    ATTEMPTS_MAX, BACKOFF_BASE, CONCURRENCY, KafkaConsumerBuilder, POLL_INTERVAL_MAX, REVOKE_WAIT,
    SESSION_TIMEOUT, STOP_WAIT, WINDOW, WINDOW_BYTES, default_processor,
};
pub use error::KafkaConsumerError;
pub use forward::DUE_HEADER;
pub use intake::{INTAKE_WAIT, KafkaDeadLetterConsumer, KafkaDeadLetterConsumerBuilder};

/// The first wait after the cluster could not be asked about topics.
const DECLARE_WAIT: Duration = Duration::from_millis(200);

/// The longest wait after the cluster could not be asked about topics.
const DECLARE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Which records are processed one after another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum RecordOrder {
    /// Those of one key. Others of the partition run beside them, and those without a key have no order.
    #[default]
    Key,
    /// Those of one partition.
    Partition,
}

/// Where a group begins that has committed nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum StartOffset {
    /// With the oldest record that the topic has.
    #[default]
    Earliest,
    /// With records that come after it began.
    Latest,
}

/// Processes the records of a topic as a member of a group. It is a handle: clones are equal, and each run of one is a member of
/// its own.
#[derive(Clone, Debug)]
pub struct KafkaConsumer {
    settings: GroupSettings,
    family: TopicFamily,
    processor: MessageProcessor,
    created: TopicSettings,
    declare: bool,
}

impl KafkaConsumer {
    /// Starts to configure a consumer with the [default processor](default_processor).
    pub fn builder(
        cluster: &KafkaCluster,
        group: impl Into<String>,
        topic: impl Into<String>,
        handler: impl MessageHandler,
    ) -> KafkaConsumerBuilder {
        let settings = GroupSettings::new(cluster.clone(), group.into());
        KafkaConsumerBuilder::new(settings, topic.into(), default_processor(handler).build())
    }

    /// Starts to configure a consumer with a processor of your own: with an inbox, other attempts, other waits.
    pub fn with_processor(
        cluster: &KafkaCluster,
        group: impl Into<String>,
        topic: impl Into<String>,
        processor: MessageProcessor,
    ) -> KafkaConsumerBuilder {
        let settings = GroupSettings::new(cluster.clone(), group.into());
        KafkaConsumerBuilder::new(settings, topic.into(), Ok(processor))
    }

    /// The topic with its retry topics and its dead letter topic.
    #[must_use]
    pub fn topics(&self) -> &TopicFamily {
        &self.family
    }

    /// Processes records until `shutdown` is ready; then lets what runs end, commits, and leaves the group.
    ///
    /// A cluster that is away is waited for. A future that is dropped ends what runs; its records are delivered again.
    ///
    /// # Errors
    /// Fails if the topic does not exist, if the cluster refuses the credentials, and if the client breaks.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), KafkaConsumerError> {
        let mut shutdown = pin!(shutdown);
        let events = Arc::new(ClientEvents::new("Kafka-Consumer"));
        if self.declare {
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                declared = self.declare_topics(events.log()) => declared?,
            }
        }
        let bytes = self.created.message_bytes_max + EVIDENCE_BYTES_MAX;
        let forwarder = Forwarder {
            producer: SharedProducer::new(&self.settings.cluster, "Kafka-Consumer", FORWARD_TIMEOUT, bytes)
                .map_err(|error| KafkaConsumerError::of_client("creating a producer", error))?,
            family: self.family.clone(),
            group: self.settings.group.clone(),
            clock: Clock::system(),
        };
        let mut topics = vec![self.family.topic().to_owned()];
        topics.extend_from_slice(self.family.retry_topics());
        let task =
            Arc::new(RecordTask::Handler(HandlerTask { processor: self.processor.clone(), forwarder }));
        run_group(&self.settings, topics, task, events, shutdown).await
    }

    /// Creates the topics for retries and dead letters, and waits for a cluster that is away.
    async fn declare_topics(&self, log: &ClientLog) -> Result<(), KafkaConsumerError> {
        let mut wait = DECLARE_WAIT;
        loop {
            let error: KafkaError = match self.family.declare(&self.settings.cluster, &self.created).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            if !fault_of(&error).is_transient() {
                return Err(KafkaConsumerError::of_client("creating the topics for retries", error));
            }
            log.warn("Topics", "The cluster is away, will retry.", &error);
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(DECLARE_WAIT_MAX);
        }
    }
}

/// Runs a task on the records of topics, as a member of a group.
async fn run_group(
    settings: &GroupSettings,
    topics: Vec<String>,
    task: Arc<RecordTask>,
    events: Arc<ClientEvents>,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), KafkaConsumerError> {
    let GroupSettings { window, concurrency, order, revoke_wait, stop_wait, .. } = *settings;
    let topics = topics.into_iter().map(Arc::from).collect();
    let shared = Shared::new(topics, settings.group.clone(), window, concurrency, order, Clock::system());
    let shared = Arc::new(shared);
    let hooks = Hooks {
        shared,
        events,
        revoke_wait,
        batch: Mutex::default(),
        #[cfg(feature = "metrics")]
        group: settings.group.clone(),
    };
    let engine = Engine::start(&settings.client_config(), hooks, task)
        .map_err(|error| KafkaConsumerError::of_client("joining the group", error))?;
    engine.run(shutdown, stop_wait).await
}
