//! A6, "Hedging Policy".

use tonic::Code;

use crate::support::{Client, Reply, Script, TestServer, config, limit};

const HEDGE: &str = r#""hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]}"#;

/// A6: "the original RPC is sent immediately. After hedgingDelay has elapsed without a successful response, the second RPC will be
/// issued", "and so on, up to maxAttempts".
#[tokio::test(start_paused = true)]
async fn adp_2_hedges_follow_the_first_request_at_their_delay() {
    let script =
        Script::new([Reply::Never, Reply::Never, Reply::Never, Reply::Message("12 left").after(5_000)]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.times(), [0, 500, 1_000, 1_500]);
    let previous = script.header("grpc-previous-rpc-attempts");
    assert_eq!(previous, [None, Some("1".into()), Some("2".into()), Some("3".into())]);
    let same = script.seen().iter().all(|seen| seen.body.as_deref() == Some(b"A-7"));
    assert!(same, "every hedge has the whole request");
}

/// A6: "When a non-error response is received (in response to any of the hedged requests), all outstanding hedged requests are
/// canceled and the response is returned to the client application layer."
#[tokio::test(start_paused = true)]
async fn adp_2_the_first_response_wins_and_the_others_are_cancelled() {
    let script = Script::new([Reply::Never, Reply::Message("second").after(100), Reply::Message("no")]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "second");
    let cancelled: Vec<bool> = script.seen().iter().map(|seen| seen.is_cancelled).collect();
    assert_eq!(cancelled, [true, false]);

    let script = Script::new([Reply::Message("first").after(900), Reply::Never]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "first");
    assert_eq!(script.attempts(), 2, "also the first one may win after the second was sent");
}

/// A6: the "0s" example "issues four RPCs simultaneously".
#[tokio::test(start_paused = true)]
async fn adp_2_hedges_without_a_delay_are_sent_at_once() {
    let at_once = HEDGE.replace("\"hedgingDelay\": \"0.5s\", ", "");
    let script = Script::new([Reply::Never, Reply::Never, Reply::Message("third").after(10), Reply::Never]);
    assert_eq!(limit(Client::new(script.clone(), config(&at_once)).get("A-7")).await.unwrap(), "third");
    assert_eq!(script.times(), [0, 0, 0, 0]);
}

/// A6: "If a non-fatal status code is received from a hedged request, then the next hedged request in line is sent immediately,
/// shortcutting its hedging delay."
#[tokio::test(start_paused = true)]
async fn adp_2_a_failure_that_is_not_fatal_shortcuts_the_delay() {
    let fail = Reply::Fail(Code::Unavailable).after(100);
    let script = Script::new([fail.clone(), fail, Reply::Never, Reply::Message("12 left")]);
    assert_eq!(limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap(), "12 left");
    assert_eq!(script.times(), [0, 100, 200, 700]);
}

/// A6: "If any other status code is received, all outstanding RPCs are canceled and the error is returned to the client application
/// layer."
#[tokio::test(start_paused = true)]
async fn adp_2_a_fatal_status_cancels_the_other_hedges() {
    let script =
        Script::new([Reply::Never, Reply::Fail(Code::PermissionDenied).after(100), Reply::Message("no")]);
    let status = limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::PermissionDenied, 2));
    assert!(script.seen()[0].is_cancelled);
}

/// A6: "If all instances of a hedged RPC fail, there are no additional retry attempts."
#[tokio::test(start_paused = true)]
async fn adp_2_when_all_hedges_failed_the_last_failure_is_returned() {
    let fail = |code, millis| Reply::Fail(code).after(millis);
    let script = Script::new([
        fail(Code::Unavailable, 100),
        fail(Code::Unavailable, 3_000),
        fail(Code::Unavailable, 100),
        fail(Code::Internal, 9_000),
    ]);
    let status = limit(Client::new(script.clone(), config(HEDGE)).get("A-7")).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::Internal, 4));
}

/// A6: "gRPC call deadlines apply to the entire chain of hedged requests."
#[tokio::test(start_paused = true)]
async fn adp_2_the_deadline_covers_all_hedges() {
    let script = Script::new([Reply::Never]);
    let timed = format!(r#"{HEDGE}, "timeout": "1.2s""#);
    let status = limit(Client::new(script.clone(), config(&timed)).get("A-7")).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(script.times(), [0, 500, 1_000]);
    assert_eq!(
        script.header("grpc-timeout"),
        ["1200000u", "700000u", "200000u"].map(|left| Some(left.into()))
    );
    assert!(script.seen().iter().all(|seen| seen.is_cancelled));
}

/// ADP-2: hedges on a real connection: the losers are cancelled at the server too, and the streams of the connection go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_hedges_on_the_network_are_cancelled_at_the_server() {
    let script = Script::new([Reply::Never, Reply::Never, Reply::Message("third")]);
    let server = TestServer::start(&script).await;
    let quick = HEDGE.replace("0.5s", "0.02s").replace("\"maxAttempts\": 4", "\"maxAttempts\": 3");
    let client = Client::new(server.channel(), config(&quick));
    assert_eq!(limit(client.get("A-7")).await.unwrap(), "third");
    let cancelled = || script.seen().iter().filter(|seen| seen.is_cancelled).count();
    limit(async {
        while cancelled() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!((script.attempts(), cancelled()), (3, 2));
    assert_eq!(limit(client.get("A-8")).await.unwrap(), "third", "the connection is as good as before");
}
