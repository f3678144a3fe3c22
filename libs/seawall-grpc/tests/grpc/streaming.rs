//! Streams of messages, in both directions.

use std::time::Duration;

use bytes::Bytes;
use seawall_grpc::ServiceConfigLayer;
use tonic::Code;

use crate::retry::RETRY;
use crate::support::{Client, Messages, Reply, Script, TestServer, config, layer, limit};

const HEDGE: &str =
    r#""hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE"]}"#;

fn pieces(count: usize, bytes: usize) -> Vec<Bytes> {
    (0..count).map(|number| Bytes::from(vec![b'a' + u8::try_from(number % 26).unwrap(); bytes])).collect()
}

/// ADP-2: a stream of messages is retried until its headers, and never after.
#[tokio::test(start_paused = true)]
async fn adp_2_a_server_stream_is_retried_until_its_headers() {
    let fail = Reply::Fail(Code::Unavailable);
    let broken = Reply::Stream(vec!["a", "b"], Duration::from_millis(1), Code::Unavailable);
    let script = Script::new([fail.clone(), fail, broken, Reply::Message("no")]);
    let client = Client::new(script.clone(), config(RETRY));
    let mut stream = limit(client.list(tonic::Request::new(Bytes::new()))).await.unwrap();
    assert_eq!(limit(stream.message()).await.unwrap().unwrap(), "a");
    assert_eq!(limit(stream.message()).await.unwrap().unwrap(), "b");
    assert_eq!(limit(stream.message()).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(script.attempts(), 3);
}

/// ADP-2: the same over the network, for a stream that ends well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_server_stream_over_the_network_is_whole() {
    let fail = Reply::Fail(Code::Unavailable);
    let whole = Reply::Stream(vec!["a", "b", "c"], Duration::from_millis(1), Code::Ok);
    let script = Script::new([fail.clone(), fail, whole]);
    let server = TestServer::start(&script).await;
    let quick = RETRY.replace("0.1s", "0.001s").replace("0.3s", "0.001s");
    let client = Client::new(server.channel(), config(&quick));
    let mut stream = limit(client.list(tonic::Request::new(Bytes::new()))).await.unwrap();
    let mut messages = Vec::new();
    while let Some(message) = limit(stream.message()).await.unwrap() {
        messages.push(message);
    }
    assert_eq!((messages.concat(), script.attempts()), (b"abc".to_vec(), 3));
}

/// A6: "as long as the entirety of the outgoing message is in the buffer, it can be resent and retried".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_client_stream_is_replayed_from_the_buffer() {
    let fail = Reply::Fail(Code::Unavailable);
    let script = Script::new([fail.clone(), fail, Reply::Message("stored")]);
    let server = TestServer::start(&script).await;
    let quick = RETRY.replace("0.1s", "0.001s").replace("0.3s", "0.001s");
    let client = Client::new(server.channel(), config(&quick));
    let sent = pieces(50, 1_000);
    let stored = limit(client.put(Messages::new(sent.clone(), Duration::from_millis(1)))).await.unwrap();
    assert_eq!((&*stored, script.attempts()), (&b"stored"[..], 3));
    let expected = Bytes::from(sent.concat());
    assert!(
        script.seen().iter().all(|seen| seen.body.as_ref() == Some(&expected)),
        "every attempt has all messages"
    );
}

/// ADP-2: a server that refuses before it has read the request: the retry begins with the first message again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_request_that_was_half_read_begins_anew() {
    let script = Script::new([Reply::FailUnread(Code::Unavailable), Reply::Message("stored")]);
    let server = TestServer::start(&script).await;
    let client = Client::new(server.channel(), config(RETRY));
    let sent = pieces(20, 10);
    limit(client.put(Messages::new(sent.clone(), Duration::from_millis(5)))).await.unwrap();
    assert_eq!((script.attempts(), script.seen()[1].body.clone()), (2, Some(Bytes::from(sent.concat()))));
}

fn small_buffer(entry: &str, call: usize, channel: usize) -> ServiceConfigLayer {
    let builder = ServiceConfigLayer::builder("stock.internal", config(entry)).seed(7);
    builder.call_buffer_bytes_max(call).channel_buffer_bytes_max(channel).build().unwrap()
}

/// A6: "as soon as the outgoing message grows too large to buffer, the gRPC client library cannot replay the entire stream of
/// messages, and thus retries are not valid"; "the original RPC will still be sent".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_request_that_outgrows_the_buffer_gets_one_attempt() {
    for (call, channel) in [(10_000, 16 << 20), (10_000, 10_000)] {
        let script = Script::new([Reply::Fail(Code::Unavailable)]);
        let server = TestServer::start(&script).await;
        let client = Client::with(server.channel(), &small_buffer(RETRY, call, channel));
        let sent = pieces(50, 1_000);
        let status = limit(client.put(Messages::new(sent.clone(), Duration::ZERO))).await.unwrap_err();
        assert_eq!((status.code(), script.attempts()), (Code::Unavailable, 1));
        assert_eq!(script.seen()[0].body, Some(Bytes::from(sent.concat())), "it is sent whole all the same");
        limit(client.get("A-7")).await.unwrap_err();
        assert_eq!(
            script.attempts(),
            5,
            "a small request is retried, and nothing of the large one is counted any more"
        );
    }
}

