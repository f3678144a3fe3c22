use std::io;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, cmd};
use seawall_dist::idempotency::Idempotency;
use seawall_redis::Connection;
use seawall_redis::idempotency::RedisIdempotency;
use seawall_testkit::conformance::duplicates::{DuplicatesPlan, Effect, LEASE, Look, run, work};
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

fn plan() -> DuplicatesPlan {
    if std::env::var_os("SEAWALL_LONG").is_some() {
        return DuplicatesPlan { keys: 10_000, duplicates: 64, kills: 48, block: 20 };
    }
    DuplicatesPlan { keys: 200, duplicates: 64, kills: 8, block: 10 }
}

/// A connection for what the test itself asks: a busy machine fails no question of it.
fn patient(url: &str) -> Connection {
    Connection::builder(url).unwrap().response_timeout(Duration::from_secs(30)).build().unwrap()
}

/// CRD-2: 64 duplicates of every request in four processes that are killed with -9 or stopped past their lease: one
/// effect per request, and the same answer for all. `SEAWALL_LONG=1` sends 10 000 requests.
#[tokio::test(flavor = "multi_thread")]
async fn crd_2_duplicates_have_one_effect_although_processes_are_killed() {
    let server = Redis::start().unwrap();
    let (url, plan) = (server.url(), plan());
    let connection = patient(&url);
    let worker = "idempotency::duplicates::duplicates_worker";
    let parent = move || run(worker, &[("REDIS", &url)], plan);
    let report = tokio::task::spawn_blocking(parent).await.unwrap();
    let effects: Vec<String> = connection.query("looking", cmd("KEYS").arg("effect:*")).await.unwrap();
    let attempts: i64 = connection.query("looking", cmd("GET").arg("executions")).await.unwrap();
    println!("{plan:?}: {report:?}, {} effects, {attempts} executions", effects.len());
    assert_eq!(effects.len(), plan.keys as usize);
    assert!(report.stops > 1, "nobody was killed");
    assert!(attempts <= report.executions_max(plan), "work ran again without a reason");
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
    let store = Arc::new(RedisIdempotency::new(connection));
    let idempotency = Idempotency::builder(store).lease(LEASE).build().unwrap();
    let (script, effects) = (Arc::new(Script::new(EFFECT)), patient(&settings["REDIS"]));
    let answers = effects.clone();
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
