//! The gRPC service config.

mod fields;
mod read;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use seawall::ConfigError;

use crate::policy::CallPolicy;
use crate::throttle::RetryThrottling;

/// A gRPC service config: which methods are retried or hedged, and how.
///
/// ```
/// use seawall_grpc::ServiceConfig;
///
/// let config = ServiceConfig::from_json(r#"{
///     "methodConfig": [{
///         "name": [{"service": "some.v1.SomeService"}],
///         "timeout": "2s",
///         "retryPolicy": {
///             "maxAttempts": 3,
///             "initialBackoff": "0.1s",
///             "maxBackoff": "1s",
///             "backoffMultiplier": 2,
///             "retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"]
///         }
///     }],
///     "loadBalancingPolicy": "round_robin"
/// }"#)?;
/// assert!(config.method("/some.v1.SomeService/Get").is_some());
/// assert!(config.method("/other.v1.Other/Get").is_none());
/// assert_eq!(config.ignored()[0].path(), "loadBalancingPolicy");
/// # Ok::<(), seawall::ConfigError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ServiceConfig {
    /// By `/service/method`, by `/service/`, and by nothing for all.
    methods: HashMap<String, Arc<MethodConfig>>,
    throttling: Option<RetryThrottling>,
    ignored: Vec<IgnoredField>,
}

/// What a service config says about a method.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct MethodConfig {
    /// Retries or hedges.
    pub policy: CallPolicy,
    /// The longest time of a call with all its attempts. The deadline of the caller counts too: the earlier one holds.
    pub timeout: Option<Duration>,
    /// Whether a call waits for a connection instead of failing when there is none.
    pub wait_for_ready: bool,
    /// The largest message of a request, in bytes.
    pub max_request_message_bytes: Option<u64>,
    /// The largest message of a response, in bytes.
    pub max_response_message_bytes: Option<u64>,
}

/// A field of a service config that changes nothing, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IgnoredField {
    path: String,
    reason: &'static str,
}

impl ServiceConfig {
    /// Reads a service config as every gRPC client has it. Mistakes are reported all at once, each with its path.
    pub fn from_json(text: &str) -> Result<Self, ConfigError> {
        read::service_config(text)
    }

    /// What the config says about the method with this path (`/package.Service/Method`): the entry that names the method, else
    /// the one that names its service, else the one that names nothing. Entries are not merged.
    #[must_use]
    pub fn method(&self, path: &str) -> Option<&MethodConfig> {
        self.find(path).map(|config| &**config)
    }

    pub(crate) fn find(&self, path: &str) -> Option<&Arc<MethodConfig>> {
        let service = path.rfind('/').map_or("", |at| &path[..=at]);
        self.methods.get(path).or_else(|| self.methods.get(service)).or_else(|| self.methods.get(""))
    }

    /// The limit on retries and hedges of all methods together.
    #[must_use]
    pub fn throttling(&self) -> Option<RetryThrottling> {
        self.throttling
    }

    /// The fields that change nothing: unknown ones, as gRPC ignores them, and those about load balancing and health checks,
    /// which a channel of tonic has its own settings for.
    #[must_use]
    pub fn ignored(&self) -> &[IgnoredField] {
        &self.ignored
    }
}

impl FromStr for ServiceConfig {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        ServiceConfig::from_json(text)
    }
}

impl IgnoredField {
    /// Where it stands, such as `methodConfig[0].retryPolicy.maxRetries`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Why it changes nothing.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.reason
    }
}

impl fmt::Display for IgnoredField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.reason)
    }
}
