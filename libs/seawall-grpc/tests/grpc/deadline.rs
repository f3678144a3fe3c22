//! Deadlines over all attempts.

use std::time::Duration;

use bytes::Bytes;
use seawall::{Guard, secs};
use seawall_grpc::{CallFailure, GrpcErrors};
use tonic::Code;

use crate::retry::RETRY;
use crate::support::{Client, Reply, Script, config, limit};

/// The virtual time since then.
fn since(began: seawall::Tick) -> Duration {
    seawall::Clock::tokio().now().since(began)
}

fn request(timeout: Option<Duration>) -> tonic::Request<Bytes> {
    let mut request = tonic::Request::new(Bytes::from_static(b"A-7"));
    if let Some(timeout) = timeout {
        request.set_timeout(timeout);
    }
    request
}

/// A6: "gRPC's call deadline applies across all attempts for a given RPC", and each attempt tells the server what is left.
#[tokio::test(start_paused = true)]
async fn adp_2_the_deadline_covers_all_attempts() {
    let script = Script::new([
        Reply::Fail(Code::Unavailable).after(300),
        Reply::Pushback(Code::Unavailable, "100"),
        Reply::Never,
    ]);
    let client = Client::new(script.clone(), config(RETRY));
    let began = seawall::Clock::tokio().now();
    let status = limit(client.unary(request(Some(secs(2))))).await.unwrap_err();
    assert_eq!((status.code(), since(began).as_millis()), (Code::DeadlineExceeded, 2_000));
    let left: Vec<u64> = script
        .header("grpc-timeout")
        .iter()
        .map(|value| value.as_ref().unwrap().strip_suffix('u').unwrap().parse().unwrap())
        .collect();
    let times = script.times();
    assert_eq!(left[0], 2_000_000);
    for (left, at) in left.iter().zip(&times) {
        assert!(u128::from(*left).abs_diff(2_000_000 - at * 1_000) <= 1_000, "{left} at {at} of {times:?}");
    }
    assert!(script.seen()[2].is_cancelled);
}

/// ADP-2: `timeout` of the config and the deadline of the caller: the earlier one holds.
#[tokio::test(start_paused = true)]
async fn adp_2_the_earlier_deadline_holds() {
    for (config_timeout, own, ends) in [("1s", Some(2), 1), ("2s", Some(1), 1), ("3s", None, 3)] {
        let script = Script::new([Reply::Never]);
        let client = Client::new(script, config(&format!(r#""timeout": "{config_timeout}""#)));
        let began = seawall::Clock::tokio().now();
        let status = limit(client.unary(request(own.map(secs)))).await.unwrap_err();
        assert_eq!((status.code(), since(began).as_secs()), (Code::DeadlineExceeded, ends));
    }
}

/// PRM-6: the deadline of a guard around the call is one too.
#[tokio::test(start_paused = true)]
async fn prm_6_the_deadline_of_a_guard_around_it_holds() {
    let script = Script::new([Reply::Never]);
    let client = Client::new(script.clone(), config(RETRY));
    let guard = Guard::builder("stock").call_timeout(secs(3)).build().unwrap();
    limit(guard.classify(GrpcErrors).call(|_| client.get("A-7"))).await.unwrap_err();
    assert_eq!(script.header("grpc-timeout"), [Some("3000000u".into())]);
}

/// A retry that would come after the deadline is not waited for: the caller learns at once what the server said.
#[tokio::test(start_paused = true)]
async fn adp_2_a_pause_past_the_deadline_is_not_waited_for() {
    let script = Script::new([Reply::Pushback(Code::Unavailable, "60000")]);
    let began = seawall::Clock::tokio().now();
    let status =
        limit(Client::new(script.clone(), config(RETRY)).unary(request(Some(secs(5))))).await.unwrap_err();
    assert_eq!((status.code(), script.attempts(), since(began)), (Code::Unavailable, 1, Duration::ZERO));
}

/// PRM-6: the deadline covers the whole response, not only its headers.
#[tokio::test(start_paused = true)]
async fn prm_6_the_deadline_covers_the_response() {
    let script = Script::new([Reply::Stream(vec!["a"; 100], Duration::from_millis(300), Code::Ok)]);
    let client = Client::new(script, config(r#""timeout": "1s""#));
    let mut stream = limit(client.list(request(None))).await.unwrap();
    let mut messages = 0;
    let status = loop {
        match limit(stream.message()).await {
            Ok(Some(_)) => messages += 1,
            Ok(None) => panic!("the stream ended"),
            Err(status) => break status,
        }
    };
    assert_eq!((messages, status.code()), (3, Code::DeadlineExceeded));
}

/// A call without time is not sent.
#[tokio::test(start_paused = true)]
async fn adp_2_a_call_without_time_is_not_sent() {
    let script = Script::new([Reply::Message("12 left")]);
    let client = Client::new(script.clone(), config(RETRY));
    let status = limit(client.unary(request(Some(Duration::ZERO)))).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::DeadlineExceeded, 0));
}

/// ENG-1: a status that no server sent has its failure as its source, and that one its fault.
#[tokio::test(start_paused = true)]
async fn eng_1_a_passed_deadline_says_what_it_is() {
    use std::error::Error as _;
    let script = Script::new([Reply::Fail(Code::Unavailable), Reply::Never]);
    let timed = format!(r#"{RETRY}, "timeout": "1s""#);
    let status = limit(Client::new(script, config(&timed)).get("A-7")).await.unwrap_err();
    let failure = status.source().unwrap().downcast_ref::<CallFailure>().unwrap();
    assert_eq!((failure.attempts(), failure.fault().class()), (2, seawall::Class::Timeout));
    assert_eq!(failure.to_string(), "no response of the server after 2 attempts");
    assert_eq!(status.message(), "the deadline passed; the last attempt failed with Unavailable");
    assert_eq!(
        seawall::Fault::of_error(&status),
        failure.fault(),
        "a guard without a classifier finds it too"
    );
    let error = anyhow::Error::from(status);
    assert!(error.chain().count() >= 3, "{error:?}");
}
