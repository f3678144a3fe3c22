//! A service that takes orders, and keeps taking them while what it depends on breaks. Read it from here downwards; the README
//! says which file shows what.

mod catalogue;
mod guards;
mod inventory;
mod orders;
mod payments;
mod prices;
mod regions;
mod routes;
mod settings;
mod telemetry;
mod upstream;

use std::future::IntoFuture;
use std::sync::Arc;

use anyhow::Context;
use metrics_exporter_prometheus::PrometheusHandle;
use seawall::Registry;
use seawall::task::{Phase, Readiness, Shutdown};
use tokio::net::TcpListener;

use crate::catalogue::Catalogue;
use crate::inventory::Inventory;
use crate::payments::Payments;
use crate::prices::Prices;
use crate::regions::Regions;
use crate::settings::Settings;

/// What the handlers of requests share.
pub struct App {
    pub inventory: Inventory,
    pub prices: Prices,
    pub catalogue: Catalogue,
    pub payments: Payments,
    pub registry: Registry,
    pub metrics: PrometheusHandle,
    pub readiness: Readiness,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let settings = Settings::from_env()?;
    let log = telemetry::install_log(settings.log_level)?;
    // Before the guards: they register their metrics when they are built.
    let metrics = telemetry::install_metrics()?;
    let (registry, loader) = guards::load(&settings.config)?;
    let mut shutdown = Shutdown::new().delay(settings.shutdown_delay);

    let client = upstream::client()?;
    let addresses = [settings.inventory_east, settings.inventory_west];
    let regions = Regions::new(&client, addresses, &registry)?;
    let app = Arc::new(App {
        inventory: Inventory::new(regions.clone()),
        prices: Prices::new(regions),
        catalogue: Catalogue::new(&client, settings.catalogue, &registry)?,
        payments: Payments::new(&client, settings.payments, &registry)?,
        readiness: shutdown.readiness(),
        registry: registry.clone(),
        metrics,
    });

    let listener = TcpListener::bind(&settings.listen).await.context("no listener")?;
    println!("listening on {}", listener.local_addr()?);
    // A SIGTERM ends the parts in this order: no new connections, the requests in progress, the reader of the file.
    let accepting = shutdown.token(Phase::Accepting, "http");
    let server = axum::serve(listener, routes::router(app))
        .with_graceful_shutdown(async move { accepting.stopping().await });
    let server = tokio::spawn(server.into_future());
    shutdown.on(Phase::InFlight, "requests", || async { server.await? });
    tokio::spawn(guards::follow(registry, loader, shutdown.token(Phase::Monitors, "config")));

    let report = shutdown.until_signal().await?;
    println!("{report}");
    drop(log); // Writes the last lines: `exit` drops nothing.
    std::process::exit(report.exit_code().into());
}
