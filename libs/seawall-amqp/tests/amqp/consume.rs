use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use seawall::{Backoff, Fault};
use seawall_amqp::consume::{AmqpConsumer, AmqpDeadLetterReader};
use seawall_amqp::topology::{QueueTopology, TopologyError};
use seawall_amqp::{AmqpConnection, SYSTEM};
use seawall_dist::idempotency::{Idempotency, Inbox, MemoryIdempotency};
use seawall_dist::messaging::{
    Delivery, HandlerError, MessageHandler, MessageProcessor, MessageProcessorBuilder,
};
use seawall_dist::{Message, Publisher};
use seawall_testkit::observe::Lines;
use seawall_testkit::servers::{FaultProxy, NetworkFault, RabbitMq};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::support::{PATIENCE, declared, drain, length, message, publisher, queues, shared, unique, until};

/// A processor whose waits are short.
pub(crate) fn processor(handler: impl MessageHandler) -> MessageProcessorBuilder {
    let backoff = Backoff::constant(Duration::from_millis(20)).no_jitter();
    MessageProcessor::builder("RabbitMQ-Consumer", SYSTEM, handler).backoff(backoff)
}

/// A consumer that runs until it is told to stop.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinSet<Result<(), TopologyError>>,
}

impl Running {
    pub(crate) fn start(consumer: AmqpConsumer) -> Self {
        let ((stop, stopped), mut task) = (oneshot::channel(), JoinSet::new());
        task.spawn(async move { consumer.run_until(async { drop(stopped.await) }).await });
        Running { stop, task }
    }

    pub(crate) fn read(reader: AmqpDeadLetterReader) -> Self {
        let ((stop, stopped), mut task) = (oneshot::channel(), JoinSet::new());
        task.spawn(async move { reader.run_until(async { drop(stopped.await) }).await });
        Running { stop, task }
    }

    pub(crate) async fn stop(mut self) {
        drop(self.stop);
        let ended = tokio::time::timeout(PATIENCE, self.task.join_next()).await.expect("it stops");
        ended.unwrap().unwrap().unwrap();
    }
}

pub(crate) fn consumer(
    connection: &AmqpConnection,
    queues: &QueueTopology,
    handler: impl MessageHandler,
) -> AmqpConsumer {
    AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap())
        .build()
        .unwrap()
}

/// How often each message was handled, by its id.
#[derive(Clone, Default)]
pub(crate) struct HandledMessages(Arc<Mutex<HashMap<String, u32>>>);

impl HandledMessages {
    pub(crate) fn add(&self, delivery: &Delivery) -> u32 {
        self.note(delivery.message().event_id())
    }

    pub(crate) fn note(&self, id: &str) -> u32 {
        let mut seen = self.0.lock().unwrap();
        let count = seen.entry(id.to_owned()).or_default();
        *count += 1;
        *count
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    pub(crate) fn of(&self, id: &str) -> u32 {
        self.0.lock().unwrap().get(id).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> u32 {
        self.0.lock().unwrap().values().sum()
    }
}

/// Handles everything, and takes note.
pub(crate) fn noting(seen: &HandledMessages) -> impl MessageHandler + use<> {
    let seen = seen.clone();
    move |delivery: Arc<Delivery>| {
        seen.add(&delivery);
        async { Ok::<_, anyhow::Error>(()) }
    }
}

pub(crate) async fn publish(
    connection: &AmqpConnection,
    queues: &QueueTopology,
    ids: impl Iterator<Item = u32>,
) {
    let batch: Vec<Message> = ids.map(|id| message(queues.queue(), id)).collect();
    for result in publisher(connection).publish(&batch).await {
        result.unwrap();
    }
}

/// ADP-4: every message is processed once and acknowledged, with several at the same time, and nothing is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_messages_are_processed_and_acknowledged() {
    let connection = shared();
    let queues = declared(&connection, queues("happy")).await;
    publish(&connection, &queues, 0..300).await;
    let (seen, running, most) =
        (HandledMessages::default(), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let handler = {
        let (seen, running, most) = (seen.clone(), running.clone(), most.clone());
        move |delivery: Arc<Delivery>| {
            seen.add(&delivery);
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
                running.fetch_sub(1, Ordering::SeqCst);
                assert_eq!(delivery.message().aggregate_id(), "order-17");
                assert_eq!(delivery.message().header("content-type"), Some("text/plain"));
                Ok::<_, anyhow::Error>(())
            }
        }
    };
    let consumer =
        AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap());
    let running = Running::start(consumer.concurrency(8).prefetch(20).build().unwrap());
    until("300 messages", async || seen.len() == 300).await;
    running.stop().await;
    assert_eq!((seen.total(), length(&connection, queues.queue()).await), (300, 0));
    assert_eq!(length(&connection, queues.dead_letter_queue()).await, 0);
    let most = most.load(Ordering::SeqCst);
    assert!((2..=8).contains(&most), "{most} at the same time");
}

