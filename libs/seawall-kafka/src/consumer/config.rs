//! The builder of a consumer and its defaults.

use std::time::Duration;

use rdkafka::ClientConfig;
use seawall::{Backoff, ConfigError, secs};
use seawall_dist::messaging::{MessageHandler, MessageProcessor, MessageProcessorBuilder};

use super::{KafkaConsumer, RecordOrder, StartOffset};
use crate::KafkaCluster;
use crate::topics::{self, MESSAGE_BYTES_MAX, TopicFamily, TopicSettings};

/// The default number of attempts: the first, and one from each of two retry topics.
pub const ATTEMPTS_MAX: u32 = 3;
/// The default wait before the second attempt. The wait before the third is twice as long.
pub const BACKOFF_BASE: Duration = secs(1);
/// The default number of records that are processed at once. Handlers mostly wait for others.
pub const CONCURRENCY: usize = 16;
/// The default number of records of a partition from the last commit to the last that was received. A crash delivers no more of
/// them again. A commit takes some milliseconds, and half of the window has to last for it at full speed.
pub const WINDOW: usize = 4_000;
/// How many bytes of payloads of a partition are in memory before no more is received.
pub const WINDOW_BYTES: usize = 16 << 20;
/// The default time within which a consumer has to show the group that it lives. Kafka's own default.
pub const SESSION_TIMEOUT: Duration = secs(45);
/// The default time within which a consumer has to ask for records. This adapter asks all the time, so that only a stopped
/// process misses it. Kafka's own default.
pub const POLL_INTERVAL_MAX: Duration = secs(300);
/// The default time that running records get to end when their partition goes to another consumer.
pub const REVOKE_WAIT: Duration = secs(10);
/// The default time that running records get to end when the consumer stops.
pub const STOP_WAIT: Duration = secs(30);
/// How long a record may take to be written to a retry topic before it is written again.
pub(super) const FORWARD_TIMEOUT: Duration = secs(5);

/// The processor that a consumer has unless told otherwise: [`ATTEMPTS_MAX`] attempts, [`BACKOFF_BASE`] apart, then twice as
/// long, without jitter. Add an inbox, or other limits, and give it to [`KafkaConsumer::with_processor`].
pub fn default_processor(handler: impl MessageHandler) -> MessageProcessorBuilder {
    MessageProcessor::builder("Kafka-Consumer", "kafka", handler)
        .attempts_max(ATTEMPTS_MAX)
        .backoff(Backoff::exponential(BACKOFF_BASE).no_jitter())
}

/// What all consumers of this crate have.
#[derive(Clone, Debug)]
pub(crate) struct GroupSettings {
    pub(crate) cluster: KafkaCluster,
    pub(crate) group: String,
    pub(crate) concurrency: usize,
    pub(crate) window: usize,
    pub(crate) order: RecordOrder,
    pub(crate) start: StartOffset,
    pub(crate) session_timeout: Duration,
    pub(crate) poll_interval_max: Duration,
    pub(crate) revoke_wait: Duration,
    pub(crate) stop_wait: Duration,
}

impl GroupSettings {
    pub(crate) fn new(cluster: KafkaCluster, group: String) -> Self {
        GroupSettings {
            cluster,
            group,
            concurrency: CONCURRENCY,
            window: WINDOW,
            order: RecordOrder::Key,
            start: StartOffset::Earliest,
            session_timeout: SESSION_TIMEOUT,
            poll_interval_max: POLL_INTERVAL_MAX,
            revoke_wait: REVOKE_WAIT,
            stop_wait: STOP_WAIT,
        }
    }

    pub(crate) fn client_config(&self) -> ClientConfig {
        let mut config = self.cluster.client_config();
        let start = match self.start {
            StartOffset::Earliest => "earliest",
            StartOffset::Latest => "latest",
        };
        config
            .set("group.id", &self.group)
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", start)
            // Topics and partitions that are new are noticed soon.
            .set("topic.metadata.refresh.interval.ms", "10000")
            .set("session.timeout.ms", self.session_timeout.as_millis().to_string())
            .set("heartbeat.interval.ms", (self.session_timeout / 6).as_millis().max(1).to_string())
            .set("max.poll.interval.ms", self.poll_interval_max.as_millis().to_string());
        #[cfg(feature = "metrics")]
        config.set("statistics.interval.ms", crate::metrics::REPORT_INTERVAL_MILLIS);
        config
    }

