use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use seawall_testkit::servers::{
    Azurite, FaultProxy, Kafka, NetworkFault, Postgres, Redis, Replication, SeaweedS3, ServerControl,
    WorkerProcess, worker_settings,
};

/// Asks a Redis server; `None` if it does not answer within 300 ms.
fn ping(address: SocketAddr) -> Option<String> {
    let patience = Duration::from_millis(300);
    let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(b"PING\r\n").ok()?;
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).ok()?;
    Some(String::from_utf8_lossy(&answer).trim().to_owned())
}

/// DESIGN 23: a test stops, pauses, kills and restarts its own Redis, and nothing is left of it.
#[test]
fn redis_is_started_paused_stopped_and_gone() {
    let redis = Redis::start().unwrap();
    let (address, folder) = (redis.address(), redis.control().folder());
    assert_eq!(ping(address).as_deref(), Some("+PONG"));
    redis.control().pause().unwrap();
    assert_eq!(ping(address), None, "a paused server answered");
    redis.control().resume().unwrap();
    assert_eq!(ping(address).as_deref(), Some("+PONG"));
    redis.control().stop().unwrap();
    assert_eq!(ping(address), None, "a stopped server answered");
    redis.control().start().unwrap();
    redis.control().kill().unwrap();
    assert_eq!(ping(address), None, "a killed server answered");
    redis.control().start().unwrap();
    assert_eq!(ping(address).as_deref(), Some("+PONG"));
    drop(redis);
    assert_eq!(ping(address), None);
    assert!(!folder.exists(), "its folder is still there");
}

/// DESIGN 23: PostgreSQL runs although the tests run as root, has a database per test, and survives a crash.
#[test]
fn postgres_is_started_killed_and_recovers() {
    let postgres = Postgres::start().unwrap();
    let (first, second) = (postgres.database().unwrap(), postgres.database().unwrap());
    assert_ne!(first.url(), second.url());
    postgres.control().kill().unwrap();
    assert!(postgres.database().is_err(), "a killed server created a database");
    postgres.control().start().unwrap();
    postgres.database().unwrap();
    postgres.control().stop().unwrap();
    let folder = postgres.control().folder();
    drop(postgres);
    assert!(!folder.exists(), "its folder is still there");
}

/// DESIGN 23, HUB-15: a standby of PostgreSQL has what was committed, and goes on when it is promoted.
#[test]
fn a_standby_of_postgres_has_what_was_committed_and_is_promoted() {
    let primary = Postgres::start().unwrap();
    let standby = primary.standby(Replication::Synchronous).unwrap();
    let (database, _second) = (primary.database().unwrap(), primary.database().unwrap());
    assert!(database.url_with_standby(standby.address()).contains(&format!(",{}/", standby.address())));
    assert!(standby.database().is_err(), "a standby was written to");
    primary.control().kill().unwrap();
    standby.promote().unwrap();
    // What the name is taken by was created on the other server.
    let taken = standby.database().unwrap_err().to_string();
    assert!(taken.contains("already exists"), "{taken}");
    standby.database().unwrap();
}

/// DESIGN 23, HUB-15: the disk of a server is full until its room is given back.
#[test]
fn a_small_disk_of_postgres_is_filled_and_freed() {
    let postgres = Postgres::builder().small_disk(160).start().unwrap();
    postgres.database().unwrap();
    postgres.fill_disk().unwrap();
    let full = postgres.database().unwrap_err().to_string();
    assert!(full.contains("No space left on device"), "{full}");
    postgres.free_disk().unwrap();
    postgres.control().start().unwrap();
    postgres.database().unwrap();
    let folder = postgres.control().folder();
    drop(postgres);
    assert!(!folder.exists(), "its folder is still there");
    assert!(Postgres::shared().fill_disk().is_err(), "a disk was filled that is not small");
}

/// Whether a web server answers within 500 ms.
fn answers(address: SocketAddr) -> bool {
    let patience = Duration::from_millis(500);
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, patience).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        stream.read_exact(&mut [0; 12]).ok()
    };
    ask().is_some()
}

