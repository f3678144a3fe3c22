//! A6, "Retry Policy": attempts, delays, statuses, metadata.

use std::time::Duration;

use bytes::Bytes;
use seawall_grpc::ServiceConfig;
use tonic::Code;

use crate::support::{Client, Reply, Script, config, layer, limit};

pub(crate) const RETRY: &str = r#""retryPolicy": {"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "0.3s",
    "backoffMultiplier": 2, "retryableStatusCodes": ["UNAVAILABLE"]}"#;

/// A6: "maxAttempts specifies the maximum number of RPC attempts, including the original request."
#[tokio::test(start_paused = true)]
async fn adp_2_the_first_request_counts_as_an_attempt() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::Unavailable, 4));
    assert_eq!(status.message(), "as the script says", "the caller gets the status of the last attempt");
}

/// A6: "The initial retry attempt will occur at initialBackoff * random(0.8, 1.2). After that, the n-th attempt will occur at
/// min(initialBackoff*backoffMultiplier**(n-1), maxBackoff) * random(0.8, 1.2)".
#[tokio::test(start_paused = true)]
async fn adp_2_retries_come_after_the_backoff_with_its_jitter() {
    let mut first_pauses = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let script = Script::new([Reply::Fail(Code::Unavailable)]);
        let layer =
            seawall_grpc::ServiceConfigLayer::builder("stock", config(RETRY)).seed(seed).build().unwrap();
        limit(Client::with(script.clone(), &layer).get("A-7")).await.unwrap_err();
        let times = script.times();
        assert_eq!(times[0], 0);
        for (pause, nominal) in times.windows(2).map(|pair| pair[1] - pair[0]).zip([100, 200, 300]) {
            // A timer of tokio has steps of a millisecond.
            assert!((nominal * 8 / 10..=nominal * 12 / 10 + 1).contains(&pause), "{times:?}");
        }
        first_pauses.insert(times[1]);
    }
    assert!(first_pauses.len() > 5, "the jitter is one: {first_pauses:?}");
}

/// A6: "OK: Successful response, return success to client application", and the bytes of every attempt are the same.
#[tokio::test(start_paused = true)]
async fn adp_2_a_success_ends_the_retries() {
    let fail = Reply::Fail(Code::Unavailable);
    let script = Script::new([fail.clone(), fail, Reply::Message("12 left")]);
    assert_eq!(limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap(), "12 left");
    let bodies: Vec<Option<Bytes>> = script.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(bodies, vec![Some(Bytes::from_static(b"A-7")); 3]);
}

/// A6: "Fatal Status Code: Don't retry, return failure to client application". Wrong credentials are one.
#[tokio::test(start_paused = true)]
async fn adp_2_other_statuses_are_not_retried() {
    for code in (1..17).map(Code::from_i32).filter(|code| *code != Code::Unavailable) {
        let script = Script::new([Reply::Fail(code)]);
        let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
        assert_eq!((status.code(), script.attempts()), (code, 1));
    }
}

/// A6: "Unless the service owner specifies a policy in the configuration, retries and hedging will not be enabled."
#[tokio::test(start_paused = true)]
async fn adp_2_without_a_policy_there_is_one_attempt() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let client = Client::new(script.clone(), ServiceConfig::default());
    assert_eq!(limit(client.get("A-7")).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(script.attempts(), 1);
}

/// A6: "maxAttempts in both retryPolicy and hedgingPolicy have, by default, a client-side maximum value of 5. This client-side
/// maximum value can be changed by the client".
#[tokio::test(start_paused = true)]
async fn adp_2_more_than_five_attempts_are_five() {
    let many = RETRY.replace("\"maxAttempts\": 4", "\"maxAttempts\": 50");
    let attempts = async |layer: seawall_grpc::ServiceConfigLayer| {
        let script = Script::new([Reply::Fail(Code::Unavailable)]);
        limit(Client::with(script.clone(), &layer).get("A-7")).await.unwrap_err();
        script.attempts()
    };
    assert_eq!(attempts(layer(config(&many))).await, 5);
    let builder = || seawall_grpc::ServiceConfigLayer::builder("stock", config(&many));
    assert_eq!(attempts(builder().attempts_max(7).build().unwrap()).await, 7);
    assert_eq!(attempts(builder().attempts_max(1).build().unwrap()).await, 1);
}

