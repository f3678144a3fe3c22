use std::sync::Arc;

use seawall::fault::{Ran, Verdict};
use seawall_amqp::AmqpConnection;
use seawall_amqp::publish::{AmqpPublisher, HEADER_BYTES_MAX};
use seawall_dist::outbox::{FallbackError, FallbackPublisher, MemoryOutbox, PublishedBy};
use seawall_dist::{Message, PublishError, Publisher};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::RabbitMq;

use crate::support::{declared, drain, length, message, one_attempt, publisher, queues, shared, unique};

fn failed(result: &Result<(), PublishError>) -> &PublishError {
    result.as_ref().expect_err("it was not refused")
}

/// ADP-4: what was confirmed is in the queue, in its order, with all that belongs to it.
#[tokio::test]
async fn adp_4_a_batch_is_confirmed_and_in_the_queue() {
    let connection = shared();
    let queues = declared(&connection, queues("batch")).await;
    let batch: Vec<Message> = (0..2_500).map(|id| message(queues.queue(), id)).collect();
    let results = publisher(&connection).publish(&batch).await;
    assert_eq!(results.len(), batch.len());
    assert!(results.iter().all(Result::is_ok), "{:?}", results.iter().find(|result| result.is_err()));
    let got = drain(&connection, queues.queue()).await;
    let bodies: Vec<&[u8]> = got.iter().map(|delivery| &delivery.data[..]).collect();
    let sent: Vec<&[u8]> = batch.iter().map(Message::payload).collect();
    assert_eq!(bodies, sent);
    let properties = &got[7].properties;
    assert_eq!(properties.message_id().as_ref().unwrap().as_str(), "7");
    assert_eq!(properties.kind().as_ref().unwrap().as_str(), "OrderCreated");
    assert_eq!(properties.content_type().as_ref().unwrap().as_str(), "text/plain");
    assert_eq!(*properties.delivery_mode(), Some(2), "it survives a restart");
    let headers = properties.headers().as_ref().unwrap();
    assert!(headers.contains_key("traceparent") && headers.contains_key("aggregate-id"));
}

/// ADP-4: a message that no queue takes is an error of its own, and only of its own, wherever in the batch it is.
#[tokio::test]
async fn adp_4_an_unroutable_message_is_an_error_and_not_lost() {
    let connection = shared();
    let queues = declared(&connection, queues("unroutable")).await;
    let publisher = publisher(&connection);
    for _ in 0..20 {
        let batch: Vec<Message> = (0..30)
            .map(|id| if id % 7 == 3 { message("absent-queue", id) } else { message(queues.queue(), id) })
            .collect();
        for (id, result) in publisher.publish(&batch).await.iter().enumerate() {
            assert_eq!(result.is_err(), id % 7 == 3, "message {id}: {result:?}");
            if let Err(error) = result {
                assert!(
                    !error.fault().is_transient()
                        && error.to_string().contains("there is no queue `absent-queue`"),
                    "{error}"
                );
            }
        }
    }
    assert_eq!(length(&connection, queues.queue()).await, 20 * 26);
}

/// ADP-4: an exchange that is absent closes the channel. The error says so, and the next message goes through.
#[tokio::test]
async fn adp_4_a_channel_that_the_server_closed_is_replaced() {
    let connection = shared();
    let exchange = unique("late-exchange");
    let publisher =
        AmqpPublisher::builder(connection.clone()).exchange(&exchange).guard(one_attempt()).build().unwrap();
    let batch: Vec<Message> = (0..3).map(|id| message("key", id)).collect();
    for result in publisher.publish(&batch).await {
        let error = failed(&result).to_string();
        assert!(error.contains("no exchange") && !failed(&result).fault().is_transient(), "{error}");
    }
    declared(&connection, queues("late").bind(&exchange, "key")).await;
    assert!(publisher.publish(&batch).await.iter().all(Result::is_ok));
}

/// ADP-4: messages that break a limit are refused before they are sent, each with its reason, and the others go through.
#[tokio::test]
async fn adp_4_what_is_too_large_is_refused_before_it_is_sent() {
    let connection = shared();
    let queues = declared(&connection, queues("large")).await;
    let publisher = AmqpPublisher::builder(connection.clone())
        .message_bytes_max(1_000)
        .guard(one_attempt())
        .build()
        .unwrap();
    let of = |body: &str| Message::new("OrderCreated", "order-17", body).with_topic(queues.queue());
    let batch = [
        of("fits"),
        of(&"x".repeat(1_001)),
        of("headers").with_header("big", "x".repeat(HEADER_BYTES_MAX)),
        of("name").with_header("n".repeat(256), "x"),
        of("id").with_event_id("i".repeat(256)),
        of("topic").with_topic("t".repeat(256)),
        of("fits too"),
    ];
    let results = publisher.publish(&batch).await;
    let texts: Vec<String> = results
        .iter()
        .map(|result| result.as_ref().err().map(ToString::to_string).unwrap_or_default())
        .collect();
    for (text, part) in texts.iter().zip([
        "",
        "1001 bytes",
        "the headers have",
        "name of a header",
        "event id",
        "routing key",
        "",
    ]) {
        assert!(text.contains(part) && text.is_empty() == part.is_empty(), "{text:?} has {part:?}");
    }
    assert!(
        results
            .iter()
            .flat_map(|result| result.as_ref().err())
            .all(|error| error.fault().did_run() == Ran::No)
    );
    assert_eq!(length(&connection, queues.queue()).await, 2);
}