/// Pauses, kills and restarts a web server, and stops it if that does not take too long.
fn is_controlled(
    control: &ServerControl,
    address: SocketAddr,
    stops_soon: bool,
) -> Result<(), seawall_testkit::servers::ServerError> {
    assert!(answers(address));
    control.pause()?;
    assert!(!answers(address), "a paused server answered");
    control.resume()?;
    assert!(answers(address));
    if stops_soon || std::env::var_os("SEAWALL_LONG").is_some() {
        control.stop()?;
        assert!(!answers(address), "a stopped server answered");
        control.start()?;
    }
    control.kill()?;
    assert!(!answers(address), "a killed server answered");
    control.start()?;
    assert!(answers(address));
    Ok(())
}

/// DESIGN 23, ADP-8: a test stops, pauses, kills and restarts its own S3 server, and nothing is left of it.
#[test]
fn the_s3_server_is_started_paused_stopped_and_gone() {
    let server = SeaweedS3::start().unwrap();
    let (address, folder) = (server.address(), server.control().folder());
    // It takes 17 s to stop in an orderly way.
    is_controlled(server.control(), address, false).unwrap();
    drop(server);
    assert!(!answers(address) && !folder.exists(), "something is left of it");
}

/// DESIGN 23, ADP-8: a test stops, pauses, kills and restarts its own blob server, and nothing is left of it.
#[test]
fn the_blob_server_is_started_paused_stopped_and_gone() {
    let server = Azurite::start().unwrap();
    let (address, folder) = (server.address(), server.control().folder());
    server.create_container("files").unwrap();
    is_controlled(server.control(), address, true).unwrap();
    server.create_container("files").unwrap();
    drop(server);
    assert!(!answers(address) && !folder.exists(), "something is left of it");
}

/// DESIGN 23: a test that is killed leaves no server behind.
#[test]
fn a_killed_test_leaves_no_server_behind() {
    let mut worker = WorkerProcess::spawn("servers::holds_a_server", &[]).unwrap();
    let line =
        std::iter::from_fn(|| worker.read_line().unwrap()).find(|line| line.contains("redis ")).unwrap();
    let (_, rest) = line.split_once("redis ").unwrap();
    let (address, folder) = rest.split_once(' ').unwrap();
    let address: SocketAddr = address.parse().unwrap();
    assert!(ping(address).is_some());
    worker.kill().unwrap();
    eventually(|| ping(address).is_none() && !Path::new(folder).exists());
}

#[test]
fn holds_a_server() {
    if worker_settings().is_none() {
        return;
    }
    let redis = Redis::start().unwrap();
    println!("redis {} {}", redis.address(), redis.control().folder().display());
    loop {
        std::thread::park();
    }
}

/// A partition keeps bytes back and gives them out when it ends; a refusal closes connections.
#[test]
fn a_proxy_breaks_the_network_and_mends_it() {
    let redis = Redis::shared();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    assert_eq!(ping(proxy.address()).as_deref(), Some("+PONG"));
    proxy.set(NetworkFault::Partition);
    assert_eq!(ping(proxy.address()), None);
    proxy.set(NetworkFault::LostResponses);
    assert_eq!(ping(proxy.address()), None);
    proxy.set(NetworkFault::Refuse);
    assert_eq!(ping(proxy.address()), None);
    proxy.set(NetworkFault::Delay(Duration::from_millis(20)));
    assert_eq!(ping(proxy.address()).as_deref(), Some("+PONG"));
    proxy.set(NetworkFault::None);
    assert_eq!(ping(proxy.address()).as_deref(), Some("+PONG"));
}

#[expect(clippy::disallowed_methods, reason = "what happens in another process can't be awaited")]
fn eventually(condition: impl Fn() -> bool) {
    let came_true = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        condition()
    });
    assert!(came_true, "it did not come true within ten seconds");
}

/// ADP-5: a real Kafka starts, answers, and keeps its port over a restart.
#[test]
fn adp_5_kafka_starts_and_can_be_restarted() {
    let kafka = Kafka::start().unwrap();
    let address = kafka.address();
    assert!(TcpStream::connect(address).is_ok());
    kafka.control().stop().unwrap();
    assert!(TcpStream::connect(address).is_err());
    kafka.control().start().unwrap();
    assert!(TcpStream::connect(address).is_ok());
    assert_ne!(kafka.authenticated_servers(), kafka.bootstrap_servers());
}