/// ADP-4: with one message at a time the order of the queue is kept.
#[tokio::test]
async fn adp_4_one_at_a_time_keeps_the_order() {
    let connection = shared();
    let queues = declared(&connection, queues("order")).await;
    publish(&connection, &queues, 0..200).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let noted = order.clone();
    let handler = move |delivery: Arc<Delivery>| {
        noted.lock().unwrap().push(delivery.message().event_id().to_owned());
        async { Ok::<_, anyhow::Error>(()) }
    };
    let consumer =
        AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap());
    let running = Running::start(consumer.concurrency(1).build().unwrap());
    until("200 messages", async || order.lock().unwrap().len() == 200).await;
    running.stop().await;
    let expected: Vec<String> = (0..200).map(|id| id.to_string()).collect();
    assert_eq!(*order.lock().unwrap(), expected);
}

/// ADP-4: the connection is cut in the middle, several times. Nothing is lost, nothing is skipped, and an inbox sees to it that
/// nothing is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adp_4_a_connection_that_is_cut_loses_nothing() {
    let proxy = FaultProxy::start(RabbitMq::shared().address()).unwrap();
    let cut = AmqpConnection::new(&RabbitMq::url_through(proxy.address())).unwrap();
    let connection = shared();
    let queues = declared(&connection, queues("cut")).await;
    publish(&connection, &queues, 0..400).await;
    let seen = HandledMessages::default();
    let noted = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let noted = noted.clone();
        async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            noted.add(&delivery);
            Ok::<_, anyhow::Error>(())
        }
    };
    let inbox = Inbox::new("billing", Idempotency::new(Arc::new(MemoryIdempotency::new()))).unwrap();
    let processor = processor(handler).inbox(inbox).build().unwrap();
    let running = Running::start(AmqpConsumer::builder(cut, queues.clone(), processor).build().unwrap());
    for step in 1..=3 {
        until("progress", async || seen.len() >= step * 80).await;
        proxy.set(NetworkFault::Refuse);
        tokio::task::yield_now().await;
        proxy.set(NetworkFault::None);
    }
    until("400 messages", async || seen.len() == 400).await;
    until("an empty queue", async || length(&connection, queues.queue()).await == 0).await;
    running.stop().await;
    assert_eq!(seen.total(), 400, "the inbox recognises what came again");
    assert_eq!(drain(&connection, queues.dead_letter_queue()).await.len(), 0);
}

/// CRD-4: while the inbox is away messages are held: none is lost, counted or given up. An open circuit of the handler is no
/// failed attempt either.
#[tokio::test]
async fn crd_4_an_outage_of_what_a_handler_needs_costs_no_dead_letters() {
    let connection = shared();
    let queues = declared(&connection, queues("outage")).await;
    publish(&connection, &queues, 0..5).await;
    let (attempts, is_back) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
    let done = HandledMessages::default();
    let handler = {
        let (attempts, is_back, done) = (attempts.clone(), is_back.clone(), done.clone());
        move |delivery: Arc<Delivery>| {
            attempts.fetch_add(1, Ordering::SeqCst);
            if is_back.load(Ordering::SeqCst) {
                done.add(&delivery);
            }
            assert_eq!(delivery.attempt(), 1, "it is not counted");
            let is_back = done.of(delivery.message().event_id()) > 0;
            async move {
                if is_back {
                    Ok(())
                } else {
                    Err(HandlerError::with_fault(Fault::rejected(), "the circuit is open"))
                }
            }
        }
    };
    // Held for a short time only, so that both ways are taken: in the hands of the consumer, and through a retry queue.
    let consumer =
        AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap());
    let running = Running::start(consumer.hold_max(Duration::from_millis(60)).build().unwrap());
    until("many attempts", async || attempts.load(Ordering::SeqCst) > 60).await;
    is_back.store(true, Ordering::SeqCst);
    until("all messages", async || done.len() == 5).await;
    running.stop().await;
    assert_eq!(length(&connection, queues.queue()).await, 0);
    assert_eq!(length(&connection, queues.dead_letter_queue()).await, 0);
}

