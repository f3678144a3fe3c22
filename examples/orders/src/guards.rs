//! The guards of `config.yaml`, and how changes of that file reach them.

use std::path::Path;

use anyhow::Context;
use seawall::config::{Config, Loader};
use seawall::task::ShutdownToken;
use seawall::telemetry::Log;
use seawall::{Guard, Registry, secs};

/// Reads the file and builds its guards. A mistake in the file ends the program: all mistakes at once, each with its line.
pub fn load(path: &Path) -> anyhow::Result<(Registry, Loader)> {
    let registry = Registry::builder().log(Log::default()).attempt_spans().metrics().build();
    let loader = Config::loader().file(path).env("ORDERS");
    registry.apply(&loader.clone().load()?)?;
    Ok((registry, loader))
}

/// Applies changes of the file to the guards while they run, until the service ends. A file with mistakes changes nothing.
pub async fn follow(registry: Registry, loader: Loader, token: ShutdownToken) {
    let following = registry.follow(loader, secs(1), |news| match news {
        Ok(changes) => tracing::info!("[config] Changed. {changes}"),
        Err(mistakes) => tracing::error!("[config] Failed! {mistakes}"),
    });
    tokio::select! {
        _ = following => {}
        () = token.stopping() => {}
    }
}

/// The guard of this name.
pub fn guard(registry: &Registry, name: &str) -> anyhow::Result<Guard> {
    registry.guard(name).with_context(|| format!("the configuration has no guard `{name}`"))
}
