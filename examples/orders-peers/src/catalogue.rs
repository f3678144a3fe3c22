//! What a product is: cached, and loaded once for all callers that ask at the same time.

use std::sync::Arc;
use std::time::Duration;

use moka::future::Cache;
use reqwest::Client;
use serde::{Deserialize, Serialize};

use crate::guard::{CallError, Guard};
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
    cache: Cache<String, Option<Product>>,
}

impl Catalogue {
    pub fn new(client: &Client, url: String) -> Self {
        let cache = Cache::builder().max_capacity(10_000).time_to_live(Duration::from_secs(60)).build();
        Catalogue { client: client.clone(), url, guard: Guard::standard(), cache }
    }

    /// `None` if there is no such product.
    pub async fn product(&self, sku: &str) -> Result<Option<Product>, Arc<CallError>> {
        let url = format!("{}/products/{sku}", self.url);
        let load = self.guard.call(|| upstream::get(&self.client, url.clone()));
        self.cache.try_get_with_by_ref(sku, load).await
    }
}
