//! A server that is down, comes back, is paused, or refuses.

use std::time::Duration;

use seawall::{Breaker, Guard, Kind, secs};
use seawall_grpc::{GrpcErrors, fault_of};
use seawall_testkit::servers::{FaultProxy, NetworkFault};
use tonic::Code;
use tonic::transport::Endpoint;

use crate::support::{Client, Reply, Script, TestServer, config, limit};
use seawall_testkit::until;

const PATIENT: &str = r#""retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "0.5s",
    "backoffMultiplier": 3, "retryableStatusCodes": ["UNAVAILABLE"]}"#;

/// ADP-2: a server that is not there fails a call at once, unless the policy or `waitForReady` says otherwise.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_without_a_server_a_call_fails_fast() {
    let script = Script::new([Reply::Message("12 left")]);
    let server = TestServer::start(&script).await;
    let channel = server.channel();
    drop(server);
    let client = Client::new(channel, config(r#""timeout": "30s""#));
    let status = limit(client.get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::Unavailable, 0), "{status}");
    let fault = fault_of(&status);
    assert_eq!((fault.is_transient(), fault.did_run()), (true, seawall::Ran::No));
}

/// ADP-2: `waitForReady` waits for the server, and the request is sent once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_call_that_waits_for_its_server_gets_it() {
    let script = Script::new([Reply::Message("12 left")]);
    let server = TestServer::start(&script).await;
    let (address, channel) = (server.address, server.channel());
    drop(server);
    let client = Client::new(channel, config(r#""waitForReady": true, "timeout": "30s""#));
    let (answer, _server) = limit(async {
        tokio::join!(client.get("A-7"), async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            TestServer::start_at(address, &script).await
        })
    })
    .await;
    assert_eq!((answer.unwrap(), script.attempts()), ("12 left".to_owned(), 1));
}

/// ADP-2: `waitForReady` ends with the deadline.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_waiting_for_a_server_ends_with_the_deadline() {
    let script = Script::new([Reply::Message("12 left")]);
    let server = TestServer::start(&script).await;
    let channel = server.channel();
    drop(server);
    let client = Client::new(channel, config(r#""waitForReady": true, "timeout": "0.3s""#));
    let status = limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}

/// ADP-2: a server that is stopped in the middle and comes back: calls that the policy covers succeed, and every answer was one of
/// the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_server_that_restarts_loses_no_call() {
    const CALLS: usize = 60;
    let script = Script::new([Reply::Message("12 left").after(2)]);
    let proxy_target = TestServer::start(&script).await;
    let proxy = FaultProxy::start(proxy_target.address).unwrap();
    let channel = Endpoint::from_shared(format!("http://{}", proxy.address())).unwrap().connect_lazy();
    let client =
        Client::new(channel, config(&format!(r#"{PATIENT}, "waitForReady": true, "timeout": "30s""#)));
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let client = client.clone();
        calls.spawn(async move {
            for _ in 0..CALLS / 4 {
                assert_eq!(limit(client.get("A-7")).await.unwrap(), "12 left");
            }
        });
    }
    for _ in 0..2 {
        let before = script.attempts();
        until("five more attempts", async || script.attempts() >= before + 5).await;
        proxy.set(NetworkFault::Refuse);
        tokio::time::sleep(Duration::from_millis(30)).await;
        proxy.set(NetworkFault::None);
    }
    while let Some(ended) = limit(calls.join_next()).await {
        ended.unwrap();
    }
    assert!(script.attempts() >= CALLS, "the server answered every call: {}", script.attempts());
}

/// ADP-2: a server that is paused: the deadline ends the call, and when it goes on so does the channel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_server_that_is_paused_costs_no_more_than_the_deadline() {
    let script = Script::new([Reply::Message("12 left")]);
    let server = TestServer::start(&script).await;
    let proxy = FaultProxy::start(server.address).unwrap();
    let channel = Endpoint::from_shared(format!("http://{}", proxy.address())).unwrap().connect_lazy();
    let client = Client::new(channel, config(r#""timeout": "0.5s""#));
    assert_eq!(limit(client.get("A-7")).await.unwrap(), "12 left");
    proxy.set(NetworkFault::Partition);
    assert_eq!(limit(client.get("A-7")).await.unwrap_err().code(), Code::DeadlineExceeded);
    proxy.set(NetworkFault::None);
    assert_eq!(limit(client.get("A-7")).await.unwrap(), "12 left");
}

/// ADP-2: wrong credentials are not retried, and a guard does not hold them against the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_wrong_credentials_are_not_retried() {
    for code in [Code::Unauthenticated, Code::PermissionDenied] {
        let script = Script::new([Reply::Fail(code)]);
        let server = TestServer::start(&script).await;
        let client = Client::new(server.channel(), config(PATIENT));
        let status = limit(client.get("A-7")).await.unwrap_err();
        assert_eq!((status.code(), script.attempts()), (code, 1));
        let fault = fault_of(&status);
        assert!(fault.is_unauthorised() && !fault.is_transient() && !fault.counts());
    }
}

/// ADP-2: a circuit breaker around the calls opens on statuses of the server, and then nothing is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_guard_around_the_calls_opens_its_circuit() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let server = TestServer::start(&script).await;
    let client = Client::new(server.channel(), config(r#""timeout": "30s""#));
    let breaker = Breaker::consecutive_failures(3).cooldown(secs(60));
    let guard = Guard::builder("stock").breaker(breaker).build().unwrap();
    let mut kinds = Vec::new();
    for _ in 0..5 {
        kinds.push(limit(guard.classify(GrpcErrors).call(|_| client.get("A-7"))).await.unwrap_err().kind());
    }
    assert_eq!(kinds, [Kind::Failed, Kind::Failed, Kind::Failed, Kind::Rejected, Kind::Rejected]);
    assert_eq!(script.attempts(), 3);
}

/// ENG-1, ADP-2: what a status means, with its pushback.
#[test]
fn eng_1_statuses_are_judged() {
    use seawall::fault::Verdict;
    let mut status = tonic::Status::unavailable("busy");
    assert_eq!(fault_of(&status).verdict(), Verdict::Transient);
    status.metadata_mut().insert("grpc-retry-pushback-ms", "1500".parse().unwrap());
    let fault = fault_of(&status);
    assert_eq!(
        (fault.verdict(), fault.retry_after()),
        (Verdict::Throttled, Some(Duration::from_millis(1_500)))
    );
    status.metadata_mut().insert("grpc-retry-pushback-ms", "-1".parse().unwrap());
    assert_eq!(fault_of(&status).verdict(), Verdict::Permanent);
    assert_eq!(fault_of(&tonic::Status::not_found("none")).verdict(), Verdict::Permanent);
    assert!(!fault_of(&tonic::Status::not_found("none")).counts());
}