/// ADP-4: a queue that is full refuses, which is transient, and takes messages again when there is room.
#[tokio::test]
async fn adp_4_a_full_queue_refuses_and_loses_nothing() {
    let connection = shared();
    let queues = declared(&connection, queues("full").length_max(5)).await;
    let publisher = publisher(&connection);
    let mut accepted = 0;
    let refusal = loop {
        let result = publisher.publish(&[message(queues.queue(), accepted)]).await.remove(0);
        match result {
            Ok(()) => accepted += 1,
            Err(error) => break error,
        }
        assert!(accepted < 50, "the queue is never full");
    };
    assert_eq!(refusal.fault().verdict(), Verdict::Throttled, "{refusal}");
    assert_eq!(drain(&connection, queues.queue()).await.len(), accepted, "counts on both sides");
    crate::support::until("room", async || {
        publisher.publish(&[message(queues.queue(), "again")]).await[0].is_ok()
    })
    .await;
}

/// ADP-4, CRD-3: with the server away a message goes to the outbox; one that the server would refuse does not.
#[tokio::test]
async fn adp_4_without_the_server_a_message_goes_to_the_outbox() {
    let away = AmqpConnection::new("amqp://guest:guest@127.0.0.1:1/%2f").unwrap();
    let publisher = AmqpPublisher::builder(away).message_bytes_max(100).guard(one_attempt()).build().unwrap();
    let outbox = Arc::new(MemoryOutbox::new());
    let fallback = FallbackPublisher::new("RabbitMQ-Publisher", Arc::new(publisher), outbox.clone());
    assert_eq!(fallback.publish(&message("orders", "a")).await.unwrap(), PublishedBy::Outbox);
    let large = Message::new("OrderCreated", "order-17", vec![0; 101]);
    assert!(matches!(fallback.publish(&large).await, Err(FallbackError::Refused(_))));
}

/// PRM-4: a call that is dropped at any poll leaves no channel in disorder and mixes up no confirmations.
#[tokio::test]
async fn prm_4_a_call_that_is_dropped_leaves_no_disorder() {
    let connection = shared();
    let queues = declared(&connection, queues("drops")).await;
    let publisher = publisher(&connection);
    let mut polls = 0;
    loop {
        let batch: Vec<Message> = (0..5).map(|id| message(queues.queue(), id)).collect();
        let mut call = publisher.publish(&batch);
        let mut left = polls;
        let ended = std::future::poll_fn(|context| {
            if left == 0 {
                return std::task::Poll::Ready(false);
            }
            left -= 1;
            match call.as_mut().poll(context) {
                std::task::Poll::Ready(results) => std::task::Poll::Ready(results.iter().all(Result::is_ok)),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(false),
                std::task::Poll::Pending => std::task::Poll::Pending,
            }
        })
        .await;
        drop(call);
        let lost = publisher.publish(&[message("absent-queue", "x"), message(queues.queue(), "y")]).await;
        assert!(lost[0].is_err() && lost[1].is_ok(), "after {polls} polls: {lost:?}");
        if ended {
            break;
        }
        polls += 1;
        assert!(polls < 500, "the call never ends");
    }
    assert!(polls >= 2, "a call waits for the server: {polls}");
}

/// OBS-1: the lines of a publisher have component, event type, trace and business key.
#[tokio::test]
async fn obs_1_lines_of_a_publisher() {
    let lines = Lines::collect();
    let connection = shared();
    let queues = declared(&connection, queues("lines")).await;
    let publisher = publisher(&connection);
    publisher.publish(&[message(queues.queue(), "line-1"), message("absent-queue", "line-2")]).await;
    let success = lines.find("INFO [RabbitMQ-Publisher][OrderCreated] Success.").replace('"', "");
    for part in
        ["eventId=line-1", "aggregateId=order-17", "traceId=0af7651916cd43dd8448eb211c80319c", "duration="]
    {
        assert!(success.contains(part), "{part} is missing in {success}");
    }
    let failed = lines.find("ERROR [RabbitMQ-Publisher][OrderCreated] Publish failed!");
    assert!(failed.contains("there is no queue"), "{failed}");
}

/// ADP-4: a message that only the server finds too large closes the channel. It alone has the error; its neighbours go through.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_of_a_batch_only_the_message_that_the_server_refuses_fails() {
    // Nothing else in these tests is as large.
    let limit = "application:set_env(rabbit, max_message_size, 2000000).";
    tokio::task::block_in_place(|| RabbitMq::shared().tool(&["eval", limit]).unwrap());
    let connection = shared();
    let queues = declared(&connection, queues("oversize")).await;
    let of = |body: Vec<u8>| Message::new("OrderCreated", "order-17", body).with_topic(queues.queue());
    let batch = [of(vec![0; 10]), of(vec![0; 2_000_001]), of(vec![0; 10]), of(vec![0; 1_999_999])];
    let results = publisher(&connection).publish(&batch).await;
    let outcomes: Vec<bool> = results.iter().map(Result::is_ok).collect();
    assert_eq!(outcomes, [true, false, true, true], "{results:?}");
    let error = failed(&results[1]);
    assert!(!error.fault().is_transient() && error.to_string().contains("max size"), "{error}");
    let mut sizes: Vec<usize> =
        drain(&connection, queues.queue()).await.iter().map(|got| got.data.len()).collect();
    sizes.dedup();
    assert_eq!(sizes, [10, 1_999_999], "repeated messages aside");
}
