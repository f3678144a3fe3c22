//! Calls that are dropped, and calls on several threads.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use seawall_grpc::{ConfiguredChannel, ServiceConfig, ServiceConfigLayer};
use seawall_testkit::poll_once;
use tonic::Code;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::Channel;

use crate::retry::RETRY;
use crate::support::{Client, Messages, Reply, Script, TestServer, config, limit};

/// What a generated client asks of its channel, and what a task asks of its future.
#[test]
fn adp_2_the_channel_fits_a_generated_client_and_its_futures_are_send() {
    fn fits<T: GrpcService<Body> + Clone + Send + Sync + 'static>() {}
    fn is_send<F: Future + Send>(_: impl FnOnce(ConfiguredChannel<Channel>) -> F) {}
    fits::<ConfiguredChannel<Channel>>();
    is_send(|mut channel| tower_service::Service::call(&mut channel, http::Request::new(Body::empty())));
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<ServiceConfigLayer>();
    is_shared::<ServiceConfig>();
    is_shared::<seawall_grpc::CallFailure>();
}

/// PRM-4: a call that is dropped at any poll leaves no attempt behind, and nothing in the buffer.
#[tokio::test(start_paused = true)]
async fn prm_4_a_call_that_is_dropped_at_any_poll_leaves_nothing_behind() {
    let hedge = r#""hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"]}"#;
    for entry in [RETRY, hedge] {
        // The whole buffer is as large as one request: what is left behind would keep the next one from being retried.
        let builder = ServiceConfigLayer::builder("stock", config(entry)).seed(7);
        let layer = builder.call_buffer_bytes_max(300).channel_buffer_bytes_max(300).build().unwrap();
        let mut polls = 0;
        loop {
            let script = Script::new([
                Reply::Fail(Code::Unavailable).after(100),
                Reply::Fail(Code::Unavailable).after(300),
                Reply::Message("stored"),
            ]);
            let client = Client::with(script.clone(), &layer);
            let messages = (0..3).map(|_| Bytes::from(vec![7; 90]));
            let call = client.put(Messages::new(messages, Duration::from_millis(10)));
            let mut call: Pin<Box<dyn Future<Output = _>>> = Box::pin(call);
            let mut ended = None;
            for _ in 0..polls {
                if let std::task::Poll::Ready(result) = poll_once(call.as_mut()) {
                    ended = Some(result);
                    break;
                }
                tokio::time::advance(Duration::from_millis(5)).await;
            }
            drop(call);
            let left = script.seen().iter().filter(|seen| !seen.is_cancelled && seen.body.is_none()).count();
            assert_eq!(left, 0, "after {polls} polls");
            if let Some(result) = ended {
                assert_eq!(result.unwrap(), "stored");
                assert_eq!(script.attempts(), 3, "the buffer was free, so the request could be repeated");
                break;
            }
            polls += 1;
            assert!(polls < 1_000, "the call ends");
        }
        assert!(polls > 20, "{polls}");
    }
}

/// PRM-4: a response that is dropped before its end gives everything back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prm_4_a_response_that_is_dropped_ends_its_stream() {
    let script = Script::new([Reply::Stream(vec!["a"; 1_000], Duration::from_millis(1), Code::Ok)]);
    let server = TestServer::start(&script).await;
    let client = Client::new(server.channel(), config(RETRY));
    for _ in 0..300 {
        // More than the streams that a connection may have at once.
        let mut stream = limit(client.list(tonic::Request::new(Bytes::new()))).await.unwrap();
        assert!(limit(stream.message()).await.unwrap().is_some());
    }
    assert_eq!(script.attempts(), 300);
}

/// ADP-2: many calls on several threads, a third of which fail once: all succeed, and the counts of both sides agree.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn adp_2_many_calls_at_once_are_answered() {
    const TASKS: usize = 16;
    const CALLS: usize = 50;
    let replies = (0..TASKS * CALLS * 2).map(|number| match number % 4 {
        0 => Reply::Fail(Code::Unavailable),
        _ => Reply::Message("12 left"),
    });
    let script = Script::new(replies.chain([Reply::Message("12 left")]));
    let server = TestServer::start(&script).await;
    // As many attempts as it takes: which reply a call gets is a matter of chance.
    let quick = RETRY
        .replace("0.1s", "0.001s")
        .replace("0.3s", "0.001s")
        .replace("\"maxAttempts\": 4", "\"maxAttempts\": 99");
    let layer = ServiceConfigLayer::builder("stock", config(&quick)).attempts_max(99).build().unwrap();
    let client = Client::with(server.channel(), &layer);
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let client = client.clone();
        tasks.spawn(async move {
            let mut repeated = 0_usize;
            for _ in 0..CALLS {
                let request = tonic::Request::new(Bytes::from_static(b"A-7"));
                let response = limit(client.unary(request)).await.unwrap();
                let previous = response.metadata().get("grpc-previous-rpc-attempts");
                repeated += previous.map_or(0, |value| value.to_str().unwrap().parse().unwrap());
            }
            repeated
        });
    }
    let mut repeated = 0;
    while let Some(task) = limit(tasks.join_next()).await {
        repeated += task.unwrap();
    }
    assert_eq!(script.attempts(), TASKS * CALLS + repeated, "the server saw what the clients counted");
    assert!(repeated > TASKS * CALLS / 4, "{repeated}");
}
