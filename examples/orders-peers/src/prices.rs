//! The price of a product: hedged, because a page waits for it, and the last good one while there is no new one.

use std::pin::pin;
use std::time::Duration;

use moka::future::Cache;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::guard::CallError;
use crate::regions::Regions;

#[derive(Clone, Serialize, Deserialize)]
pub struct Price {
    pub cents: u64,
    /// True for the last good price, while nobody knows the current one.
    #[serde(default)]
    pub stale: bool,
}

const HEDGE_AFTER: Duration = Duration::from_millis(50);

pub struct Prices {
    regions: Regions,
    last_good: Cache<String, Option<Price>>,
}

impl Prices {
    pub fn new(regions: Regions) -> Self {
        Prices { regions, last_good: Cache::new(10_000) }
    }

    /// `None` if there is no such product.
    pub async fn price(&self, sku: &str) -> Result<Option<Price>, CallError> {
        match self.hedged(&format!("/prices/{sku}")).await {
            Ok(price) => {
                self.last_good.insert(sku.to_owned(), price.clone()).await;
                Ok(price)
            }
            Err(error) if error.is_outage() => {
                let last = self.last_good.get(sku).await.ok_or(error)?;
                Ok(last.map(|price| Price { stale: true, ..price }))
            }
            Err(error) => Err(error),
        }
    }

    /// The first good answer wins, of the read and of one that starts later and asks the second region.
    async fn hedged(&self, path: &str) -> Result<Option<Price>, CallError> {
        let mut read = pin!(self.regions.read(path));
        tokio::select! {
            answer = &mut read => return answer.map(|(price, _)| price),
            () = sleep(HEDGE_AFTER) => {}
        }
        let second = &self.regions.second;
        let mut hedge = pin!(second.guard.attempt(self.regions.get(second, path)));
        tokio::select! {
            answer = &mut read => match answer {
                Ok((price, _)) => Ok(price),
                Err(error) => hedge.await.map_err(|_| error),
            },
            answer = &mut hedge => match answer {
                Ok(price) => Ok(price),
                Err(_) => read.await.map(|(price, _)| price),
            },
        }
    }
}