/// ADP-4: a consumer that is told to stop finishes what it has begun and has been sent, and gives back what it can't finish.
#[tokio::test]
async fn adp_4_a_consumer_that_stops_finishes_what_it_has_and_gives_back_the_rest() {
    let connection = shared();
    let queues = declared(&connection, queues("stop")).await;
    publish(&connection, &queues, 0..100).await;
    let seen = HandledMessages::default();
    let (open, gate) = tokio::sync::watch::channel(false);
    let noted = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        let (noted, mut gate) = (noted.clone(), gate.clone());
        async move {
            gate.wait_for(|is_open| *is_open).await?;
            noted.add(&delivery);
            Ok::<_, anyhow::Error>(())
        }
    };
    let consumer =
        AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap());
    let running = Running::start(consumer.concurrency(2).prefetch(10).build().unwrap());
    // One message was taken to see whether it is new, and ten were sent ahead. Two of them are at work.
    until("messages", async || length(&connection, queues.queue()).await == 89).await;
    let stopping = running.stop();
    let opening = async { open.send(true).unwrap() };
    tokio::join!(stopping, opening);
    let done = seen.len();
    assert!(
        (2..100).contains(&done),
        "it finishes what is at work, and does not wait for the whole queue: {done}"
    );
    until("the rest", async || length(&connection, queues.queue()).await as usize == 100 - done).await;
    assert_eq!(drain(&connection, queues.queue()).await.len(), 100 - done, "counts on both sides");

    // One that hangs is given back when the time is up.
    publish(&connection, &queues, 500..501).await;
    let handler = |_: Arc<Delivery>| async {
        std::future::pending::<()>().await;
        Ok::<_, anyhow::Error>(())
    };
    let consumer =
        AmqpConsumer::builder(connection.clone(), queues.clone(), processor(handler).build().unwrap());
    let running = Running::start(consumer.stop_timeout(Duration::from_millis(100)).build().unwrap());
    until("the delivery", async || length(&connection, queues.queue()).await == 0).await;
    running.stop().await;
    until("its return", async || length(&connection, queues.queue()).await == 1).await;
}

/// ADP-4: a queue that is deleted under a consumer is declared again, and consumed again.
#[tokio::test]
async fn adp_4_a_queue_that_is_deleted_is_declared_again() {
    let connection = shared();
    let queues = declared(&connection, queues("deleted")).await;
    let seen = HandledMessages::default();
    let running = Running::start(consumer(&connection, &queues, noting(&seen)));
    publish(&connection, &queues, 0..1).await;
    until("a message", async || seen.len() == 1).await;
    let channel = connection.channel().await.unwrap();
    channel.queue_delete(queues.queue().into(), lapin::options::QueueDeleteOptions::default()).await.unwrap();
    let publisher = publisher(&connection);
    until("the queue", async || publisher.publish(&[message(queues.queue(), "again")]).await[0].is_ok())
        .await;
    until("another message", async || seen.of("again") >= 1).await;
    running.stop().await;
}

