//! A gRPC client that does what the service config of its server says: retries, pushback, throttling, hedges.
//!
//! The config is the one that every official gRPC client reads. The server is a real one of tonic; what generated code would do on
//! either side stands at the end and in [`Plain`], so that the example needs no `protoc`.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use seawall::{Breaker, Guard, secs};
use seawall_examples::Plain;
use seawall_grpc::{ConfiguredChannel, GrpcErrors, ServiceConfig};
use tonic::body::Body;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};

const CONFIG: &str = r#"{
    "methodConfig": [{
        "name": [{"service": "some.v1.SomeService"}],
        "timeout": "5s",
        "retryPolicy": {
            "maxAttempts": 3,
            "initialBackoff": "0.1s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE", "DEADLINE_EXCEEDED"]
        }
    }, {
        "name": [{"service": "some.v1.SomeService", "method": "Read"}],
        "timeout": "5s",
        "hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "0.05s", "nonFatalStatusCodes": ["UNAVAILABLE"]}
    }],
    "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    "loadBalancingPolicy": "round_robin"
}"#;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let config = ServiceConfig::from_json(CONFIG)?;
    for field in config.ignored() {
        println!("ignored: {field}");
    }
    let server = ScriptedServer::default();
    let channel = ConfiguredChannel::around(server.start().await?, "some.internal", config);

    server.will([Answer::Status(Code::Unavailable), Answer::Status(Code::Unavailable), Answer::Message]);
    println!("after two failures that nobody saw: {:?}", call(&channel, "Get").await?);

    server.will([Answer::Status(Code::NotFound)]);
    let status = call(&channel, "Get").await.unwrap_err();
    println!("an answer that is no: {:?} after {} attempt", status.code(), server.attempts());

    server.will([Answer::Pushback("-1"), Answer::Message]);
    let status = call(&channel, "Get").await.unwrap_err();
    println!("the server asked for no retry: {:?} after {} attempt", status.code(), server.attempts());

    server.will([Answer::Slow, Answer::Message]);
    println!(
        "the second of two reads was faster: {:?} of {} attempts",
        call(&channel, "Read").await?,
        server.attempts()
    );

    // An overload: the tokens are spent, and each call has one attempt only. A circuit breaker around the calls ends even those.
    server.will([Answer::Status(Code::Unavailable)]);
    let guard =
        Guard::builder("some").breaker(Breaker::consecutive_failures(5).cooldown(secs(30))).build()?;
    let mut attempts = Vec::new();
    for _ in 0..7 {
        let before = server.attempts();
        let _failed = guard.classify(GrpcErrors).call(|_| call(&channel, "Get")).await;
        attempts.push(server.attempts() - before);
    }
    println!("attempts of seven calls to a server in trouble: {attempts:?}");
    Ok(())
}

/// A unary call, as a generated client makes it.
async fn call(channel: &ConfiguredChannel<Channel>, method: &str) -> Result<Bytes, Status> {
    let path = PathAndQuery::try_from(format!("/some.v1.SomeService/{method}")).expect("a path");
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await?;
    Ok(client.unary(tonic::Request::new(Bytes::from_static(b"7")), path, Plain).await?.into_inner())
}

/// What the server does with a request.
#[derive(Clone, Copy)]
enum Answer {
    Message,
    Status(Code),
    /// `UNAVAILABLE`, with a word about the next attempt.
    Pushback(&'static str),
    Slow,
}

/// A server that answers as it is told; the last answer is repeated.
#[derive(Clone, Default)]
struct ScriptedServer(Arc<Mutex<(VecDeque<Answer>, usize)>>);

impl ScriptedServer {
    fn will(&self, answers: impl IntoIterator<Item = Answer>) {
        *self.0.lock().unwrap() = (answers.into_iter().collect(), 0);
    }

    fn attempts(&self) -> usize {
        self.0.lock().unwrap().1
    }

    async fn start(&self) -> anyhow::Result<Channel> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = Endpoint::from_shared(format!("http://{}", listener.local_addr()?))?;
        tokio::spawn(
            Server::builder().add_service(self.clone()).serve_with_incoming(TcpIncoming::from(listener)),
        );
        Ok(endpoint.connect_lazy())
    }
}

impl tonic::server::UnaryService<Bytes> for ScriptedServer {
    type Response = Bytes;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, _: tonic::Request<Bytes>) -> Self::Future {
        let answer = {
            let (answers, attempts) = &mut *self.0.lock().unwrap();
            *attempts += 1;
            if answers.len() > 1 { answers.pop_front() } else { answers.front().copied() }
        };
        Box::pin(async move {
            match answer.unwrap_or(Answer::Message) {
                Answer::Message => Ok(tonic::Response::new(Bytes::from_static(b"seven"))),
                Answer::Status(code) => Err(Status::new(code, "as the script says")),
                Answer::Pushback(value) => {
                    let mut status = Status::unavailable("as the script says");
                    status.metadata_mut().insert("grpc-retry-pushback-ms", value.parse().expect("a header"));
                    Err(status)
                }
                Answer::Slow => {
                    tokio::time::sleep(Duration::from_secs(4)).await;
                    Ok(tonic::Response::new(Bytes::from_static(b"late")))
                }
            }
        })
    }
}

impl tonic::server::NamedService for ScriptedServer {
    const NAME: &'static str = "some.v1.SomeService";
}

impl tower_service::Service<http::Request<Body>> for ScriptedServer {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(tonic::server::Grpc::new(Plain).unary(service, request).await) })
    }
}
