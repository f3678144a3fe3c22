//! The price of a product: hedged, because a page waits for it, and the last good one while there is no new one.

use reqwest::Client;
use seawall::fallback::LastGoodMap;
use seawall::{Guard, Registry};
use serde::{Deserialize, Serialize};

use crate::guards::guard;
use crate::upstream::{self, UpstreamError};

#[derive(Clone, Serialize, Deserialize)]
pub struct Price {
    pub cents: u64,
    /// True for the last good price, while nobody knows the current one.
    #[serde(default)]
    pub stale: bool,
}

pub struct Prices {
    client: Client,
    replicas: [String; 2],
    guard: Guard,
    last_good: LastGoodMap<String, Option<Price>>,
}

impl Prices {
    pub fn new(client: &Client, replicas: &[String; 2], registry: &Registry) -> anyhow::Result<Self> {
        let guard = guard(registry, "prices")?;
        Ok(Prices {
            client: client.clone(),
            replicas: replicas.clone(),
            guard,
            last_good: LastGoodMap::new(10_000),
        })
    }

    /// `None` if there is no such product.
    pub async fn price(&self, sku: &str) -> Result<Option<Price>, UpstreamError> {
        let call = self.guard.idempotent().operation("price").about(sku);
        let answer = call
            .hedged()
            .or_last_good(self.last_good.entry(sku.to_owned()))
            .call(|attempt| {
                // Retries and hedges ask the other replica.
                let replica = &self.replicas[(attempt.number() - 1 + attempt.hedge()) as usize % 2];
                upstream::get::<Price>(&self.client, format!("{replica}/prices/{sku}"))
            })
            .await?;
        let stale = answer.is_fallback();
        Ok(answer.into_value().map(|price| Price { stale, ..price }))
    }
}
