use redis::cmd;
use seawall::fault::Ran;
use seawall_redis::Connection;
use seawall_testkit::servers::Redis;

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
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
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
