use std::time::Duration;

use seawall::fault::{Class, Ran};
use seawall_nats::{NatsConnection, fault_of};
use seawall_testkit::servers::Nats;

use crate::support::{connect, unique, until};

/// Whether JetStream answers: it says that there is no such stream.
async fn answers(connection: &NatsConnection) -> bool {
    let Ok(context) = connection.jetstream().await else { return false };
    context.get_stream("ABSENT").await.is_err_and(|error| fault_of(&error).class() == Class::Business)
}

/// ADP-6: wrong credentials are an error at once that no attempt helps, and no text has the password.
#[tokio::test]
async fn adp_6_wrong_credentials_are_refused_at_once() {
    let nats = Nats::builder().user("orders", "s3cr3t").start().unwrap();
    let wrong = NatsConnection::new(&nats.url_as("orders", "wr0ng")).unwrap();
    for _ in 0..3 {
        let error = wrong.jetstream().await.unwrap_err();
        assert_eq!((error.fault().class(), error.fault().did_run()), (Class::Business, Ran::No), "{error:?}");
        assert!(!error.fault().is_transient(), "{error}");
        assert!(error.to_string().contains("authorization violation"), "{error}");
        assert!(!format!("{error} {error:?} {wrong:?}").contains("wr0ng"), "{error:?}");
    }
    let right = NatsConnection::new(&nats.url()).unwrap();
    assert!(answers(&right).await);
}

/// ADP-6: a server that is away is an error at once, and the connection is of use again when the server is back.
#[tokio::test]
async fn adp_6_a_connection_is_made_again_after_a_restart() {
    let nats = Nats::start().unwrap();
    let connection = connect(&nats);
    assert!(answers(&connection).await);
    nats.control().kill().unwrap();
    until("the connection knows", || async { connection.jetstream().await.is_err() }).await;
    let error = connection.jetstream().await.unwrap_err();
    assert!(error.fault().is_transient() && error.fault().did_run() == Ran::No, "{error:?}");
    nats.control().start().unwrap();
    until("the server is back", || answers(&connection)).await;
}

/// ADP-6: nobody listens at the address; the next attempt waits for its pause, and the error says that nothing was sent.
#[tokio::test]
async fn adp_6_no_server_is_an_error_at_once() {
    let port = seawall_testkit::servers::free_port().unwrap();
    let connection = NatsConnection::new(&format!("nats://127.0.0.1:{port}")).unwrap();
    for _ in 0..20 {
        let error = connection.jetstream().await.unwrap_err();
        assert!(error.fault().is_transient() && error.fault().did_run() == Ran::No, "{error:?}");
    }
}

/// ADP-6: requests to a paused server end with a timeout, and what they did is unknown.
#[tokio::test]
async fn adp_6_a_paused_server_is_a_timeout() {
    let nats = Nats::start().unwrap();
    let limit = Duration::from_millis(300);
    let connection = NatsConnection::builder(&nats.url()).request_timeout(limit).build().unwrap();
    let context = connection.jetstream().await.unwrap();
    nats.control().pause().unwrap();
    let error = context.get_stream(unique("PAUSED")).await.unwrap_err();
    assert_eq!(
        (fault_of(&error).class(), fault_of(&error).did_run()),
        (Class::Timeout, Ran::Unknown),
        "{error:?}"
    );
    nats.control().resume().unwrap();
    until("the server goes on", || answers(&connection)).await;
}

/// ENG-1, ADP-6: the real errors of a real server are judged.
#[tokio::test]
async fn adp_6_errors_of_a_real_server_are_judged() {
    let connection = connect(Nats::shared());
    let context = connection.jetstream().await.unwrap();
    let absent = context.get_stream(unique("ABSENT")).await.unwrap_err();
    assert_eq!(
        (fault_of(&absent).class(), fault_of(&absent).did_run()),
        (Class::Business, Ran::No),
        "{absent:?}"
    );
    let name = unique("TAKEN");
    crate::support::stream(&context, &name).await;
    let other = async_nats::jetstream::stream::Config { name, ..Default::default() };
    let conflict = context.create_stream(other).await.unwrap_err();
    assert!(!fault_of(&conflict).is_transient(), "{conflict:?}");
    let unheard = context.publish(unique("nobody.listens"), "".into()).await.unwrap().await.unwrap_err();
    assert!(!fault_of(&unheard).is_transient(), "{unheard:?}");
    let refused = async_nats::connect("nats://127.0.0.1:1").await.unwrap_err();
    assert!(fault_of(&refused).is_transient() && fault_of(&refused).did_run() == Ran::No, "{refused:?}");
}

/// PRM-4: a request that is dropped while it connects leaves the attempt to the others.
#[tokio::test]
async fn prm_4_a_dropped_request_leaves_the_connection_usable() {
    let connection = connect(Nats::shared());
    for limit in [0, 1, 50, 200, 1_000] {
        let _ = tokio::time::timeout(Duration::from_micros(limit), connection.jetstream()).await;
    }
    assert!(answers(&connection).await);
}
