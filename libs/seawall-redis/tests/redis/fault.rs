//! ENG-1: what the errors of a real server mean.

use std::time::Duration;

use redis::{Client, Cmd, IntoConnectionInfo, RedisError, Script, cmd};
use seawall::fault::{Class, Ran};
use seawall_dist::StoreError;
use seawall_redis::{Connection, ConnectionBuilder};
use seawall_testkit::servers::Redis;

/// A command in words: `command("SET key value")`.
fn command(words: &str) -> Cmd {
    let mut words = words.split(' ');
    let mut command = cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command
}

async fn run(connection: &Connection, words: &str) -> Result<redis::Value, StoreError> {
    connection.query("a command", &command(words)).await
}

/// The code that the message of the server began with.
fn code_of(error: &StoreError) -> &str {
    error
        .cause()
        .and_then(|cause| cause.downcast_ref::<RedisError>())
        .and_then(RedisError::code)
        .unwrap_or_default()
}

/// The error of a command that must fail with this code.
async fn fails(connection: &Connection, words: &str, code: &str) -> StoreError {
    let error = run(connection, words).await.unwrap_err();
    assert_eq!(code_of(&error), code, "{words} failed with something else: {error}");
    error
}

/// What an error means: its class, whether another attempt may help, whether the command took effect.
fn meaning(error: &StoreError) -> (Class, bool, Ran) {
    let fault = error.fault();
    (fault.class(), fault.is_transient(), fault.did_run())
}

/// A refusal that passes: the same command may succeed later, and nothing has happened.
const PASSES: (Class, bool, Ran) = (Class::Protocol, true, Ran::No);
/// A mistake that no other attempt mends, and the server has looked at the command.
const ANSWERED: (Class, bool, Ran) = (Class::Business, false, Ran::Yes);
/// A mistake that no other attempt mends, and nothing has happened.
const MISTAKE: (Class, bool, Ran) = (Class::Business, false, Ran::No);

