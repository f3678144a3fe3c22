//! The topics beside a topic: for retries, and for dead letters.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use crate::KafkaCluster;
use crate::cluster::REQUEST_TIMEOUT;

/// The largest record that a topic takes by Kafka's own default (`max.message.bytes`), and that publishers send.
pub const MESSAGE_BYTES_MAX: usize = 1_048_588;

/// What retry and dead letter topics take beyond the limit of the topic: the evidence in the headers of a record.
pub const EVIDENCE_BYTES_MAX: usize = 65_536;

/// What is said about a name that no topic can have.
pub(crate) const NAME_RULE: &str = "is no name of a topic; use up to 230 letters, digits, `.`, `_` and `-`";

/// The topics of a family: the topic itself, its retry topics and its dead letter topic.
///
/// ```
/// use seawall_kafka::TopicFamily;
/// let orders = TopicFamily::new("orders", 3);
/// assert_eq!(orders.retry_topics(), ["orders-retry-1", "orders-retry-2"]);
/// assert_eq!(orders.dead_letter_topic(), "orders-dlt");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicFamily {
    topic: String,
    retries: Vec<String>,
    dead_letters: String,
}

/// How topics are created.
#[derive(Clone, Debug)]
pub(crate) struct TopicSettings {
    /// The number of copies of each record; -1 for what the cluster does by default.
    pub(crate) replicas: i32,
    pub(crate) message_bytes_max: usize,
}

impl TopicFamily {
    /// Names the topics for this many attempts: one retry topic for each attempt after the first.
    #[must_use]
    pub fn new(topic: &str, attempts_max: u32) -> Self {
        let retries = (1..attempts_max).map(|number| format!("{topic}-retry-{number}")).collect();
        TopicFamily { topic: topic.to_owned(), retries, dead_letters: format!("{topic}-dlt") }
    }

    /// The topic itself.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// The retry topics. A record whose attempt `n` failed waits in the `n`-th.
    #[must_use]
    pub fn retry_topics(&self) -> &[String] {
        &self.retries
    }

    /// The topic of records that were given up.
    #[must_use]
    pub fn dead_letter_topic(&self) -> &str {
        &self.dead_letters
    }

    /// The retry topic after this failed attempt; `None` without retries.
    pub(crate) fn retry_after(&self, attempt: u32) -> Option<&str> {
        let index = usize::try_from(attempt).unwrap_or(usize::MAX).clamp(1, self.retries.len().max(1)) - 1;
        self.retries.get(index).map(String::as_str)
    }

    /// Creates the retry topics and the dead letter topic that do not exist, with as many partitions as the topic has.
    ///
    /// # Errors
    /// Fails with `UnknownTopicOrPartition` if the topic itself does not exist: nobody creates that by accident.
    pub(crate) async fn declare(
        &self,
        cluster: &KafkaCluster,
        settings: &TopicSettings,
    ) -> Result<(), KafkaError> {
        let admin: AdminClient<DefaultClientContext> = cluster.client_config().create()?;
        let (admin, partitions) = self.partitions(admin).await?;
        let limit = (settings.message_bytes_max + EVIDENCE_BYTES_MAX).to_string();
        let topics: Vec<NewTopic<'_>> = self
            .retries
            .iter()
            .chain([&self.dead_letters])
            .map(|name| {
                NewTopic::new(name, partitions, TopicReplication::Fixed(settings.replicas))
                    .set("max.message.bytes", &limit)
            })
            .collect();
        let options = AdminOptions::new().request_timeout(Some(REQUEST_TIMEOUT));
        for result in admin.create_topics(&topics, &options).await? {
            match result {
                Ok(_) | Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                Err((_, code)) => return Err(KafkaError::AdminOp(code)),
            }
        }
        Ok(())
    }

    /// The number of partitions of the topic. The client waits for the answer on a thread of its own.
    async fn partitions(
        &self,
        admin: AdminClient<DefaultClientContext>,
    ) -> Result<(AdminClient<DefaultClientContext>, i32), KafkaError> {
        let topic = self.topic.clone();
        let asked = tokio::task::spawn_blocking(move || {
            let metadata = admin.inner().fetch_metadata(Some(&topic), METADATA_TIMEOUT)?;
            let found = metadata.topics().iter().find(|found| found.name() == topic);
            let count =
                found.filter(|found| found.error().is_none()).map_or(0, |found| found.partitions().len());
            if count == 0 {
                return Err(KafkaError::MetadataFetch(RDKafkaErrorCode::UnknownTopicOrPartition));
            }
            Ok((admin, i32::try_from(count).unwrap_or(i32::MAX)))
        });
        asked.await.unwrap_or(Err(KafkaError::Canceled))
    }
}

/// How long the cluster may take to say which partitions a topic has.
const METADATA_TIMEOUT: Duration = Duration::from_secs(5);

/// True for a name that a topic can have, with room for what is added to it.
pub(crate) fn is_valid(topic: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !topic.is_empty() && topic.len() <= 230 && topic != "." && topic != ".." && topic.chars().all(plain)
}
