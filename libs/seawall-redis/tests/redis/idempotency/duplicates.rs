use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, cmd};
use seawall_dist::idempotency::Idempotency;
use seawall_redis::Connection;
use seawall_redis::idempotency::RedisIdempotency;
use seawall_testkit::conformance::duplicates::{Effect, Look, Plan, run, work};
use seawall_testkit::servers::{Redis, worker_settings};

/// A fenced effect: an executor with an older token changes nothing.
const EFFECT: &str = r"
local token = redis.call('HGET', KEYS[1], 'token')
if token and tonumber(token) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'token', ARGV[1])
redis.call('HINCRBY', KEYS[1], 'attempts', 1)
redis.call('INCR', 'executions')
return 1
";

fn plan() -> Plan {
    if std::env::var_os("SEAWALL_LONG").is_some() {
        return Plan { keys: 10_000, duplicates: 64, kills: 48, block: 20 };
    }
    Plan { keys: 200, duplicates: 64, kills: 8, block: 10 }
}

/// CRD-2: 64 duplicates of every request in four processes that are killed with -9: one effect per request, and the same answer
/// for all. `SEAWALL_LONG=1` sends 10 000 requests.
#[tokio::test(flavor = "multi_thread")]
async fn crd_2_duplicates_have_one_effect_although_processes_are_killed() {
    let server = Redis::start().unwrap();
    let (url, plan) = (server.url(), plan());
    let connection = Connection::new(&url).unwrap();
    let worker = "idempotency::duplicates::duplicates_worker";
    let parent = move || run(worker, &[("REDIS", &url)], plan);
    let kills = tokio::task::spawn_blocking(parent).await.unwrap();
    let effects: Vec<String> = connection.query("looking", cmd("KEYS").arg("effect:*")).await.unwrap();
    let attempts: i64 = connection.query("looking", cmd("GET").arg("executions")).await.unwrap();
    println!("{plan:?}: {kills} kills, {} effects, {attempts} executions", effects.len());
    assert_eq!(effects.len(), plan.keys as usize);
    assert!(kills > 0, "nobody was killed");
    // A killed process had at most one execution of each of its requests in flight.
    assert!(
        attempts - i64::from(plan.keys) <= i64::from(kills * plan.block),
        "work ran again without a crash"
    );
    for effect in effects {
        let request = effect.replace("effect:", "idempotency:10:duplicates:");
        let mut stored = cmd("HMGET");
        stored.arg(&request).arg("state").arg("token").arg("result");
        let (state, token, result): (i64, u64, u64) = connection.query("looking", &stored).await.unwrap();
        let done: u64 = connection.query("looking", cmd("HGET").arg(&effect).arg("token")).await.unwrap();
        assert_eq!(
            (state, token, result),
            (1, done, done),
            "the stored answer of {request} is not what was done"
        );
    }
}

/// The worker of the test above.
#[tokio::test(flavor = "multi_thread")]
async fn duplicates_worker() {
    let Some(settings) = worker_settings() else { return };
    let connection = Connection::new(&settings["REDIS"]).unwrap();
    let store = Arc::new(RedisIdempotency::new(connection.clone()));
    let idempotency = Idempotency::builder(store).lease(Duration::from_secs(2)).build().unwrap();
    let (script, effects, answers) = (Arc::new(Script::new(EFFECT)), connection.clone(), connection);
    let effect: Effect = Arc::new(move |key, token| {
        let (script, connection) = (script.clone(), effects.clone());
        Box::pin(async move {
            let mut effect = script.key(format!("effect:{key}"));
            let done = connection.script::<i64>("an effect", effect.arg(token)).await;
            done.map(|done| done == 1).map_err(io::Error::other)
        })
    });
    let look: Look = Arc::new(move |key| {
        let connection = answers.clone();
        Box::pin(async move {
            let mut look = cmd("HGET");
            look.arg(format!("effect:{key}")).arg("token");
            connection.query("looking", &look).await.map_err(io::Error::other)
        })
    });
    work(idempotency, &settings, effect, look).await;
}