/// ENG-1, ADP-7: refusals of a server that stands alone.
#[tokio::test]
async fn eng_1_refusals_of_a_server_are_judged() {
    let redis = Redis::start().unwrap();
    let admin = Connection::new(&redis.url()).unwrap();
    let user = Connection::new(&redis.url()).unwrap();
    run(&user, "RPUSH list x").await.unwrap();
    assert_eq!(meaning(&fails(&user, "GET list", "WRONGTYPE").await), ANSWERED);
    assert_eq!(meaning(&fails(&user, "NOSUCH command", "ERR").await), ANSWERED);
    assert_eq!(meaning(&fails(&user, "INCR list extra", "ERR").await), ANSWERED);

    run(&admin, "CONFIG SET maxmemory 1").await.unwrap();
    assert_eq!(meaning(&fails(&user, "SET key value", "OOM").await), PASSES);
    run(&admin, "CONFIG SET maxmemory 0").await.unwrap();

    run(&admin, "CONFIG SET min-replicas-to-write 1").await.unwrap();
    assert_eq!(meaning(&fails(&user, "SET key value", "NOREPLICAS").await), PASSES);
    run(&admin, "CONFIG SET min-replicas-to-write 0").await.unwrap();

    run(&admin, "CONFIG SET busy-reply-threshold 1").await.unwrap();
    let endless = Connection::builder(&redis.url()).unwrap().response_timeout(Duration::from_secs(60));
    let endless = endless.build().unwrap();
    let script = Script::new("while true do end");
    let invocation = script.prepare_invoke();
    let busy = async {
        let error = loop {
            // A connection of its own each time: one that was made before the script began may wait until it ends.
            match Connection::new(&redis.url()).unwrap().query::<()>("a ping", &cmd("PING")).await {
                Err(error) if code_of(&error) == "BUSY" => break error,
                _ => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        run(&admin, "SCRIPT KILL").await.unwrap();
        error
    };
    let (killed, busy) = tokio::join!(endless.script::<()>("an endless script", &invocation), busy);
    assert_eq!(meaning(&busy), PASSES);
    assert!(!killed.unwrap_err().fault().is_transient(), "a script that was killed is not run again blindly");

    // The server forgets all scripts: the client sends the text again by itself.
    let script = Script::new("return ARGV[1]");
    for _ in 0..2 {
        assert_eq!(user.script::<String>("a script", &script.arg("x")).await.unwrap(), "x");
        run(&admin, "SCRIPT FLUSH").await.unwrap();
    }
}

/// ENG-1, ADP-7: a user without a right, without a password, with a wrong one. A client with a user goes through
/// `ConnectionBuilder::of`.
#[tokio::test]
async fn eng_1_users_without_rights_are_judged() {
    let redis = Redis::start().unwrap();
    let admin = Connection::new(&redis.url()).unwrap();
    run(&admin, "ACL SETUSER reader on >secret ~* -@all +get +ping").await.unwrap();
    let client = |user: &str, password: &str| {
        let info = redis.url().into_connection_info().unwrap();
        let settings = info.redis_settings().clone().set_username(user).set_password(password);
        ConnectionBuilder::of(Client::open(info.set_redis_settings(settings)).unwrap()).build().unwrap()
    };
    let reader = client("reader", "secret");
    run(&reader, "GET key").await.unwrap();
    assert_eq!(meaning(&fails(&reader, "SET key value", "NOPERM").await), MISTAKE);
    assert!(!format!("{reader:?}").contains("secret"), "{reader:?}");

    let stranger = client("reader", "guess");
    let error = run(&stranger, "GET key").await.unwrap_err();
    assert_eq!(meaning(&error), MISTAKE, "{error}");
    assert!(!error.to_string().contains("guess"), "{error}");

    run(&admin, "CONFIG SET requirepass secret").await.unwrap();
    let nobody = Connection::new(&redis.url()).unwrap();
    let error = run(&nobody, "GET key").await.unwrap_err();
    assert_eq!(code_of(&error), "NOAUTH", "{error}");
    assert_eq!(meaning(&error), MISTAKE, "{error}");
}

/// ENG-1: a server that takes no more clients will take one later.
#[tokio::test]
async fn eng_1_a_server_with_too_many_clients_is_judged() {
    let redis = Redis::start().unwrap();
    let admin = Connection::new(&redis.url()).unwrap();
    run(&admin, "CONFIG SET maxclients 1").await.unwrap();
    let late = Connection::new(&redis.url()).unwrap();
    let error = run(&late, "PING").await.unwrap_err();
    assert!(error.fault().is_transient(), "{error:?}");
    run(&admin, "CONFIG SET maxclients 100").await.unwrap();
    let mut answer = run(&late, "PING").await;
    for _ in 0..500 {
        if answer.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        answer = run(&late, "PING").await;
    }
    panic!("there is room again, and the connection is never made: {answer:?}");
}

/// ENG-1, ADP-7: a replica that loads its data, that takes no writes, and that has lost its master. After a refused write the
/// connection is made anew, because the name of the server may lead to another one now.
#[tokio::test]
async fn eng_1_refusals_of_a_replica_are_judged() {
    let (master, replica) = (Redis::start().unwrap(), Redis::start().unwrap());
    let (writer, admin) = (Connection::new(&master.url()).unwrap(), Connection::new(&replica.url()).unwrap());
    run(&writer, "CONFIG SET repl-diskless-sync-delay 0").await.unwrap();
    let value = "x".repeat(3_000);
    for number in 0..100 {
        run(&writer, &format!("SET key:{number} {value}")).await.unwrap();
    }
    // Loads slowly, and answers while it does.
    run(&admin, "CONFIG SET rdbcompression no").await.unwrap();
    run(&writer, "CONFIG SET rdbcompression no").await.unwrap();
    run(&admin, "CONFIG SET key-load-delay 20000").await.unwrap();
    run(&admin, "CONFIG SET loading-process-events-interval-bytes 1024").await.unwrap();
    run(&admin, &format!("REPLICAOF 127.0.0.1 {}", master.address().port())).await.unwrap();
    let reader = Connection::new(&replica.url()).unwrap();
    let mut loading = None;
    for _ in 0..2_000 {
        match run(&reader, "GET key:1").await {
            Err(error) if code_of(&error) == "LOADING" => {
                loading = Some(error);
                break;
            }
            _ => tokio::time::sleep(Duration::from_millis(2)).await,
        }
    }
    assert_eq!(meaning(&loading.expect("a replica that loads")), PASSES);

    let mut refused = run(&reader, "SET key value").await.unwrap_err();
    for _ in 0..2_000 {
        if code_of(&refused) == "READONLY" {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        refused = run(&reader, "SET key value").await.unwrap_err();
    }
    assert!(code_of(&refused) == "READONLY", "{refused}");
    assert_eq!(meaning(&refused), PASSES);
    let id = async || reader.query::<u64>("an id", &command("CLIENT ID")).await.unwrap();
    let before = id().await;
    assert_eq!(before, id().await, "a connection that works is kept");
    fails(&reader, "SET key value", "READONLY").await;
    assert_ne!(before, id().await, "after a refused write the connection is made anew");

    run(&admin, "CONFIG SET replica-serve-stale-data no").await.unwrap();
    master.control().kill().unwrap();
    let mut orphaned = run(&reader, "GET key:1").await;
    for _ in 0..2_000 {
        if orphaned.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        orphaned = run(&reader, "GET key:1").await;
    }
    let orphaned = orphaned.unwrap_err();
    assert!(code_of(&orphaned) == "MASTERDOWN", "{orphaned}");
    assert_eq!(meaning(&orphaned), PASSES);
}
