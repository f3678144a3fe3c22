//! Where a cluster is, and how to get in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use seawall::ConfigError;

/// How long a connection may take to be made. Kafka's own default of 30 s outlives every time limit around it.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a broker may take to answer a request that has no time limit of its own, such as a commit of offsets.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The first pause between two attempts to connect to a broker. It grows, with jitter, up to [`RECONNECT_PAUSE_MAX`].
pub const RECONNECT_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause between two attempts to connect: a broker that comes back is found within about a second.
pub const RECONNECT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Settings that the adapter decides, because its promises rest on them.
const OWNED: [&str; 21] = [
    "acks",
    "allow.auto.create.topics",
    "auto.offset.reset",
    "bootstrap.servers",
    "client.id",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.auto.offset.store",
    "enable.idempotence",
    "enable.partition.eof",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "max.poll.interval.ms",
    "message.max.bytes",
    "message.timeout.ms",
    "metadata.broker.list",
    "partition.assignment.strategy",
    "request.required.acks",
    "session.timeout.ms",
    "transactional.id",
];

/// A Kafka cluster: its addresses, and how clients authenticate. A handle that publishers and consumers are made with.
///
/// Nothing is connected until a publisher or a consumer needs it. Clients connect again by themselves, with growing pauses.
///
/// ```
/// use seawall_kafka::KafkaCluster;
/// let cluster = KafkaCluster::builder("kafka-1:9092,kafka-2:9092").client_id("orders").build()?;
/// let secured = KafkaCluster::builder("kafka-1:9093").sasl_plain("orders", "secret").build()?;
/// assert!(!format!("{secured:?}").contains("secret"));
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct KafkaCluster {
    settings: Arc<[(String, String)]>,
}

impl KafkaCluster {
    /// Makes a cluster without authentication of its addresses: `host:port,host:port`.
    pub fn new(bootstrap_servers: &str) -> Result<KafkaCluster, ConfigError> {
        KafkaCluster::builder(bootstrap_servers).build()
    }

    /// Chooses how clients authenticate, and settings of librdkafka.
    pub fn builder(bootstrap_servers: impl Into<String>) -> KafkaClusterBuilder {
        KafkaClusterBuilder { bootstrap_servers: bootstrap_servers.into(), settings: Vec::new() }
    }

    /// The addresses that clients ask first.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        self.settings.iter().find(|(name, _)| name == "bootstrap.servers").map_or("", |(_, value)| value)
    }

    /// Settings for a client of this cluster.
    pub(crate) fn client_config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        for (name, value) in self.settings.iter() {
            config.set(name, value);
        }
        config
    }
}

impl fmt::Debug for KafkaCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The settings may hold a password.
        f.debug_struct("KafkaCluster")
            .field("bootstrap_servers", &self.bootstrap_servers())
            .finish_non_exhaustive()
    }
}

/// Chooses how clients of a [`KafkaCluster`] authenticate.
#[must_use = "call `build` to get the cluster"]
pub struct KafkaClusterBuilder {
    bootstrap_servers: String,
    settings: Vec<(String, String)>,
}

