//! A6, "Pushback".

use tonic::Code;

use crate::retry::RETRY;
use crate::support::{Client, Reply, Script, config, limit};

const HEDGE: &str =
    r#""hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]}"#;

fn push(value: &'static str) -> Reply {
    Reply::Pushback(Code::Unavailable, value)
}

/// A6: "Pushback: Retry in n ms", and then "retry delay will reset to initial backoff for the following retry".
#[tokio::test(start_paused = true)]
async fn adp_2_a_server_says_when_to_come_back() {
    let script = Script::new([Reply::Fail(Code::Unavailable), push("5000"), Reply::Fail(Code::Unavailable)]);
    limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    let times = script.times();
    assert_eq!(times.len(), 4);
    assert!((5_000..=5_001).contains(&(times[2] - times[1])), "{times:?}");
    assert!((80..=121).contains(&(times[3] - times[2])), "back at the initial backoff: {times:?}");
}

/// A6: a pushback of zero is a retry at once.
#[tokio::test(start_paused = true)]
async fn adp_2_a_pushback_of_zero_is_a_retry_at_once() {
    let script = Script::new([push("0"), Reply::Message("12 left")]);
    assert_eq!(limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.times(), [0, 0]);
}

/// A6: "If the value for pushback is negative or unparseble, then it will be seen as the server asking the client not to retry at
/// all." It is a "signed 32-bit integer".
#[tokio::test(start_paused = true)]
async fn adp_2_a_negative_or_malformed_pushback_ends_the_retries() {
    for value in ["-1", "-2147483648", "", "soon", "1.5", "10 ", "2147483648", "99999999999999999999", "0x10"]
    {
        let script = Script::new([push(value), Reply::Message("no")]);
        let status = limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
        assert_eq!((status.code(), script.attempts()), (Code::Unavailable, 1), "{value:?}");
    }
}

/// A6: "If the client has already exhausted its maxAttempts, the call will not be retried even if the server says to retry after a
/// given delay."
#[tokio::test(start_paused = true)]
async fn adp_2_a_pushback_gives_no_further_attempts() {
    let script = Script::new([push("1")]);
    limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 4);
}

/// A status that is not retryable stays so with a pushback, as in grpc-go and in gRPC's core.
#[tokio::test(start_paused = true)]
async fn adp_2_a_pushback_does_not_make_a_status_retryable() {
    let script = Script::new([Reply::Pushback(Code::InvalidArgument, "1")]);
    limit(Client::new(script.clone(), config(RETRY)).get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 1);
}

/// A6: "If the pushback says to retry after a given delay, the next hedged request (if any) will be issued after the given delay
/// has elapsed", and "Subsequent hedged requests will resume at n + hedgingDelay".
#[tokio::test(start_paused = true)]
async fn adp_2_a_pushback_moves_the_next_hedge() {
    let script = Script::new([push("200"), Reply::Never, Reply::Never, Reply::Message("12 left")]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.times(), [0, 200, 700, 1_200]);
}

/// A6: "If server pushback that specifies not to retry is received in response to a hedged request, no further hedged requests
/// should be issued for the call." Those that were sent may still win.
#[tokio::test(start_paused = true)]
async fn adp_2_a_pushback_ends_the_hedges_but_not_those_in_flight() {
    let script =
        Script::new([Reply::Message("12 left").after(2_000), push("-1").after(100), Reply::Message("no")]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.times(), [0, 500]);

    let script = Script::new([push("-1"), Reply::Message("no")]);
    limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap_err();
    assert_eq!(script.attempts(), 1, "none is in flight, so the failure is returned");
}
