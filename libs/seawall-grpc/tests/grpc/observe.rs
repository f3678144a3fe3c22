//! Log lines and metrics.

use std::collections::BTreeSet;

use seawall_grpc::NAMES;
use seawall_testkit::observe::{Lines, Numbers};
use tonic::Code;

use crate::retry::RETRY;
use crate::support::{Client, Reply, Script, config, limit};

fn numbers() -> Numbers {
    Numbers::known(NAMES.iter().map(|(name, _, labels, _)| (*name, *labels)))
}

const OF: &str = "server.address=stock.internal,rpc.method=stock.v1.Stock/Get";

/// OBS-2: attempts, retries, pushbacks and the duration of calls are counted by server, method and status.
#[tokio::test(start_paused = true)]
async fn obs_2_calls_and_attempts_are_counted() {
    let numbers = numbers();
    let _recorder = metrics::set_default_local_recorder(&numbers);
    let script = Script::new([
        Reply::Fail(Code::Unavailable),
        Reply::Pushback(Code::Unavailable, "1000"),
        Reply::Message("12 left").after(1_000),
        Reply::Pushback(Code::Unavailable, "-1"),
    ]);
    let client = Client::new(script, config(RETRY));
    limit(client.get("A-7")).await.unwrap();
    limit(client.get("A-7")).await.unwrap_err();
    let value = |name: &str, more: &str| numbers.get(&format!("{name}{{{OF}{more}}}")).unwrap_or_default();
    assert_eq!(value("rpc.client.attempts", ""), 4.0);
    assert_eq!(value("rpc.client.retries", ""), 2.0);
    assert_eq!(
        (value("rpc.client.pushback", ",kind=delay"), value("rpc.client.pushback", ",kind=stop")),
        (1.0, 1.0)
    );
    let duration = value("rpc.client.call.duration", ",rpc.response.status_code=OK");
    assert!((2.08..2.13).contains(&duration), "{duration}");
    assert!(
        numbers
            .all()
            .contains_key(&format!("rpc.client.call.duration{{{OF},rpc.response.status_code=UNAVAILABLE}}"))
    );
}

/// OBS-2: hedges and what was throttled are counted.
#[tokio::test(start_paused = true)]
async fn obs_2_hedges_and_throttled_attempts_are_counted() {
    let numbers = numbers();
    let _recorder = metrics::set_default_local_recorder(&numbers);
    let json = r#"{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "1s",
        "nonFatalStatusCodes": ["UNAVAILABLE"]}}], "retryThrottling": {"maxTokens": 4, "tokenRatio": 1}}"#;
    let script =
        Script::new([Reply::Never, Reply::Fail(Code::Unavailable), Reply::Fail(Code::Unavailable).after(10)]);
    let client = Client::new(script, seawall_grpc::ServiceConfig::from_json(json).unwrap());
    let call = limit(tokio::time::timeout(std::time::Duration::from_secs(10), client.get("A-7"))).await;
    assert!(call.is_err(), "the first attempt is still under way");
    let value = |name: &str| numbers.get(&format!("{name}{{{OF}}}")).unwrap_or_default();
    assert_eq!((value("rpc.client.attempts"), value("rpc.client.hedges")), (3.0, 2.0));
    let cancelled = format!("rpc.client.call.duration{{{OF},rpc.response.status_code=CANCELLED}}");
    assert!(numbers.all().contains_key(&cancelled), "a call that the caller dropped is counted as cancelled");
}

/// OBS-2: every metric is described.
#[test]
fn obs_2_every_metric_is_described() {
    let numbers = numbers();
    metrics::with_local_recorder(&numbers, seawall_grpc::describe);
    let names: BTreeSet<String> = NAMES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(numbers.described(), names);
}

/// OBS-1: a retry and a failure have their lines, and no line has the content of a message.
#[tokio::test(start_paused = true)]
async fn obs_1_retries_and_failures_are_logged() {
    let lines = Lines::collect();
    let script =
        Script::new([Reply::Pushback(Code::Unavailable, "250"), Reply::Fail(Code::PermissionDenied)]);
    limit(Client::new(script, config(RETRY)).get("secret")).await.unwrap_err();
    assert_eq!(
        lines.find("WARN [Grpc-Client][Call] Retry triggered."),
        "WARN [Grpc-Client][Call] Retry triggered. server=\"stock.internal\" method=\"/stock.v1.Stock/Get\" attempt=2 \
         wait=250ms cause=\"UNAVAILABLE\""
    );
    assert_eq!(
        lines.find("ERROR [Grpc-Client][Call] Failed!"),
        "ERROR [Grpc-Client][Call] Failed! server=\"stock.internal\" method=\"/stock.v1.Stock/Get\" \
         code=\"PERMISSION_DENIED\" attempts=2 duration=250ms"
    );
    assert!(lines.of("").iter().all(|line| !line.contains("secret")));
}

/// OBS-1: lines of one kind are limited in each second, and say how many were left out.
#[tokio::test(start_paused = true)]
async fn obs_1_lines_are_limited() {
    let lines = Lines::collect();
    let script = Script::new([Reply::Fail(Code::NotFound)]);
    let builder = seawall_grpc::ServiceConfigLayer::builder("stock", config(RETRY));
    let client = Client::with(script, &builder.lines_per_second(3).build().unwrap());
    for _ in 0..50 {
        limit(client.get("A-7")).await.unwrap_err();
    }
    assert_eq!(lines.of("WARN [Grpc-Client][Call] Failed!").len(), 3);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    limit(client.get("A-7")).await.unwrap_err();
    assert!(lines.of("WARN").last().unwrap().ends_with("suppressed=47"), "{:?}", lines.of("WARN").last());
}
