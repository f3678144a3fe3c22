use std::pin::pin;
use std::time::Duration;

use redis::cmd;
use seawall::fault::Ran;
use seawall_redis::{ABANDONED_AFTER, Connection, TIMEOUTS_BEFORE_RECONNECT};
use seawall_testkit::poll_at_most;
use seawall_testkit::servers::{FaultProxy, NetworkFault, Redis};

/// ADP-7: a connection that broke is made again; a server that is away is an error that says that nothing ran.
#[tokio::test]
async fn adp_7_a_connection_is_made_again_after_a_restart() {
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let mut ping = cmd("PING");
    let ping = &*ping.arg("here");
    assert_eq!(connection.query::<String>("a ping", ping).await.unwrap(), "here");
    redis.control().kill().unwrap();
    let mut faults = Vec::new();
    for _ in 0..3 {
        faults.push(connection.query::<String>("a ping", ping).await.unwrap_err().fault());
    }
    assert!(faults.iter().all(seawall::Fault::is_transient), "{faults:?}");
    assert_eq!(faults[2].did_run(), Ran::No, "without a connection nothing is sent");
    redis.control().start().unwrap();
    let mut answer = connection.query::<String>("a ping", ping).await;
    for _ in 0..200 {
        if answer.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        answer = connection.query("a ping", ping).await;
    }
    assert_eq!(answer.unwrap(), "here");
}

/// ADP-7: a server that hangs is a timeout, and the connection is of use again when the server goes on.
#[tokio::test]
async fn adp_7_a_server_that_hangs_is_a_timeout() {
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    connection.query::<()>("a ping", &cmd("PING")).await.unwrap();
    redis.control().pause().unwrap();
    let error = connection.query::<()>("a ping", &cmd("PING")).await.unwrap_err();
    assert_eq!(error.fault().class(), seawall::fault::Class::Timeout, "{error}");
    assert_eq!(error.fault().did_run(), Ran::Unknown);
    redis.control().resume().unwrap();
    let mut answered = false;
    for _ in 0..50 {
        answered = connection.query::<()>("a ping", &cmd("PING")).await.is_ok();
        if answered {
            break;
        }
    }
    assert!(answered, "it went on, and nobody noticed");
}

/// An address that can't be read is an error at once, and a password is in no text.
#[test]
fn a_wrong_address_is_refused_and_a_password_never_shown() {
    assert!(Connection::new("http://nowhere").is_err());
    let connection = Connection::new("redis://:s3cr3t@127.0.0.1:1/").unwrap();
    assert!(!format!("{connection:?}").contains("s3cr3t"), "{connection:?}");
}

/// Makes a thing anew, runs the operation on it for k polls and drops the operation, for k = 0, 1, 2, … until it ends by itself.
/// After each drop the thing is checked. Returns how many polls the whole operation takes.
pub(crate) async fn drop_at_every_poll<T>(
    make: impl AsyncFn() -> T,
    operation: impl AsyncFn(&T),
    check: impl AsyncFn(T),
) -> usize {
    for polls in 0..100 {
        let thing = make().await;
        let ended = {
            let work = pin!(operation(&thing));
            poll_at_most(work, polls).await.is_some()
        };
        check(thing).await;
        if ended {
            return polls;
        }
    }
    panic!("the operation never ended")
}

/// PRM-4: a command that is dropped at any poll, also while it connects, mixes up no answers and keeps nobody from connecting.
#[tokio::test]
async fn prm_4_commands_are_dropped_at_every_poll() {
    let url = Redis::shared().url();
    let script = redis::Script::new("return ARGV[1]");
    for connected in [false, true] {
        let make = || async {
            let connection = Connection::new(&url).unwrap();
            if connected {
                connection.query::<()>("a ping", &cmd("PING")).await.unwrap();
            }
            connection
        };
        let check = async |connection: Connection| {
            for text in ["one", "two"] {
                let answer: String = connection.query("an echo", cmd("ECHO").arg(text)).await.unwrap();
                assert_eq!(answer, text);
            }
        };
        let query = async |c: &Connection| drop(c.query::<String>("an echo", cmd("ECHO").arg("lost")).await);
        let pipeline = async |c: &Connection| {
            drop(c.pipeline::<Vec<String>>("pings", redis::pipe().ping().ping()).await);
        };
        let invocation = script.arg("lost");
        let run = async |c: &Connection| drop(c.script::<String>("a script", &invocation).await);
        let polls = [
            drop_at_every_poll(make, query, check).await,
            drop_at_every_poll(make, pipeline, check).await,
            drop_at_every_poll(make, run, check).await,
        ];
        assert!(polls.iter().all(|polls| *polls >= 2), "each waits for Redis: {polls:?}");
    }
}

