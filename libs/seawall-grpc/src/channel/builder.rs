use std::fmt;
use std::sync::Arc;

use seawall::ConfigError;
use tower_layer::Layer;

use super::methods::Shared;
use super::service::ConfiguredChannel;
use crate::config::ServiceConfig;
use crate::log::LINES_PER_SECOND;

/// The maximum number of attempts, whatever the service config says: gRPC's own limit. The config may come from somebody else.
pub const ATTEMPTS_MAX: u32 = 5;
/// The bytes of a request that are kept so that it can be sent again, as in grpc-java. What is larger gets one attempt.
pub const CALL_BUFFER_BYTES_MAX: usize = 1 << 20;
/// The bytes of all requests of a channel that are kept, as in grpc-java.
pub const CHANNEL_BUFFER_BYTES_MAX: usize = 16 << 20;

/// Puts a service config around channels.
///
/// The tokens of `retryThrottling` belong to the layer and its clones: make one layer for each server name, and use it for all
/// channels to that server.
#[derive(Clone)]
pub struct ServiceConfigLayer {
    shared: Arc<Shared>,
}

impl ServiceConfigLayer {
    /// A layer with the default settings. `server` is the name of the server in log lines and metrics.
    #[must_use]
    pub fn new(server: impl Into<String>, config: ServiceConfig) -> Self {
        let builder = ServiceConfigLayer::builder(server, config);
        ServiceConfigLayer { shared: Arc::new(Shared::new(builder.settings)) }
    }

    /// A layer with settings of your own.
    pub fn builder(server: impl Into<String>, config: ServiceConfig) -> ServiceConfigLayerBuilder {
        ServiceConfigLayerBuilder {
            settings: Settings {
                server: server.into(),
                config,
                attempts_max: ATTEMPTS_MAX,
                retries: true,
                call_buffer_bytes_max: CALL_BUFFER_BYTES_MAX,
                channel_buffer_bytes_max: CHANNEL_BUFFER_BYTES_MAX,
                lines_per_second: LINES_PER_SECOND,
                seed: None,
            },
        }
    }

    /// The service config.
    #[must_use]
    pub fn config(&self) -> &ServiceConfig {
        &self.shared.config
    }
}

impl fmt::Debug for ServiceConfigLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConfigLayer").field("server", &self.shared.server).finish_non_exhaustive()
    }
}

impl<S> Layer<S> for ServiceConfigLayer {
    type Service = ConfiguredChannel<S>;

    fn layer(&self, inner: S) -> ConfiguredChannel<S> {
        ConfiguredChannel::new(inner, self.shared.clone())
    }
}

/// The settings of a [`ServiceConfigLayer`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ServiceConfigLayerBuilder {
    settings: Settings,
}

#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) server: String,
    pub(super) config: ServiceConfig,
    pub(super) attempts_max: u32,
    pub(super) retries: bool,
    pub(super) call_buffer_bytes_max: usize,
    pub(super) channel_buffer_bytes_max: usize,
    pub(super) lines_per_second: u32,
    pub(super) seed: Option<u64>,
}

impl ServiceConfigLayerBuilder {
    /// The maximum number of attempts of a call, whatever the service config says. The default is [`ATTEMPTS_MAX`].
    pub fn attempts_max(mut self, attempts: u32) -> Self {
        self.settings.attempts_max = attempts;
        self
    }

    /// Neither retries nor hedges, whatever the service config says: for code that retries by itself. Timeouts, sizes and
    /// `waitForReady` are obeyed all the same, and what the server's application never saw is still sent again.
    pub fn without_retries(mut self) -> Self {
        self.settings.retries = false;
        self
    }

    /// The bytes of a request that are kept so that it can be sent again. The default is [`CALL_BUFFER_BYTES_MAX`].
    pub fn call_buffer_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.call_buffer_bytes_max = bytes;
        self
    }

    /// The bytes of all requests of the layer that are kept. The default is [`CHANNEL_BUFFER_BYTES_MAX`].
    pub fn channel_buffer_bytes_max(mut self, bytes: usize) -> Self {
        self.settings.channel_buffer_bytes_max = bytes;
        self
    }

    /// The number of log lines of each kind in a second. The default is [`LINES_PER_SECOND`](crate::LINES_PER_SECOND).
    pub fn lines_per_second(mut self, lines: u32) -> Self {
        self.settings.lines_per_second = lines;
        self
    }

    /// The seed of the jitter, for tests and simulations. By default nobody can foresee it.
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = Some(seed);
        self
    }

    /// Checks the settings.
    pub fn build(self) -> Result<ServiceConfigLayer, ConfigError> {
        let settings = self.settings;
        let mut problems = Vec::new();
        if settings.server.trim().is_empty() {
            problems.push(("server", "is empty; name the server for log lines and metrics".to_owned()));
        }
        if settings.attempts_max == 0 {
            problems.push(("attempts_max", "is 0; write 1 or more, or use `without_retries`".to_owned()));
        }
        if settings.channel_buffer_bytes_max < settings.call_buffer_bytes_max {
            let reason = format!(
                "is {}, less than one call may keep ({}); write at least as much",
                settings.channel_buffer_bytes_max, settings.call_buffer_bytes_max
            );
            problems.push(("channel_buffer_bytes_max", reason));
        }
        if problems.is_empty() {
            Ok(ServiceConfigLayer { shared: Arc::new(Shared::new(settings)) })
        } else {
            Err(ConfigError::new("the channel", problems))
        }
    }
}
