//! How an upstream is asked.

use reqwest::{Client, StatusCode};
use serde::de::DeserializeOwned;

/// One client for all upstreams. Time limits are the guards' business.
pub fn client() -> reqwest::Result<Client> {
    Client::builder().no_proxy().build()
}

/// Gets a JSON value; `None` if the upstream does not have it.
pub async fn get<T: DeserializeOwned>(client: &Client, url: String) -> reqwest::Result<Option<T>> {
    let response = client.get(url).send().await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    response.error_for_status()?.json().await
}
