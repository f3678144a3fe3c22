//! The two regions that know stock and prices: the first is asked, and the second when the first fails.

use reqwest::Client;
use seawall::failover::Failover;
use seawall::telemetry::Log;
use seawall::{Attempt, Registry, secs};
use serde::de::DeserializeOwned;

use crate::guards::guard;
use crate::upstream;

pub const NAMES: [&str; 2] = ["east", "west"];

/// What reads of both kinds share: a region that stock reads have found dead is not asked for prices either.
#[derive(Clone)]
pub struct Regions {
    client: Client,
    urls: [String; 2],
    pub failover: Failover,
}

impl Regions {
    pub fn new(client: &Client, urls: [String; 2], registry: &Registry) -> anyhow::Result<Self> {
        let sides = [guard(registry, "inventory-east")?, guard(registry, "inventory-west")?];
        let failover = Failover::of(sides)?.call_timeout(secs(3)).log("inventory", &Log::default());
        Ok(Regions { client: client.clone(), urls, failover })
    }

    /// One attempt of a read, in the region whose turn it is.
    pub async fn get<T: DeserializeOwned>(&self, attempt: Attempt, path: &str) -> reqwest::Result<Option<T>> {
        upstream::get(&self.client, format!("{}{path}", self.urls[attempt.side().index()])).await
    }
}