    /// The mistakes in the settings.
    pub(crate) fn problems(&self) -> Vec<(&'static str, String)> {
        let checks = [
            (self.group.trim().is_empty(), "group", "is empty; consumers of one group share the work"),
            (self.concurrency == 0, "concurrency", "is zero, so that nothing would run"),
            (self.window < 2, "window", "must be at least 2"),
            (self.window > 1_000_000, "window", "must be at most 1 000 000"),
            (self.session_timeout < secs(1), "session_timeout", "must be at least a second"),
            (
                self.poll_interval_max < self.session_timeout,
                "poll_interval_max",
                "must not be below the session timeout",
            ),
            (
                self.revoke_wait * 2 > self.poll_interval_max,
                "revoke_wait",
                "must be at most half of `poll_interval_max`, because the consumer does not poll meanwhile",
            ),
        ];
        let wrong = checks.into_iter().filter(|(is_wrong, ..)| *is_wrong);
        wrong.map(|(_, setting, text)| (setting, text.to_owned())).collect()
    }
}

/// Configures a [`KafkaConsumer`]. [`KafkaConsumer::builder`] creates it.
#[must_use = "call `build` to get the consumer"]
#[derive(Debug)]
pub struct KafkaConsumerBuilder {
    settings: GroupSettings,
    topic: String,
    processor: Result<MessageProcessor, ConfigError>,
    replicas: i32,
    message_bytes_max: usize,
    declare: bool,
}

impl KafkaConsumerBuilder {
    pub(super) fn new(
        settings: GroupSettings,
        topic: String,
        processor: Result<MessageProcessor, ConfigError>,
    ) -> Self {
        KafkaConsumerBuilder {
            settings,
            topic,
            processor,
            replicas: -1,
            message_bytes_max: MESSAGE_BYTES_MAX,
            declare: true,
        }
    }

    /// Sets how many records are processed at once; [`CONCURRENCY`] unless told.
    pub fn concurrency(mut self, records: usize) -> Self {
        self.settings.concurrency = records;
        self
    }

    /// Sets the number of records of a partition between the last commit and the last that was received; [`WINDOW`] unless
    /// told. It bounds the memory, and what a crash delivers again.
    pub fn window(mut self, records: usize) -> Self {
        self.settings.window = records;
        self
    }

    /// Sets which records are processed in order; those of one key unless told.
    pub fn order(mut self, order: RecordOrder) -> Self {
        self.settings.order = order;
        self
    }

    /// Sets where a group begins that has committed nothing; at the earliest record unless told, so that nothing is skipped.
    pub fn start(mut self, start: StartOffset) -> Self {
        self.settings.start = start;
        self
    }

    /// Sets after which silence the group gives the partitions of a consumer to others; [`SESSION_TIMEOUT`] unless told.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// Sets `max.poll.interval.ms`; [`POLL_INTERVAL_MAX`] unless told.
    pub fn poll_interval_max(mut self, interval: Duration) -> Self {
        self.settings.poll_interval_max = interval;
        self
    }

    /// Sets how long running records may take to end when their partition goes to another consumer; [`REVOKE_WAIT`] unless told.
    pub fn revoke_wait(mut self, wait: Duration) -> Self {
        self.settings.revoke_wait = wait;
        self
    }

    /// Sets how long running records may take to end when the consumer stops; [`STOP_WAIT`] unless told.
    pub fn stop_wait(mut self, wait: Duration) -> Self {
        self.settings.stop_wait = wait;
        self
    }

    /// Sets how many copies the retry topics and the dead letter topic have; the default of the cluster unless told.
    pub fn topic_replicas(mut self, replicas: u16) -> Self {
        self.replicas = i32::from(replicas);
        self
    }

    /// Sets the largest record of the topic; [`MESSAGE_BYTES_MAX`] unless told. Retry topics and the dead letter topic take a
    /// little more, for the evidence.
    pub fn message_bytes_max(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Leaves the retry topics and the dead letter topic to somebody else, who creates them.
    pub fn without_declaring_topics(mut self) -> Self {
        self.declare = false;
        self
    }

    /// Builds the consumer. It connects when it runs.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<KafkaConsumer, ConfigError> {
        let mut problems = self.settings.problems();
        if !topics::is_valid(&self.topic) {
            problems.push(("topic", topics::NAME_RULE.to_owned()));
        }
        if !(1_000..=900_000_000).contains(&self.message_bytes_max) {
            problems.push(("message_bytes_max", "must be from 1 000 to 900 000 000 bytes".to_owned()));
        }
        let processor = match self.processor {
            Ok(processor) => Some(processor),
            Err(error) => {
                problems.push(("processor", error.to_string()));
                None
            }
        };
        match processor.filter(|_| problems.is_empty()) {
            Some(processor) => {
                let family = TopicFamily::new(&self.topic, processor.attempts_max());
                let created =
                    TopicSettings { replicas: self.replicas, message_bytes_max: self.message_bytes_max };
                Ok(KafkaConsumer {
                    settings: self.settings,
                    family,
                    processor,
                    created,
                    declare: self.declare,
                })
            }
            None => Err(ConfigError::new("the Kafka consumer", problems)),
        }
    }
}