/// A server that answers before it has read the request: what the connection still reads of the attempt that is over neither fills
/// the buffer nor takes messages from the next attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_an_attempt_that_is_over_reads_no_more_of_the_request() {
    let script = Script::new([Reply::FailUnread(Code::Unavailable), Reply::Message("stored")]);
    let server = TestServer::start(&script).await;
    let client = Client::with(server.channel(), &small_buffer(RETRY, 4_000, 16 << 20));
    // The first attempt fails at once. The retry is sent after 80 ms at the earliest, and has all messages.
    let sent = pieces(40, 100);
    limit(client.put(Messages::new(sent.clone(), Duration::from_millis(5)))).await.unwrap();
    assert_eq!((script.attempts(), script.seen()[1].body.clone()), (2, Some(Bytes::from(sent.concat()))));
}

/// A6: "the client will continue the currently in-flight attempt on which the maximum number of messages have already been sent. All
/// other currently in-flight attempts will be immediately cancelled, and no subsequent attempts will be started."
#[tokio::test(start_paused = true)]
async fn adp_2_hedges_of_a_request_that_outgrows_the_buffer_become_one() {
    let script = Script::new([Reply::Message("stored")]);
    let client = Client::with(script.clone(), &small_buffer(HEDGE, 10_000, 16 << 20));
    // The second attempt is sent after five messages; the tenth is one too many.
    let sent = pieces(20, 1_000);
    limit(client.put(Messages::new(sent.clone(), Duration::from_millis(95)))).await.unwrap();
    let seen = script.seen();
    let whole: Vec<bool> = seen.iter().map(|seen| seen.body == Some(Bytes::from(sent.concat()))).collect();
    assert_eq!(whole.iter().filter(|whole| **whole).count(), 1, "one attempt has all of it");
    let cancelled: Vec<bool> = seen.iter().map(|seen| seen.is_cancelled).collect();
    assert_eq!((seen.len(), cancelled.iter().filter(|cancelled| **cancelled).count()), (2, 1));
}

/// ADP-2: `maxRequestMessageBytes` counts the bytes of each message, and a message that is too large is not sent again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_request_message_that_is_too_large_is_not_sent() {
    let script = Script::new([Reply::Message("stored")]);
    let server = TestServer::start(&script).await;
    let entry = format!(r#"{RETRY}, "maxRequestMessageBytes": 1000"#);
    let client = Client::new(server.channel(), config(&entry));
    limit(client.put(Messages::new(pieces(50, 1_000), Duration::ZERO))).await.unwrap();
    let status = limit(client.put(Messages::new(pieces(1, 1_001), Duration::ZERO))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert!(status.message().contains("1001 bytes"), "{status}");
    assert!(!seawall_grpc::fault_of(&status).is_transient());
    let whole = script
        .seen()
        .iter()
        .filter(|seen| seen.body.as_ref().is_some_and(|body| body.len() == 1_001))
        .count();
    assert_eq!((script.attempts() <= 2, whole), (true, 0), "no attempt was repeated, none has the message");
}

/// ADP-2: the same with hedges and with a server that never answers: the call ends as soon as the message is known.
#[tokio::test(start_paused = true)]
async fn adp_2_a_request_that_breaks_off_ends_all_attempts() {
    for entry in [RETRY, HEDGE] {
        let script = Script::new([Reply::Never]);
        let client =
            Client::new(script.clone(), config(&format!(r#"{entry}, "maxRequestMessageBytes": 1000"#)));
        let sent = pieces(8, 1_000).into_iter().chain(pieces(1, 1_001));
        let status = limit(client.put(Messages::new(sent, Duration::from_millis(100)))).await.unwrap_err();
        assert_eq!(
            (status.code(), script.attempts()),
            (Code::ResourceExhausted, if entry == HEDGE { 2 } else { 1 })
        );
        assert!(script.seen().iter().all(|seen| seen.is_cancelled));
    }
}

/// ADP-2: `maxResponseMessageBytes` counts the bytes of each message.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_2_a_response_message_that_is_too_large_is_not_read() {
    let script =
        Script::new([Reply::Stream(vec!["12345", "12345", "123456"], Duration::from_millis(1), Code::Ok)]);
    let server = TestServer::start(&script).await;
    let entry = format!(r#"{RETRY}, "maxResponseMessageBytes": 5"#);
    let client = Client::new(server.channel(), config(&entry));
    let mut stream = limit(client.list(tonic::Request::new(Bytes::new()))).await.unwrap();
    assert!(
        limit(stream.message()).await.unwrap().is_some() && limit(stream.message()).await.unwrap().is_some()
    );
    let status = limit(stream.message()).await.unwrap_err();
    assert_eq!((status.code(), script.attempts()), (Code::ResourceExhausted, 1), "{status}");
}

/// The settings of the layer are checked all at once.
#[test]
fn adp_2_the_settings_of_the_layer_are_checked() {
    let builder = ServiceConfigLayer::builder(" ", config(RETRY)).attempts_max(0);
    let error = builder.call_buffer_bytes_max(10).channel_buffer_bytes_max(9).build().unwrap_err();
    let paths: Vec<&str> = error.problems().iter().map(seawall::Problem::path).collect();
    assert_eq!(paths, ["server", "attempts_max", "channel_buffer_bytes_max"]);
    assert!(layer(config(RETRY)).config().throttling().is_none());
}
