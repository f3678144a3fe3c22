use tokio::sync::oneshot;

use crate::consume::{HandledMessages, consumer, noting, publish};
use crate::support::{declared, queues, shared, until};

/// OBS-2: messages are counted by what came of them, under the names of OpenTelemetry.
#[test]
fn obs_2_messages_are_counted_under_messaging_names() {
    let numbers = seawall_testkit::observe::Numbers::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let queue = metrics::with_local_recorder(&numbers, || {
        runtime.block_on(async {
            let connection = shared();
            let queues = declared(&connection, queues("numbers")).await;
            publish(&connection, &queues, 0..3).await;
            let seen = HandledMessages::default();
            let (stop, stopped) = oneshot::channel::<()>();
            let work = consumer(&connection, &queues, noting(&seen));
            let watch = async {
                until("messages", async || seen.len() == 3).await;
                drop(stop);
            };
            // One thread, so that the workers count into these numbers too.
            tokio::join!(async { work.run_until(async { drop(stopped.await) }).await.unwrap() }, watch);
            queues.queue().to_owned()
        })
    });
    for (name, outcome) in [
        ("messaging.client.sent.messages", "acknowledged"),
        ("messaging.client.consumed.messages", "processed"),
    ] {
        let line = format!("{name}{{system=rabbitmq,destination={queue},outcome={outcome}}} 3");
        assert!(numbers.lines().contains(&line), "{line} is missing in {:#?}", numbers.lines());
    }
}
