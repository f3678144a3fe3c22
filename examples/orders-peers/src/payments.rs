//! Payments: retried, and never charged twice.

use std::time::Duration;

use reqwest::Client;
use serde::{Deserialize, Serialize};

use crate::guard::{CallError, Guard};

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
    pub fn new(client: &Client, url: String) -> Self {
        let guard = Guard::new(4, Duration::from_secs(2), Duration::from_secs(10));
        Payments { client: client.clone(), url: url + "/charges", guard }
    }

    /// Charges an order. The key is the order's number, the same for all attempts.
    pub async fn charge(&self, order: &str, cents: u64) -> Result<Receipt, CallError> {
        let charge = || async {
            let request = self.client.post(&self.url).header("idempotency-key", order);
            request.json(&Charge { order, cents }).send().await?.error_for_status()?.json().await
        };
        self.guard.call(charge).await
    }
}
