use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use seawall::{Breaker, Guard, millis, secs};
use seawall_dist::Message;
use seawall_dist::idempotency::{Idempotency, Inbox, MemoryIdempotency};
use seawall_dist::messaging::{DeathReason, Delivery, Disposition, HandlerError, MessageProcessor};

use super::{delivery, failure_of};

fn inbox() -> Inbox {
    Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new()))).unwrap()
}

/// A processor whose handler counts its calls and fails in the first ones.
fn counting(failures: u32) -> (Arc<AtomicU32>, MessageProcessor) {
    let calls = Arc::new(AtomicU32::new(0));
    let counted = calls.clone();
    let handler = move |_: Arc<Delivery>| {
        let call = counted.fetch_add(1, Ordering::SeqCst);
        async move { if call < failures { Err(io::Error::other("not yet")) } else { Ok(()) } }
    };
    (calls, MessageProcessor::builder("Test-Consumer", "test", handler).inbox(inbox()).build().unwrap())
}

/// CRD-4: a message that was processed is acknowledged and not processed again; one that failed is.
#[tokio::test]
async fn crd_4_a_message_is_processed_once_and_a_failed_one_again() {
    let (calls, processor) = counting(1);
    let first = processor.process(delivery("e-1", 1)).await;
    assert_eq!(failure_of(&first), (true, "not yet".to_owned()));
    for attempt in [2, 2, 3] {
        assert_eq!(processor.process(delivery("e-1", attempt)).await, Disposition::Acknowledge);
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

/// CRD-4: of two consumers that get a message at the same time, one processes it and the other gives it back uncounted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crd_4_a_message_that_another_consumer_works_on_is_given_back() {
    let (started, finish) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
    let (tell, wait) = (started.clone(), finish.clone());
    let handler = move |_: Arc<Delivery>| {
        let (tell, wait) = (tell.clone(), wait.clone());
        async move {
            tell.notify_one();
            wait.notified().await;
            Ok::<_, io::Error>(())
        }
    };
    let processor =
        MessageProcessor::builder("Test-Consumer", "test", handler).inbox(inbox()).build().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    let first = processor.clone();
    tasks.spawn(async move { first.process(delivery("e-1", 1)).await });
    started.notified().await;
    let second = processor.process(delivery("e-1", 1)).await;
    assert!(matches!(second, Disposition::Release { after } if !after.is_zero()), "{second:?}");
    finish.notify_one();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), Disposition::Acknowledge);
}

/// Trap "poison messages": an error, a panic and a handler that hangs are attempts that failed, and the last one is final.
#[tokio::test(start_paused = true)]
async fn adp_5_errors_panics_and_time_limits_are_attempts_that_failed() {
    let handler = |delivery: Arc<Delivery>| async move {
        match delivery.message().event_id() {
            "panic" => panic!("no such order"),
            "hang" => std::future::pending().await,
            _ => Err(anyhow::anyhow!("no route").context("loading the order")),
        }
    };
    let processor =
        MessageProcessor::builder("Test-Consumer", "test", handler).attempts_max(3).build().unwrap();
    let expected = [
        ("panic", "the handler panicked: no such order"),
        ("hang", "the handler took longer than 30s"),
        ("error", "loading the order: no route"),
    ];
    for (id, error) in expected {
        for (attempt, again) in [(1, true), (2, true), (3, false)] {
            let disposition = processor.process(delivery(id, attempt)).await;
            assert_eq!(failure_of(&disposition), (again, error.to_owned()), "{id}, attempt {attempt}");
        }
    }
}