/// ADP-4: credentials that are refused, and queues with other arguments, end a consumer that begins, with the reason.
#[tokio::test]
async fn adp_4_a_consumer_that_can_never_begin_says_why() {
    let lines = Lines::collect();
    let url = format!("amqp://guest:wrong@{}/%2f", RabbitMq::shared().address());
    let queues = queues("never").build().unwrap();
    let seen = HandledMessages::default();
    let refused = consumer(&AmqpConnection::new(&url).unwrap(), &queues, noting(&seen));
    let error = refused.run_until(std::future::pending()).await.unwrap_err();
    assert!(!error.fault().is_transient());
    let line = lines.find("ERROR [RabbitMQ-Consumer][Subscribe] Failed!");
    assert!(line.contains("ACCESS_REFUSED") && !line.contains("wrong"), "{line}");
    // A server that is away is waited for.
    let away =
        consumer(&AmqpConnection::new("amqp://guest:guest@127.0.0.1:1/%2f").unwrap(), &queues, noting(&seen));
    let stop = tokio::time::sleep(Duration::from_millis(500));
    away.run_until(stop).await.unwrap();
    assert!(!lines.of("WARN [RabbitMQ-Consumer][Subscribe] Retry triggered.").is_empty());
}

/// ADP-4: settings that can't work are all named at once.
#[test]
fn adp_4_wrong_settings_of_a_consumer_are_named_at_once() {
    let connection = AmqpConnection::new("amqp://127.0.0.1:1/%2f").unwrap();
    let queues = QueueTopology::builder("s", "e").max_attempts(3).build().unwrap();
    let processor = processor(noting(&HandledMessages::default())).build().unwrap();
    let error =
        AmqpConsumer::builder(connection, queues, processor).concurrency(0).prefetch(0).component("").build();
    let error = error.unwrap_err();
    let paths: Vec<_> = error.problems().iter().map(|problem| problem.path().to_string()).collect();
    assert_eq!(paths, ["concurrency", "prefetch", "max_attempts", "component"], "{error}");
}

/// OBS-1: the lines of a consumer name the event, its trace and its delivery tag.
#[tokio::test]
async fn obs_1_lines_of_a_consumer() {
    let lines = Lines::collect();
    let connection = shared();
    let queues = declared(&connection, queues(&unique("lines"))).await;
    let seen = HandledMessages::default();
    let running = consumer(&connection, &queues, noting(&seen));
    publish(&connection, &queues, 7..8).await;
    let (stop, stopped) = oneshot::channel::<()>();
    let work = running.run_until(async { drop(stopped.await) });
    let watch = async {
        until("a message", async || seen.len() == 1).await;
        drop(stop);
    };
    tokio::join!(async { work.await.unwrap() }, watch);
    for (level, text) in [("INFO", "Received."), ("INFO", "Processed success.")] {
        let line = lines.find(&format!("{level} [RabbitMQ-Consumer][OrderCreated] {text}")).replace('"', "");
        for part in ["traceId=0af7651916cd43dd8448eb211c80319c", "eventId=7", "deliveryTag=1", "attempt=1"] {
            assert!(line.contains(part), "{part} is missing in {line}");
        }
    }
    assert!(!lines.of("INFO [RabbitMQ-Consumer][Subscribe] Success.").is_empty());
    assert!(!lines.of("INFO [RabbitMQ-Consumer][Stop] Success.").is_empty());
}

/// PRM-4: a consumer that is dropped in the middle of its work gives everything back at once.
#[tokio::test]
async fn prm_4_a_consumer_that_is_dropped_gives_everything_back() {
    let connection = shared();
    let queues = declared(&connection, queues("dropped")).await;
    publish(&connection, &queues, 0..10).await;
    let seen = HandledMessages::default();
    let noted = seen.clone();
    let handler = move |delivery: Arc<Delivery>| {
        noted.add(&delivery);
        async {
            std::future::pending::<()>().await;
            Ok::<_, anyhow::Error>(())
        }
    };
    // The second subscription is dropped while it takes suspects one by one.
    for begun in [5, 1] {
        let before = seen.total();
        let running = consumer(&connection, &queues, handler.clone());
        let work = running.run_until(std::future::pending());
        let begin = until("work", async || seen.total() >= before + begun);
        tokio::select! {
            ended = work => panic!("it ended: {ended:?}"),
            () = begin => {}
        }
        until("their return", async || length(&connection, queues.queue()).await == 10).await;
    }
}
