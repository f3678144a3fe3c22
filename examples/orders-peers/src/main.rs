//! The core of the service in `../orders`, written with backon, failsafe and moka. Its README compares the two.

mod catalogue;
mod guard;
mod inventory;
mod orders;
mod payments;
mod prices;
mod regions;
mod routes;
mod upstream;

use std::env;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpListener;

use crate::catalogue::Catalogue;
use crate::inventory::Inventory;
use crate::payments::Payments;
use crate::prices::Prices;
use crate::regions::Regions;

/// What the handlers of requests share.
pub struct App {
    pub inventory: Inventory,
    pub prices: Prices,
    pub catalogue: Catalogue,
    pub payments: Payments,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let client = upstream::client()?;
    let regions = Regions::new(&client, [required("INVENTORY_EAST")?, required("INVENTORY_WEST")?]);
    let app = Arc::new(App {
        inventory: Inventory::new(regions.clone()),
        prices: Prices::new(regions),
        catalogue: Catalogue::new(&client, required("CATALOGUE")?),
        payments: Payments::new(&client, required("PAYMENTS")?),
    });
    let listener = TcpListener::bind(required("LISTEN")?).await.context("no listener")?;
    println!("listening on {}", listener.local_addr()?);
    axum::serve(listener, routes::router(app)).await.context("the server ended")
}

fn required(name: &str) -> anyhow::Result<String> {
    env::var(name).with_context(|| format!("set {name} to an address"))
}
