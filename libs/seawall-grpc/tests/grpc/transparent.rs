//! A6, "Transparent Retries": what the server's application never saw.

use seawall_grpc::{CallFailure, ServiceConfig, fault_of};
use tonic::{Code, Status};

use crate::support::{Client, Frames, RawPeer, config, limit};

const OK: Frames = Frames::Trailers(5);

/// The code of a call, and how many requests the peer saw.
async fn call(config: ServiceConfig, script: &[Frames]) -> (Status, u32) {
    let peer = RawPeer::start(script).await;
    let status = limit(Client::new(peer.channel(), config).get("A-7")).await.unwrap_err();
    (status, peer.seen())
}

/// A6: "If the RPC reaches the gRPC server library, but has never been seen by the server application logic (the second case), the
/// client library will immediately retry it once", "regardless of the retry configuration".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_refused_stream_is_sent_again_without_any_policy() {
    let (status, seen) = call(ServiceConfig::default(), &[Frames::Refuse, OK]).await;
    assert_eq!((status.code(), seen), (Code::NotFound, 2), "{status}");
    let previous = status.metadata().get("grpc-previous-rpc-attempts");
    assert!(previous.is_none(), "it is not counted");
}

/// The same for a stream above the last one that the server took, which a GOAWAY names. The retry is on a new connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_stream_after_the_last_one_of_a_goaway_is_sent_again() {
    let (status, seen) = call(ServiceConfig::default(), &[Frames::GoAwayBefore, OK]).await;
    assert_eq!((status.code(), seen), (Code::NotFound, 2), "{status}");
}

/// A6: "If this fails, then the RPC will be handled by the configured retry policy."
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_stream_that_is_refused_twice_is_a_matter_of_the_policy() {
    let (status, seen) = call(ServiceConfig::default(), &[Frames::Refuse]).await;
    assert_eq!((status.code(), seen), (Code::Unavailable, 2), "{status}");
    let fault = fault_of(&status);
    assert_eq!((fault.is_transient(), fault.did_run()), (true, seawall::Ran::No), "{fault}");
}

/// A6: "transparent retries do not count toward the limit of configured RPC attempts (maxAttempts)".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_transparent_retry_is_no_attempt_of_the_policy() {
    let quick = r#""retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.001s", "maxBackoff": "0.001s",
        "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}"#;
    let (_, seen) = call(config(quick), &[Frames::Refuse, Frames::Trailers(14)]).await;
    assert_eq!(seen, 4, "one that was refused, and three attempts");
    let (_, seen) = call(config(quick), &[Frames::Refuse]).await;
    assert_eq!(seen, 4);
}

/// A6: transparent retries "do not count as failures when deciding whether to throttle retry attempts".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_transparent_retry_costs_no_token() {
    let json = r#"{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 2, "initialBackoff": "0.001s",
        "maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}],
        "retryThrottling": {"maxTokens": 3, "tokenRatio": 0.001}}"#;
    let peer = RawPeer::start(&[
        Frames::Refuse,
        OK,
        Frames::Refuse,
        OK,
        Frames::Refuse,
        OK,
        Frames::Trailers(14),
        OK,
    ])
    .await;
    let client = Client::new(peer.channel(), ServiceConfig::from_json(json).unwrap());
    for _ in 0..4 {
        assert_eq!(limit(client.get("A-7")).await.unwrap_err().code(), Code::NotFound);
    }
    assert_eq!(peer.seen(), 8, "the fourth call still has its retry");
}

/// A6: a request that "is seen by the server application logic, and fails" is not sent again by itself: a connection that ends, a
/// stream that is reset otherwise, and a GOAWAY that includes the stream leave that open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_what_the_server_may_have_seen_is_not_sent_again() {
    const INTERNAL_ERROR: u32 = 2;
    const ENHANCE_YOUR_CALM: u32 = 11;
    for (frames, code) in [
        (Frames::Close, Code::Unavailable),
        (Frames::GoAwayAt, Code::Unavailable),
        (Frames::Reset(INTERNAL_ERROR), Code::Internal),
        (Frames::Reset(ENHANCE_YOUR_CALM), Code::ResourceExhausted),
    ] {
        let (status, seen) = call(ServiceConfig::default(), &[frames, OK]).await;
        assert_eq!((status.code(), seen), (code, 1), "{frames:?}: {status}");
        assert_ne!(fault_of(&status).did_run(), seawall::Ran::No, "{frames:?}");
    }
}

/// ENG-1: the error of the connection is the cause of the failure.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eng_1_an_error_of_the_connection_is_kept() {
    use std::error::Error as _;
    let (status, _) = call(ServiceConfig::default(), &[Frames::Close]).await;
    let failure = status.source().unwrap().downcast_ref::<CallFailure>().unwrap();
    assert!(failure.cause().is_some() && status.message().starts_with("the connection failed: "), "{status}");
}
