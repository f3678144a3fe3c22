use std::error::Error;
use std::time::Duration;

use seawall_amqp::topology::{QueueTopology, TopologyError};
use seawall_dist::Publisher;
use seawall_testkit::servers::RabbitMq;

use crate::support::{declared, drain, length, message, publisher, queues, shared, unique, until};

/// ADP-4: the names and arguments are those that operators know from the seed, and the server has them.
#[tokio::test]
async fn adp_4_queues_are_declared_with_their_arguments() {
    let connection = shared();
    let event = unique("declared");
    let builder = QueueTopology::builder("billing", &event).bind(unique("events"), "order.*");
    let queues = declared(&connection, builder).await;
    assert_eq!(queues.queue(), format!("billing.{event}"));
    assert_eq!(queues.dead_letter_queue(), format!("dlq.billing.{event}"));
    // Declaring again changes nothing, from any process.
    queues.declare(&shared()).await.unwrap();
    let list = RabbitMq::shared().tool(&["list_queues", "name", "type", "durable", "arguments"]).unwrap();
    let line = |name: &str| {
        list.lines()
            .find(|line| line.starts_with(&format!("{name}\t")))
            .unwrap_or_else(|| panic!("no {name} in {list}"))
    };
    let main = line(queues.queue());
    for part in [
        "quorum\ttrue",
        "{\"x-delivery-limit\",4}",
        "{\"x-dead-letter-exchange\",\"dlx.exchange\"}",
        &format!("{{\"x-dead-letter-routing-key\",\"dlq.billing.{event}\"}}"),
        "{\"x-dead-letter-strategy\",\"at-least-once\"}",
        "{\"x-overflow\",\"reject-publish\"}",
    ] {
        assert!(main.contains(part), "{part} is missing in {main}");
    }
    for millis in [1_000, 2_000, 4_000, 8_000] {
        let retry = line(&format!("billing.{event}.retry.{millis}"));
        assert!(retry.contains(&format!("{{\"x-message-ttl\",{millis}}}")), "{retry}");
    }
    assert!(line(queues.dead_letter_queue()).contains("{\"x-delivery-limit\",1000000000}"));
    let bindings = RabbitMq::shared()
        .tool(&["list_bindings", "source_name", "destination_name", "routing_key"])
        .unwrap();
    assert!(bindings.contains(&format!("dlx.exchange\t{0}\t{0}", queues.dead_letter_queue())), "{bindings}");
    let exchanges = RabbitMq::shared().tool(&["list_exchanges", "name", "type", "durable"]).unwrap();
    assert!(exchanges.contains("dlx.exchange\tdirect\ttrue"), "{exchanges}");
}

/// ADP-4: a queue that exists with other arguments is an error that names the argument and says what to do.
#[tokio::test]
async fn adp_4_a_queue_with_other_arguments_is_an_error_that_names_them() {
    let connection = shared();
    let event = unique("mismatch");
    declared(&connection, QueueTopology::builder("test", &event).max_attempts(8)).await;
    let queues = QueueTopology::builder("test", &event).build().unwrap();
    let error = queues.declare(&connection).await.unwrap_err();
    let text = error.to_string();
    let TopologyError::Mismatch { place, argument, .. } = &error else { panic!("{error:?}") };
    assert_eq!(place, &format!("queue `{}`", queues.queue()));
    assert_eq!(argument, "x-delivery-limit", "{text}");
    assert!(text.contains("'4'") && text.contains("'7'") && text.contains("choose another name"), "{text}");
    assert!(!error.fault().is_transient() && error.source().is_some());
    // The connection is of use for the next one.
    declared(&connection, crate::support::queues("after-mismatch")).await;
}

/// ADP-4: settings that can't work are all named at once.
#[test]
fn adp_4_wrong_settings_are_named_at_once() {
    let wrong = QueueTopology::builder("", "")
        .queue("amq.mine")
        .max_attempts(0)
        .retry_delays([])
        .length_max(0)
        .build();
    let error = wrong.unwrap_err();
    let paths: Vec<_> = error.problems().iter().map(|problem| problem.path().to_string()).collect();
    assert_eq!(paths, ["service", "event", "queue", "max_attempts", "retry_delays", "length_max"], "{error}");
    assert!(
        QueueTopology::builder("s", &"e".repeat(250)).build().is_err(),
        "with its suffix the name is too long"
    );
    let queues =
        QueueTopology::builder("s", "e").retry_delays([2, 1, 2].map(Duration::from_secs)).build().unwrap();
    assert_eq!(queues.retry_queue(Duration::from_millis(1_001)), "s.e.retry.2000");
    assert_eq!(
        queues.retry_queue(Duration::from_secs(60)),
        "s.e.retry.2000",
        "the longest wait that there is"
    );
}

/// ADP-4: what waits for its next attempt comes back by itself, and one with a long wait holds up nobody.
#[tokio::test]
async fn adp_4_waits_are_apart_and_come_back_by_themselves() {
    let connection = shared();
    let delays = [Duration::from_millis(20), Duration::from_secs(3_600)];
    let queues = declared(&connection, queues("waits").retry_delays(delays)).await;
    let publisher = publisher(&connection);
    let (short, long) = (queues.retry_queue(delays[0]), queues.retry_queue(delays[1]));
    for (queue, id) in [(&long, "late"), (&short, "soon"), (&short, "sooner")] {
        publisher.publish(&[message(queue, id)]).await.remove(0).unwrap();
    }
    until("two messages", async || length(&connection, queues.queue()).await == 2).await;
    assert_eq!(drain(&connection, queues.queue()).await.len(), 2);
    assert_eq!(length(&connection, &long).await, 1);
}