impl KafkaClusterBuilder {
    /// Sets the name that brokers show for clients of this process; `seawall` unless told.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.settings.push(("client.id".to_owned(), id.into()));
        self
    }

    /// Authenticates by user and password (SASL PLAIN). Without TLS the password is readable on the network: add
    /// `.setting("security.protocol", "sasl_ssl")` and the feature `ssl`.
    pub fn sasl_plain(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.settings.extend([
            ("security.protocol".to_owned(), "sasl_plaintext".to_owned()),
            ("sasl.mechanisms".to_owned(), "PLAIN".to_owned()),
            ("sasl.username".to_owned(), user.into()),
            ("sasl.password".to_owned(), password.into()),
        ]);
        self
    }

    /// Sets a property of librdkafka for every client, such as `ssl.ca.location`. Properties that the adapter's promises rest
    /// on are refused, and so are unknown ones.
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }

    /// Checks the settings. Whether the brokers can be reached is seen by the first client.
    pub fn build(self) -> Result<KafkaCluster, ConfigError> {
        let mut problems = Vec::new();
        problems.extend(problem_of_servers(&self.bootstrap_servers).map(|text| ("bootstrap_servers", text)));
        let own = |name: &str, value: String| (name.to_owned(), value);
        let mut settings = vec![
            own("bootstrap.servers", self.bootstrap_servers.trim().to_owned()),
            own("client.id", "seawall".to_owned()),
            // Whoever asks about a topic creates it otherwise, clients that only look included.
            own("allow.auto.create.topics", "false".to_owned()),
            own("socket.connection.setup.timeout.ms", CONNECT_TIMEOUT.as_millis().to_string()),
            own("socket.timeout.ms", REQUEST_TIMEOUT.as_millis().to_string()),
            own("socket.keepalive.enable", "true".to_owned()),
            own("reconnect.backoff.ms", RECONNECT_PAUSE.as_millis().to_string()),
            own("reconnect.backoff.max.ms", RECONNECT_PAUSE_MAX.as_millis().to_string()),
        ];
        for (name, value) in self.settings {
            if name != "client.id" && OWNED.contains(&name.as_str()) {
                problems.push(("setting", format!("`{name}` is decided by the adapter; leave it out")));
            } else if let Some(text) = problem_of_setting(&name, &value) {
                problems.push(("setting", text));
            }
            // The last one counts.
            settings.retain(|(known, _)| *known != name);
            settings.push((name, value));
        }
        if problems.is_empty() {
            return Ok(KafkaCluster { settings: settings.into() });
        }
        Err(ConfigError::new("the Kafka cluster", problems))
    }
}

impl fmt::Debug for KafkaClusterBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaClusterBuilder")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a list of addresses.
fn problem_of_servers(servers: &str) -> Option<String> {
    let address = |address: &str| {
        let (host, port) = address.trim().rsplit_once(':')?;
        let plain = !host.is_empty() && !host.contains(['/', '@', ' ']);
        (plain && port.parse::<u16>().is_ok_and(|port| port > 0)).then_some(())
    };
    let wrong = servers.split(',').any(|part| address(part).is_none());
    // An address may have been written with a password in it, so it is not repeated.
    wrong.then(|| {
        "is not a list of addresses; write `host:port,host:port`, without a scheme or a user".to_owned()
    })
}

/// What librdkafka has against a property. The value may be a secret and is not repeated.
fn problem_of_setting(name: &str, value: &str) -> Option<String> {
    let mut config = ClientConfig::new();
    config.set(name, value);
    match config.create_native_config() {
        Err(KafkaError::ClientConfig(_, text, ..)) if text.contains("No such") => {
            Some(format!("`{name}` is not a property of librdkafka; see its CONFIGURATION.md"))
        }
        Err(_)
            if cfg!(not(feature = "ssl"))
                && (name.starts_with("ssl.") || value.to_lowercase().contains("ssl")) =>
        {
            Some(format!("`{name}` needs the feature `ssl` of this crate"))
        }
        Err(_) => {
            Some(format!("`{name}` has a value that librdkafka does not accept; see its CONFIGURATION.md"))
        }
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ADP-5: all mistakes are named at once, and none of them shows a secret.
    #[test]
    fn adp_5_wrong_settings_are_named_without_their_values() {
        let error = KafkaCluster::builder("kafka://user:hunter2@host")
            .setting("acks", "0")
            .setting("no.such.thing", "hunter2")
            .setting("security.protocol", "hunter2")
            .build()
            .unwrap_err();
        assert_eq!(error.problems().len(), 4, "{error}");
        let text = format!("{error} {error:?}");
        for word in ["host:port", "`acks`", "`no.such.thing`", "`security.protocol`"] {
            assert!(text.contains(word), "{word} is not in {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn adp_5_a_later_setting_replaces_an_earlier_one() {
        let cluster = KafkaCluster::builder("a:1,b:2").setting("socket.timeout.ms", "2000").build().unwrap();
        assert_eq!(cluster.client_config().get("socket.timeout.ms"), Some("2000"));
        assert_eq!(cluster.bootstrap_servers(), "a:1,b:2");
    }
}
