//! The stock of a product.

use serde::{Deserialize, Serialize};

use crate::regions::{NAMES, Regions};
use crate::upstream::UpstreamError;

/// What the inventory says about a product.
#[derive(Serialize, Deserialize)]
pub struct Stock {
    pub stock: u32,
    /// Which region said so.
    #[serde(skip_deserializing)]
    pub region: &'static str,
}

pub struct Inventory {
    regions: Regions,
}

impl Inventory {
    pub fn new(regions: Regions) -> Self {
        Inventory { regions }
    }

    /// `None` if there is no such product.
    pub async fn stock(&self, sku: &str) -> Result<Option<Stock>, UpstreamError> {
        let path = format!("/stock/{sku}");
        let call = self.regions.failover.idempotent().operation("stock").about(sku);
        let answer = call.call(|attempt| self.regions.get::<Stock>(attempt, &path)).await?;
        let region = NAMES[answer.side().index()];
        Ok(answer.into_value().map(|stock| Stock { region, ..stock }))
    }
}
