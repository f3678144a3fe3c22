//! The stock of a product, from one of two regions: the first, or the second when the first fails.

use reqwest::Client;
use seawall::failover::Failover;
use seawall::telemetry::Log;
use seawall::{Registry, secs};
use serde::{Deserialize, Serialize};

use crate::guards::guard;
use crate::upstream::{self, UpstreamError};

/// What the inventory says about a product.
#[derive(Serialize, Deserialize)]
pub struct Stock {
    pub stock: u32,
    /// Which region said so.
    #[serde(skip_deserializing)]
    pub region: &'static str,
}

const NAMES: [&str; 2] = ["east", "west"];

pub struct Inventory {
    client: Client,
    regions: [String; 2],
    failover: Failover,
}

impl Inventory {
    pub fn new(client: &Client, regions: &[String; 2], registry: &Registry) -> anyhow::Result<Self> {
        let sides = [guard(registry, "inventory-east")?, guard(registry, "inventory-west")?];
        let failover = Failover::of(sides)?.call_timeout(secs(3)).log("inventory", &Log::default());
        Ok(Inventory { client: client.clone(), regions: regions.clone(), failover })
    }

    /// `None` if there is no such product.
    pub async fn stock(&self, sku: &str) -> Result<Option<Stock>, UpstreamError> {
        let call = self.failover.idempotent().operation("stock").about(sku);
        let answer = call
            .call(|attempt| {
                let region = &self.regions[attempt.side().index()];
                upstream::get::<Stock>(&self.client, format!("{region}/stock/{sku}"))
            })
            .await?;
        let region = NAMES[answer.side().index()];
        Ok(answer.into_value().map(|stock| Stock { region, ..stock }))
    }
}
