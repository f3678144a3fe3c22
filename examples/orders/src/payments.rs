//! Payments: retried, and never charged twice.

use reqwest::Client;
use seawall::{Guard, Key, Registry};
use serde::{Deserialize, Serialize};

use crate::guards::guard;
use crate::upstream::UpstreamError;

#[derive(Serialize, Deserialize)]
pub struct Receipt {
    pub receipt: String,
}

#[derive(Serialize)]
struct Charge<'a> {
    order: &'a str,
    cents: u64,
}

pub struct Payments {
    client: Client,
    url: String,
    guard: Guard,
}

impl Payments {
    pub fn new(client: &Client, url: String, registry: &Registry) -> anyhow::Result<Self> {
        Ok(Payments { client: client.clone(), url: url + "/charges", guard: guard(registry, "payments")? })
    }

    /// Charges an order. The key is the order's own, so it is the same for all attempts, and for a caller that repeats its
    /// order because it never saw the answer.
    pub async fn charge(&self, order: &str, cents: u64) -> Result<Receipt, UpstreamError> {
        let call = self.guard.key(Key::named(order)).operation("charge").about(order);
        call.call(async |attempt| {
            let key = attempt.key().to_string();
            let request = self.client.post(&self.url).header("idempotency-key", key);
            request.json(&Charge { order, cents }).send().await?.error_for_status()?.json().await
        })
        .await
    }
}
