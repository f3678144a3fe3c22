//! Takes dead letters out of their topic into a store.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use seawall::{ConfigError, secs};
use seawall_dist::deadletter::{DeadLetters, Record};
use seawall_dist::messaging::DeadLetterIntake;

use super::config::GroupSettings;
use super::error::KafkaConsumerError;
use super::run_group;
use super::task::{IntakeTask, RecordTask};
use crate::KafkaCluster;
use crate::client::ClientEvents;
use crate::telemetry::ClientLog;
use crate::topics::{self, TopicFamily};

/// The default wait after the store did not take a dead letter.
pub const INTAKE_WAIT: Duration = secs(5);

/// Takes the records of a dead letter topic over into [`DeadLetters`], where they can be searched and replayed.
///
/// A record counts as consumed when the store has it: at least once, and merged by its id. While the store is away, the records
/// stay in the topic.
///
/// ```no_run
/// # async fn example(letters: seawall_dist::deadletter::DeadLetters) -> Result<(), Box<dyn std::error::Error>> {
/// use seawall_kafka::{KafkaCluster, KafkaDeadLetterConsumer};
/// let cluster = KafkaCluster::new("localhost:9092")?;
/// let intake = KafkaDeadLetterConsumer::builder(&cluster, "billing-dlt", "orders", letters)
///     .alert(|record| println!("dead letter {}", record.id))
///     .build()?;
/// intake.run_until(async { std::future::pending().await }).await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct KafkaDeadLetterConsumer {
    settings: GroupSettings,
    topic: String,
    intake: DeadLetterIntake,
    wait: Duration,
}

impl KafkaDeadLetterConsumer {
    /// Starts to configure the intake of the dead letters of a topic: that of the records' origin, without `-dlt`.
    pub fn builder(
        cluster: &KafkaCluster,
        group: impl Into<String>,
        topic: impl Into<String>,
        letters: DeadLetters,
    ) -> KafkaDeadLetterConsumerBuilder {
        KafkaDeadLetterConsumerBuilder {
            settings: GroupSettings::new(cluster.clone(), group.into()),
            topic: topic.into(),
            intake: DeadLetterIntake::new("kafka", "Kafka-DLT", letters),
            wait: INTAKE_WAIT,
        }
    }

    /// Takes dead letters until `shutdown` is ready.
    ///
    /// # Errors
    /// Fails if the cluster refuses the credentials, and if the client breaks.
    pub async fn run_until(
        &self,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), KafkaConsumerError> {
        let family = TopicFamily::new(&self.topic, 1);
        let log = ClientLog::new("Kafka-DLT");
        let task =
            Arc::new(RecordTask::Intake(IntakeTask { intake: self.intake.clone(), wait: self.wait, log }));
        let events = Arc::new(ClientEvents::new("Kafka-DLT"));
        run_group(&self.settings, vec![family.dead_letter_topic().to_owned()], task, events, shutdown).await
    }
}

/// Configures a [`KafkaDeadLetterConsumer`].
#[must_use = "call `build` to get the consumer"]
pub struct KafkaDeadLetterConsumerBuilder {
    settings: GroupSettings,
    topic: String,
    intake: DeadLetterIntake,
    wait: Duration,
}

impl KafkaDeadLetterConsumerBuilder {
    /// Calls this for every dead letter that the store has taken: at least once for each.
    pub fn alert(mut self, hook: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.intake = self.intake.alert(hook);
        self
    }

    /// Sets how long a dead letter waits that the store did not take; [`INTAKE_WAIT`] unless told.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets after which silence the group gives the partitions of a consumer to others.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.settings.session_timeout = timeout;
        self
    }

    /// Builds the consumer. It connects when it runs.
    ///
    /// # Errors
    /// Returns every invalid setting at once.
    pub fn build(self) -> Result<KafkaDeadLetterConsumer, ConfigError> {
        let mut problems = self.settings.problems();
        if !topics::is_valid(&self.topic) {
            problems.push(("topic", topics::NAME_RULE.to_owned()));
        }
        if !problems.is_empty() {
            return Err(ConfigError::new("the consumer of dead letters", problems));
        }
        let KafkaDeadLetterConsumerBuilder { settings, topic, intake, wait } = self;
        Ok(KafkaDeadLetterConsumer { settings, topic, intake, wait })
    }
}

impl fmt::Debug for KafkaDeadLetterConsumerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaDeadLetterConsumerBuilder")
            .field("settings", &self.settings)
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}
