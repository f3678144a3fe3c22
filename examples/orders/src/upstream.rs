//! How an upstream is asked. Whether an error may pass, and whether the request may have been served, the guards read from the
//! errors of reqwest themselves.

use reqwest::{Client, StatusCode};
use serde::de::DeserializeOwned;

/// The error of a guarded request.
pub type UpstreamError = seawall::Error<reqwest::Error>;

/// One client for all upstreams. Time limits are the guards' business.
pub fn client() -> reqwest::Result<Client> {
    Client::builder().no_proxy().build()
}

/// Gets a JSON value; `None` if the upstream does not have it.
///
/// The body is read here, inside of the attempt: a response that breaks off is retried too.
pub async fn get<T: DeserializeOwned>(client: &Client, url: String) -> reqwest::Result<Option<T>> {
    tracing::debug!(url, "asking");
    let response = client.get(url).send().await?;
    if response.status() == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    response.error_for_status()?.json().await
}