/// PRM-4: when the command that began to connect is dropped, those that wait with it go on, on the same attempt.
#[tokio::test]
async fn prm_4_others_go_on_when_the_command_that_connects_is_dropped() {
    let redis = Redis::start().unwrap();
    let watcher = Connection::new(&redis.url()).unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let ping = cmd("PING");
    let mut first = Box::pin(connection.query::<()>("a ping", &ping));
    assert!(poll_at_most(first.as_mut(), 1).await.is_none());
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let connection = connection.clone();
        others.spawn(async move { connection.query::<()>("a ping", &cmd("PING")).await });
    }
    drop(first);
    for answer in others.join_all().await {
        answer.unwrap();
    }
    let clients: String = watcher.query("a list", cmd("CLIENT").arg("LIST")).await.unwrap();
    assert_eq!(clients.lines().count(), 2, "the watcher and one connection for all:\n{clients}");
}

/// ADP-7: threads that share a connection each get their own answers, also while the connection is cut again and again.
#[test]
fn adp_7_threads_share_a_connection() {
    let redis = Redis::start().unwrap();
    let connection = Connection::new(&redis.url()).unwrap();
    let url = redis.url();
    let answered = |thread: usize| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut answered = 0;
            for number in 0..400 {
                let text = format!("{thread}:{number}");
                if let Ok(answer) = connection.query::<String>("an echo", cmd("ECHO").arg(&text)).await {
                    assert_eq!(answer, text);
                    answered += 1;
                } else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                tokio::task::yield_now().await;
            }
            // The connection lives in the runtime of whichever thread made it, and ends with it.
            answered
        })
    };
    let total: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || answered(thread))).collect();
        let mut killer = redis::Client::open(url).unwrap().get_connection().unwrap();
        for _ in 0..5 {
            let _: u32 = cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").query(&mut killer).unwrap();
            std::thread::yield_now();
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(total > 800, "most commands are answered: {total} of 1600");
}

/// ADP-7: a connection whose peer is gone without a word is given up after some timeouts in a row, also where callers are less
/// patient than the response timeout. One that answers in between is kept.
#[tokio::test]
async fn adp_7_a_silent_connection_is_made_anew() {
    let redis = Redis::start().unwrap();
    for impatient in [false, true] {
        let proxy = FaultProxy::start(redis.address()).unwrap();
        let url = format!("redis://{}/", proxy.address());
        let timeout = Duration::from_millis(if impatient { 60_000 } else { 150 });
        let connection = Connection::builder(&url).unwrap().response_timeout(timeout).build().unwrap();
        let id = async || {
            let (mut id, patience) = (cmd("CLIENT"), Duration::from_millis(200));
            let query = connection.query::<u64>("an id", id.arg("ID"));
            if impatient {
                tokio::time::timeout(patience, query).await.ok().and_then(Result::ok)
            } else {
                query.await.ok()
            }
        };
        let first = id().await.expect("an answer");
        for timeouts in [TIMEOUTS_BEFORE_RECONNECT - 1, TIMEOUTS_BEFORE_RECONNECT] {
            proxy.set(NetworkFault::Partition);
            for _ in 0..timeouts {
                assert_eq!(id().await, None, "nothing passes a partition");
            }
            proxy.set(NetworkFault::None);
            let mut now = None;
            for _ in 0..200 {
                now = id().await;
                if now.is_some() {
                    break;
                }
            }
            let same = now.expect("an answer after the partition") == first;
            assert_eq!(
                same,
                timeouts < TIMEOUTS_BEFORE_RECONNECT,
                "after {timeouts} timeouts, impatient: {impatient}"
            );
        }
    }
}

/// ADP-7, TRAPS: a silent connection is made anew also where every caller waits for less than it takes one command to count.
#[tokio::test]
async fn adp_7_a_silent_connection_is_made_anew_for_callers_in_a_hurry() {
    let redis = Redis::start().unwrap();
    let proxy = FaultProxy::start(redis.address()).unwrap();
    let connection = Connection::new(&format!("redis://{}/", proxy.address())).unwrap();
    let id = async |patience: Duration| {
        let mut id = cmd("CLIENT");
        let query = connection.query::<u64>("an id", id.arg("ID"));
        tokio::time::timeout(patience, query).await.ok().and_then(Result::ok)
    };
    let first = id(Duration::from_secs(10)).await.expect("an answer");
    proxy.set(NetworkFault::Partition);
    for _ in 0..20 {
        assert_eq!(id(ABANDONED_AFTER / 3).await, None, "nothing passes a partition");
    }
    proxy.set(NetworkFault::None);
    let mut now = None;
    for _ in 0..200 {
        now = id(Duration::from_secs(10)).await;
        if now.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_ne!(now.expect("an answer after the partition"), first);
}
