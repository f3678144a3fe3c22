//! The workers of a consumer: how many handlers run, and what may not hold them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use seawall::Fault;
use seawall_dist::messaging::{Delivery, HandlerError};
use seawall_nats::NatsConsumer;
use seawall_testkit::servers::Nats;
use tokio::sync::Semaphore;

use crate::support::{
    HandledMessages, PATIENCE, Running, backlog, bare, connect, processor, publish, stream, unique, until,
};

/// ADP-6: as many handlers run as are allowed and not one more, and no more messages are in hand than there is room.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_6_concurrency_and_prefetch_are_reached_and_never_exceeded() {
    let (context, name) = (bare(Nats::shared()).await, unique("LIMITS"));
    stream(&context, &name).await;
    publish(&context, &name, 1..=300).await;
    let (running, most, gate) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let handler = {
        let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
        move |_: Arc<Delivery>| {
            let (running, most, gate) = (running.clone(), most.clone(), gate.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                gate.acquire().await?.forget();
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, HandlerError>(())
            }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler))
        .concurrency(5)
        .prefetch(20)
        .build()
        .unwrap();
    let consuming = Running::consumer(&consumer);
    until("all handlers run", || async { running.load(Ordering::SeqCst) == 5 }).await;
    until("there is no room", || async { backlog(&context, &name, "billing").await == (280, 20) }).await;
    for _ in 0..30 {
        gate.add_permits(10);
        backlog(&context, &name, "billing").await;
        assert!(consumer.messages_in_hand() <= 20, "{} are in hand", consumer.messages_in_hand());
    }
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    consuming.stop().await.unwrap();
    assert_eq!(most.load(Ordering::SeqCst), 5);
}

/// ADP-6: a handler that blocks its thread holds up neither other handlers, nor acknowledgements, nor requests for messages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_6_a_handler_that_blocks_its_thread_holds_up_no_other() {
    const MESSAGES: usize = 3_000;
    let (context, name, seen) = (bare(Nats::shared()).await, unique("BLOCKED"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=MESSAGES).await;
    let (is_blocking, held_up, blocked) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (seen, held_up, blocked) = (seen.clone(), held_up.clone(), blocked.clone());
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let begun = seen.len();
            // The other thread has to go on, so that one handler blocks at a time.
            if begun % 97 == 0 && begun < MESSAGES - 300 && !is_blocking.swap(true, Ordering::SeqCst) {
                blocked.fetch_add(1, Ordering::SeqCst);
                // More messages than may be in hand: they come only if others are acknowledged.
                if !blocks_until(|| seen.len() > begun + 200) {
                    held_up.fetch_add(1, Ordering::SeqCst);
                }
                is_blocking.store(false, Ordering::SeqCst);
            }
            std::future::ready(Ok::<_, HandlerError>(()))
        }
    };
    let consumer =
        NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler)).build();
    let running = Running::consumer(&consumer.unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!((seen.len(), held_up.load(Ordering::SeqCst)), (MESSAGES, 0));
    assert!(blocked.load(Ordering::SeqCst) >= 5, "handlers did block");
}

/// Blocks the thread until a condition holds; false if it does not within three seconds.
fn blocks_until(condition: impl Fn() -> bool) -> bool {
    let (_sender, receiver) = std::sync::mpsc::sync_channel::<()>(0);
    for _ in 0..1_500 {
        if condition() {
            return true;
        }
        let _ = receiver.recv_timeout(Duration::from_millis(2));
    }
    false
}

/// ADP-6: a message that waits because its circuit is open takes no handler away from the others.
#[tokio::test]
async fn adp_6_a_released_message_leaves_its_handler_to_others() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("ASIDE"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=20).await;
    let handler = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            let refused = delivery.message().payload() == b"1" && seen.len() < 19;
            if !refused {
                seen.add(&delivery);
            }
            async move { if refused { Err(HandlerError::with_fault(Fault::rejected(), "open")) } else { Ok(()) } }
        }
    };
    let consumer = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(3, handler));
    let running = Running::consumer(&consumer.concurrency(1).build().unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    let expected: Vec<(String, u32)> =
        (2..=20).chain([1]).map(|number: u32| (number.to_string(), 1)).collect();
    assert_eq!(seen.all(), expected);
}

/// ADP-6: handlers that do not end in time after a stop are aborted, and their messages come to another process at once.
#[tokio::test]
async fn adp_6_a_stop_aborts_what_does_not_end_and_gives_it_back() {
    let (context, name, seen) = (bare(Nats::shared()).await, unique("ABORT"), HandledMessages::default());
    stream(&context, &name).await;
    publish(&context, &name, 1..=6).await;
    let stuck = |_: Arc<Delivery>| std::future::pending::<Result<(), HandlerError>>();
    let first = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(9, stuck))
        .concurrency(2)
        .ack_wait(PATIENCE * 2)
        .stop_timeout(Duration::from_millis(100))
        .build()
        .unwrap();
    let running = Running::consumer(&first);
    until("all are in hand", || async { first.messages_in_hand() == 6 }).await;
    running.stop().await.unwrap();
    assert_eq!(first.messages_in_hand(), 0);
    let ended = {
        let seen = seen.clone();
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            std::future::ready(Ok::<_, HandlerError>(()))
        }
    };
    // The server would deliver them again by itself long after this test has given up.
    let second = NatsConsumer::builder(connect(Nats::shared()), &name, "billing", processor(9, ended));
    let running = Running::consumer(&second.ack_wait(PATIENCE * 2).build().unwrap());
    until("all are acknowledged", || async { backlog(&context, &name, "billing").await == (0, 0) }).await;
    running.stop().await.unwrap();
    assert_eq!((seen.len(), seen.distinct()), (6, 6));
}
