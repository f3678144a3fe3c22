use std::error::Error;
use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};
use seawall::fault::{Class, Ran};
use seawall_amqp::{AmqpConnection, fault_of};
use seawall_dist::Publisher;
use seawall_testkit::servers::{FaultProxy, NetworkFault, RabbitMq};

use crate::support::{declared, message, publisher, queues, shared, unique, until};

/// ADP-4: an address that can't be right is an error at once that says what to do, and a password is in no text.
#[test]
fn adp_4_a_wrong_address_is_refused_and_a_password_never_shown() {
    for url in ["http://nowhere", "amqp://user:s3cr3t@host:notaport/%2f", ""] {
        let error = AmqpConnection::new(url).unwrap_err().to_string();
        assert!(error.contains("amqp://user:password@host:5672/%2f") && !error.contains("s3cr3t"), "{error}");
    }
    let builder = AmqpConnection::builder("amqp://guest:s3cr3t@127.0.0.1:1/%2f");
    assert!(!format!("{builder:?}").contains("s3cr3t"));
    let wrong = builder.connect_timeout(Duration::ZERO).response_timeout(Duration::ZERO).build().unwrap_err();
    assert_eq!(wrong.problems().len(), 2, "all mistakes at once: {wrong}");
    let connection = AmqpConnection::new("amqp://guest:s3cr3t@127.0.0.1:1/%2f").unwrap();
    assert!(!format!("{connection:?}").contains("s3cr3t"), "{connection:?}");
}

/// ADP-4, TRAPS: an encrypted address never becomes a connection in clear text. The client library would do that silently.
#[tokio::test]
async fn adp_4_an_encrypted_address_is_refused_in_a_program_without_tls() {
    let url = format!("amqps://guest:guest@{}/%2f", RabbitMq::shared().address());
    let error = AmqpConnection::new(&url).unwrap().channel().await.unwrap_err();
    assert!(!error.fault().is_transient() && error.to_string().contains("feature `rustls`"), "{error}");
}

/// ADP-4: wrong credentials and an absent virtual host are refusals that no attempt helps; without a server nothing ran.
#[tokio::test]
async fn adp_4_errors_of_connecting_say_what_they_mean() {
    let address = RabbitMq::shared().address();
    for (url, transient, class, text) in [
        (format!("amqp://guest:s3cr3t@{address}/%2f"), false, Class::Business, "ACCESS_REFUSED"),
        (format!("amqp://guest:guest@{address}/absent"), false, Class::Business, "absent"),
        ("amqp://guest:s3cr3t@127.0.0.1:1/%2f".to_owned(), true, Class::Io, "refused"),
    ] {
        let error = AmqpConnection::new(&url).unwrap().channel().await.unwrap_err();
        let fault = error.fault();
        assert_eq!(
            (fault.is_transient(), fault.class(), fault.did_run()),
            (transient, class, Ran::No),
            "{error}"
        );
        let shown = format!("{error} {error:?}");
        assert!(shown.contains(text) && !shown.contains("s3cr3t"), "{shown}");
        assert!(error.source().is_some_and(<dyn Error>::is::<seawall::Fault>));
    }
}

/// ADP-4: the errors that the server itself answers with are judged as the table says.
#[tokio::test]
async fn adp_4_errors_of_the_server_are_judged() {
    let url = RabbitMq::shared().url();
    let client = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let channel = client.create_channel().await.unwrap();
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let absent = channel.queue_declare("absent".into(), passive, FieldTable::default()).await.unwrap_err();
    assert!(!fault_of(&absent).is_transient() && fault_of(&absent).did_run() == Ran::No, "{absent}");

    let channel = client.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
    let sent = channel.basic_publish("absent".into(), "x".into(), options, b"x", properties).await.unwrap();
    let absent = sent.await.unwrap_err();
    assert!(!fault_of(&absent).is_transient(), "{absent}");

    // Another connection has the queue for itself.
    let owner = Connection::connect(&url, ConnectionProperties::default()).await.unwrap();
    let exclusive = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    let name = unique("exclusive");
    let holder = owner.create_channel().await.unwrap();
    holder.queue_declare(name.as_str().into(), exclusive, FieldTable::default()).await.unwrap();
    let channel = client.create_channel().await.unwrap();
    let locked =
        channel.queue_declare(name.as_str().into(), exclusive, FieldTable::default()).await.unwrap_err();
    assert!(fault_of(&locked).is_transient(), "{locked}");
}

/// How many threads of the client library this process has.
fn io_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.starts_with("lapin")).count()
}

/// ADP-4: a server that takes connections and says nothing is a timeout. Attempts that were given up leave no threads behind.
#[test]
fn adp_4_attempts_to_connect_that_are_given_up_leave_no_threads() {
    // Threads are counted, so no other test may run in this process.
    let Some(settings) = seawall_testkit::servers::worker_settings() else {
        let path = "connection::adp_4_attempts_to_connect_that_are_given_up_leave_no_threads";
        let mut worker = seawall_testkit::servers::WorkerProcess::spawn(path, &[("X", "x")]).unwrap();
        assert!(worker.wait().unwrap(), "the worker failed");
        return;
    };
    assert!(settings.contains_key("X"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("amqp://guest:guest@{}/%2f", silent.local_addr().unwrap());
        let limit = Duration::from_millis(100);
        for _ in 0..5 {
            let connection = AmqpConnection::builder(&url).connect_timeout(limit).build().unwrap();
            let error = connection.channel().await.unwrap_err();
            assert_eq!(error.fault().class(), Class::Timeout, "{error}");
        }
        until("the end of the threads", async || io_threads() == 0).await;
    });
}

/// ADP-4: a connection that is cut is made again by the next use, and while the server is away uses fail at once.
#[tokio::test]
async fn adp_4_a_connection_is_made_again() {
    let proxy = FaultProxy::start(RabbitMq::shared().address()).unwrap();
    let connection = AmqpConnection::new(&RabbitMq::url_through(proxy.address())).unwrap();
    let queues = declared(&connection, queues("again")).await;
    let publisher = publisher(&connection);
    let publish = async || publisher.publish(&[message(queues.queue(), "a")]).await.remove(0);
    publish().await.unwrap();
    proxy.set(NetworkFault::Refuse);
    until("an error", async || publish().await.is_err()).await;
    for _ in 0..50 {
        assert!(publish().await.unwrap_err().fault().is_transient());
    }
    proxy.set(NetworkFault::None);
    until("a new connection", async || publish().await.is_ok()).await;
}

/// ADP-4: a connection whose peer is gone without a word is given up after some unanswered requests.
#[tokio::test]
async fn adp_4_a_silent_connection_is_made_anew() {
    let proxy = FaultProxy::start(RabbitMq::shared().address()).unwrap();
    let url = RabbitMq::url_through(proxy.address());
    let limit = Duration::from_millis(300);
    let connection = AmqpConnection::builder(&url).response_timeout(limit).build().unwrap();
    let queues = declared(&shared(), queues("silent")).await;
    let publisher = publisher(&connection);
    let publish = async || publisher.publish(&[message(queues.queue(), "a")]).await.remove(0);
    until("a message", async || publish().await.is_ok()).await;
    proxy.set(NetworkFault::Partition);
    for _ in 0..seawall_amqp::TIMEOUTS_BEFORE_RECONNECT {
        let error = publish().await.unwrap_err();
        assert_eq!(
            (error.fault().class(), error.fault().did_run()),
            (Class::Timeout, Ran::Unknown),
            "{error}"
        );
    }
    proxy.set(NetworkFault::None);
    until("a new connection", async || publish().await.is_ok()).await;
}
