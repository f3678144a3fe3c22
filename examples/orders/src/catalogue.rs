//! What a product is: cached, and loaded once for all callers that ask at the same time.

use reqwest::Client;
use seawall::task::{Cache, SharedWorkError};
use seawall::{Guard, Registry, secs};
use serde::{Deserialize, Serialize};

use crate::guards::guard;
use crate::upstream;

#[derive(Clone, Serialize, Deserialize)]
pub struct Product {
    pub sku: String,
    pub name: String,
}

pub struct Catalogue {
    client: Client,
    url: String,
    guard: Guard,
    cache: Cache<Product>,
}

impl Catalogue {
    pub fn new(client: &Client, url: String, registry: &Registry) -> anyhow::Result<Self> {
        // An expired product is served for ten more minutes while a load refreshes it, or fails to.
        let cache =
            Cache::builder("products").ttl(secs(60)).stale_for(secs(600)).not_found_ttl(secs(30)).build()?;
        Ok(Catalogue { client: client.clone(), url, guard: guard(registry, "catalogue")?, cache })
    }

    /// `None` if there is no such product.
    pub async fn product(&self, sku: &str) -> Result<Option<Product>, SharedWorkError> {
        let (client, guard) = (self.client.clone(), self.guard.clone());
        let (url, about) = (format!("{}/products/{sku}", self.url), sku.to_owned());
        // The load belongs to no caller, so it owns what it needs.
        let load = async move || {
            guard
                .idempotent()
                .operation("product")
                .about(&about)
                .call(|_| upstream::get(&client, url.clone()))
                .await
        };
        self.cache.load(sku, load).await
    }
}