/// Trap "poison messages": a message that kills the process is given up by its number of deliveries, unseen by the handler.
#[tokio::test]
async fn adp_4_a_message_that_was_delivered_too_often_is_given_up_without_the_handler() {
    let (calls, processor) = counting(0);
    let disposition = processor.process(delivery("e-1", 6)).await;
    assert_eq!(disposition, Disposition::DeadLetter { reason: DeathReason::Crashes, failure: None });
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// ADP-5: what is invalid goes to the dead letters at once.
#[tokio::test]
async fn adp_5_an_invalid_message_is_not_attempted_again() {
    let handler =
        |_: Arc<Delivery>| async { Err::<(), _>(HandlerError::invalid("the order number is missing")) };
    let processor = MessageProcessor::builder("Test-Consumer", "test", handler).build().unwrap();
    let disposition = processor.process(delivery("e-1", 1)).await;
    assert!(
        matches!(disposition, Disposition::DeadLetter { reason: DeathReason::Invalid, .. }),
        "{disposition:?}"
    );
    assert_eq!(failure_of(&disposition).1, "the order number is missing");
}

/// CRD-4: an inbox can't recognise a message without an id; one with a position has that.
#[tokio::test]
async fn crd_4_a_message_without_an_id_is_known_by_its_position() {
    let (calls, processor) = counting(0);
    assert_eq!(processor.process(delivery("", 1)).await, Disposition::Acknowledge);
    assert_eq!(processor.process(delivery("", 1)).await, Disposition::Acknowledge);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let nameless = Delivery::new(Message::new("A", "b", "").with_event_id(""), "queue", 1);
    let disposition = processor.process(Arc::new(nameless)).await;
    assert!(
        matches!(disposition, Disposition::DeadLetter { reason: DeathReason::Invalid, .. }),
        "{disposition:?}"
    );
}

/// ADP-5: an open circuit of what the handler calls gives messages back until it closes: none dies of an outage.
#[tokio::test(start_paused = true)]
async fn adp_5_an_open_circuit_in_the_handler_is_no_attempt() {
    let breaker = Breaker::failure_rate(50).over_calls(2).minimum_calls(2).cooldown(secs(30));
    let guard = Guard::builder("billing").no_retry().breaker(breaker).build().unwrap();
    let handler = move |_: Arc<Delivery>| {
        let guard = guard.clone();
        async move {
            let call = || async { Err::<(), _>(io::Error::from(io::ErrorKind::ConnectionRefused)) };
            guard.call(|_| call()).await
        }
    };
    let processor =
        MessageProcessor::builder("Test-Consumer", "test", handler).attempts_max(50).build().unwrap();
    for attempt in 1..=2 {
        assert!(failure_of(&processor.process(delivery("e-1", attempt)).await).0);
    }
    let disposition = processor.process(delivery("e-1", 50)).await;
    assert!(matches!(disposition, Disposition::Release { after } if after >= secs(1)), "{disposition:?}");
}

/// PRM-4: a consumer that is dropped at any point leaves the message to its next delivery.
#[tokio::test(start_paused = true)]
async fn prm_4_a_dropped_processing_leaves_the_message_to_its_next_delivery() {
    for polls in 0..6 {
        let (calls, processor) = counting(0);
        {
            let process = processor.process(delivery("e-1", 1));
            tokio::pin!(process);
            for _ in 0..polls {
                if futures_poll(process.as_mut()).await {
                    break;
                }
            }
        }
        // The lease of the inbox ends, if the drop could not give it back.
        let mut last = processor.process(delivery("e-1", 1)).await;
        for _ in 0..600 {
            let Disposition::Release { after } = last else { break };
            tokio::time::sleep(after.max(millis(10))).await;
            last = processor.process(delivery("e-1", 1)).await;
        }
        assert_eq!(last, Disposition::Acknowledge, "after {polls} polls");
        assert!((1..=2).contains(&calls.load(Ordering::SeqCst)));
    }
}

/// Polls once; true if it is ready.
async fn futures_poll<F: Future>(mut future: std::pin::Pin<&mut F>) -> bool {
    std::future::poll_fn(|cx| std::task::Poll::Ready(future.as_mut().poll(cx).is_ready())).await
}

/// ADP-4: wrong settings are reported together.
#[test]
fn adp_4_wrong_settings_are_reported_together() {
    let handler = |_: Arc<Delivery>| async { Ok::<_, io::Error>(()) };
    let builder = MessageProcessor::builder("", "test", handler).attempts_max(0).handler_timeout(millis(0));
    let text = builder.build().unwrap_err().to_string();
    for setting in ["component", "attempts_max", "handler_timeout"] {
        assert!(text.contains(setting), "{setting} is missing in: {text}");
    }
}
