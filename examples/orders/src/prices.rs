//! The price of a product: hedged, because a page waits for it, and the last good one while there is no new one.

use seawall::fallback::LastGoodMap;
use serde::{Deserialize, Serialize};

use crate::regions::Regions;
use crate::upstream::UpstreamError;

#[derive(Clone, Serialize, Deserialize)]
pub struct Price {
    pub cents: u64,
    /// True for the last good price, while nobody knows the current one.
    #[serde(default)]
    pub stale: bool,
}

pub struct Prices {
    regions: Regions,
    last_good: LastGoodMap<String, Option<Price>>,
}

impl Prices {
    pub fn new(regions: Regions) -> Self {
        Prices { regions, last_good: LastGoodMap::new(10_000) }
    }

    /// `None` if there is no such product.
    pub async fn price(&self, sku: &str) -> Result<Option<Price>, UpstreamError> {
        let path = format!("/prices/{sku}");
        let call = self.regions.failover.idempotent().operation("price").about(sku);
        let call = call.hedged().or_last_good(self.last_good.entry(sku.to_owned()));
        let answer = call.call(|attempt| self.regions.get::<Price>(attempt, &path)).await?;
        let stale = answer.is_fallback();
        Ok(answer.into_value().map(|price| Price { stale, ..price }))
    }
}
