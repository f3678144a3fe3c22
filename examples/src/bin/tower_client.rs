//! Guards a tower client without changing the code that calls it.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use seawall::tower::{GuardLayer, Replay};
use seawall::{Backoff, Fault, Guard, Retry, Safety, millis};
use seawall_examples::{Answer, get, serve};
use tower_layer::Layer;
use tower_service::Service;

/// A client as any tower service is.
#[derive(Clone)]
struct Client(SocketAddr);

#[derive(Clone)]
struct Get(&'static str);

impl Service<Get> for Client {
    type Response = Answer;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Answer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Get) -> Self::Future {
        Box::pin(get(self.0, request.0))
    }
}

impl Replay for Get {
    fn try_clone(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn safety(&self) -> Safety {
        Safety::of_http_method("GET")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = serve([502, 500]).await?;
    let guard = Guard::builder("client")
        .retry(Retry::max_attempts(3).backoff(Backoff::constant(millis(5))))
        .build()?;
    let by_status = |result: &io::Result<Answer>| match result {
        Ok(answer) => Fault::of_http(answer.status),
        Err(error) => Some(Fault::of_io(error.kind())),
    };
    let mut client = GuardLayer::new(guard).classify(by_status).layer(Client(server));
    println!("after two failures that nobody saw: {}", client.call(Get("/stock/7")).await?.status);
    Ok(())
}