/// A6: "retry support can be disabled entirely within the gRPC client library".
#[tokio::test(start_paused = true)]
async fn adp_2_retries_can_be_disabled() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let builder = seawall_grpc::ServiceConfigLayer::builder("stock", config(RETRY));
    let layer = builder.without_retries().build().unwrap();
    limit(Client::with(script.clone(), &layer).get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 1);
}

/// A6: `grpc-previous-rpc-attempts` "will not be present on the first RPC, will be 1 for the second RPC, and so on", and "the
/// client will receive the number of retry attempts made when receiving the results of an RPC".
#[tokio::test(start_paused = true)]
async fn adp_2_server_and_client_learn_of_previous_attempts() {
    const NAME: &str = "grpc-previous-rpc-attempts";
    let fail = Reply::Fail(Code::Unavailable);
    let script = Script::new([fail.clone(), fail.clone(), Reply::Message("12 left")]);
    let mut request = tonic::Request::new(Bytes::from_static(b"A-7"));
    request.metadata_mut().insert(NAME, "9".parse().unwrap());
    let response = limit(Client::new(script.clone(), config(RETRY)).unary(request)).await.unwrap();
    assert_eq!(script.header(NAME), [None, Some("1".into()), Some("2".into())], "the caller can't set it");
    assert_eq!(response.metadata().get(NAME).unwrap(), "2");

    let script = Script::new([fail.clone(), fail, Reply::Fail(Code::NotFound)]);
    let status = limit(Client::new(script, config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!(status.metadata().get(NAME).unwrap(), "2");
}

/// A6: an RPC is committed when "the client receives Response-Headers"; "If the application code closes the stream with an error
/// before sending headers or any response messages, gRPC servers should send the error in Trailers-Only."
#[tokio::test(start_paused = true)]
async fn adp_2_headers_commit_a_call_and_trailers_alone_do_not() {
    let script = Script::new([
        Reply::Fail(Code::Unavailable),
        Reply::HeadersThen(Code::Unavailable),
        Reply::Message("no"),
    ]);
    let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::Unavailable, 2));
}

/// A response of a proxy has no gRPC status, and is judged by its HTTP status as every gRPC client does.
#[tokio::test(start_paused = true)]
async fn adp_2_the_status_of_a_proxy_is_mapped() {
    let script = Script::new([Reply::Http(503), Reply::Http(502), Reply::Message("12 left")]);
    assert_eq!(limit(Client::new(script, config(RETRY)).get("A-7")).await.unwrap(), "12 left");
    for (http, code) in
        [(401, Code::Unauthenticated), (403, Code::PermissionDenied), (404, Code::Unimplemented)]
    {
        let script = Script::new([Reply::Http(http)]);
        let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
        assert_eq!((status.code(), script.attempts()), (code, 1));
    }
}

/// PRM-8: details that are not base64, on which tonic panics, cost the details and nothing else.
#[tokio::test(start_paused = true)]
async fn prm_8_a_status_with_broken_details_is_a_status() {
    let script = Script::new([Reply::BadDetails]);
    let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), status.details().len(), script.attempts()), (Code::Unavailable, 0, 4));
}

/// ADP-2: the policy is that of the method that is called.
#[tokio::test(start_paused = true)]
async fn adp_2_the_config_of_the_called_method_counts() {
    let script = Script::new([Reply::Fail(Code::Unavailable)]);
    let json = format!(
        r#"{{"methodConfig": [
            {{"name": [{{"service": "stock.v1.Stock"}}], {RETRY}}},
            {{"name": [{{"service": "stock.v1.Stock", "method": "Get"}}], "timeout": "9s"}}
        ]}}"#
    );
    let client = Client::new(script.clone(), ServiceConfig::from_json(&json).unwrap());
    limit(client.get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 1, "the entry of the method has no policy");
    limit(client.list(tonic::Request::new(Bytes::new()))).await.unwrap_err();
    assert_eq!(script.attempts(), 5, "the entry of the service has one");
    assert_eq!(
        Duration::from_secs(9),
        layer(config(r#""timeout": "9s""#)).config().method("/a/b").unwrap().timeout.unwrap()
    );
}
