//! A6, "Throttling Retry Attempts and Hedged RPCs".

use seawall_grpc::ServiceConfig;
use tonic::Code;

use crate::support::{Client, Reply, Script, layer, limit};

fn config(policy: &str, throttling: &str) -> ServiceConfig {
    let json =
        format!(r#"{{"methodConfig": [{{"name": [{{}}], {policy}}}], "retryThrottling": {throttling}}}"#);
    ServiceConfig::from_json(&json).unwrap()
}

const RETRY: &str = crate::retry::RETRY;
const HEDGE: &str =
    r#""hedgingPolicy": {"maxAttempts": 5, "hedgingDelay": "1s", "nonFatalStatusCodes": ["UNAVAILABLE"]}"#;
const TEN: &str = r#"{"maxTokens": 10, "tokenRatio": 0.5}"#;

/// A6: "Every failed RPC will decrement the token_count by 1", and "RPCs will not be retried until token_count rises over the
/// threshold": of ten tokens five are spent.
#[tokio::test(start_paused = true)]
async fn adp_2_retries_stop_at_half_of_the_tokens() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let client = Client::new(script.clone(), config(RETRY, TEN));
    let mut attempts = Vec::new();
    for _ in 0..4 {
        let before = script.attempts();
        limit(client.get("A-7")).await.unwrap_err();
        attempts.push(script.attempts() - before);
    }
    // The first call spends four tokens. The fifth failure brings the count to five, which is the threshold.
    assert_eq!(attempts, [4, 1, 1, 1]);
}

/// A6: "Every successful RPC will increment the token_count by tokenRatio", and retries begin again over the threshold.
#[tokio::test(start_paused = true)]
async fn adp_2_successes_bring_retries_back() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let client = Client::new(script.clone(), config(RETRY, TEN));
    for _ in 0..2 {
        limit(client.get("A-7")).await.unwrap_err();
    }
    script.set([Reply::Message("12 left")]);
    for _ in 0..3 {
        limit(client.get("A-7")).await.unwrap();
    }
    // 5 + 3 * 0.5 = 6.5: one failure leaves 5.5, over the threshold; the next one does not.
    script.set([Reply::Fail(Code::Unavailable)]);
    let before = script.attempts();
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts() - before, 2);
}

/// A6: "The only RPCs that are counted as failures for the throttling policy are RPCs that fail with a status code that qualifies
/// as a retryable or non-fatal status code, or that receive a pushback response indicating not to retry."
#[tokio::test(start_paused = true)]
async fn adp_2_only_failures_of_the_server_cost_tokens() {
    let script = Script::new([Reply::Fail(Code::InvalidArgument)]);
    let client = Client::new(script.clone(), config(RETRY, TEN));
    for _ in 0..50 {
        limit(client.get("A-7")).await.unwrap_err();
    }
    script.set([Reply::Fail(Code::Unavailable)]);
    let before = script.attempts();
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts() - before, 4, "fifty malformed requests cost nothing");

    let script = Script::new([Reply::Pushback(Code::InvalidArgument, "-1")]);
    let client = Client::new(script.clone(), config(RETRY, TEN));
    for _ in 0..5 {
        limit(client.get("A-7")).await.unwrap_err();
    }
    script.set([Reply::Fail(Code::Unavailable)]);
    let before = script.attempts();
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts() - before, 1, "five pushbacks cost five tokens");
}

/// A6: "The throttling is done per server name", "regardless of service or method invoked": the channels of one layer share it.
#[tokio::test(start_paused = true)]
async fn adp_2_the_tokens_belong_to_the_server() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let layer_of_server = layer(config(RETRY, TEN));
    let (one, other) =
        (Client::with(script.clone(), &layer_of_server), Client::with(script.clone(), &layer_of_server));
    limit(one.get("A-7")).await.unwrap_err();
    limit(other.list(tonic::Request::new(bytes::Bytes::new()))).await.unwrap_err();
    assert_eq!(script.attempts(), 5, "the other method of the other channel has no retry left");
    let elsewhere = Client::with(script.clone(), &layer(config(RETRY, TEN)));
    limit(elsewhere.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 9, "another server has its own tokens");
}

/// A6: "The first outgoing RPC will always be sent, but subsequent hedged RPCs will only be sent if token_count is greater than the
/// threshold", and "if there are no other already-sent hedged RPCs the failure is returned to the client application".
#[tokio::test(start_paused = true)]
async fn adp_2_hedges_stop_at_half_of_the_tokens() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let four = r#"{"maxTokens": 4, "tokenRatio": 0.5}"#;
    let client = Client::new(script.clone(), config(HEDGE, four));
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 2, "the second failure leaves half of the tokens");
    script.set([Reply::Message("12 left").after(10_000)]);
    assert_eq!(limit(client.get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.attempts(), 3, "no hedge is sent, however slow the first request is");
}

/// A failure after the headers is not retried, but it says the same about the server.
#[tokio::test(start_paused = true)]
async fn adp_2_failures_of_committed_calls_cost_tokens() {
    let script = Script::new([Reply::HeadersThen(Code::Unavailable)]);
    let client = Client::new(script.clone(), config(RETRY, TEN));
    for _ in 0..5 {
        limit(client.get("A-7")).await.unwrap_err();
    }
    script.set([Reply::Fail(Code::Unavailable)]);
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 6);
}
