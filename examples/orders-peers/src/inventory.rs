//! The stock of a product.

use serde::{Deserialize, Serialize};

use crate::guard::CallError;
use crate::regions::Regions;

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
    pub async fn stock(&self, sku: &str) -> Result<Option<Stock>, CallError> {
        let (stock, region) = self.regions.read::<Stock>(&format!("/stock/{sku}")).await?;
        Ok(stock.map(|stock| Stock { region, ..stock }))
    }
}
