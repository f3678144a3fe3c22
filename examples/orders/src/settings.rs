//! What differs from one installation to the next, from the environment.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

pub struct Settings {
    pub listen: String,
    pub config: PathBuf,
    pub inventory_east: String,
    pub inventory_west: String,
    pub catalogue: String,
    pub payments: String,
    /// How long load balancers have to notice that the service is not ready any more.
    pub shutdown_delay: Duration,
    pub log_level: tracing::Level,
}

impl Settings {
    pub fn from_env() -> anyhow::Result<Self> {
        let delay = optional("SHUTDOWN_DELAY_MS", "5000").parse().context("SHUTDOWN_DELAY_MS")?;
        Ok(Settings {
            listen: optional("LISTEN", "127.0.0.1:8080"),
            config: optional("CONFIG", "config.yaml").into(),
            inventory_east: required("INVENTORY_EAST")?,
            inventory_west: required("INVENTORY_WEST")?,
            catalogue: required("CATALOGUE")?,
            payments: required("PAYMENTS")?,
            shutdown_delay: Duration::from_millis(delay),
            log_level: optional("LOG_LEVEL", "info").parse().context("LOG_LEVEL")?,
        })
    }
}

fn optional(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

fn required(name: &str) -> anyhow::Result<String> {
    std::env::var(name)
        .with_context(|| format!("set {name} to the address of the upstream, like http://host:80"))
}
