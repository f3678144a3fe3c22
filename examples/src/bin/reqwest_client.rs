//! Guards calls of reqwest: its errors are known to a guard, and `ByStatus` judges its responses.

use reqwest::Client;
use seawall::client::ByStatus;
use seawall::{Backoff, Guard, Retry, millis, secs};
use seawall_examples::serve;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::builder().no_proxy().build()?;
    let inventory = Guard::builder("inventory")
        .attempt_timeout(secs(2))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(10))))
        .build()?;

    // A response is judged by its status, an error by what happened. The 503 says when to come back.
    let url = format!("http://{}/stock/7", serve([0, 503]).await?);
    let response = inventory.idempotent().classify(ByStatus).call(|_| client.get(&url).send()).await?;
    println!("a closed connection, then a 503: {}", response.status().as_u16());

    // Without a classifier: `error_for_status` makes an error of a status, and the guard knows that error.
    let url = format!("http://{}/stock/7", serve([502, 0]).await?);
    let read = || async { client.get(&url).send().await?.error_for_status() };
    let response = inventory.idempotent().call(|_| read()).await?;
    println!("as an error of reqwest: {}", response.status().as_u16());

    // A POST may have been served before the connection was closed.
    let url = format!("http://{}/orders", serve([0]).await?);
    let error = inventory.call(|_| client.post(&url).send()).await.unwrap_err();
    println!("not declared safe to repeat: {error}");
    let error = inventory.call(|_| client.post("http://127.0.0.1:1/orders").send()).await.unwrap_err();
    println!("nobody there, and so repeated: {error} (ran: {:?})", error.ran());

    // For this peer a 404 is an answer, and heals the circuit like any other.
    let rules = ByStatus.success("404".parse()?);
    let url = format!("http://{}/stock/8", serve([404]).await?);
    let response = inventory.idempotent().classify(&rules).call(|_| client.get(&url).send()).await?;
    let stock = if response.status() == 404 { None } else { Some(response.text().await?) };
    println!("no such article: {stock:?}");
    Ok(())
}
