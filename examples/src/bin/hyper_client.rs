//! Guards hyper-util's pooled client: in place, and as a layer around it.

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use seawall::client::ByStatus;
use seawall::tower::GuardLayer;
use seawall::{Backoff, Guard, Retry, millis, secs};
use seawall_examples::serve;
use tower_layer::Layer;
use tower_service::Service;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client: Client<_, Empty<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
    let inventory = Guard::builder("inventory")
        .attempt_timeout(secs(2))
        .retry(Retry::max_attempts(3).backoff(Backoff::exponential(millis(10))))
        .build()?;

    let uri: Uri = format!("http://{}/stock/7", serve([0, 502]).await?).parse()?;
    let get = || client.get(uri.clone());
    let response = inventory.idempotent().classify(ByStatus).call(|_| get()).await?;
    println!("a closed connection, then a 502: {}", response.status());

    // The layer copies the request for each attempt, and goes by its method.
    let uri: Uri = format!("http://{}/stock/7", serve([502, 0]).await?).parse()?;
    let mut guarded = GuardLayer::new(inventory.clone()).classify(ByStatus).layer(client.clone());
    let response = guarded.call(Request::get(uri).body(Empty::new())?).await?;
    println!("as a layer: {}", response.status());

    let nobody = Request::post("http://127.0.0.1:1/orders").body(Empty::new())?;
    let error = guarded.call(nobody).await.unwrap_err();
    println!("nobody there, and so repeated: {error} (ran: {:?})", error.ran());
    Ok(())
}
